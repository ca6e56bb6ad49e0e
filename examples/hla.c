/* hla: second-order (higher-order linear) attention by two passes of linear attention, un-normalised:
 *
 *     u = L(Q, K, K)        u_i = sum over j <= i of (q_i . k_j) k_j: state sum of k k'
 *     o = L(Q, u, V)        o_t = sum over i <= t of (q_t . u_i) v_i
 *                               = sum over i <= t, j <= i of (q_t . k_j) (k_j . q_i) v_i
 *
 * The first line's o is the second line's k; each pass is linear in the length and keeps a state of its own, so that
 * both decode token by token. Here a prompt is read in one call a pass, tokens follow one by one, and all of o is
 * compared with the last line, in double. Exit code 1: they differ.
 *
 *   cc hla.c $(pkg-config --cflags --libs fpa) -lm -o hla */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fpa.h"

enum { PROMPT = 200, DECODE = 5, LENGTH = PROMPT + DECODE, D = 16, DV = 24 };

static const char spec[] = "return head { name = 'keys', d = 16, dv = 16, terms = linear {} },"
                           "       head { name = 'values', d = 16, dv = 24, terms = linear {} }";

/* One pass: a kernel and its state. */
typedef struct pass {
    fpa_kernel *kernel;
    int dv;
    float state[D * DV];
} pass;

/* A program may end here; the library itself never does. */
static _Noreturn void stop(const char *where, const char *message)
{
    fprintf(stderr, "%s: %s\n", where, message);
    exit(1);
}

static DLTensor tensor(float *data, int dimensions, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = dimensions, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

static void open_pass(const char *head, int dv, pass *p)
{
    fpa_error error;
    *p = (pass){.dv = dv};
    if (fpa_open_text("hla.c", spec, head, NULL, &p->kernel, &error))
        stop(error.where, error.message);
}

/* `count` tokens go through the pass, whose state goes on. */
static void run(pass *p, int count, const float *q, const float *k, const float *v, float *o)
{
    int64_t keys[] = {1, count, 1, D}, values[] = {1, count, 1, p->dv}, states[] = {1, 1, (int64_t)D * p->dv};
    DLTensor tq = tensor((float *)q, 4, keys), tk = tensor((float *)k, 4, keys);
    DLTensor tv = tensor((float *)v, 4, values), to = tensor(o, 4, values),
             state = tensor(p->state, 3, states);
    fpa_tensors tensors = {.q = &tq, .k = &tk, .v = &tv, .o = &to, .state_in = &state, .state_out = &state};
    fpa_error error;
    size_t size;
    if (fpa_workspace_size(p->kernel, FPA_FORM_AUTO, &tensors, &size, &error))
        stop(error.where, error.message);
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!workspace)
        stop("hla", "out of memory");
    if (fpa_forward(p->kernel, FPA_FORM_AUTO, &tensors, workspace, size, &error))
        stop(error.where, error.message);
    free(workspace);
}

static void second_order(pass *first, pass *second, int count, const float *q, const float *k, const float *v,
                         float *o)
{
    static float u[LENGTH * D];
    run(first, count, q, k, k, u);
    run(second, count, q, u, v, o);
}

/* a . b */
static double dot(const float *a, const float *b)
{
    double sum = 0;
    for (int c = 0; c < D; c++)
        sum += (double)a[c] * (double)b[c];
    return sum;
}

/* The double sum, for token t. */
static void formula(int t, const float *q, const float *k, const float *v, double o[DV])
{
    for (int e = 0; e < DV; e++)
        o[e] = 0;
    for (int i = 0; i <= t; i++) {
        double weight = 0;
        for (int j = 0; j <= i; j++)
            weight += dot(q + t * D, k + j * D) * dot(k + j * D, q + i * D);
        for (int e = 0; e < DV; e++)
            o[e] += weight * (double)v[i * DV + e];
    }
}

int main(void)
{
    static float q[LENGTH * D], k[LENGTH * D], v[LENGTH * DV], o[LENGTH * DV];
    double expected[DV], most = 0, off = 0;
    pass first, second;
    open_pass("keys", D, &first);
    open_pass("values", DV, &second);
    for (int i = 0; i < LENGTH * D; i++) { /* what a model would compute */
        q[i] = (float)rand() / (float)RAND_MAX - 0.5f;
        k[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    }
    for (int i = 0; i < LENGTH * DV; i++)
        v[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    second_order(&first, &second, PROMPT, q, k, v, o);
    for (int t = PROMPT; t < LENGTH; t++)
        second_order(&first, &second, 1, q + t * D, k + t * D, v + t * DV, o + t * DV);
    for (int t = 0; t < LENGTH; t++) {
        formula(t, q, k, v, expected);
        for (int e = 0; e < DV; e++) {
            most = fmax(most, fabs(expected[e]));
            off = fmax(off, fabs((double)o[t * DV + e] - expected[e]));
        }
    }
    printf("%d tokens and %d one by one: off by %.1e of %.1f; states %d x %d and %d x %d\n", PROMPT, DECODE,
           off, most, D, D, D, DV);
    fpa_close(first.kernel);
    fpa_close(second.kernel);
    return off <= 1e-5 * most ? 0 : 1;
}
