#include "timing_layer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device.h"
#include "median.h"
#include "operand.h"

enum { CACHE_FACTOR = 4, MANY_SETS = 1024, MANY_REPEATS = 1024, ALIGNMENT = 256, MOST_WEIGHTS = 256 };

enum { PART_Q, PART_K, PART_V, PART_O, PART_GATE, PART_POSITIONS, PART_MASK, PART_STATE, PARTS };

/* One operand in a set. */
typedef struct operand {
    bool given, is_mask;
    fpa_dtype dtype;
    float low, high;
    int64_t shape[4];
    size_t size, offset; /* bytes; from the set's start */
    DLTensor tensor;     /* of the set that is next */
} operand;

/* All sets, and the call that is made on them. */
typedef struct stage {
    const fpa_layer *layer;
    const fpa_kernel *kernel; /* one of its own: where memory is */
    fpa_device *device;       /* NULL: on the CPU */
    fpa_form form;
    operand operand[PARTS], weight[MOST_WEIGHTS];
    const DLTensor *weights[MOST_WEIGHTS];
    fpa_tensors tensors;
    size_t set_bytes, workspace_size;
    int64_t sets, layers;
    char *memory;
    void *workspace;
    CUgraphExec *graph; /* [sets]; NULL: calls are made */
} stage;

/* ---- operands ---- */

