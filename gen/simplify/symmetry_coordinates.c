/* Kernels that are polynomials P in s_i = q_i k_i. A rotation of coordinates i and j changes k to first order by
 * (dP/ds_i - dP/ds_j) (q_i k_j + q_j k_i); the changes of different pairs cannot cancel, since only (i, j) has the
 * degrees of q_i k_j. So coordinates with the same derivative form a part, on which all of O(n) acts, and no other
 * rotation near 1 leaves k unchanged. Derivatives are compared modulo 2^61 - 1 at random points (identity.c);
 * weights of coordinates that are given at run time are variables like the s_i. */
#include <stdlib.h>

#include "passes.h"
#include "symmetry_search.h"

enum { POINTS = 2 };
/* The most products of a search for exchanges: some seconds. */
static const double most_products = 5e8;

/* The random residue of a variable at a point; `stream` distinguishes s, weights and sums of parts. */
static uint64_t residue_at(int point, int stream, int variable)
{
    const uint64_t seed = ((uint64_t)(stream + 1) << 32) + (uint64_t)variable;
    return hash_word((uint64_t)point + 500, seed) % RESIDUE_PRIME;
}

/* The factor of s in row w of a dot: its Gram weight, or the square of a weight given at run time. */
static uint64_t row_weight(const fpa_branch *dot, int w, int point)
{
    const uint64_t gram = residue_number(linear_gram(dot, w));
    return dot->source == FPA_INPUT ? gram
                                    : residue_mul(gram, residue_at(point, dot->source + 1, dot->row[w]));
}

static uint64_t residue_power(uint64_t base, int exponent)
{
    uint64_t product = 1;
    while (exponent-- > 0)
        product = residue_mul(product, base);
    return product;
}

static void dot_values(const fpa_score *score, const uint64_t *s, int point, uint64_t *dots)
{
    for (int i = 0; i < score->dot_count; i++) {
        const fpa_branch *dot = &score->dots[i];
        dots[i] = 0;
        for (int w = 0; w < dot->width; w++)
            if (s[dot->row[w]])
                dots[i] = residue_add(dots[i], residue_mul(row_weight(dot, w, point), s[dot->row[w]]));
    }
}

static uint64_t score_at(const fpa_symmetry_search *search, const uint64_t *dots)
{
    uint64_t sum = 0;
    for (int m = 0; m < search->score->monomial_count; m++) {
        uint64_t product = residue_number(search->score->monomials[m].weight);
        for (int f = search->first[m]; f < search->first[m + 1]; f++)
            product =
                residue_mul(product, residue_power(dots[search->factors[f].dot], search->factors[f].power));
        sum = residue_add(sum, product);
    }
    return sum;
}

/* slope[i] += derivative of monomial m by dot i */
static void add_slopes(const fpa_symmetry_search *search, int m, const uint64_t *dots, uint64_t *slope)
{
    const fpa_factor *factor = search->factors + search->first[m];
    const int count = search->first[m + 1] - search->first[m];
    const uint64_t weight = residue_number(search->score->monomials[m].weight);
    for (int f = 0; f < count; f++) {
        uint64_t product = residue_mul(weight, (uint64_t)factor[f].power);
        for (int g = 0; g < count; g++)
            product = residue_mul(product, residue_power(dots[factor[g].dot], factor[g].power - (g == f)));
        slope[factor[f].dot] = residue_add(slope[factor[f].dot], product);
    }
}

/* A coordinate and dP/ds of it at each point. */
typedef struct coordinate_slope {
    uint64_t at[POINTS];
    int coordinate;
} coordinate_slope;

static bool find_slopes(fpa_symmetry_search *search, int point, coordinate_slope *slopes)
{
    const fpa_score *score = search->score;
    const int d = search->head->d;
    uint64_t *s = arena_array(&search->scratch, (size_t)d, sizeof *s);
    uint64_t *dots = arena_array(&search->scratch, (size_t)score->dot_count, sizeof *dots);
    uint64_t *slope = arena_array(&search->scratch, (size_t)score->dot_count, sizeof *slope);
    if (!s || !dots || !slope)
        return false;
    for (int c = 0; c < d; c++)
        s[c] = residue_at(point, 0, c);
    dot_values(score, s, point, dots);
    for (int m = 0; m < score->monomial_count; m++)
        add_slopes(search, m, dots, slope);
    for (int i = 0; i < score->dot_count; i++)
        for (int w = 0; w < score->dots[i].width; w++) {
            uint64_t *at = &slopes[score->dots[i].row[w]].at[point];
            *at = residue_add(*at, residue_mul(slope[i], row_weight(&score->dots[i], w, point)));
        }
    return true;
}

static int compare_slopes(const void *left, const void *right)
{
    const coordinate_slope *a = left, *b = right;
    for (int point = 0; point < POINTS; point++)
        if (a->at[point] != b->at[point])
            return a->at[point] < b->at[point] ? -1 : 1;
    return a->coordinate - b->coordinate;
}

