/* bundle: a head that was compiled ahead of time, used without Lua and without a compiler:
 * libfpa-run is all that it needs.
 *
 *   fpac gen specs/tspow.lua --head tspow2_d64_b8 -o models --target c --object
 *   cc bundle.c $(pkg-config --cflags --libs fpa-run) -o bundle
 *   ./bundle models tspow2_d64_b8 */
#include <stdio.h>
#include <stdlib.h>

#include "fpa.h"

enum { BATCH = 1, TOKENS = 1000, HEADS = 4 };

/* A program may end here; the library itself never does. */
static _Noreturn void stop(const char *where, const char *message)
{
    fprintf(stderr, "%s: %s\n", where, message);
    exit(1);
}

static DLTensor tensor(float *data, int64_t *shape) /* float32 [a, b, c, d] in C order */
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = 4, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

static float *numbers(int64_t width) /* what a model would compute */
{
    size_t count = (size_t)(BATCH * TOKENS * HEADS * width);
    float *data = malloc(count * sizeof *data);
    if (!data)
        stop("bundle", "out of memory");
    for (size_t i = 0; i < count; i++)
        data[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return data;
}

/* The library says how much scratch memory a call needs; the caller gives it and may keep it. */
static void forward(const fpa_kernel *kernel, const fpa_tensors *tensors)
{
    fpa_error error;
    size_t size;
    if (fpa_workspace_size(kernel, FPA_FORM_AUTO, tensors, &size, &error))
        stop(error.where, error.message);
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!workspace)
        stop("workspace", "out of memory");
    if (fpa_forward(kernel, FPA_FORM_AUTO, tensors, workspace, size, &error))
        stop(error.where, error.message);
    free(workspace);
}

int main(int count, char **arguments)
{
    fpa_error error;
    fpa_kernel *kernel;
    if (count < 2)
        return fprintf(stderr, "usage: bundle FOLDER [HEAD]\n"), 2;
    if (fpa_open_bundle(arguments[1], count > 2 ? arguments[2] : NULL, NULL, &kernel, &error))
        stop(error.where, error.message);
    const fpa_description *head = fpa_describe(kernel);
    printf("%s for %s, D = %lld\n%s\n", head->name, head->target, (long long)head->features, head->verdict);

    int64_t keys[4] = {BATCH, TOKENS, HEADS, head->d}, values[4] = {BATCH, TOKENS, HEADS, head->dv};
    float *q_data = numbers(head->d), *k_data = numbers(head->d), *v_data = numbers(head->dv);
    float *o_data = numbers(head->dv);
    DLTensor q = tensor(q_data, keys), k = tensor(k_data, keys), v = tensor(v_data, values);
    DLTensor o = tensor(o_data, values);
    const fpa_tensors tensors = {.q = &q, .k = &k, .v = &v, .o = &o};
    forward(kernel, &tensors);
    printf("o[last token][0] = %g\n", (double)o_data[(TOKENS - 1) * HEADS * head->dv]);
    free(q_data), free(k_data), free(v_data), free(o_data);
    fpa_close(kernel);
    return 0;
}
