/* bound: error bounds of outputs, counted from the head's operations and the types of its arithmetic. */
#include "bound.h"

#include <math.h>

#include "base/dtype.h"
#include "head/lift.h"

static double longest_dot(const fpa_head *head)
{
    double longest = head->window ? fmax(head->d, head_width(head)) : head->d;
    for (int m = 0; m < head->matrix_count && !head->lift; m++)
        longest = fmax(longest, head->matrices[m].rows);
    return longest;
}

/* Whether branches read projections by matrices; the matrices of a lift belong to its coordinates. */
static bool has_rows(const fpa_head *head)
{
    return head->matrix_count > 0 && !head->lift;
}

/* Number of products in a sum of a part: a projection, or |x|^2. */
static double part_sum(const fpa_head *head, const fpa_lift_part *part)
{
    for (int f = 0; f < part->factor_count; f++)
        if (part->factors[f].source != FPA_INPUT)
            return head->lift->width;
    return part->square == 0 ? 0 : head->lift->width;
}

/* Roundings of a lift's coordinate, computed in float: projections of w products each, as in float_roundings, two for a complex one; a
 * product with the next factor, three roundings if complex; scale, inner, square and shift; a map, right to 2 units and half those of its
 * argument; gain and amplitude; cosine or sine, right to 6 units, of a phase that is reduced exactly. */
static double lift_roundings(const fpa_head *head)
{
    double most = 0;
    for (int i = 0; head->lift && i < head->lift->part_count; i++) {
        const fpa_lift_part *part = &head->lift->parts[i];
        const double sums = 4 * sqrt(part_sum(head, part)) * (part->is_complex ? 2 : 1);
        most = fmax(most, part->factor_count * (sums + 4) + 16);
    }
    return most;
}

/* Roundings of an output in float, in units of u, its unit roundoff. n = degree, D = features, w = longest dot product in a score, L =
 * tokens.
 *
 * A score is a product of n dots. A dot of w rounded products has an error of at most w u of its magnitude; since signs of roundings are
 * random, it is about sqrt(w) u, and its deviation has never reached 4 sqrt(w) u. Products, powers and weights: 8 roundings a branch.
 * With matrices both projections are dots, too. A sum of N terms: the same with N = D + L (the query of the state, the state's update
 * over L tokens); a random walk of partial sums reaches a quarter of sqrt(N) u of the magnitude even if all terms have one sign, so 2
 * sqrt(N) has a margin. A gate is a product of up to L factors. 8 for scale, exp and division. Coordinates of a lift, the query's and the
 * key's, have errors of their own.
 *
 * The exponent of a window is a dot, too, whose error the reference's magnitudes convert to one of the exponential. Sums are rescaled to
 * a larger exponent at most once for each panel of keys, by an exponential and a product: 3 roundings for 48 keys, and for two panels
 * that are partly in the window. */
static double float_roundings(const fpa_head *head, const fpa_facts *facts, int64_t length)
{
    double branch =
        8 + 4 * sqrt(longest_dot(head)) + (has_rows(head) ? 8 * sqrt(head->d) : 0) + 2 * lift_roundings(head);
    double degree = fmax(head_degree(head), head->window > 0);
    double count = degree * branch + 2 * sqrt((double)facts->features + (double)length) + 8;
    if (head->window)
        count += 3 * (2 + head->window / 48.0);
    return count + (head->gate ? 4 * sqrt((double)length) : 0);
}

/* Matrix instructions truncate sums to float's last place: up to 2 u towards zero, once for every 8 products or more. Truncation does not
 * average out. */
static double cut_roundings(const fpa_head *head, const fpa_facts *facts, int64_t length)
{
    double dots = head_degree(head) * longest_dot(head) + (has_rows(head) ? 2.0 * head->d : 0);
    return 2 * ((dots + (double)facts->features + (double)length) / 8 + 4);
}

static bool power_of_two(double x)
{
    int exponent;
    return x == 0 || fabs(frexp(x, &exponent)) == 0.5;
}

static bool weights_round(const fpa_head *head)
{
    for (int t = 0; t < head->term_count; t++)
        for (int l = 0; l < head->terms[t].branch_count; l++) {
            const fpa_branch *branch = &head->terms[t].branches[l];
            for (int w = 0; branch->gram && w < branch->width; w++)
                if (!power_of_two(branch->gram[w].value))
                    return true;
        }
    return has_rows(head); /* simplification gives matrices weights */
}

/* Roundings to the arithmetic type of one branch's rows, of query and key together: the scaled query (if projections sum it, three times,
 * as for a random sum's deviation), both projections, the weighted key. A lift is computed in float, and both coordinates are rounded at
 * the end. */
static double row_roundings(const fpa_head *head)
{
    if (head->lift)
        return 2 + weights_round(head);
    double scale = power_of_two(head->scale) ? 0 : head->matrix_count ? 3 : 1;
    return scale + (head->matrix_count ? 2 : 0) + weights_round(head);
}

/* Error of rounding to bf16 or f16. Each rounding of a factor changes the result by at most the type's unit roundoff; signs are random,
 * but a score of few features has few roundings, which may agree. So they are counted, in the worse of two ways to compute a score:
 *
 * As products of pairs of rows: the rows of n branches; the score, which is rounded before it multiplies v; and at most n - 2 products on
 * each side, if kernels of sums of products with three factors and more multiply the rows of half of the branches. If a score is a sum
 * over features (facts->formed): n - 1 products on each side, the key's weight and the query's.
 *
 * Through the state: the same rows; n - 1 products for a key's feature, its weight (exact only as far as simplification collects no
 * others), its decay; n - 1 products for the query's feature, and n conversions of its rows if these are f16 (a state has bf16's range);
 * the copy of the state that queries read, twice if a sequence is computed in segments. */
