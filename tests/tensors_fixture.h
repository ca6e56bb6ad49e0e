/* tensors_fixture: one valid call of a head, for tests that spoil it. */
#ifndef FPAC_TESTS_TENSORS_FIXTURE_H
#define FPAC_TESTS_TENSORS_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/tensors.h"
#include "claims.h"

/* Shapes of the valid call that each test spoils in one place. */
enum { B = 2, L = 5, HQ = 6, H = 3, D_KEY = 4, DV = 8, FEATURES = 10, STATE = FEATURES * DV };

typedef struct operand {
    DLTensor tensor;
    int64_t shape[5], stride[5];
} operand;

typedef struct fixture {
    fpa_head *head;
    fpa_facts facts;
    DLDevice device;
    operand q, k, v, o, gate, state_in, state_out, weights[2];
    const DLTensor *weight_list[2];
    fpa_tensors tensors;
    const float *weight_data[2];
    struct fpa_launch launch;
    fpa_error error;
} fixture;

/* Room for any operand; what is compared are addresses, nothing is read. */
static float memory[10][8192];

static inline void shape(operand *x, int slot, int axes, const int64_t *lengths)
{
    int64_t step = 1;
    for (int a = axes - 1; a >= 0; a--) {
        x->shape[a] = lengths[a];
        x->stride[a] = step;
        step *= lengths[a];
    }
    x->tensor = (DLTensor){.data = memory[slot],
                           .device = {kDLCPU, 0},
                           .ndim = axes,
                           .dtype = {kDLFloat, 32, 1},
                           .shape = x->shape,
                           .strides = x->stride};
}

#define SHAPE(x, slot, ...)                                                                                  \
    shape(x, slot, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

/* A gated head with a shared dense W1 (3 x d) and a diagonal W2, one a head. */
static inline fpa_head *make_head(void)
{
    fpa_head *head = head_new();
    head->name = arena_string(&head->memory, "toy");
    head->d = D_KEY;
    head->dv = DV;
    head->gate = true;
    head->matrix_count = 3;
    head->matrices = arena_array(&head->memory, 3, sizeof *head->matrices);
    head->matrices[0] = (fpa_matrix){.kind = FPA_MATRIX_TRAINABLE, .name = "W1", .rows = 3, .cols = D_KEY};
    head->matrices[1] = (fpa_matrix){.kind = FPA_MATRIX_CONSTANT, .rows = 2, .cols = D_KEY};
    head->matrices[2] = (fpa_matrix){
        .kind = FPA_MATRIX_TRAINABLE_DIAGONAL, .name = "W2", .rows = D_KEY, .cols = D_KEY, .per_head = true};
    return head;
}

static inline int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->head = make_head();
    f->device = (DLDevice){kDLCPU, 0};
    f->facts = (fpa_facts){.features = FEATURES, .state_elements = STATE, .forms = 7};
    SHAPE(&f->q, 0, B, L, HQ, D_KEY);
    SHAPE(&f->k, 1, B, L, H, D_KEY);
    SHAPE(&f->v, 2, B, L, H, DV);
    SHAPE(&f->o, 3, B, L, HQ, DV);
    SHAPE(&f->gate, 4, B, L, H);
    SHAPE(&f->state_in, 5, B, H, STATE);
    SHAPE(&f->state_out, 6, B, H, FEATURES, DV);
    SHAPE(&f->weights[0], 7, 3, D_KEY);
    SHAPE(&f->weights[1], 8, H, D_KEY);
    f->weight_list[0] = &f->weights[0].tensor;
    f->weight_list[1] = &f->weights[1].tensor;
    f->tensors = (fpa_tensors){.q = &f->q.tensor,
                               .k = &f->k.tensor,
                               .v = &f->v.tensor,
                               .o = &f->o.tensor,
                               .log_gate = &f->gate.tensor,
                               .state_in = &f->state_in.tensor,
                               .state_out = &f->state_out.tensor,
                               .weights = f->weight_list};
    *state = f;
    return 0;
}

static inline int drop_fixture(void **state)
{
    fixture *f = *state;
    head_free(f->head);
    free(f);
    return 0;
}

static inline fpa_status check(fixture *f, tensors_mode mode)
{
    return tensors_check(f->head, &f->facts, f->device, mode, &f->tensors, f->weight_data, &f->launch,
                         &f->error);
}

static inline void expect_fine(fixture *f)
{
    if (check(f, TENSORS_DATA) != FPA_OK)
        fail_msg("%s: %s", f->error.where, f->error.message);
}

static inline void expect_refused(fixture *f, const char *where, const char *message)
{
    assert_int_equal(check(f, TENSORS_DATA), FPA_INVALID);
    assert_string_equal(f->error.where, where);
    if (!strstr(f->error.message, message))
        fail_msg("'%s' is not in '%s'", message, f->error.message);
}

#endif
