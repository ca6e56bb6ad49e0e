/* bench_table: rows of `fpac bench`, for people and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "bench.h"
#include "command.h"
#include "operand.h"

static const char *timing_form(const fpa_timing *timing)
{
    return form_name((fpa_form_index)timing->form);
}

void bench_print_title(const bench_options *options)
{
    printf("batch %" PRId64 ", %" PRId64 " heads, %" PRId64 " tokens; medians\n", options->batch,
           options->heads, options->length);
    printf("%-28s %-10s %-10s %8s %14s %9s %9s %8s  %s\n", "head", "target", "form", "D", "ns/token/head",
           "GFLOP/s", "of bound", "repeats", "limited by");
}

static double share_of_bound(const bench_row *row)
{
    return row->bound.seconds / row->timing.seconds;
}

void bench_print(const bench_row *row)
{
    const fpa_description *about = row->about;
    const fpa_timing *timing = &row->timing;
    printf("%-28s %-10s %-10s %8" PRId64 " %14.1f %9.2f %7.1f %% %8d  %s\n", about->name, about->target,
           timing_form(timing), about->features, timing->nanoseconds, timing->gflops,
           100 * share_of_bound(row), timing->repeats, row->cost.limit);
    fflush(stdout);
}

/* Writes the fields that rows of CPUs and GPUs have in common. */
static void write_common(fpa_json *json, const bench_options *options, const bench_row *row)
{
    const fpa_description *about = row->about;
    const fpa_timing *timing = &row->timing;
    json_text(json, "head", about->name);
    json_text(json, "target", about->target);
    json_text(json, "form", timing_form(timing));
    json_text(json, "dtype", about->dtype);
    json_integer(json, "features", about->features);
    json_integer(json, "batch", options->batch);
    json_integer(json, "heads", options->heads);
    json_integer(json, "length", options->length);
    json_number(json, "ns_per_token_and_head", timing->nanoseconds);
    json_number(json, "gflops", timing->gflops);
    json_integer(json, "repeats", timing->repeats);
    if (row->bound.seconds > 0)
        json_number(json, "share_of_bound", share_of_bound(row));
    else
        json_text(json, "share_of_bound", NULL);
    json_text(json, "bound", row->bound.limit);
    json_text(json, "limited_by", row->cost.limit);
    json_number(json, "predicted_seconds", row->cost.seconds);
}

void bench_write(fpa_json *json, const bench_options *options, const bench_row *row)
{
    json_object(json, NULL);
    write_common(json, options, row);
    json_close(json);
}

void bench_write_error(fpa_json *json, const char *head, const fpa_error *error)
{
    json_object(json, NULL);
    json_text(json, "head", head);
    json_text(json, "error", error->message);
    json_text(json, "where", error->where);
    json_close(json);
}

static double rate(const fpa_timing *timing)
{
    return timing->bytes / timing->seconds; /* bytes per second */
}

static double product_of(const fpa_description *about, const fpa_ceiling *ceiling)
{
    return ceiling->product[dtype_find(about->dtype)]; /* FLOP per second; 0: not measured */
}

void bench_describe(const fpa_description *about, const bench_options *options, const fpa_ceiling *ceiling,
                    const fpa_timing *timing, fpa_measured *item)
{
    double product = ceiling ? product_of(about, ceiling) : 0;
    *item = (fpa_measured){.who = "fpac",
                           .version = FPA_VERSION,
                           .length = options->length,
                           .batch = options->batch,
                           .heads = options->heads,
                           .nanoseconds = timing->nanoseconds,
                           .milliseconds = 1e3 * timing->seconds,
                           .product = product > 0 ? 1e9 * timing->gflops / product : 0,
                           .copy = ceiling ? rate(timing) / ceiling->copy : 0};
    int length = snprintf(item->what, sizeof item->what, "%s %s %s%s", about->name, about->dtype,
                          timing_form(timing), options->graph ? " graph" : "");
    if (options->layers && (size_t)length < sizeof item->what)
        snprintf(item->what + length, sizeof item->what - (size_t)length, " of %" PRId64, options->layers);
}

/* ---- on a GPU ---- */

static void print_ceilings(const fpa_device *device, const fpa_ceiling *ceiling)
{
    printf("%s: copy %.0f GB/s, read plus written", device->name, 1e-9 * ceiling->copy);
    for (int i = 0; i < FPA_DTYPES; i++) {
        if (ceiling->product[i] > 0)
            printf("; %s product of %" PRId64 " rows %.1f TFLOP/s", dtype_name((fpa_dtype)i),
                   ceiling->product_rows, 1e-12 * ceiling->product[i]);
    }
    if (ceiling->note[0])
        printf("; no matrix product: %s", ceiling->note);
    putchar('\n');
}

