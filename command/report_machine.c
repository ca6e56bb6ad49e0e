/* report_machine: one head on one machine: its plan, its verdict, its times. */
#include "head/lift.h"
#include "report.h"

#include <string.h>

#include "runtime/api/open.h"
#include "runtime/kernel.h"
#include "command.h"
#include "timing.h"

static const char gpu_target[] = "cuda:sm_90a";

/* ---- data that all pages share ---- */

static fpa_status select_cpu(const char *name, const fpa_target **target, fpa_error *error)
{
    fpa_status status = select_target(name, target, error);
    if (!status && (*target)->backend != BACKEND_C)
        status =
            fail(error, FPA_INVALID, "--target",
                 "names the kernels for the CPU: c or c:ISA; those for GPUs are shown for %s", gpu_target);
    return status;
}

fpa_status report_sources_open(const report_options *options, report_sources *sources, fpa_error *error)
{
    *sources = (report_sources){.options = options};
    sources->target[PAGE_GPU] = target_find(gpu_target);
    fpa_status status = select_cpu(options->target, &sources->target[PAGE_CPU], error);
    for (int i = 0; i < PAGE_MACHINES && !status; i++) {
        if (options->measured[i])
            status = measured_read(options->measured[i], &sources->lines[i], error);
    }
    return status;
}

void report_sources_free(report_sources *sources)
{
    for (int i = 0; i < PAGE_MACHINES; i++)
        measured_free(&sources->lines[i]);
}

/* ---- plan ---- */

static fpa_status plan_machine(page_machine *made, fpa_error *error)
{
    fpa_status status = simplify(made->head, &made->simple, error);
    if (status)
        return status;
    status = plan_choose(&made->simple, made->head, made->target, &made->plan, &made->unplanned);
    made->planned = status == FPA_OK;
    if (made->planned)
        return FPA_OK;
    simplified_free(&made->simple);
    if (status == FPA_UNSUPPORTED)
        return FPA_OK;
    *error = made->unplanned;
    return status;
}

/* ---- lines of measurements ---- */

static bool is_line_of(const page_machine *made, const fpa_measured *item, int *form)
{
    char name[MEASURED_NAME], dtype[MEASURED_NAME], kind[MEASURED_NAME];
    if (strcmp(item->who, "fpac") != 0 || sscanf(item->what, "%127s %127s %127s", name, dtype, kind) != 3)
        return false;
    for (*form = 0; *form < FORMS && strcmp(kind, form_name((fpa_form_index)*form)) != 0;)
        ++*form;
    return *form < FORM_RECURRENT && !strcmp(name, made->head->name) &&
           !strcmp(dtype, dtype_name(made->head->dtype));
}

static void add_point(page_machine *made, int form, int64_t length, double nanoseconds)
{
    if (made->point_count == PAGE_POINTS)
        made->points_left++;
    else
        made->point[made->point_count++] = (page_point){form, length, nanoseconds};
}

static void add_lines(page_machine *made, const fpa_measured_list *lines)
{
    int form;
    for (int i = 0; i < lines->count; i++) {
        const fpa_measured *item = &lines->item[i];
        if (!is_line_of(made, item, &form))
            continue;
        const fpa_call_size size = page_call(made, form, item->length);
        if (item->heads == size.heads && item->batch == size.batch)
            add_point(made, form, item->length, item->nanoseconds);
        else
            made->points_left++;
    }
}

/* ---- verdict and times ---- */

/* Whether a forward of that length has few enough operations to be timed: on a CPU, those of about a second. */
static bool is_short(const fpa_kernel *kernel, int form, int64_t length)
{
    const double most = kernel->module.backend->memory ? 1e16 : 5e10, tokens = (double)length;
    return kernel->facts.flop[form] * (form == FORM_PARALLEL ? tokens * tokens / 2 : tokens) < most;
}

static fpa_status measure(const fpa_kernel *kernel, page_machine *made, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int form = 0; form < FORM_RECURRENT; form++) {
        for (int64_t length = 256; length <= 65536 && !status; length *= 4) {
            const fpa_call_size size = page_call(made, form, length);
            const int64_t heads = lift_heads(kernel->head) ? lift_heads(kernel->head) : size.heads;
            const fpa_load load = {.form = (fpa_form)form,
                                   .batch = size.batch,
                                   .length = length,
                                   .heads = heads,
                                   .repeats = 5,
                                   .seconds = 1};
            fpa_timing timing;
            if (!(kernel->facts.forms & 1 << form) || !is_short(kernel, form, length))
                continue;
            status = time_forward(kernel, kernel->head, &load, &timing, error);
            if (!status)
                add_point(made, form, length, timing.nanoseconds);
        }
    }
    return status;
}

static void explain_failure(page_machine *made, fpa_status status, const fpa_error *error)
{
    made->proof = status == FPA_REFUSED ? PROOF_REFUSED : PROOF_MISSING;
    snprintf(made->why, sizeof made->why, "%s", error->message);
}

/* Compiles without the cache, since a verdict from the cache has no figures. */
static fpa_status prove(const report_options *options, const char *spec, page_machine *made, fpa_error *error)
{
    const fpa_options open = {.target = made->target->name, .cache_dir = ""};
    const fpa_backend *backend;
    const fpa_target *target;
    fpa_kernel *kernel = NULL;
    fpa_head_list list = {0};
    fpa_error reason;
    int first, end;
    fpa_status status = select_running(&open, &backend, &target, &reason);
    if (!status)
        status =
            select_heads(spec, made->head->name, dtype_name(made->head->dtype), &list, &first, &end, &reason);
    if (!status) {
        fpa_head *head = list.heads[first];
        list.heads[first] = NULL;
        status = open_parsed_head(head, &open, &kernel, &reason);
    }
    head_list_free(&list);
    if (status) {
        explain_failure(made, status, &reason);
        return FPA_OK;
    }
    made->proof = PROOF_VERIFIED;
    made->verdict = kernel->verdict;
    status = options->measure ? measure(kernel, made, error) : FPA_OK;
    fpa_close(kernel);
    return status;
}

/* ---- a machine ---- */

static void describe(page_machine *made, int machine)
{
    static const page_machine kinds[PAGE_MACHINES] = {
        [PAGE_CPU] = {.title = "CPU", .heads = 1, .tokens = 1, .sequences = 1},
        [PAGE_GPU] = {.title = "GPU", .heads = 16, .tokens = 65536, .sequences = 128},
    };
    *made = kinds[machine];
}

fpa_status report_machine_make(const report_sources *sources, int machine, const char *spec, const char *name,
                               fpa_head_list *loaded, page_machine *made, fpa_error *error)
{
    const report_options *options = sources->options;
    int first, end;
    describe(made, machine);
    *loaded = (fpa_head_list){0};
    fpa_status status = select_heads(spec, name, options->dtype, loaded, &first, &end, error);
    if (status)
        return status;
    fpa_head *head = loaded->heads[first];
    made->target = sources->target[machine];
    made->head = head;
    if (machine == PAGE_GPU && head->dtype == FPA_F32 && head->products == FPA_PRODUCTS_PLAIN) {
        head->dtype = FPA_BF16;
        made->other_dtype = true;
    }
    status = plan_machine(made, error);
    if (!status)
        add_lines(made, &sources->lines[machine]);
    if (!status && made->planned && (options->verify || options->measure))
        status = prove(options, spec, made, error);
    return status;
}

void report_machine_free(fpa_head_list *loaded, page_machine *made)
{
    if (made->planned) {
        plan_free(&made->plan);
        simplified_free(&made->simple);
    }
    made->planned = false;
    head_list_free(loaded);
}
