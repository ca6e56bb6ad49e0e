/* Kernels with dense rows, in double: the U that commute with every matrix H of symmetry_slopes.c leave k
 * unchanged. Random elements of the space of the H represent all of them. U maps each eigenspace of the first
 * element to itself. If the second element has no entries between an eigenspace and the others, all of O(n) acts
 * on that space; if it has, U on one of the two spaces determines U on the other, and the dimension of the
 * remaining group is that of the solutions of linear equations.
 *
 * If all H are diagonal in the eigenbasis of the first one, k is a polynomial in products of coordinates of that
 * basis, and there are no other rotations (symmetry_coordinates.c). If no degree has two monomials, the
 * factorisation of a polynomial is unique, and each Gram has to be preserved. Else there may be more rotations. */
#include <math.h>
#include <string.h>

#include "symmetry_search.h"
#include "gram.h"

enum { ELEMENTS = 8, MOST_UNKNOWNS = 1024 };
static const double equal = 1e-9; /* eigenvalues that differ by less, relative to the largest, are equal */
/* entries between two spaces that are smaller, relative to the largest entry, are 0 */
static const double coupled = 1e-8;

typedef struct dense_search {
    fpa_symmetry_search *s;
    size_t d;
    fpa_slope_space space;
    uint64_t random;
    double *values, *basis;    /* eigenvalues of the first element, ascending; its eigenvectors as rows */
    double *element[ELEMENTS]; /* the other elements in that basis; NULL: not drawn yet */
    int spaces, *begin;        /* space e: rows begin[e] .. begin[e + 1] of the basis */
    int *root; /* of each space: the representative of the spaces that are coupled with it, itself included */
} dense_search;

/* ---- eigenspaces ---- */

static void sort_basis(dense_search *t, const double *diagonal, const double *vectors)
{
    const size_t d = t->d;
    for (size_t i = 0; i < d; i++) {
        size_t place = 0;
        for (size_t j = 0; j < d; j++)
            place += diagonal[j * (d + 1)] < diagonal[i * (d + 1)] ||
                     (diagonal[j * (d + 1)] == diagonal[i * (d + 1)] && j < i);
        t->values[place] = diagonal[i * (d + 1)];
        memcpy(t->basis + place * d, vectors + i * d, d * sizeof *vectors);
    }
}

static void split_spaces(dense_search *t)
{
    const double most = fmax(fabs(t->values[0]), fabs(t->values[t->d - 1]));
    for (size_t i = 0; i < t->d; i++)
        if (!i || t->values[i] - t->values[i - 1] > equal * most)
            t->begin[t->spaces++] = (int)i;
    t->begin[t->spaces] = (int)t->d;
    for (int e = 0; e < t->spaces; e++)
        t->root[e] = e;
}

static bool find_spaces(dense_search *t)
{
    arena *memory = &t->s->scratch;
    double *h = arena_array(memory, t->d * t->d, sizeof *h);
    double *vectors = arena_array(memory, t->d * t->d, sizeof *vectors);
    t->values = arena_array(memory, t->d, sizeof *t->values);
    t->basis = arena_array(memory, t->d * t->d, sizeof *t->basis);
    t->begin = arena_array(memory, t->d + 1, sizeof *t->begin);
    t->root = arena_array(memory, t->d, sizeof *t->root);
    if (memory->failed || !slope_space_element(t->s, &t->space, &t->random, h))
        return false;
    gram_eigenvectors(h, (int)t->d, vectors);
    sort_basis(t, h, vectors);
    split_spaces(t);
    return true;
}

/* ---- couplings ---- */

/* Draws element i, and transforms it to the basis. */
static bool draw_element(dense_search *t, int i)
{
    const size_t d = t->d;
    if (t->element[i])
        return true;
    double *h = arena_array(&t->s->scratch, d * d, sizeof *h);
    double *half = arena_array(&t->s->scratch, d * d, sizeof *half);
    if (!h || !half || !slope_space_element(t->s, &t->space, &t->random, h))
        return false;
    for (size_t r = 0; r < d; r++) /* half = basis * h */
        for (size_t j = 0; j < d; j++)
            for (size_t c = 0; c < d; c++)
                half[r * d + c] += t->basis[r * d + j] * h[j * d + c];
    memset(h, 0, d * d * sizeof *h);
    for (size_t r = 0; r < d; r++)
        for (size_t c = 0; c < d; c++)
            for (size_t j = 0; j < d; j++)
                h[r * d + c] += half[r * d + j] * t->basis[c * d + j];
    t->element[i] = h;
    return true;
}

