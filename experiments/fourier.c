/* fourier: given functions of the distance as Fourier kernels, against the number of features.
 *
 *   fourier SPEC FOLDER
 *
 * A head of the spec has the kernel sum over r of c_r cos(b_r + a_r t) of the distance t, rows of q and k being 1. Its d
 * angles are fixed, a_r = 2 pi r / PERIOD; with c cos(b + a t) = x cos(a t) + y sin(a t), x and y are fitted to a function
 * on t = 0 .. LENGTH - 1 by least squares. The compiled kernel with these a, b and c, each function a head of one
 * call, says how far off it is. Writes FOLDER/fourier.tsv and FOLDER/fourier.svg. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "call.h"
#include "heads.h"
#include "output.h"

/* A quarter longer than the distances: periodic functions need not be as far off at the ends as those of LENGTH. */
enum { LENGTH = 256, PERIOD = LENGTH + LENGTH / 4, MOST_ANGLES = LENGTH / 4 };
static const double pi = 3.14159265358979323846;

/* ---- the functions ---- */

static double decay(double t)
{
    return exp(-t / 16);
}

static double step(double t)
{
    return t < 32;
}

static double reciprocal(double t)
{
    return 1 / (1 + t);
}

static const struct {
    const char *name, *label;
    double (*value)(double t);
} functions[] = {
    {"exp_16", "exp(-t / 16)", decay},
    {"step_32", "1 below t = 32, else 0", step},
    {"reciprocal", "1 / (1 + t)", reciprocal},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* ---- least squares ---- */

/* Columns cos(a_r t), then sin(a_r t), over the distances, and below them a small multiple of the identity: angles that
 * hardly differ on so few distances shall not cancel each other with large amplitudes. Orthonormal columns times an
 * upper triangle, by Gram and Schmidt, each column twice. */
typedef struct fit {
    int columns;
    double column[2 * MOST_ANGLES][LENGTH + 2 * MOST_ANGLES], triangle[2 * MOST_ANGLES][2 * MOST_ANGLES];
} fit;

static const double smallness = 1e-3;

static double angle_of(int r)
{
    return 2 * pi * r / PERIOD;
}

static void orthogonalise(fit *f, int c)
{
    const int rows = LENGTH + f->columns;
    double *own = f->column[c], square = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int other = 0; other < c; other++) {
            double along = 0;
            for (int i = 0; i < rows; i++)
                along += own[i] * f->column[other][i];
            for (int i = 0; i < rows; i++)
                own[i] -= along * f->column[other][i];
            f->triangle[other][c] += along;
        }
    for (int i = 0; i < rows; i++)
        square += own[i] * own[i];
    f->triangle[c][c] = sqrt(square);
    for (int i = 0; i < rows; i++)
        own[i] /= f->triangle[c][c];
}

static void make_fit(int angles, fit *f)
{
    memset(f, 0, sizeof *f);
    f->columns = 2 * angles;
    for (int c = 0; c < f->columns; c++) {
        for (int t = 0; t < LENGTH; t++)
            f->column[c][t] = c < angles ? cos(angle_of(c) * t) : sin(angle_of(c - angles) * t);
        f->column[c][LENGTH + c] = smallness;
        orthogonalise(f, c);
    }
}

static void solve(const fit *f, double (*value)(double), double *x)
{
    for (int c = f->columns - 1; c >= 0; c--) {
        x[c] = 0;
        for (int t = 0; t < LENGTH; t++)
            x[c] += f->column[c][t] * value(t);
        for (int other = c + 1; other < f->columns; other++)
            x[c] -= f->triangle[c][other] * x[other];
        x[c] /= f->triangle[c][c];
    }
}

/* ---- the kernel ---- */

typedef struct result {
    int angles;
    double features;
    struct {
        double error, most, amplitude; /* root of the mean square; greatest; greatest c */
    } of[FUNCTIONS];
} result;

/* Operands of one call, a head a function. v is 1 at token 0 alone, so that o of token t is k at the distance t. */
typedef struct operands {
    float a[FUNCTIONS][MOST_ANGLES], b[FUNCTIONS][MOST_ANGLES], c[FUNCTIONS][MOST_ANGLES];
    float rows[LENGTH * FUNCTIONS * MOST_ANGLES], v[LENGTH * FUNCTIONS], o[LENGTH][FUNCTIONS];
    float positions[LENGTH];
} operands;

static void fill_operands(int angles, fit *f, operands *all)
{
    make_fit(angles, f);
    for (int n = 0; n < FUNCTIONS; n++) {
        double x[2 * MOST_ANGLES] = {0};
        solve(f, functions[n].value, x);
        for (int r = 0; r < angles; r++) {
            const int at = n * angles + r; /* weights are [heads, d, 1] without gaps */
            (&all->a[0][0])[at] = (float)angle_of(r);
            (&all->b[0][0])[at] = (float)atan2(-x[angles + r], x[r]);
            (&all->c[0][0])[at] = (float)hypot(x[r], x[angles + r]);
        }
    }
    for (int t = 0; t < LENGTH; t++)
        all->positions[t] = (float)t;
    for (int n = 0; n < FUNCTIONS; n++)
        all->v[n] = 1;
}

/* By its name; NULL: it has none of these. */
static float *weight_of(operands *all, const char *name)
{
    float *const weights[] = {all->a[0], all->b[0], all->c[0]};
    return strlen(name) == 1 && 'a' <= *name && *name <= 'c' ? weights[*name - 'a'] : NULL;
}

