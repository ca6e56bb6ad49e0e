/* tensors: a caller's DLTensors, checked, as the launch that emitted code takes. */
#ifndef FPAC_RUNTIME_API_TENSORS_H
#define FPAC_RUNTIME_API_TENSORS_H

#include "abi/launch.h"
#include "abi/source.h"
#include "head/head.h"
#include "fpa.h"

typedef enum tensors_mode {
    TENSORS_SHAPES, /* for a workspace's size: no address is looked at; o, gate, weights may be missing */
    TENSORS_DATA,   /* for a launch: everything */
} tensors_mode;

/* Check every tensor against the head, the device and the others, and fill *launch, its workspace
 * excepted. INVALID names the tensor, the axis and both figures. weights has room for
 * tensors_weights(head) pointers and outlives the launch. */
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

/* Number of matrices of the head that are given at run time. */
int tensors_weights(const fpa_head *head);

#endif
