/* operand: arrays as the tensors of a call, and the scratch memory that the call needs. */
#ifndef FPAC_COMMAND_OPERAND_H
#define FPAC_COMMAND_OPERAND_H

#include "head/head.h"
#include "base/npy.h"
#include "runtime/api/forward.h"

/* An array of float32 and, once it is bound, a tensor of what the head stores. */
typedef struct fpa_operand {
    fpa_array array;
    fpa_dtype dtype;
    bool is_mask;           /* bytes of 0 and 1 instead of dtype, */
    bool is_index;          /* or int32 */
    void *stored;           /* the same values in dtype, or those bytes; NULL: they are the array's own */
    const fpa_kernel *home; /* whose device holds the tensor; NULL: it is on the CPU */
    DLTensor tensor;        /* contiguous */
} fpa_operand;

/* A zeroed array of these axes. */
fpa_status operand_new(int axes, const int64_t *shape, fpa_operand *operand, fpa_error *error);

/* Make the tensor, converting values when dtype is not float32. The operand stays where it is from
 * now on: its tensor points into it. */
fpa_status operand_bind(fpa_operand *operand, fpa_dtype dtype, fpa_error *error);

/* Likewise of numbers uniform in low..high, a million that are repeated: what a timing needs, in a moment. The array has them for
 * float32 alone. */
fpa_status operand_bind_pattern(fpa_operand *operand, fpa_dtype dtype, uint64_t seed, float low, float high,
                                fpa_error *error);

/* The tensor of a mask, a byte for each number: 1 where it is not 0. */
fpa_status operand_bind_mask(fpa_operand *operand, fpa_error *error);

/* The tensor of whole numbers, int32. */
fpa_status operand_bind_index(fpa_operand *operand, const char *where, fpa_error *error);

/* Copy a bound tensor to where the kernel computes; nothing to do when that is the CPU. The kernel
 * outlives the operand. */
fpa_status operand_place(fpa_operand *operand, const fpa_kernel *kernel, fpa_error *error);

/* What a call wrote to the tensor, back into the array. */
fpa_status operand_fetch(fpa_operand *operand, fpa_error *error);

/* INVALID when a number of the array is infinite or none, with where it stands. hint: what to look at. */
fpa_status operand_check_finite(const fpa_operand *operand, const char *where, const char *hint,
                                fpa_error *error);

void operand_free(fpa_operand *operand);

/* count numbers of that dtype, uniform in low..high, the same every time. */
void fill_stored(fpa_dtype dtype, void *stored, int64_t count, uint64_t seed, float low, float high);

/* The shape of a run-time matrix's operand; the number of axes. */
int weight_shape(const fpa_matrix *matrix, int64_t heads, int64_t shape[3]);

/* The type that a kernel's description names. */
fpa_dtype dtype_find(const char *name);

/* fpa_workspace_size bytes where the kernel computes; device_release. */
fpa_status workspace_new(const fpa_kernel *kernel, const fpa_candidate *candidate, fpa_form form,
                         const fpa_tensors *tensors, void **workspace, size_t *size, fpa_error *error);

/* DLPack's name of a type. */
DLDataType dtype_describe(fpa_dtype dtype);

#endif
