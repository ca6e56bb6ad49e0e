/* forward: fpa_forward by a candidate that the caller has chosen; for measurements. */
#ifndef FPAC_RUNTIME_API_FORWARD_H
#define FPAC_RUNTIME_API_FORWARD_H

#include "abi/launch.h"
#include "fpa.h"
#include "machine/candidate.h"
#include "tensors.h"

/* fpa_workspace_size and fpa_forward by a given candidate of the kernel's module; NULL: the fastest. INVALID: the
 * candidate does not suit the call. */
fpa_status workspace_size_by(const fpa_kernel *kernel, const fpa_candidate *candidate, fpa_form form,
                             const fpa_tensors *tensors, size_t *bytes, fpa_error *error);
fpa_status forward_by(const fpa_kernel *kernel, const fpa_candidate *candidate, fpa_form form,
                      const fpa_tensors *tensors, void *workspace, size_t workspace_size, fpa_error *error);

/* Check the tensors of a call, and make a launch of them, without a workspace. *form: FPA_FORM_AUTO is replaced by
 * the form that it selects. weights: room for the kernel's pointers. *empty: there is nothing to compute. */
fpa_status forward_prepare(const fpa_kernel *kernel, tensors_mode mode, const fpa_tensors *tensors,
                           fpa_form *form, const float **weights, struct fpa_launch *launch, bool *empty,
                           fpa_error *error);

/* Check that the workspace has `needed` bytes, is aligned, and shares no memory with the tensors; query: the name
 * of the function that returns the size, for the message. */
fpa_status forward_check_workspace(const fpa_kernel *kernel, const fpa_tensors *tensors,
                                   const struct fpa_launch *launch, size_t needed, const char *query,
                                   fpa_error *error);

/* Check that a step has both states: INVALID if one is missing. tensors NULL passes; later checks refuse it. */
fpa_status forward_check_step(const fpa_tensors *tensors, fpa_error *error);

#endif
