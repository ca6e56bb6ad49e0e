/* bench: measure heads on this machine, in one form at one size. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "json.h"
#include "options.h"
#include "timing.h"

typedef struct bench_options {
    const char *head, *form, *target;
    int64_t length, batch, heads, repeats, threads;
    bool json;
} bench_options;

static void print_title(const bench_options *options)
{
    printf("batch %" PRId64 ", %" PRId64 " heads, %" PRId64 " tokens; medians\n", options->batch,
           options->heads, options->length);
    printf("%-28s %-10s %-10s %8s %14s %9s %8s\n", "head", "target", "form", "D", "ns/token/head", "GFLOP/s",
           "repeats");
}

static void print_timing(const fpa_description *about, const fpa_timing *timing)
{
    printf("%-28s %-10s %-10s %8" PRId64 " %14.1f %9.2f %8d\n", about->name, about->target,
           form_name((fpa_form_index)timing->form), about->features, timing->nanoseconds, timing->gflops,
           timing->repeats);
    fflush(stdout);
}

static void write_timing(fpa_json *json, const fpa_description *about, const bench_options *options,
                         const fpa_timing *timing)
{
    json_object(json, NULL);
    json_text(json, "head", about->name);
    json_text(json, "target", about->target);
    json_text(json, "form", form_name((fpa_form_index)timing->form));
    json_integer(json, "features", about->features);
    json_integer(json, "batch", options->batch);
    json_integer(json, "heads", options->heads);
    json_integer(json, "length", options->length);
    json_number(json, "ns_per_token_and_head", timing->nanoseconds);
    json_number(json, "gflops", timing->gflops);
    json_integer(json, "repeats", timing->repeats);
    json_close(json);
}

static fpa_status bench_head(const char *spec, const fpa_head *head, const bench_options *options,
                             fpa_load *load, fpa_json *json, fpa_error *error)
{
    fpa_options open_options = {.target = options->target};
    fpa_kernel *kernel = NULL;
    fpa_timing timing;
    progress("opening %s", head->name);
    fpa_status status = fpa_open(spec, head->name, &open_options, &kernel, error);
    if (!status) {
        progress("measuring %s", head->name);
        status = time_forward(kernel, head, load, &timing, error);
    }
    progress_end();
    if (!status && options->json)
        write_timing(json, fpa_describe(kernel), options, &timing);
    else if (!status)
        print_timing(fpa_describe(kernel), &timing);
    fpa_close(kernel);
    return status;
}

static fpa_status bench_spec(const char *spec, const bench_options *options, fpa_json *json, fpa_error *error)
{
    fpa_head_list list = {0};
    int first, end, form;
    fpa_status status = select_form(options->form, &form, error);
    if (!status)
        status = select_heads(spec, options->head, &list, &first, &end, error);
    if (status)
        return status;
    fpa_load load = {(fpa_form)form, options->batch,        options->length,
                     options->heads, (int)options->repeats, 10};
    for (int i = first; i < end && !status; i++)
        status = bench_head(spec, list.heads[i], options, &load, json, error);
    head_list_free(&list);
    return status;
}

/* OpenMP reads this when it starts, which is when the first kernel is loaded. */
static void set_threads(int64_t threads)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, threads);
    setenv("OMP_NUM_THREADS", text, 1);
}

int command_bench(int count, char **arguments)
{
    bench_options options = {.form = "auto", .length = 4096, .batch = 1, .heads = 1, .repeats = 7};
    const fpa_option table[] = {
        {"--head", OPTION_TEXT, &options.head, "NAME", "only this head of the file", 0, 0},
        {"--length", OPTION_COUNT, &options.length, "N", "tokens a sequence (4096)", 1, (int64_t)1 << 32},
        {"--batch", OPTION_COUNT, &options.batch, "N", "sequences (1)", 1, 1 << 20},
        {"--heads", OPTION_COUNT, &options.heads, "N", "heads of q, k, v and o (1)", 1, 1 << 16},
        {"--form", OPTION_TEXT, &options.form, "FORM", "auto, parallel, chunked or recurrent", 0, 0},
        {"--threads", OPTION_COUNT, &options.threads, "N", "OpenMP threads (OMP_NUM_THREADS, else all)", 1,
         4096},
        {"--repeats", OPTION_COUNT, &options.repeats, "N", "at most; fewer after ten seconds (7)", 1, 1000},
        {"--target", OPTION_TEXT, &options.target, "c[:ISA]", "c: the best that this machine runs", 0, 0},
        {"--json", OPTION_FLAG, &options.json, NULL, "for a program to read: an array", 0, 0},
    };
    const fpa_syntax syntax = {
        "bench SPEC [--head NAME] [--length N] [--batch N] [--heads N] [--form FORM] [options]",
        "Time one forward of each head: median nanoseconds per token and head, and GFLOP/s by\n"
        "the plan's own count of operations (fpac explain shows it).",
        OPTION_TABLE(table),
        1,
        1,
        NULL};
    fpa_texts operands;
    fpa_json json = {.out = stdout};
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    if (options.threads)
        set_threads(options.threads);
    if (options.json)
        json_array(&json, NULL);
    else
        print_title(&options);
    code = bench_spec(operands.text[0], &options, &json, &error) ? report(&error) : EXIT_OK;
    if (options.json)
        json_close(&json);
    return finish_output(code);
}
