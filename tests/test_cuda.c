/* Heads on a GPU, each generated, compiled, loaded and compared with the formula. Every test is skipped
 * where there is no GPU. */
#include "runtime/cuda/build.h"
#include "base/parallel.h"
#include "runtime/verify/verify.h"
#include "claims.h"
#include "gpu_problem.h"
#include "random_head.h"
#include "scratch.h"
#include "shipped_heads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY_JOBS = 512, SEED = 20261121, RANDOM_HEADS = 64 };

struct fixture {
    bool ready; /* there is a GPU */
    test_gpu gpu;
    const fpa_target *target; /* the best for it */
    char cache[64];           /* a folder of this run's own */
};

/* One head on its way; what went wrong stays in error. */
typedef struct job {
    const struct fixture *fixture;
    const char *spec;
    fpa_head *head;
    int device;
    fpa_status status;
    fpa_error error;
    char verdict[512];
} job;

static int setup(void **state)
{
    static struct fixture f;
    fpa_error error;
    *state = &f;
    f.ready = gpu_open(&f.gpu, 0);
    scratch_make(f.cache);
    if (f.ready && backend_cuda.choose(NULL, "cuda", &f.target, &error))
        return print_error("%s: %s\n", error.where, error.message), -1;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    scratch_remove(f->cache);
    gpu_close(&f->gpu);
    return 0;
}

static void need_gpu(const struct fixture *f)
{
    if (!f->ready)
        skip();
}

/* Every job that failed is named, then the test fails. */
static void report(const job *jobs, int count)
{
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        const job *one = &jobs[i];
        wrong += one->status != FPA_OK;
        if (one->status)
            print_error("%s, %s: %s: %s: %s\n", one->head->name, dtype_name(one->head->dtype),
                        fpa_status_name(one->status), one->error.where, one->error.message);
        else
            print_message("%-28s %-5s %s\n", one->head->name, dtype_name(one->head->dtype), one->verdict);
    }
    assert_int_equal(wrong, 0);
}

/* ---- through fpa_open ---- */

static void open_one(int index, void *argument)
{
    job *one = &((job *)argument)[index];
    fpa_kernel *kernel;
    const fpa_options options = {.target = "cuda", .device = one->device, .cache_dir = one->fixture->cache};
    one->status = fpa_open(one->spec, one->head->name, &options, &kernel, &one->error);
    if (one->status)
        return;
    snprintf(one->verdict, sizeof one->verdict, "%s%s", fpa_describe(kernel)->from_cache ? "(cached) " : "",
             fpa_describe(kernel)->verdict);
    fpa_close(kernel);
}

static int add_shipped(const struct fixture *f, const shipped_heads *heads, job *jobs)
{
    for (int i = 0; i < heads->count; i++)
        jobs[i] = (job){
            .fixture = f, .spec = heads->item[i].spec, .head = heads->item[i].head, .device = f->gpu.number};
    return heads->count;
}

static void every_shipped_head_opens_as_written(void **state)
{
    static shipped_heads heads;
    static job jobs[MANY_JOBS];
    struct fixture *f = *state;
    need_gpu(f);
    shipped_load(&heads);
    int count = add_shipped(f, &heads, jobs);
    parallel_run(count, open_one, jobs);
    report(jobs, count);
    shipped_free(&heads);
}

static void what_was_verified_opens_from_the_cache(void **state)
{
    static shipped_heads heads;
    static job jobs[MANY_JOBS];
    struct fixture *f = *state;
    need_gpu(f);
    shipped_load(&heads);
    int count = add_shipped(f, &heads, jobs);
    parallel_run(count, open_one, jobs);
    report(jobs, count);
    for (int i = 0; i < count; i++)
        if (strncmp(jobs[i].verdict, "(cached)", 8) != 0)
            fail_msg("%s was compiled again", jobs[i].head->name);
    shipped_free(&heads);
}

/* ---- through the pipeline, for heads that no file holds ---- */

