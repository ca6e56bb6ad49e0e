/* What a plan counts of a call for the model of CPUs, and what is chosen by it. */
#include "gen/gen.h"
#include "gen/plan/c/work.h"
#include "claims.h"
#include "planned.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static const char power2[] = "return head { name = 'p', d = 32, dv = 32, terms = power { degree = 2 } }";

static fpa_call_size call_of(int form, int64_t length)
{
    return (fpa_call_size){.form = form, .batch = 1, .length = length, .query_heads = 1, .heads = 1};
}

/* Multiply-adds of the loops of a name. */
static double multiply_adds(const fpa_cpu_work *work, const char *name)
{
    double sum = 0;
    for (int i = 0; i < work->loop_count; i++)
        if (strcmp(work->loop[i].name, name) == 0)
            sum += work->loop[i].runs * work->loop[i].steps *
                   (work->loop[i].step.multiply_adds + work->loop[i].narrow.multiply_adds);
    return sum;
}

/* d = dv = 32 and vectors of 8: a product of 48 tokens, 48 rows and 32 columns is 48 * 48 * 4 vectors. */
static void products_are_counted_as_the_text_does_them(void **state)
{
    planned_head m;
    fpa_cpu_work work;
    planned_spec(&m, power2, "c:avx2");
    const double features = (double)m.plan.features;
    fpa_call_size size = call_of(FORM_CHUNKED, 480);
    work_of_call(&m.plan, 48, &size, 1, &work);
    assert_true(is_near(multiply_adds(&work, "query"), 9 * 48 * features * 4));  /* not of the first chunk */
    assert_true(is_near(multiply_adds(&work, "update"), 9 * 48 * features * 4)); /* not of the last */
    size.state_in = size.state_out = true;
    work_of_call(&m.plan, 48, &size, 1, &work);
    assert_true(is_near(multiply_adds(&work, "query"), 480 * features * 4));
    assert_true(is_near(multiply_adds(&work, "update"), 480 * features * 4));
    work_of_call(&m.plan, 96, &size, 1,
                 &work); /* five chunks of two panels: a whole square and two halves each */
    const double dots = multiply_adds(&work, "dots"), square = 48 * 32 * 48 / 8;
    assert_true(dots > 5 * 2 * square && dots < 5 * 3 * square);
    size = call_of(FORM_RECURRENT, 100);
    work_of_call(&m.plan, 48, &size, 1, &work);
    assert_true(is_near(multiply_adds(&work, "state"), 100 * features * 2 * 4));
    planned_free(&m);
}

/* Choosing a chunk asks for hundreds of calls; a head may have hundreds of thousands of features. */
static void a_call_is_counted_without_a_look_at_single_features(void **state)
{
    planned_head m;
    planned_spec(&m, power2, "c:avx2");
    const fpa_cpu *cpu = cpu_of_target(m.plan.target);
    fpa_piece *pieces = m.plan.pieces;
    fpa_tile *tiles = m.plan.c.tiles;
    for (int form = 0; form < FORMS; form++) {
        const fpa_call_size size = call_of(form, 500);
        const double seconds = work_cost(&m.plan, 48, cpu, &size, 1).seconds;
        m.plan.pieces = NULL;
        m.plan.c.tiles = NULL;
        assert_true(work_cost(&m.plan, 48, cpu, &size, 1).seconds == seconds);
        m.plan.pieces = pieces;
        m.plan.c.tiles = tiles;
    }
    planned_free(&m);
}

static void seconds_grow_with_the_call(void **state)
{
    planned_head m;
    planned_spec(&m, power2, "c:avx2");
    const fpa_cpu *cpu = cpu_of_target(m.plan.target);
    for (int form = 0; form < FORMS; form++) {
        fpa_call_size size = call_of(form, 1000), longer = size, more = size;
        const double seconds = work_cost(&m.plan, 48, cpu, &size, 1).seconds;
        longer.length = 2000;
        more.heads = more.query_heads = 4;
        size.batch = 3;
        assert_true(work_cost(&m.plan, 48, cpu, &longer, 1).seconds > 1.9 * seconds);
        assert_true(work_cost(&m.plan, 48, cpu, &more, 1).seconds > 3.9 * seconds);
        assert_true(work_cost(&m.plan, 48, cpu, &size, 1).seconds > 2.9 * seconds);
        const double two = work_cost(&m.plan, 48, cpu, &more, 2).seconds;
        assert_true(two > 1.9 * seconds && two < 2.2 * seconds); /* four heads, two a thread */
    }
    planned_free(&m);
}

static void check_sizes(const fpa_plan *plan)
{
    static const int64_t lengths[] = {1, 47, 48, 96, 145, 1000};
    const fpa_cpu *cpu = cpu_of_target(plan->target);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int form = 0; form < FORMS; form++)
            for (int bits = 0; bits < 8; bits++) {
                fpa_call_size size = call_of(form, lengths[i]);
                size.state_in = bits & 1;
                size.state_out = bits & 2;
                size.recent = form == FORM_RECURRENT && bits & 4 ? 47 : 0;
                size.query_heads = bits & 4 ? 3 : 1;
                for (int threads = 1; threads <= 4; threads++) {
                    const double seconds = work_cost(plan, plan->chunk, cpu, &size, threads).seconds;
                    assert_true(isfinite(seconds) && seconds > 0);
                }
            }
}

