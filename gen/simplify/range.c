/* The range of float32. If scales, weights and entries of matrices have very different sizes but ordinary
 * products, they are multiplied before anything is rounded. That is exact, because weights are rationals and
 * matrices are divided by powers of two. A kernel that is out of range nevertheless is refused. */
#include <math.h>

#include "passes.h"

enum {
    SCALE_FAR = 20,  /* |log2| from which a scale is folded into weights */
    ENTRY_FAR = 30,  /* |log2| from which a matrix is divided by its largest entry's power of two */
    WEIGHT_FAR = 60, /* |log2| from which a term's weight is out of the ordinary */
    LARGEST = 128,   /* log2 of the largest float32 */
    /* log2 of the smallest value that the kernel's largest weight may have: products of smaller ones lose bits or
     * vanish */
    SMALLEST = -100,
};

static bool is_far(double log, double limit)
{
    return isfinite(log) && fabs(log) > limit;
}

static double largest_entry(const fpa_matrix *matrix)
{
    double largest = 0;
    const size_t count = matrix->data ? (size_t)matrix->rows * (size_t)matrix->cols : 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(matrix->data[i]));
    return largest;
}

/* 2^exponent */
static fpa_number power_of_two(arena *memory, int exponent)
{
    const fpa_number power = number_pow(memory, number_int(2), exponent < 0 ? -exponent : exponent);
    return exponent < 0 ? number_div(memory, number_int(1), power) : power;
}

/* --- a term's size where rows are 1 --- */

static double gram_log(const fpa_branch *branch)
{
    double log = branch->gram ? -INFINITY : 0;
    for (int w = 0; branch->gram && w < branch->width; w++)
        log = fmax(log, number_log2(branch->gram[w]));
    return log;
}

static double term_log(const fpa_head *head, const fpa_term *term)
{
    double log = number_log2(term->weight) + term->branch_count * log2(fabs(head->scale));
    for (int b = 0; b < term->branch_count; b++)
        log += gram_log(&term->branches[b]);
    return log;
}

static double largest_term(const fpa_head *head)
{
    double largest = -INFINITY;
    for (int t = 0; t < head->term_count; t++)
        largest = fmax(largest, term_log(head, &head->terms[t]));
    return largest;
}

/* --- folding: the head is a copy, whose terms and matrices are its own --- */

static bool multiply_weights(fpa_simplifier *s, fpa_head *head, int source, fpa_number factor)
{
    for (int t = 0; t < head->term_count; t++)
        for (int b = 0; b < head->terms[t].branch_count; b++)
            if (head->terms[t].branches[b].source == source)
                head->terms[t].weight = number_mul(&s->scratch, head->terms[t].weight, factor);
    return !s->scratch.failed;
}

static bool fold_matrix(fpa_simplifier *s, fpa_head *head, int m)
{
    fpa_matrix *matrix = &head->matrices[m];
    const size_t count = (size_t)matrix->rows * (size_t)matrix->cols;
    const double largest = largest_entry(matrix);
    int exponent;
    if (!is_far(log2(largest), ENTRY_FAR))
        return true;
    frexp(largest, &exponent);
    double *data = arena_copy(&s->scratch, matrix->data, count * sizeof *data);
    if (!data)
        return false;
    for (size_t i = 0; i < count; i++)
        data[i] = ldexp(data[i], -exponent);
    matrix->data = data;
    return multiply_weights(s, head, m, power_of_two(&s->scratch, 2 * exponent)) &&
           simplify_note(s, "matrix %d is divided by 2^%d, and the weights multiplied by its square", m + 1,
                         exponent);
}

static bool has_far_weight(const fpa_head *head)
{
    for (int t = 0; t < head->term_count; t++)
        if (is_far(number_log2(head->terms[t].weight), WEIGHT_FAR))
            return true;
    return false;
}

static bool fold_scale(fpa_simplifier *s, fpa_head *head)
{
    const double scale = head->scale;
    if (scale == 0 || scale == 1 || !(is_far(log2(fabs(scale)), SCALE_FAR) || has_far_weight(head)))
        return true;
    const fpa_number factor = number_double(&s->scratch, scale);
    for (int t = 0; t < head->term_count; t++)
        head->terms[t].weight = number_mul(&s->scratch, head->terms[t].weight,
                                           number_pow(&s->scratch, factor, head->terms[t].branch_count));
    head->scale = 1;
    return !s->scratch.failed && simplify_note(s, "scale %g is multiplied into the weights", scale);
}

/* Divides all weights by a power of two, if the largest is far from 1 and eps is 0: the normaliser is divided by
 * it, too, so that results are the same. */
static bool fold_normalizer(fpa_simplifier *s, fpa_head *head)
{
    const double largest = largest_term(head);
    const bool divides = head->normalize == FPA_NORMALIZE_SUM || head->normalize == FPA_NORMALIZE_MAX;
    if (!divides || head->window || head->eps != 0 || !is_far(largest, WEIGHT_FAR))
        return true;
    const int exponent = (int)floor(largest);
    const fpa_number factor = power_of_two(&s->scratch, -exponent);
    for (int t = 0; t < head->term_count; t++)
        head->terms[t].weight = number_mul(&s->scratch, head->terms[t].weight, factor);
    return !s->scratch.failed &&
           simplify_note(s, "all weights are divided by 2^%d, which the normaliser cancels: eps is 0",
                         exponent);
}

bool range_fold(fpa_simplifier *s)
{
    const fpa_head *written = s->written;
    fpa_head *head = arena_copy(&s->scratch, written, sizeof *written);
    if (!head)
        return false;
    head->terms = arena_copy(&s->scratch, written->terms, (size_t)head->term_count * sizeof *head->terms);
    head->matrices = written->matrix_count ? arena_copy(&s->scratch, written->matrices,
                                                        (size_t)head->matrix_count * sizeof *head->matrices)
                                           : NULL;
    if (!head->terms || (written->matrix_count && !head->matrices))
        return false;
    for (int m = 0; head->matrices && m < head->matrix_count; m++)
        if (!fold_matrix(s, head, m))
            return false;
    if (!fold_scale(s, head) || !fold_normalizer(s, head))
        return false;
    s->written = head;
    s->matrices = head->matrices;
    s->simple->head->scale = head->scale;
    return true;
}

/* --- the check --- */

static double monomial_log(const fpa_expression *e, int i)
{
    double log = number_log2(e->polynomial.weights[i]);
    for (int j = 0; j < polynomial_monomial_degree(&e->polynomial, i); j++)
        log += gram_log(&e->forms[polynomial_factors(&e->polynomial, i)[j]]);
    return log;
}

fpa_status range_check(fpa_simplifier *s, const fpa_expression *e)
{
    double largest = -INFINITY;
    for (int i = 0; i < e->polynomial.count; i++)
        largest = fmax(largest, monomial_log(e, i));
    if (largest > LARGEST)
        return fail(s->error, FPA_UNSUPPORTED, s->written->origin,
                    "head '%s': its largest weight, with scales, is about 2^%.0f, but kernels compute in "
                    "float32, whose largest number is 3.4e38",
                    s->written->name, largest);
    if (largest < SMALLEST)
        return fail(s->error, FPA_UNSUPPORTED, s->written->origin,
                    "head '%s': its largest weight, with scales, is about 2^%.0f, but kernels compute in "
                    "float32, which loses digits below 1.2e-38, as products with weights below 2^%d may be",
                    s->written->name, largest, SMALLEST);
    return FPA_OK;
}
