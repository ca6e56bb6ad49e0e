/* design_rows: the heads that `fpac design` considers, as far as the vocabulary of specs has them. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "design.h"

static const int widths[] = {4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
static const int block_sizes[] = {1, 2, 4, 8, 16, 32, 64};

enum {
    WIDTHS = sizeof widths / sizeof *widths,
    BLOCK_SIZES = sizeof block_sizes / sizeof *block_sizes,
    MOST_DEGREE = 6,
    MOST_SKETCHED = 512, /* the most features of a sketch, each of which has two projections of its own */
    GROUP = 8            /* rows of a sketch's matrices */
};

/* The list while it is made. */
typedef struct enumeration {
    const design_request *request;
    design_list *list;
    double most; /* features for which the state has room */
    int function;
    bool failed; /* an allocation failed */
} enumeration;

static double state_of(const design_request *request, double features)
{
    const double columns = (double)request->dv + (request->normalize != FPA_NORMALIZE_NONE);
    return features * columns * (double)dtype_size(FPA_F32);
}

static void note_smallest(enumeration *e, const char *label, double least)
{
    const double bytes = state_of(e->request, least);
    if (e->list->smallest > 0 && e->list->smallest <= bytes)
        return;
    e->list->smallest = bytes;
    snprintf(e->list->smallest_label, sizeof e->list->smallest_label, "%s", label);
}

static bool make_room(enumeration *e)
{
    design_list *list = e->list;
    if (list->count < list->room)
        return true;
    const int room = 2 * list->room + 64;
    design_row *rows = realloc(list->rows, (size_t)room * sizeof *rows);
    if (!rows) {
        e->failed = true;
        return false;
    }
    list->rows = rows;
    list->room = room;
    return true;
}

/* Adds a row of the current function, with its label; NULL: it has too many features, or memory is out. */
static design_row *add_row(enumeration *e, double least, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static design_row *add_row(enumeration *e, double least, const char *format, ...)
{
    design_row row = {.function = e->function, .least = least, .scale = 1 / sqrt((double)e->request->d)};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row.label, sizeof row.label, format, arguments);
    va_end(arguments);
    if (least > e->most) {
        note_smallest(e, row.label, least);
        return NULL;
    }
    if (!make_room(e))
        return NULL;
    e->list->rows[e->list->count] = row;
    return &e->list->rows[e->list->count++];
}

/* The number of features of degrees 0 to n. */
static double monomials_up_to(int d, int n)
{
    double sum = 0;
    for (int i = 0; i <= n; i++)
        sum += monomial_count(d, i);
    return sum;
}

/* ---- functions of q.k ---- */

static void add_linear(enumeration *e)
{
    e->function++;
    design_row *row = add_row(e, (double)e->request->d, "linear");
    if (!row)
        return;
    snprintf(row->terms, sizeof row->terms, "linear {}");
    row->about = "q.k: linear attention, D = d";
    row->degree = 1;
}

static void add_power(enumeration *e, int p)
{
    const int d = (int)e->request->d;
    const double least = monomial_count(d, p);
    static const char about[] = "(q.k)^degree, each of its symmetric features kept once, by blocks";
    e->function++;
    design_row *row = add_row(e, least, "power %d", p);
    if (row) {
        snprintf(row->terms, sizeof row->terms, "power { degree = %d }", p);
        row->about = about;
        row->degree = p;
    }
    for (int i = 0; i < BLOCK_SIZES && block_sizes[i] <= d; i++) {
        const int b = block_sizes[i];
        row = b == 1 ? add_row(e, least, "spow %d", p) : add_row(e, least, "tspow %d, block %d", p, b);
        if (!row)
            continue;
        if (b == 1)
            snprintf(row->terms, sizeof row->terms, "spow { d = %d, degree = %d }", d, p);
        else
            snprintf(row->terms, sizeof row->terms, "tspow { d = %d, degree = %d, block = %d }", d, p, b);
        row->about = about;
        row->degree = p;
    }
}

static void add_polynomials(enumeration *e)
{
    const int d = (int)e->request->d;
    for (int n = 2; n <= 4; n++) {
        e->function++;
        design_row *row = add_row(e, monomials_up_to(d, n), "taylor %d", n);
        if (row) {
            snprintf(row->terms, sizeof row->terms, "taylor { degree = %d }", n);
            row->about = "the Taylor series of softmax's exp, as in BASED";
        }
        e->function++;
        row = add_row(e, monomials_up_to(d, n), "inhomogeneous %d", n);
        if (row) {
            snprintf(row->terms, sizeof row->terms, "inhomogeneous { degree = %d, constant = 1 }", n);
            row->about = "(1 + q.k)^degree: all monomials up to the degree";
        }
    }
}

/* ---- learned projections ---- */

static void add_projected_power(enumeration *e, int rows, int p)
{
    e->function++;
    design_row *row = add_row(e, monomial_count(rows, p), "power %d of %d projected", p, rows);
    if (!row)
        return;
    snprintf(row->before, sizeof row->before, "local W = trainable { name = \"W\", rows = %d }\n", rows);
    snprintf(row->terms, sizeof row->terms, "{ term { W%s } }",
             p == 2   ? ", W"
             : p == 3 ? ", W, W"
                      : ", W, W, W");
    row->about = "a power of W q.W k, W learned: the state is that of fewer coordinates";
}

