#include "rows.h"

#include <stdlib.h>
#include <string.h>

/* ---- equal branches share a dot product ---- */

static bool same_gram(const fpa_branch *a, const fpa_branch *b)
{
    if (!a->gram || !b->gram)
        return a->gram == b->gram;
    for (int w = 0; a->gram != b->gram && w < a->width; w++)
        if (a->gram[w].value != b->gram[w].value)
            return false;
    return true;
}

static bool same_branch(const fpa_branch *a, const fpa_branch *b)
{
    return a->source == b->source && a->width == b->width &&
           (a->row == b->row || memcmp(a->row, b->row, (size_t)a->width * sizeof *a->row) == 0) &&
           same_gram(a, b);
}

/* A hash of rows and weights (FNV-1a). */
static uint64_t hash_branch(const fpa_branch *branch)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)(branch->source + 1);
    for (int w = 0; w < branch->width; w++) {
        uint64_t bits = 0;
        if (branch->gram)
            memcpy(&bits, &branch->gram[w].value, sizeof bits);
        hash = (hash ^ (uint64_t)branch->row[w]) * 0x100000001b3u;
        hash = (hash ^ bits ^ bits >> 32) * 0x100000001b3u;
    }
    return hash;
}

/* Fills a dot; rows of weight 0 are omitted. */
static bool fill_dot(fpa_rows *rows, const fpa_branch *branch, fpa_rows_dot *dot)
{
    *dot = (fpa_rows_dot){.branch = branch};
    dot->at = arena_array(&rows->memory, (size_t)branch->width, sizeof *dot->at);
    dot->weight =
        branch->gram ? arena_array(&rows->memory, (size_t)branch->width, sizeof *dot->weight) : NULL;
    if (!dot->at || (branch->gram && !dot->weight))
        return false;
    for (int w = 0; w < branch->width; w++) {
        if (branch->gram && branch->gram[w].value == 0)
            continue;
        if (branch->gram)
            dot->weight[dot->count] = branch->gram[w].value;
        dot->at[dot->count++] = rows->offset[branch->source + 1] + branch->row[w];
    }
    return true;
}

/* A hash table of dots by their branches: open addressing, at most half full. */
typedef struct dot_table {
    int *slots; /* index of a dot + 1; 0: free */
    size_t mask;
} dot_table;

/* The dot of a branch, a new one if no equal branch has one; -1: no memory. */
static int find_dot(fpa_rows *rows, const dot_table *table, const fpa_branch *branch)
{
    size_t slot = (size_t)hash_branch(branch) & table->mask;
    for (; table->slots[slot]; slot = (slot + 1) & table->mask)
        if (same_branch(rows->dots[table->slots[slot] - 1].branch, branch))
            return table->slots[slot] - 1;
    if (!fill_dot(rows, branch, &rows->dots[rows->dot_count]))
        return -1;
    table->slots[slot] = ++rows->dot_count;
    return rows->dot_count - 1;
}

/* Adds a term, unless it is 0. False: no memory. */
static bool add_term(fpa_rows *rows, const dot_table *table, const fpa_term *term)
{
    fpa_rows_term *to = &rows->terms[rows->term_count];
    bool zero = term->weight.value == 0;
    *to = (fpa_rows_term){.weight = term->weight.value, .count = term->branch_count};
    to->dot = arena_array(&rows->memory, (size_t)term->branch_count, sizeof *to->dot);
    if (!to->dot)
        return false;
    for (int l = 0; l < term->branch_count; l++) {
        to->dot[l] = find_dot(rows, table, &term->branches[l]);
        if (to->dot[l] < 0)
            return false;
        zero = zero || rows->dots[to->dot[l]].count == 0;
    }
    rows->term_count += !zero;
    return true;
}

static bool add_terms(fpa_rows *rows, const fpa_head *head)
{
    size_t branches = 0;
    dot_table table = {.mask = 1};
    bool done;
    for (int t = 0; t < head->term_count; t++)
        branches += (size_t)head->terms[t].branch_count;
    while (table.mask < 2 * branches)
        table.mask = 2 * table.mask + 1;
    table.slots = calloc(table.mask + 1, sizeof *table.slots);
    rows->dots = arena_array(&rows->memory, branches, sizeof *rows->dots);
    rows->terms = arena_array(&rows->memory, (size_t)head->term_count, sizeof *rows->terms);
    done = table.slots && rows->dots && rows->terms;
    for (int t = 0; t < head->term_count && done; t++)
        done = add_term(rows, &table, &head->terms[t]);
    free(table.slots);
    rows->value = done ? arena_array(&rows->memory, (size_t)rows->dot_count, sizeof *rows->value) : NULL;
    return rows->value != NULL;
}

fpa_status rows_make(const fpa_head *head, fpa_rows *rows, fpa_error *error)
{
    *rows = (fpa_rows){.total = head->d};
    rows->offset = arena_array(&rows->memory, (size_t)head->matrix_count + 1, sizeof *rows->offset);
    for (int m = 0; rows->offset && m < head->matrix_count && !head->lift; m++) {
        rows->offset[m + 1] = rows->total;
        rows->total += head->matrices[m].rows;
    }
    if (rows->offset && add_terms(rows, head))
        return FPA_OK;
    rows_free(rows);
    return fail_memory(error);
}

void rows_free(fpa_rows *rows)
{
    arena_free(&rows->memory);
    *rows = (fpa_rows){0};
}

double rows_features(const fpa_rows *rows)
{
    double features = 0;
    for (int t = 0; t < rows->term_count; t++) {
        double product = 1;
        for (int l = 0; l < rows->terms[t].count; l++)
            product *= rows->dots[rows->terms[t].dot[l]].count;
        features += product;
    }
    return features;
}

double rows_entry(const fpa_problem *problem, int matrix, int64_t head, int r, int c)
{
    const fpa_matrix *shape = &problem->head->matrices[matrix];
    int64_t slice = shape->per_head ? head : 0;
    switch (shape->kind) {
    case FPA_MATRIX_CONSTANT:
        return shape->data[(int64_t)r * shape->cols + c];
    case FPA_MATRIX_TRAINABLE:
        return problem->weights[matrix][(slice * shape->rows + r) * shape->cols + c];
    case FPA_MATRIX_TRAINABLE_DIAGONAL:
        return r == c ? problem->weights[matrix][slice * shape->cols + c] : 0;
    }
    return 0;
}

void rows_matrices(const fpa_problem *problem, int64_t head, double *to)
{
    const fpa_head *shape = problem->head;
    for (int m = 0; m < shape->matrix_count && !shape->lift; m++)
        for (int c = 0; c < shape->d; c++)
            for (int r = 0; r < shape->matrices[m].rows; r++)
                *to++ = rows_entry(problem, m, head, r, c);
}

bool problem_wants(const fpa_problem *problem, int64_t b, int64_t t, int64_t h)
{
    return !problem->wanted || problem->wanted[(b * problem->length + t) * problem->query_heads + h];
}
