/* timing_device: times a forward on a GPU, with several sets of operands that together exceed its cache. */
#include <stdlib.h>
#include <string.h>

#include "head/lift.h"
#include "base/round.h"
#include "device.h"
#include "graphs.h"
#include "operand.h"
#include "timing.h"

enum {
    CACHE_FACTOR = 4, /* size of all sets, in multiples of the second-level cache */
    MANY_SETS = 16384,
    MANY_GRAPHS = 1024, /* a graph contains the addresses of its set */
    ALIGNMENT = 256,
    /* numbers that are made on the CPU and repeated in an operand; prime, so that rows differ */
    PATTERN = 262139,
};

enum { PART_Q, PART_K, PART_V, PART_O, PART_GATE, PART_POSITIONS, PART_MASK, PART_STATE, PARTS };

/* An operand in a set. */
typedef struct part {
    bool given;
    bool is_mask; /* bytes of 1, not of dtype */
    fpa_dtype dtype;
    float low, high; /* range of its values */
    int64_t shape[4], stride[4];
    size_t size, offset; /* in bytes; offset from the set's start */
    DLTensor tensor;     /* tensor of the current set */
} part;

/* All sets, and the call that is launched on them. */
typedef struct stage {
    const fpa_kernel *kernel;
    const fpa_device *device;
    fpa_form form;
    const fpa_candidate *candidate;
    int64_t recent; /* tokens of a cycle (timing.h); 0: a forward is one call */
    part part[PARTS];
    int weight_count;
    part *weight; /* [weight_count] */
    const DLTensor **weight_list;
    fpa_tensors tensors;
    size_t set_bytes;
    int64_t sets, layers; /* layers: forwards in a graph; 0: no graph */
    char *operands;       /* device memory of all sets, one after the other */
    void *workspace;
    size_t workspace_size;
    fpa_graphs graphs; /* graphs of the sets, if layers > 0 */
} stage;

/* ---- contents of a set ---- */

static size_t item_of(const part *of)
{
    return of->is_mask ? 1 : dtype_size(of->dtype);
}

static int64_t count_elements(const part *of)
{
    int64_t count = 1;
    for (int i = 0; i < of->tensor.ndim; i++)
        count *= of->shape[i];
    return count;
}

static void describe_part(stage *s, part *of, int axes, const int64_t *shape)
{
    int64_t step = 1;
    of->given = true;
    memcpy(of->shape, shape, (size_t)axes * sizeof *shape);
    for (int a = axes - 1; a >= 0; step *= shape[a--])
        of->stride[a] = step;
    of->tensor = (DLTensor){.device = device_of(s->kernel),
                            .ndim = axes,
                            .dtype = of->is_mask ? (DLDataType){kDLUInt, 8, 1} : dtype_describe(of->dtype),
                            .shape = of->shape,
                            .strides = of->stride};
    of->size = (size_t)count_elements(of) * item_of(of);
    of->offset = s->set_bytes;
    s->set_bytes += round_up(of->size, ALIGNMENT);
}

static void describe_weights(stage *s, const fpa_head *head, int64_t heads)
{
    for (int i = 0; i < head->matrix_count; i++) {
        const fpa_matrix *matrix = &head->matrices[i];
        int64_t shape[3];
        if (matrix->kind == FPA_MATRIX_CONSTANT)
            continue;
        const int axes = weight_shape(matrix, heads, shape);
        part *weight = &s->weight[s->weight_count];
        *weight = (part){.dtype = FPA_F32, .low = -1, .high = 1};
        s->weight_list[s->weight_count++] = &weight->tensor;
        describe_part(s, weight, axes, shape);
    }
}

/* Describes positions, for all tokens of keys, and a mask without masked keys. */
static void describe_tokens(stage *s, const fpa_lift *lift, int64_t batch, int64_t kept)
{
    if (lift && lift->positions) {
        const int64_t shape[3] = {batch, kept, lift->positions};
        s->part[PART_POSITIONS] = (part){.dtype = FPA_F32, .high = (float)kept};
        describe_part(s, &s->part[PART_POSITIONS], 3, shape);
    }
    if (lift && lift->key_mask) {
        const int64_t shape[2] = {batch, kept};
        s->part[PART_MASK] = (part){.is_mask = true};
        describe_part(s, &s->part[PART_MASK], 2, shape);
    }
}

