/* operand: arrays as the tensors of a call, and the scratch memory that the call needs. */
#ifndef FPAC_COMMAND_OPERAND_H
#define FPAC_COMMAND_OPERAND_H

#include "../gen/head.h"
#include "../gen/npy.h"
#include "../runtime/fpa.h"

/* An array of float32 and, once it is bound, a tensor of what the head stores. */
typedef struct fpa_operand {
    fpa_array array;
    fpa_dtype dtype;
    void *stored;    /* the same values in dtype; NULL: they are the array's own */
    DLTensor tensor; /* contiguous, on the CPU */
} fpa_operand;

/* A zeroed array of these axes. */
fpa_status operand_new(int axes, const int64_t *shape, fpa_operand *operand, fpa_error *error);

/* Make the tensor, converting values when dtype is not float32. The operand stays where it is from
 * now on: its tensor points into it. */
fpa_status operand_bind(fpa_operand *operand, fpa_dtype dtype, fpa_error *error);

/* What a call wrote to the tensor, back into the array. */
void operand_fetch(fpa_operand *operand);

void operand_free(fpa_operand *operand);

/* The type that a kernel's description names. */
fpa_dtype dtype_find(const char *name);

/* fpa_workspace_size bytes, 64-byte aligned; free. */
fpa_status workspace_new(const fpa_kernel *kernel, fpa_form form, const fpa_tensors *tensors,
                         void **workspace, size_t *size, fpa_error *error);

#endif
