/* prefill_decode: the whole C API on one page. A prompt is read in one call, its state is handed
 * to decoding, and decoding continues token by token in place.
 *
 *   cc prefill_decode.c $(pkg-config --cflags --libs fpa) -o prefill_decode
 *   ./prefill_decode specs/tspow.lua tspow2_d64_b8 */
#include <stdio.h>
#include <stdlib.h>

#include "fpa.h"

enum { BATCH = 1, PROMPT = 300, DECODE = 4, HEADS = 2 };

/* A program may end here; the library itself never does. */
static _Noreturn void stop(const char *where, const char *message)
{
    fprintf(stderr, "%s: %s\n", where, message);
    exit(1);
}

/* A float32 tensor [a, b, c, e] in C order over data. */
static DLTensor tensor(float *data, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = 4, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

static float *numbers(size_t count) /* what a model would compute */
{
    float *data = malloc(count * sizeof *data + 1);
    if (!data)
        stop("prefill_decode", "out of memory");
    for (size_t i = 0; i < count; i++)
        data[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return data;
}

/* Scratch memory: the library says how much a call needs; the caller gives it and may keep it. */
static void *scratch(const fpa_kernel *kernel, fpa_form form, const fpa_tensors *tensors, size_t *size)
{
    fpa_error error;
    if (fpa_workspace_size(kernel, form, tensors, size, &error))
        stop(error.where, error.message);
    void *workspace = aligned_alloc(64, (*size + 64) / 64 * 64);
    if (!workspace)
        stop("workspace", "out of memory");
    return workspace;
}

int main(int count, char **arguments)
{
    fpa_error error;
    fpa_kernel *kernel;
    if (count < 2)
        return fprintf(stderr, "usage: prefill_decode SPEC [HEAD]\n"), 2;
    if (fpa_open(arguments[1], count > 2 ? arguments[2] : NULL, NULL, &kernel, &error))
        stop(error.where, error.message);
    const fpa_description *head = fpa_describe(kernel);
    printf("%s on %s: D = %lld; %s\n", head->name, head->target, (long long)head->features, head->verdict);

    /* Prefill: L tokens at once; the state is zero before it. */
    int64_t keys[4] = {BATCH, PROMPT, HEADS, head->d}, values[4] = {BATCH, PROMPT, HEADS, head->dv};
    int64_t states[3] = {BATCH, HEADS, head->state_elements};
    size_t tokens = (size_t)BATCH * (PROMPT + DECODE) * HEADS;
    float *q_data = numbers(tokens * (size_t)head->d), *k_data = numbers(tokens * (size_t)head->d);
    float *v_data = numbers(tokens * (size_t)head->dv), *o_data = numbers(tokens * (size_t)head->dv);
    float *state_data = numbers((size_t)(BATCH * HEADS * head->state_elements));
    DLTensor q = tensor(q_data, keys), k = tensor(k_data, keys), v = tensor(v_data, values);
    DLTensor o = tensor(o_data, values), state = tensor(state_data, states);
    state.ndim = 3;
    fpa_tensors tensors = {.q = &q, .k = &k, .v = &v, .o = &o, .state_out = &state};
    size_t size;
    void *workspace = scratch(kernel, FPA_FORM_AUTO, &tensors, &size);
    if (fpa_forward(kernel, FPA_FORM_AUTO, &tensors, workspace, size, &error))
        stop(error.where, error.message);
    free(workspace);

    /* Decode: one token a call, the state updated in place. */
    keys[1] = values[1] = 1;
    tensors.state_in = &state;
    workspace = scratch(kernel, FPA_FORM_RECURRENT, &tensors, &size);
    for (int token = PROMPT; token < PROMPT + DECODE; token++) {
        q.byte_offset = k.byte_offset = (uint64_t)token * HEADS * (uint64_t)head->d * sizeof(float);
        v.byte_offset = o.byte_offset = (uint64_t)token * HEADS * (uint64_t)head->dv * sizeof(float);
        if (fpa_step(kernel, &tensors, workspace, size, &error))
            stop(error.where, error.message);
        printf("token %d: o[0] = %g\n", token, (double)o_data[(size_t)token * HEADS * (size_t)head->dv]);
    }
    free(workspace), free(q_data), free(k_data), free(v_data), free(o_data), free(state_data);
    fpa_close(kernel);
    return 0;
}