/* Describes a set. Keys and queries are positive, so that no normaliser comes near zero. In the recurrent form a
 * state is carried on from call to call, as in decoding. */
static fpa_status describe_set(stage *s, const fpa_head *head, const fpa_load *load, fpa_error *error)
{
    const int64_t before = timing_tokens_before(head, load);
    const int64_t kept = load->recent ? load->recent : before + load->length;
    const int64_t queries[4] = {load->batch, load->length, load->heads, head_width(head)};
    const int64_t outputs[4] = {load->batch, load->length, load->heads, head->dv};
    const int64_t keys[4] = {load->batch, kept, load->heads, head_width(head)};
    const int64_t values[4] = {load->batch, kept, load->heads, head->dv};
    const int64_t state[3] = {load->batch, load->heads, fpa_describe(s->kernel)->state_elements};
    size_t size = (size_t)head->matrix_count + 1;
    s->weight = calloc(size, sizeof *s->weight);
    s->weight_list = calloc(size, sizeof *s->weight_list);
    if (!s->weight || !s->weight_list)
        return fail_memory(error);
    s->part[PART_Q] = (part){.dtype = head->dtype, .low = 0.05f, .high = 0.5f};
    s->part[PART_K] = s->part[PART_Q];
    s->part[PART_V] = (part){.dtype = head->dtype, .low = -1, .high = 1};
    s->part[PART_O] = (part){.dtype = head->dtype};
    s->part[PART_GATE] = (part){.dtype = FPA_F32, .low = -0.05f};
    s->part[PART_STATE] = (part){.dtype = head->state_dtype};
    describe_part(s, &s->part[PART_Q], 4, queries);
    describe_part(s, &s->part[PART_K], 4, keys);
    describe_part(s, &s->part[PART_V], 4, values);
    describe_part(s, &s->part[PART_O], 4, outputs);
    if (head->gate)
        describe_part(s, &s->part[PART_GATE], 3, keys);
    describe_tokens(s, head->lift, load->batch, kept);
    if (s->form == FPA_FORM_RECURRENT)
        describe_part(s, &s->part[PART_STATE], 3, state);
    describe_weights(s, head, load->heads);
    s->tensors.recent = before;
    return FPA_OK;
}

static void set_tensors(stage *s)
{
    fpa_tensors *tensors = &s->tensors;
    tensors->q = &s->part[PART_Q].tensor;
    tensors->k = &s->part[PART_K].tensor;
    tensors->v = &s->part[PART_V].tensor;
    tensors->o = &s->part[PART_O].tensor;
    tensors->log_gate = s->part[PART_GATE].given ? &s->part[PART_GATE].tensor : NULL;
    tensors->positions = s->part[PART_POSITIONS].given ? &s->part[PART_POSITIONS].tensor : NULL;
    tensors->key_mask = s->part[PART_MASK].given ? &s->part[PART_MASK].tensor : NULL;
    tensors->state_in = s->part[PART_STATE].given ? &s->part[PART_STATE].tensor : NULL;
    tensors->state_out = s->part[PART_STATE].given ? &s->part[PART_STATE].tensor : NULL;
    tensors->weights = s->weight_list;
    tensors->stream = s->device->stream;
}

/* The least bytes of a forward: each operand once, and a state read and written. Of a cycle: the state read for
 * each token, with q and o. */
static double least_bytes(const stage *s)
{
    const size_t once = s->part[PART_Q].size + s->part[PART_O].size + s->part[PART_STATE].size;
    double bytes = (double)s->part[PART_STATE].size; /* once more, since it is also written */
    bytes += s->recent ? (double)s->recent * (double)once - (double)(once - s->part[PART_STATE].size) : 0;
    for (int i = 0; i < PARTS; i++)
        bytes += (double)s->part[i].size;
    for (int i = 0; i < s->weight_count; i++)
        bytes += (double)s->weight[i].size;
    return bytes;
}

/* ---- sets on the device ---- */