static bool is_suitable(const fpa_description *about, operands *all)
{
    bool suits =
        about->d <= MOST_ANGLES && about->dv == 1 && about->positions == 1 && about->weight_count == 3;
    for (int i = 0; i < about->weight_count && suits; i++)
        suits = weight_of(all, about->weight_names[i]) != NULL;
    return suits;
}

static fpa_status evaluate(const fpa_kernel *kernel, operands *all, fpa_error *error)
{
    const fpa_description *about = fpa_describe(kernel);
    int64_t rows[] = {1, LENGTH, FUNCTIONS, about->d}, values[] = {1, LENGTH, FUNCTIONS, 1};
    int64_t positions[] = {1, LENGTH, 1}, weights[] = {FUNCTIONS, about->d, 1};
    DLTensor q = call_tensor(all->rows, 4, rows), p = call_tensor(all->positions, 3, positions);
    DLTensor v = call_tensor(all->v, 4, values), o = call_tensor(all->o[0], 4, values), weight[3];
    const DLTensor *weight_list[3];
    for (int i = 0; i < 3; i++) {
        weight[i] = call_tensor(weight_of(all, about->weight_names[i]), 3, weights);
        weight_list[i] = &weight[i];
    }
    const fpa_tensors tensors = {.q = &q, .k = &q, .v = &v, .o = &o, .weights = weight_list, .positions = &p};
    return call_forward(kernel, &tensors, error);
}

static void conclude(const operands *all, result *r)
{
    for (int n = 0; n < FUNCTIONS; n++) {
        double square = 0;
        for (int t = 0; t < LENGTH; t++) {
            const double off = fabs((double)all->o[t][n] - functions[n].value(t));
            square += off * off / LENGTH;
            r->of[n].most = fmax(r->of[n].most, off);
        }
        r->of[n].error = sqrt(square);
        for (int i = 0; i < r->angles; i++)
            r->of[n].amplitude = fmax(r->of[n].amplitude, (double)all->c[0][n * r->angles + i]);
    }
}

static fpa_status fit_and_evaluate(const fpa_kernel *kernel, fit *f, operands *all, result *r,
                                   fpa_error *error)
{
    const fpa_description *about = fpa_describe(kernel);
    if (!is_suitable(about, all))
        return fail(error, FPA_INVALID, about->name,
                    "needs terms = fourier { map = one }, positions = 1, dv = 1 and a d of at most %d",
                    MOST_ANGLES);
    *r = (result){.angles = about->d, .features = (double)about->features};
    fill_operands(about->d, f, all);
    const fpa_status status = evaluate(kernel, all, error);
    if (!status)
        conclude(all, r);
    return status;
}

static fpa_status measure(const char *spec, const fpa_head *head, void *found, fpa_error *error)
{
    fpa_kernel *kernel = NULL;
    fit *f = calloc(1, sizeof *f);
    operands *all = calloc(1, sizeof *all);
    fpa_status status = f && all ? fpa_open(spec, head->name, NULL, &kernel, error) : fail_memory(error);
    if (!status)
        status = fit_and_evaluate(kernel, f, all, found, error);
    fpa_close(kernel);
    free(all);
    free(f);
    return status;
}

/* ---- the table and the picture ---- */

static bool write_table(const char *folder, const result *results, int count)
{
    FILE *file = output_open(folder, "fourier.tsv");
    if (!file)
        return false;
    fprintf(file,
            "# functions of the distance t = 0 .. %d by kernels sum of c cos(b + a t), a = 2 pi r / %d; make "
            "experiments\n"
            "# error: the root of the mean square over t; most: the greatest; amplitude: the greatest c\n"
            "function\tangles\tD\terror\tmost\tamplitude\n",
            LENGTH - 1, PERIOD);
    for (int n = 0; n < FUNCTIONS; n++)
        for (int i = 0; i < count; i++)
            fprintf(file, "%s\t%d\t%.0f\t%.2e\t%.2e\t%.2g\n", functions[n].name, results[i].angles,
                    results[i].features, results[i].of[n].error, results[i].of[n].most,
                    results[i].of[n].amplitude);
    return output_close(file, "fourier.tsv");
}

static bool write_chart(const char *folder, const result *results, int count)
{
    fpa_chart chart = {.title = "Functions of the distance by Fourier kernels",
                       .x_label = "D, features of the state",
                       .y_label = "error (root of the mean square)"};
    bool done = true;
    for (int n = 0; n < FUNCTIONS; n++)
        for (int i = 0; i < count && done; i++)
            done = chart_add(&chart, functions[n].label, false, results[i].features, results[i].of[n].error);
    done = done && output_chart(folder, "fourier.svg", &chart);
    chart_drop(&chart);
    return done;
}

static void tell(const void *found)
{
    const result *r = found;
    for (int n = 0; n < FUNCTIONS; n++)
        printf("%-12s D %4.0f  error %.2e, %.2e at most\n", functions[n].name, r->features, r->of[n].error,
               r->of[n].most);
}

static bool write_all(const char *folder, void *found, int count)
{
    return write_table(folder, found, count) && write_chart(folder, found, count);
}

int main(int count, char **arguments)
{
    static const head_experiment experiment = {sizeof(result), measure, tell, write_all};
    if (count != 3) {
        fputs("usage: fourier SPEC FOLDER\n", stderr);
        return 2;
    }
    return measure_heads(&experiment, arguments[1], arguments[2]);
}
