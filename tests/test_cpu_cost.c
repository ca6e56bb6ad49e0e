/* cpu_cost: seconds of CPUs, from a table and from counts. */
#include "gen/gen.h"
#include "gen/plan/c/work.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A processor whose figures are easy to divide by. */
static const fpa_cpu simple_cpu = {.name = "simple",
                                   .clock = 1e9,
                                   .multiply_adds = 2,
                                   .product_instructions = 1,
                                   .broadcast_instructions = 1,
                                   .passes = 2,
                                   .arithmetic = 1,
                                   .shuffles = 1,
                                   .roundings = 0.5,
                                   .loads = 2,
                                   .stores = 1,
                                   .instructions = 4,
                                   .latency = 4,
                                   .forward = 8,
                                   .call = 10,
                                   .exponential = 20,
                                   .registers = 16,
                                   .cache = {{1000, 64}, {10000, 32}, {100000, 16}},
                                   .between = 5,
                                   .memory = 4e9,
                                   .all_memory = 8e9,
                                   .region = 1e-6,
                                   .wait = 1e-6};

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* ---- the table ---- */

static void every_c_target_has_one_default_row_and_no_other_target_has_one(void **state)
{
    (void)state;
    for (int t = 0; t < target_count(); t++) {
        const fpa_target *target = target_at(t);
        int rows = 0;
        for (int i = 0; i < cpu_count(); i++) {
            char list[128], name[64];
            snprintf(list, sizeof list, " %s ", cpu_at(i)->serves);
            snprintf(name, sizeof name, " %s ", target->name);
            rows += strstr(list, name) != NULL;
        }
        assert_int_equal(rows, target->backend == BACKEND_C);
        assert_int_equal(cpu_of_target(target) != NULL, target->backend == BACKEND_C);
        assert_int_equal(cpu_here(target) != NULL, target->backend == BACKEND_C);
    }
    assert_null(cpu_at(cpu_count()));
}

static void check_row(const fpa_cpu *cpu)
{
    const double figures[] = {cpu->clock,     cpu->multiply_adds, cpu->product_instructions,
                              cpu->passes,    cpu->arithmetic,    cpu->broadcast_instructions,
                              cpu->shuffles,  cpu->roundings,     cpu->loads,
                              cpu->stores,    cpu->instructions,  cpu->latency,
                              cpu->forward,   cpu->call,          cpu->exponential,
                              cpu->registers, cpu->memory,        cpu->all_memory,
                              cpu->between,   cpu->region,        cpu->wait};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        assert_true(figures[i] > 0);
    for (int level = 1; level < CACHES; level++) {
        assert_true(cpu->cache[level].bytes > cpu->cache[level - 1].bytes);
        assert_true(cpu->cache[level].bandwidth <= cpu->cache[level - 1].bandwidth);
    }
    assert_true(cpu->cache[CACHE_THIRD].bandwidth * cpu->clock > cpu->memory);
}

static void rows_have_all_figures_and_registers_as_their_targets_have(void **state)
{
    (void)state;
    for (int i = 0; i < cpu_count(); i++) {
        const fpa_cpu *cpu = cpu_at(i);
        int targets = 0;
        check_row(cpu);
        for (int t = 0; t < target_count(); t++) {
            const fpa_target *target = target_at(t);
            if (strstr(cpu->targets, target->name)) {
                targets++;
                assert_int_equal(cpu->registers, target->registers);
            }
        }
        assert_true(targets > 0);
    }
}

/* ---- counts to seconds ---- */

static void the_busiest_kind_of_operations_is_what_a_run_takes(void **state)
{
    (void)state;
    fpa_cpu_loop loop = {.name = "product",
                         .runs = 10,
                         .steps = 100,
                         .step = {.multiply_adds = 24, .broadcasts = 6, .loads = 4},
                         .others = 4,
                         .chain = 1,
                         .first = 24,
                         .last = 24};
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 10 * 100 * 12.0)); /* 24 at 2 a cycle */
    loop.step.multiply_adds = 2; /* now 10 loads a step at 2 a cycle, and 24 before */
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 10 * (100 * 5 + 12.0)));
    loop.step.loads = loop.step.broadcasts = 0; /* now each step waits for the one before */
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 10 * 100 * 4.0));
    loop.forwards = 1;
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 10 * 100 * 12.0));
    loop.calls = 2;
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 10 * 100 * 20.0));
    loop.others = 198; /* with 2 multiply-adds: 50 cycles at 4 instructions, and 48 instructions a run */
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 10 * (100 * 50 + 12.0)));
}