static int compare_parts(const void *left, const void *right)
{
    const fpa_symmetry_part *a = left, *b = right;
    return a->coordinate[0] - b->coordinate[0];
}

static bool same_slope(const coordinate_slope *a, const coordinate_slope *b)
{
    return a->at[0] == b->at[0] && a->at[1] == b->at[1];
}

/* Makes a part of each run of equal slopes. */
static bool gather_parts(fpa_symmetry *found, const coordinate_slope *slopes)
{
    const int d = found->d;
    int *coordinate = arena_array(&found->memory, (size_t)d, sizeof *coordinate);
    found->parts = arena_array(&found->memory, (size_t)d, sizeof *found->parts);
    if (!coordinate || !found->parts)
        return false;
    for (int c = 0; c < d; c++) {
        coordinate[c] = slopes[c].coordinate;
        if (!c || !same_slope(&slopes[c - 1], &slopes[c]))
            found->parts[found->part_count++] = (fpa_symmetry_part){
                .coordinate = coordinate + c, .exchange = -1, .is_seen = slopes[c].at[0] || slopes[c].at[1]};
        fpa_symmetry_part *part = &found->parts[found->part_count - 1];
        part->order = ++part->width;
        part->dimension = part->order * (part->order - 1) / 2;
    }
    qsort(found->parts, (size_t)found->part_count, sizeof *found->parts, compare_parts);
    return true;
}

/* ---- exchanges: P depends on the sum of s over each part ---- */

typedef struct exchange_test {
    fpa_symmetry_search *search;
    uint64_t *s, *dots; /* room for values of the coordinates and dots */
    uint64_t *mark;     /* [part_count] P with the sum of one part different from the sums of all others */
} exchange_test;

static uint64_t value_of_sums(const exchange_test *test, int point)
{
    dot_values(test->search->score, test->s, point, test->dots);
    return score_at(test->search, test->dots);
}

/* Where the sum of a part is stored: at its first coordinate; the others are 0. */
static uint64_t *sum_of(const exchange_test *test, int part)
{
    return &test->s[test->search->found->parts[part].coordinate[0]];
}

/* Computes marks, which are equal if two parts may be exchanged. */
static void find_marks(const exchange_test *test)
{
    const int count = test->search->found->part_count;
    for (int i = 0; i < count; i++)
        *sum_of(test, i) = residue_at(0, -1, 0);
    for (int i = 0; i < count; i++) {
        *sum_of(test, i) = residue_at(0, -1, 1);
        test->mark[i] = value_of_sums(test, 0);
        *sum_of(test, i) = residue_at(0, -1, 0);
    }
}

static bool may_exchange(const exchange_test *test, int a, int b)
{
    bool same = true;
    for (int point = 0; point < POINTS && same; point++) {
        for (int i = 0; i < test->search->found->part_count; i++)
            *sum_of(test, i) = residue_at(point, -1, 2 + i);
        const uint64_t before = value_of_sums(test, point), swapped = *sum_of(test, a);
        *sum_of(test, a) = *sum_of(test, b);
        *sum_of(test, b) = swapped;
        same = before == value_of_sums(test, point);
    }
    return same;
}

/* Gives all parts that may be exchanged with part a, and thus with each other, the number a. */
static void number_exchanges(const exchange_test *test, int a)
{
    fpa_symmetry *found = test->search->found;
    for (int b = a + 1; b < found->part_count; b++) {
        fpa_symmetry_part *part = &found->parts[b];
        if (part->exchange >= 0 || part->width != found->parts[a].width || test->mark[a] != test->mark[b] ||
            !may_exchange(test, a, b))
            continue;
        found->parts[a].exchange = a;
        part->exchange = a;
    }
}

static bool find_exchanges(fpa_symmetry_search *search)
{
    fpa_symmetry *found = search->found;
    const double products = (double)found->part_count * search->first[search->score->monomial_count];
    found->exchanges_known = products <= most_products;
    if (!found->exchanges_known)
        return true;
    exchange_test test = {.search = search};
    test.s = arena_array(&search->scratch, (size_t)found->d, sizeof *test.s);
    test.dots = arena_array(&search->scratch, (size_t)search->score->dot_count, sizeof *test.dots);
    test.mark = arena_array(&search->scratch, (size_t)found->part_count, sizeof *test.mark);
    if (!test.s || !test.dots || !test.mark)
        return false;
    find_marks(&test);
    for (int a = 0; a < found->part_count; a++)
        if (found->parts[a].exchange < 0)
            number_exchanges(&test, a);
    return true;
}

bool symmetry_of_coordinates(fpa_symmetry_search *s)
{
    coordinate_slope *slopes = arena_array(&s->scratch, (size_t)s->head->d, sizeof *slopes);
    if (!slopes)
        return false;
    for (int c = 0; c < s->head->d; c++)
        slopes[c].coordinate = c;
    for (int point = 0; point < POINTS; point++)
        if (!find_slopes(s, point, slopes))
            return false;
    qsort(slopes, (size_t)s->head->d, sizeof *slopes, compare_slopes);
    return gather_parts(s->found, slopes) && find_exchanges(s);
}
