/* bench: measures heads on this machine, in one form and at one size. */
#include "head/lift.h"
#include "bench.h"
#include "bench_backward.h"
#include "bench_candidates.h"
#include "bench_layer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/open.h"
#include "command.h"
#include "options.h"

/* Data that all heads of a command share. */
typedef struct bench {
    const bench_options *options;
    fpa_options open_options;
    const fpa_target *target;
    fpa_load load;
    fpa_device *device; /* NULL: kernels run on the CPU */
    fpa_ceiling ceiling;
    fpa_json *json;
    FILE *tsv; /* NULL: no lines are written */
} bench;

static fpa_status keep(const bench *b, const bench_row *row, fpa_error *error)
{
    fpa_measured item;
    if (!b->tsv)
        return FPA_OK;
    bench_describe(row->about, b->options, b->device ? &b->ceiling : NULL, &row->timing, &item);
    return measured_write(b->tsv, b->options->tsv, &item, error);
}

static void show(const bench *b, const bench_row *row)
{
    if (b->device && b->options->json)
        bench_write_device(b->json, b->options, b->device, &b->ceiling, row);
    else if (b->device)
        bench_print_device(row, &b->ceiling);
    else if (b->options->json)
        bench_write(b->json, b->options, row);
    else
        bench_print(row);
}

/* The bytes of q, k, v, o, gates, positions and masks, and of a state that is read and written, once each. */
static double least_bytes(const bench *b, const fpa_kernel *kernel, fpa_form form)
{
    const fpa_head *head = kernel->head;
    const double sequences = (double)b->load.batch * (double)b->load.heads;
    const double token = 2.0 * dtype_size(head->dtype) * (head_width(head) + head->dv) + (head->gate ? 4 : 0);
    const double states = form == FPA_FORM_RECURRENT ? 2 * kernel->facts.state_bytes : 0;
    const double positions = head->lift ? 4.0 * head->lift->positions + head->lift->key_mask : 0;
    return sequences * ((double)b->load.length * token + states) +
           (double)b->load.batch * (double)b->load.length * positions;
}

/* Computes the bound and the prediction for a row that was timed. */
static fpa_status compare(const bench *b, const fpa_kernel *kernel, bench_row *row, fpa_error *error)
{
    const bench_job job = {b->options, &b->open_options, b->target, &b->load, b->json, b->tsv};
    const fpa_dtype arithmetic = kernel->facts.arithmetic;
    const fpa_bound_call call = {.sequences = (double)b->load.batch * (double)b->load.heads,
                                 .length = (double)b->load.length,
                                 .bytes = least_bytes(b, kernel, row->timing.form),
                                 .whole = row->timing.form != FPA_FORM_RECURRENT};
    double product = b->ceiling.product[kernel->head->dtype], copy = b->ceiling.copy;
    if (!b->device)
        bound_cpu_rates(b->target, arithmetic, bench_threads(), &product, &copy);
    row->bound = forward_bound(&kernel->facts, kernel->head->dv, kernel->head->causal, &call, product, copy);
    return bench_predict(&job, kernel, &row->cost, error);
}

/* Measures a head, and frees it. */
static fpa_status bench_head(const bench *b, fpa_head *head, fpa_error *error)
{
    fpa_kernel *kernel = NULL;
    bench_row row = {0};
    progress("opening %s", head->name);
    fpa_status status = open_parsed_head(head, &b->open_options, &kernel, error);
    if (!status) {
        progress("measuring %s", kernel->head->name);
        fpa_load load = b->load;
        load.breakdown = b->options->breakdown ? &row.breakdown : NULL;
        row.about = fpa_describe(kernel);
        status = time_forward(kernel, kernel->head, &load, &row.timing, error);
    }
    if (!status)
        status = compare(b, kernel, &row, error);
    progress_end();
    if (!status) {
        show(b, &row);
        status = keep(b, &row, error);
    }
    fpa_close(kernel);
    return status;
}

/* A head that fails does not end the run; *code becomes its exit code. After a broken device or a full disk the
 * others would fail as well, so these end it. */
static fpa_status pass_over(const bench *b, const char *head, fpa_status status, const fpa_error *error,
                            int *code)
{
    if (!status)
        return FPA_OK;
    if (status == FPA_DEVICE || status == FPA_IO || status == FPA_NO_MEMORY)
        return status;
    if (b->options->json)
        bench_write_error(b->json, head, error);
    *code = report(error);
    return FPA_OK;
}

