/* Warnings about a head: properties of its result that a user may not have intended. */
#include <math.h>

#include "passes.h"

enum { POINTS = 3 };

static const double cancelled =
    1e-5; /* relative size of a kernel below which rounding errors of float32 reach its first digits */

static double uniform(uint64_t seed, uint64_t index)
{
    return (double)(hash_word(seed, index) >> 11) * 0x1p-52 - 1;
}

/* Row r of matrix m times a vector; a random number if the row is known at run time only. */
static double row_value(const fpa_matrix *matrix, int m, int r, const double *x, uint64_t seed)
{
    double sum = 0;
    if (!matrix->data)
        return uniform(seed + 2 + (uint64_t)m, (uint64_t)r);
    for (int c = 0; c < matrix->cols; c++)
        sum += matrix->data[(size_t)r * (size_t)matrix->cols + (size_t)c] * x[c];
    return sum;
}

/* The values of all symbols at one pair of vectors, indexed by offsets. */
static void symbol_values(const fpa_head *head, const size_t *offsets, uint64_t seed, double *q, double *k,
                          double *values)
{
    for (int c = 0; c < head->d; c++) {
        q[c] = uniform(seed, (uint64_t)c);
        k[c] = uniform(seed + 1, (uint64_t)c);
        values[c] = q[c] * k[c];
    }
    for (int m = 0; m < head->matrix_count; m++)
        for (int r = 0; r < head->matrices[m].rows; r++)
            values[offsets[m + 1] + (size_t)r] = row_value(&head->matrices[m], m, r, q, seed) *
                                                 row_value(&head->matrices[m], m, r, k, seed + 1);
}

/* |k(q, k)| relative to the sum of its terms' magnitudes. */
static double share_left(const fpa_head *head, const size_t *offsets, const double *values)
{
    double sum = 0, size = 0;
    for (int t = 0; t < head->term_count; t++) {
        const fpa_term *term = &head->terms[t];
        double product = term->weight.value;
        for (int b = 0; b < term->branch_count; b++) {
            const fpa_branch *branch = &term->branches[b];
            double dot = 0;
            for (int w = 0; w < branch->width; w++)
                dot += linear_gram(branch, w).value *
                       values[offsets[branch->source + 1] + (size_t)branch->row[w]];
            product *= dot;
        }
        sum += product;
        size += fabs(product);
    }
    return size > 0 ? fabs(sum) / size : 1;
}

static bool warn_cancellation(fpa_simplifier *s)
{
    const fpa_head *head = s->written;
    const size_t *offsets = symbol_offsets(&s->scratch, head->d, head->matrices, head->matrix_count);
    const size_t count = offsets ? offsets[head->matrix_count + 1] : 0, d = (size_t)head->d;
    double *values = arena_array(&s->scratch, count + 2 * d, sizeof *values), most = 0;
    if (!offsets || !values)
        return false;
    for (uint64_t point = 0; point < POINTS && most < cancelled; point++) {
        symbol_values(head, offsets, 1000 * (point + 1), values + count, values + count + d, values);
        most = fmax(most, share_left(head, offsets, values));
    }
    return most >= cancelled ||
           simplify_warn(
               s, "the terms cancel to %.0e of their size, of which float32 keeps few digits or none", most);
}

static bool has_negative_weight(const fpa_head *head)
{
    for (int t = 0; t < head->term_count; t++)
        if (number_sign(head->terms[t].weight) < 0)
            return true;
    return false;
}

/* Whether the kernel is a positive constant plus even powers with positive weights, which is never zero. */
static bool stays_positive(const fpa_score *score)
{
    bool constant = false;
    for (int i = 0; i < score->monomial_count; i++) {
        int degree = 0, odd = 0;
        for (int f = 0; f < score->dot_count; f++) {
            degree += score->monomials[i].power[f];
            odd += score->monomials[i].power[f] % 2;
        }
        if (odd || number_sign(score->monomials[i].weight) < 0)
            return false;
        constant |= degree == 0;
    }
    return constant;
}

static bool warn_normalizer(fpa_simplifier *s)
{
    const fpa_head *head = s->simple->head;
    const bool divides = head->normalize == FPA_NORMALIZE_SUM || head->normalize == FPA_NORMALIZE_MAX;
    if (s->written->window) /* exponentials are positive and depend on the query */
        return !has_negative_weight(head) ||
               simplify_warn(s, "a weight is negative: the kernel may be too, and the normaliser may vanish");
    if (divides && head_features(head) == 1 &&
        !simplify_warn(s, "D is 1: after normalisation the output does not depend on the query"))
        return false;
    if (divides && head->eps == 0 && !stays_positive(&s->simple->score) &&
        !simplify_warn(s, "eps is 0: where the normaliser is 0, as for a query of zeros, o is not finite"))
        return false;
    return head->normalize == FPA_NORMALIZE_NONE || !has_negative_weight(head) ||
           simplify_warn(s, "a weight is negative: the kernel may be too, and the normaliser may vanish");
}

bool warn_result(fpa_simplifier *s, double fewest)
{
    const fpa_head *head = s->simple->head;
    const double count = head_features(head), bound = head_features_bound(s->written);
    if (!warn_normalizer(s) || (has_negative_weight(s->written) && !warn_cancellation(s)))
        return false;
    return count <= 1.4 * bound ||
           simplify_warn(s,
                         "D %.0f is above %.0f, which suffices for any kernel of these degrees on d = %d%s",
                         count, bound, head->d, fewest <= bound ? ": take a smaller block" : "");
}
