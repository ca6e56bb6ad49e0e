/* cuda: CUDA's own functions that emitted files call; a part of emulate.h. */
#ifndef FPAC_TESTS_EMULATE_CUDA_H
#define FPAC_TESTS_EMULATE_CUDA_H

#include "emulate.h"

#define shared_memory emulate::memory

RUNTIME unsigned __cvta_generic_to_shared(const void *place)
{
    return (unsigned)((const unsigned char *)place - emulate::memory) + emulate::BASE;
}

RUNTIME float __uint_as_float(unsigned a)
{
    float b;
    memcpy(&b, &a, sizeof b);
    return b;
}

RUNTIME unsigned __float_as_uint(float a)
{
    unsigned b;
    memcpy(&b, &a, sizeof b);
    return b;
}

/* A product that is no part of a fused one: the emulation is compiled without these. */
RUNTIME float __fmul_rn(float a, float b)
{
    return a * b;
}

RUNTIME unsigned __byte_perm(unsigned low, unsigned high, unsigned selector)
{
    const unsigned long long bytes = low | (unsigned long long)high << 32;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= (unsigned)(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return result;
}

RUNTIME void __syncwarp(void)
{
    emulate::meet_warp("__syncwarp");
}

RUNTIME void __syncthreads(void)
{
    emulate::tell(0);
    emulate::meet(emulate::named[0], "__syncthreads", emulate::current, NULL, [] { emulate::end_told(0); });
    emulate::hear(0);
}

namespace emulate
{

/* What another lane has. */
RUNTIME u64 shuffle_bits(const char *what, u64 mine, int source)
{
    struct lane {
        u64 value, result;
        int source;
    } own = {mine, mine, source};
    group &g = own_warp().lanes;
    meet(g, what, current % WARP, &own, [&g] {
        for (int i = 0; i < WARP; i++) {
            lane *one = (lane *)g.argument[i];
            one->result = ((lane *)g.argument[one->source & 31])->value;
        }
    });
    return own.result;
}

template <typename number> static number shuffle(const char *what, number mine, int source)
{
    u64 bits = 0;
    static_assert(sizeof mine <= sizeof bits, "a lane hands over 64 bits at most");
    memcpy(&bits, &mine, sizeof mine);
    bits = shuffle_bits(what, bits, source);
    memcpy(&mine, &bits, sizeof mine);
    return mine;
}

} // namespace emulate

template <typename number> static number __shfl_sync(unsigned, number a, int lane)
{
    return emulate::shuffle("__shfl_sync", a, lane);
}

template <typename number> static number __shfl_up_sync(unsigned, number a, int step)
{
    const int lane = threadIdx.x & 31;
    return emulate::shuffle("__shfl_up_sync", a, lane >= step ? lane - step : lane);
}

template <typename number> static number __shfl_xor_sync(unsigned, number a, int mask)
{
    return emulate::shuffle("__shfl_xor_sync", a, (threadIdx.x & 31) ^ mask);
}

RUNTIME unsigned __reduce_max_sync(unsigned all, unsigned a)
{
    for (int distance = 16; distance > 0; distance /= 2) {
        const unsigned other = __shfl_xor_sync(all, a, distance);
        a = a > other ? a : other;
    }
    return a;
}

RUNTIME int __any_sync(unsigned all, int a)
{
    for (int distance = 16; distance > 0; distance /= 2)
        a |= __shfl_xor_sync(all, a, distance);
    return a != 0;
}

/* Whose lanes' words are not zero, a bit each. */
RUNTIME unsigned __ballot_sync(unsigned all, int a)
{
    unsigned bits = a ? 1u << (threadIdx.x & 31) : 0;
    for (int distance = 16; distance > 0; distance /= 2)
        bits |= __shfl_xor_sync(all, bits, distance);
    return bits;
}

RUNTIME int __popc(unsigned a)
{
    return __builtin_popcount(a);
}

RUNTIME int __ffs(unsigned a)
{
    return __builtin_ffs((int)a);
}

RUNTIME int __clz(unsigned a)
{
    return a ? __builtin_clz(a) : 32;
}

#endif
