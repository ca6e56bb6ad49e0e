/* dtype: the storage types of tensors (float, bfloat16, IEEE half) read and written as double. */
#ifndef FPAC_BASE_DTYPE_H
#define FPAC_BASE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

typedef enum fpa_dtype { FPA_F32, FPA_BF16, FPA_F16, FPA_DTYPES } fpa_dtype;

const char *dtype_name(fpa_dtype dtype); /* "f32", "bf16", "f16" */
size_t dtype_size(fpa_dtype dtype);

uint16_t bf16_from_float(float value); /* nearest, ties to even */
float bf16_to_float(uint16_t bits);
uint16_t f16_from_float(float value);
float f16_to_float(uint16_t bits);

/* One element at any address, aligned or not. */
double dtype_load(fpa_dtype dtype, const void *from);
void dtype_store(fpa_dtype dtype, void *to, double value);
/* value rounded to the type. */
double dtype_round(fpa_dtype dtype, double value);
/* Unit roundoff: half the distance from 1 to the next number. */
double dtype_roundoff(fpa_dtype dtype);

#endif
