/* Features of an expression. A power s^m of a form over blocks of rows S_1..S_n is the sum over non-decreasing
 * tuples of blocks of m! / prod mult! * prod s_(block): the full construction of TSPOW, one term for each tuple,
 * with integer weights, and no feature twice except inside diagonal blocks. In squares these are halved until they
 * have two rows, by (a + b)^2 = 2 a b + a^2 + b^2: the products remain rectangles of rows, and few features occur
 * twice. A monomial of several forms has all combinations of their terms. */
#include <string.h>

#include "passes.h"

#include "base/round.h"

enum { LARGEST_BLOCK = 8 };

/* By which factor the features of a block size may exceed the minimum. Rows of a block share some operations: a
 * feature takes (1 + s / b) times its own operations, where s is such that the factor is 1.4 for blocks of 8, as
 * measured; it is then 1.32 for 4 and 1.20 for 2. */
static double block_slack(int block)
{
    const double most = 1.4, shared = (most - 1) / (1 - most / LARGEST_BLOCK);
    return block < LARGEST_BLOCK ? (1 + shared) / (1 + shared / block) : most;
}

/* A power of one form inside a monomial. */
typedef struct feature_factor {
    int form, power;
    int blocks; /* blocks from which tuples are formed; 1 for a form that occurs once, with all its rows */
} feature_factor;

/* A range of the rows of a form. */
typedef struct feature_slice {
    int from, width;
} feature_slice;

/* Half of a diagonal block's rows, at which it is divided; 0: it is not divided. */
static int half_of(int width)
{
    return width > 2 ? (width + 1) / 2 : 0;
}

/* Features and terms of the square of a block. */
static fpa_feature_count square_count(int width)
{
    const int half = half_of(width);
    if (!half)
        return (fpa_feature_count){(double)width * width, 1};
    const fpa_feature_count low = square_count(half), high = square_count(width - half);
    return (fpa_feature_count){(double)half * (width - half) + low.features + high.features,
                               1 + low.terms + high.terms};
}

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
        split[i].blocks = split[i].power == 1 ? 1 : divide_up(width, block);
    }
    return count;
}

/* Sum over the tuples of the product of their blocks' widths: j blocks of full width, the others the last block,
 * which has the remaining rows. */
