/* layer_operands: sets of operands of one call on a layer, where it computes. */
#ifndef FPAC_COMMAND_LAYER_OPERANDS_H
#define FPAC_COMMAND_LAYER_OPERANDS_H

#include "device.h"
#include "runtime/api/layer.h"

enum { LAYER_MOST_WEIGHTS = 256 };

enum {
    LAYER_Q,
    LAYER_K,
    LAYER_V,
    LAYER_O,
    LAYER_GATE,
    LAYER_POSITIONS,
    LAYER_MASK,
    LAYER_STATE_IN,
    LAYER_STATE_OUT,
    LAYER_OPERANDS
};

/* One operand in a set. */
typedef struct layer_operand {
    bool given, is_mask;
    fpa_dtype dtype;
    float low, high; /* values */
    int64_t shape[4];
    size_t size, offset; /* bytes; from the set's start */
    DLTensor tensor;     /* of the set that is next; C order */
} layer_operand;

/* What a call asks for. */
typedef struct layer_size {
    int64_t batch, length;
    int64_t group;      /* query heads a key/value head */
    bool in, out;       /* states */
    bool in_place;      /* one tensor is both */
    bool before_window; /* as many tokens as the longest window has before the queries' first */
} layer_size;

typedef struct layer_operands {
    const fpa_layer *layer;
    const fpa_kernel *kernel; /* one of its own: where memory is */
    layer_operand operand[LAYER_OPERANDS], weight[LAYER_MOST_WEIGHTS];
    const DLTensor *weights[LAYER_MOST_WEIGHTS];
    fpa_tensors tensors; /* of the set that is next */
    size_t set_bytes;
    int64_t sets;
    char *memory;
} layer_operands;

/* Say what a set has; how large it is decides how many there are to be. The operands stay where they are from now on. */
fpa_status layer_operands_describe(layer_operands *all, const fpa_layer *layer, const layer_size *size,
                                   fpa_error *error);
/* So many sets, with the same numbers in each. Keys and queries are positive, so that no normaliser comes near zero. */
fpa_status layer_operands_make(layer_operands *all, int64_t sets, fpa_error *error);
void layer_operands_turn_to(layer_operands *all, int64_t set);
void layer_operands_free(layer_operands *all);

#endif
