/* reference_round: floats rounded to the type in which an emitted kernel keeps the factors of its
 * products. Inline, because the plain evaluations round every feature. */
#ifndef FPAC_RUNTIME_REFERENCE_ROUND_H
#define FPAC_RUNTIME_REFERENCE_ROUND_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "head/head.h"

/* To nearest, ties to even: `dropped` bits of the fraction go. */
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

/* Below 2^-14 half precision has multiples of 2^-24 only, as floats from 1/2 to 1 have. */
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
