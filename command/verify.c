/* verify: compiles heads, not using the cache, and compares each with the formula; those that pass are stored in
 * the cache. */
#include "base/clock.h"
#include "runtime/api/open.h"
#include "runtime/builder.h"
#include "runtime/verify/verify.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "device.h"
#include "json.h"
#include "options.h"
#include "timing.h"
#include "verify_backward.h"
#include "verify_layer.h"

typedef struct verify_options {
    const char *head, *target, *dtype;
    int64_t jobs, device;
    bool json, time, backward;
} verify_options;

/* A head that is compiled and verified. */
typedef struct verify_job {
    fpa_head *head;          /* owned until a kernel owns it */
    const fpa_head *written; /* the same head, whoever owns it */
    char name[HEAD_MAX_NAME + 1];
    fpa_facts facts;
    fpa_verdict verdict;
    char gradients[GRADIENT_TEXT]; /* with --backward: the verdict of the gradients */
    fpa_object object;             /* the compiled object; freed once it is stored */
    char *cache;                   /* the folder where it was stored; NULL: nowhere */
    fpa_kernel *kernel;            /* with --time: the verified kernel, to be timed */
    fpa_timing timing[FORMS];
    fpa_status status;
    fpa_error error;
    bool done;
} verify_job;

/* The work, shared by all threads. */
typedef struct verify_work {
    const verify_options *options;
    fpa_options backend_options;
    const fpa_backend *backend;
    const fpa_target *target;
    const fpa_texts *specs;
    int count;
    verify_job *jobs;
    int code; /* exit code for specs that could not be read */
    int next; /* index of the first job that no thread has taken */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* kernels use all cores: one is verified at a time, while others are compiled */
    pthread_mutex_t measuring;
} verify_work;

/* ---- one head ---- */

/* Logs a compilation and its time, as an open does. */
static void tell_compiled(const verify_work *work, const verify_job *job, double begin)
{
    if (*verbose_flag())
        note("%s: compiled for %s in %.2f s (%zu bytes)", job->name, work->target->name,
             clock_seconds() - begin, job->object.size);
}

static fpa_status load_head(const verify_work *work, verify_job *job, fpa_module *module, fpa_error *error)
{
    const double begin = clock_seconds();
    fpa_source source;
    fpa_status status = source_generate(job->head, work->target->name, &source, error);
    if (status)
        return status;
    job->facts = source.facts;
    status = builder_of(work->target)->compile(&work->backend_options, &source, &job->object, error);
    if (!status) {
        tell_compiled(work, job, begin);
        status = work->backend->load(&work->backend_options, &job->object, job->facts.name, module, error);
    }
    source_free(&source);
    return status;
}

/* The module becomes the job's kernel if it will be timed (keep), else it is unloaded. */
static fpa_status keep_kernel(verify_job *job, fpa_module *module, bool keep, fpa_error *error)
{
    if (!keep) {
        module->backend->unload(module);
        return FPA_OK;
    }
    fpa_head *head = job->head;
    job->head = NULL;
    return verify_kernel(head, &job->facts, module, job->verdict.text, false, &job->kernel, error);
}

static fpa_status check_gradients(verify_work *work, verify_job *job, const fpa_module *forward,
                                  fpa_error *error)
{
    pthread_mutex_lock(&work->measuring);
    fpa_status status = verify_gradients(job->head, work->target->name, &work->backend_options, forward,
                                         job->gradients, error);
    pthread_mutex_unlock(&work->measuring);
    return status;
}

static fpa_status check_head(verify_work *work, verify_job *job, fpa_error *error)
{
    fpa_module module = {0};
    fpa_status status = load_head(work, job, &module, error);
    if (status)
        return status;
    pthread_mutex_lock(&work->measuring);
    status = verify_module(job->head, &job->facts, &module, &job->verdict, error);
    pthread_mutex_unlock(&work->measuring);
    if (!status)
        status = open_remember(job->head, &work->backend_options, &job->facts, &job->object,
                               job->verdict.text, &job->cache, error);
    if (!status && work->options->backward)
        status = check_gradients(work, job, &module, error);
    if (status) {
        module.backend->unload(&module);
        return status;
    }
    return keep_kernel(job, &module, work->options->time, error);
}