static void every_call_of_every_kind_of_head_has_seconds(void **state)
{
    static const char *const specs[] = {
        "return head { name = 'one', d = 3, dv = 2, terms = linear {} }",
        "return head { name = 'wide', d = 40, dv = 130, gate = true, normalize = 'sum', terms = linear {} }",
        "return head { name = 'pairs', d = 32, dv = 32, dtype = 'bf16', terms = power { degree = 2 } }",
        "return head { name = 'f16', d = 16, dv = 24, dtype = 'f16', terms = taylor { degree = 2 } }",
        "return head { name = 'dense', d = 8, dv = 8, terms = { term { dense(orthogonal { rows = 3, d = 8, "
        "seed = 1 }), dense(orthogonal { rows = 5, d = 8, seed = 2 }), identity() } } }",
        "return head { name = 'trainable', d = 8, dv = 8, terms = { term { trainable { name = 'a', rows = 3 "
        "} } } }",
        "return head { name = 'table', d = 32, dv = 16, terms = power { degree = 3 } }",
        "return head { name = 'constant', d = 4, dv = 4, terms = { term {} } }",
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int t = 0; t < target_count(); t++) {
            planned_head m;
            if (target_at(t)->backend != BACKEND_C)
                continue;
            planned_spec(&m, specs[i], target_at(t)->name);
            check_sizes(&m.plan);
            planned_free(&m);
        }
}

static double chunk_seconds(const fpa_plan *plan, int chunk, int threads)
{
    const fpa_cpu *cpu = cpu_of_target(plan->target);
    const fpa_call_size one = call_of(FORM_CHUNKED, chunk), two = call_of(FORM_CHUNKED, 2 * (int64_t)chunk);
    return (work_cost(plan, chunk, cpu, &two, threads).seconds -
            work_cost(plan, chunk, cpu, &one, threads).seconds) /
           chunk;
}

/* Of three heads on two threads. */
static double three_heads(const fpa_plan *plan, int chunk)
{
    const double alone = chunk_seconds(plan, chunk, 1), shared = chunk_seconds(plan, chunk, 2);
    return alone + fmin(alone, shared);
}

static void the_chunk_is_the_one_with_the_fewest_seconds_a_token(void **state)
{
    static const char *const targets[] = {"c:sse2", "c:avx2", "c:avx512", "c:neon"};
    for (int degree = 1; degree <= 3; degree++)
        for (int t = 0; t < 4; t++) {
            char spec[128];
            planned_head m;
            snprintf(spec, sizeof spec,
                     "return head { name = 'c', d = 32, dv = 32, terms = power { degree = %d } }", degree);
            planned_spec(&m, spec, targets[t]);
            m.plan.c.team_by_chunk = true; /* all chunks are compared as if threads shared heads */
            const double least = three_heads(&m.plan, m.plan.chunk);
            for (int chunk = m.plan.c.tokens; chunk <= 16 * m.plan.c.tokens; chunk += m.plan.c.tokens)
                assert_true(least <= three_heads(&m.plan, chunk));
            planned_free(&m);
        }
}

static bool is_sooner_chunked(const fpa_plan *plan, int64_t length)
{
    const fpa_cpu *cpu = cpu_of_target(plan->target);
    const fpa_call_size chunked = call_of(FORM_CHUNKED, length), parallel = call_of(FORM_PARALLEL, length);
    return work_cost(plan, plan->chunk, cpu, &chunked, 1).seconds <
           work_cost(plan, plan->chunk, cpu, &parallel, 1).seconds;
}

static void from_the_crossover_on_the_chunked_form_takes_fewer_seconds(void **state)
{
    planned_head m;
    planned_spec(&m, power2, "c:avx512");
    const int64_t crossover = m.plan.facts.crossover;
    assert_true(crossover > m.plan.chunk && crossover < 4 * m.plan.features);
    assert_true(is_sooner_chunked(&m.plan, crossover) && is_sooner_chunked(&m.plan, 2 * crossover));
    assert_false(is_sooner_chunked(&m.plan, crossover - 1) || is_sooner_chunked(&m.plan, crossover / 2));
    planned_free(&m);
    planned_spec(&m,
                 "return head { name = 'p', d = 8, dv = 8, causal = false, terms = power { degree = 2 } }",
                 "c:avx2");
    const int64_t open = m.plan.facts.crossover;
    assert_true(open > 1 && is_sooner_chunked(&m.plan, open) && !is_sooner_chunked(&m.plan, open - 1));
    planned_free(&m);
}

