/* heads: heads built in C, and the formula evaluated on them, for tests. */
#ifndef FPAC_TESTS_HEADS_H
#define FPAC_TESTS_HEADS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/simplify/passes.h"

/* --- a small builder --- */

static inline fpa_head *new_head(int d)
{
    fpa_head *head = head_new();
    if (!head)
        abort();
    head->name = arena_string(&head->memory, "test");
    head->d = head->dv = d;
    return head;
}

static inline int add_matrix(fpa_head *head, fpa_matrix_kind kind, const char *name, int rows,
                             const double *data)
{
    fpa_matrix *longer = arena_array(&head->memory, (size_t)head->matrix_count + 1, sizeof *longer);
    if (head->matrix_count)
        memcpy(longer, head->matrices, (size_t)head->matrix_count * sizeof *longer);
    fpa_matrix *matrix = &longer[head->matrix_count];
    *matrix = (fpa_matrix){.kind = kind, .rows = rows, .cols = head->d};
    if (name)
        matrix->name = arena_string(&head->memory, name);
    if (data)
        matrix->data = arena_copy(&head->memory, data, (size_t)rows * (size_t)head->d * sizeof *data);
    head->matrices = longer;
    return head->matrix_count++;
}

/* Rows from..to-1 of a source; gram may be NULL. */
static inline fpa_branch rows_of(fpa_head *head, int source, int from, int to, const fpa_number *gram)
{
    fpa_branch branch = {.source = source, .width = to - from};
    if (source == FPA_INPUT)
        branch.kind = gram                   ? FPA_BRANCH_DIAGONAL
                      : to - from == head->d ? FPA_BRANCH_IDENTITY
                                             : FPA_BRANCH_SELECT;
    else
        branch.kind = head->matrices[source].data ? FPA_BRANCH_DENSE : FPA_BRANCH_TRAINABLE;
    branch.row = arena_array(&head->memory, (size_t)branch.width, sizeof *branch.row);
    for (int w = 0; w < branch.width; w++)
        branch.row[w] = from + w;
    if (gram)
        branch.gram = arena_copy(&head->memory, gram, (size_t)branch.width * sizeof *gram);
    return branch;
}

static inline void add_term(fpa_head *head, fpa_number weight, const fpa_branch *branches, int count)
{
    fpa_term *terms = head->terms;
    if ((head->term_count & (head->term_count - 1)) == 0) { /* full at powers of two */
        size_t room = head->term_count ? 2 * (size_t)head->term_count : 1;
        terms = arena_array(&head->memory, room, sizeof *terms);
        if (head->term_count)
            memcpy(terms, head->terms, (size_t)head->term_count * sizeof *terms);
    }
    head->terms = terms;
    terms[head->term_count].weight = weight;
    terms[head->term_count].branch_count = count;
    terms[head->term_count++].branches =
        arena_copy(&head->memory, branches, (size_t)count * sizeof *branches);
}

/* --- constructions of weight * (q.k)^p --- */

static inline fpa_branch block_of(fpa_head *head, int b, int block)
{
    int end = (b + 1) * block;
    return rows_of(head, FPA_INPUT, b * block, end < head->d ? end : head->d, NULL);
}

static inline fpa_number multinomial(fpa_head *head, const int *tuple, int p)
{
    fpa_number weight = number_int(1);
    for (int r = 0, run = 0; r < p; r++) {
        run = r && tuple[r] == tuple[r - 1] ? run + 1 : 1;
        weight = number_mul(&head->memory, weight, number_ratio(r + 1, run));
    }
    return weight;
}

static inline void add_power(fpa_head *head, int p, int block)
{
    fpa_branch branches[16];
    for (int r = 0; r < p; r++)
        branches[r] = rows_of(head, FPA_INPUT, 0, head->d, NULL);
    add_term(head, number_int(1), branches, p);
}

/* The next non-decreasing tuple of p blocks out of n. */
static inline bool next_tuple(int *tuple, int p, int n)
{
    int r = p - 1;
    while (r >= 0 && tuple[r] == n - 1)
        r--;
    for (int value = r >= 0 ? tuple[r] + 1 : 0, j = r; j >= 0 && j < p; j++)
        tuple[j] = value;
    return r >= 0;
}

