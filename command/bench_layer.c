#include "bench_layer.h"

#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "runtime/api/open.h"
#include "timing_layer.h"

/* The speed of the layer relative to its parts one after the other, each on all of the machine. */
static double gain(const fpa_layer_timing *timing)
{
    return timing->sum / timing->seconds;
}

static void print(const bench_job *job, const fpa_layer_description *about, const fpa_layer_timing *timing)
{
    printf("layer %s, %s: batch %" PRId64 ", %d heads, %" PRId64 " tokens%s; medians\n", about->name,
           about->target, job->options->batch, about->heads, job->options->length,
           job->options->graph ? ", in CUDA graphs" : "");
    for (int i = 0; i < about->part_count; i++)
        printf("  %-28s %6d heads alone %12.2f us\n", about->parts[i].head->name, about->parts[i].heads,
               1e6 * timing->part[i]);
    printf("  %-28s %6d heads       %12.2f us\n", "sum of the parts", about->heads, 1e6 * timing->sum);
    printf("  %-28s %6d heads       %12.2f us (%.2f to %.2f, %d repeats), sum / layer %.3f\n", "layer",
           about->heads, 1e6 * timing->seconds, 1e6 * timing->least, 1e6 * timing->most, timing->repeats,
           gain(timing));
    fflush(stdout);
}

static void write(const bench_job *job, const fpa_layer_description *about, const fpa_layer_timing *timing)
{
    fpa_json *json = job->json;
    json_object(json, NULL);
    json_text(json, "layer", about->name);
    json_text(json, "target", about->target);
    json_text(json, "dtype", about->dtype);
    json_integer(json, "batch", job->options->batch);
    json_integer(json, "heads", about->heads);
    json_integer(json, "length", job->options->length);
    json_number(json, "seconds", timing->seconds);
    json_number(json, "seconds_of_parts", timing->sum);
    json_number(json, "gain", gain(timing));
    json_integer(json, "repeats", timing->repeats);
    json_array(json, "parts");
    for (int i = 0; i < about->part_count; i++) {
        json_object(json, NULL);
        json_text(json, "head", about->parts[i].head->name);
        json_integer(json, "heads", about->parts[i].heads);
        json_number(json, "seconds", timing->part[i]);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

fpa_status bench_layer(const bench_job *job, const fpa_head_list *list, const fpa_layer_spec *layer,
                       fpa_error *error)
{
    fpa_layer *opened = NULL;
    fpa_layer_timing timing;
    progress("opening %s", layer->name);
    fpa_status status = open_layer_of(list, layer, job->open_options, &opened, error);
    if (!status) {
        progress("measuring %s", layer->name);
        status = time_layer(opened, job->load, &timing, error);
    }
    progress_end();
    if (!status && job->options->json)
        write(job, fpa_describe_layer(opened), &timing);
    else if (!status)
        print(job, fpa_describe_layer(opened), &timing);
    fpa_close_layer(opened);
    return status;
}
