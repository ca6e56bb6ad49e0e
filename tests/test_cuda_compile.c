/* CUDA kernels of the shipped heads, generated and compiled by NVRTC: needs no GPU. What the compiler
 * made of them is read from the cubins. Compiling tests are skipped where there is no NVRTC. */
#include "runtime/cuda/backend.h"
#include "abi/cuda_kernels.h"
#include "base/parallel.h"
#include "cubin.h"
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

/* Warps that only fetch, in blocks of warpgroups, have too few registers to keep all in them. */
enum { REGISTERS = 65536, MANY_JOBS = 1024, FETCHING_FRAME = 320 };
enum { LATER = 100 }; /* generations whose CS2R nobody has seen read too early; their clocks are others */

/* One of each kind: plain, gated, normalised, dense, trainable (whole and diagonal), stored in bf16 and
 * f16, of degree 3 and 4, odd widths. */
static const char *const kinds[] = {
    "linear_d24_v48",     "gated_power2_d64",      "inhomogeneous2_d48", "dense_16x32_d64", "trainable_dense",
    "trainable_diagonal", "tspow2_d32_bf16_state", "tspow2_d32_f16",     "mixed_3x7x5",     "tspow4_d8",
};

/* One head for one target, and what became of it. */
typedef struct compile_job {
    const fpa_head *head;
    const fpa_target *target;
    fpa_dtype dtype; /* of the head when it was given */
    fpa_status status;
    bool too_large;     /* for a block of a small GPU, as it was refused with */
    char problem[1024]; /* what is wrong; empty: nothing */
} compile_job;

struct fixture {
    bool ready; /* there is an NVRTC */
    shipped_heads heads;
    int count;
    compile_job jobs[MANY_JOBS];
};

static int setup(void **state)
{
    static struct fixture f;
    const char *version;
    fpa_error error;
    f.ready = nvrtc_find(&version, &error) == FPA_OK;
    if (!f.ready)
        fprintf(stderr, "%s: %s\n", error.where, error.message);
    shipped_load(&f.heads);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    shipped_free(&f->heads);
    return 0;
}

