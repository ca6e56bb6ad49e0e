/* kernel: a module that passed verification. Only verify.c makes one. */
#ifndef FPAC_RUNTIME_KERNEL_H
#define FPAC_RUNTIME_KERNEL_H

#include "backend.h"
#include "runtime/verify/verify.h"

struct fpa_kernel {
    fpa_head *head; /* as written */
    fpa_facts facts;
    fpa_module module;
    fpa_module backward; /* of gradients; without a back end: opened without them */
    fpa_facts backward_facts;
    fpa_kernel *passes
        [PASSES]; /* whose forward passes are gradients, beside `backward`'s kernels; NULL: none, or its own */
    char backward_verdict[512];
    fpa_verdict verdict;       /* figures are those of this process; of a stored verdict only the text */
    const char **weight_names; /* [description.weight_count], texts of the head */
    fpa_weight_shape *weight_shapes; /* [description.weight_count] */
    const char **weight_kinds;       /* [description.weight_count] */
    fpa_description description;     /* its texts are the head's, the facts' and the verdict's */
};

/* Unload the module and free everything. NULL is fine. */
void kernel_free(fpa_kernel *kernel);

#endif
