#include "timing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "head/lift.h"
#include "device.h"
#include "median.h"
#include "operand.h"

enum { MANY_REPEATS = 1024 };

typedef struct operands {
    fpa_operand q, k, v, o, gate, positions, key_mask;
    int weight_count;
    fpa_operand *weight; /* [weight_count] */
    const DLTensor **weight_list;
    fpa_tensors tensors;
} operands;

/* Shape, type and range of values of an operand. */
typedef struct recipe {
    int axes;
    const int64_t *shape;
    fpa_dtype dtype;
    uint64_t seed;
    float low, high;
} recipe;

static fpa_status make_operand(fpa_operand *operand, recipe of, fpa_error *error)
{
    fpa_status status = operand_new(of.axes, of.shape, operand, error);
    return status ? status : operand_bind_pattern(operand, of.dtype, of.seed, of.low, of.high, error);
}

static fpa_status make_weight(const fpa_matrix *matrix, int64_t heads, fpa_operand *weight, fpa_error *error)
{
    int64_t shape[3];
    const int axes = weight_shape(matrix, heads, shape);
    return make_operand(weight, (recipe){axes, shape, FPA_F32, 77, -1, 1}, error);
}

static fpa_status make_weights(const fpa_head *head, int64_t heads, operands *all, fpa_error *error)
{
    size_t size = (size_t)head->matrix_count + 1;
    fpa_status status = FPA_OK;
    all->weight = calloc(size, sizeof *all->weight);
    all->weight_list = calloc(size, sizeof *all->weight_list);
    if (!all->weight || !all->weight_list)
        return fail_memory(error);
    for (int i = 0; i < head->matrix_count && !status; i++) {
        if (head->matrices[i].kind == FPA_MATRIX_CONSTANT)
            continue;
        int at = all->weight_count++;
        all->weight_list[at] = &all->weight[at].tensor;
        status = make_weight(&head->matrices[i], heads, &all->weight[at], error);
    }
    all->tensors.weights = all->weight_list;
    return status;
}

/* Makes positions, which count tokens, and a mask without masked keys, so that all keys are processed. */
static fpa_status make_tokens(const fpa_head *head, const fpa_load *load, operands *all, fpa_error *error)
{
    const fpa_lift *lift = head->lift;
    const int64_t tokens = timing_tokens_before(head, load) + load->length;
    const int64_t shape[3] = {load->batch, tokens, lift->positions};
    fpa_status status = operand_new(3, shape, &all->positions, error);
    for (int64_t i = 0; !status && i < all->positions.array.count; i++)
        all->positions.array.data[i] = (float)(i / lift->positions % tokens);
    if (!status)
        status = operand_bind(&all->positions, FPA_F32, error);
    if (!status)
        status = operand_new(2, shape, &all->key_mask, error);
    for (int64_t i = 0; !status && i < all->key_mask.array.count; i++)
        all->key_mask.array.data[i] = 1;
    return status ? status : operand_bind_mask(&all->key_mask, error);
}

/* Makes the operands. Keys and queries are positive, so that no normaliser comes near zero. */
static fpa_status make_operands(const fpa_head *head, const fpa_load *load, operands *all, fpa_error *error)
{
    const int64_t before = timing_tokens_before(head, load);
    const int64_t queries[4] = {load->batch, load->length, load->heads, head_width(head)};
    const int64_t outputs[4] = {load->batch, load->length, load->heads, head->dv};
    const int64_t keys[4] = {load->batch, before + load->length, load->heads, head_width(head)};
    const int64_t values[4] = {load->batch, before + load->length, load->heads, head->dv};
    fpa_status status = make_operand(&all->q, (recipe){4, queries, head->dtype, 1, 0.05f, 0.5f}, error);
    if (!status)
        status = make_operand(&all->k, (recipe){4, keys, head->dtype, 2, 0.05f, 0.5f}, error);
    if (!status)
        status = make_operand(&all->v, (recipe){4, values, head->dtype, 3, -1, 1}, error);
    if (!status)
        status = make_operand(&all->o, (recipe){4, outputs, head->dtype, 4, 0, 0}, error);
    if (!status && head->gate)
        status = make_operand(&all->gate, (recipe){3, keys, FPA_F32, 5, -0.05f, 0}, error);
    if (!status && head->lift)
        status = make_tokens(head, load, all, error);
    if (!status)
        status = make_weights(head, load->heads, all, error);
    all->tensors.recent = before;
    all->tensors.q = &all->q.tensor;
    all->tensors.k = &all->k.tensor;
    all->tensors.v = &all->v.tensor;
    all->tensors.o = &all->o.tensor;
    all->tensors.log_gate = head->gate ? &all->gate.tensor : NULL;
    all->tensors.positions = head->lift && head->lift->positions ? &all->positions.tensor : NULL;
    all->tensors.key_mask = head->lift && head->lift->key_mask ? &all->key_mask.tensor : NULL;
    return status;
}

