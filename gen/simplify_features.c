/* Features of an expression. A power s^m of a form over blocks of rows S_1..S_n is the sum over
 * non-decreasing tuples of blocks of  m! / prod mult!  * prod s_(block)  (DESIGN 4, full
 * construction): one term a tuple, integer weights, no feature twice but inside diagonal blocks.
 * Several forms in a monomial: all combinations of their tuples. */
#include <string.h>

#include "simplify_passes.h"

/* Blocked features may be this much more than the fewest there are: bigger blocks run faster. */
static const double block_slack = 1.4;

enum { LARGEST_BLOCK = 8 };

/* A power of one form inside a monomial. */
typedef struct feature_factor {
    int form, power;
    int blocks; /* that the tuples choose from; 1 for a form that occurs once: all its rows */
} feature_factor;

static int split_factors(const fpa_expression *e, int monomial, int block, feature_factor *split)
{
    const int *factors = polynomial_factors(&e->polynomial, monomial);
    int degree = polynomial_monomial_degree(&e->polynomial, monomial), count = 0;
    for (int j = 0; j < degree; j++) {
        if (!j || factors[j] != factors[j - 1])
            split[count++] = (feature_factor){.form = factors[j]};
        split[count - 1].power++;
    }
    for (int i = 0; i < count; i++) {
        int width = e->forms[split[i].form].width;
        split[i].blocks = split[i].power == 1 ? 1 : (width + block - 1) / block;
    }
    return count;
}

/* C(n+m-1, m): non-decreasing tuples of m out of n. */
static double tuple_count(int n, int m)
{
    double count = 1;
    for (int i = 1; i <= m; i++)
        count = count * (n + i - 1) / i;
    return count;
}

/* Sum over the tuples of the product of the blocks' widths: j of the full blocks, the others the
 * last one, which has the rest of the rows. */
static double tuple_features(int width, int block, int power)
{
    int full = width / block, rest = width % block;
    double sum = 0;
    for (int j = 0; j <= power; j++) {
        double features = tuple_count(full, j);
        for (int i = 0; i < power; i++)
            features *= i < j ? block : rest;
        sum += features;
    }
    return sum;
}

fpa_feature_count features_count(const fpa_expression *e, int block)
{
    feature_factor split[POLYNOMIAL_MAX_DEGREE];
    fpa_feature_count total = {0, 0};
    for (int m = 0; m < e->polynomial.count; m++) {
        double features = 1, terms = 1;
        int count = split_factors(e, m, block, split);
        for (int i = 0; i < count; i++) {
            int width = e->forms[split[i].form].width;
            features *= split[i].power == 1 ? width : tuple_features(width, block, split[i].power);
            terms *= tuple_count(split[i].blocks, split[i].power);
        }
        total.features += features;
        total.terms += terms;
    }
    return total;
}

int features_block(const fpa_expression *e, int wanted)
{
    if (wanted)
        return wanted;
    double fewest = features_count(e, 1).features;
    int block = LARGEST_BLOCK;
    while (block > 1 && features_count(e, block).features > block_slack * fewest)
        block /= 2;
    while (block < HEAD_MAX_WIDTH && features_count(e, block).terms > HEAD_MAX_TERMS)
        block *= 2;
    return block;
}

fpa_branch_kind features_branch_kind(const fpa_head *head, const fpa_branch *branch)
{
    if (branch->source == FPA_INPUT) {
        if (branch->gram)
            return FPA_BRANCH_DIAGONAL;
        return branch->width == head->d ? FPA_BRANCH_IDENTITY : FPA_BRANCH_SELECT;
    }
    switch (head->matrices[branch->source].kind) {
    case FPA_MATRIX_TRAINABLE:
        return FPA_BRANCH_TRAINABLE;
    case FPA_MATRIX_TRAINABLE_DIAGONAL:
        return FPA_BRANCH_TRAINABLE_DIAGONAL;
    default:
        return FPA_BRANCH_DENSE;
    }
}

/* Rows [from, from + width) of a form as a branch; a weight that all of them share goes to *weight
 * when that stays exact. */