static void vectors_of_half_the_width_take_one_of_two_passes(void **state)
{
    (void)state;
    const fpa_cpu_loop loop = {.runs = 1, .steps = 100, .step.stores = 1, .narrow.stores = 1};
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 150));
}

/* A line that comes takes the first-level cache at its own bandwidth, beside the stores. */
static void a_state_that_passes_waits_for_its_cache_or_for_stores(void **state)
{
    (void)state;
    fpa_cpu_loop loop = {.runs = 1, .steps = 100, .step = {.stores = 4}, .come = 64, .gone = 64, .set = 5000};
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 100 * (4 + 1)));
    loop.step.stores = 0; /* 64 bytes at 32 a cycle */
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 100 * 2));
    loop.set = 1e6; /* 128 bytes at 4 a cycle */
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 100 * 32));
    loop.gone = 0;
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 100 * 16));
    loop.set = 500;
    assert_true(cpu_loop_cycles(&simple_cpu, &loop) == 0);
}

static void data_come_from_the_nearest_cache_that_holds_what_is_walked(void **state)
{
    (void)state;
    const double cycles[] = {0, 6400 / 32.0, 6400 / 16.0, (6400 + 3200) / 4.0};
    double set = 1000;
    for (int level = 0; level <= CACHES; level++, set *= 10) {
        const fpa_cpu_data data = {"data", 6400, 3200, set};
        assert_true(is_near(cpu_data_cycles(&simple_cpu, &data, 1) + 1, cycles[level] + 1));
    }
    const fpa_cpu_data far = {"data", 6400, 3200, 1e6};
    assert_true(
        is_near(cpu_data_cycles(&simple_cpu, &far, 2), 9600 / 4.0)); /* each may have half of 8 GB/s */
    assert_true(is_near(cpu_data_cycles(&simple_cpu, &far, 4), 9600 / 2.0));
}

static void seconds_add_up_and_the_limit_is_what_takes_most(void **state)
{
    (void)state;
    fpa_cpu_work work = {.threads = 1};
    const fpa_cpu_loop loop = {.name = "a", .runs = 1000, .steps = 1, .step.multiply_adds = 2};
    cpu_work_loop(&work, loop);
    cpu_work_loop(&work, loop);
    assert_int_equal(work.loop_count, 1); /* alike */
    cpu_work_data(&work, (fpa_cpu_data){"b", 32000, 0, 5000});
    fpa_cost cost = cpu_cost(&simple_cpu, &work);
    assert_true(is_near(cost.seconds, 3000e-9));
    assert_string_equal(cost.limit, "multiply-adds");
    work.waits = 3;
    work.regions = 1;
    work.exchanged = 5000;
    cost = cpu_cost(&simple_cpu, &work);
    assert_true(is_near(cost.seconds, 8000e-9));
    assert_string_equal(cost.limit, "waits");
}

static void loops_without_room_are_united_and_take_as_long(void **state)
{
    fpa_cpu_work work = {.threads = 1};
    double cycles = 0;
    (void)state;
    for (int i = 0; i < 2 * CPU_LOOPS; i++) {
        const fpa_cpu_loop loop = {.name = i % 2 ? "odd" : "even",
                                   .runs = 1 + i % 3,
                                   .steps = 1 + i,
                                   .step = {.multiply_adds = 1 + i % 5},
                                   .last = i % 2};
        cycles += cpu_loop_cycles(&simple_cpu, &loop);
        cpu_work_loop(&work, loop);
    }
    assert_int_equal(work.loop_count, CPU_LOOPS);
    assert_true(is_near(cpu_cost(&simple_cpu, &work).seconds, 1e-9 * cycles));
    for (int i = 0; i < 2 * CPU_DATA; i++)
        cpu_work_data(&work, (fpa_cpu_data){"data", 32, 0, 5000});
    assert_int_equal(work.data_count, CPU_DATA);
    assert_true(is_near(cpu_cost(&simple_cpu, &work).seconds, 1e-9 * (cycles + 2 * CPU_DATA)));
}