static CUdeviceptr address_of(const void *address)
{
    return (CUdeviceptr)(uintptr_t)address;
}

/* Repeats the first `known` bytes up to `size`. */
static fpa_status repeat_bytes(const stage *s, char *to, size_t known, size_t size, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (; known < size && !status; known *= 2) {
        size_t more = known < size - known ? known : size - known;
        status = device_check(s->device,
                              s->device->driver->cuMemcpyDtoDAsync(address_of(to + known), address_of(to),
                                                                   more, s->device->stream),
                              "copying operands", error);
    }
    return status;
}

static fpa_status fill_part(const stage *s, const part *of, uint64_t seed, fpa_error *error)
{
    int64_t count = count_elements(of) < PATTERN ? count_elements(of) : PATTERN;
    size_t known = (size_t)count * dtype_size(of->dtype);
    char *to = s->operands + of->offset, *pattern;
    if (of->is_mask && of->given)
        return device_check(s->device, s->device->driver->cuMemsetD8(address_of(to), 1, of->size),
                            "writing a mask", error);
    if (!of->given || (of->low == 0 && of->high == 0) || known == 0)
        return FPA_OK; /* already zero */
    pattern = malloc(known);
    if (!pattern)
        return fail_memory(error);
    fill_stored(of->dtype, pattern, count, seed, of->low, of->high);
    fpa_status status =
        device_check(s->device, s->device->driver->cuMemcpyHtoD(address_of(to), pattern, known),
                     "writing operands", error);
    free(pattern);
    return status ? status : repeat_bytes(s, to, known, of->size, error);
}

static fpa_status fill_sets(const stage *s, fpa_error *error)
{
    const fpa_driver *driver = s->device->driver;
    size_t all = s->set_bytes * (size_t)s->sets;
    fpa_status status = device_check(s->device, driver->cuMemsetD8(address_of(s->operands), 0, all),
                                     "clearing operands", error);
    for (int i = 0; i < PARTS && !status; i++)
        status = fill_part(s, &s->part[i], (uint64_t)i + 1, error);
    for (int i = 0; i < s->weight_count && !status; i++)
        status = fill_part(s, &s->weight[i], 77, error);
    if (!status)
        status = repeat_bytes(s, s->operands, s->set_bytes, all, error);
    return status ? status
                  : device_check(s->device, driver->cuStreamSynchronize(s->device->stream),
                                 "copying operands", error);
}

static int64_t choose_sets(const stage *s, bool graph)
{
    size_t wanted = CACHE_FACTOR * s->device->cache_bytes / s->set_bytes + 1;
    size_t most = graph ? MANY_GRAPHS : MANY_SETS;
    return (int64_t)(wanted < most ? wanted : most);
}

/* ---- cycles: tokens are added to the state later ---- */

/* Call `number` of a cycle of recent + 1 calls: the last one adds all recent tokens to the state, the others
 * decode one token each, with the recent tokens that exist so far. */
static fpa_tensors cycle_call(stage *s, int64_t number)
{
    fpa_tensors call = s->tensors;
    const bool last = number == s->recent;
    const int64_t tokens = last ? number : number + 1;
    s->part[PART_K].shape[1] = s->part[PART_V].shape[1] = s->part[PART_GATE].shape[1] = tokens;
    s->part[PART_POSITIONS].shape[1] = s->part[PART_MASK].shape[1] = tokens;
    call.recent = last ? 0 : number;
    call.q = last ? NULL : call.q;
    call.o = last ? NULL : call.o;
    call.state_out = last ? call.state_out : NULL;
    return call;
}

static fpa_status launch_cycle(stage *s, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int64_t i = 0; i <= s->recent && !status; i++) {
        const fpa_tensors call = cycle_call(s, i);
        status = fpa_forward(s->kernel, FPA_FORM_AUTO, &call, s->workspace, s->workspace_size, error);
    }
    return status;
}