/* Measures the ceilings for the dtypes of the heads, before the first head is opened. */
static fpa_status measure_ceilings(bench *b, fpa_head *const *heads, int count, fpa_error *error)
{
    progress("measuring copies and matrix products");
    fpa_status status = ceiling_copy(b->device, &b->ceiling, error);
    for (int i = 0; i < count && !status; i++) {
        fpa_dtype dtype = heads[i]->dtype;
        if (b->ceiling.product[dtype] == 0 && !b->ceiling.note[0])
            status = ceiling_product(b->device, dtype, &b->ceiling, error);
    }
    progress_end();
    return status;
}

static fpa_status bench_heads(bench *b, fpa_head **heads, int count, int *code, fpa_error *error)
{
    fpa_status status = b->device ? measure_ceilings(b, heads, count, error) : FPA_OK;
    if (status)
        return status;
    if (!b->options->json && b->device)
        bench_print_device_title(b->options, b->device, &b->ceiling);
    else if (!b->options->json)
        bench_print_title(b->options);
    for (int i = 0; i < count && !status; i++) {
        fpa_head *head = heads[i];
        char name[HEAD_MAX_NAME + 1];
        snprintf(name, sizeof name, "%s", head->name);
        heads[i] = NULL;
        status = pass_over(b, name, bench_head(b, head, error), error, code);
    }
    return status;
}

static fpa_status bench_all_candidates(const bench *b, fpa_head *const *heads, int count, int *code,
                                       fpa_error *error)
{
    const bench_job job = {b->options, &b->open_options, b->target, &b->load, b->json, b->tsv};
    fpa_status status = FPA_OK;
    for (int i = 0; i < count && !status; i++)
        status = pass_over(b, heads[i]->name, bench_candidates(&job, heads[i], error), error, code);
    return status;
}

/* Measures gradients of all heads, and frees the heads. */
static fpa_status bench_all_gradients(const bench *b, fpa_head **heads, int count, int *code,
                                      fpa_error *error)
{
    const bench_job job = {b->options, &b->open_options, b->target, &b->load, b->json, b->tsv};
    fpa_status status = FPA_OK;
    if (!b->options->json)
        bench_backward_title(b->options);
    for (int i = 0; i < count && !status; i++) {
        char name[HEAD_MAX_NAME + 1];
        fpa_head *head = heads[i];
        snprintf(name, sizeof name, "%s", head->name);
        heads[i] = NULL;
        status = pass_over(b, name, bench_backward(&job, head, error), error, code);
    }
    return status;
}

/* Whether an option applies to heads only; layers have one kind of output. */
static bool is_of_heads(const bench_options *options)
{
    return options->backward || options->candidates || options->breakdown || options->recent || options->tsv;
}

static fpa_status bench_layers(const bench *b, const fpa_head_list *list, int *code, fpa_error *error)
{
    const bench_job job = {b->options, &b->open_options, b->target, &b->load, b->json, b->tsv};
    fpa_status status = FPA_OK;
    for (int i = 0; i < list->layer_count && !status; i++) {
        const fpa_layer_spec *layer = &list->layers[i];
        const bool named = b->options->head && strcmp(b->options->head, layer->name) == 0;
        if (named && is_of_heads(b->options))
            return fail(error, FPA_INVALID, "--head",
                        "%s is a layer, which has no --backward, --candidates, --breakdown, --recent, --tsv",
                        layer->name);
        if (named || (!b->options->head && !is_of_heads(b->options)))
            status = pass_over(b, layer->name, bench_layer(&job, list, layer, error), error, code);
    }
    return status;
}

static fpa_status bench_spec(bench *b, const char *spec, int *code, fpa_error *error)
{
    fpa_head_list list = {0};
    int first, end;
    fpa_status status =
        select_with_layers(spec, b->options->head, b->options->dtype, &list, &first, &end, error);
    if (status)
        return status;
    status = bench_layers(b, &list, code, error);
    if (status || first == end) {
        head_list_free(&list);
        return status;
    }
    if (b->options->backward)
        status = bench_all_gradients(b, list.heads + first, end - first, code, error);
    else
        status = b->options->candidates
                     ? bench_all_candidates(b, list.heads + first, end - first, code, error)
                     : bench_heads(b, list.heads + first, end - first, code, error);
    head_list_free(&list);
    return status;
}

