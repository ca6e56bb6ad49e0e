/* decode_recent: decoding with a state that is updated only every KEPT tokens. In between, the newest
 * keys and values are kept in a buffer, and the state is only read: on a GPU this takes about half the time
 * of a step, which also writes it. This program runs on the CPU; on a GPU the tensors are in its memory.
 *
 *   cc decode_recent.c $(pkg-config --cflags --libs fpa) -o decode_recent
 *   ./decode_recent specs/tspow.lua tspow2_d64_b8 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fpa.h"

enum { BATCH = 2, HEADS = 4, TOKENS = 40, KEPT = 16 };

static void stop(const char *where, const char *message)
{
    fprintf(stderr, "%s: %s\n", where, message);
    exit(1);
}

/* Memory for a float32 tensor, zeros. */
static float *numbers(const int64_t *shape, int axes)
{
    size_t count = 1;
    for (int a = 0; a < axes; a++)
        count *= (size_t)shape[a];
    float *memory = calloc(count, sizeof *memory);
    if (!memory)
        stop("decode_recent", "out of memory");
    return memory;
}

static DLTensor tensor(float *memory, int axes, int64_t *shape, int64_t *strides)
{
    return (DLTensor){.data = memory,
                      .device = {kDLCPU, 0},
                      .ndim = axes,
                      .dtype = {kDLFloat, 32, 1},
                      .shape = shape,
                      .strides = strides};
}

/* What a model would compute: one token of every sequence, `stride` numbers from one to the next. */
static void fill(float *token, int64_t stride, int64_t count)
{
    for (int b = 0; b < BATCH; b++)
        for (int64_t i = 0; i < count; i++)
            token[b * stride + i] = (float)rand() / (float)RAND_MAX - 0.5f;
}

static void compute(const fpa_kernel *kernel, const fpa_tensors *tensors)
{
    size_t size;
    fpa_error error;
    if (fpa_workspace_size(kernel, FPA_FORM_AUTO, tensors, &size, &error))
        stop(error.where, error.message);
    void *workspace = aligned_alloc(64, (size + 127) / 64 * 64); /* a real loop keeps the largest */
    if (!workspace || fpa_forward(kernel, FPA_FORM_AUTO, tensors, workspace, size, &error))
        stop(workspace ? error.where : "decode_recent", workspace ? error.message : "out of memory");
    free(workspace);
}

int main(int count, char **arguments)
{
    fpa_error error;
    fpa_kernel *kernel;
    if (count < 2)
        return fprintf(stderr, "usage: decode_recent SPEC [HEAD]\n"), 2;
    if (fpa_open(arguments[1], count > 2 ? arguments[2] : NULL, NULL, &kernel, &error))
        stop(error.where, error.message);
    const fpa_description *head = fpa_describe(kernel);
    if (strcmp(head->dtype, "f32") != 0 || strcmp(head->state_dtype, "f32") != 0 || head->gate ||
        head->weight_count || head->window)
        stop(head->name, "this example wants a head of float32 without gate, window and run-time matrices");

    int64_t query[4] = {BATCH, 1, HEADS, head->d}, output[4] = {BATCH, 1, HEADS, head->dv};
    int64_t keys[4] = {BATCH, KEPT, HEADS, head->d}, values[4] = {BATCH, KEPT, HEADS, head->dv};
    int64_t key_strides[4] = {KEPT * HEADS * head->d, HEADS * head->d, head->d, 1};
    int64_t value_strides[4] = {KEPT * HEADS * head->dv, HEADS * head->dv, head->dv, 1};
    int64_t states[3] = {BATCH, HEADS, head->state_elements};
    float *kept_keys = numbers(keys, 4), *kept_values = numbers(values, 4);
    DLTensor q = tensor(numbers(query, 4), 4, query, NULL), o = tensor(numbers(output, 4), 4, output, NULL);
    DLTensor k = tensor(kept_keys, 4, keys, key_strides), v = tensor(kept_values, 4, values, value_strides);
    DLTensor state = tensor(numbers(states, 3), 3, states, NULL);
    const fpa_tensors recall = {.q = &q, .k = &k, .v = &v, .o = &o, .state_in = &state};
    const fpa_tensors update = {.k = &k, .v = &v, .state_in = &state, .state_out = &state};

    for (int token = 0, recent = 0; token < TOKENS; token++) {
        fpa_tensors now = recall;
        fill(q.data, HEADS * head->d, HEADS * head->d);
        fill(kept_keys + recent * key_strides[1], key_strides[0], HEADS * head->d);
        fill(kept_values + recent * value_strides[1], value_strides[0], HEADS * head->dv);
        now.recent = recent++;
        keys[1] = values[1] = recent; /* places in use */
        compute(kernel, &now);
        printf("token %d: o[0] = %g\n", token, (double)((float *)o.data)[0]);
        if (recent == KEPT) {
            compute(kernel, &update); /* all kept tokens into the state; no q, no o */
            recent = 0;
        }
    }
    fpa_close(kernel);
    free(q.data), free(o.data), free(kept_keys), free(kept_values), free(state.data);
    return 0;
}