/* The largest workspace of the cycle's calls. */
static fpa_status cycle_workspace(stage *s, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int64_t i = 0; i <= s->recent && !status; i++) {
        const fpa_tensors call = cycle_call(s, i);
        size_t size = 0;
        status = fpa_workspace_size(s->kernel, FPA_FORM_AUTO, &call, &size, error);
        s->workspace_size = size > s->workspace_size ? size : s->workspace_size;
    }
    return status ? status : device_allocate(s->kernel, s->workspace_size, &s->workspace, error);
}

static fpa_status allocate(stage *s, fpa_error *error)
{
    void *operands;
    fpa_status status = device_allocate(s->kernel, s->set_bytes * (size_t)s->sets, &operands, error);
    if (status)
        return status;
    s->operands = operands;
    return s->recent ? cycle_workspace(s, error)
                     : workspace_new(s->kernel, s->candidate, s->form, &s->tensors, &s->workspace,
                                     &s->workspace_size, error);
}

/* ---- launches ---- */

static void turn_to(stage *s, int64_t set)
{
    char *start = s->operands + s->set_bytes * (size_t)set;
    for (int i = 0; i < PARTS; i++)
        s->part[i].tensor.data = start + s->part[i].offset;
    for (int i = 0; i < s->weight_count; i++)
        s->weight[i].tensor.data = start + s->weight[i].offset;
}

static fpa_status launch_forward(void *user, int64_t number, CUstream stream, fpa_error *error)
{
    stage *s = user;
    (void)stream; /* the tensors contain the stream */
    turn_to(s, number % s->sets);
    if (s->recent)
        return launch_cycle(s, error);
    return forward_by(s->kernel, s->candidate, s->form, &s->tensors, s->workspace, s->workspace_size, error);
}

static void free_stage(stage *s)
{
    s->device->driver->cuCtxSynchronize(); /* after an error some launches may still be running */
    graphs_free(&s->graphs);
    device_release(s->kernel, s->workspace);
    device_release(s->kernel, s->operands);
    free(s->weight);
    free(s->weight_list);
}

static fpa_status prepare(stage *s, const fpa_head *head, const fpa_load *load, fpa_error *error)
{
    fpa_status status = describe_set(s, head, load, error);
    if (status)
        return status;
    set_tensors(s);
    s->sets = choose_sets(s, s->layers > 0);
    status = allocate(s, error);
    if (!status)
        status = fill_sets(s, error);
    if (!status && s->layers)
        status =
            graphs_make(s->device, &(fpa_work){launch_forward, s}, s->sets, s->layers, &s->graphs, error);
    return status;
}

static void note_sample(const stage *s, const fpa_sample *sample, fpa_timing *timing)
{
    /* tokens of a cycle, times forwards of a graph; other factors are applied by the caller */
    const double tokens = (double)(s->recent ? s->recent : 1) * (double)(s->layers ? s->layers : 1);
    timing->seconds = sample->median / tokens;
    timing->least = sample->least / tokens;
    timing->most = sample->most / tokens;
    timing->repeats = sample->repeats;
    timing->launches = sample->launches;
    timing->bytes = least_bytes(s) / (double)(s->recent ? s->recent : 1);
    timing->sets = s->sets;
    timing->set_bytes = (double)s->set_bytes;
    timing->cache_bytes = (double)s->device->cache_bytes;
}

fpa_status time_on_device(const fpa_kernel *kernel, const fpa_head *head, const fpa_load *load,
                          fpa_timing *timing, fpa_error *error)
{
    fpa_device device;
    fpa_sample sample;
    stage s = {.kernel = kernel,
               .device = &device,
               .form = timing->form,
               .recent = load->recent,
               .layers = load->layers,
               .candidate = load->candidate};
    const fpa_work forward = {launch_forward, &s}, graph = {graphs_launch, &s.graphs};
    fpa_status status = device_open(device_of(kernel).device_id, &device, error);
    if (!status) {
        status = prepare(&s, head, load, error);
        if (!status)
            status = device_measure(&device, s.layers ? &graph : &forward, load->repeats, load->seconds,
                                    &sample, error);
        if (!status)
            note_sample(&s, &sample, timing);
        if (!status && load->breakdown)
            status = breakdown_measure(&device, &forward, load->breakdown, error);
        free_stage(&s);
    }
    device_close(&device);
    return status;
}