static fpa_status bench_on_device(bench *b, const char *spec, int *code, fpa_error *error)
{
    fpa_device device;
    b->device = &device;
    fpa_status status = device_open(b->open_options.device, &device, error);
    if (!status)
        status = bench_spec(b, spec, code, error);
    device_close(&device);
    b->device = NULL;
    return status;
}

/* Options that do not apply to the target are errors. */
static fpa_status check_options(const bench_options *options, bool on_device, fpa_error *error)
{
    fpa_dtype dtype;
    if (on_device && options->threads)
        return fail(error, FPA_INVALID, "--threads",
                    "sets the number of OpenMP threads, which CUDA targets do not have");
    if (!on_device && options->graph)
        return fail(error, FPA_INVALID, "--graph", "replays a CUDA graph: it needs a CUDA target");
    if (options->layers && !options->graph)
        return fail(error, FPA_INVALID, "--layers",
                    "is the number of forwards in a CUDA graph: it needs --graph");
    if (options->recent && (!on_device || options->length != 1 || strcmp(options->form, "recurrent") != 0))
        return fail(error, FPA_INVALID, "--recent",
                    "measures decoding: it needs a CUDA target, --length 1 and --form recurrent");
    if (options->recent && options->candidates)
        return fail(error, FPA_INVALID, "--recent",
                    "times several calls, but --candidates times one: give one of the two");
    if (options->backward && (options->candidates || options->tsv || options->graph))
        return fail(error, FPA_INVALID, "--backward",
                    "prints one line a head: leave out --candidates, --tsv and --graph");
    if (options->breakdown && !on_device)
        return fail(error, FPA_INVALID, "--breakdown",
                    "times each kernel of a call by GPU events: it needs a CUDA target");
    if (options->breakdown && (options->candidates || options->backward))
        return fail(
            error, FPA_INVALID, "--breakdown",
            "is for the forward pass that the cost model chooses: leave out --candidates and --backward");
    return options->dtype ? select_dtype(options->dtype, &dtype, error) : FPA_OK;
}

/* Selects form and target of the command line, before anything is opened. */
static fpa_status select_request(bench *b, int *form, const fpa_backend **backend, fpa_error *error)
{
    fpa_status status = select_form(b->options->form, form, error);
    if (!status)
        status = select_backend(b->options->target, backend, error);
    if (!status)
        status = check_options(b->options, (*backend)->memory != NULL, error);
    if (!status)
        status = select_running(&b->open_options, backend, &b->target, error);
    if (status || !b->options->tsv)
        return status;
    return b->options->candidates ? candidates_open(b->options->tsv, &b->tsv, error)
                                  : measured_open(b->options->tsv, &b->tsv, error);
}

/* *code: EXIT_OK, or the exit code of the last head that failed. */
static fpa_status run_bench(const bench_options *options, fpa_json *json, const char *spec, int *code,
                            fpa_error *error)
{
    enum { CPU_REPEATS = 7, GPU_REPEATS = 25, SECONDS = 10 };
    bench b = {.options = options,
               .open_options = {.target = options->target, .device = (int)options->device, .log = say_log},
               .json = json};
    const fpa_backend *backend;
    int form, repeats = (int)options->repeats;
    fpa_status status = select_request(&b, &form, &backend, error);
    if (status)
        return status;
    bool on_device = backend->memory != NULL;
    if (!repeats)
        repeats = on_device ? GPU_REPEATS : CPU_REPEATS;
    b.load = (fpa_load){.form = (fpa_form)form,
                        .batch = options->batch,
                        .length = options->length,
                        .heads = options->heads,
                        .repeats = repeats,
                        .seconds = SECONDS,
                        .recent = options->recent,
                        .layers = options->graph ? (options->layers ? options->layers : 1) : 0};
    status = on_device && !options->backward ? bench_on_device(&b, spec, code, error)
                                             : bench_spec(&b, spec, code, error);
    if (b.tsv)
        fclose(b.tsv); /* each line has been flushed */
    return status;
}

/* OpenMP reads the variable when it starts, which is when the first kernel is loaded. */
static void set_threads(int64_t threads)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, threads);
    setenv("OMP_NUM_THREADS", text, 1);
}

