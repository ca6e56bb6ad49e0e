/* design: lists heads whose states fit into a given size, with their time and recall. */
#include "design.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/size.h"
#include "candidates.h"
#include "device.h"
#include "gen/plan/candidates.h"
#include "gen/plan/plan.h"
#include "options.h"
#include "runtime/api/open.h"
#include "runtime/kernel.h"
#include "timing.h"

/* ---- one row ---- */

/* The least time of a form's candidates, as ns per token and head; *found false: no candidate is possible. */
static fpa_status predict_form(design_request *request, const fpa_plan *plan, int form, int64_t length,
                               double *best, bool *found, fpa_error *error)
{
    const bool steps = form == FORM_RECURRENT;
    const fpa_call_size size = {.form = form,
                                .batch = request->batch,
                                .length = length,
                                .query_heads = request->heads,
                                .heads = request->heads,
                                .state_in = steps,
                                .state_out = steps};
    fpa_candidate_list list;
    if (!(plan->facts.forms & 1 << form))
        return FPA_OK;
    fpa_status status = plan_candidates(plan, &size, request->machine, &list, error);
    if (status)
        return status;
    request->machine_name = list.machine;
    if (list.fastest >= 0) {
        const double ns = candidate_nanoseconds(&size, list.list[list.fastest].cost.seconds);
        *best = *found ? fmin(*best, ns) : ns;
        *found = true;
    }
    candidate_list_free(&list);
    return FPA_OK;
}

static fpa_status predict(design_request *request, const fpa_plan *plan, design_row *row, fpa_error *error)
{
    bool has_prefill = false, has_decode = false;
    fpa_status status =
        predict_form(request, plan, FORM_PARALLEL, request->length, &row->prefill, &has_prefill, error);
    if (!status)
        status =
            predict_form(request, plan, FORM_CHUNKED, request->length, &row->prefill, &has_prefill, error);
    if (!status)
        status = predict_form(request, plan, FORM_RECURRENT, 1, &row->decode, &has_decode, error);
    row->fits = row->fits && has_prefill && has_decode;
    return status;
}

static fpa_status measure_capacity(const design_request *request, const fpa_simplified *simple,
                                   design_row *row, fpa_error *error)
{
    kernel_moments moments;
    fpa_status status = kernel_measure(simple, row->scale, &moments, error);
    if (status)
        return status;
    row->pairs = capacity_pairs(&moments, (int)request->dv, (double)request->recalled / 100);
    row->worth = capacity_features(&moments);
    row->is_negative = moments.is_negative;
    return FPA_OK;
}

static fpa_status plan_row(design_request *request, const fpa_head *head, const fpa_simplified *simple,
                           design_row *row, fpa_error *error)
{
    fpa_plan plan;
    fpa_status status = plan_choose(simple, head, request->target, &plan, error);
    if (status)
        return status;
    row->facts = plan.facts;
    row->fits = plan.facts.state_bytes <= request->state;
    if (row->fits)
        status = predict(request, &plan, row, error);
    if (!status && row->fits)
        status = measure_capacity(request, simple, row, error);
    plan_free(&plan);
    return status;
}

/* Examines a row. A head that the target cannot serve is only a row that does not fit; lack of memory ends the
 * search. */
static fpa_status examine_row(design_request *request, design_row *row, fpa_error *refusal, fpa_error *error)
{
    fpa_head_list list = {0};
    fpa_simplified simple;
    fpa_status status = design_load(request, row, &list, error);
    if (!status)
        status = simplify(list.heads[0], &simple, error);
    if (!status) {
        status = plan_row(request, list.heads[0], &simple, row, error);
        simplified_free(&simple);
    }
    head_list_free(&list);
    if (status == FPA_UNSUPPORTED) {
        row->fits = false;
        *refusal = *error;
        if (*verbose_flag())
            note("%s is left out: %s: %s", row->label, error->where, error->message);
        return FPA_OK;
    }
    return status;
}

/* ---- all rows ---- */

static bool is_same(const design_row *a, const design_row *b)
{
    return a->function == b->function && a->facts.features == b->facts.features && a->prefill == b->prefill &&
           a->decode == b->decode;
}

/* Records the smallest state that does not fit: of a head whose monomials would fit, but not its blocks, or the
 * normaliser's column. */
static void note_too_large(const design_request *request, const design_row *row, design_list *list)
{
    const double bytes = row->facts.state_bytes;
    if (bytes <= request->state || (list->smallest > 0 && list->smallest <= bytes))
        return;
    list->smallest = bytes;
    memcpy(list->smallest_label, row->label, sizeof list->smallest_label);
}