/* Ten times as much of any count, in a loop that has of each kind: never less, and more in the end. */
static void seconds_grow_with_every_count(void **state)
{
    enum { OPERATIONS = sizeof(fpa_cpu_operations) / sizeof(double) };
    (void)state;
    const fpa_cpu_loop even = {.name = "even",
                               .runs = 10,
                               .steps = 10,
                               .step = {1, 1, 1, 1, 1, 1, 1},
                               .narrow = {1, 1, 1, 1, 1, 1, 1},
                               .others = 1,
                               .calls = 1,
                               .exponentials = 1,
                               .chain = 1,
                               .forwards = 1,
                               .first = 1,
                               .last = 1};
    const double before = cpu_loop_cycles(&simple_cpu, &even);
    double *counts[] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    for (int i = 0; i < OPERATIONS + 9; i++) {
        fpa_cpu_loop loop = even;
        double *const others[] = {&loop.runs,  &loop.steps,    &loop.others, &loop.calls, &loop.exponentials,
                                  &loop.chain, &loop.forwards, &loop.first,  &loop.last};
        memcpy(counts, others, sizeof others);
        double *count = i < OPERATIONS ? (double *)&loop.step + i : counts[i - OPERATIONS];
        double last = before;
        for (int times = 0; times < 4; times++) {
            *count *= 10;
            const double cycles = cpu_loop_cycles(&simple_cpu, &loop);
            assert_true(cycles >= last);
            last = cycles;
        }
        assert_true(last > before);
    }
}

/* ---- what the plan counts ---- */

struct made {
    fpa_head_list list;
    fpa_simplified simple;
    fpa_plan plan;
};

static void make(const char *spec, const char *target, struct made *m)
{
    fpa_error error = {0};
    *m = (struct made){0};
    if (spec_load_text("cost.lua", NULL, spec, strlen(spec), &m->list, &error) ||
        simplify(m->list.heads[0], &m->simple, &error) ||
        plan_choose(&m->simple, m->list.heads[0], target_find(target), &m->plan, &error))
        fail_msg("%s: %s", error.where, error.message);
}

static void unmake(struct made *m)
{
    plan_free(&m->plan);
    simplified_free(&m->simple);
    head_list_free(&m->list);
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
    struct made m;
    fpa_cpu_work work;
    (void)state;
    make(power2, "c:avx2", &m);
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
    unmake(&m);
}

/* Choosing a chunk asks for hundreds of calls; a head may have hundreds of thousands of features. */
static void a_call_is_counted_without_a_look_at_single_features(void **state)
{
    struct made m;
    (void)state;
    make(power2, "c:avx2", &m);
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
    unmake(&m);
}

