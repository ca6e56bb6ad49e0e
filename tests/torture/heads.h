/* heads: random heads, opened and called, as the attacks on numbers share them. */
#ifndef FPAC_TESTS_TORTURE_HEADS_H
#define FPAC_TESTS_TORTURE_HEADS_H

#include "base/dtype.h"
#include "formula.h"
#include "runtime/api/fpa.h"

/* A tensor's numbers as the kernel takes them, and its description. */
typedef struct operand {
    void *data;
    int64_t shape[4];
    DLTensor tensor;
} operand;

typedef struct player {
    formula f;
    call_numbers call;
    fpa_kernel *kernel;
    double *o, *bound;
} player;

enum { Q, K, V, GATE, O, OPERANDS };

/* Everything that a call takes. */
typedef struct operands {
    operand x[OPERANDS], state, weight[MOST_WEIGHTS];
    const DLTensor *weights[MOST_WEIGHTS];
} operands;

void *torture_reserve(size_t count, size_t size);

/* The caller frees x->data. numbers NULL: zeros. */
void operand_fill(operand *x, fpa_dtype dtype, const double *numbers, int axes, const int64_t *shape);
void operands_make(const player *p, operands *all);
void operands_drop(operands *all);

/* Writes a random head, opens it, and checks some random calls. */
typedef struct playing {
    bool (*check)(torture *t, const player *p);
    bool comma; /* the library works in a locale with a decimal comma; specs are written before */
    bool backward;
} playing;

bool torture_play(torture *t, const playing *how);

#endif
