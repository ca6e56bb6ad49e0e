/* run_kernel: the kernel of a head, or the layer, with which `fpac run` computes. */
#ifndef FPAC_COMMAND_RUN_KERNEL_H
#define FPAC_COMMAND_RUN_KERNEL_H

#include "runtime/api/layer.h"

typedef struct run_kernel {
    fpa_kernel *kernel;    /* for a layer: one of its kernels, which determines the device */
    fpa_layer *layer;      /* NULL: a head is computed */
    fpa_description about; /* for a layer: properties that all heads share, or that some have */
} run_kernel;

/* Open the head or the layer of that name, or the only one, as fpa_open does, but with another dtype (NULL: the
 * heads' own); from a bundle's folder, the kernels in it. */
fpa_status run_open(const char *spec, const char *name, const char *dtype, const fpa_options *options,
                    run_kernel *opened, fpa_error *error);
void run_close(run_kernel *opened);

/* Allocate a call's workspace on the kernel's device. The caller frees it (device_release). */
fpa_status run_workspace(const run_kernel *opened, fpa_form form, const fpa_tensors *tensors,
                         void **workspace, size_t *size, fpa_error *error);

/* Compute a draft of T tokens: o of all of them, and state_out with the first count[b] tokens of each sequence. It
 * allocates its own workspace, and waits for the results. */
fpa_status run_draft(const run_kernel *opened, const fpa_tensors *tensors, const DLTensor *count,
                     fpa_error *error);

/* Compute; on a GPU the caller has to wait for the results. */
fpa_status run_forward(const run_kernel *opened, fpa_form form, const fpa_tensors *tensors, void *workspace,
                       size_t size, fpa_error *error);

#endif