static fpa_status verify_head(verify_work *work, verify_job *job, fpa_error *error)
{
    fpa_status status = check_head(work, job, error);
    free(job->object.bytes);
    job->object = (fpa_object){NULL, 0};
    return status;
}

static verify_job *take_job(verify_work *work)
{
    pthread_mutex_lock(&work->lock);
    verify_job *job = work->next < work->count ? &work->jobs[work->next++] : NULL;
    pthread_mutex_unlock(&work->lock);
    return job;
}

static void *run_jobs(void *argument)
{
    verify_work *work = argument;
    for (verify_job *job; (job = take_job(work));) {
        fpa_status status = verify_head(work, job, &job->error);
        pthread_mutex_lock(&work->lock);
        job->status = status;
        job->done = true;
        pthread_cond_broadcast(&work->changed);
        pthread_mutex_unlock(&work->lock);
    }
    return NULL;
}

static void wait_for(verify_work *work, const verify_job *job)
{
    pthread_mutex_lock(&work->lock);
    while (!job->done)
        pthread_cond_wait(&work->changed, &work->lock);
    pthread_mutex_unlock(&work->lock);
}

/* ---- times ---- */

/* The number of tokens, at most 2048, for which a forward of one head takes about `most` FLOP. */
static int64_t timed_length(const fpa_facts *facts, int form, double most)
{
    double flop = facts->flop[form] > 1 ? facts->flop[form] : 1;
    double length = form == FORM_PARALLEL ? sqrt(2 * most / flop) : most / flop;
    return length < 16 ? 16 : length > 2048 ? 2048 : (int64_t)length;
}

/* Times each form. One head for each core gives the rate of the whole machine, without threads that share a head.
 * A GPU gets enough heads to fill it. */
static fpa_status time_forms(verify_job *job)
{
    enum { GPU_HEADS = 128 };
    const bool remote = device_is_remote(job->kernel);
    int64_t heads = remote ? GPU_HEADS : sysconf(_SC_NPROCESSORS_ONLN);
    fpa_status status = FPA_OK;
    for (int form = 0; form < FORMS && !status; form++) {
        const fpa_load load = {.form = (fpa_form)form,
                               .batch = 1,
                               .length = timed_length(&job->facts, form, remote ? 2e9 : 5e8),
                               .heads = heads,
                               .repeats = remote ? 5 : 3,
                               .seconds = 0.3};
        if (job->facts.forms & 1 << form)
            status = time_forward(job->kernel, job->written, &load, &job->timing[form], &job->error);
    }
    return status;
}

/* ---- tables ---- */

static void print_title(const verify_options *options)
{
    printf("%-28s %8s %-10s %9s %9s %6s%s  %s\n", "head", "D", "form", "error", "of bound", "rms",
           options->time ? "  ns/token/head" : "", "verdict");
}

static void print_job(const verify_options *options, const verify_job *job)
{
    if (job->status) {
        printf("%-28s %8" PRId64 " %-10s %9s %9s %6s%s  %s\n", job->name, job->facts.features, "-", "-", "-",
               "-", options->time ? "              -" : "", fpa_status_name(job->status));
        report(&job->error);
        return;
    }
    for (int form = 0; form < FORMS; form++) {
        const fpa_form_verdict *verdict = &job->verdict.form[form];
        if (!verdict->checked)
            continue;
        printf("%-28s %8" PRId64 " %-10s %9.1e %9.3f %6.2f", job->name, job->facts.features,
               form_name((fpa_form_index)form), verdict->error, verdict->worst, verdict->rms_ratio);
        if (options->time)
            printf(" %14.1f", job->timing[form].nanoseconds);
        printf("  verified\n");
    }
    if (*job->gradients)
        printf("%-28s %s\n", job->name, job->gradients);
}

static void write_form(fpa_json *json, const verify_options *options, const verify_job *job, int form)
{
    const fpa_form_verdict *verdict = &job->verdict.form[form];
    json_object(json, NULL);
    json_text(json, "form", form_name((fpa_form_index)form));
    json_number(json, "error", verdict->error);
    json_number(json, "share_of_bound", verdict->worst);
    json_number(json, "bound_factor", verdict->tau);
    json_number(json, "rms_ratio", verdict->rms_ratio);
    if (options->time)
        json_number(json, "ns_per_token_and_head", job->timing[form].nanoseconds);
    json_close(json);
}