static void verify_one(int index, void *argument)
{
    job *one = &((job *)argument)[index];
    const fpa_options options = {.target = one->fixture->target->name, .device = one->device};
    fpa_source source = {0};
    fpa_object object = {0};
    fpa_module module = {0};
    fpa_verdict verdict;
    one->status = source_generate(one->head, options.target, &source, &one->error);
    if (!one->status)
        one->status = builder_cuda.compile(&options, &source, &object, &one->error);
    if (!one->status)
        one->status = backend_cuda.load(&options, &object, source.facts.name, &module, &one->error);
    if (!one->status) {
        one->status = verify_module(one->head, &source.facts, &module, &verdict, &one->error);
        backend_cuda.unload(&module);
    }
    if (!one->status)
        snprintf(one->verdict, sizeof one->verdict, "%s", verdict.text);
    free(object.bytes);
    source_free(&source);
}

static void verify_shipped_as(const struct fixture *f, fpa_dtype dtype, fpa_dtype state_dtype)
{
    static shipped_heads heads;
    static job jobs[MANY_JOBS];
    shipped_load(&heads);
    for (int i = 0; i < heads.count; i++) {
        heads.item[i].head->dtype = dtype;
        if (dtype != FPA_F32)
            heads.item[i].head->products = FPA_PRODUCTS_PLAIN;
        heads.item[i].head->state_dtype = state_dtype;
    }
    int count = add_shipped(f, &heads, jobs);
    parallel_run(count, verify_one, jobs);
    report(jobs, count);
    shipped_free(&heads);
}

static void every_shipped_head_is_verified_in_f32(void **state)
{
    need_gpu(*state);
    verify_shipped_as(*state, FPA_F32, FPA_F32);
}

static void every_shipped_head_is_verified_in_bf16(void **state)
{
    need_gpu(*state);
    verify_shipped_as(*state, FPA_BF16, FPA_F32);
}

static void every_shipped_head_is_verified_in_f16(void **state)
{
    need_gpu(*state);
    verify_shipped_as(*state, FPA_F16, FPA_F32);
}

static void every_shipped_head_is_verified_with_a_narrow_state(void **state)
{
    need_gpu(*state);
    verify_shipped_as(*state, FPA_BF16, FPA_BF16);
}

static void random_heads_are_verified(void **state)
{
    static job jobs[RANDOM_HEADS];
    struct fixture *f = *state;
    need_gpu(f);
    for (int i = 0; i < RANDOM_HEADS; i++) {
        random_limits limits = random_all;
        limits.half = i % 2;
        jobs[i] = (job){.fixture = f, .head = random_head(SEED + (uint64_t)i, &limits)};
        assert_non_null(jobs[i].head);
    }
    parallel_run(RANDOM_HEADS, verify_one, jobs);
    for (int i = 0; i < RANDOM_HEADS; i++)
        if (jobs[i].status)
            print_error("seed %d: ", SEED + i);
    report(jobs, RANDOM_HEADS);
    for (int i = 0; i < RANDOM_HEADS; i++)
        head_free(jobs[i].head);
}

/* Widths around those of the matrix instructions' tiles, and the largest. */
static void heads_of_any_width_are_verified(void **state)
{
    static const int widths[][2] = {{1, 1},   {2, 7},    {8, 8},    {15, 17},   {16, 16},  {17, 33},
                                    {31, 65}, {64, 128}, {100, 72}, {128, 128}, {200, 96}, {256, 256}};
    enum { WIDTHS = sizeof widths / sizeof *widths, DTYPES = FPA_DTYPES };
    static fpa_head_list lists[WIDTHS * DTYPES];
    static job jobs[WIDTHS * DTYPES];
    struct fixture *f = *state;
    fpa_error error;
    need_gpu(f);
    for (int i = 0; i < WIDTHS * DTYPES; i++) {
        char text[256];
        int d = widths[i / DTYPES][0], dv = widths[i / DTYPES][1];
        int length = snprintf(text, sizeof text,
                              "return head { name = 'w%d_%d', d = %d, dv = %d, scale = %.17g, gate = %s, "
                              "normalize = '%s', dtype = '%s', terms = power { degree = %d } }",
                              d, dv, d, dv, 1.0 / d, i % 2 ? "true" : "false", i % 3 ? "none" : "sum",
                              dtype_name((fpa_dtype)(i % DTYPES)), d > 64 ? 1 : 2);
        assert_ok(spec_load_text("widths.lua", NULL, text, (size_t)length, &lists[i], &error), &error);
        jobs[i] = (job){.fixture = f, .head = lists[i].heads[0]};
    }
    parallel_run(WIDTHS * DTYPES, verify_one, jobs);
    report(jobs, WIDTHS * DTYPES);
    for (int i = 0; i < WIDTHS * DTYPES; i++)
        head_list_free(&lists[i]);
}