static void add_projected_taylor(enumeration *e, int rows)
{
    e->function++;
    design_row *row = add_row(e, monomials_up_to(rows, 2), "taylor 2 of %d projected", rows);
    if (!row)
        return;
    snprintf(row->before, sizeof row->before, "local W = trainable { name = \"W\", rows = %d }\n", rows);
    snprintf(row->terms, sizeof row->terms, "{ term {}, term { W }, term { W, W, weight = ratio(1, 2) } }");
    row->about = "1 + s + s^2 / 2 of s = W q.W k, W learned: BASED's feature map";
    row->scale = 1 / sqrt((double)rows);
}

static void add_product(enumeration *e, int first, int second, int third)
{
    e->function++;
    design_row *row =
        third ? add_row(e, (double)first * second * third, "product %d x %d x %d", first, second, third)
              : add_row(e, (double)first * second, "product %d x %d", first, second);
    if (!row)
        return;
    size_t used = (size_t)snprintf(row->terms, sizeof row->terms,
                                   "{ term { trainable { name = \"W1\", rows = %d }, "
                                   "trainable { name = \"W2\", rows = %d }",
                                   first, second);
    if (third)
        used += (size_t)snprintf(row->terms + used, sizeof row->terms - used,
                                 ", trainable { name = \"W3\", rows = %d }", third);
    snprintf(row->terms + used, sizeof row->terms - used, " } }");
    row->about = "a product of learned projections: D is the product of their rows";
}

static void add_projections(enumeration *e)
{
    for (int i = 0; i < WIDTHS && widths[i] < e->request->d; i++) {
        for (int p = 2; p <= 4; p++)
            add_projected_power(e, widths[i], p);
        add_projected_taylor(e, widths[i]);
    }
    for (int i = 0; i < WIDTHS && widths[i] <= e->request->d; i++) {
        for (int j = i; j < WIDTHS && widths[j] <= e->request->d && widths[j] <= 2 * widths[i]; j++)
            add_product(e, widths[i], widths[j], 0);
        add_product(e, widths[i], widths[i], widths[i]);
    }
}

/* ---- sketches ---- */

/* Adds a sketch of (q.k)^2 by random rows: each feature is a product of two of them. */
static void add_sketch(enumeration *e, int features)
{
    e->function++;
    design_row *row = add_row(e, features, "sketch 2 of %d", features);
    if (!row)
        return;
    snprintf(row->before, sizeof row->before,
             "local sketched = {}\n"
             "for group = 0, %d do  -- rows of random orthonormal matrices\n"
             "  local A = orthogonal { rows = %d, d = %d, seed = 2 * group + 1 }\n"
             "  local B = orthogonal { rows = %d, d = %d, seed = 2 * group + 2 }\n"
             "  for i = 1, %d do sketched[#sketched + 1] = term { dense { A[i] }, dense { B[i] } } end\n"
             "end\n",
             features / GROUP - 1, GROUP, (int)e->request->d, GROUP, (int)e->request->d, GROUP);
    snprintf(row->terms, sizeof row->terms, "sketched");
    row->about = "(q.k)^2 in the mean over random rows, a feature a product of two";
}

/* Adds a sketch of (q.k)^2 by random subspaces: products of every row of one with every row of the other. */
static void add_sketch_of_products(enumeration *e, int groups, int width)
{
    e->function++;
    design_row *row =
        add_row(e, (double)groups * width * width, "sketch 2, %d of %d x %d", groups, width, width);
    if (!row)
        return;
    snprintf(row->before, sizeof row->before,
             "local sketched = {}\n"
             "for group = 1, %d do  -- random orthonormal matrices\n"
             "  sketched[group] = term { dense(orthogonal { rows = %d, d = %d, seed = 2 * group - 1 }),\n"
             "                           dense(orthogonal { rows = %d, d = %d, seed = 2 * group }) }\n"
             "end\n",
             groups, width, (int)e->request->d, width, (int)e->request->d);
    snprintf(row->terms, sizeof row->terms, "sketched");
    row->about = "(q.k)^2 in the mean over random subspaces, as PolySketch has it for given matrices";
}

static void add_sketches(enumeration *e)
{
    if (e->request->d < GROUP)
        return;
    for (int features = 64; features <= MOST_SKETCHED; features *= 2)
        add_sketch(e, features);
    for (int groups = 2; groups <= 8; groups *= 2)
        for (int width = 8; width <= 16 && width <= e->request->d; width *= 2)
            add_sketch_of_products(e, groups, width);
}

fpa_status design_enumerate(const design_request *request, design_list *list, fpa_error *error)
{
    enumeration e = {.request = request, .list = list, .most = request->state / state_of(request, 1)};
    add_linear(&e);
    for (int p = 2; p <= MOST_DEGREE; p++)
        add_power(&e, p);
    add_polynomials(&e);
    add_projections(&e);
    add_sketches(&e);
    return e.failed ? fail_memory(error) : FPA_OK;
}

void design_free(design_list *list)
{
    free(list->rows);
    *list = (design_list){0};
}