static double largest_between(const dense_search *t, int e, int f)
{
    double most = 0;
    for (int r = t->begin[e]; r < t->begin[e + 1]; r++)
        for (int c = t->begin[f]; c < t->begin[f + 1]; c++)
            most = fmax(most, fabs(t->element[1][(size_t)r * t->d + (size_t)c]));
    return most;
}

static void couple_spaces(dense_search *t)
{
    for (int e = 0; e < t->spaces; e++)
        for (int f = 0; f < e; f++) {
            const int own = t->root[e], other = t->root[f];
            if (own == other || largest_between(t, e, f) <= coupled)
                continue;
            for (int g = 0; g < t->spaces; g++)
                if (t->root[g] == own)
                    t->root[g] = other;
        }
}

/* ---- the dimension of the group on coupled spaces ---- */

/* U = 1 + A with A skew, and 0 outside of the spaces: unknown (p, q), p < q, is A = e_p e_q' - e_q e_p'. */
typedef struct unknown {
    size_t p, q;
} unknown;

static int list_unknowns(const dense_search *t, int root, unknown *list, int most)
{
    int count = 0;
    for (int e = 0; e < t->spaces; e++)
        for (int p = t->begin[e]; t->root[e] == root && p < t->begin[e + 1]; p++)
            for (int q = p + 1; q < t->begin[e + 1] && count < most; q++)
                list[count++] = (unknown){(size_t)p, (size_t)q};
    return count;
}

/* trace of (HA - AH)' (HB - BH) = 2 trace(A'B H^2) - 2 trace(A' H B H), square = H^2 */
static double product_of(const double *h, const double *square, size_t d, unknown a, unknown b)
{
    double first = 0;
    if (a.p == b.p)
        first += square[a.q * d + b.q];
    if (a.p == b.q)
        first -= square[a.q * d + b.p];
    if (a.q == b.p)
        first -= square[a.p * d + b.q];
    if (a.q == b.q)
        first += square[a.p * d + b.p];
    const double second = h[a.p * d + b.p] * h[a.q * d + b.q] - h[a.p * d + b.q] * h[a.q * d + b.p];
    return 2 * first - 4 * second;
}

/* gram += the Gram of the equations HA = AH */
static bool add_equations(dense_search *t, const double *h, const unknown *list, int count, double *gram)
{
    const size_t d = t->d, n = (size_t)count;
    double *square = arena_array(&t->s->scratch, d * d, sizeof *square);
    if (!square)
        return false;
    for (size_t r = 0; r < d; r++)
        for (size_t j = 0; j < d; j++)
            for (size_t c = 0; c < d; c++)
                square[r * d + c] += h[r * d + j] * h[j * d + c];
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++)
            gram[a * n + b] += product_of(h, square, d, list[a], list[b]);
    return true;
}

/* Adds the equations of one element after the other until another one does not reduce the dimension. */
static bool find_dimension(dense_search *t, int root, int *dimension)
{
    arena *memory = &t->s->scratch;
    unknown *list = arena_array(memory, MOST_UNKNOWNS + 1, sizeof *list);
    const int count = list ? list_unknowns(t, root, list, MOST_UNKNOWNS + 1) : 0;
    if (!list)
        return false;
    *dimension = count;
    if (!count)
        return true;
    if (count > MOST_UNKNOWNS) {
        t->s->found->kind = SYMMETRY_TOO_LARGE;
        return true;
    }
    double *gram = arena_array(memory, (size_t)count * (size_t)count, sizeof *gram);
    int same = 0;
    for (int i = 1; i < ELEMENTS && !same; i++) {
        fpa_dense factor;
        if (!gram || !draw_element(t, i) || !add_equations(t, t->element[i], list, count, gram) ||
            !gram_factor(memory, gram, count, &factor, NULL))
            return false;
        same = i > 1 && *dimension == count - factor.rows;
        *dimension = count - factor.rows;
    }
    if (!same && *dimension) /* another element might reduce the dimension further */
        t->s->found->kind = SYMMETRY_TOO_LARGE;
    return true;
}

/* ---- parts ---- */

static int width_of(const dense_search *t, int root)
{
    int width = 0;
    for (int e = 0; e < t->spaces; e++)
        width += t->root[e] == root ? t->begin[e + 1] - t->begin[e] : 0;
    return width;
}

static int spaces_of(const dense_search *t, int root)
{
    int count = 0;
    for (int e = 0; e < t->spaces; e++)
        count += t->root[e] == root;
    return count;
}

