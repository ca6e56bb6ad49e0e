/* cpu_cost: seconds of CPUs, from a table and from counts. */
#include "machine/cpu.h"
#include "machine/cpu_cost.h"
#include "machine/target.h"
#include "claims.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    const fpa_cpu_loop loop = {.runs = 1, .steps = 100, .step.stores = 1, .narrow.stores = 1};
    assert_true(is_near(cpu_loop_cycles(&simple_cpu, &loop), 150));
}

/* A line that comes takes the first-level cache at its own bandwidth, beside the stores. */
static void a_state_that_passes_waits_for_its_cache_or_for_stores(void **state)
{
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
