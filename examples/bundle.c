/* bundle: a head that was compiled ahead of time, used without Lua and without a compiler.
 *
 *   fpac gen specs/tspow.lua --head tspow2_d64_b8 -o models --target c --object
 *   cc bundle.c $(pkg-config --cflags --libs fpa) -o bundle
 *   ./bundle models tspow2_d64_b8 */
#include <stdio.h>
#include <stdlib.h>

#include "fpa.h"

enum { BATCH = 1, TOKENS = 1000, HEADS = 4 };

static DLTensor tensor(float *data, int64_t *shape) /* float32 [a, b, c, d] in C order */
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = 4, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

static float *numbers(int64_t width) /* what a model would compute */
{
    size_t count = (size_t)(BATCH * TOKENS * HEADS * width);
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; data && i < count; i++)
        data[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return data;
}

/* The library says how much scratch memory a call needs; the caller gives it and may keep it. */
static fpa_status forward(const fpa_kernel *kernel, const fpa_tensors *tensors, fpa_error *error)
{
    size_t size;
    fpa_status status = fpa_workspace_size(kernel, FPA_FORM_AUTO, tensors, &size, error);
    if (status)
        return status;
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    status = fpa_forward(kernel, FPA_FORM_AUTO, tensors, workspace, size, error);
    free(workspace);
    return status;
}

int main(int count, char **arguments)
{
    fpa_error error;
    fpa_kernel *kernel;
    if (count < 2)
        return fprintf(stderr, "usage: bundle FOLDER [HEAD]\n"), 2;
    if (fpa_open_bundle(arguments[1], count > 2 ? arguments[2] : NULL, NULL, &kernel, &error))
        return fprintf(stderr, "%s: %s\n", error.where, error.message), 1;
    const fpa_description *head = fpa_describe(kernel);
    printf("%s for %s, D = %lld\n%s\n", head->name, head->target, (long long)head->features, head->verdict);

    int64_t keys[4] = {BATCH, TOKENS, HEADS, head->d}, values[4] = {BATCH, TOKENS, HEADS, head->dv};
    float *q_data = numbers(head->d), *k_data = numbers(head->d), *v_data = numbers(head->dv);
    float *o_data = numbers(head->dv);
    if (!q_data || !k_data || !v_data || !o_data)
        return fprintf(stderr, "out of memory\n"), 1;
    DLTensor q = tensor(q_data, keys), k = tensor(k_data, keys), v = tensor(v_data, values);
    DLTensor o = tensor(o_data, values);
    const fpa_tensors tensors = {.q = &q, .k = &k, .v = &v, .o = &o};
    fpa_status status = forward(kernel, &tensors, &error);
    if (status)
        fprintf(stderr, "%s: %s\n", error.where, error.message);
    else
        printf("o[last token][0] = %g\n", (double)o_data[(TOKENS - 1) * HEADS * head->dv]);
    free(q_data), free(k_data), free(v_data), free(o_data);
    fpa_close(kernel);
    return status != FPA_OK;
}
