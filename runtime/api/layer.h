/* layer: kernels side by side, and how the tensors of a call are divided among them. */
#ifndef FPAC_RUNTIME_API_LAYER_H
#define FPAC_RUNTIME_API_LAYER_H

#include "fpa.h"
#include "runtime/kernel.h"
#include "runtime/together.h"
#include "tensors.h"
#include "view.h"

struct fpa_layer {
    char *name;
    const fpa_kernel **kernels; /* [part_count]; equal heads have the same one */
    fpa_kernel **owned;         /* [owned_count]: kernels that are closed with the layer */
    int owned_count;
    const fpa_backend *backend;
    void *handle; /* handle of the back end's joint launches (together.h) */
    fpa_layer_part *parts;
    char **weight_names; /* [description.weight_count] */
    fpa_layer_description description;
};

/* As fpa_join_layer; on success the layer owns the kernels in `owned`. */
fpa_status layer_join(const char *name, const fpa_kernel *const *kernels, const int *heads, int count,
                      fpa_kernel *const *owned, int owned_count, fpa_layer **joined, fpa_error *error);

/* ---- layer_tensors.c ---- */

enum { LAYER_TENSORS = 18 /* the most tensors of a call, matrices excluded */ };

/* The tensors of a call on a layer. */
typedef struct layer_call {
    const fpa_layer *layer;
    const tensor_row *rows;
    int count;
    const void *tensors;                               /* the caller's struct, which has the rows' fields */
    const DLTensor *const *weights, *const *d_weights; /* NULL: none are given */
    int64_t recent;
    bool with_data;
    int64_t group; /* query heads for each key/value head; 0: no queries */
    fpa_view view[LAYER_TENSORS];
} layer_call;

/* Check each tensor as a whole: its axes, the numbers of heads and of state elements, and that no output shares
 * memory with another tensor. The caller sets rows, tensors, weights and with_data. What a single head requires is
 * checked with its part. */
fpa_status layer_look(layer_call *call, fpa_error *error);

/* Check the workspace, which is written to: its size, and that it shares no memory with the tensors. */
fpa_status layer_check_workspace(const layer_call *call, void *workspace, size_t size, size_t needed,
                                 const char *query, fpa_error *error);

/* A tensor of one part, with the arrays of its shape and strides. */
typedef struct layer_slice {
    DLTensor tensor;
    int64_t shape[VIEW_MAX_AXES], stride[VIEW_MAX_AXES];
} layer_slice;

/* Make the tensors of part `part`, in the fields of a struct like the caller's. recent: how many tokens before the
 * queries the part uses. A tensor that is NULL remains NULL. */
void layer_cut(const layer_call *call, int part, int64_t recent, layer_slice slices[LAYER_TENSORS],
               void *tensors);

#endif