static void describe(stage *s, operand *x, int axes, const int64_t *shape)
{
    int64_t count = 1;
    for (int a = 0; a < axes; a++)
        count *= x->shape[a] = shape[a];
    x->given = true;
    x->tensor = (DLTensor){.device = device_of(s->kernel),
                           .ndim = axes,
                           .dtype = x->is_mask ? (DLDataType){kDLUInt, 8, 1} : dtype_describe(x->dtype),
                           .shape = x->shape};
    x->size = (size_t)count * (x->is_mask ? 1 : dtype_size(x->dtype));
    x->offset = s->set_bytes;
    s->set_bytes += (x->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static fpa_status describe_weights(stage *s, fpa_error *error)
{
    const fpa_layer_description *about = fpa_describe_layer(s->layer);
    if (about->weight_count > MOST_WEIGHTS)
        return fail(error, FPA_UNSUPPORTED, about->name, "has %d run-time matrices; at most %d are timed",
                    about->weight_count, MOST_WEIGHTS);
    for (int i = 0; i < about->part_count; i++) {
        const fpa_head *head = s->layer->kernels[i]->head;
        int at = about->parts[i].first_weight;
        for (int m = 0; m < head->matrix_count; m++) {
            int64_t shape[3];
            if (head->matrices[m].kind == FPA_MATRIX_CONSTANT)
                continue;
            const int axes = weight_shape(&head->matrices[m], about->parts[i].heads, shape);
            s->weight[at] = (operand){.dtype = FPA_F32, .low = -1, .high = 1};
            describe(s, &s->weight[at], axes, shape);
            s->weights[at] = &s->weight[at].tensor;
            at++;
        }
    }
    return FPA_OK;
}

/* Keys and queries are positive, so that no normaliser comes near zero. A token that is decoded has its whole window. */
static fpa_status describe_set(stage *s, const fpa_load *load, fpa_error *error)
{
    const fpa_layer_description *about = fpa_describe_layer(s->layer);
    const fpa_dtype dtype = dtype_find(about->dtype);
    const int64_t before = about->window && load->length == 1 ? about->window - 1 : 0;
    const int64_t tokens = before + load->length, heads = about->heads;
    const int64_t q[4] = {load->batch, load->length, heads, about->d},
                  k[4] = {load->batch, tokens, heads, about->d},
                  v[4] = {load->batch, tokens, heads, about->dv},
                  o[4] = {load->batch, load->length, heads, about->dv},
                  positions[3] = {load->batch, tokens, about->positions},
                  state[2] = {load->batch, about->state_elements};
    s->operand[PART_Q] = s->operand[PART_K] = (operand){.dtype = dtype, .low = 0.05f, .high = 0.5f};
    s->operand[PART_V] = (operand){.dtype = dtype, .low = -1, .high = 1};
    s->operand[PART_O] = (operand){.dtype = dtype};
    s->operand[PART_GATE] = (operand){.dtype = FPA_F32, .low = -0.05f};
    s->operand[PART_POSITIONS] = (operand){.dtype = FPA_F32, .high = (float)tokens};
    s->operand[PART_MASK] = (operand){.is_mask = true};
    s->operand[PART_STATE] = (operand){.dtype = dtype_find(about->state_dtype)};
    describe(s, &s->operand[PART_Q], 4, q);
    describe(s, &s->operand[PART_K], 4, k);
    describe(s, &s->operand[PART_V], 4, v);
    describe(s, &s->operand[PART_O], 4, o);
    if (about->gate)
        describe(s, &s->operand[PART_GATE], 3, k);
    if (about->positions)
        describe(s, &s->operand[PART_POSITIONS], 3, positions);
    if (about->key_mask)
        describe(s, &s->operand[PART_MASK], 2, k);
    if (s->device && (s->form == FPA_FORM_RECURRENT || (s->form == FPA_FORM_AUTO && load->length == 1)))
        describe(s, &s->operand[PART_STATE], 2, state);
    s->tensors.recent = before;
    return describe_weights(s, error);
}

static DLTensor *given(operand *x)
{
    return x->given ? &x->tensor : NULL;
}

static void set_tensors(stage *s)
{
    operand *x = s->operand;
    fpa_tensors *t = &s->tensors;
    t->q = given(&x[PART_Q]);
    t->k = given(&x[PART_K]);
    t->v = given(&x[PART_V]);
    t->o = given(&x[PART_O]);
    t->log_gate = given(&x[PART_GATE]);
    t->positions = given(&x[PART_POSITIONS]);
    t->key_mask = given(&x[PART_MASK]);
    t->state_in = t->state_out = given(&x[PART_STATE]);
    t->weights = s->weights;
    t->stream = s->device ? s->device->stream : NULL;
}

static void fill(const operand *x, char *set, uint64_t seed)
{
    if (x->given && x->is_mask)
        memset(set + x->offset, 1, x->size);
    else if (x->given && (x->low != 0 || x->high != 0))
        fill_stored(x->dtype, set + x->offset, (int64_t)(x->size / dtype_size(x->dtype)), seed, x->low,
                    x->high);
}

/* All sets have the same numbers. */
static fpa_status fill_sets(const stage *s, fpa_error *error)
{
    const fpa_memory *memory = s->kernel->module.backend->memory;
    char *set = calloc(1, s->set_bytes + 1);
    fpa_status status = set ? FPA_OK : fail_memory(error);
    for (int i = 0; i < PARTS && !status; i++)
        fill(&s->operand[i], set, (uint64_t)i + 1);
    for (int i = 0; i < fpa_describe_layer(s->layer)->weight_count && !status; i++)
        fill(&s->weight[i], set, 77);
    for (int64_t i = 0; i < s->sets && !status; i++) {
        char *to = s->memory + s->set_bytes * (size_t)i;
        if (memory)
            status = memory->upload(&s->kernel->module, to, set, s->set_bytes, error);
        else
            memcpy(to, set, s->set_bytes);
    }
    free(set);
    return status;
}

static void turn_to(stage *s, int64_t set)
{
    char *start = s->memory + s->set_bytes * (size_t)set;
    for (int i = 0; i < PARTS; i++)
        s->operand[i].tensor.data = start + s->operand[i].offset;
    for (int i = 0; i < fpa_describe_layer(s->layer)->weight_count; i++)
        s->weight[i].tensor.data = start + s->weight[i].offset;
}

static fpa_status prepare(stage *s, const fpa_load *load, fpa_error *error)
{
    void *memory;
    fpa_status status = describe_set(s, load, error);
    if (status)
        return status;
    set_tensors(s);
    s->sets = s->device ? (int64_t)(CACHE_FACTOR * s->device->cache_bytes / s->set_bytes + 1) : 1;
    s->sets = s->sets < MANY_SETS ? s->sets : MANY_SETS;
    status = device_allocate(s->kernel, s->set_bytes * (size_t)s->sets, &memory, error);
    if (status)
        return status;
    s->memory = memory;
    turn_to(s, 0);
    status = fill_sets(s, error);
    if (!status)
        status = fpa_layer_workspace_size(s->layer, s->form, &s->tensors, &s->workspace_size, error);
    return status ? status : device_allocate(s->kernel, s->workspace_size, &s->workspace, error);
}

/* ---- calls ---- */

static fpa_status call(void *user, int64_t number, CUstream stream, fpa_error *error)
{
    stage *s = user;
    (void)stream; /* that of the tensors */
    turn_to(s, number % s->sets);
    return fpa_layer_forward(s->layer, s->form, &s->tensors, s->workspace, s->workspace_size, error);
}

static fpa_status launch_graph(void *user, int64_t number, CUstream stream, fpa_error *error)
{
    stage *s = user;
    return device_check(s->device, s->device->driver->cuGraphLaunch(s->graph[number % s->sets], stream),
                        "launching a graph", error);
}

/* The capture is ended whatever happens in it. */
static fpa_status make_graph(stage *s, int64_t set, fpa_error *error)
{
    const fpa_driver *driver = s->device->driver;
    CUgraph graph = NULL;
    fpa_error ending;
    fpa_status status = device_check(
        s->device, driver->cuStreamBeginCapture(s->device->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "beginning a graph", error);
    if (status)
        return status;
    for (int64_t i = 0; i < s->layers && !status; i++)
        status = call(s, set + i, s->device->stream, error);
    const fpa_status ended = device_check(s->device, driver->cuStreamEndCapture(s->device->stream, &graph),
                                          "capturing a layer in a graph", &ending);
    if (!status && ended)
        *error = ending;
    status = status ? status : ended;
    if (!status)
        status = device_check(s->device, driver->cuGraphInstantiate(&s->graph[set], graph, 0),
                              "instantiating a graph", error);
    if (graph)
        driver->cuGraphDestroy(graph);
    return status;
}

/* A call outside a graph comes first: it may load code, which a capture cannot. */
static fpa_status make_graphs(stage *s, fpa_error *error)
{
    s->graph = calloc((size_t)s->sets, sizeof *s->graph);
    fpa_status status = s->graph ? call(s, 0, s->device->stream, error) : fail_memory(error);
    if (!status)
        status = device_check(s->device, s->device->driver->cuStreamSynchronize(s->device->stream),
                              "the first call", error);
    for (int64_t set = 0; set < s->sets && !status; set++)
        status = make_graph(s, set, error);
    return status;
}

static fpa_status time_on_gpu(stage *s, const fpa_load *load, fpa_layer_timing *timing, fpa_error *error)
{
    fpa_sample sample;
    fpa_status status = s->layers ? make_graphs(s, error) : FPA_OK;
    const fpa_work work = {s->layers ? launch_graph : call, s};
    if (!status)
        status = device_measure(s->device, &work, load->repeats, load->seconds, &sample, error);
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
        s->device->driver->cuCtxSynchronize(); /* after an error some launches may still run */
    for (int64_t set = 0; s->graph && set < s->sets; set++)
        if (s->graph[set])
            s->device->driver->cuGraphExecDestroy(s->graph[set]);
    free(s->graph);
    device_release(s->kernel, s->workspace);
    device_release(s->kernel, s->memory);
}

static fpa_status time_whole(const fpa_layer *layer, const fpa_load *load, fpa_layer_timing *timing,
                             fpa_error *error)
{
    fpa_device device;
    stage s = {.layer = layer, .kernel = layer->kernels[0], .form = load->form, .layers = load->layers};
    const bool remote = device_is_remote(s.kernel);
    fpa_status status = remote ? device_open(device_of(s.kernel).device_id, &device, error) : FPA_OK;
    s.device = remote ? &device : NULL;
    if (!status) {
        status = prepare(&s, load, error);
        if (!status)
            status = remote ? time_on_gpu(&s, load, timing, error) : time_here(&s, load, timing, error);
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