static int bench_command(const bench_options *options, const char *spec)
{
    fpa_json json = {.out = stdout};
    fpa_error error;
    if (options->threads)
        set_threads(options->threads);
    if (options->json)
        json_array(&json, NULL);
    int code = EXIT_OK;
    if (run_bench(options, &json, spec, &code, &error))
        code = report(&error);
    if (options->json)
        json_close(&json);
    return finish_output(code);
}

int command_bench(int count, char **arguments)
{
    bench_options options = {.form = "auto", .length = 4096, .batch = 1, .heads = 1};
    const fpa_option table[] = {
        {"--head", OPTION_TEXT, &options.head, "NAME", "only this head, or layer, of the file", 0, 0},
        {"--length", OPTION_COUNT, &options.length, "N", "tokens per sequence (4096)", 1, (int64_t)1 << 32},
        {"--batch", OPTION_COUNT, &options.batch, "N", "sequences (1)", 1, 1 << 20},
        {"--heads", OPTION_COUNT, &options.heads, "N", "heads of q, k, v and o (1); not for layers", 1,
         1 << 16},
        {"--form", OPTION_TEXT, &options.form, "FORM", "auto, parallel, chunked or recurrent", 0, 0},
        {"--dtype", OPTION_TEXT, &options.dtype, "DTYPE", dtype_help, 0, 0},
        {"--threads", OPTION_COUNT, &options.threads, "N", "OpenMP threads (OMP_NUM_THREADS, else all)", 1,
         4096},
        {"--repeats", OPTION_COUNT, &options.repeats, "N",
         "repetitions at most; fewer after ten seconds (7; GPU: 25)", 1, 1000},
        {"--recent", OPTION_COUNT, &options.recent, "R", "GPU: decode with R recent tokens beside the state",
         1, 4096},
        {"--graph", OPTION_FLAG, &options.graph, NULL, "GPU: replay one forward as a CUDA graph", 0, 0},
        {"--layers", OPTION_COUNT, &options.layers, "N",
         "--graph: N forwards, as in a model with N layers (1)", 1, 256},
        {"--candidates", OPTION_FLAG, &options.candidates, NULL,
         "time each mechanism for the call, beside its prediction", 0, 0},
        {"--breakdown", OPTION_FLAG, &options.breakdown, NULL,
         "GPU: also time each kernel of a call by itself", 0, 0},
        {"--backward", OPTION_FLAG, &options.backward, NULL, "also time the gradients", 0, 0},
        {"--target", OPTION_TEXT, &options.target, "TARGET", target_help, 0, 0},
        {"--device", OPTION_COUNT, &options.device, "N", device_help, 0, MOST_DEVICES},
        {"--json", OPTION_FLAG, &options.json, NULL, "print JSON: an array", 0, 0},
        {"--tsv", OPTION_TEXT, &options.tsv, "FILE", "append a line for each head, for fpac plot", 0, 0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "bench SPEC [--head NAME] [--length N] [--batch N] [--heads N] [--form FORM] [options]",
        "Time one forward of each head: median nanoseconds per token and head, and GFLOP/s by\n"
        "the plan's own count of operations (fpac explain shows it).",
        OPTION_TABLE(table),
        1,
        1,
        "On a GPU, times are taken with the device's clock. Forwards alternate between so many sets of\n"
        "operands that the cache cannot hold them; the recurrent form updates a state in place. The table\n"
        "also shows the rate relative to cuBLAS's product of 8192 x 8192 matrices of the head's dtype, and\n"
        "GB/s of the least memory traffic (every operand once, a state in and out) relative to a large\n"
        "copy, all measured in the same run. Short forwards are limited by launches: --graph shows the time\n"
        "of the kernels alone, --layers that of one forward among several with different operands.\n"
        "\n"
        "--candidates forces each candidate that fpac explain --length lists, and shows the regret: how "
        "much\n"
        "longer the model's choice takes than the fastest. Kernels by other mechanisms are opened and timed\n"
        "too. --tsv then adds a line for each candidate.\n"
        "\n"
        "--backward times a forward and a backward pass with all gradients. The share is the time of their\n"
        "products at the rate of a large matrix product, relative to the time of both: 14 D dv FLOP per\n"
        "token, or if it is less 4 and 10 times the widths of pairs times L, and projections."};
    fpa_texts operands;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    return bench_command(&options, operands.text[0]);
}
