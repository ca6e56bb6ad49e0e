/* decode_window: a head with a window of w keys, token by token. What has been seen is a state, which has the keys
 * that left the window, and the last w - 1 keys and values, which lie at the end of a buffer. Tokens are appended;
 * when the buffer is full, what the next token's window needs is moved to its front.
 *
 *   cc decode_window.c $(pkg-config --cflags --libs fpa) -o decode_window
 *   ./decode_window specs/window.lua based_d16_w64 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fpa.h"

enum { HEADS = 4, TOKENS = 300, MORE = 64 /* tokens of a buffer beside the window's */ };

static void stop(const char *where, const char *message)
{
    fprintf(stderr, "%s: %s\n", where, message);
    exit(1);
}

/* Memory for so many float32 numbers, zeros. */
static float *numbers(int64_t count)
{
    float *memory = calloc((size_t)count, sizeof *memory);
    if (!memory)
        stop("decode_window", "out of memory");
    return memory;
}

static DLTensor tensor(float *memory, int axes, int64_t *shape)
{
    return (DLTensor){
        .data = memory, .device = {kDLCPU, 0}, .ndim = axes, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

/* What a model would compute of a token. */
static void fill(float *token, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        token[i] = (float)rand() / (float)RAND_MAX - 0.5f;
}

static void compute(const fpa_kernel *kernel, const fpa_tensors *tensors)
{
    size_t size;
    fpa_error error;
    if (fpa_workspace_size(kernel, FPA_FORM_AUTO, tensors, &size, &error))
        stop(error.where, error.message);
    void *workspace = aligned_alloc(64, (size + 127) / 64 * 64); /* a real loop keeps the largest */
    if (!workspace || fpa_forward(kernel, FPA_FORM_AUTO, tensors, workspace, size, &error))
        stop(workspace ? error.where : "decode_window", workspace ? error.message : "out of memory");
    free(workspace);
}

int main(int count, char **arguments)
{
    fpa_error error;
    fpa_kernel *kernel;
    if (count < 2)
        return fprintf(stderr, "usage: decode_window SPEC [HEAD]\n"), 2;
    if (fpa_open(arguments[1], count > 2 ? arguments[2] : NULL, NULL, &kernel, &error))
        stop(error.where, error.message);
    const fpa_description *head = fpa_describe(kernel);
    if (!head->window || strcmp(head->dtype, "f32") != 0 || strcmp(head->state_dtype, "f32") != 0 ||
        head->key_mask || head->positions || head->weight_count)
        stop(head->name, "this example wants a head of float32 with a window, and q, k and v alone");

    const int room = head->window - 1 + MORE;
    const int64_t key = (int64_t)HEADS * head->d, value = (int64_t)HEADS * head->dv;
    float *keys = numbers(room * key), *values = numbers(room * value);
    int64_t query_shape[4] = {1, 1, HEADS, head->d}, output_shape[4] = {1, 1, HEADS, head->dv};
    int64_t key_shape[4] = {1, 1, HEADS, head->d}, value_shape[4] = {1, 1, HEADS, head->dv};
    int64_t state_shape[3] = {1, HEADS, head->state_elements};
    DLTensor q = tensor(numbers(key), 4, query_shape), o = tensor(numbers(value), 4, output_shape);
    DLTensor k = tensor(keys, 4, key_shape), v = tensor(values, 4, value_shape);
    DLTensor state = tensor(numbers(HEADS * head->state_elements), 3, state_shape);

    for (int token = 0, held = 0; token < TOKENS; token++) {
        const int kept =
            token < head->window - 1 ? token : head->window - 1; /* of the window, before this token */
        if (held == room) {
            memmove(keys, keys + (held - kept) * key, (size_t)(kept * key) * sizeof *keys);
            memmove(values, values + (held - kept) * value, (size_t)(kept * value) * sizeof *values);
            held = kept;
        }
        fill(q.data, key);
        fill(keys + held * key, key);
        fill(values + held * value, value);
        k.data = keys + (held - kept) * key;
        v.data = values + (held - kept) * value;
        key_shape[1] = value_shape[1] = kept + 1;
        held++;
        const fpa_tensors step = {
            .q = &q, .k = &k, .v = &v, .o = &o, .recent = kept, .state_in = &state, .state_out = &state};
        compute(kernel, &step); /* the key that the next token's window lacks is in the state now */
        if (token % 50 == 49)
            printf("token %d: o[0] = %g\n", token, (double)((float *)o.data)[0]);
    }
    fpa_close(kernel);
    free(q.data), free(o.data), free(keys), free(values), free(state.data);
    return 0;
}
