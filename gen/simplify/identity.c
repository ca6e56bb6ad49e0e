/* Proof that two representations are one kernel: both are polynomials in the symbols, and two
 * different ones of degree n agree at a random point modulo p = 2^61 - 1 with probability at most
 * n / p (Schwartz-Zippel). The points are fixed, so that the verdict is the same every time. */
#include <inttypes.h>

#include "passes.h"

enum { POINTS = 2 };

typedef struct identity_point {
    const size_t *offsets;
    int index;
    uint64_t *forms; /* values of the expression's forms or the score's dots */
} identity_point;

static uint64_t form_value(const identity_point *at, const fpa_branch *form)
{
    uint64_t sum = 0;
    for (int w = 0; w < form->width; w++) {
        size_t symbol = at->offsets[form->source + 1] + (size_t)form->row[w];
        uint64_t x = hash_word((uint64_t)at->index + 100, symbol) % RESIDUE_PRIME;
        if (form->gram)
            x = residue_mul(x, residue_number(form->gram[w]));
        sum = residue_add(sum, x);
    }
    return sum;
}

static uint64_t head_value(const identity_point *at, const fpa_head *head)
{
    uint64_t sum = 0;
    for (int t = 0; t < head->term_count; t++) {
        uint64_t product = residue_number(head->terms[t].weight);
        for (int b = 0; b < head->terms[t].branch_count; b++)
            product = residue_mul(product, form_value(at, &head->terms[t].branches[b]));
        sum = residue_add(sum, product);
    }
    return sum;
}

static uint64_t expression_value(const identity_point *at, const fpa_expression *e)
{
    uint64_t sum = 0;
    for (int f = 0; f < e->form_count; f++)
        at->forms[f] = form_value(at, &e->forms[f]);
    for (int i = 0; i < e->polynomial.count; i++) {
        const int *factors = polynomial_factors(&e->polynomial, i);
        uint64_t product = residue_number(e->polynomial.weights[i]);
        for (int j = 0; j < e->polynomial.degree && factors[j] >= 0; j++)
            product = residue_mul(product, at->forms[factors[j]]);
        sum = residue_add(sum, product);
    }
    return sum;
}

static uint64_t score_value(const identity_point *at, const fpa_score *score)
{
    uint64_t sum = 0;
    for (int f = 0; f < score->dot_count; f++)
        at->forms[f] = form_value(at, &score->dots[f]);
    for (int i = 0; i < score->monomial_count; i++) {
        uint64_t product = residue_number(score->monomials[i].weight);
        for (int f = 0; f < score->dot_count; f++)
            for (int r = 0; r < score->monomials[i].power[f]; r++)
                product = residue_mul(product, at->forms[f]);
        sum = residue_add(sum, product);
    }
    return sum;
}

static uint64_t sum_value(const fpa_sum *sum, identity_point at)
{
    at.offsets = sum->offsets;
    if (sum->head)
        return head_value(&at, sum->head);
    return sum->score ? score_value(&at, sum->score) : expression_value(&at, sum->expression);
}

/* --- numbers that cannot be compared --- */

typedef struct identity_numbers {
    fpa_number none; /* a number without a value, if there is one */
    bool blind;      /* a denominator is zero modulo the prime */
} identity_numbers;

static void check_number(fpa_number number, identity_numbers *seen)
{
    uint64_t den;
    if (number_status(number))
        seen->none = number;
    number_residue(number, RESIDUE_PRIME, &den);
    seen->blind |= den == 0;
}

static void check_form(const fpa_branch *form, identity_numbers *seen)
{
    for (int w = 0; form->gram && w < form->width; w++)
        check_number(form->gram[w], seen);
}

static void check_head(const fpa_head *head, identity_numbers *seen)
{
    for (int t = 0; t < head->term_count; t++) {
        check_number(head->terms[t].weight, seen);
        for (int b = 0; b < head->terms[t].branch_count; b++)
            check_form(&head->terms[t].branches[b], seen);
    }
}

static void check_score(const fpa_score *score, identity_numbers *seen)
{
    for (int f = 0; f < score->dot_count; f++)
        check_form(&score->dots[f], seen);
    for (int i = 0; i < score->monomial_count; i++)
        check_number(score->monomials[i].weight, seen);
}

static void check_expression(const fpa_expression *e, identity_numbers *seen)
{
    for (int f = 0; f < e->form_count; f++)
        check_form(&e->forms[f], seen);
    for (int i = 0; i < e->polynomial.count; i++)
        check_number(e->polynomial.weights[i], seen);
}

static void check_sum(const fpa_sum *sum, identity_numbers *seen)
{
    if (sum->head)
        check_head(sum->head, seen);
    else if (sum->score)
        check_score(sum->score, seen);
    else
        check_expression(sum->expression, seen);
}

static int sum_forms(const fpa_sum *sum)
{
    return sum->expression ? sum->expression->form_count : sum->score ? sum->score->dot_count : 0;
}

fpa_status identity_check(fpa_simplifier *s, const char *what, fpa_sum a, fpa_sum b)
{
    int forms = sum_forms(&a) > sum_forms(&b) ? sum_forms(&a) : sum_forms(&b);
    identity_numbers seen = {.none = number_int(0)};
    identity_point at = {.forms = arena_array(&s->scratch, (size_t)forms, sizeof *at.forms)};
    if (s->scratch.failed)
        return fail_memory(s->error);
    check_sum(&a, &seen);
    check_sum(&b, &seen);
    fpa_status status = number_check(seen.none, s->written->origin, s->error);
    if (status != FPA_OK)
        return status;
    if (seen.blind)
        return fail(s->error, FPA_UNSUPPORTED, s->written->origin,
                    "the denominator of a weight is a multiple of %" PRIu64
                    ", the prime by which identities are proved",
                    RESIDUE_PRIME);
    for (at.index = 0; at.index < POINTS; at.index++)
        if (sum_value(&a, at) != sum_value(&b, at))
            return fail(s->error, FPA_REFUSED, s->written->origin,
                        "simplification: %s does not hold; this is a mistake of fpac, not of the spec", what);
    return FPA_OK;
}
