/* reference_round: rounds floats to the type of the factors of an emitted kernel's products. Inline, because the
 * plain evaluations round every feature. */
#ifndef FPAC_RUNTIME_REFERENCE_ROUND_H
#define FPAC_RUNTIME_REFERENCE_ROUND_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "head/head.h"

/* Rounds to nearest, ties to even, without the last `dropped` bits of the fraction. */
static inline float round_fraction(float x, int dropped)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += (UINT32_C(1) << (dropped - 1)) - 1 + (bits >> dropped & 1);
    bits &= ~((UINT32_C(1) << dropped) - 1);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float round_bf16(float x)
{
    return isnan(x) ? x : round_fraction(x, 16);
}

/* Below 2^-14, half precision consists of the multiples of 2^-24; adding and subtracting a float between 1/2 and 1
 * rounds to these. */
static inline float round_f16(float x)
{
    float size = fabsf(x);
    if (size < 0x1p-14f)
        return copysignf(size + 0.5f - 0.5f, x);
    if (size >= 65520)
        return copysignf(INFINITY, x);
    return isnan(x) ? x : round_fraction(x, 13);
}

static inline float round_float(fpa_dtype type, float x)
{
    if (type == FPA_F32)
        return x;
    return type == FPA_BF16 ? round_bf16(x) : round_f16(x);
}

static inline void round_floats(fpa_dtype type, float *x, int64_t count)
{
    if (type == FPA_BF16)
        for (int64_t i = 0; i < count; i++)
            x[i] = round_bf16(x[i]);
    if (type == FPA_F16)
        for (int64_t i = 0; i < count; i++)
            x[i] = round_f16(x[i]);
}

#endif
