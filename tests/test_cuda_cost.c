/* The table of GPUs, and seconds that kernels take by it. */
#include "machine/cuda_cost.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "claims.h"
#include "random_work.h"

enum { SEED = 20261123, RANDOM_LOADS = 20000 };
#define ROUNDING (8 * DBL_EPSILON) /* of a few operations */

static void expect_near(double is, double expected)
{
    if (!(fabs(is - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%g instead of %g", is, expected);
}

/* ---- the table ---- */

static void every_row_is_complete_and_found_by_its_name(void **state)
{
    assert_true(gpu_count() > 0);
    assert_null(gpu_at(-1));
    assert_null(gpu_at(gpu_count()));
    assert_null(gpu_find("no such"));
    for (int i = 0; i < gpu_count(); i++) {
        const fpa_gpu *gpu = gpu_at(i);
        assert_ptr_equal(gpu_find(gpu->name), gpu);
        assert_true(gpu->multiprocessors > 0 && gpu->threads > 0 && gpu->shared_memory > 0);
        assert_true(gpu->clock > 0 && gpu->products > 0 && gpu->sustained > 0);
        assert_true(gpu->memory > 0 && gpu->cache > gpu->memory / 2 && gpu->cache_size > 0);
    }
}

/* Code of a target runs on its capability and above, so that its row may be of a lesser GPU, never of a greater. */
static void every_cuda_target_has_a_default_row(void **state)
{
    int targets = 0;
    for (int i = 0; i < target_count(); i++) {
        const fpa_target *target = target_at(i);
        if (target->backend != BACKEND_CUDA)
            continue;
        const fpa_gpu *gpu = gpu_of_target(target);
        assert_non_null(gpu);
        assert_true(gpu->capability <= target->capability);
        assert_true(gpu->warpgroup_products > 0 || !target->warpgroups);
        targets++;
    }
    assert_true(targets > 0);
}

static void a_device_gets_its_own_row_or_its_capabilitys(void **state)
{
    static const struct {
        const char *device;
        int capability;
        const char *row;
    } devices[] = {
        {"NVIDIA H200", 90, "h200"},
        {"NVIDIA H100 80GB HBM3", 90, "h100"},
        {"NVIDIA A100-SXM4-80GB", 80, "a100"},
        {"NVIDIA A10", 86, "a10"},
        {"NVIDIA L40S", 89, "l40s"},
        {"NVIDIA B200", 100, "b200"},
        {"NVIDIA RTX PRO 6000 Blackwell Server Edition", 120, "rtx-pro-6000"},
        {"a device that nobody knows", 80, "a100"},
        {"a device that nobody knows", 90, "h200"},
        {"a device that nobody knows", 121, "rtx-pro-6000"},
        {"a device that nobody knows", 87, "a10"},
        {"a device that nobody knows", 75, "a100"},
        {NULL, 90, "h200"},
    };
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        assert_string_equal(gpu_of_device(devices[i].device, devices[i].capability)->name, devices[i].row);
}

/* ---- clocks ---- */

static const double many_warps = 1e12; /* of which no latency is seen */

static double clocks(fpa_cuda_sum sum, bool warpgroups, double warps)
{
    return cuda_clocks(gpu_find("h200"), &sum, warpgroups, warps);
}

static void one_resource_alone_takes_its_own_clocks(void **state)
{
    expect_near(clocks((fpa_cuda_sum){.products = 1000}, true, 12), 1000);
    expect_near(clocks((fpa_cuda_sum){.products = 1000}, false, 12), 1500);
    expect_near(clocks((fpa_cuda_sum){.shared = 1000}, true, 12), 1000);
    expect_near(clocks((fpa_cuda_sum){.instructions = 1000}, true, many_warps), 250);
    expect_near(clocks((fpa_cuda_sum){.awaited = 1200}, true, 12), 100);
    expect_near(clocks((fpa_cuda_sum){.bytes = 1000, .cached = 1000}, true, 12), 0); /* left out */
}

/* A warp's instruction waits four clocks for the one before, however few warps there are. */
static void few_warps_do_not_hide_the_latency_of_instructions(void **state)
{
    expect_near(clocks((fpa_cuda_sum){.instructions = 1000}, false, 1), hypot(4000, 250));
    expect_near(clocks((fpa_cuda_sum){.instructions = 1000}, false, 4), hypot(1000, 250));
    expect_near(clocks((fpa_cuda_sum){.instructions = 1000}, false, 0), hypot(4000, 250));
}

static fpa_cuda_sum random_sum(uint64_t *seed)
{
    const struct fpa_cuda_work work = random_counts(seed);
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &work, 1);
    return sum;
}

static void clocks_lie_between_the_greatest_and_the_sum(void **state)
{
    uint64_t seed = SEED;
    for (int i = 0; i < RANDOM_LOADS; i++) {
        const fpa_cuda_sum sum = random_sum(&seed);
        const double tensor = clocks((fpa_cuda_sum){.products = sum.products}, true, 12);
        const double shared = clocks((fpa_cuda_sum){.shared = sum.shared}, true, 12);
        const double instructions =
            clocks((fpa_cuda_sum){.instructions = sum.instructions, .awaited = sum.awaited}, true, 12);
        const double all = clocks(sum, true, 12);
        assert_true(all >= fmax(fmax(tensor, shared), instructions) * (1 - ROUNDING));
        assert_true(all <= tensor + shared + instructions);
    }
}

static void sums_add_what_is_done_so_often(void **state)
{
    const struct fpa_cuda_work work = {
        .products = 1, .shared = 20, .instructions = 300, .bytes = 4000, .cached = 6, .awaited = 8};
    fpa_cuda_sum sum = {.products = 5, .shared = 5, .instructions = 5, .bytes = 5};
    cuda_sum_add(&sum, &work, 2.5);
    expect_near(sum.products, 7.5);
    expect_near(sum.shared, 55);
    expect_near(sum.instructions, 755);
    expect_near(sum.bytes, 10005);
    expect_near(sum.cached, 15);
    expect_near(sum.awaited, 20);
}

/* ---- seconds ---- */

static fpa_cuda_launch_load random_load(uint64_t *seed)
{
    fpa_cuda_launch_load load = {.all = random_sum(seed), .warpgroups = next_random(seed) % 2};
    load.share = 1 / (double)(1 + next_random(seed) % 132);
    load.warps = (double)(1 + next_random(seed) % 64);
    load.trips = (double)(next_random(seed) % 5);
    return load;
}

enum { COUNTS = 8 };

/* A count of a load that may be doubled. */
static double *count_of(fpa_cuda_launch_load *load, int i)
{
    double *const counts[COUNTS] = {&load->all.products, &load->all.shared, &load->all.instructions,
                                    &load->all.bytes,    &load->all.cached, &load->all.awaited,
                                    &load->share,        &load->trips};
    return i < COUNTS ? counts[i] : NULL;
}

static void seconds_grow_with_every_count(void **state)
{
    const fpa_gpu *gpu = gpu_find("h200");
    uint64_t seed = SEED;
    int grew[COUNTS] = {0};
    for (int n = 0; n < RANDOM_LOADS; n++) {
        fpa_cuda_launch_load load = random_load(&seed);
        const double before = cuda_seconds(gpu, &load).seconds;
        assert_true(isfinite(before) && before > 0);
        for (int i = 0; count_of(&load, i); i++) {
            fpa_cuda_launch_load more = load;
            *count_of(&more, i) *= 2;
            const double after = cuda_seconds(gpu, &more).seconds;
            assert_true(after >= before * (1 - ROUNDING));
            grew[i] += after > before;
        }
    }
    for (int i = 0; i < COUNTS; i++) /* where power is no limit, and trips are not 0 */
        assert_true(grew[i] > RANDOM_LOADS / 2);
}

static void fewer_warps_take_longer(void **state)
{
    const fpa_gpu *gpu = gpu_find("h200");
    fpa_cuda_launch_load load = {.all.instructions = 1e6, .share = 1.0 / 132};
    double last = INFINITY;
    for (load.warps = 1; load.warps <= 64; load.warps *= 2) {
        const double seconds = cuda_seconds(gpu, &load).seconds;
        assert_true(seconds < last);
        last = seconds;
    }
}

static void nothing_takes_no_time(void **state)
{
    const fpa_cuda_launch_load load = {.share = 0};
    for (int i = 0; i < gpu_count(); i++)
        assert_true(cuda_seconds(gpu_at(i), &load).seconds == 0);
}

/* By hand, on the row of an H200. */
static void memory_cache_and_power_are_of_the_whole_gpu(void **state)
{
    const fpa_gpu *gpu = gpu_find("h200");
    const fpa_cuda_launch_load memory = {.all.bytes = 4257e6, .share = 1};
    const fpa_cuda_launch_load cached = {.all.cached = 5300e6, .share = 1};
    const fpa_cuda_launch_load power = {
        .all.products = 731e9 / 4096, .share = 1.0 / 132, .warpgroups = true, .warps = 12};
    const fpa_cuda_launch_load trips = {.trips = 3};
    expect_near(cuda_seconds(gpu, &memory).seconds, 1e-3);
    expect_near(cuda_seconds(gpu, &cached).seconds, 1e-3);
    expect_near(cuda_seconds(gpu, &power).seconds, 1e-3);
    expect_near(cuda_seconds(gpu, &trips).seconds, 3 * 0.65e-6);
}

static void memory_joins_by_third_powers(void **state)
{
    const fpa_gpu *gpu = gpu_find("h200");
    fpa_cuda_launch_load load = {.all.shared = 2e6, .all.bytes = 4e9, .share = 1};
    const double own = 2e6 / gpu->clock, memory = 4e9 / gpu->memory;
    expect_near(cuda_seconds(gpu, &load).seconds, cbrt(own * own * own + memory * memory * memory));
}

static void the_limit_is_what_takes_most(void **state)
{
    static const struct {
        fpa_cuda_launch_load load;
        const char *limit;
    } loads[] = {
        {{.all = {1e6, 1e5, 1e5, 1e5}, .share = 1, .warps = 12}, "tensor cores"},
        {{.all = {1e5, 1e6, 1e5, 1e5}, .share = 1, .warps = 12}, "shared memory"},
        {{.all = {1e5, 1e5, 1e7, 1e5}, .share = 1, .warps = 64}, "instructions"},
        {{.all = {1e5, 1e5, 1e7, 1e5}, .share = 1, .warps = 4}, "latency of instructions"},
        {{.all = {1e5, 1e5, 1e5, 1e12}, .share = 1, .warps = 12}, "device memory"},
        {{.all = {1e9, 1e5, 1e5, 1e5}, .share = 1.0 / 132, .warps = 12, .warpgroups = true},
         "power of the GPU"},
        {{.all = {10, 10, 10, 10}, .share = 1, .warps = 12, .trips = 4}, "round trips to memory"},
    };
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        assert_string_equal(cuda_seconds(gpu_find("h200"), &loads[i].load).limit, loads[i].limit);
}

static void launches_one_after_the_other_add_up(void **state)
{
    const fpa_cost one = {1, "one"}, two = {2, "two"};
    assert_true(cost_then(one, two).seconds == 3 && cost_then(two, one).seconds == 3);
    assert_string_equal(cost_then(one, two).limit, "two");
    assert_string_equal(cost_then(two, one).limit, "two");
}

/* ---- shares ---- */

static void shares_of_whole_and_broken_waves(void **state)
{
    assert_true(cuda_share(0, 132, 1) == 0);
    expect_near(cuda_share(1, 132, 1), 1);
    expect_near(cuda_share(66, 132, 1), 1.0 / 66); /* half of the multiprocessors have nothing */
    expect_near(cuda_share(132, 132, 1), 1.0 / 132);
    expect_near(cuda_share(133, 132, 2), 2.0 / 133); /* two on one, one on the others */
    expect_near(cuda_share(264, 132, 2), 1.0 / 132);
    expect_near(cuda_share(264, 132, 1), 1.0 / 132);   /* two whole waves */
    expect_near(cuda_share(198, 132, 1), 1.75 / 198);  /* between one and a half and two */
    expect_near(cuda_share(396, 132, 2), 3.5 / 396);   /* the same, two at a time */
    expect_near(cuda_share(13200, 132, 1), 1.0 / 132); /* a hundred */
}

static void no_multiprocessor_has_less_than_its_part_nor_more_than_all(void **state)
{
    uint64_t seed = SEED;
    for (int i = 0; i < RANDOM_LOADS; i++) {
        const double blocks = (double)(1 + next_random(&seed) % 100000);
        const double multiprocessors = (double)(1 + next_random(&seed) % 200);
        const double resident = (double)(1 + next_random(&seed) % 8);
        const double share = cuda_share(blocks, multiprocessors, resident);
        assert_true(share >= (1 - ROUNDING) / multiprocessors && share <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete_and_found_by_its_name),
        cmocka_unit_test(every_cuda_target_has_a_default_row),
        cmocka_unit_test(a_device_gets_its_own_row_or_its_capabilitys),
        cmocka_unit_test(one_resource_alone_takes_its_own_clocks),
        cmocka_unit_test(few_warps_do_not_hide_the_latency_of_instructions),
        cmocka_unit_test(clocks_lie_between_the_greatest_and_the_sum),
        cmocka_unit_test(sums_add_what_is_done_so_often),
        cmocka_unit_test(seconds_grow_with_every_count),
        cmocka_unit_test(fewer_warps_take_longer),
        cmocka_unit_test(nothing_takes_no_time),
        cmocka_unit_test(memory_cache_and_power_are_of_the_whole_gpu),
        cmocka_unit_test(memory_joins_by_third_powers),
        cmocka_unit_test(the_limit_is_what_takes_most),
        cmocka_unit_test(launches_one_after_the_other_add_up),
        cmocka_unit_test(shares_of_whole_and_broken_waves),
        cmocka_unit_test(no_multiprocessor_has_less_than_its_part_nor_more_than_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