static void write_job(fpa_json *json, const verify_options *options, const verify_job *job)
{
    json_object(json, NULL);
    json_text(json, "head", job->name);
    json_text(json, "target", job->facts.target);
    json_integer(json, "features", job->facts.features);
    json_text(json, "verdict", job->status ? fpa_status_name(job->status) : "verified");
    json_text(json, "message", job->status ? job->error.message : job->verdict.text);
    if (options->backward && !job->status)
        json_text(json, "gradients", job->gradients);
    json_text(json, "cache", job->cache);
    json_array(json, "forms");
    for (int form = 0; form < FORMS && !job->status; form++) {
        if (job->verdict.form[form].checked)
            write_form(json, options, job, form);
    }
    json_close(json);
    json_close(json);
    if (job->status)
        report(&job->error);
}

/* ---- all heads ---- */

static int add_exit_code(int code, const verify_job *job)
{
    if (job->status == FPA_REFUSED)
        return EXIT_REFUSED;
    return job->status && code == EXIT_OK ? EXIT_FAILED : code;
}

/* Prints where later opens find the verified kernels. */
static void print_cache(const verify_work *work)
{
    int kept = 0;
    const char *folder = NULL;
    for (int i = 0; i < work->count; i++) {
        kept += work->jobs[i].cache != NULL;
        folder = work->jobs[i].cache ? work->jobs[i].cache : folder;
    }
    if (folder)
        printf("kept in the cache, where fpac run finds %s: %s\n", kept == 1 ? "it" : "them", folder);
}

/* Prints rows in the order of the specs, each as soon as it and those before it are ready. Times are measured when
 * nothing is being compiled any more. */
static int show_jobs(verify_work *work)
{
    const verify_options *options = work->options;
    fpa_json json = {.out = stdout};
    int code = work->code;
    if (options->json)
        json_array(&json, NULL);
    else if (work->count)
        print_title(options);
    for (int i = 0; options->time && i < work->count; i++) {
        progress("%d of %d: %s", i + 1, work->count, work->jobs[i].name);
        wait_for(work, &work->jobs[i]);
    }
    for (int i = 0; i < work->count; i++) {
        verify_job *job = &work->jobs[i];
        progress("%d of %d: %s", i + 1, work->count, job->name);
        wait_for(work, job);
        if (options->time && !job->status)
            job->status = time_forms(job);
        progress_end();
        if (options->json)
            write_job(&json, options, job);
        else
            print_job(options, job);
        fflush(stdout);
        code = add_exit_code(code, job);
    }
    code = verify_layers(work->specs, options->head, options->dtype, &work->backend_options,
                         options->json ? &json : NULL, code);
    if (options->json)
        json_close(&json);
    else
        print_cache(work);
    return code;
}

static int run_work(verify_work *work)
{
    enum { MANY_THREADS = 256 };
    pthread_t threads[MANY_THREADS];
    int started = 0;
    while (started < work->options->jobs && started < work->count &&
           !pthread_create(&threads[started], NULL, run_jobs, work))
        started++;
    if (started == 0)
        run_jobs(work); /* does nothing if there is no head */
    int code = show_jobs(work);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return code;
}

static fpa_status add_jobs(verify_work *work, fpa_head_list *list, int first, int end, fpa_error *error)
{
    size_t wanted = (size_t)(work->count + end - first);
    verify_job *jobs = realloc(work->jobs, wanted * sizeof *jobs + 1);
    if (!jobs)
        return fail_memory(error);
    work->jobs = jobs;
    for (int i = first; i < end; i++) {
        verify_job *job = &jobs[work->count++];
        memset(job, 0, sizeof *job);
        job->head = list->heads[i];
        job->written = job->head;
        list->heads[i] = NULL;
        memcpy(job->name, job->head->name, strlen(job->head->name) + 1);
    }
    return FPA_OK;
}

