#include "compile_job.h"

#include "base/clock.h"
#include "abi/cuda_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/build.h"
#include "claims.h"
#include "cubin.h"
#include "kernels.h"
#include "nvrtc_hurry.h"
#include "base/parallel.h"

/* Warps that only fetch, in blocks of warpgroups, have too few registers to keep all in them. Of gradients, products at the
 * causal edge look at numbers beside all sums of others, where 255 registers are full. A block of one warpgroup has wide sums, and forms
 * some addresses once a panel. Where all threads multiply a number or two wait for the end. */
enum {
    REGISTERS = 65536,
    FETCHING_FRAME = 320,
    EDGE_FRAME = 128,
    SINGLE_FRAME = 64,
    PARKED_FRAME = 32,
    CROWDED_FRAME = 1024
};
enum { LATER = 100 }; /* generations whose CS2R nobody has seen read too early; their clocks are others */

bool compile_too_large(const fpa_target *target, fpa_status status, const fpa_error *error)
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

/* Gradients of many factors of one row: a pair of tokens has more dots than a thread has registers, and fpac says that they spill. */
static bool is_crowded(const compile_job *job)
{
    return job->backward && strcmp(job->head->name, "rank1_factors") == 0;
}

/* Bytes of local memory that a thread may have. */
static int frame_of(const compile_job *job, const cubin_kernel *kernel)
{
    if (is_crowded(job))
        return CROWDED_FRAME;
    if (strstr(kernel->name, "_backward_keys") || strstr(kernel->name, "_backward_queries"))
        return EDGE_FRAME;
    if (!job->target->warpgroups)
        return PARKED_FRAME;
    if (kernel->threads == 128 && strstr(kernel->name, "_fused_chunk"))
        return SINGLE_FRAME;
    return kernel->threads > 256 ? FETCHING_FRAME : PARKED_FRAME;
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
    if (!job->hurried && kernel->frame > frame_of(job, kernel))
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

static void check_instructions(compile_job *job, const fpa_object *object, const nvrtc_report *report)
{
    char remarks[512];
    if (nvrtc_remarks(report, remarks, sizeof remarks) && nvrtc_warns(remarks, job->target) &&
        !is_crowded(job))
        complain(job, "%s; ", remarks);
    if (job->target->capability < LATER &&
        cubin_reads_too_early(object->bytes, object->size, remarks, sizeof remarks))
        complain(job, "%s reads what CS2R has not cleared yet; ", remarks);
}

static void check_object(compile_job *job, const fpa_facts *facts, const fpa_object *object,
                         const nvrtc_report *report)
{
    cubin module;
    if (!cubin_read(object->bytes, object->size, &module)) {
        complain(job, "NVRTC's result is no cubin; ");
        return;
    }
    if (!job->hurried)
        check_instructions(job, object, report);
    for (int i = 0; i < module.count; i++)
        check_kernel(job, &module.kernel[i]);
    check_geometry(job, facts, object, &module);
}

static fpa_status generate(const compile_job *job, fpa_source *source, fpa_error *error)
{
    return job->backward ? source_generate_backward(job->head, job->target->name, source, error)
                         : source_generate(job->head, job->target->name, source, error);
}

void compile_job_choose(compile_job *job, function_set *reached, const char *optimised)
{
    fpa_source source;
    fpa_error error;
    const fpa_status status = generate(job, &source, &error);
    if (compile_too_large(job->target, status, &error))
        return;
    assert_ok(status, &error);
    if (optimised) {
        job->code = kernels_one(source.code, job->head->name, optimised, reached);
        if (!job->code)
            fail_msg("%s has no kernel %s", job->head->name, optimised);
    }
    const size_t before = reached->count;
    job->others = kernels_new(source.code, job->head->name, reached);
    if (job->code && reached->count == before) {
        free(job->others);
        job->others = NULL;
    }
    if (!job->code && !job->others)
        fail_msg("%s: its kernels cannot be told apart", job->head->name);
    source_free(&source);
}

void compile_job_forget(compile_job *job)
{
    free(job->code);
    free(job->others);
    job->code = job->others = NULL;
}

/* text: NULL, or instead of the head's; given away. */
static void run_text(compile_job *job, char *text)
{
    fpa_source source;
    fpa_object object;
    nvrtc_report report;
    fpa_error error = {0};
    const double start = clock_seconds();
    job->status = generate(job, &source, &error);
    if (!job->status && text) {
        free(source.code);
        source.code = text;
    } else {
        free(text);
    }
    if (!job->status) {
        job->status = cuda_compile(NULL, &source, false, &object, &report, &error);
        if (!job->status)
            check_object(job, &source.facts, &object, &report);
        free(object.bytes);
        nvrtc_report_free(&report);
        source_free(&source);
    }
    job->seconds += clock_seconds() - start;
    job->too_large = compile_too_large(job->target, job->status, &error);
    if (job->status && !job->too_large)
        complain(job, "%s: %s", error.where, error.message);
}

static void run_whole(int index, void *argument)
{
    compile_job *job = &((compile_job *)argument)[index];
    char *text = job->code;
    if (!text && job->others)
        return;
    job->code = NULL;
    run_text(job, text);
}

static void run_others(int index, void *argument)
{
    compile_job *job = &((compile_job *)argument)[index];
    char *text = job->others;
    if (!text)
        return;
    job->others = NULL;
    run_text(job, text);
}

void compile_jobs_run(int count, compile_job *jobs)
{
    parallel_run(count, run_whole, jobs);
    const bool hurried = nvrtc_hurry();
    for (int i = 0; i < count; i++)
        jobs[i].hurried = hurried;
    parallel_run(count, run_others, jobs);
    nvrtc_hurry_no_more();
}
