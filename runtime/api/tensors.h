/* tensors: checks a caller's DLTensors and makes a launch of them. */
#ifndef FPAC_RUNTIME_API_TENSORS_H
#define FPAC_RUNTIME_API_TENSORS_H

#include "abi/launch.h"
#include "abi/source.h"
#include "head/head.h"
#include "fpa.h"

#include <stddef.h>

typedef enum tensors_mode {
    /* to compute a workspace's size: addresses are ignored; o, gate and weights may be missing */
    TENSORS_SHAPES,
    TENSORS_DATA, /* to launch: all is checked */
} tensors_mode;

/* Check every tensor against the head, the device and the other tensors, and fill *launch except its workspace.
 * INVALID names the tensor, the axis and both sizes. weights has room for head_run_time_matrices(head) pointers,
 * and must outlive the launch. */
fpa_status tensors_check(const fpa_head *head, const fpa_facts *facts, DLDevice device, tensors_mode mode,
                         const fpa_tensors *tensors, const float **weights, struct fpa_launch *launch,
                         fpa_error *error);

/* Check that the workspace of `size` bytes shares no memory with the tensors, which have been checked. */
fpa_status tensors_workspace(const fpa_head *head, const fpa_tensors *tensors, void *workspace, size_t size,
                             fpa_error *error);

/* Check that the call on `tensors` writes no memory that the call on `others` reads. */
fpa_status tensors_apart(const fpa_head *head, const fpa_tensors *tensors, const fpa_tensors *others,
                         fpa_error *error);

/* Whether the tensor of a matrix with one column is given as a vector, which is allowed. tensor NULL: no. */
bool tensors_is_column(const fpa_matrix *matrix, const DLTensor *tensor);

/* The axes of a tensor, by which the part of a layer's heads is found. */
typedef enum tensor_axes {
    AXES_QUERIES,       /* batch, token, query head, width */
    AXES_KEYS,          /* batch, token, key/value head, width */
    AXES_VALUES,        /* batch, token, key/value head, dv */
    AXES_OUTPUTS,       /* batch, token, query head, dv */
    AXES_QUERY_NUMBERS, /* batch, token, query head */
    AXES_KEY_NUMBERS,   /* batch, token, key/value head */
    AXES_POSITIONS,     /* batch, token, number of the position */
    AXES_MASK,          /* batch, token */
    AXES_STATES,        /* batch or slot, element */
    AXES_INDEX,         /* sequence */
} tensor_axes;

/* A field of a caller's struct of tensors, with its axes. */
typedef struct tensor_row {
    const char *name;
    size_t offset;
    tensor_axes axes;
    bool written;
} tensor_row;

#define TENSOR_ROW(type, name, axes, written)                                                                \
    {                                                                                                        \
#name, offsetof(type, name), axes, written                                                           \
    }

/* The tensor in the field. */
const DLTensor *tensor_of_row(const tensor_row *row, const void *tensors);

/* The fields of fpa_gradient_tensors. */
enum { GRADIENT_ROWS = 18 };
extern const tensor_row gradient_rows[GRADIENT_ROWS];

#endif