/* Adds the heads of the layer that --head names, each once. */
static fpa_status add_heads_of(verify_work *work, fpa_head_list *list, fpa_error *error)
{
    const fpa_layer_spec *layer = layer_find(list, work->options->head);
    fpa_status status = FPA_OK;
    for (int i = 0; layer && i < layer->part_count && !status; i++) {
        const int head = layer->parts[i].head;
        if (list->heads[head])
            status = add_jobs(work, list, head, head + 1, error);
    }
    return status;
}

/* Logs a line; progress is shown by heads instead. */
static void say_job(void *user, const char *line)
{
    if (*verbose_flag() || strstr(line, ": warning: "))
        say_log(user, line);
}

/* Adds the heads of a spec; one with errors is reported, and does not stop the others. */
static fpa_status collect_spec(verify_work *work, const char *spec, fpa_error *error)
{
    fpa_head_list list = {0};
    int first, end;
    fpa_status status =
        select_with_layers(spec, work->options->head, work->options->dtype, &list, &first, &end, error);
    if (status == FPA_NO_MEMORY || (status && is_of_line(error)))
        return status;
    if (status) {
        work->code = report(error);
        return FPA_OK;
    }
    status = first == end ? add_heads_of(work, &list, error) : add_jobs(work, &list, first, end, error);
    head_list_free(&list);
    return status;
}

static fpa_status collect_jobs(verify_work *work, const fpa_texts *specs, fpa_error *error)
{
    work->backend_options =
        (fpa_options){.target = work->options->target, .device = (int)work->options->device, .log = say_job};
    fpa_status status = select_running(&work->backend_options, &work->backend, &work->target, error);
    for (int i = 0; i < specs->count && !status; i++)
        status = collect_spec(work, specs->text[i], error);
    return status;
}

static void free_work(verify_work *work)
{
    for (int i = 0; i < work->count; i++) {
        head_free(work->jobs[i].head);
        fpa_close(work->jobs[i].kernel);
        free(work->jobs[i].cache);
    }
    free(work->jobs);
}

int command_verify(int count, char **arguments)
{
    verify_options options = {.jobs = sysconf(_SC_NPROCESSORS_ONLN)};
    const fpa_option table[] = {
        {"--head", OPTION_TEXT, &options.head, "NAME", "only this head, or layer, of each file", 0, 0},
        {"--target", OPTION_TEXT, &options.target, "TARGET", target_help, 0, 0},
        {"--dtype", OPTION_TEXT, &options.dtype, "DTYPE", dtype_help, 0, 0},
        {"--device", OPTION_COUNT, &options.device, "N", device_help, 0, MOST_DEVICES},
        {"--jobs", OPTION_COUNT, &options.jobs, "N", "compilers at once (one per core)", 1, 256},
        {"--backward", OPTION_FLAG, &options.backward, NULL, "also the gradients", 0, 0},
        {"--time", OPTION_FLAG, &options.time, NULL, "also time each form, with one head per core (GPU: 128)",
         0, 0},
        {"--json", OPTION_FLAG, &options.json, NULL, "print JSON: an array of heads", 0, 0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "verify SPEC... [--head NAME] [--target TARGET] [--dtype DTYPE] [--jobs N] [--backward] [--time] "
        "[--json] [--verbose]",
        "Generate and compile every head afresh, run it on random inputs and compare it, in every\n"
        "form, with the formula in double precision. One row for each form: the largest error relative to\n"
        "the largest result; the largest error relative to its bound (above 1 is refused); the RMS error\n"
        "relative to that of a plain evaluation in the same precision (above 2 is refused). With --backward\n"
        "one more line, for the gradients. Kernels that pass are kept in the cache, so that fpac run does\n"
        "not compile them again.",
        OPTION_TABLE(table),
        1,
        -1,
        "Exit code 3 if a kernel is refused, 1 if one cannot be made or a spec is wrong; the remaining "
        "heads\n"
        "are verified all the same."};
    fpa_texts operands;
    verify_work work = {.options = &options,
                        .specs = &operands,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .measuring = PTHREAD_MUTEX_INITIALIZER};
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    code = collect_jobs(&work, &operands, &error) ? report(&error) : run_work(&work);
    free_work(&work);
    return finish_output(code);
}