/* Shapes at which rows, units and columns end in odd places, in every dtype and kind of product. */
static const char *const odd_heads[] = {
    "d = 24, dv = 24, terms = { term { select(range(5, 24)) } }", /* a dot that ends with d, off a step */
    "d = 20, dv = 9, terms = { term { select(range(2, 20)), select(range(1, 3)) } }",
    "d = 5, dv = 64, terms = power { degree = 4 }", /* o as wide as the panel it leaves by */
    "d = 24, dv = 48, gate = true, normalize = 'sum', terms = linear {}",
    "d = 16, dv = 8, gate = true, terms = linear {}", /* one unit for four warps */
    "d = 80, dv = 40, scale = 0.3, terms = linear {}",
    "d = 16, dv = 32, terms = { term {} , term { identity() } }", /* a constant and a line */
    "d = 1, dv = 1, gate = true, terms = linear {}",
    "d = 48, dv = 16, terms = { term { select { 47, 3 }, dense(orthogonal { d = 48, rows = 5, seed = 1 }) } "
    "}",
    "d = 32, dv = 136, normalize = 'one_plus_sum', terms = tspow { d = 32, degree = 2, block = 16 }",
    "d = 24, dv = 40, gate = true, normalize = 'sum', terms = tspow { d = 24, degree = 2, block = 8 }",
    "d = 36, dv = 12, terms = { term { dense(orthogonal { d = 36, rows = 5, seed = 2 }), select(range(5, "
    "36)) } }",
    "d = 40, dv = 72, terms = linear {}",
    "d = 32, dv = 32, causal = false, normalize = 'max', terms = taylor { degree = 2 }",
};

static void odd_heads_are_verified(void **state)
{
    enum {
        ODD = sizeof odd_heads / sizeof *odd_heads,
        KINDS = FPA_DTYPES + 1
    }; /* the last: f32 as three of tf32 */
    static fpa_head_list lists[ODD * KINDS];
    static job jobs[ODD * KINDS];
    struct fixture *f = *state;
    fpa_error error;
    need_gpu(f);
    for (int i = 0; i < ODD * KINDS; i++) {
        char text[512];
        int length =
            snprintf(text, sizeof text, "return head { name = 'odd%d', dtype = '%s', %s }", i / KINDS,
                     dtype_name((fpa_dtype)(i % KINDS % FPA_DTYPES)), odd_heads[i / KINDS]);
        assert_ok(spec_load_text("odd.lua", NULL, text, (size_t)length, &lists[i], &error), &error);
        if (i % KINDS == FPA_DTYPES)
            lists[i].heads[0]->products = FPA_PRODUCTS_TF32X3;
        jobs[i] = (job){.fixture = f, .head = lists[i].heads[0]};
    }
    parallel_run(ODD * KINDS, verify_one, jobs);
    report(jobs, ODD * KINDS);
    for (int i = 0; i < ODD * KINDS; i++)
        head_list_free(&lists[i]);
}

static void a_second_gpu_verifies_too(void **state)
{
    static shipped_heads heads;
    static job jobs[MANY_JOBS];
    struct fixture *f = *state;
    need_gpu(f);
    if (f->gpu.driver->devices < 2)
        skip();
    shipped_load(&heads);
    int count = add_shipped(f, &heads, jobs);
    for (int i = 0; i < count; i++)
        jobs[i].device = 1;
    count = count > 8 ? 8 : count;
    parallel_run(count, open_one, jobs);
    report(jobs, count);
    shipped_free(&heads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_head_opens_as_written),
        cmocka_unit_test(what_was_verified_opens_from_the_cache),
        cmocka_unit_test(every_shipped_head_is_verified_in_f32),
        cmocka_unit_test(every_shipped_head_is_verified_in_bf16),
        cmocka_unit_test(every_shipped_head_is_verified_in_f16),
        cmocka_unit_test(every_shipped_head_is_verified_with_a_narrow_state),
        cmocka_unit_test(random_heads_are_verified),
        cmocka_unit_test(heads_of_any_width_are_verified),
        cmocka_unit_test(odd_heads_are_verified),
        cmocka_unit_test(a_second_gpu_verifies_too),
    };
    return cmocka_run_group_tests_name("cuda", tests, setup, teardown);
}
