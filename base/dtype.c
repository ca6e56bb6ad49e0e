#include "dtype.h"

#include <math.h>
#include <string.h>

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t bf16_from_float(float value)
{
    uint32_t bits = float_bits(value);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float bf16_to_float(uint16_t bits)
{
    return bits_float((uint32_t)bits << 16);
}

/* The magnitude is counted in units of the last place of its binade (2^-24 below 2^-14), so that
 * a carry out of the fraction runs into the exponent by itself. */
uint16_t f16_from_float(float value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    float size = fabsf(value);
    int exponent = 0;
    if (isnan(value))
        return sign | 0x7e00;
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < ldexpf(1, -14))
        return sign | (uint16_t)nearbyintf(ldexpf(size, 24));
    frexpf(size, &exponent); /* size in [2^(exponent-1), 2^exponent) */
    return sign | (uint16_t)(((exponent + 13) << 10) + (int)nearbyintf(ldexpf(size, 11 - exponent)));
}

float f16_to_float(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size;
    if (exponent == 31)
        size = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        size = ldexpf((float)fraction, -24);
    else
        size = ldexpf((float)(1024 + fraction), exponent - 25);
    return bits & 0x8000 ? -size : size;
}

double dtype_load(fpa_dtype dtype, const void *from)
{
    uint16_t half;
    float single;
    if (dtype == FPA_F32) {
        memcpy(&single, from, sizeof single);
        return single;
    }
    memcpy(&half, from, sizeof half);
    return dtype == FPA_BF16 ? bf16_to_float(half) : f16_to_float(half);
}

void dtype_store(fpa_dtype dtype, void *to, double value)
{
    float single = (float)value;
    uint16_t half;
    if (dtype == FPA_F32) {
        memcpy(to, &single, sizeof single);
        return;
    }
    half = dtype == FPA_BF16 ? bf16_from_float(single) : f16_from_float(single);
    memcpy(to, &half, sizeof half);
}

double dtype_round(fpa_dtype dtype, double value)
{
    unsigned char bytes[4];
    dtype_store(dtype, bytes, value);
    return dtype_load(dtype, bytes);
}

double dtype_roundoff(fpa_dtype dtype)
{
    static const double roundoff[FPA_DTYPES] = {0x1p-24, 0x1p-8, 0x1p-11};
    return roundoff[dtype];
}

const char *dtype_name(fpa_dtype dtype)
{
    static const char *const names[FPA_DTYPES] = {"f32", "bf16", "f16"};

    return (unsigned)dtype < FPA_DTYPES ? names[dtype] : "?";
}

size_t dtype_size(fpa_dtype dtype)
{
    return dtype == FPA_F32 ? 4 : 2;
}