/* Keeps the rows that fit, each once: rows with the same function and the same cost are the same head. */
static void keep_fitting(const design_request *request, design_list *list)
{
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        bool wanted = list->rows[i].fits;
        note_too_large(request, &list->rows[i], list);
        for (int j = 0; j < kept && wanted; j++)
            wanted = !is_same(&list->rows[i], &list->rows[j]);
        if (wanted)
            list->rows[kept++] = list->rows[i];
    }
    list->count = kept;
}

static bool is_beaten(const design_request *request, const design_row *row, const design_row *by)
{
    if (request->normalize != FPA_NORMALIZE_NONE && row->is_negative != by->is_negative)
        return row->is_negative; /* its normaliser may be zero, however good its recall is */
    const bool as_good = by->pairs >= row->pairs && by->prefill <= row->prefill;
    return as_good && (by->pairs > row->pairs || by->prefill < row->prefill);
}

/* Numbers the Pareto fronts: 1 for rows that no other row beats, 2 for those that only rows of front 1 beat, and
 * so on. */
static void find_fronts(const design_request *request, design_list *list)
{
    int placed = 0;
    for (int front = 1; placed < list->count; front++)
        for (int i = 0; i < list->count; i++) {
            design_row *row = &list->rows[i];
            bool beaten = row->front > 0;
            for (int j = 0; j < list->count && !beaten; j++) {
                const design_row *by = &list->rows[j];
                beaten = (by->front == 0 || by->front == front) && is_beaten(request, row, by);
            }
            if (!beaten) {
                row->front = front;
                placed++;
            }
        }
}

static int compare_rows(const void *left, const void *right)
{
    const design_row *a = left, *b = right;
    if (a->front != b->front)
        return a->front - b->front;
    if (a->pairs != b->pairs)
        return a->pairs > b->pairs ? -1 : 1;
    if (a->decode != b->decode)
        return a->decode < b->decode ? -1 : 1;
    return strcmp(a->label, b->label);
}

static fpa_status refuse_budget(const design_request *request, const design_list *list, fpa_error *error)
{
    char state[SIZE_TEXT], smallest[SIZE_TEXT];
    if (list->refusal.code)
        return fail(error, FPA_UNSUPPORTED, request->target->name,
                    "supports none of the heads of d = %d, dv = %d that fit into %s; the last one: %s",
                    (int)request->d, (int)request->dv, size_text(state, request->state),
                    list->refusal.message);
    return fail(error, FPA_INVALID, "--state",
                "%s is too small for any head of d = %d, dv = %d: the smallest, %s, has a state of %s",
                size_text(state, request->state), (int)request->d, (int)request->dv, list->smallest_label,
                size_text(smallest, list->smallest));
}

/* Checks that heads of these widths can exist. */
static fpa_status check_widths(const design_request *request, fpa_error *error)
{
    const int widest = plan_widest(request->target), values = plan_widest_values(request->target);
    if (!widest || (request->d <= widest && request->dv <= values))
        return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, request->target->name,
                "supports none of the heads of d = %d, dv = %d: its kernels take d up to %d and dv up to %d",
                (int)request->d, (int)request->dv, widest, values);
}

static fpa_status search(design_request *request, design_list *list, fpa_error *error)
{
    fpa_status status = check_widths(request, error);
    if (!status)
        status = design_enumerate(request, list, error);
    for (int i = 0; i < list->count && !status; i++) {
        progress("%d of %d: %s", i + 1, list->count, list->rows[i].label);
        status = examine_row(request, &list->rows[i], &list->refusal, error);
    }
    progress_end();
    if (status)
        return status;
    keep_fitting(request, list);
    if (list->count == 0)
        return refuse_budget(request, list, error);
    find_fronts(request, list);
    qsort(list->rows, (size_t)list->count, sizeof *list->rows, compare_rows);
    return FPA_OK;
}

/* ---- measuring ---- */

/* Steps in a CUDA graph, as layers of a model would be; launched one by one, small steps would wait for the CPU. */
enum { STEPS_OF_A_GRAPH = 25 };

static fpa_status time_row(const design_request *request, const fpa_kernel *kernel, const fpa_head *head,
                           design_row *row, fpa_error *error)
{
    fpa_timing timing;
    fpa_load load = {.form = FPA_FORM_AUTO,
                     .batch = request->batch,
                     .length = request->length,
                     .heads = request->heads,
                     .repeats = 7,
                     .seconds = 2};
    fpa_status status = time_forward(kernel, head, &load, &timing, error);
    row->measured_prefill = timing.nanoseconds;
    load.form = FPA_FORM_RECURRENT;
    load.length = 1;
    load.repeats = 25;
    load.layers = device_is_remote(kernel) ? STEPS_OF_A_GRAPH : 0;
    if (!status)
        status = time_forward(kernel, head, &load, &timing, error);
    row->measured_decode = timing.nanoseconds;
    row->was_measured = !status;
    return status;
}

