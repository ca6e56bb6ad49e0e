/* layer_operands: sets of operands of a call on a layer, on its device. */
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

/* An operand in a set. */
typedef struct layer_operand {
    bool given, is_mask;
    fpa_dtype dtype;
    float low, high; /* range of its values */
    int64_t shape[4];
    size_t size, offset; /* in bytes; offset from the set's start */
    DLTensor tensor;     /* of the current set; C order */
} layer_operand;

/* The size of a call. */
typedef struct layer_size {
    int64_t batch, length;
    int64_t group;      /* query heads for each key/value head */
    bool in, out;       /* initial and final states */
    bool in_place;      /* both states are one tensor */
    bool before_window; /* as many tokens precede the queries as the longest window has before its own */
} layer_size;

typedef struct layer_operands {
    const fpa_layer *layer;
    const fpa_kernel *kernel; /* one of the layer's kernels, for its device */
    layer_operand operand[LAYER_OPERANDS], weight[LAYER_MOST_WEIGHTS];
    const DLTensor *weights[LAYER_MOST_WEIGHTS];
    fpa_tensors tensors; /* the tensors of the current set */
    size_t set_bytes;
    int64_t sets;
    char *memory;
} layer_operands;

/* Describe a set, whose size decides how many sets are needed. The operands must not be moved from now on. */
fpa_status layer_operands_describe(layer_operands *all, const fpa_layer *layer, const layer_size *size,
                                   fpa_error *error);
/* Make so many sets, with the same numbers in each. Keys and queries are positive, so that no normaliser comes
 * near zero. */
fpa_status layer_operands_make(layer_operands *all, int64_t sets, fpa_error *error);
void layer_operands_turn_to(layer_operands *all, int64_t set);
void layer_operands_free(layer_operands *all);

#endif