static fpa_branch slice_form(const fpa_head *head, const fpa_branch *form, int from, int width,
                             fpa_number *weight)
{
    fpa_branch slice = {.source = form->source, .width = width, .row = form->row + from};
    bool uniform = true;
    slice.gram = form->gram ? form->gram + from : NULL;
    for (int w = 1; slice.gram && w < width; w++)
        uniform &= number_identical(slice.gram[w], slice.gram[0]);
    if (slice.gram && uniform) {
        fpa_number product = number_mul(*weight, slice.gram[0]);
        if (number_exact(product) || number_is_one(slice.gram[0])) {
            *weight = product;
            slice.gram = NULL;
        }
    }
    slice.kind = features_branch_kind(head, &slice);
    return slice;
}

typedef struct feature_walk {
    int count; /* of split */
    feature_factor split[POLYNOMIAL_MAX_DEGREE];
    int tuple[POLYNOMIAL_MAX_DEGREE]; /* blocks, factor after factor */
    int degree;
} feature_walk;

/* The next combination of tuples in lexicographic order; false after the last. */
static bool walk_next(feature_walk *walk)
{
    int at = walk->degree;
    for (int i = walk->count - 1; i >= 0; i--)
        for (int r = walk->split[i].power - 1; r >= 0; r--) {
            at--;
            if (walk->tuple[at] + 1 >= walk->split[i].blocks)
                continue;
            int value = walk->tuple[at] + 1, end = at + walk->split[i].power - r;
            for (int j = at; j < walk->degree; j++)
                walk->tuple[j] = j < end ? value : 0;
            return true;
        }
    return false;
}

/* m! / prod mult! of a non-decreasing tuple. */
static fpa_number tuple_weight(const int *tuple, int power)
{
    fpa_number weight = number_int(1);
    for (int r = 0, run = 0; r < power; r++) {
        run = r && tuple[r] == tuple[r - 1] ? run + 1 : 1;
        weight = number_div(number_mul(weight, number_int(r + 1)), number_int(run));
    }
    return weight;
}

static bool build_term(const fpa_expression *e, fpa_head *head, const feature_walk *walk, fpa_number weight,
                       int block)
{
    fpa_term *term = &head->terms[head->term_count];
    term->branches = arena_array(&head->memory, (size_t)walk->degree, sizeof *term->branches);
    if (!term->branches)
        return false;
    for (int i = 0; i < walk->count; i++) {
        const feature_factor *factor = &walk->split[i];
        const fpa_branch *form = &e->forms[factor->form];
        const int *tuple = walk->tuple + term->branch_count;
        weight = number_mul(weight, tuple_weight(tuple, factor->power));
        for (int r = 0; r < factor->power; r++) {
            int from = factor->power == 1 ? 0 : tuple[r] * block;
            int width = factor->power == 1 || form->width - from < block ? form->width - from : block;
            term->branches[term->branch_count++] = slice_form(head, form, from, width, &weight);
        }
    }
    term->weight = weight;
    head->term_count++;
    return true;
}

static bool uses_blocks(const fpa_expression *e)
{
    for (int m = 0; m < e->polynomial.count; m++) {
        const int *factors = polynomial_factors(&e->polynomial, m);
        for (int j = 1; j < e->polynomial.degree && factors[j] >= 0; j++)
            if (factors[j] == factors[j - 1])
                return true;
    }
    return false;
}

bool features_build(const fpa_expression *e, int block, fpa_head *head)
{
    fpa_feature_count count = features_count(e, block);
    head->block = uses_blocks(e) ? block : 1;
    head->terms = arena_array(&head->memory, (size_t)count.terms, sizeof *head->terms);
    if (!head->terms)
        return false;
    for (int m = 0; m < e->polynomial.count; m++) {
        feature_walk walk = {.degree = polynomial_monomial_degree(&e->polynomial, m)};
        walk.count = split_factors(e, m, block, walk.split);
        do
            if (!build_term(e, head, &walk, e->polynomial.weights[m], block))
                return false;
        while (walk_next(&walk));
    }
    return true;
}
