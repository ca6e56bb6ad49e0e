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

/* Whether branches take rows of matrices: those of a lift are its own. */
static bool has_rows(const fpa_head *head)
{
    return head->matrix_count > 0 && !head->lift;
}

/* Numbers that a sum of a part has: of its projections, or of |x|^2. */
static double part_sum(const fpa_head *head, const fpa_lift_part *part)
{
    for (int f = 0; f < part->factor_count; f++)
        if (part->factors[f].source != FPA_INPUT)
            return head->lift->width;
    return part->square == 0 ? 0 : head->lift->width;
}

/* One coordinate of a lift, made in float: a projection of w products as below, twice where it is complex; a product
 * with the next factor, of complex ones three roundings; scale, inner, square and shift; a map to 2 units and half
 * that of its argument; gain and amplitude; cosine or sine of a phase that is reduced exactly, to 6 units. */
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

/* In float, with u its unit roundoff, n = degree, D = features, w = longest dot product of a score.
 *
 * One product of n dots: a dot of w products, each rounded, gathers at most w u of its
 * magnitude, and in fact, signs of roundings being random, about sqrt(w) u with a deviation
 * that never reached 4 sqrt(w) u. Products, powers, weights: 8 roundings a branch. With
 * matrices both projections are dots themselves. A sum of N terms: the same with N = D + L
 * (query of the state, update of the state over L tokens), and a random walk of partial sums
 * reaches a quarter of sqrt(N) u of the magnitude even when all terms have one sign; 2 sqrt(N)
 * leaves room. A gate is a product of up to L factors. 8 for scale, exp and division. Coordinates
 * of a lift have errors of their own, the query's and the key's.
 *
 * A window's exponent is a dot, too, whose error the reference's sizes turn into one of the exponential. What has been
 * summed is brought down to a larger exponent once a panel of keys at most, by an exponential and a product: 3
 * roundings for 48 keys, and of two panels that are in part in the window. */
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

/* Matrix instructions cut sums to float's last place, up to 2 u and towards zero, once every 8
 * products or more; what they cut does not average out. */
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
    return has_rows(head); /* simplified matrices come with weights of their own */
}

/* Roundings to the arithmetic type of one branch's rows, query's and key's together: of the scaled
 * query (where projections sum them, three times a random sum's deviation), of both projections, of
 * the weighted key. A lift is computed in float, and both coordinates are rounded at last. */
static double row_roundings(const fpa_head *head)
{
    if (head->lift)
        return 2 + weights_round(head);
    double scale = power_of_two(head->scale) ? 0 : head->matrix_count ? 3 : 1;
    return scale + (head->matrix_count ? 2 : 0) + weights_round(head);
}

/* Narrow arithmetic rounds the factors of products: each rounding, at most the unit roundoff a of
 * the type, goes into the result with its own sign, but a score of few features has few of them,
 * which may agree. So they are counted.
 *
 * Scores of pairs: the rows of n branches, then the score before it multiplies v; and n - 2 products a side at most, where rows
 * of its dots are products of rows, of two halves of n branches (kernels of sums of products with three dots and more). Where a
 * score is a sum over features (facts->formed), of each the n - 1 products a side, the key's weight and the query's.
 * Through the state: the same rows; the n - 1 products that make a key's feature, its weight (exact
 * only as far as simplification does not collect others), its decay; the n - 1 products of the query's
 * feature, and n conversions of its rows where these are half precision (a state has bf16's range);
 * the copy of the state that queries read, twice when a sequence is computed in segments. */
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

/* Constants that rows or coordinates of bf16 are made by may be one number of f16 each: of every factor of a lift's, on both sides. */
static double constants_error(const fpa_head *head, const fpa_facts *facts)
{
    int most = !head->lift && has_constants_alone(head);
    for (int i = 0; head->lift && i < head->lift->part_count; i++)
        if (part_sum(head, &head->lift->parts[i]) > 0 && most < head->lift->parts[i].factor_count)
            most = head->lift->parts[i].factor_count;
    return facts->arithmetic == FPA_BF16 ? head_degree(head) * 2 * most * dtype_roundoff(FPA_F16) : 0;
}

/* A matrix comes in two parts of the arithmetic type: right to a^2 on each side, twice that with the
 * products of a row not averaging. */
static double split_error(const fpa_head *head, const fpa_facts *facts)
{
    double roundoff = dtype_roundoff(facts->arithmetic);
    if (!head->matrix_count)
        return 0;
    return head_degree(head) * 4 * roundoff * roundoff + constants_error(head, facts);
}

/* Coordinates of a lift are rounded where they are kept, which other forms' rows are not. */
static double coordinate_error(const fpa_head *head, const fpa_facts *facts)
{
    return expm1(2 * head_degree(head) * log1p(dtype_roundoff(facts->arithmetic))) + split_error(head, facts);
}

/* The recurrent form computes in float, but takes a lift's coordinates as they are kept; a state taken over may be any
 * form's. */
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

/* Half precision rounds to multiples of 2^-24 at last: once in o, and in every feature's row of a
 * state that is handed over. (Of half-precision arithmetic the reference's magnitude takes care.) */
static double smallest_error(const fpa_head *head, const fpa_facts *facts)
{
    double error = 1e-30; /* products below float's range are lost by everybody */
    if (head->dtype == FPA_F16)
        error += 0x1p-25;
    if (head->state_dtype == FPA_F16)
        error += 0x1p-24 * (double)facts->features;
    return error;
}

/* Storage adds its own roundoff: once for o, once for each state that is handed over. Narrow errors
 * are large enough for a normaliser's to count to second order: n (1 - e) divides. */
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
    bound.tau *= 1 + stored; /* what is stored has these errors */
    bound.rounding = stored;
    return bound;
}

double bound_allows(const fpa_bound *bound, double magnitude, double reference)
{
    return bound->tau * magnitude + bound->rounding * fabs(reference) + bound->smallest;
}
