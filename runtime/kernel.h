/* kernel: a module that passed verification. Only verify.c makes one. */
#ifndef FPAC_RUNTIME_KERNEL_H
#define FPAC_RUNTIME_KERNEL_H

#include "backend.h"
#include "runtime/verify/verify.h"

struct fpa_kernel {
    fpa_head *head; /* as written */
    fpa_facts facts;
    fpa_module module;
    fpa_module backward; /* the module of gradients; backend NULL: the kernel was opened without gradients */
    fpa_facts backward_facts;
    /* kernels whose forward passes are gradients, in addition to `backward`; NULL: none, or the kernel's own
     * module */
    fpa_kernel *passes[PASSES];
    char backward_verdict[512];
    fpa_verdict verdict;       /* the verdict's text; figures are set only if it was found in this process */
    const char **weight_names; /* [description.weight_count]; the texts belong to the head */
    fpa_weight_shape *weight_shapes; /* [description.weight_count] */
    const char **weight_kinds;       /* [description.weight_count] */
    fpa_description description;     /* its texts belong to head, facts and verdict */
};

/* Unload the module and free everything. NULL is fine. */
void kernel_free(fpa_kernel *kernel);

#endif