static void need_nvrtc(const struct fixture *f)
{
    if (!f->ready)
        skip();
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

static void add_job(struct fixture *f, const fpa_head *head, const fpa_target *target)
{
    assert_true(f->count < MANY_JOBS);
    f->jobs[f->count++] = (compile_job){.head = head, .target = target, .dtype = head->dtype};
}

/* Heads of very many rows do not fit into a block of GPUs with little shared memory: refused, with the
 * figures. On those with the most (227 KiB) every shipped head fits. */
static bool is_too_large(const fpa_target *target, fpa_status status, const fpa_error *error)
{
    return status == FPA_UNSUPPORTED && target->shared_memory < 227 * 1024 &&
           strstr(error->message, "shared memory") && strstr(error->message, target->name);
}

/* ---- one compilation (in threads: nothing here may assert) ---- */

static void complain(compile_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void complain(compile_job *job, const char *format, ...)
{
    size_t used = strlen(job->problem);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(job->problem + used, sizeof job->problem - used, format, arguments);
    va_end(arguments);
}

/* A multiprocessor gives registers to whole warps, in steps of 8 a thread. */
static void check_kernel(compile_job *job, const cubin_kernel *kernel)
{
    int warps = (kernel->threads + 31) / 32, registers = (kernel->registers + 7) / 8 * 8;
    if (strncmp(kernel->name, job->head->name, strlen(job->head->name)) != 0)
        complain(job, "%s does not begin with the head's name; ", kernel->name);
    if (kernel->threads <= 0)
        complain(job, "%s has no launch bounds; ", kernel->name);
    if (kernel->registers <= 0 || registers * 32 * warps > REGISTERS)
        complain(job, "%s: %d threads of %d registers do not fit; ", kernel->name, kernel->threads,
                 kernel->registers);
    if (kernel->frame > (job->target->warpgroups && kernel->threads > 256 ? FETCHING_FRAME : 0))
        complain(job, "%s keeps %d bytes a thread in local memory; ", kernel->name, kernel->frame);
}

static void expect_threads(compile_job *job, const cubin *module, const char *which, int threads)
{
    char name[CUBIN_NAME];
    snprintf(name, sizeof name, "%s_%s", job->head->name, which);
    for (int i = 0; i < module->count; i++)
        if (strcmp(module->kernel[i].name, name) == 0 && module->kernel[i].threads < threads)
            complain(job, "%s is bounded to %d threads, but launched with %d; ", name,
                     module->kernel[i].threads, threads);
}

/* The constants that the launch code reads from the module, against the facts and the target. */
static void check_geometry(compile_job *job, const fpa_facts *facts, const fpa_object *object,
                           const cubin *module)
{
    struct fpa_cuda_geometry g;
    char name[CUBIN_NAME];
    snprintf(name, sizeof name, "%s_geometry", job->head->name);
    if (!cubin_variable(object->bytes, object->size, name, &g, sizeof g)) {
        complain(job, "there is no %s; ", name);
        return;
    }
    if (g.version != FPA_CUDA_VERSION || g.features < facts->features || g.chunk != facts->chunk ||
        g.state_elements != facts->state_elements || g.gate != job->head->gate)
        complain(job, "the geometry (D %d, chunk %d, state %d, gate %d) is not the facts'; ", g.features,
                 g.chunk, g.state_elements, g.gate);
    for (int i = 0; i < FPA_CUDA_KERNELS; i++) {
        const struct fpa_cuda_block block = g.kernel[i];
        if (block.bytes > job->target->shared_memory)
            complain(job, "%s wants %d bytes of shared memory, but a block has %d; ", cuda_kernel_names[i],
                     block.bytes, job->target->shared_memory);
        expect_threads(job, module, cuda_kernel_names[i], block.threads);
    }
}

static void check_object(compile_job *job, const fpa_facts *facts, const fpa_object *object,
                         const nvrtc_report *report)
{
    cubin module;
    char remarks[512];
    if (nvrtc_remarks(report, remarks, sizeof remarks) && nvrtc_warns(remarks, job->target))
        complain(job, "%s; ", remarks);
    if (!cubin_read(object->bytes, object->size, &module)) {
        complain(job, "NVRTC's result is no cubin; ");
        return;
    }
    if (job->target->capability < LATER &&
        cubin_reads_too_early(object->bytes, object->size, remarks, sizeof remarks))
        complain(job, "%s reads what CS2R has not cleared yet; ", remarks);
    for (int i = 0; i < module.count; i++)
        check_kernel(job, &module.kernel[i]);
    check_geometry(job, facts, object, &module);
}

static void compile_one(int index, void *argument)
{
    compile_job *job = &((compile_job *)argument)[index];
    fpa_source source;
    fpa_object object;
    nvrtc_report report;
    fpa_error error = {0};
    job->status = source_generate(job->head, job->target->name, &source, &error);
    if (!job->status) {
        job->status = cuda_compile(NULL, &source, false, &object, &report, &error);
        if (!job->status)
            check_object(job, &source.facts, &object, &report);
        free(object.bytes);
        nvrtc_report_free(&report);
        source_free(&source);
    }
    job->too_large = is_too_large(job->target, job->status, &error);
    if (job->status && !job->too_large)
        complain(job, "%s: %s", error.where, error.message);
}

/* All jobs; every one that went wrong is named. At most `too_large` may be refused as that. */
static void compile_all(struct fixture *f, int too_large)
{
    struct timespec start, end;
    int wrong = 0, refused = 0, count = f->count;
    clock_gettime(CLOCK_MONOTONIC, &start);
    parallel_run(count, compile_one, f->jobs);
    clock_gettime(CLOCK_MONOTONIC, &end);
    f->count = 0;
    for (int i = 0; i < count; i++) {
        refused += f->jobs[i].too_large;
        wrong += f->jobs[i].problem[0] != 0;
        if (f->jobs[i].problem[0])
            print_error("%s, %s, %s: %s\n", f->jobs[i].head->name, dtype_name(f->jobs[i].dtype),
                        f->jobs[i].target->name, f->jobs[i].problem);
    }
    print_message("%d modules compiled in %.1f s, %d refused as too large\n", count - refused,
                  (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec),
                  refused);
    assert_int_equal(wrong, 0);
    assert_true(refused <= too_large);
}

/* ---- the tests ---- */

static void every_shipped_head_compiles_without_warnings_and_spills(void **state)
{
    static const char *const targets[] = {"cuda:sm_80", "cuda:sm_90"};
    struct fixture *f = *state;
    need_nvrtc(f);
    for (int i = 0; i < f->heads.count; i++)
        for (int t = 0; t < 2; t++)
            add_job(f, f->heads.item[i].head, target_find(targets[t]));
    compile_all(f, 1);
}

/* Each target gets some of the kinds, each kind two of the targets; sm_80 and sm_90 had them all. */
static void every_target_compiles_some_of_every_kind(void **state)
{
    enum { KINDS = sizeof kinds / sizeof *kinds, EACH = 4 };
    struct fixture *f = *state;
    int next = 0;
    need_nvrtc(f);
    for (int t = 0; t < target_count(); t++) {
        const fpa_target *target = target_at(t);
        if (!is_cuda(target) || target->capability == 80 || target->capability == 90)
            continue;
        for (int i = 0; i < EACH; i++)
            add_job(f, head_named(&f->heads, kinds[next++ % KINDS]), target);
    }
    compile_all(f, 0);
}

static void every_kind_of_head_compiles_in_narrower_types(void **state)
{
    static shipped_heads narrow[2]; /* loaded again, because the types are set in the heads */
    static const fpa_dtype dtypes[] = {FPA_BF16, FPA_F16};
    struct fixture *f = *state;
    need_nvrtc(f);
    for (int n = 0; n < 2; n++) {
        shipped_load(&narrow[n]);
        for (int i = 0; i < narrow[n].count; i++) {
            narrow[n].item[i].head->dtype = dtypes[n];
            narrow[n].item[i].head->products = FPA_PRODUCTS_PLAIN;
        }
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            add_job(f, head_named(&narrow[n], kinds[k]),
                    target_find((k + (size_t)n) % 2 ? "cuda:sm_90a" : "cuda:sm_90"));
    }
    compile_all(f, 0);
    shipped_free(&narrow[0]);
    shipped_free(&narrow[1]);
}

/* All heads that are stored in 16 bits, most of which run on warpgroups. */
static void every_narrow_head_compiles_for_warpgroups(void **state)
{
    struct fixture *f = *state;
    const fpa_target *target = target_find("cuda:sm_90a");
    int count = 0;
    need_nvrtc(f);
    for (int i = 0; i < f->heads.count; i++) {
        fpa_source source;
        fpa_error error;
        const fpa_head *head = f->heads.item[i].head;
        if (head->dtype == FPA_F32)
            continue;
        assert_int_equal(source_generate(head, target->name, &source, &error), FPA_OK);
        count += strstr(source.code, "wgmma.mma_async") != NULL;
        source_free(&source);
        add_job(f, head, target);
    }
    assert_true(count >= 5);
    compile_all(f, 0);
}

/* True when the target refuses the head as too large. */
static bool generate_twice(const fpa_head *head, const fpa_target *target)
{
    fpa_source first, second;
    fpa_error error;
    fpa_status status = source_generate(head, target->name, &first, &error);
    if (is_too_large(target, status, &error))
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

static fpa_object compile_again(const fpa_head *head)
{
    fpa_source source;
    fpa_object object;
    nvrtc_report report;
    fpa_error error;
    fpa_status status = source_generate(head, "cuda:sm_90", &source, &error);
    if (!status)
        status = cuda_compile(NULL, &source, false, &object, &report, &error);
    if (status)
        fail_msg("%s: %s", error.where, error.message);
    nvrtc_report_free(&report);
    source_free(&source);
    return object;
}

static void the_same_source_gives_the_same_cubin(void **state)
{
    struct fixture *f = *state;
    need_nvrtc(f);
    for (int k = 0; k < 3; k++) {
        fpa_object first = compile_again(head_named(&f->heads, kinds[k])),
                   second = compile_again(head_named(&f->heads, kinds[k]));
        assert_int_equal(first.size, second.size);
        assert_memory_equal(first.bytes, second.bytes, first.size);
        free(first.bytes);
        free(second.bytes);
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

static void load_heads(const char *text, fpa_head_list *list)
{
    fpa_error error;
    if (spec_load_text("wide.lua", NULL, text, strlen(text), list, &error))
        fail_msg("%s: %s", error.where, error.message);
}

static void the_largest_and_smallest_widths_compile(void **state)
{
    static const char text[] =
        "return {\n"
        "  head { name = 'wide', d = 256, dv = 256, terms = linear {} },\n"
        "  head { name = 'wide_bf16', d = 256, dv = 256, dtype = 'bf16', gate = true, normalize = 'sum',\n"
        "         terms = linear {} },\n"
        "  head { name = 'thin', d = 1, dv = 1, terms = power { degree = 2 } },\n"
        "}";
    struct fixture *f = *state;
    fpa_head_list list;
    need_nvrtc(f);
    load_heads(text, &list);
    for (int i = 0; i < list.count; i++)
        for (int t = 0; t < target_count(); t++)
            if (target_at(t)->capability == 80 || target_at(t)->capability == 86)
                add_job(f, list.heads[i], target_at(t));
    compile_all(f, 1); /* d = 256 in f32 for sm_86 */
    head_list_free(&list);
}

/* Large states leave few registers for addresses and factors: what is spilled there costs as much again, and
 * products of a kernel that lacks some wait for each other. */
static void large_states_keep_their_sums_in_registers(void **state)
{
    static const char text[] =
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
    struct fixture *f = *state;
    fpa_head_list list;
    need_nvrtc(f);
    load_heads(text, &list);
    for (int i = 0; i < list.count; i++)
        add_job(f, list.heads[i], target_find("cuda:sm_90a"));
    compile_all(f, 0);
    head_list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
