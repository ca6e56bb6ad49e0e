/* Proof that two representations are one kernel: both are polynomials in the symbols, and two
 * different ones of degree n agree at a random point modulo p = 2^61 - 1 with probability at most
 * n / p (Schwartz-Zippel). The points are fixed, so that the verdict is the same every time.
 * Where a weight is not exact, they are compared in double, relative to the sum of the terms'
 * magnitudes. */
#include <math.h>

#include "passes.h"

enum { POINTS = 2 };

static const double tolerance = 1e-12;

/* A kernel at a point: the residue, or the value and what it would be without cancellation. */
typedef struct identity_value {
    uint64_t residue;
    double value, magnitude;
} identity_value;

typedef struct identity_point {
    const size_t *offsets;
    int index;
    bool exact;
    identity_value *forms; /* values of the expression's forms or the score's dots */
} identity_point;

static identity_value form_value(const identity_point *at, const fpa_branch *form)
{
    identity_value sum = {0, 0, 0};
    for (int w = 0; w < form->width; w++) {
        size_t symbol = at->offsets[form->source + 1] + (size_t)form->row[w];
        uint64_t random = hash_word((uint64_t)at->index + 100, symbol);
        if (at->exact) {
            uint64_t x = random % RESIDUE_PRIME;
            if (form->gram)
                x = residue_mul(x, residue_number(form->gram[w]));
            sum.residue = residue_add(sum.residue, x);
        } else {
            double x = 0.5 + (double)(random >> 11) * 0x1p-53;
            sum.value += x * linear_gram(form, w).value;
        }
    }
    sum.magnitude = sum.value;
    return sum;
}

static identity_value weight_value(const identity_point *at, fpa_number weight)
{
    if (at->exact)
        return (identity_value){residue_number(weight), 0, 0};
    return (identity_value){0, weight.value, fabs(weight.value)};
}

static void multiply_value(identity_value *product, identity_value factor)
{
    product->residue = residue_mul(product->residue, factor.residue);
    product->value *= factor.value;
    product->magnitude *= factor.magnitude;
}

static void add_value(identity_value *sum, identity_value term)
{
    sum->residue = residue_add(sum->residue, term.residue);
    sum->value += term.value;
    sum->magnitude += term.magnitude;
}

static identity_value head_value(const identity_point *at, const fpa_head *head)
{
    identity_value sum = {0, 0, 0};
    for (int t = 0; t < head->term_count; t++) {
        identity_value product = weight_value(at, head->terms[t].weight);
        for (int b = 0; b < head->terms[t].branch_count; b++)
            multiply_value(&product, form_value(at, &head->terms[t].branches[b]));
        add_value(&sum, product);
    }
    return sum;
}

static identity_value expression_value(const identity_point *at, const fpa_expression *e)
{
    identity_value sum = {0, 0, 0};
    for (int f = 0; f < e->form_count; f++)
        at->forms[f] = form_value(at, &e->forms[f]);
    for (int i = 0; i < e->polynomial.count; i++) {
        const int *factors = polynomial_factors(&e->polynomial, i);
        identity_value product = weight_value(at, e->polynomial.weights[i]);
        for (int j = 0; j < e->polynomial.degree && factors[j] >= 0; j++)
            multiply_value(&product, at->forms[factors[j]]);
        add_value(&sum, product);
    }
    return sum;
}

static identity_value score_value(const identity_point *at, const fpa_score *score)
{
    identity_value sum = {0, 0, 0};
    for (int f = 0; f < score->dot_count; f++)
        at->forms[f] = form_value(at, &score->dots[f]);
    for (int i = 0; i < score->monomial_count; i++) {
        identity_value product = weight_value(at, score->monomials[i].weight);
        for (int f = 0; f < score->dot_count; f++)
            for (int r = 0; r < score->monomials[i].power[f]; r++)
                multiply_value(&product, at->forms[f]);
        add_value(&sum, product);
    }
    return sum;
}

static identity_value sum_value(const fpa_sum *sum, identity_point at)
{
    at.offsets = sum->offsets;
    if (sum->head)
        return head_value(&at, sum->head);
    return sum->score ? score_value(&at, sum->score) : expression_value(&at, sum->expression);
}

static bool form_exact(const fpa_branch *form)
{
    for (int w = 0; form->gram && w < form->width; w++)
        if (!number_exact(form->gram[w]))
            return false;
    return true;
}

static bool head_exact(const fpa_head *head)
{
    bool exact = true;
    for (int t = 0; t < head->term_count && exact; t++) {
        exact = number_exact(head->terms[t].weight);
        for (int b = 0; b < head->terms[t].branch_count && exact; b++)
            exact = form_exact(&head->terms[t].branches[b]);
    }
    return exact;
}

static bool sum_exact(const fpa_sum *sum)
{
    bool exact = true;
    if (sum->head)
        return head_exact(sum->head);
    if (sum->score) {
        for (int f = 0; f < sum->score->dot_count; f++)
            exact &= form_exact(&sum->score->dots[f]);
        for (int i = 0; i < sum->score->monomial_count; i++)
            exact &= number_exact(sum->score->monomials[i].weight);
        return exact;
    }
    for (int f = 0; f < sum->expression->form_count; f++)
        exact &= form_exact(&sum->expression->forms[f]);
    return exact && polynomial_exact(&sum->expression->polynomial);
}

static int sum_forms(const fpa_sum *sum)
{
    return sum->expression ? sum->expression->form_count : sum->score ? sum->score->dot_count : 0;
}

static bool values_agree(const identity_point *at, identity_value a, identity_value b)
{
    if (at->exact)
        return a.residue == b.residue;
    return fabs(a.value - b.value) <= tolerance * fmax(a.magnitude, b.magnitude);
}

fpa_status identity_check(fpa_simplifier *s, const char *what, fpa_sum a, fpa_sum b)
{
    int forms = sum_forms(&a) > sum_forms(&b) ? sum_forms(&a) : sum_forms(&b);
    identity_point at = {.exact = sum_exact(&a) && sum_exact(&b)};
    at.forms = arena_array(&s->scratch, (size_t)forms, sizeof *at.forms);
    if (!at.forms)
        return fail_memory(s->error);
    for (at.index = 0; at.index < POINTS; at.index++)
        if (!values_agree(&at, sum_value(&a, at), sum_value(&b, at)))
            return fail(s->error, FPA_REFUSED, s->written->origin,
                        "simplification: %s does not hold; this is a mistake of fpac, not of the spec", what);
    if (!at.exact)
        s->numeric = true;
    return FPA_OK;
}
