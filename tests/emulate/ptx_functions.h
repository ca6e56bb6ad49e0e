/* ptx_functions: what the special function units compute; a part of ptx.h. */
#ifndef FPAC_TESTS_EMULATE_PTX_FUNCTIONS_H
#define FPAC_TESTS_EMULATE_PTX_FUNCTIONS_H

/* Subnormal numbers are zero. */
RUNTIME void ptx_ex2_approx_ftz_f32(float &d, float a)
{
    const float power = exp2f(a);
    d = power < 0x1p-126f ? 0 : power;
}

/* In one step each, as the GPU's special function units have them. */
RUNTIME void ptx_lg2_approx_ftz_f32(float &d, float a)
{
    d = log2f(a);
}

RUNTIME void ptx_rcp_approx_ftz_f32(float &d, float a)
{
    d = 1.0f / a;
}

RUNTIME void ptx_cos_approx_ftz_f32(float &d, float a)
{
    d = cosf(a);
}

RUNTIME void ptx_sin_approx_ftz_f32(float &d, float a)
{
    d = sinf(a);
}

#endif
