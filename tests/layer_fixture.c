#include "runtime/api/layer.h"

#include <math.h>

#include "openmp_threads.h"
#include "layer_fixture.h"

static char cache[64]; /* of all claims: kernels are compiled once */

int layer_group(void **state)
{
    scratch_make(cache);
    return 0;
}

int layer_ungroup(void **state)
{
    scratch_remove(cache);
    return 0;
}

void layer_set_threads(int threads)
{
    openmp_threads(threads);
}

static void check(const layer_fixture *f, fpa_status status)
{
    assert_ok(status, &f->error);
}

void layer_open(layer_fixture *f, const char *spec, const char *name)
{
    fpa_close_layer(f->layer);
    f->layer = NULL;
    check(f, fpa_open_layer_text("layer.lua", spec, name, &f->options, &f->layer, &f->error));
    assert_true(f->layer->description.part_count <= LAYER_KERNELS);
    for (int i = 0; i < f->layer->description.part_count; i++)
        f->kernels[i] = (fpa_kernel *)(uintptr_t)f->layer->kernels[i];
}

int layer_make(void **state)
{
    layer_fixture *f = calloc(1, sizeof *f);
    f->options.cache_dir = cache;
    layer_open(f, LAYER_SPEC, NULL);
    *state = f;
    return 0;
}

static void free_operands(layer_fixture *f)
{
    layer_operand *const all[] = {&f->q,         &f->k,         &f->v,         &f->o,
                                  &f->den,       &f->gate,      &f->state_in,  &f->state_out,
                                  &f->weight[0], &f->weight[1], &f->weight[2], &f->weight[3]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->data);
        all[i]->data = NULL;
    }
    free(f->workspace);
    f->workspace = NULL;
}

int layer_remove(void **state)
{
    layer_fixture *f = *state;
    free_operands(f);
    fpa_close_layer(f->layer);
    free(f);
    return 0;
}

/* Numbers in low..high, the same ones every time. */
static void make(layer_operand *x, unsigned seed, float low, float high, int axes, const int64_t *shape)
{
    int64_t step = 1;
    for (int a = axes - 1; a >= 0; step *= shape[a--]) {
        x->shape[a] = shape[a];
        x->stride[a] = step;
    }
    x->bytes = (size_t)step * sizeof(float);
    x->data = malloc(x->bytes + sizeof(float));
    for (int64_t i = 0; i < step; i++) {
        seed = seed * 1664525u + 1013904223u;
        x->data[i] = low + (high - low) * (float)(seed >> 8) / (float)(1 << 24);
    }
    x->tensor = toy_tensor(x->data, axes, x->shape);
    x->tensor.strides = x->stride;
}

#define SHAPE(...)                                                                                           \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[])                                    \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

static void make_weights(layer_fixture *f)
{
    for (int i = 0; i < f->layer->description.part_count; i++) {
        const fpa_layer_part *part = &f->layer->parts[i];
        for (int w = 0; w < part->head->weight_count; w++) {
            const fpa_weight_shape *shape = &part->head->weight_shapes[w];
            layer_operand *weight = &f->weight[part->first_weight + w];
            assert_true(shape->per_head && shape->columns);
            make(weight, 9, -1, 1, SHAPE(part->heads, shape->rows, shape->columns));
            f->weights[part->first_weight + w] = &weight->tensor;
        }
    }
}

void layer_operands(layer_fixture *f, layer_sizes s)
{
    const fpa_layer_description *about = fpa_describe_layer(f->layer);
    const int64_t states = s.slots ? s.slots : s.batch, queries = about->heads * s.group;
    free_operands(f);
    make(&f->q, 1, 0.05f, 0.5f, SHAPE(s.batch, s.length, queries, about->d));
    make(&f->k, 2, 0.05f, 0.5f, SHAPE(s.batch, s.length, about->heads, about->d));
    make(&f->v, 3, -1, 1, SHAPE(s.batch, s.length, about->heads, about->dv));
    make(&f->o, 4, NAN, NAN, SHAPE(s.batch, s.length, queries, about->dv));
    make(&f->den, 5, NAN, NAN, SHAPE(s.batch, s.length, queries));
    make(&f->gate, 6, -0.1f, 0, SHAPE(s.batch, s.length, about->heads));
    make(&f->state_in, 7, 0, 1, SHAPE(states, about->state_elements));
    make(&f->state_out, 8, NAN, NAN, SHAPE(states, about->state_elements));
    make_weights(f);
    f->tensors = (fpa_tensors){.q = &f->q.tensor,
                               .k = &f->k.tensor,
                               .v = &f->v.tensor,
                               .o = &f->o.tensor,
                               .den = about->normalized ? &f->den.tensor : NULL,
                               .log_gate = about->gate ? &f->gate.tensor : NULL,
                               .state_in = s.state_in ? &f->state_in.tensor : NULL,
                               .state_out = &f->state_out.tensor,
                               .weights = f->weights};
}

