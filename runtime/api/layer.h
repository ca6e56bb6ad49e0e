/* layer: kernels side by side, and the tensors of a call on all of them as those of each. */
#ifndef FPAC_RUNTIME_API_LAYER_H
#define FPAC_RUNTIME_API_LAYER_H

#include "fpa.h"
#include "runtime/kernel.h"
#include "runtime/together.h"
#include "tensors.h"
#include "view.h"

struct fpa_layer {
    char *name;
    const fpa_kernel **kernels; /* [part_count]; the same one for equal heads */
    fpa_kernel **owned;         /* [owned_count]: those that are closed with the layer */
    int owned_count;
    const fpa_backend *backend;
    void *handle; /* of the back end's together */
    fpa_layer_part *parts;
    char **weight_names; /* [description.weight_count] */
    fpa_layer_description description;
};

/* As fpa_join_layer; the kernels in `owned` are the layer's on success. */
fpa_status layer_join(const char *name, const fpa_kernel *const *kernels, const int *heads, int count,
                      fpa_kernel *const *owned, int owned_count, fpa_layer **joined, fpa_error *error);

/* ---- layer_tensors.c ---- */

enum { LAYER_TENSORS = 18 /* the most that a call has, beside matrices */ };

/* One call's tensors as a whole. */
typedef struct layer_call {
    const fpa_layer *layer;
    const tensor_row *rows;
    int count;
    const void *tensors;                               /* the caller's struct, of the rows' fields */
    const DLTensor *const *weights, *const *d_weights; /* NULL: none are given */
    int64_t recent;
    bool with_data;
    int64_t group; /* query heads a key/value head; 0: no queries */
    fpa_view view[LAYER_TENSORS];
} layer_call;

/* Check each tensor as a whole: its axes, the heads' and the states' lengths, and that no output shares memory with another
 * tensor. rows, tensors, weights and with_data are given. What a head by itself asks for is checked with its part. */
fpa_status layer_look(layer_call *call, fpa_error *error);

/* The same of the workspace, which is written: of so many bytes as are needed. */
fpa_status layer_check_workspace(const layer_call *call, void *workspace, size_t size, size_t needed,
                                 const char *query, fpa_error *error);

/* A tensor of one part. */
typedef struct layer_slice {
    DLTensor tensor;
    int64_t shape[VIEW_MAX_AXES], stride[VIEW_MAX_AXES];
} layer_slice;

/* Part number `part` of each row's tensor, into the same fields of a struct like the caller's. recent: how many of the tokens
 * before the queries the part takes; NULL: the fields are the caller's. */
void layer_cut(const layer_call *call, int part, int64_t recent, layer_slice slices[LAYER_TENSORS],
               void *tensors);

#endif
