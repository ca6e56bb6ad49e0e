#include "layer_operands.h"

#include <stdlib.h>
#include <string.h>

#include "base/round.h"
#include "operand.h"

enum { ALIGNMENT = 256 };

static void describe(layer_operands *s, layer_operand *x, int axes, const int64_t *shape)
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
    s->set_bytes += round_up(x->size, ALIGNMENT);
}

static fpa_status describe_weights(layer_operands *s, fpa_error *error)
{
    const fpa_layer_description *about = fpa_describe_layer(s->layer);
    if (about->weight_count > LAYER_MOST_WEIGHTS)
        return fail(error, FPA_UNSUPPORTED, about->name, "has %d run-time matrices; at most %d are timed",
                    about->weight_count, LAYER_MOST_WEIGHTS);
    for (int i = 0; i < about->part_count; i++) {
        const fpa_head *head = s->layer->kernels[i]->head;
        int at = about->parts[i].first_weight;
        for (int m = 0; m < head->matrix_count; m++) {
            int64_t shape[3];
            if (head->matrices[m].kind == FPA_MATRIX_CONSTANT)
                continue;
            const int axes = weight_shape(&head->matrices[m], about->parts[i].heads, shape);
            s->weight[at] = (layer_operand){.dtype = FPA_F32, .low = -1, .high = 1};
            describe(s, &s->weight[at], axes, shape);
            s->weights[at] = &s->weight[at].tensor;
            at++;
        }
    }
    return FPA_OK;
}

static void describe_tokens(layer_operands *s, const layer_size *size)
{
    const fpa_layer_description *about = fpa_describe_layer(s->layer);
    const fpa_dtype dtype = dtype_find(about->dtype);
    layer_operand *x = s->operand;
    const int64_t before = about->window && size->before_window ? about->window - 1 : 0;
    const int64_t tokens = before + size->length, heads = about->heads, queries = heads * size->group;
    const int64_t q[4] = {size->batch, size->length, queries, about->d},
                  k[4] = {size->batch, tokens, heads, about->d},
                  v[4] = {size->batch, tokens, heads, about->dv},
                  o[4] = {size->batch, size->length, queries, about->dv},
                  positions[3] = {size->batch, tokens, about->positions};
    x[LAYER_Q] = x[LAYER_K] = (layer_operand){.dtype = dtype, .low = 0.05f, .high = 0.5f};
    x[LAYER_V] = (layer_operand){.dtype = dtype, .low = -1, .high = 1};
    x[LAYER_O] = (layer_operand){.dtype = dtype};
    x[LAYER_GATE] = (layer_operand){.dtype = FPA_F32, .low = -0.05f};
    x[LAYER_POSITIONS] = (layer_operand){.dtype = FPA_F32, .high = (float)tokens};
    x[LAYER_MASK] = (layer_operand){.is_mask = true};
    describe(s, &x[LAYER_Q], 4, q);
    describe(s, &x[LAYER_K], 4, k);
    describe(s, &x[LAYER_V], 4, v);
    describe(s, &x[LAYER_O], 4, o);
    if (about->gate)
        describe(s, &x[LAYER_GATE], 3, k);
    if (about->positions)
        describe(s, &x[LAYER_POSITIONS], 3, positions);
    if (about->key_mask)
        describe(s, &x[LAYER_MASK], 2, k);
    s->tensors.recent = before;
}

static void describe_states(layer_operands *s, const layer_size *size)
{
    const fpa_layer_description *about = fpa_describe_layer(s->layer);
    const int64_t shape[2] = {size->batch, about->state_elements};
    const fpa_dtype dtype = dtype_find(about->state_dtype);
    s->operand[LAYER_STATE_IN] = (layer_operand){.dtype = dtype, .high = size->in_place ? 0 : 1};
    s->operand[LAYER_STATE_OUT] = (layer_operand){.dtype = dtype};
    if (size->in)
        describe(s, &s->operand[LAYER_STATE_IN], 2, shape);
    if (size->out && !size->in_place)
        describe(s, &s->operand[LAYER_STATE_OUT], 2, shape);
}

static DLTensor *given(layer_operand *x)
{
    return x->given ? &x->tensor : NULL;
}

static void set_tensors(layer_operands *s, const layer_size *size)
{
    layer_operand *x = s->operand;
    fpa_tensors *t = &s->tensors;
    t->q = given(&x[LAYER_Q]);
    t->k = given(&x[LAYER_K]);
    t->v = given(&x[LAYER_V]);
    t->o = given(&x[LAYER_O]);
    t->log_gate = given(&x[LAYER_GATE]);
    t->positions = given(&x[LAYER_POSITIONS]);
    t->key_mask = given(&x[LAYER_MASK]);
    t->state_in = given(&x[LAYER_STATE_IN]);
    t->state_out = given(&x[size->in_place ? LAYER_STATE_IN : LAYER_STATE_OUT]);
    t->weights = s->weights;
}

fpa_status layer_operands_describe(layer_operands *all, const fpa_layer *layer, const layer_size *size,
                                   fpa_error *error)
{
    *all = (layer_operands){.layer = layer, .kernel = layer->kernels[0]};
    describe_tokens(all, size);
    describe_states(all, size);
    const fpa_status status = describe_weights(all, error);
    if (!status)
        set_tensors(all, size);
    return status;
}

static void fill(const layer_operand *x, char *set, uint64_t seed)
{
    if (x->given && x->is_mask)
        memset(set + x->offset, 1, x->size);
    else if (x->given && (x->low != 0 || x->high != 0))
        fill_stored(x->dtype, set + x->offset, (int64_t)(x->size / dtype_size(x->dtype)), seed, x->low,
                    x->high);
}

/* Fills all sets with the same numbers. */
static fpa_status fill_sets(const layer_operands *s, fpa_error *error)
{
    const fpa_memory *memory = s->kernel->module.backend->memory;
    char *set = calloc(1, s->set_bytes + 1);
    fpa_status status = set ? FPA_OK : fail_memory(error);
    for (int i = 0; i < LAYER_OPERANDS && !status; i++)
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

void layer_operands_turn_to(layer_operands *s, int64_t set)
{
    char *start = s->memory + s->set_bytes * (size_t)set;
    for (int i = 0; i < LAYER_OPERANDS; i++)
        s->operand[i].tensor.data = start + s->operand[i].offset;
    for (int i = 0; i < fpa_describe_layer(s->layer)->weight_count; i++)
        s->weight[i].tensor.data = start + s->weight[i].offset;
}

fpa_status layer_operands_make(layer_operands *all, int64_t sets, fpa_error *error)
{
    void *memory;
    fpa_status status = device_allocate(all->kernel, all->set_bytes * (size_t)sets, &memory, error);
    if (status)
        return status;
    all->memory = memory;
    all->sets = sets;
    layer_operands_turn_to(all, 0);
    return fill_sets(all, error);
}

void layer_operands_free(layer_operands *all)
{
    device_release(all->kernel, all->memory);
    all->memory = NULL;
}