static void show(layer_operand *x, int64_t first, int64_t end)
{
    x->shape[1] = end - first;
    x->tensor.byte_offset = (uint64_t)(first * x->stride[1]) * sizeof(float);
}

void layer_show_tokens(layer_fixture *f, int64_t first, int64_t end)
{
    layer_operand *const all[] = {&f->q, &f->k, &f->v, &f->o, &f->den, &f->gate};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        show(all[i], first, end);
}

void layer_show_queries(layer_fixture *f, int64_t before)
{
    layer_operand *const all[] = {&f->q, &f->o, &f->den};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        all[i]->shape[1] -= before;
        all[i]->tensor.byte_offset += (uint64_t)(before * all[i]->stride[1]) * sizeof(float);
    }
}

DLTensor layer_index(int32_t *numbers, int64_t *count)
{
    DLTensor tensor = toy_tensor(numbers, 1, count);
    tensor.dtype = (DLDataType){kDLInt, 32, 1};
    return tensor;
}

/* ---- calls ---- */

static void take_workspace(layer_fixture *f, size_t bytes)
{
    free(f->workspace);
    f->workspace_bytes = bytes;
    f->workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
}

void layer_forward(layer_fixture *f, fpa_form form)
{
    size_t bytes;
    check(f, fpa_layer_workspace_size(f->layer, form, &f->tensors, &bytes, &f->error));
    take_workspace(f, bytes);
    check(f, fpa_layer_forward(f->layer, form, &f->tensors, f->workspace, bytes, &f->error));
}

void layer_step(layer_fixture *f)
{
    size_t bytes;
    check(f, fpa_layer_workspace_size(f->layer, FPA_FORM_RECURRENT, &f->tensors, &bytes, &f->error));
    take_workspace(f, bytes);
    check(f, fpa_layer_step(f->layer, &f->tensors, f->workspace, bytes, &f->error));
}

static float *copy_of(const layer_operand *x)
{
    float *copy = malloc(x->bytes + 1);
    memcpy(copy, x->data, x->bytes);
    return copy;
}

layer_results layer_keep(const layer_fixture *f)
{
    return (layer_results){copy_of(&f->o), copy_of(&f->den), copy_of(&f->state_out)};
}

void layer_drop(layer_results *results)
{
    free(results->o);
    free(results->den);
    free(results->state);
}

static void forget(const layer_operand *x)
{
    for (size_t i = 0; i < x->bytes / sizeof(float); i++)
        x->data[i] = NAN;
}

void layer_forget(layer_fixture *f)
{
    forget(&f->o);
    forget(&f->den);
    forget(&f->state_out);
}

static bool is_whole(const float *x, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *x; i++)
        if (isnan(x[i]))
            return false;
    return true;
}

void layer_check(const layer_fixture *f, const layer_results *wanted)
{
    assert_true(is_whole(f->o.data, f->o.bytes));
    assert_memory_equal(f->o.data, wanted->o, f->o.bytes);
    assert_memory_equal(f->den.data, wanted->den, f->den.bytes);
    assert_memory_equal(f->state_out.data, wanted->state, f->state_out.bytes);
}

static void check_near(const layer_operand *x, const float *wanted, double bound)
{
    for (size_t i = 0; i < x->bytes / sizeof(float); i++)
        if (!(fabs((double)x->data[i] - wanted[i]) <= bound * (1 + fabs((double)wanted[i]))))
            fail_msg("number %zu is %g, but %g is near it", i, (double)x->data[i], (double)wanted[i]);
}

void layer_check_near(const layer_fixture *f, const layer_results *wanted, double bound)
{
    check_near(&f->o, wanted->o, bound);
    check_near(&f->state_out, wanted->state, bound);
}

/* ---- head by head ---- */

/* A view of some heads, in `data` (NULL: its own memory), which is laid out as x is. */
typedef struct view {
    DLTensor tensor;
    int64_t shape[4], stride[4];
} view;

static const DLTensor *heads_of(view *v, const layer_operand *x, float *data, int64_t first, int64_t count)
{
    *v = (view){.tensor = x->tensor};
    memcpy(v->shape, x->shape, sizeof v->shape);
    memcpy(v->stride, x->stride, sizeof v->stride);
    v->shape[2] = count;
    v->tensor.shape = v->shape;
    v->tensor.strides = v->stride;
    v->tensor.data = data ? data : x->data;
    v->tensor.byte_offset += (uint64_t)(first * x->stride[2]) * sizeof(float);
    return &v->tensor;
}