static fpa_status measure_row(const design_request *request, design_row *row, fpa_error *error)
{
    const fpa_options options = {
        .target = request->target->name, .device = (int)request->device, .log = say_log};
    fpa_head_list list = {0};
    fpa_kernel *kernel = NULL;
    fpa_status status = design_load(request, row, &list, error);
    if (!status) {
        fpa_head *head = list.heads[0];
        list.heads[0] = NULL;
        status = open_parsed_head(head, &options, &kernel, error);
    }
    if (!status)
        status = time_row(request, kernel, kernel->head, row, error);
    fpa_close(kernel);
    head_list_free(&list);
    return status;
}

/* Measures the rows; one that fails does not stop the others. Returns the exit code. */
static int measure_rows(const design_request *request, design_list *list)
{
    int code = EXIT_OK;
    fpa_error error;
    for (int i = 0; i < list->count && i < request->measured; i++) {
        progress("measuring %d: %s", i + 1, list->rows[i].label);
        if (measure_row(request, &list->rows[i], &error)) {
            int own = report(&error);
            code = own > code ? own : code;
        }
    }
    progress_end();
    return code;
}

/* ---- the command line ---- */

static fpa_status read_state(const char *text, double *bytes, fpa_error *error)
{
    int64_t size;
    if (!size_parse(text, &size))
        return fail(error, FPA_INVALID, "--state", "%s is no size of a state; write 512KiB, 1.5MiB or bytes",
                    text);
    *bytes = (double)size;
    return FPA_OK;
}

static fpa_status select_normalize(const char *name, fpa_normalize *kind, fpa_error *error)
{
    const char *names[FPA_NORMALIZE_KINDS + 1] = {NULL};
    for (int i = 0; i < FPA_NORMALIZE_KINDS; i++) {
        *kind = (fpa_normalize)i;
        names[i] = normalize_name(*kind);
        if (!strcmp(name, names[i]))
            return FPA_OK;
    }
    return fail_unknown(error, "--normalize", name, "normaliser", names);
}

/* Selects the machine for predictions: the named GPU, or the one that is measured; else the target's default row. */
static fpa_status select_machine(design_request *request, fpa_error *error)
{
    request->machine.threads = (int)request->threads;
    if (request->measured && !request->gpu_name && request->target->backend == BACKEND_CUDA)
        return device_row((int)request->device, &request->machine.gpu, error);
    return select_gpu(request->gpu_name, request->target, &request->machine.gpu, error);
}

static fpa_status complete(design_request *request, fpa_error *error)
{
    const fpa_options options = {.target = request->target_name, .device = (int)request->device};
    const fpa_backend *backend;
    fpa_status status = read_state(request->state_text, &request->state, error);
    if (!status)
        status = select_normalize(request->normalize_name, &request->normalize, error);
    if (!status)
        status = select_dtype(request->dtype_name, &request->dtype, error);
    if (!status)
        status = request->measured ? select_running(&options, &backend, &request->target, error)
                                   : select_target(request->target_name, &request->target, error);
    if (!status)
        status = select_machine(request, error);
    if (request->dv == 0)
        request->dv = request->d;
    return status;
}

static fpa_status design(design_request *request, int *code, fpa_error *error)
{
    design_list list = {0};
    char threads[32];
    snprintf(threads, sizeof threads, "%d", (int)request->threads);
    setenv("OMP_NUM_THREADS", threads, 1); /* for kernels that are opened later */
    fpa_status status = complete(request, error);
    if (!status)
        status = search(request, &list, error);
    if (!status && request->output)
        status = design_write_chosen(request, &list, error);
    if (!status && request->plot)
        status = design_plot(request, &list, error);
    if (!status) {
        *code = measure_rows(request, &list);
        (request->json ? design_write_json : design_print)(request, &list);
    }
    design_free(&list);
    return status;
}

