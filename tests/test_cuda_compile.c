/* CUDA kernels of the shipped heads, generated and compiled by NVRTC: needs no GPU. What the compiler
 * made of them is read from the cubins. Compiling tests are skipped where there is no NVRTC.
 *
 * make test compiles the modules of the table `fixed`, which have every target, kind of head and type, and
 * every function that is emitted for any module, in each test at least one; make test-all compiles all. */
#include "runtime/cuda/build.h"
#include "abi/cuda_kernels.h"
#include "base/parallel.h"
#include "compile_job.h"
#include "dear.h"
#include "shipped_heads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

enum { MANY_JOBS = 1024 };

/* One of each kind: plain, gated, normalised, dense, trainable (whole and diagonal), stored in bf16 and
 * f16, of degree 3 and 4, odd widths. */
static const char *const kinds[] = {
    "linear_d24_v48",     "gated_power2_d64",      "inhomogeneous2_d48", "dense_16x32_d64", "trainable_dense",
    "trainable_diagonal", "tspow2_d32_bf16_state", "tspow2_d32_f16",     "mixed_3x7x5",     "tspow4_d8",
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* What make test compiles; each is one of the modules that the tests below add. */
static const struct module_name {
    const char *head, *dtype, *target;
} fixed[] = {
    {"dense_16x32_d64", "bf16", "cuda:sm_90a"}, /* fused_chunk of packed rows */
    {"half", "f16", "cuda:sm_90a"},             /* a cluster that takes turns */
    {"gated_power2_d64", "bf16", "cuda:sm_90a"},
    {"trainable_dense", "f16", "cuda:sm_90a"},
    {"inhomogeneous2_d48", "f16", "cuda:sm_90a"}, /* a second walk */
    {"tspow2_d32_f16", "f16", "cuda:sm_90a"},
    {"ones", "f16", "cuda:sm_90a"},
    {"some", "bf16", "cuda:sm_90a"},
    {"gated_power2_d64", "f16", "cuda:sm_90"},
    {"linear_d24_v48", "bf16", "cuda:sm_90"},
    {"trainable_dense", "bf16", "cuda:sm_90"},
    {"linear_d64_bf16", "bf16", "cuda:sm_80"},
    {"gated_linear_d32", "f32", "cuda:sm_80"}, /* portable, in one pass */
    {"commuting_set", "f32", "cuda:sm_80"},
    {"tspow2_d64_tf32x3", "f32", "cuda:sm_80"},
    {"tspow4_d8", "f32", "cuda:sm_80"},
    {"wide", "f32", "cuda:sm_80"},
    {"linear_d24_v48", "f32", "cuda:sm_86"},
    {"thin", "f32", "cuda:sm_86"},
    {"trainable_diagonal", "f32", "cuda:sm_89"},
    {"mixed_3x7x5", "f32", "cuda:sm_100"},
    {"inhomogeneous2_d48", "f32", "cuda:sm_103"},
    {"tspow2_d32_bf16_state", "bf16", "cuda:sm_120"},
};

enum { FIXED = sizeof fixed / sizeof *fixed };

/* Tests that compile; modules that take long come first. */
enum group { STATES, NARROW, WARPGROUPS, TARGETS, SHIPPED, WIDTHS, GROUPS };

struct fixture {
    bool ready; /* there is an NVRTC */
    shipped_heads heads;
    shipped_heads narrow[2];      /* the same as bf16 and f16 */
    fpa_head_list widths, states; /* of this file */
    int count, running;
    compile_job jobs[MANY_JOBS]; /* of all groups, those that run first */
};

static const char widths[] =
    "return {\n"
    "  head { name = 'wide', d = 256, dv = 256, terms = linear {} },\n"
    "  head { name = 'wide_bf16', d = 256, dv = 256, dtype = 'bf16', gate = true, normalize = 'sum',\n"
    "         terms = linear {} },\n"
    "  head { name = 'thin', d = 1, dv = 1, terms = power { degree = 2 } },\n"
    "}";

static const char states[] =
    "local function rows(seed) return dense(orthogonal { rows = 8, d = 64, seed = seed }) end\n"
    "return {\n"
    "  head { name = 'three', d = 64, dv = 64, dtype = 'bf16',\n"
    "         terms = term { rows(1), rows(2), rows(3) } },\n"
    "  head { name = 'ones', d = 16, dv = 64, dtype = 'f16', normalize = 'sum',\n"
    "         terms = taylor { degree = 2 } },\n"
    "  head { name = 'all', d = 256, dv = 64, dtype = 'bf16', terms = linear {} },\n"
    "  head { name = 'some', d = 160, dv = 64, dtype = 'bf16', normalize = 'sum', terms = linear {} },\n"
    "  head { name = 'narrow', d = 64, dv = 32, dtype = 'bf16', terms = power { degree = 2 } },\n"
    "  head { name = 'wide', d = 96, dv = 96, dtype = 'f16', terms = power { degree = 2 } },\n"
    "  head { name = 'half', d = 128, dv = 128, dtype = 'f16', gate = true, terms = linear {} },\n"
    "}";

static void load_heads(const char *text, fpa_head_list *list)
{
    fpa_error error;
    if (spec_load_text("wide.lua", NULL, text, strlen(text), list, &error))
        fail_msg("%s: %s", error.where, error.message);
}

/* Loaded again, because the types are set in the heads. */
static void load_narrow(struct fixture *f)
{
    static const fpa_dtype dtypes[] = {FPA_BF16, FPA_F16};
    for (int n = 0; n < 2; n++) {
        shipped_load(&f->narrow[n]);
        for (int i = 0; i < f->narrow[n].count; i++) {
            f->narrow[n].item[i].head->dtype = dtypes[n];
            f->narrow[n].item[i].head->products = FPA_PRODUCTS_PLAIN;
        }
    }
}

static bool is_cuda(const fpa_target *target)
{
    return target->backend == BACKEND_CUDA;
}

static const fpa_head *head_named(const shipped_heads *heads, const char *name)
{
    for (int i = 0; i < heads->count; i++)
        if (strcmp(heads->item[i].head->name, name) == 0)
            return heads->item[i].head;
    fail_msg("specs/ has no head %s", name);
    return NULL;
}

static bool is_job(const compile_job *job, const struct module_name *name)
{
    return strcmp(name->head, job->head->name) == 0 && strcmp(name->dtype, dtype_name(job->dtype)) == 0 &&
           strcmp(name->target, job->target->name) == 0;
}

static bool is_fixed(const compile_job *job)
{
    for (int i = 0; i < FIXED; i++)
        if (is_job(job, &fixed[i]))
            return true;
    return false;
}

/* ---- what is compiled ---- */

static void add_job(struct fixture *f, enum group group, const fpa_head *head, const char *target)
{
    assert_true(f->count < MANY_JOBS);
    f->jobs[f->count++] =
        (compile_job){.head = head, .target = target_find(target), .group = (int)group, .dtype = head->dtype};
}

static void add_shipped(struct fixture *f)
{
    for (int i = 0; i < f->heads.count; i++) {
        add_job(f, SHIPPED, f->heads.item[i].head, "cuda:sm_80");
        add_job(f, SHIPPED, f->heads.item[i].head, "cuda:sm_90");
    }
}

/* Each target gets some of the kinds, each kind two of the targets; sm_80 and sm_90 had them all. */
static void add_targets(struct fixture *f)
{
    enum { EACH = 4 };
    int next = 0;
    for (int t = 0; t < target_count(); t++) {
        const fpa_target *target = target_at(t);
        if (!is_cuda(target) || target->capability == 80 || target->capability == 90)
            continue;
        for (int i = 0; i < EACH; i++)
            add_job(f, TARGETS, head_named(&f->heads, kinds[next++ % KINDS]), target->name);
    }
}

static void add_narrow(struct fixture *f)
{
    for (int n = 0; n < 2; n++)
        for (int k = 0; k < KINDS; k++)
            add_job(f, NARROW, head_named(&f->narrow[n], kinds[k]),
                    (k + n) % 2 ? "cuda:sm_90a" : "cuda:sm_90");
}

/* All heads that are stored in 16 bits, most of which run on warpgroups. */
static void add_warpgroups(struct fixture *f)
{
    for (int i = 0; i < f->heads.count; i++)
        if (f->heads.item[i].head->dtype != FPA_F32)
            add_job(f, WARPGROUPS, f->heads.item[i].head, "cuda:sm_90a");
}

static void add_widths(struct fixture *f)
{
    for (int i = 0; i < f->widths.count; i++) {
        add_job(f, WIDTHS, f->widths.heads[i], "cuda:sm_80");
        add_job(f, WIDTHS, f->widths.heads[i], "cuda:sm_86");
    }
}

static void add_states(struct fixture *f)
{
    for (int i = 0; i < f->states.count; i++)
        add_job(f, STATES, f->states.heads[i], "cuda:sm_90a");
}

static const struct {
    void (*add)(struct fixture *f);
    int too_large; /* so many may be refused as that */
} groups[GROUPS] = {
    [STATES] = {add_states, 0},   [NARROW] = {add_narrow, 0},   [WARPGROUPS] = {add_warpgroups, 0},
    [TARGETS] = {add_targets, 0}, [SHIPPED] = {add_shipped, 1}, [WIDTHS] = {add_widths, 1},
};

/* Those that are to run to the front. */
static void choose_jobs(struct fixture *f)
{
    for (int i = 0; i < f->count; i++)
        if (dear_tests() || is_fixed(&f->jobs[i])) {
            const compile_job job = f->jobs[i];
            f->jobs[i] = f->jobs[f->running];
            f->jobs[f->running++] = job;
        }
}

/* All at once; then each group is judged by a test. */
static void compile_jobs(struct fixture *f)
{
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    parallel_run(f->running, compile_job_run, f->jobs);
    clock_gettime(CLOCK_MONOTONIC, &end);
    dear_report("modules", f->running, f->count);
    print_message("compiled in %.1f s\n",
                  (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
}

static int setup(void **state)
{
    static struct fixture f;
    const char *version;
    fpa_error error;
    f.ready = nvrtc_find(&version, &error) == FPA_OK;
    if (!f.ready)
        fprintf(stderr, "%s: %s\n", error.where, error.message);
    shipped_load(&f.heads);
    load_narrow(&f);
    load_heads(widths, &f.widths);
    load_heads(states, &f.states);
    for (int g = 0; g < GROUPS; g++)
        groups[g].add(&f);
    choose_jobs(&f);
    if (f.ready)
        compile_jobs(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    shipped_free(&f->heads);
    for (int n = 0; n < 2; n++)
        shipped_free(&f->narrow[n]);
    head_list_free(&f->widths);
    head_list_free(&f->states);
    return 0;
}

static void need_nvrtc(const struct fixture *f)
{
    if (!f->ready)
        skip();
}

/* ---- what the fixed part has ---- */

static void the_fixed_part_is_a_part(void **state)
{
    const struct fixture *f = *state;
    for (int i = 0; i < FIXED; i++) {
        bool found = false;
        for (int j = 0; j < f->count; j++)
            found = found || is_job(&f->jobs[j], &fixed[i]);
        if (!found)
            fail_msg("no test compiles %s, %s, %s", fixed[i].head, fixed[i].dtype, fixed[i].target);
    }
}

static void the_fixed_part_has_every_target_kind_and_type(void **state)
{
    bool types[FPA_DTYPES] = {false};
    (void)state;
    for (int t = 0; t < target_count(); t++) {
        bool found = !is_cuda(target_at(t));
        for (int i = 0; i < FIXED; i++)
            found = found || strcmp(fixed[i].target, target_at(t)->name) == 0;
        if (!found)
            fail_msg("the table has no module for %s", target_at(t)->name);
    }
    for (int k = 0; k < KINDS; k++) {
        bool found = false;
        for (int i = 0; i < FIXED; i++)
            found = found || strcmp(fixed[i].head, kinds[k]) == 0;
        if (!found)
            fail_msg("the table has no module of %s", kinds[k]);
    }
    for (int i = 0; i < FIXED; i++)
        for (int d = 0; d < FPA_DTYPES; d++)
            types[d] = types[d] || strcmp(fixed[i].dtype, dtype_name((fpa_dtype)d)) == 0;
    for (int d = 0; d < FPA_DTYPES; d++)
        assert_true(types[d]);
}

static void add_functions(function_set *set, const compile_job *job)
{
    fpa_source source;
    fpa_error error;
    if (source_generate(job->head, job->target->name, &source, &error))
        return; /* too large: a test of its own */
    function_set_add(set, source.code, job->head->name);
    source_free(&source);
}

/* Kernels of warpgroups and portable ones may have functions of one name. */
static void the_fixed_part_has_every_function_that_is_emitted_for_any_module(void **state)
{
    const struct fixture *f = *state;
    function_set all[2] = {0}, chosen[2] = {0};
    for (int i = 0; i < f->count; i++) {
        const bool warpgroups = f->jobs[i].target->warpgroups;
        add_functions(&all[warpgroups], &f->jobs[i]);
        if (is_fixed(&f->jobs[i]))
            add_functions(&chosen[warpgroups], &f->jobs[i]);
    }
    for (int w = 0; w < 2; w++) {
        const char *lacks = function_set_lacks(&chosen[w], &all[w]);
        if (lacks)
            fail_msg("no %s module of the table has %s: add one that has", w ? "sm_90a" : "portable", lacks);
        print_message("%s: %zu functions\n", w ? "sm_90a" : "portable", all[w].count);
        assert_true(all[w].count > 150);
        function_set_free(&all[w]);
        function_set_free(&chosen[w]);
    }
}

/* ---- modules ---- */

/* Every job of the group that went wrong is named. */
static void expect_group(const struct fixture *f, enum group group)
{
    int wrong = 0, refused = 0, count = 0;
    need_nvrtc(f);
    for (int i = 0; i < f->running; i++) {
        const compile_job *job = &f->jobs[i];
        if (job->group != (int)group)
            continue;
        count++;
        refused += job->too_large;
        wrong += job->problem[0] != 0;
        if (job->problem[0])
            print_error("%s, %s, %s: %s\n", job->head->name, dtype_name(job->dtype), job->target->name,
                        job->problem);
    }
    print_message("%d modules, %d refused as too large\n", count, refused);
    assert_int_equal(wrong, 0);
    assert_true(count > refused);
    assert_true(refused <= groups[group].too_large);
}

static void every_shipped_head_compiles_without_warnings_and_spills(void **state)
{
    expect_group(*state, SHIPPED);
}

static void every_target_compiles_some_of_every_kind(void **state)
{
    expect_group(*state, TARGETS);
}

static void every_kind_of_head_compiles_in_narrower_types(void **state)
{
    expect_group(*state, NARROW);
}

static void every_narrow_head_compiles_for_warpgroups(void **state)
{
    const struct fixture *f = *state;
    int count = 0;
    for (int i = 0; i < f->count; i++) {
        fpa_source source;
        fpa_error error;
        if (f->jobs[i].group != WARPGROUPS)
            continue;
        assert_int_equal(source_generate(f->jobs[i].head, f->jobs[i].target->name, &source, &error), FPA_OK);
        count += strstr(source.code, "wgmma.mma_async") != NULL;
        source_free(&source);
    }
    assert_true(count >= 5);
    expect_group(f, WARPGROUPS);
}

static void the_largest_and_smallest_widths_compile(void **state)
{
    expect_group(*state, WIDTHS); /* but d = 256 in f32 for sm_86 */
}

/* Large states leave few registers for addresses and factors: what is spilled there costs as much again, and
 * products of a kernel that lacks some wait for each other. */
static void large_states_keep_their_sums_in_registers(void **state)
{
    expect_group(*state, STATES);
}

/* ---- sources ---- */

/* True when the target refuses the head as too large. */
static bool generate_twice(const fpa_head *head, const fpa_target *target)
{
    fpa_source first, second;
    fpa_error error;
    fpa_status status = source_generate(head, target->name, &first, &error);
    if (compile_too_large(target, status, &error))
        return true;
    if (status || source_generate(head, target->name, &second, &error))
        fail_msg("%s, %s: %s: %s", head->name, target->name, error.where, error.message);
    assert_string_equal(first.code, second.code);
    assert_string_equal(first.facts.target, target->name);
    assert_null(first.header);
    if (strstr(first.code, "#include"))
        fail_msg("%s, %s: the source includes something", head->name, target->name);
    source_free(&first);
    source_free(&second);
    return false;
}

static void sources_stand_alone_and_are_the_same_every_time(void **state)
{
    struct fixture *f = *state;
    for (int t = 0; t < target_count(); t++) {
        int too_large = 0;
        if (!is_cuda(target_at(t)))
            continue;
        for (int i = 0; i < f->heads.count; i++)
            too_large += generate_twice(f->heads.item[i].head, target_at(t));
        print_message("%s: %d heads, %d refused as too large\n", target_at(t)->name,
                      f->heads.count - too_large, too_large);
        assert_true(too_large <= 1);
    }
}

struct again {
    const fpa_head *head;
    fpa_object object;
    fpa_status status;
    fpa_error error;
};

static void compile_again(int index, void *argument)
{
    struct again *again = &((struct again *)argument)[index];
    fpa_source source;
    nvrtc_report report;
    again->status = source_generate(again->head, "cuda:sm_90", &source, &again->error);
    if (again->status)
        return;
    again->status = cuda_compile(NULL, &source, false, &again->object, &report, &again->error);
    nvrtc_report_free(&report);
    source_free(&source);
}

static void the_same_source_gives_the_same_cubin(void **state)
{
    enum { HEADS = 3 };
    struct again twice[2 * HEADS] = {0};
    const struct fixture *f = *state;
    const int heads = dear_tests() ? HEADS : 1;
    need_nvrtc(f);
    for (int i = 0; i < 2 * heads; i++)
        twice[i].head = head_named(&f->heads, kinds[i / 2]);
    parallel_run(2 * heads, compile_again, twice);
    for (int i = 0; i < 2 * heads; i++)
        if (twice[i].status)
            fail_msg("%s: %s", twice[i].error.where, twice[i].error.message);
    for (int i = 0; i < 2 * heads; i += 2) {
        assert_int_equal(twice[i].object.size, twice[i + 1].object.size);
        assert_memory_equal(twice[i].object.bytes, twice[i + 1].object.bytes, twice[i].object.size);
        free(twice[i].object.bytes);
        free(twice[i + 1].object.bytes);
    }
}

static void a_mistake_in_the_source_is_named_with_its_line(void **state)
{
    struct fixture *f = *state;
    fpa_source source;
    fpa_object object;
    nvrtc_report report;
    fpa_error error;
    need_nvrtc(f);
    assert_int_equal(source_generate(head_named(&f->heads, "linear_d64"), "cuda:sm_80", &source, &error),
                     FPA_OK);
    free(source.code);
    source.code =
        strdup("extern \"C\" __global__ void linear_d64_chunk_output(int n)\n{\n    n = unknown;\n}\n");
    assert_int_equal(cuda_compile(NULL, &source, false, &object, &report, &error), FPA_COMPILE);
    assert_null(object.bytes);
    assert_non_null(strstr(error.message, "unknown"));
    assert_non_null(strstr(error.message, "3"));
    nvrtc_report_free(&report);
    source_free(&source);
}

/* ---- heads that CUDA does not serve ---- */

static void expect_refused(const char *fields, const char *figure, const char *limit)
{
    char text[256];
    fpa_head_list list;
    fpa_source source;
    fpa_error error;
    int length = snprintf(text, sizeof text, "return head { name = 'wide', %s }", fields);
    if (spec_load_text("wide.lua", NULL, text, (size_t)length, &list, &error))
        fail_msg("%s: %s", error.where, error.message);
    assert_int_equal(source_generate(list.heads[0], "cuda:sm_90", &source, &error), FPA_UNSUPPORTED);
    if (!strstr(error.message, figure) || !strstr(error.message, limit))
        fail_msg("'%s: %s' does not name %s and %s", error.where, error.message, figure, limit);
    assert_null(source.code);
    head_list_free(&list);
}

static void a_head_that_is_too_large_for_cuda_is_refused_with_its_figure(void **state)
{
    (void)state;
    expect_refused("d = 257, dv = 64, terms = linear {}", "257", "256");
    expect_refused("d = 64, dv = 257, terms = linear {}", "257", "256");
    expect_refused("d = 128, dv = 64, terms = power { degree = 3 }", "features", "262144");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_part_is_a_part),
        cmocka_unit_test(the_fixed_part_has_every_target_kind_and_type),
        cmocka_unit_test(the_fixed_part_has_every_function_that_is_emitted_for_any_module),
        cmocka_unit_test(sources_stand_alone_and_are_the_same_every_time),
        cmocka_unit_test(every_shipped_head_compiles_without_warnings_and_spills),
        cmocka_unit_test(every_target_compiles_some_of_every_kind),
        cmocka_unit_test(every_kind_of_head_compiles_in_narrower_types),
        cmocka_unit_test(every_narrow_head_compiles_for_warpgroups),
        cmocka_unit_test(the_same_source_gives_the_same_cubin),
        cmocka_unit_test(a_mistake_in_the_source_is_named_with_its_line),
        cmocka_unit_test(a_head_that_is_too_large_for_cuda_is_refused_with_its_figure),
        cmocka_unit_test(the_largest_and_smallest_widths_compile),
        cmocka_unit_test(large_states_keep_their_sums_in_registers),
    };
    return cmocka_run_group_tests_name("cuda compile", tests, setup, teardown);
}
