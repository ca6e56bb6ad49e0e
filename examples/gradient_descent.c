/* gradient_descent: a projection is learned by gradient descent, with kernels that were compiled ahead of time: libfpa-run is all
 * that it needs.
 *
 *   fpac gen specs/trainable.lua --head trainable_shared -o models --target c --object --backward
 *   cc gradient_descent.c $(pkg-config --cflags --libs fpa-run) -o gradient_descent
 *   ./gradient_descent models trainable_shared
 *
 * The head's kernel is (W q . W k)^2, W [16, 64] of all heads. A hidden W looks at the first 16 coordinates of q and k
 * only; its outputs are what the learned W, which begins with random numbers, is to give as well. */
#include <stdio.h>
#include <stdlib.h>

#include "fpa.h"

enum { TOKENS = 256, HEADS = 2, ROWS = 16, D = 64, STEPS = 50, SHOWN = 10 };

enum { VECTORS = TOKENS * HEADS * D, MATRIX = ROWS * D };

static float q[VECTORS], k[VECTORS], v[VECTORS], o[VECTORS], wanted[VECTORS], d_o[VECTORS];
static float w[MATRIX], d_w[MATRIX];

/* A program may end here; the library itself never does. */
static _Noreturn void stop(const char *where, const char *message)
{
    fprintf(stderr, "%s: %s\n", where, message);
    exit(1);
}

static void fill(float *numbers, int count, float size)
{
    for (int i = 0; i < count; i++)
        numbers[i] = size * (2 * (float)rand() / (float)RAND_MAX - 1);
}

static DLTensor tensor(float *data, int axes, int64_t *shape) /* float32 in C order */
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = axes, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

static void *memory(size_t size)
{
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!workspace)
        stop("workspace", "out of memory");
    return workspace;
}

/* The loss, a half of the squared distance from what is wanted beside what is wanted; and its gradient in o. */
static float compare(void)
{
    float distance = 0, size = 0;
    for (int i = 0; i < VECTORS; i++)
        size += wanted[i] * wanted[i];
    for (int i = 0; i < VECTORS; i++) {
        const float off = o[i] - wanted[i];
        distance += off * off;
        d_o[i] = off / size;
    }
    return distance / (2 * size);
}

/* The least loss is 0: a step goes half of the way to where the slope says that it is reached (Polyak). */
static void descend(float loss)
{
    float slope = 0;
    for (int i = 0; i < MATRIX; i++)
        slope += d_w[i] * d_w[i];
    for (int i = 0; i < MATRIX; i++)
        w[i] -= loss / (2 * slope) * d_w[i];
}

/* Of W's squares, those at coordinates that the hidden one looks at. */
static float share(void)
{
    float seen = 0, all = 0;
    for (int i = 0; i < MATRIX; i++) {
        all += w[i] * w[i];
        seen += i % D < ROWS ? w[i] * w[i] : 0;
    }
    return seen / all;
}

int main(int count, char **arguments)
{
    const fpa_options options = {.backward = 1};
    fpa_error error;
    fpa_kernel *kernel;
    if (count < 2)
        return fprintf(stderr, "usage: gradient_descent FOLDER [HEAD]\n"), 2;
    if (fpa_open_bundle(arguments[1], count > 2 ? arguments[2] : NULL, &options, &kernel, &error))
        stop(error.where, error.message);
    const fpa_description *head = fpa_describe(kernel);
    if (head->d != D || head->dv != D || head->weight_count != 1 || head->normalized || head->gate)
        stop(head->name, "is another head than trainable_shared of specs/trainable.lua");
    printf("%s for %s, D = %lld\n%s\n", head->name, head->target, (long long)head->features,
           head->backward_verdict);

    int64_t vectors[4] = {1, TOKENS, HEADS, D}, matrix[2] = {ROWS, D};
    DLTensor q_ = tensor(q, 4, vectors), k_ = tensor(k, 4, vectors), v_ = tensor(v, 4, vectors);
    DLTensor o_ = tensor(o, 4, vectors), d_o_ = tensor(d_o, 4, vectors), wanted_ = tensor(wanted, 4, vectors);
    DLTensor w_ = tensor(w, 2, matrix), d_w_ = tensor(d_w, 2, matrix);
    const DLTensor *weights[] = {&w_};
    DLTensor *d_weights[] = {&d_w_};
    fpa_tensors forward = {.q = &q_, .k = &k_, .v = &v_, .o = &wanted_, .weights = weights};
    const fpa_gradient_tensors backward = {
        .q = &q_, .k = &k_, .v = &v_, .o = &o_, .weights = weights, .d_o = &d_o_, .d_weights = d_weights};
    size_t size, backward_size; /* scratch memory: a caller gives it, and keeps it */
    if (fpa_workspace_size(kernel, FPA_FORM_AUTO, &forward, &size, &error) ||
        fpa_backward_workspace(kernel, FPA_FORM_AUTO, &backward, &backward_size, &error))
        stop(error.where, error.message);
    size = size > backward_size ? size : backward_size;
    void *workspace = memory(size);

    fill(q, VECTORS, 1), fill(k, VECTORS, 1), fill(v, VECTORS, 1);
    for (int row = 0; row < ROWS; row++)
        w[row * D + row] = 1;
    if (fpa_forward(kernel, FPA_FORM_AUTO, &forward, workspace, size, &error))
        stop(error.where, error.message);
    fill(w, MATRIX, 0.25f);
    forward.o = &o_;
    for (int step = 0; step <= STEPS; step++) {
        if (fpa_forward(kernel, FPA_FORM_AUTO, &forward, workspace, size, &error))
            stop(error.where, error.message);
        const float loss = compare();
        if (step % SHOWN == 0)
            printf("step %3d: loss %.5f, %3.0f %% of W looks at what counts\n", step, (double)loss,
                   100 * (double)share());
        if (fpa_backward(kernel, FPA_FORM_AUTO, &backward, workspace, size, &error))
            stop(error.where, error.message);
        descend(loss);
    }
    free(workspace);
    fpa_close(kernel);
    return 0;
}
