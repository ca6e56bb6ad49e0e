/* run_kernel: what `fpac run` computes with: the kernel of a head, or a layer of several. */
#ifndef FPAC_COMMAND_RUN_KERNEL_H
#define FPAC_COMMAND_RUN_KERNEL_H

#include "runtime/api/layer.h"

typedef struct run_kernel {
    fpa_kernel *kernel;    /* of a layer: one of its own, which tells where memory is */
    fpa_layer *layer;      /* NULL: a head is computed */
    fpa_description about; /* of a layer: what of it is the same for all heads, or true of some */
} run_kernel;

/* The head or the layer of that name, or the only one; as fpa_open does, but for dtype (NULL: the heads' own); of a
 * bundle's folder the kernels that are in it. */
fpa_status run_open(const char *spec, const char *name, const char *dtype, const fpa_options *options,
                    run_kernel *opened, fpa_error *error);
void run_close(run_kernel *opened);

/* Scratch memory of a call, where the kernel computes; device_release. */
fpa_status run_workspace(const run_kernel *opened, fpa_form form, const fpa_tensors *tensors,
                         void **workspace, size_t *size, fpa_error *error);

/* A draft of T tokens: o of all of them, and state_out with the first of them, count [B] of each sequence. The memory that it
 * needs is its own; it has waited for the results. */
fpa_status run_draft(const run_kernel *opened, const fpa_tensors *tensors, const DLTensor *count,
                     fpa_error *error);

/* Compute; the caller waits for it. */
fpa_status run_forward(const run_kernel *opened, fpa_form form, const fpa_tensors *tensors, void *workspace,
                       size_t size, fpa_error *error);

#endif