/* All queries and all keys go through the state, a chunk's own pairs nowhere; a team waits for each walk of a chunk. */
static void without_a_mask_a_chunk_has_no_pairs(void **state)
{
    planned_head m, causal;
    fpa_cpu_work work, with;
    planned_spec(&m,
                 "return head { name = 'p', d = 32, dv = 32, causal = false, terms = power { degree = 2 } }",
                 "c:avx2");
    planned_spec(&causal, "return head { name = 'p', d = 32, dv = 32, terms = power { degree = 2 } }",
                 "c:avx2");
    const fpa_call_size size = call_of(FORM_CHUNKED, 960);
    work_of_call(&m.plan, 96, &size, 1, &work);
    work_of_call(&causal.plan, 96, &size, 1, &with);
    assert_true(multiply_adds(&work, "dots") == 0 && multiply_adds(&with, "dots") > 0);
    /* the causal form's first chunk reads no state, its last one writes none */
    assert_true(is_near(multiply_adds(&work, "state") * 9, multiply_adds(&with, "state") * 10));
    assert_true(m.plan.facts.flop[FORM_CHUNKED] < causal.plan.facts.flop[FORM_CHUNKED]);
    planned_free(&causal);
    planned_free(&m);
}

/* A chunk of a small head is not worth waiting for; one of a large head is. */
static void teams_share_heads_whose_work_is_worth_it(void **state)
{
    planned_head m;
    planned_spec(&m, "return head { name = 'l', d = 16, dv = 16, terms = linear {} }", "c:avx512");
    assert_false(m.plan.c.team_by_chunk || m.plan.c.team_by_token);
    planned_free(&m);
    planned_spec(&m, "return head { name = 'p', d = 64, dv = 64, terms = power { degree = 2 } }", "c:avx512");
    assert_true(m.plan.c.team_by_chunk && m.plan.c.team_by_token);
    planned_free(&m);
}

/* A state that is only read has half of the multiply-adds; recent tokens are scored. */
static void recent_tokens_are_counted_as_keys_beside_a_state_that_is_read(void **state)
{
    planned_head m;
    fpa_cpu_work work;
    planned_spec(&m, power2, "c:avx2");
    fpa_call_size size = call_of(FORM_RECURRENT, 1);
    size.state_in = true;
    size.recent = 60;
    work_of_call(&m.plan, 48, &size, 1, &work);
    assert_true(is_near(multiply_adds(&work, "state"), (double)m.plan.features * 4));
    const int tokens = m.plan.c.tokens, whole = m.plan.c.whole_scores.rows,
              rows = whole ? whole : m.plan.c.scores.rows; /* 61 keys in panels of whole tiles, two lanes */
    const int keys = 61 / tokens * tokens + (61 % tokens + rows - 1) / rows * rows;
    assert_true(is_near(multiply_adds(&work, "dots"), keys * 32));
    planned_free(&m);
}

/* ---- candidates ---- */

static void each_mechanism_is_a_candidate_or_says_why_not(void **state)
{
    static const char *const names[FORMS] = {"c_parallel", "c_chunked", "c_recurrent"};
    planned_head m;
    fpa_candidate rows[8];
    planned_spec(&m, power2, "c:avx2");
    for (int form = 0; form < FORMS; form++) {
        const fpa_call_size size = call_of(form, 512);
        assert_int_equal(plan_candidates_c(&m.plan, &size, rows, 8), FORMS);
        for (int i = 0; i < FORMS; i++) {
            assert_string_equal(rows[i].mechanism, names[i]);
            assert_int_equal(rows[i].refused == NULL, i == form);
            assert_int_equal(rows[i].cost.seconds > 0, i == form);
        }
        assert_int_equal(plan_candidates_c(&m.plan, &size, rows, 2), 2);
    }
    planned_free(&m);
    planned_spec(&m,
                 "return head { name = 'p', d = 8, dv = 8, causal = false, terms = power { degree = 2 } }",
                 "c:avx2");
    fpa_call_size size = call_of(FORM_CHUNKED, 512);
    plan_candidates_c(&m.plan, &size, rows, 8);
    assert_null(rows[FORM_CHUNKED].refused);
    size.form = FORM_RECURRENT;
    plan_candidates_c(&m.plan, &size, rows, 8);
    assert_string_equal(rows[FORM_RECURRENT].refused, "the head is not causal");
    planned_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_counted_as_the_text_does_them),
        cmocka_unit_test(a_call_is_counted_without_a_look_at_single_features),
        cmocka_unit_test(seconds_grow_with_the_call),
        cmocka_unit_test(every_call_of_every_kind_of_head_has_seconds),
        cmocka_unit_test(the_chunk_is_the_one_with_the_fewest_seconds_a_token),
        cmocka_unit_test(from_the_crossover_on_the_chunked_form_takes_fewer_seconds),
        cmocka_unit_test(without_a_mask_a_chunk_has_no_pairs),
        cmocka_unit_test(teams_share_heads_whose_work_is_worth_it),
        cmocka_unit_test(recent_tokens_are_counted_as_keys_beside_a_state_that_is_read),
        cmocka_unit_test(each_mechanism_is_a_candidate_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
