/* H(q, k) = sum over dots f of dP/df G_f, the matrix of k's derivative: the H of all pairs (q, k) span a space.
 * Derivatives at random pairs, in echelon form, give a basis of it whatever the dots' sizes are; dots that only
 * occur as one sum count as one matrix. */
#include <math.h>

#include "base/splitmix.h"
#include "passes.h"
#include "symmetry_search.h"

/* derivatives that are smaller, relative to the largest one of their dot, are 0 */
static const double negligible = 1e-9;

static double row_product(const fpa_symmetry_search *s, const fpa_branch *dot, int w, const double *x)
{
    if (dot->source == FPA_INPUT)
        return x[dot->row[w]];
    const fpa_matrix *matrix = &s->head->matrices[dot->source];
    const double *row = matrix->data + (size_t)dot->row[w] * (size_t)matrix->cols;
    double sum = 0;
    for (int c = 0; c < matrix->cols; c++)
        sum += row[c] * x[c];
    return sum;
}

static void dots_at(const fpa_symmetry_search *s, const double *q, const double *k, double *dots)
{
    for (int i = 0; i < s->score->dot_count; i++) {
        const fpa_branch *dot = &s->score->dots[i];
        dots[i] = 0;
        for (int w = 0; w < dot->width; w++)
            dots[i] += linear_gram(dot, w).value * row_product(s, dot, w, q) * row_product(s, dot, w, k);
    }
}

static void slopes_at(const fpa_symmetry_search *s, const double *dots, double *slope)
{
    for (int m = 0; m < s->score->monomial_count; m++) {
        const fpa_factor *factor = s->factors + s->first[m];
        const int count = s->first[m + 1] - s->first[m];
        for (int f = 0; f < count; f++) {
            double product = s->score->monomials[m].weight.value * factor[f].power;
            for (int g = 0; g < count; g++)
                product *= pow(dots[factor[g].dot], factor[g].power - (g == f));
            slope[factor[f].dot] += product;
        }
    }
}

/* Divides each column by its largest element, the dot's unit. */
static void scale_columns(double *rows, int count, int columns, double *units)
{
    for (int c = 0; c < columns; c++) {
        units[c] = 0;
        for (int r = 0; r < count; r++)
            units[c] = fmax(units[c], fabs(rows[r * columns + c]));
        for (int r = 0; r < count && units[c] > 0; r++)
            rows[r * columns + c] /= units[c];
    }
}

static int largest_from(const double *values, int first, int end)
{
    int largest = first;
    for (int i = first + 1; i < end; i++)
        if (fabs(values[i]) > fabs(values[largest]))
            largest = i;
    return largest;
}

/* Scales the row to 1 at the pivot, and makes all other rows 0 there. */
static void clear_column(double *rows, int count, int columns, int row, int pivot)
{
    double *own = rows + row * columns;
    const double unit = own[pivot];
    for (int c = 0; c < columns; c++)
        own[c] /= unit;
    for (int r = 0; r < count; r++) {
        double *other = rows + r * columns;
        const double amount = r == row ? 0 : other[pivot];
        for (int c = 0; c < columns && amount != 0; c++)
            other[c] -= amount * own[c];
    }
}

/* Gauss-Jordan elimination, with the largest remaining element as pivot; returns the number of independent rows. */
static int reduce_rows(double *rows, int count, int columns)
{
    int rank = 0;
    for (; rank < count && rank < columns; rank++) {
        const int at = largest_from(rows, rank * columns, count * columns);
        if (fabs(rows[at]) <= negligible)
            break;
        double *own = rows + rank * columns, *found = rows + at / columns * columns;
        for (int c = 0; c < columns; c++) {
            const double value = found[c];
            found[c] = own[c];
            own[c] = value;
        }
        clear_column(rows, count, columns, rank, at % columns);
    }
    return rank;
}

static double largest_of(const double *values, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(values[i]));
    return largest;
}

/* h += amount * Gram of the dot */
static void add_gram(const fpa_symmetry_search *s, const fpa_branch *dot, double amount, double *h)
{
    const size_t d = (size_t)s->head->d;
    for (int w = 0; w < dot->width; w++) {
        const double weight = amount * linear_gram(dot, w).value;
        if (dot->source == FPA_INPUT) {
            h[(size_t)dot->row[w] * (d + 1)] += weight;
            continue;
        }
        const double *row = s->head->matrices[dot->source].data + (size_t)dot->row[w] * d;
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++)
                h[i * d + j] += weight * row[i] * row[j];
    }
}

/* h = sum over dots of coefficient * unit * Gram; returns its largest element. */
static double sum_grams(const fpa_symmetry_search *s, const fpa_slope_space *space,
                        const double *coefficients, double *h)
{
    const size_t count = (size_t)s->head->d * (size_t)s->head->d;
    for (size_t i = 0; i < count; i++)
        h[i] = 0;
    for (int i = 0; i < s->score->dot_count; i++)
        if (coefficients[i] != 0)
            add_gram(s, &s->score->dots[i], coefficients[i] * space->units[i], h);
    return largest_of(h, count);
}

static void derive_at_pair(fpa_symmetry_search *s, uint64_t *random, double *q, double *dots, double *slope)
{
    double *k = q + s->head->d;
    for (int c = 0; c < 2 * s->head->d; c++)
        q[c] = splitmix_normal(random);
    dots_at(s, q, k, dots);
    slopes_at(s, dots, slope);
}

bool slope_space_find(fpa_symmetry_search *s, fpa_slope_space *space)
{
    enum { MORE = 3 }; /* more pairs than dots, since random ones are hardly ever dependent by chance */
    const int dots = s->score->dot_count, pairs = dots + MORE;
    const size_t d = (size_t)s->head->d;
    uint64_t random = 24;
    double *q = arena_array(&s->scratch, 2 * d, sizeof *q), *h = arena_array(&s->scratch, d * d, sizeof *h);
    double *values = arena_array(&s->scratch, (size_t)dots, sizeof *values);
    space->rows = arena_array(&s->scratch, (size_t)pairs * (size_t)dots, sizeof *space->rows);
    space->units = arena_array(&s->scratch, (size_t)dots, sizeof *space->units);
    space->sizes = arena_array(&s->scratch, (size_t)dots, sizeof *space->sizes);
    if (s->scratch.failed)
        return false;
    for (int i = 0; i < pairs; i++)
        derive_at_pair(s, &random, q, values, space->rows + i * dots);
    scale_columns(space->rows, pairs, dots, space->units);
    space->count = reduce_rows(space->rows, pairs, dots);
    for (int i = 0; i < space->count; i++)
        space->sizes[i] = sum_grams(s, space, space->rows + i * dots, h);
    return true;
}

bool slope_space_element(fpa_symmetry_search *s, const fpa_slope_space *space, uint64_t *random,
                         double *element)
{
    const int dots = s->score->dot_count;
    const size_t count = (size_t)s->head->d * (size_t)s->head->d;
    double *coefficients = arena_array(&s->scratch, (size_t)dots, sizeof *coefficients);
    if (!coefficients)
        return false;
    for (int i = 0; i < space->count; i++) {
        const double amount = space->sizes[i] > 0 ? splitmix_normal(random) / space->sizes[i] : 0;
        for (int c = 0; c < dots; c++)
            coefficients[c] += amount * space->rows[i * dots + c];
    }
    const double most = sum_grams(s, space, coefficients, element);
    for (size_t i = 0; i < count && most > 0; i++)
        element[i] /= most;
    return true;
}
