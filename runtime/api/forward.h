/* forward: fpa_forward by a candidate that the caller has chosen; for measurements. */
#ifndef FPAC_RUNTIME_API_FORWARD_H
#define FPAC_RUNTIME_API_FORWARD_H

#include "abi/launch.h"
#include "fpa.h"
#include "machine/candidate.h"
#include "tensors.h"

/* fpa_workspace_size and fpa_forward; candidate: of the kernel's module, or NULL: the fastest. INVALID: it
 * cannot carry this call out. */
fpa_status workspace_size_by(const fpa_kernel *kernel, const fpa_candidate *candidate, fpa_form form,
                             const fpa_tensors *tensors, size_t *bytes, fpa_error *error);
fpa_status forward_by(const fpa_kernel *kernel, const fpa_candidate *candidate, fpa_form form,
                      const fpa_tensors *tensors, void *workspace, size_t workspace_size, fpa_error *error);

/* The tensors of a call, checked, as its launch without a workspace; *form becomes the one that AUTO stands for. weights has
 * room for the kernel's pointers. *empty: there is nothing to compute. */
fpa_status forward_prepare(const fpa_kernel *kernel, tensors_mode mode, const fpa_tensors *tensors,
                           fpa_form *form, const float **weights, struct fpa_launch *launch, bool *empty,
                           fpa_error *error);

/* Whether the launch's workspace has so many bytes, lies as it has to, and apart from the tensors; query: the function that
 * tells how many, for the message. */
fpa_status forward_check_workspace(const fpa_kernel *kernel, const fpa_tensors *tensors,
                                   const struct fpa_launch *launch, size_t needed, const char *query,
                                   fpa_error *error);

/* A step takes a state and gives one: INVALID where either is missing. tensors NULL is for others to refuse. */
fpa_status forward_check_step(const fpa_tensors *tensors, fpa_error *error);

#endif