static const char notes[] =
    "Candidates: linear; power, spow and tspow of degree 2 to 6 and blocks of 1 to 64; taylor and\n"
    "inhomogeneous; powers, taylor and products of learned projections; sketches of degree 2. Each is\n"
    "simplified and planned as `fpac explain` does, for a call of --batch, --heads and --length. Decode is\n"
    "a step of --batch sequences, measured on GPUs as one of 25 in a CUDA graph.\n"
    "\n"
    "Order: first the Pareto front (*), the heads that no other head beats in both recall and prefill time,\n"
    "by falling recall; then those that only these beat, and so on. With a normaliser, kernels that are\n"
    "negative for some keys come last, because the normaliser may vanish.\n"
    "\n"
    "recall: the largest number of pairs of random keys and values that a state can hold so that --recalled\n"
    "percent of the values come back as the nearest one; docs/command.md has the formula. It counts\n"
    "interference only, not training, gates or rounding. -: the kernel is negative for some keys.";

static int run_design(const fpa_syntax *syntax, design_request *request)
{
    fpa_error error;
    int code;
    if (!request->d)
        return option_missing(syntax, "--d");
    if (!request->state_text)
        return option_missing(syntax, "--state");
    if (design(request, &code, &error))
        return report(&error);
    return finish_output(code);
}

int command_design(int count, char **arguments)
{
    design_request request = {.length = 4096,
                              .heads = 1,
                              .batch = 1,
                              .threads = 1,
                              .recalled = 50,
                              .rows = 20,
                              .chosen = 1,
                              .dtype_name = "f32",
                              .normalize_name = "none"};
    const fpa_option table[] = {
        {"--d", OPTION_COUNT, &request.d, "N", "width of q and k", 1, HEAD_MAX_WIDTH},
        {"--dv", OPTION_COUNT, &request.dv, "N", "width of v and o (d)", 1, HEAD_MAX_WIDTH},
        {"--state", OPTION_TEXT, &request.state_text, "SIZE", "largest state of one head: 512KiB, 1.5MiB", 0,
         0},
        {"--target", OPTION_TEXT, &request.target_name, "TARGET",
         "plan for c[:ISA] or cuda:sm_NN (fpac list); c: the best here", 0, 0},
        {"--dtype", OPTION_TEXT, &request.dtype_name, "DTYPE", "of q, k, v, o: f32, bf16 or f16 (f32)", 0, 0},
        {"--normalize", OPTION_TEXT, &request.normalize_name, "KIND", "none, sum, max or one_plus_sum (none)",
         0, 0},
        {"--gate", OPTION_FLAG, &request.gate, NULL, "heads are gated", 0, 0},
        {"--length", OPTION_COUNT, &request.length, "N", "tokens of a prefill (4096)", 1, (int64_t)1 << 32},
        {"--batch", OPTION_COUNT, &request.batch, "N", "sequences (1)", 1, 1 << 20},
        {"--heads", OPTION_COUNT, &request.heads, "N", "heads of q, k, v and o (1)", 1, 1 << 16},
        {"--threads", OPTION_COUNT, &request.threads, "N", "of a C target (1)", 1, 4096},
        {"--recalled", OPTION_COUNT, &request.recalled, "PERCENT", "percentage of pairs to be recalled (50)",
         1, 99},
        {"--rows", OPTION_COUNT, &request.rows, "N", "of the table (20)", 1, 100000},
        {"--measure", OPTION_COUNT, &request.measured, "N", "compile, verify and time the first N rows", 1,
         100000},
        {"--gpu", OPTION_TEXT, &request.gpu_name, "GPU",
         "predict for h200, h100, a100 ... (the one that is measured, else the target's usual one)", 0, 0},
        {"--device", OPTION_COUNT, &request.device, "N", device_help, 0, MOST_DEVICES},
        {"-o", OPTION_TEXT, &request.output, "FILE.lua", "write the first row's spec, or that of --choose", 0,
         0},
        {"--choose", OPTION_COUNT, &request.chosen, "ROW", "-o: the row (1)", 1, 100000},
        {"--plot", OPTION_TEXT, &request.plot, "FILE.svg", "draw recall against time", 0, 0},
        {"--json", OPTION_FLAG, &request.json, NULL, "print JSON: an array of all rows", 0, 0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "design --d N --state SIZE [--dv N] [--target TARGET] [--dtype DTYPE] [--normalize KIND] [--gate] "
        "[--length N] [--batch N] [--heads N] [--threads N] [--recalled PERCENT] [--rows N] [--measure N] "
        "[--gpu GPU] [--device N] [-o FILE.lua] [--choose ROW] [--plot FILE.svg] [--json]",
        "Find heads whose state fits into a budget, and rank them by recall and cost: D, state, predicted\n"
        "ns per token and head for prefill and decode, crossover, recall.",
        OPTION_TABLE(table),
        0,
        0,
        notes};
    fpa_texts operands;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    return run_design(&syntax, &request);
}