static void free_operands(operands *all)
{
    for (int i = 0; i < all->weight_count; i++)
        operand_free(&all->weight[i]);
    operand_free(&all->q);
    operand_free(&all->k);
    operand_free(&all->v);
    operand_free(&all->o);
    operand_free(&all->gate);
    operand_free(&all->positions);
    operand_free(&all->key_mask);
    free(all->weight);
    free(all->weight_list);
}

static fpa_status repeat_forward(const fpa_kernel *kernel, const fpa_load *load, const fpa_tensors *tensors,
                                 fpa_timing *timing, fpa_error *error)
{
    double taken[MANY_REPEATS], start = 0;
    void *workspace;
    size_t size;
    int most = load->repeats < MANY_REPEATS ? load->repeats : MANY_REPEATS, repeats = 0;
    fpa_status status =
        workspace_new(kernel, load->candidate, timing->form, tensors, &workspace, &size, error);
    if (!status)
        status = forward_by(kernel, load->candidate, timing->form, tensors, workspace, size, error);
    for (start = clock_seconds(); !status && repeats < most; repeats++) {
        double begin = clock_seconds();
        if (repeats > 0 && begin - start > load->seconds)
            break;
        status = forward_by(kernel, load->candidate, timing->form, tensors, workspace, size, error);
        taken[repeats] = clock_seconds() - begin;
    }
    device_release(kernel, workspace);
    if (status || repeats == 0)
        return status;
    timing->seconds = median_of(taken, repeats);
    timing->repeats = repeats;
    return FPA_OK;
}

static fpa_status time_here(const fpa_kernel *kernel, const fpa_head *head, const fpa_load *load,
                            fpa_timing *timing, fpa_error *error)
{
    operands all = {0};
    fpa_status status = make_operands(head, load, &all, error);
    if (!status)
        status = repeat_forward(kernel, load, &all.tensors, timing, error);
    free_operands(&all);
    return status;
}

/* The operations of one head for the whole sequence, by the plan's count. */
static double count_flop(const fpa_description *about, fpa_form form, double length)
{
    double pairs = about->causal ? length * (length + 1) / 2 : length * length;
    return about->flop[form] * (form == FPA_FORM_PARALLEL ? pairs : length);
}

fpa_status time_forward(const fpa_kernel *kernel, const fpa_head *head, const fpa_load *load,
                        fpa_timing *timing, fpa_error *error)
{
    const bool remote = device_is_remote(kernel);
    const int heads = lift_heads(head);
    *timing = (fpa_timing){.form = load->form};
    if (heads && load->heads != heads)
        return fail(error, FPA_INVALID, head->name, "has constants of %d key/value heads: give --heads %d",
                    heads, heads);
    if (load->form == FPA_FORM_AUTO)
        timing->form = fpa_choose_form(kernel, load->length, remote && load->length == 1);
    fpa_status status = remote ? time_on_device(kernel, head, load, timing, error)
                               : time_here(kernel, head, load, timing, error);
    if (status)
        return status;
    double sequences = (double)load->batch * (double)load->heads;
    double flop = sequences * count_flop(fpa_describe(kernel), timing->form, (double)load->length);
    timing->nanoseconds = 1e9 * timing->seconds / (sequences * (double)load->length);
    timing->gflops = 1e-9 * flop / timing->seconds;
    return FPA_OK;
}