static const DLTensor *states_of(view *v, const layer_operand *x, float *data, const fpa_layer_part *part)
{
    *v = (view){.tensor = x->tensor,
                .shape = {x->shape[0], part->heads, part->head->state_elements},
                .stride = {x->stride[0], part->head->state_elements, 1}};
    v->tensor.ndim = 3;
    v->tensor.shape = v->shape;
    v->tensor.strides = v->stride;
    v->tensor.data = (data ? data : x->data) + part->state_offset;
    return &v->tensor;
}

/* All numbers of a view of `its` memory, which is laid out as x is. */
static void compare_views(const view *v, const float *its, const layer_operand *x)
{
    const int64_t offset =
        (int64_t)(v->tensor.byte_offset / sizeof(float)) + ((const float *)v->tensor.data - its);
    const int axes = v->tensor.ndim;
    int64_t at[4] = {0};
    for (bool more = true; more;) {
        int64_t place = offset;
        for (int a = 0; a < axes; a++)
            place += at[a] * v->stride[a];
        assert_memory_equal(&x->data[place], &its[place], sizeof(float));
        int a = axes - 1;
        while (a >= 0 && ++at[a] == v->shape[a])
            at[a--] = 0;
        more = a >= 0;
    }
}

void layer_compare_part(layer_fixture *f, int i, fpa_form form)
{
    const fpa_layer_part *part = &f->layer->parts[i];
    const int64_t group = f->q.shape[2] / f->k.shape[2], first = part->first, heads = part->heads;
    float *o = malloc(f->o.bytes), *den = malloc(f->den.bytes), *state = copy_of(&f->state_out);
    view q, k, v, to, sums, gate, in, out;
    size_t bytes;
    fpa_tensors t = f->tensors;
    if (t.q) {
        t.q = heads_of(&q, &f->q, NULL, first * group, heads * group);
        t.o = (DLTensor *)(uintptr_t)heads_of(&to, &f->o, o, first * group, heads * group);
        heads_of(&sums, &f->den, den, first * group, heads * group);
    }
    t.den = t.den && part->head->normalized ? &sums.tensor : NULL;
    t.k = heads_of(&k, &f->k, NULL, first, heads);
    t.v = heads_of(&v, &f->v, NULL, first, heads);
    t.log_gate = part->head->gate ? heads_of(&gate, &f->gate, NULL, first, heads) : NULL;
    t.state_in = t.state_in ? states_of(&in, &f->state_in, NULL, part) : NULL;
    t.state_out = t.state_out ? (DLTensor *)(uintptr_t)states_of(&out, &f->state_out, state, part) : NULL;
    t.weights = f->weights + part->first_weight;
    check(f, fpa_workspace_size(f->kernels[i], form, &t, &bytes, &f->error));
    take_workspace(f, bytes);
    check(f, fpa_forward(f->kernels[i], form, &t, f->workspace, bytes, &f->error));
    if (t.q)
        compare_views(&to, o, &f->o);
    if (t.den)
        compare_views(&sums, den, &f->den);
    if (t.state_out)
        compare_views(&out, state, &f->state_out);
    free(o);
    free(den);
    free(state);
}

/* ---- gradients ---- */

/* What is written, twice: by the layer, and head by head. */
typedef struct gradients {
    layer_operand q, k, v, gate, state, weight[LAYER_WEIGHTS];
    DLTensor *weights[LAYER_WEIGHTS];
} gradients;

static void like(layer_operand *x, const layer_operand *of)
{
    make(x, 1, NAN, NAN, of->tensor.ndim, of->shape);
}

static void make_gradients(layer_fixture *f, gradients *g)
{
    *g = (gradients){.weights = {NULL}};
    like(&g->q, &f->q);
    like(&g->k, &f->k);
    like(&g->v, &f->v);
    like(&g->gate, &f->gate);
    like(&g->state, &f->state_in);
    for (int i = 0; i < f->layer->description.weight_count; i++) {
        like(&g->weight[i], &f->weight[i]);
        g->weights[i] = &g->weight[i].tensor;
    }
}

static void drop_gradients(gradients *g)
{
    layer_operand *const all[] = {&g->q,         &g->k,         &g->v,         &g->gate,     &g->state,
                                  &g->weight[0], &g->weight[1], &g->weight[2], &g->weight[3]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->data);
}

