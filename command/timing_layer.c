#include "timing_layer.h"

#include "base/clock.h"
#include "device.h"
#include "graphs.h"
#include "layer_operands.h"
#include "median.h"

enum { CACHE_FACTOR = 4, MANY_SETS = 1024, MANY_REPEATS = 1024 };

/* All sets of operands, and the call that is made on them. */
typedef struct stage {
    const fpa_layer *layer;
    fpa_device *device; /* NULL: on the CPU */
    fpa_form form;
    layer_operands operands;
    void *workspace;
    size_t workspace_size;
    int64_t layers;    /* calls in a graph; 0: no graph */
    fpa_graphs graphs; /* graphs of the sets, if layers > 0 */
} stage;

/* Prepares the operands. A decoded token has its whole window and, on a GPU, a state that is updated in place. */
static fpa_status prepare(stage *s, const fpa_load *load, fpa_error *error)
{
    const bool decodes = s->form == FPA_FORM_RECURRENT || (s->form == FPA_FORM_AUTO && load->length == 1);
    const layer_size size = {.batch = load->batch,
                             .length = load->length,
                             .group = 1,
                             .in = s->device && decodes,
                             .in_place = s->device && decodes,
                             .before_window = load->length == 1};
    layer_operands *x = &s->operands;
    fpa_status status = layer_operands_describe(x, s->layer, &size, error);
    if (status)
        return status;
    const int64_t sets = s->device ? (int64_t)(CACHE_FACTOR * s->device->cache_bytes / x->set_bytes + 1) : 1;
    x->tensors.stream = s->device ? s->device->stream : NULL;
    status = layer_operands_make(x, sets < MANY_SETS ? sets : MANY_SETS, error);
    if (!status)
        status = fpa_layer_workspace_size(s->layer, s->form, &x->tensors, &s->workspace_size, error);
    return status ? status : device_allocate(x->kernel, s->workspace_size, &s->workspace, error);
}

/* ---- calls ---- */

static fpa_status call(void *user, int64_t number, CUstream stream, fpa_error *error)
{
    stage *s = user;
    (void)stream; /* the tensors contain the stream */
    layer_operands_turn_to(&s->operands, number % s->operands.sets);
    return fpa_layer_forward(s->layer, s->form, &s->operands.tensors, s->workspace, s->workspace_size, error);
}

static fpa_status time_on_gpu(stage *s, const fpa_load *load, fpa_layer_timing *timing, fpa_error *error)
{
    fpa_sample sample;
    const fpa_work forward = {call, s}, graph = {graphs_launch, &s->graphs};
    fpa_status status = FPA_OK;
    if (s->layers)
        status = graphs_make(s->device, &forward, s->operands.sets, s->layers, &s->graphs, error);
    if (!status)
        status = device_measure(s->device, s->layers ? &graph : &forward, load->repeats, load->seconds,
                                &sample, error);
    if (status)
        return status;
    const double calls = s->layers ? (double)s->layers : 1;
    timing->seconds = sample.median / calls;
    timing->least = sample.least / calls;
    timing->most = sample.most / calls;
    timing->repeats = sample.repeats;
    return FPA_OK;
}

static fpa_status time_here(stage *s, const fpa_load *load, fpa_layer_timing *timing, fpa_error *error)
{
    double taken[MANY_REPEATS];
    const int most = load->repeats < MANY_REPEATS ? load->repeats : MANY_REPEATS;
    int repeats = 0;
    fpa_status status = call(s, 0, NULL, error);
    for (const double start = clock_seconds(); !status && repeats < most; repeats++) {
        const double begin = clock_seconds();
        if (repeats > 0 && begin - start > load->seconds)
            break;
        status = call(s, 0, NULL, error);
        taken[repeats] = clock_seconds() - begin;
    }
    if (status)
        return status;
    timing->seconds = median_of(taken, repeats);
    timing->least = taken[0];
    timing->most = taken[repeats - 1];
    timing->repeats = repeats;
    return FPA_OK;
}

static void free_stage(stage *s)
{
    if (s->device)
        s->device->driver->cuCtxSynchronize(); /* after an error some launches may still be running */
    graphs_free(&s->graphs);
    device_release(s->layer->kernels[0], s->workspace);
    layer_operands_free(&s->operands);
}

static fpa_status time_whole(const fpa_layer *layer, const fpa_load *load, fpa_layer_timing *timing,
                             fpa_error *error)
{
    fpa_device device;
    stage s = {.layer = layer, .form = load->form, .layers = load->layers};
    const fpa_kernel *kernel = layer->kernels[0];
    const bool remote = device_is_remote(kernel);
    s.operands.kernel = kernel;
    fpa_status status = remote ? device_open(device_of(kernel).device_id, &device, error) : FPA_OK;
    s.device = remote ? &device : NULL;
    if (!status) {
        status = prepare(&s, load, error);
        if (!status)
            status = s.device ? time_on_gpu(&s, load, timing, error) : time_here(&s, load, timing, error);
        free_stage(&s);
    }
    if (remote)
        device_close(&device);
    return status;
}

fpa_status time_layer(const fpa_layer *layer, const fpa_load *load, fpa_layer_timing *timing,
                      fpa_error *error)
{
    *timing = (fpa_layer_timing){.seconds = 0};
    fpa_status status = time_whole(layer, load, timing, error);
    for (int i = 0; i < fpa_describe_layer(layer)->part_count && !status; i++) {
        fpa_load its = *load;
        fpa_timing part;
        its.heads = layer->parts[i].heads;
        status = time_forward(layer->kernels[i], layer->kernels[i]->head, &its, &part, error);
        timing->part[i] = part.seconds;
        timing->sum += part.seconds;
    }
    return status;
}