static bool describe_part(dense_search *t, int root, fpa_symmetry_part *part)
{
    const double most = fmax(fabs(t->values[0]), fabs(t->values[t->d - 1]));
    const int width = width_of(t, root), spaces = spaces_of(t, root);
    *part = (fpa_symmetry_part){.width = width, .exchange = -1};
    part->is_seen = spaces > 1 || fabs(t->values[t->begin[root]]) > equal * most;
    part->order = spaces == 1 ? width : spaces == width ? 1 : 0;
    part->dimension = part->order * (part->order - 1) / 2;
    return part->order || find_dimension(t, root, &part->dimension);
}

static void copy_rows(dense_search *t, int root, double *to)
{
    for (int e = 0; e < t->spaces; e++) {
        const size_t first = (size_t)t->begin[e], rows = (size_t)t->begin[e + 1] - first;
        if (t->root[e] != root)
            continue;
        memcpy(to, t->basis + first * t->d, rows * t->d * sizeof *to);
        to += rows * t->d;
    }
}

/* Order of the parts: by decreasing order, then by decreasing width. */
static bool comes_before(const fpa_symmetry_part *a, const fpa_symmetry_part *b)
{
    return a->order > b->order || (a->order == b->order && a->width > b->width);
}

static bool gather_parts(dense_search *t)
{
    fpa_symmetry *found = t->s->found;
    int *root = arena_array(&t->s->scratch, t->d, sizeof *root); /* representative space of each part */
    found->parts = arena_array(&found->memory, t->d, sizeof *found->parts);
    found->basis = arena_array(&found->memory, t->d * t->d, sizeof *found->basis);
    if (!root || !found->parts || !found->basis)
        return false;
    for (int e = 0; e < t->spaces; e++) {
        fpa_symmetry_part part;
        int at = found->part_count;
        if (t->root[e] != e)
            continue;
        if (!describe_part(t, e, &part))
            return false;
        for (; at > 0 && comes_before(&part, &found->parts[at - 1]); at--) {
            found->parts[at] = found->parts[at - 1];
            root[at] = root[at - 1];
        }
        found->parts[at] = part;
        root[at] = e;
        found->part_count++;
    }
    double *row = found->basis;
    for (int i = 0; i < found->part_count; row += (size_t)found->parts[i++].width * t->d)
        copy_rows(t, root[i], row);
    return true;
}

/* ---- spaces of coordinates ---- */

/* The coordinates that are in the space of the rows; they describe it if they are as many as its dimension. */
static bool name_coordinates(fpa_symmetry *found, const double *rows, fpa_symmetry_part *part)
{
    int count = 0;
    int *coordinate = arena_array(&found->memory, (size_t)found->d, sizeof *coordinate);
    for (int c = 0; coordinate && c < found->d; c++) {
        double square = 0;
        for (int r = 0; r < part->width; r++)
            square += rows[r * found->d + c] * rows[r * found->d + c];
        if (square > 1 - equal)
            coordinate[count++] = c;
    }
    part->coordinate = count == part->width ? coordinate : NULL;
    return coordinate != NULL;
}

/* ---- whether there are other rotations ---- */

static int monomial_degree(const fpa_symmetry_search *s, int m)
{
    int degree = 0;
    for (int f = s->first[m]; f < s->first[m + 1]; f++)
        degree += s->factors[f].power;
    return degree;
}

static bool one_monomial_a_degree(const fpa_symmetry_search *s)
{
    bool seen[HEAD_MAX_BRANCHES + 1] = {false};
    for (int m = 0; m < s->score->monomial_count; m++) {
        const int degree = monomial_degree(s, m);
        if (seen[degree])
            return false;
        seen[degree] = true;
    }
    return true;
}

static bool is_diagonal(const dense_search *t)
{
    for (int e = 0; e < t->spaces; e++)
        if (spaces_of(t, t->root[e]) > 1)
            return false;
    return true;
}

bool symmetry_of_dense(fpa_symmetry_search *s)
{
    dense_search t = {.s = s, .d = (size_t)s->head->d, .random = 1};
    fpa_symmetry *found = s->found;
    if (!slope_space_find(s, &t.space) || !find_spaces(&t) || !draw_element(&t, 1))
        return false;
    couple_spaces(&t);
    if (!gather_parts(&t))
        return false;
    if (found->kind == SYMMETRY_TOO_LARGE) {
        found->part_count = 0;
        return true;
    }
    found->kind = is_diagonal(&t) || one_monomial_a_degree(s) ? SYMMETRY_EXACT : SYMMETRY_AT_LEAST;
    const double *row = found->basis;
    for (int i = 0; i < found->part_count; row += (size_t)found->parts[i++].width * t.d)
        if (!name_coordinates(found, row, &found->parts[i]))
            return false;
    return true;
}
