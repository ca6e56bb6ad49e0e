/* tensors: a caller's DLTensors, checked, as the launch that emitted code takes. */
#ifndef FPAC_RUNTIME_API_TENSORS_H
#define FPAC_RUNTIME_API_TENSORS_H

#include "abi/launch.h"
#include "abi/source.h"
#include "head/head.h"
#include "fpa.h"

#include <stddef.h>

typedef enum tensors_mode {
    TENSORS_SHAPES, /* for a workspace's size: no address is looked at; o, gate, weights may be missing */
    TENSORS_DATA,   /* for a launch: everything */
} tensors_mode;

/* Check every tensor against the head, the device and the others, and fill *launch, its workspace
 * excepted. INVALID names the tensor, the axis and both figures. weights has room for
 * head_run_time_matrices(head) pointers and outlives the launch. */
fpa_status tensors_check(const fpa_head *head, const fpa_facts *facts, DLDevice device, tensors_mode mode,
                         const fpa_tensors *tensors, const float **weights, struct fpa_launch *launch,
                         fpa_error *error);

/* The size bytes that a call writes as it goes hold none of its tensors, which were checked. */
fpa_status tensors_workspace(const fpa_head *head, const fpa_tensors *tensors, void *workspace, size_t size,
                             fpa_error *error);

/* What a call that takes `tensors` writes shares no memory with what another part of it takes. */
fpa_status tensors_apart(const fpa_head *head, const fpa_tensors *tensors, const fpa_tensors *others,
                         fpa_error *error);

/* Whether the tensor of a matrix of one column has the axes of a vector, as it may. tensor NULL: no. */
bool tensors_is_column(const fpa_matrix *matrix, const DLTensor *tensor);

/* What the axes of a tensor are, and so how a part of a layer's heads is a part of it. */
typedef enum tensor_axes {
    AXES_QUERIES,       /* batch, token, query head, width */
    AXES_KEYS,          /* batch, token, key/value head, width */
    AXES_VALUES,        /* the same of dv */
    AXES_OUTPUTS,       /* batch, token, query head, dv */
    AXES_QUERY_NUMBERS, /* batch, token, query head */
    AXES_KEY_NUMBERS,   /* batch, token, key/value head */
    AXES_POSITIONS,     /* batch, token, number of the position */
    AXES_MASK,          /* batch, token */
    AXES_STATES,        /* batch or slot, element */
    AXES_INDEX,         /* sequence */
} tensor_axes;

/* A field of a caller's struct of tensors. */
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

/* The tensor that the field has. */
const DLTensor *tensor_of_row(const tensor_row *row, const void *tensors);

/* Those of fpa_gradient_tensors. */
enum { GRADIENT_ROWS = 18 };
extern const tensor_row gradient_rows[GRADIENT_ROWS];

#endif