static inline void add_tspow_full(fpa_head *head, int p, int block)
{
    int tuple[16] = {0}, n = (head->d + block - 1) / block;
    fpa_branch branches[16];
    do {
        for (int r = 0; r < p; r++)
            branches[r] = block_of(head, tuple[r], block);
        add_term(head, multinomial(head, tuple, p), branches, p);
    } while (next_tuple(tuple, p, n));
}

/* p - 1 blocks, and a last branch over all rows from the last of them on: weight sigma/(t+1) on
 * the block itself and sigma behind it. For p = 2 the paper's Appendix. */
static inline void add_tspow_merged(fpa_head *head, int p, int block)
{
    int tuple[16] = {0}, n = (head->d + block - 1) / block, d = head->d;
    fpa_branch branches[16];
    do {
        int last = tuple[p - 2], t = 0;
        fpa_number gram[1024];
        for (int r = 0; r < p - 1; r++) {
            branches[r] = block_of(head, tuple[r], block);
            t += tuple[r] == last;
        }
        fpa_number sigma = number_mul(&head->memory, multinomial(head, tuple, p - 1), number_int(p));
        for (int i = last * block; i < d; i++)
            gram[i - last * block] =
                i < (last + 1) * block ? number_div(&head->memory, sigma, number_int(t + 1)) : sigma;
        branches[p - 1] = rows_of(head, FPA_INPUT, last * block, d, gram);
        add_term(head, number_int(1), branches, p);
    } while (next_tuple(tuple, p - 1, n));
}

typedef void (*construction)(fpa_head *head, int p, int block);

static inline fpa_head *construct(construction add, int d, int p, int block, int wanted)
{
    fpa_head *head = new_head(d);
    head->block = wanted;
    add(head, p, block);
    return head;
}

/* --- the formula, straight --- */

typedef struct sum_value {
    double value, magnitude;
} sum_value;

/* Element of a matrix; run-time values follow from the name, the same in every head. */
static inline double element(const fpa_head *head, int source, int row, int col)
{
    const fpa_matrix *matrix = &head->matrices[source];
    if (matrix->data)
        return matrix->data[row * matrix->cols + col];
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL && row != col)
        return 0;
    uint64_t bits = hash_word(hash_word((uint64_t)matrix->name[0], (uint64_t)row), (uint64_t)col);
    return (double)(bits >> 11) * 0x1p-52 - 1;
}

static inline double project(const fpa_head *head, int source, int row, const double *x)
{
    double sum = 0;
    if (source == FPA_INPUT)
        return x[row];
    for (int c = 0; c < head->d; c++)
        sum += element(head, source, row, c) * x[c];
    return sum;
}

static inline sum_value branch_value(const fpa_head *head, const fpa_branch *branch, const double *q,
                                     const double *k)
{
    sum_value sum = {0, 0};
    for (int w = 0; w < branch->width; w++) {
        double gram = branch->gram ? branch->gram[w].value : 1;
        double product = gram * project(head, branch->source, branch->row[w], q) *
                         project(head, branch->source, branch->row[w], k);
        sum.value += product;
        sum.magnitude += fabs(product);
    }
    return sum;
}

static inline sum_value kernel_value(const fpa_head *head, const double *q, const double *k)
{
    sum_value sum = {0, 0};
    for (int t = 0; t < head->term_count; t++) {
        sum_value product = {head->terms[t].weight.value, fabs(head->terms[t].weight.value)};
        for (int b = 0; b < head->terms[t].branch_count; b++) {
            sum_value factor = branch_value(head, &head->terms[t].branches[b], q, k);
            product.value *= factor.value;
            product.magnitude *= factor.magnitude;
        }
        sum.value += product.value;
        sum.magnitude += product.magnitude;
    }
    return sum;
}

static inline double score_value(const fpa_simplified *simple, const double *q, const double *k)
{
    const fpa_score *score = &simple->score;
    double sum = 0;
    for (int i = 0; i < score->monomial_count; i++) {
        double product = score->monomials[i].weight.value;
        for (int f = 0; f < score->dot_count; f++)
            product *=
                pow(branch_value(simple->head, &score->dots[f], q, k).value, score->monomials[i].power[f]);
        sum += product;
    }
    return sum;
}

#endif
