/* toy: a small head as spec text, and the formula written out for it, for tests that open kernels. */
#ifndef FPAC_TESTS_TOY_H
#define FPAC_TESTS_TOY_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/api/fpa.h"
#include "scratch.h"

#define TOY_HEAD(name)                                                                                       \
    "head { name = \"" name "\", d = 4, dv = 4, chunk = 4, terms = power { degree = 2 } }\n"
#define TOY_SPEC "return " TOY_HEAD("toy")

/* Many small kernels: compile them without optimisation, and let threads sleep between calls.
 * Flags that the caller of the test set (sanitizers) stay. */
static inline void toy_hurry(void)
{
    const char *flags = getenv("FPA_CFLAGS");
    char longer[512];
    snprintf(longer, sizeof longer, "%s -O0", flags ? flags : "");
    setenv("FPA_CFLAGS", longer, 1);
    setenv("OMP_WAIT_POLICY", "passive", 0);
}

/* A compiler that works once and hands out its first result from then on, for tests that start it hundreds of times. */
static inline void toy_compiler(const char *path)
{
    static const char script[] = "#!/bin/sh\n"
                                 "saved=${0%/*}/saved.so\n"
                                 "if [ -f $saved ]; then\n"
                                 "  while [ \"$1\" != -o ]; do shift; done\n"
                                 "  exec cp $saved $2\n"
                                 "fi\n"
                                 "gcc \"$@\" || exit 1\n"
                                 "while [ \"$1\" != -o ]; do shift; done\n"
                                 "cp $2 $saved\n";
    scratch_write(path, script, strlen(script));
    chmod(path, 0755);
}

enum { TOY_BATCH = 2, TOY_TOKENS = 11, TOY_HEADS = 3, TOY_WIDTH = 4 };
enum { TOY_ELEMENTS = TOY_BATCH * TOY_TOKENS * TOY_HEADS * TOY_WIDTH };

typedef struct toy_call {
    float q[TOY_ELEMENTS], k[TOY_ELEMENTS], v[TOY_ELEMENTS], o[TOY_ELEMENTS];
    int64_t shape[4];
    DLTensor tensors[4];
    fpa_tensors operands;
} toy_call;

static inline DLTensor toy_tensor(void *data, int axes, int64_t *shape)
{
    return (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = axes, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

/* Values in [-1, 1), the same ones every time. */
static inline void toy_fill(toy_call *call)
{
    unsigned seed = 12345;
    float *const inputs[] = {call->q, call->k, call->v};
    for (int x = 0; x < 3; x++)
        for (int i = 0; i < TOY_ELEMENTS; i++) {
            seed = seed * 1664525u + 1013904223u;
            inputs[x][i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
        }
    const int64_t shape[4] = {TOY_BATCH, TOY_TOKENS, TOY_HEADS, TOY_WIDTH};
    float *const data[] = {call->q, call->k, call->v, call->o};
    for (int a = 0; a < 4; a++) {
        call->shape[a] = shape[a];
        call->o[a] = NAN;
        call->tensors[a] = toy_tensor(data[a], 4, call->shape);
    }
    call->operands = (fpa_tensors){
        .q = &call->tensors[0], .k = &call->tensors[1], .v = &call->tensors[2], .o = &call->tensors[3]};
}

/* o_t = sum over j <= t of (q_t . k_j)^2 v_j, and whether call->o is that. */
static inline bool toy_is_right(const toy_call *call)
{
    const int step = TOY_HEADS * TOY_WIDTH;
    for (int i = 0; i < TOY_BATCH * TOY_TOKENS * TOY_HEADS; i++) {
        int t = i / TOY_HEADS % TOY_TOKENS;
        double sum[TOY_WIDTH] = {0};
        for (int j = 0; j <= t; j++) {
            const float *q = call->q + i * TOY_WIDTH, *k = call->k + i * TOY_WIDTH - (t - j) * step;
            double dot = 0;
            for (int c = 0; c < TOY_WIDTH; c++)
                dot += (double)q[c] * (double)k[c];
            for (int c = 0; c < TOY_WIDTH; c++)
                sum[c] += dot * dot * (double)call->v[i * TOY_WIDTH - (t - j) * step + c];
        }
        for (int c = 0; c < TOY_WIDTH; c++)
            if (!(fabs((double)call->o[i * TOY_WIDTH + c] - sum[c]) < 1e-4))
                return false;
    }
    return true;
}

/* A workspace of its own for one call; *status is the call's. */
static inline fpa_status toy_forward(const fpa_kernel *kernel, fpa_form form, const fpa_tensors *operands,
                                     fpa_error *error)
{
    size_t size = 0;
    fpa_status status = fpa_workspace_size(kernel, form, operands, &size, error);
    if (status)
        return status;
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    status = fpa_forward(kernel, form, operands, workspace, size, error);
    free(workspace);
    return status;
}

/* True when the kernel computes the toy's formula in every form. */
static inline bool toy_works(const fpa_kernel *kernel)
{
    fpa_error error;
    for (fpa_form form = FPA_FORM_AUTO; form <= FPA_FORM_RECURRENT; form++) {
        toy_call call;
        toy_fill(&call);
        if (toy_forward(kernel, form, &call.operands, &error) || !toy_is_right(&call))
            return false;
    }
    return true;
}

#endif
