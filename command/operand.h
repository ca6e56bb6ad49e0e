/* operand: arrays as the tensors of a call, and the call's workspace. */
#ifndef FPAC_COMMAND_OPERAND_H
#define FPAC_COMMAND_OPERAND_H

#include "head/head.h"
#include "base/npy.h"
#include "runtime/api/forward.h"

/* An array of float32 and, once it is bound, a tensor of the type that the head stores. */
typedef struct fpa_operand {
    fpa_array array;
    fpa_dtype dtype;
    bool is_mask;           /* the tensor has bytes 0 and 1 instead of dtype */
    bool is_index;          /* the tensor is int32 instead of dtype */
    void *stored;           /* the values in the tensor's type; NULL: the tensor uses the array's own */
    const fpa_kernel *home; /* the kernel on whose device the tensor is; NULL: it is on the CPU */
    DLTensor tensor;        /* contiguous */
} fpa_operand;

/* Make a zeroed array of these axes. */
fpa_status operand_new(int axes, const int64_t *shape, fpa_operand *operand, fpa_error *error);

/* Make the tensor, with converted values if dtype is not float32. The operand must not be moved from now on, since
 * its tensor points into it. */
fpa_status operand_bind(fpa_operand *operand, fpa_dtype dtype, fpa_error *error);

/* The same with random numbers, uniform in low..high: a million that are repeated, since that is fast and suffices
 * for timing. The array contains them for float32 only. */
fpa_status operand_bind_pattern(fpa_operand *operand, fpa_dtype dtype, uint64_t seed, float low, float high,
                                fpa_error *error);

/* Make the tensor of a mask: a byte for each number, 1 if it is not 0. */
fpa_status operand_bind_mask(fpa_operand *operand, fpa_error *error);

/* Make the tensor of whole numbers, int32. */
fpa_status operand_bind_index(fpa_operand *operand, const char *where, fpa_error *error);

/* Copy a bound tensor to the kernel's device; does nothing for the CPU. The kernel must outlive the operand. */
fpa_status operand_place(fpa_operand *operand, const fpa_kernel *kernel, fpa_error *error);

/* Copy the tensor that a call wrote back to the array. */
fpa_status operand_fetch(fpa_operand *operand, fpa_error *error);

/* INVALID: a number of the array is infinite or NaN, with its place. hint: what the user should check. */
fpa_status operand_check_finite(const fpa_operand *operand, const char *where, const char *hint,
                                fpa_error *error);

void operand_free(fpa_operand *operand);

/* Fill count numbers of that dtype, uniform in low..high, from a fixed seed. */
void fill_stored(fpa_dtype dtype, void *stored, int64_t count, uint64_t seed, float low, float high);
/* The same with a million numbers that are repeated, which is fast and suffices for timing. */
void fill_pattern(fpa_dtype dtype, void *stored, int64_t count, uint64_t seed, float low, float high);

/* The shape of a run-time matrix's operand; returns the number of axes. */
int weight_shape(const fpa_matrix *matrix, int64_t heads, int64_t shape[3]);

/* The type of that name in a kernel's description. */
fpa_dtype dtype_find(const char *name);

/* Allocate fpa_workspace_size bytes on the kernel's device. The caller frees it (device_release). */
fpa_status workspace_new(const fpa_kernel *kernel, const fpa_candidate *candidate, fpa_form form,
                         const fpa_tensors *tensors, void **workspace, size_t *size, fpa_error *error);

/* The type in DLPack's terms. */
DLDataType dtype_describe(fpa_dtype dtype);

#endif