static double narrow_error(const fpa_head *head, const fpa_facts *facts, bool state)
{
    double narrow = log1p(dtype_roundoff(facts->arithmetic)), copy = log1p(dtype_roundoff(FPA_BF16));
    double degree = head_degree(head), products = fmax(degree - 1, 0), rows = degree * row_roundings(head);
    double read = products + (facts->arithmetic == FPA_F16 ? degree : 0) + 2;
    double halves = facts->formed ? 2 * (products + 1) : 2 * fmax(degree - 2, 0);
    double pairs = (rows + halves + 1) * narrow;
    double through = (rows + products + 1 + head->gate) * narrow + read * copy;
    return expm1(state ? fmax(pairs, through) : pairs);
}

static bool has_constants_alone(const fpa_head *head)
{
    for (int i = 0; i < head->matrix_count; i++)
        if (head->matrices[i].kind != FPA_MATRIX_CONSTANT)
            return false;
    return true;
}

/* Error of constant matrices: kernels that make rows or coordinates of bf16 may store each entry as one number of f16. For every factor
 * of a lift's part, on both sides. */
static double constants_error(const fpa_head *head, const fpa_facts *facts)
{
    int most = !head->lift && has_constants_alone(head);
    for (int i = 0; head->lift && i < head->lift->part_count; i++)
        if (part_sum(head, &head->lift->parts[i]) > 0 && most < head->lift->parts[i].factor_count)
            most = head->lift->parts[i].factor_count;
    return facts->arithmetic == FPA_BF16 ? head_degree(head) * 2 * most * dtype_roundoff(FPA_F16) : 0;
}

/* Error of a matrix that is stored as two parts of the arithmetic type, of roundoff a: a^2 on each side, twice that since the products of
 * a row do not average. */
static double split_error(const fpa_head *head, const fpa_facts *facts)
{
    double roundoff = dtype_roundoff(facts->arithmetic);
    if (!head->matrix_count)
        return 0;
    return head_degree(head) * 4 * roundoff * roundoff + constants_error(head, facts);
}

/* Error of a lift's coordinates, which are stored in the arithmetic type; rows of other heads are not. */
static double coordinate_error(const fpa_head *head, const fpa_facts *facts)
{
    return expm1(2 * head_degree(head) * log1p(dtype_roundoff(facts->arithmetic))) + split_error(head, facts);
}

/* Additional error of narrow arithmetic. The recurrent form computes in float, but reads a lift's coordinates as stored. A state that is
 * taken over may be of any form. */
static double arithmetic_error(const fpa_head *head, const fpa_facts *facts, fpa_form_index form,
                               int64_t length, int resumes)
{
    double error;
    if (facts->arithmetic == FPA_F32)
        return 0;
    if (form == FORM_RECURRENT)
        return head->lift ? coordinate_error(head, facts) : 0;
    error = narrow_error(head, facts, form == FORM_CHUNKED || resumes > 0) + split_error(head, facts);
    return error + cut_roundings(head, facts, length) * dtype_roundoff(FPA_F32);
}

double bound_condition(const fpa_facts *facts)
{
    return facts->arithmetic == FPA_F32 ? 0.05 : 0.25;
}

/* Absolute error of f16, whose smallest step is 2^-24: once in o, and once in each feature's row of a state that is handed over. (The
 * reference's magnitude includes that of f16 arithmetic.) */
static double smallest_error(const fpa_head *head, const fpa_facts *facts)
{
    double error = 1e-30; /* products below float's range are zero in all evaluations */
    if (head->dtype == FPA_F16)
        error += 0x1p-25;
    if (head->state_dtype == FPA_F16)
        error += 0x1p-24 * (double)facts->features;
    return error;
}

/* Storing adds roundoff: once for o, once for each state that is handed over. In narrow arithmetic the error e of a normaliser n counts
 * to second order: the divisor is n (1 - e). */
fpa_bound bound_of(const fpa_head *head, const fpa_facts *facts, fpa_form_index form, int64_t length,
                   int resumes)
{
    double stored = head->dtype == FPA_F32 ? 0 : dtype_roundoff(head->dtype);
    fpa_bound bound = {.smallest = smallest_error(head, facts)};
    bound.tau = float_roundings(head, facts, length) * dtype_roundoff(FPA_F32);
    if (facts->arithmetic == FPA_F32)
        bound.tau += stored;
    if (head->state_dtype != FPA_F32)
        bound.tau += resumes * dtype_roundoff(head->state_dtype);
    if (facts->arithmetic == FPA_F32)
        return bound;
    bound.tau += arithmetic_error(head, facts, form, length, resumes);
    if (head->normalize != FPA_NORMALIZE_NONE)
        bound.tau /= 1 - bound_condition(facts);
    bound.tau *= 1 + stored; /* the value that is rounded has these errors */
    bound.rounding = stored;
    return bound;
}

double bound_allows(const fpa_bound *bound, double magnitude, double reference)
{
    return bound->tau * magnitude + bound->rounding * fabs(reference) + bound->smallest;
}