static fpa_feature_count tuples_count(int width, int block, int power)
{
    const int full = width / block, rest = width % block;
    fpa_feature_count sum = {0, monomial_count(full + (rest > 0), power)};
    for (int j = 0; j <= power; j++) {
        double features = monomial_count(full, j);
        for (int i = 0; i < power; i++)
            features *= i < j ? block : rest;
        sum.features += features;
    }
    if (power != 2)
        return sum;
    const fpa_feature_count square = square_count(block), last = square_count(rest);
    sum.features += full * (square.features - (double)block * block) + last.features - (double)rest * rest;
    sum.terms += full * (square.terms - 1) + (rest ? last.terms - 1 : 0);
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
            const int width = e->forms[split[i].form].width;
            const fpa_feature_count own = split[i].power == 1 ? (fpa_feature_count){width, 1}
                                                              : tuples_count(width, block, split[i].power);
            features *= own.features;
            terms *= own.terms;
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
    while (block > 1 && features_count(e, block).features > block_slack(block) * fewest)
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

/* Rows of a form as a branch; a weight that all rows share is multiplied into *weight. */
static fpa_branch slice_form(const fpa_head *head, const fpa_branch *form, feature_slice rows, arena *memory,
                             fpa_number *weight)
{
    fpa_branch slice = {.source = form->source, .width = rows.width, .row = form->row + rows.from};
    bool uniform = true;
    slice.gram = form->gram ? form->gram + rows.from : NULL;
    for (int w = 1; slice.gram && w < rows.width; w++)
        uniform &= number_equal(slice.gram[w], slice.gram[0]);
    if (slice.gram && uniform) {
        *weight = number_mul(memory, *weight, slice.gram[0]);
        slice.gram = NULL;
    }
    slice.kind = features_branch_kind(head, &slice);
    return slice;
}

/* A product of `power` slices of a factor's form. */
typedef struct feature_product {
    feature_slice slice[POLYNOMIAL_MAX_DEGREE];
    fpa_number weight;
} feature_product;

/* The products whose sum a factor is, in their order. */
typedef struct factor_sum {
    int form, power, count;
    feature_product *products;
} factor_sum;

static feature_slice block_slice(int width, int block, int index)
{
    const int from = index * block;
    return (feature_slice){from, width - from < block ? width - from : block};
}

/* m! / prod mult! of a non-decreasing tuple: at most 16!, and an integer after every step. */
static fpa_number tuple_weight(const int *tuple, int power)
{
    int64_t weight = 1;
    for (int r = 0, run = 0; r < power; r++) {
        run = r && tuple[r] == tuple[r - 1] ? run + 1 : 1;
        weight = weight * (r + 1) / run;
    }
    return number_int(weight);
}

/* The next non-decreasing tuple in lexicographic order; false after the last. */
static bool next_tuple(int *tuple, int power, int blocks)
{
    for (int r = power - 1; r >= 0; r--)
        if (tuple[r] + 1 < blocks) {
            for (int j = power - 1; j >= r; j--)
                tuple[j] = tuple[r] + 1;
            return true;
        }
    return false;
}

/* Adds the square of a slice. */
static void add_square(factor_sum *sum, feature_slice slice)
{
    const int half = half_of(slice.width);
    const feature_slice low = {slice.from, half}, high = {slice.from + half, slice.width - half};
    if (!half) {
        sum->products[sum->count++] = (feature_product){.slice = {slice, slice}, .weight = number_int(1)};
        return;
    }
    sum->products[sum->count++] = (feature_product){.slice = {low, high}, .weight = number_int(2)};
    add_square(sum, low);
    add_square(sum, high);
}

static void add_tuples(factor_sum *sum, int width, int block, int blocks)
{
    int tuple[POLYNOMIAL_MAX_DEGREE] = {0};
    do {
        if (sum->power == 2 && tuple[0] == tuple[1]) {
            add_square(sum, block_slice(width, block, tuple[0]));
            continue;
        }
        feature_product *product = &sum->products[sum->count++];
        for (int r = 0; r < sum->power; r++)
            product->slice[r] = block_slice(width, block, tuple[r]);
        product->weight = tuple_weight(tuple, sum->power);
    } while (next_tuple(tuple, sum->power, blocks));
}

static bool expand_factor(const fpa_expression *e, const feature_factor *factor, int block, arena *memory,
                          factor_sum *sum)
{
    const int width = e->forms[factor->form].width;
    const double count = factor->power == 1 ? 1 : tuples_count(width, block, factor->power).terms;
    *sum = (factor_sum){.form = factor->form, .power = factor->power};
    sum->products = arena_array(memory, (size_t)count, sizeof *sum->products);
    if (!sum->products)
        return false;
    if (factor->power > 1)
        add_tuples(sum, width, block, factor->blocks);
    else
        sum->products[sum->count++] = (feature_product){.slice = {{0, width}}, .weight = number_int(1)};
    return true;
}

/* The term of one product of each factor. */
static bool build_term(const fpa_expression *e, fpa_head *head, const factor_sum *sums, const int *chosen,
                       int count, arena *memory, fpa_number weight)
{
    fpa_term *term = &head->terms[head->term_count];
    int degree = 0;
    for (int i = 0; i < count; i++)
        degree += sums[i].power;
    term->branches = arena_array(&head->memory, (size_t)degree, sizeof *term->branches);
    if (!term->branches)
        return false;
    for (int i = 0; i < count; i++) {
        const feature_product *product = &sums[i].products[chosen[i]];
        weight = number_mul(memory, weight, product->weight);
        for (int r = 0; r < sums[i].power; r++)
            term->branches[term->branch_count++] =
                slice_form(head, &e->forms[sums[i].form], product->slice[r], memory, &weight);
    }
    term->weight = number_copy(&head->memory, weight);
    head->term_count++;
    return true;
}

/* The next choice of one product of each factor, the last factor fastest; false after the last. */
static bool next_choice(int *chosen, const factor_sum *sums, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        if (++chosen[i] < sums[i].count)
            return true;
        chosen[i] = 0;
    }
    return false;
}

static bool build_monomial(const fpa_expression *e, int monomial, int block, fpa_head *head, arena *memory)
{
    feature_factor split[POLYNOMIAL_MAX_DEGREE];
    factor_sum sums[POLYNOMIAL_MAX_DEGREE] = {{0}};
    int chosen[POLYNOMIAL_MAX_DEGREE] = {0};
    const int count = split_factors(e, monomial, block, split);
    for (int i = 0; i < count; i++)
        if (!expand_factor(e, &split[i], block, memory, &sums[i]))
            return false;
    do
        if (!build_term(e, head, sums, chosen, count, memory, e->polynomial.weights[monomial]))
            return false;
    while (next_choice(chosen, sums, count));
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
    arena memory = {0};
    bool built = true;
    for (int m = 0; m < e->polynomial.count && built; m++)
        built = build_monomial(e, m, block, head, &memory);
    arena_free(&memory);
    return built;
}