static void seconds_grow_with_the_call(void **state)
{
    struct made m;
    (void)state;
    make(power2, "c:avx2", &m);
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
    unmake(&m);
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
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int t = 0; t < target_count(); t++) {
            struct made m;
            if (target_at(t)->backend != BACKEND_C)
                continue;
            make(specs[i], target_at(t)->name, &m);
            check_sizes(&m.plan);
            unmake(&m);
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
    (void)state;
    for (int degree = 1; degree <= 3; degree++)
        for (int t = 0; t < 4; t++) {
            char spec[128];
            struct made m;
            snprintf(spec, sizeof spec,
                     "return head { name = 'c', d = 32, dv = 32, terms = power { degree = %d } }", degree);
            make(spec, targets[t], &m);
            m.plan.c.team_by_chunk = true; /* all chunks are compared as if threads shared heads */
            const double least = three_heads(&m.plan, m.plan.chunk);
            for (int chunk = m.plan.c.tokens; chunk <= 16 * m.plan.c.tokens; chunk += m.plan.c.tokens)
                assert_true(least <= three_heads(&m.plan, chunk));
            unmake(&m);
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
    struct made m;
    (void)state;
    make(power2, "c:avx512", &m);
    const int64_t crossover = m.plan.facts.crossover;
    assert_true(crossover > m.plan.chunk && crossover < 4 * m.plan.features);
    assert_true(is_sooner_chunked(&m.plan, crossover) && is_sooner_chunked(&m.plan, 2 * crossover));
    assert_false(is_sooner_chunked(&m.plan, crossover - 1) || is_sooner_chunked(&m.plan, crossover / 2));
    unmake(&m);
    make("return head { name = 'p', d = 8, dv = 8, causal = false, terms = power { degree = 2 } }", "c:avx2",
         &m);
    assert_int_equal(m.plan.facts.crossover, 0);
    unmake(&m);
}

/* A chunk of a small head is not worth waiting for; one of a large head is. */
static void teams_share_heads_whose_work_is_worth_it(void **state)
{
    struct made m;
    (void)state;
    make("return head { name = 'l', d = 16, dv = 16, terms = linear {} }", "c:avx512", &m);
    assert_false(m.plan.c.team_by_chunk || m.plan.c.team_by_token);
    unmake(&m);
    make("return head { name = 'p', d = 64, dv = 64, terms = power { degree = 2 } }", "c:avx512", &m);
    assert_true(m.plan.c.team_by_chunk && m.plan.c.team_by_token);
    unmake(&m);
}

/* A state that is only read has half of the multiply-adds; recent tokens are scored. */
static void recent_tokens_are_counted_as_keys_beside_a_state_that_is_read(void **state)
{
    struct made m;
    fpa_cpu_work work;
    (void)state;
    make(power2, "c:avx2", &m);
    fpa_call_size size = call_of(FORM_RECURRENT, 1);
    size.state_in = true;
    size.recent = 60;
    work_of_call(&m.plan, 48, &size, 1, &work);
    assert_true(is_near(multiply_adds(&work, "state"), (double)m.plan.features * 4));
    assert_true(is_near(multiply_adds(&work, "dots"), (48 + 18) * 32)); /* 61 keys in tiles of 6, two lanes */
    unmake(&m);
}

/* ---- candidates ---- */

static void each_mechanism_is_a_candidate_or_says_why_not(void **state)
{
    static const char *const names[FORMS] = {"c_parallel", "c_chunked", "c_recurrent"};
    struct made m;
    fpa_candidate rows[8];
    (void)state;
    make(power2, "c:avx2", &m);
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
    unmake(&m);
    make("return head { name = 'p', d = 8, dv = 8, causal = false, terms = power { degree = 2 } }", "c:avx2",
         &m);
    const fpa_call_size size = call_of(FORM_CHUNKED, 512);
    plan_candidates_c(&m.plan, &size, rows, 8);
    assert_string_equal(rows[FORM_CHUNKED].refused, "the head is not causal");
    unmake(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_c_target_has_one_default_row_and_no_other_target_has_one),
        cmocka_unit_test(rows_have_all_figures_and_registers_as_their_targets_have),
        cmocka_unit_test(the_busiest_kind_of_operations_is_what_a_run_takes),
        cmocka_unit_test(vectors_of_half_the_width_take_one_of_two_passes),
        cmocka_unit_test(a_state_that_passes_waits_for_its_cache_or_for_stores),
        cmocka_unit_test(data_come_from_the_nearest_cache_that_holds_what_is_walked),
        cmocka_unit_test(seconds_add_up_and_the_limit_is_what_takes_most),
        cmocka_unit_test(loops_without_room_are_united_and_take_as_long),
        cmocka_unit_test(seconds_grow_with_every_count),
        cmocka_unit_test(products_are_counted_as_the_text_does_them),
        cmocka_unit_test(a_call_is_counted_without_a_look_at_single_features),
        cmocka_unit_test(seconds_grow_with_the_call),
        cmocka_unit_test(every_call_of_every_kind_of_head_has_seconds),
        cmocka_unit_test(the_chunk_is_the_one_with_the_fewest_seconds_a_token),
        cmocka_unit_test(from_the_crossover_on_the_chunked_form_takes_fewer_seconds),
        cmocka_unit_test(teams_share_heads_whose_work_is_worth_it),
        cmocka_unit_test(recent_tokens_are_counted_as_keys_beside_a_state_that_is_read),
        cmocka_unit_test(each_mechanism_is_a_candidate_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
