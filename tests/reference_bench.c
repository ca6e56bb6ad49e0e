#include "reference_bench.h"

#include <math.h>
#include <stdlib.h>

#include "head/lift.h"
#include "claims.h"
#include "random_head.h"

static double *numbers(random_source *random, int64_t count, bool positive)
{
    double *x = calloc((size_t)count + 1, sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = positive ? fabs(random_normal(random)) : random_normal(random);
    return x;
}

/* Positions up to hundreds, and a mask; of a head without a lift none. */
static void set_tokens(bench *b, const fpa_head *head, random_source *random)
{
    const int64_t tokens = BATCH * LENGTH, count = head->lift ? tokens * head->lift->positions : 0;
    if (count > 0) {
        b->positions = numbers(random, count, false);
        for (int64_t i = 0; i < count; i++)
            b->positions[i] = (double)(float)(100 * b->positions[i]);
    }
    if (!head->lift || !head->lift->key_mask)
        return;
    b->key_mask = calloc((size_t)tokens, 1);
    assert_non_null(b->key_mask);
    for (int64_t i = 0; i < tokens; i++)
        b->key_mask[i] = i % LENGTH < 2 || random_chance(random, 0.4) ? 0 : (unsigned char)(1 + i % 255);
}

void bench_setup(bench *b, const fpa_head *head, uint64_t seed, bool positive)
{
    random_source random = {seed};
    int64_t tokens = BATCH * LENGTH;
    *b = (bench){.outputs = tokens * QUERY_HEADS};
    b->q = numbers(&random, tokens * QUERY_HEADS * head_width(head), positive);
    b->k = numbers(&random, tokens * HEADS * head_width(head), positive);
    b->v = numbers(&random, tokens * HEADS * head->dv, positive);
    b->gate = numbers(&random, tokens * HEADS, true);
    for (int64_t i = 0; i < tokens * HEADS; i++)
        b->gate[i] *= -0.3;
    b->weights = calloc((size_t)head->matrix_count + 1, sizeof *b->weights);
    for (int m = 0; m < head->matrix_count; m++)
        if (head->matrices[m].kind != FPA_MATRIX_CONSTANT)
            b->weights[m] =
                numbers(&random, (int64_t)HEADS * head->matrices[m].rows * head->matrices[m].cols, positive);
    set_tokens(b, head, &random);
    b->o = calloc((size_t)(b->outputs * head->dv), sizeof(double));
    b->magnitude = calloc((size_t)(b->outputs * head->dv), sizeof(double));
    assert_true(b->o && b->magnitude && b->weights);
    b->problem = (fpa_problem){
        .head = head,
        .batch = BATCH,
        .length = LENGTH,
        .query_heads = QUERY_HEADS,
        .heads = HEADS,
        .q = b->q,
        .k = b->k,
        .v = b->v,
        .log_gate = head->gate ? b->gate : NULL,
        .positions = b->positions,
        .key_mask = b->key_mask,
        .weights = (const double *const *)b->weights,
    };
}

void bench_run(bench *b)
{
    fpa_error error;
    if (reference_forward(&b->problem, b->o, b->magnitude, &error) != FPA_OK)
        fail_msg("%s: %s", error.where, error.message);
}

void bench_expect_plain(const bench *b, double roundings)
{
    const int dv = b->problem.head->dv;
    float *o = calloc((size_t)(b->outputs * dv), sizeof *o);
    fpa_error error = {0};
    assert_non_null(o);
    for (int features = 0; features < 2; features++) {
        assert_int_equal(features ? reference_plain_features(&b->problem, dv, o, &error)
                                  : reference_plain(&b->problem, o, &error),
                         FPA_OK);
        for (int64_t i = 0; i < b->outputs * dv; i++)
            if (!(fabs((double)o[i] - b->o[i]) <= roundings * 0x1p-24 * b->magnitude[i] + 1e-30))
                fail_msg("%s, output %lld: %.9g is not %.9g; magnitude %g", features ? "features" : "scores",
                         (long long)i, (double)o[i], b->o[i], b->magnitude[i]);
    }
    free(o);
}

void bench_free(bench *b)
{
    for (int m = 0; m < b->problem.head->matrix_count; m++)
        free(b->weights[m]);
    free(b->weights);
    free(b->q);
    free(b->k);
    free(b->v);
    free(b->gate);
    free(b->positions);
    free(b->key_mask);
    free(b->o);
    free(b->magnitude);
}

fpa_head *bench_head(int terms)
{
    fpa_head *head = head_new();
    assert_non_null(head);
    head->name = arena_string(&head->memory, "test");
    head->d = D;
    head->dv = DV;
    head->term_count = terms;
    head->terms = arena_array(&head->memory, (size_t)terms, sizeof *head->terms);
    for (int t = 0; t < terms; t++)
        head->terms[t].weight = number_int(1);
    return head;
}

fpa_branch *bench_branch(fpa_head *head, int t, int source, int first, int width)
{
    fpa_term *term = &head->terms[t];
    fpa_branch *branch;
    if (!term->branches)
        term->branches = arena_array(&head->memory, 4, sizeof *term->branches);
    branch = &term->branches[term->branch_count++];
    *branch = (fpa_branch){.kind = FPA_BRANCH_SELECT, .source = source, .width = width};
    branch->row = arena_array(&head->memory, (size_t)width, sizeof(int));
    for (int w = 0; w < width; w++)
        branch->row[w] = first + w;
    return branch;
}

fpa_head *power_head(int degree)
{
    fpa_head *head = bench_head(1);
    for (int l = 0; l < degree; l++)
        bench_branch(head, 0, FPA_INPUT, 0, D);
    return head;
}
