/* The parallel form's score: each linear form once, as a dot product, then the polynomial in them. */
#include <stdlib.h>
#include <string.h>

#include "passes.h"

/* The most powers, one integer for each dot and monomial; a larger score would be absurd as code and as data. */
static const double max_powers = 1 << 27;

/* number[f]: index of form f among those that monomials use, in their order; -1: unused. */
static int *number_dots(arena *memory, const fpa_expression *e, int *count)
{
    int *number = arena_array(memory, (size_t)e->form_count, sizeof *number);
    if (!number)
        return NULL;
    for (int i = 0; i < e->polynomial.count; i++)
        for (int j = 0; j < polynomial_monomial_degree(&e->polynomial, i); j++)
            number[polynomial_factors(&e->polynomial, i)[j]] = 1;
    *count = 0;
    for (int f = 0; f < e->form_count; f++)
        number[f] = number[f] ? (*count)++ : -1;
    return number;
}

/* Operations of one score: two for each row of every dot; for each monomial one for each factor, and one for its
 * weight if that is not 1. */
bool score_cost(arena *memory, const fpa_expression *e, double *cost)
{
    int dots;
    const int *number = number_dots(memory, e, &dots);
    if (!number)
        return false;
    *cost = 0;
    for (int f = 0; f < e->form_count; f++)
        *cost += number[f] < 0 ? 0 : 2.0 * e->forms[f].width;
    for (int i = 0; i < e->polynomial.count; i++) {
        int degree = polynomial_monomial_degree(&e->polynomial, i);
        *cost += degree + !number_is_one(e->polynomial.weights[i]);
    }
    return true;
}

typedef struct score_key {
    fpa_monomial monomial;
    int dots;
} score_key;

/* Decreasing powers of the first dot, then of the second ...: the order of Horner's rule. */
static int compare_powers(const void *left, const void *right)
{
    const score_key *a = left, *b = right;
    for (int i = 0; i < a->dots; i++)
        if (a->monomial.power[i] != b->monomial.power[i])
            return a->monomial.power[i] > b->monomial.power[i] ? -1 : 1;
    return 0;
}

static bool fill_dots(arena *memory, const fpa_expression *e, const int *number, fpa_score *score)
{
    score->dots = arena_array(memory, (size_t)score->dot_count, sizeof *score->dots);
    for (int f = 0; score->dots && f < e->form_count; f++)
        if (number[f] >= 0)
            score->dots[number[f]] = e->forms[f];
    return score->dots != NULL;
}

static bool fill_monomials(arena *memory, arena *scratch, const fpa_expression *e, const int *number,
                           fpa_score *score)
{
    size_t count = (size_t)e->polynomial.count, dots = (size_t)score->dot_count;
    score_key *keys = arena_array(scratch, count, sizeof *keys);
    int *powers = arena_array(memory, count, dots * sizeof *powers);
    score->monomials = arena_array(memory, count, sizeof *score->monomials);
    if (!keys || !powers || !score->monomials)
        return false;
    for (size_t i = 0; i < count; i++) {
        int *power = powers + i * dots;
        for (int j = 0; j < polynomial_monomial_degree(&e->polynomial, (int)i); j++)
            power[number[polynomial_factors(&e->polynomial, (int)i)[j]]]++;
        keys[i] = (score_key){{number_copy(memory, e->polynomial.weights[i]), power}, score->dot_count};
    }
    qsort(keys, count, sizeof *keys, compare_powers);
    score->monomial_count = (int)count;
    for (size_t i = 0; i < count; i++)
        score->monomials[i] = keys[i].monomial;
    return true;
}

fpa_status score_build(fpa_simplifier *s, const fpa_expression *e, arena *memory, fpa_score *score)
{
    *score = (fpa_score){0};
    const int *number = number_dots(&s->scratch, e, &score->dot_count);
    if (!number)
        return fail_memory(s->error);
    if ((double)score->dot_count * e->polynomial.count > max_powers)
        return fail(
            s->error, FPA_UNSUPPORTED, s->written->origin,
            "the kernel is a polynomial of %d monomials in %d linear forms, which is too large: use fewer "
            "terms, or the same rows in more of them",
            e->polynomial.count, score->dot_count);
    if (!fill_dots(memory, e, number, score) || !fill_monomials(memory, &s->scratch, e, number, score))
        return fail_memory(s->error);
    return FPA_OK;
}