void bench_print_device_title(const bench_options *options, const fpa_device *device,
                              const fpa_ceiling *ceiling)
{
    print_ceilings(device, ceiling);
    printf("batch %" PRId64 ", %" PRId64 " heads, %" PRId64 " tokens; medians%s\n", options->batch,
           options->heads, options->length, options->graph ? " of a CUDA graph's replays" : "");
    printf("%-28s %-5s %-12s %-10s %8s %14s %9s %10s %8s %8s %8s %8s  %s\n", "head", "dtype", "target",
           "form", "D", "ns/token/head", "TFLOP/s", "of product", "GB/s", "of copy", "of bound", "repeats",
           "limited by");
}

/* Warns if the operands fit into the cache, which makes a forward look faster than memory. */
static void print_warning(const fpa_timing *timing)
{
    char all[SIZE_TEXT], cache[SIZE_TEXT];
    double bytes = (double)timing->sets * timing->set_bytes;
    if (bytes < 2 * timing->cache_bytes)
        printf("    all %" PRId64
               " sets of operands take only %s: they may stay in the cache (%s), which makes calls faster\n",
               timing->sets, size_text(all, bytes), size_text(cache, timing->cache_bytes));
}

/* A share as "87.1 %"; "-" if it is not known. */
static const char *percent(char text[16], double share)
{
    snprintf(text, 16, share > 0 ? "%.1f %%" : "-", 100 * share);
    return text;
}

void bench_print_device(const bench_row *row, const fpa_ceiling *ceiling)
{
    const fpa_description *about = row->about;
    const fpa_timing *timing = &row->timing;
    char product[16], bound[16];
    const double most = product_of(about, ceiling);
    printf("%-28s %-5s %-12s %-10s %8" PRId64 " %14.3f %9.2f %10s %8.0f %6.1f %% %8s %8d  %s\n", about->name,
           about->dtype, about->target, timing_form(timing), about->features, timing->nanoseconds,
           1e-3 * timing->gflops, percent(product, most > 0 ? 1e9 * timing->gflops / most : 0),
           1e-9 * rate(timing), 100 * rate(timing) / ceiling->copy, percent(bound, share_of_bound(row)),
           timing->repeats, row->cost.limit);
    print_warning(timing);
    if (row->breakdown.count)
        breakdown_print(&row->breakdown, timing->seconds);
    fflush(stdout);
}

static void write_ceilings(fpa_json *json, const fpa_device *device, const fpa_description *about,
                           const fpa_ceiling *ceiling)
{
    double product = product_of(about, ceiling);
    json_text(json, "device", device->name);
    json_number(json, "copy_gb_per_second", 1e-9 * ceiling->copy);
    if (product > 0)
        json_number(json, "product_tflops", 1e-12 * product);
    else
        json_text(json, "product_tflops", NULL);
}

static void write_shares(fpa_json *json, const fpa_description *about, const fpa_ceiling *ceiling,
                         const fpa_timing *timing)
{
    double product = product_of(about, ceiling);
    json_number(json, "tflops", 1e-3 * timing->gflops);
    if (product > 0)
        json_number(json, "share_of_product", 1e9 * timing->gflops / product);
    else
        json_text(json, "share_of_product", NULL);
    json_number(json, "gb_per_second", 1e-9 * rate(timing));
    json_number(json, "share_of_copy", rate(timing) / ceiling->copy);
}

void bench_write_device(fpa_json *json, const bench_options *options, const fpa_device *device,
                        const fpa_ceiling *ceiling, const bench_row *row)
{
    const fpa_description *about = row->about;
    const fpa_timing *timing = &row->timing;
    json_object(json, NULL);
    write_common(json, options, row);
    json_text(json, "state_dtype", about->state_dtype);
    json_bool(json, "graph", options->graph);
    json_integer(json, "layers", options->layers);
    write_shares(json, about, ceiling, timing);
    json_number(json, "seconds", timing->seconds);
    json_number(json, "seconds_least", timing->least);
    json_number(json, "seconds_most", timing->most);
    json_integer(json, "forwards_a_repeat", timing->launches);
    json_number(json, "least_bytes", timing->bytes);
    json_integer(json, "operand_sets", timing->sets);
    json_number(json, "operand_set_bytes", timing->set_bytes);
    json_number(json, "cache_bytes", timing->cache_bytes);
    write_ceilings(json, device, about, ceiling);
    if (row->breakdown.count)
        breakdown_write(json, &row->breakdown);
    json_close(json);
}