static fpa_gradient_tensors gradient_call(layer_fixture *f, const layer_operand *d_o,
                                          const layer_operand *d_state, gradients *g)
{
    return (fpa_gradient_tensors){.q = &f->q.tensor,
                                  .k = &f->k.tensor,
                                  .v = &f->v.tensor,
                                  .o = &f->o.tensor,
                                  .den = &f->den.tensor,
                                  .log_gate = &f->gate.tensor,
                                  .state_in = &f->state_in.tensor,
                                  .weights = f->weights,
                                  .d_o = &d_o->tensor,
                                  .d_state_out = &d_state->tensor,
                                  .d_q = &g->q.tensor,
                                  .d_k = &g->k.tensor,
                                  .d_v = &g->v.tensor,
                                  .d_log_gate = &g->gate.tensor,
                                  .d_state_in = &g->state.tensor,
                                  .d_weights = g->weights};
}

static void compare_gradients_of(layer_fixture *f, int i, fpa_form form, const layer_operand *d_o,
                                 const layer_operand *d_state, gradients *all, gradients *own)
{
    const fpa_layer_part *part = &f->layer->parts[i];
    const int64_t group = f->q.shape[2] / f->k.shape[2], first = part->first, heads = part->heads;
    const int64_t from = first * group, queries = heads * group;
    fpa_gradient_tensors t = gradient_call(f, d_o, d_state, own);
    view q, k, v, o, den, gate, in, d, d_out, d_q, d_k, d_v, d_gate, d_in;
    size_t bytes;
    t.q = heads_of(&q, &f->q, NULL, from, queries);
    t.k = heads_of(&k, &f->k, NULL, first, heads);
    t.v = heads_of(&v, &f->v, NULL, first, heads);
    t.o = heads_of(&o, &f->o, NULL, from, queries);
    t.den = part->head->normalized ? heads_of(&den, &f->den, NULL, from, queries) : NULL;
    t.log_gate = part->head->gate ? heads_of(&gate, &f->gate, NULL, first, heads) : NULL;
    t.state_in = states_of(&in, &f->state_in, NULL, part);
    t.d_o = heads_of(&d, d_o, NULL, from, queries);
    t.d_state_out = states_of(&d_out, d_state, NULL, part);
    t.d_q = (DLTensor *)(uintptr_t)heads_of(&d_q, &own->q, NULL, from, queries);
    t.d_k = (DLTensor *)(uintptr_t)heads_of(&d_k, &own->k, NULL, first, heads);
    t.d_v = (DLTensor *)(uintptr_t)heads_of(&d_v, &own->v, NULL, first, heads);
    heads_of(&d_gate, &own->gate, NULL, first, heads);
    t.d_log_gate = part->head->gate ? &d_gate.tensor : NULL;
    t.d_state_in = (DLTensor *)(uintptr_t)states_of(&d_in, &own->state, NULL, part);
    t.weights = f->weights + part->first_weight;
    t.d_weights = own->weights + part->first_weight;
    check(f, fpa_backward_workspace(f->kernels[i], form, &t, &bytes, &f->error));
    take_workspace(f, bytes);
    check(f, fpa_backward(f->kernels[i], form, &t, f->workspace, bytes, &f->error));
    compare_views(&d_q, own->q.data, &all->q);
    compare_views(&d_k, own->k.data, &all->k);
    compare_views(&d_v, own->v.data, &all->v);
    if (t.d_log_gate)
        compare_views(&d_gate, own->gate.data, &all->gate);
    compare_views(&d_in, own->state.data, &all->state);
    for (int w = 0; w < part->head->weight_count; w++)
        assert_memory_equal(own->weight[part->first_weight + w].data,
                            all->weight[part->first_weight + w].data,
                            all->weight[part->first_weight + w].bytes);
}

void layer_compare_gradients(layer_fixture *f, fpa_form form)
{
    gradients all, own;
    layer_operand d_o, d_state;
    size_t bytes;
    make_gradients(f, &all);
    make_gradients(f, &own);
    make(&d_o, 21, -1, 1, 4, f->o.shape);
    make(&d_state, 22, -1, 1, 2, f->state_out.shape);
    const fpa_gradient_tensors t = gradient_call(f, &d_o, &d_state, &all);
    check(f, fpa_layer_backward_workspace(f->layer, form, &t, &bytes, &f->error));
    take_workspace(f, bytes);
    check(f, fpa_layer_backward(f->layer, form, &t, f->workspace, bytes, &f->error));
    assert_true(is_whole(all.q.data, all.q.bytes) && is_whole(all.state.data, all.state.bytes));
    for (int i = 0; i < f->layer->description.part_count; i++)
        compare_gradients_of(f, i, form, &d_o, &d_state, &all, &own);
    free(d_o.data);
    free(d_state.data);
    drop_gradients(&all);
    drop_gradients(&own);
}
