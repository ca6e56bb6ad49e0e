/* ptx: the instructions that emitted kernels write as inline assembly; included before an emitted file (C++17).
 *
 * translate.c makes of `mul.rn.bf16x2 %0, %1, %2;` a call of ptx_mul_rn_bf16x2 with the operands as they
 * stand. An instruction that is not here is an error of the compiler. Layouts: PTX ISA, "Matrix
 * multiply-accumulate". */
#ifndef FPAC_TESTS_PTX_H
#define FPAC_TESTS_PTX_H

#include "emulate.h"

namespace emulate
{

struct nothing {
};
static const nothing sink;

/* Of pointers, for texts that are compiled without optimisation: a std::array's functions would be called there. */
template <typename word, size_t size> struct array {
    word item[size];
    word operator[](size_t i) const
    {
        return item[i];
    }
};

/* {%0,%1,...}: registers. */
template <typename first, typename... more>
static emulate::array<first *, 1 + sizeof...(more)> list(first &a, more &...b)
{
    return {{&a, &b...}};
}

template <size_t size> using words = emulate::array<u32 *, size>;
template <size_t size> using given_words = emulate::array<const u32 *, size>;
template <size_t size> using floats = emulate::array<float *, size>;

/* ---- numbers ---- */

RUNTIME float from_bf16(u16 a)
{
    return __uint_as_float((u32)a << 16);
}

RUNTIME u16 to_bf16(float a)
{
    const u32 bits = __float_as_uint(a);
    if (std::isnan(a))
        return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* The exponent's bits are moved to where a float has them, and its range is corrected by a product. */
RUNTIME float from_f16(u16 a)
{
    const bool finite = (a & 0x7c00) != 0x7c00;
    const float b =
        __uint_as_float((u32)(a & 0x7fff) << 13 | (finite ? 0 : 0x7f800000)) * (finite ? 0x1p112f : 1);
    return a & 0x8000 ? -b : b;
}

/* To nearest, ties to even, as nearbyint rounds. */
RUNTIME u16 to_f16(float a)
{
    const u16 sign = std::signbit(a) ? 0x8000 : 0;
    int exponent;
    if (std::isnan(a))
        return 0x7fff;
    frexpf(a, &exponent);
    if (std::isinf(a) || exponent > 16)
        return sign | 0x7c00;
    exponent = a == 0 || exponent < -13 ? -13 : exponent;
    /* in units of its last place; a carry goes on into the exponent's bits */
    const int units = (int)nearbyintf(ldexpf(fabsf(a), 11 - exponent));
    return sign | (u16)((exponent + 13) * 1024 + units);
}

RUNTIME float to_float(u16 a, bool half)
{
    return half ? from_f16(a) : from_bf16(a);
}

RUNTIME u32 both(u16 low, u16 high)
{
    return low | (u32)high << 16;
}

} // namespace emulate

RUNTIME void ptx_cvt_f32_f16(float &d, emulate::u16 a)
{
    d = emulate::from_f16(a);
}

RUNTIME void ptx_cvt_rn_f16_f32(emulate::u16 &d, float a)
{
    d = emulate::to_f16(a);
}

/* To nearest, ties away from zero: 13 bits fewer. */
RUNTIME void ptx_cvt_rna_tf32_f32(emulate::u32 &d, float a)
{
    d = __float_as_uint(a);
    if (!std::isnan(a) && !std::isinf(a))
        d = (d + 0x1000) & ~0x1fffu;
}

RUNTIME void ptx_cvt_rn_bf16_f32(emulate::u16 &d, float a)
{
    d = emulate::to_bf16(a);
}

RUNTIME void ptx_cvt_rn_bf16x2_f32(emulate::u32 &d, float high, float low)
{
    d = emulate::both(emulate::to_bf16(low), emulate::to_bf16(high));
}

RUNTIME void ptx_cvt_rn_f16x2_f32(emulate::u32 &d, float high, float low)
{
    d = emulate::both(emulate::to_f16(low), emulate::to_f16(high));
}

RUNTIME void ptx_mul_rn_bf16x2(emulate::u32 &d, emulate::u32 a, emulate::u32 b)
{
    using namespace emulate;
    d = both(to_bf16(from_bf16(a) * from_bf16(b)), to_bf16(from_bf16(a >> 16) * from_bf16(b >> 16)));
}

/* Emitted code adds -0, zero, or what is no number, in which sums in float are exact. */
RUNTIME void ptx_fma_rn_bf16x2(emulate::u32 &d, emulate::u32 a, emulate::u32 b, emulate::u32 c)
{
    using namespace emulate;
    d = both(to_bf16(from_bf16(a) * from_bf16(b) + from_bf16(c)),
             to_bf16(from_bf16(a >> 16) * from_bf16(b >> 16) + from_bf16(c >> 16)));
}

namespace emulate
{
/* Of a number and of what is none: the number; of both zeros the positive one. */
static inline float larger(float a, float b)
{
    return a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b);
}
} // namespace emulate

RUNTIME void ptx_max_bf16x2(emulate::u32 &d, emulate::u32 a, emulate::u32 b)
{
    using namespace emulate;
    d = both(to_bf16(larger(from_bf16(a), from_bf16(b))),
             to_bf16(larger(from_bf16(a >> 16), from_bf16(b >> 16))));
}

/* Of magnitudes; the sign is that of the product. */
RUNTIME void ptx_max_xorsign_abs_bf16x2(emulate::u32 &d, emulate::u32 a, emulate::u32 b)
{
    using namespace emulate;
    const auto magnitude = [](emulate::u32 x) { return from_bf16(x & 0x7fff); };
    d = both(to_bf16(std::fmax(magnitude(a), magnitude(b))),
             to_bf16(std::fmax(magnitude(a >> 16), magnitude(b >> 16)))) |
        ((a ^ b) & 0x80008000);
}

RUNTIME void ptx_max_xorsign_abs_f16x2(emulate::u32 &d, emulate::u32 a, emulate::u32 b)
{
    using namespace emulate;
    const auto magnitude = [](emulate::u32 x) { return from_f16(x & 0x7fff); };
    d = both(to_f16(std::fmax(magnitude(a), magnitude(b))),
             to_f16(std::fmax(magnitude(a >> 16), magnitude(b >> 16)))) |
        ((a ^ b) & 0x80008000);
}

RUNTIME void ptx_max_f16x2(emulate::u32 &d, emulate::u32 a, emulate::u32 b)
{
    using namespace emulate;
    d = both(to_f16(larger(from_f16(a), from_f16(b))), to_f16(larger(from_f16(a >> 16), from_f16(b >> 16))));
}

RUNTIME void ptx_mul_rn_f16x2(emulate::u32 &d, emulate::u32 a, emulate::u32 b)
{
    using namespace emulate;
    d = both(to_f16(from_f16(a) * from_f16(b)), to_f16(from_f16(a >> 16) * from_f16(b >> 16)));
}

RUNTIME void ptx_fma_rn_f16x2(emulate::u32 &d, emulate::u32 a, emulate::u32 b, emulate::u32 c)
{
    using namespace emulate;
    d = both(to_f16(from_f16(a) * from_f16(b) + from_f16(c)),
             to_f16(from_f16(a >> 16) * from_f16(b >> 16) + from_f16(c >> 16)));
}

#include "ptx_functions.h"

RUNTIME void ptx_add_s32(int &d, int a, int b)
{
    d = a + b;
}

RUNTIME void ptx_mov_f32(float &d, float a)
{
    d = a;
}

RUNTIME void ptx_setp_ne_b32(bool &d, int a, int b)
{
    d = a != b;
}

/* ---- shared memory ---- */

namespace emulate
{

template <typename number> static number get(u32 address)
{
    number a;
    memcpy(&a, at(address, sizeof a), sizeof a);
    note_read(address, sizeof a);
    return a;
}

template <typename number> static void put(u32 address, number a)
{
    const bool same = memcmp(at(address, sizeof a), &a, sizeof a) == 0;
    memcpy(at(address, sizeof a), &a, sizeof a);
    note_write(address, sizeof a, same);
}

} // namespace emulate

RUNTIME void ptx_ld_shared_u16(emulate::u16 &d, emulate::u32 address)
{
    d = emulate::get<emulate::u16>(address);
}

RUNTIME void ptx_ld_shared_u32(emulate::u32 &d, emulate::u32 address)
{
    d = emulate::get<emulate::u32>(address);
}

RUNTIME void ptx_ld_shared_v2_f32(emulate::floats<2> d, emulate::u32 address)
{
    const float2 a = emulate::get<float2>(address);
    *d[0] = a.x, *d[1] = a.y;
}

RUNTIME void ptx_ld_shared_v4_f32(emulate::floats<4> d, emulate::u32 address)
{
    const float4 a = emulate::get<float4>(address);
    *d[0] = a.x, *d[1] = a.y, *d[2] = a.z, *d[3] = a.w;
}

RUNTIME void ptx_ld_shared_v4_u32(emulate::words<4> d, emulate::u32 address)
{
    const uint4 a = emulate::get<uint4>(address);
    *d[0] = a.x, *d[1] = a.y, *d[2] = a.z, *d[3] = a.w;
}

RUNTIME void ptx_st_shared_u16(emulate::u32 address, emulate::u16 a)
{
    emulate::put(address, a);
}

RUNTIME void ptx_st_shared_u32(emulate::u32 address, emulate::u32 a)
{
    emulate::put(address, a);
}

RUNTIME void ptx_st_shared_v2_f32(emulate::u32 address, emulate::array<const float *, 2> a)
{
    emulate::put(address, float2{*a[0], *a[1]});
}

RUNTIME void ptx_st_shared_v2_f32(emulate::u32 address, emulate::floats<2> a)
{
    emulate::put(address, float2{*a[0], *a[1]});
}

RUNTIME void ptx_st_shared_v4_u32(emulate::u32 address, emulate::words<4> a)
{
    emulate::put(address, uint4{*a[0], *a[1], *a[2], *a[3]});
}

RUNTIME void ptx_st_global_v4_u32(void *to, emulate::words<4> a)
{
    if ((uintptr_t)to % 16)
        emulate::stop("16 bytes are stored at %p", to);
    *(uint4 *)to = uint4{*a[0], *a[1], *a[2], *a[3]};
}

RUNTIME void ptx_mov_b32(emulate::u32 &to, emulate::array<emulate::u16 *, 2> halves)
{
    to = *halves[0] | (emulate::u32)*halves[1] << 16;
}

RUNTIME void ptx_mov_b32(emulate::array<emulate::u16 *, 2> halves, emulate::u32 from)
{
    *halves[0] = (emulate::u16)from;
    *halves[1] = (emulate::u16)(from >> 16);
}

#include "ptx_matrices.h"

RUNTIME void ptx_shfl_sync_idx_b32(emulate::u32 &d, emulate::u32 a, int lane, int, unsigned)
{
    d = emulate::shuffle("shfl.sync.idx", a, lane);
}

/* ---- asynchronous copies of threads ---- */

static void begin_copy_of_thread(emulate::u32 to, const void *from, emulate::u32 bytes, emulate::u32 read)
{
    using namespace emulate;
    copy c = {at(to, bytes), read ? from : NULL, bytes, 0, 0, false, {}, 0, 0, 0};
    if (read > 0 && read < bytes) {
        c.read.assign((const char *)from, (const char *)from + read);
        c.read.resize(bytes);
    }
    note_write(to, bytes, false);
    if (late_copies)
        threads[current].open.push_back(std::move(c));
    else
        perform(c);
}

RUNTIME void ptx_cp_async_cg_shared_global(emulate::u32 to, const void *from, emulate::u32 bytes,
                                           emulate::u32 read = 16)
{
    if (bytes != 16 || read > 16 || (uintptr_t)from % 16)
        emulate::stop("cp.async of %u bytes, %u read, from %p", bytes, read, from);
    begin_copy_of_thread(to, from, bytes, read);
}

RUNTIME void ptx_cp_async_ca_shared_global(emulate::u32 to, const void *from, emulate::u32 bytes)
{
    if (bytes != 4 || (uintptr_t)from % 4 || to % 4)
        emulate::stop("cp.async of %u bytes from %p", bytes, from);
    begin_copy_of_thread(to, from, bytes, bytes);
}

RUNTIME void ptx_cp_async_commit_group(void)
{
    emulate::thread &t = emulate::threads[emulate::current];
    t.copies.push_back(std::move(t.open));
    t.open.clear();
}

RUNTIME void ptx_cp_async_wait_group(int pending)
{
    emulate::perform_until(emulate::threads[emulate::current].copies, pending);
}

/* ---- barriers in shared memory, bulk copies ---- */

/* The thread arrives when what it has begun to copy is there: late, when nobody can do anything else. */
RUNTIME void ptx_cp_async_mbarrier_arrive_noinc_shared__cta_b64(emulate::u32 address)
{
    using namespace emulate;
    thread &t = threads[current];
    barrier_at(address);
    if (!t.copies.empty())
        stop("cp.async.mbarrier.arrive behind groups of copies that are on their way");
    for (copy &c : t.open) {
        c.more = true;
        blocks[rank].on_their_way.push_back(std::move(c));
    }
    t.open.clear();
    const copy last = {NULL, NULL, 0, 0, 0, false, {}, address, 0, 0};
    tell(address);
    if (late_copies)
        blocks[rank].on_their_way.push_back(last);
    else
        perform(last);
}

RUNTIME void ptx_mbarrier_init_shared__cta_b64(emulate::u32 address, int count)
{
    emulate::at(address, 8);
    emulate::barriers[(address - emulate::BASE) / 8] = {true, count, count, 0, 0, false, false};
}

RUNTIME void ptx_mbarrier_arrive_expect_tx_shared__cta_b64(emulate::nothing, emulate::u32 address,
                                                           emulate::u32 bytes)
{
    emulate::barrier &b = emulate::barrier_at(address);
    if (b.pending == 0)
        emulate::stop("more than %d threads arrive at barrier %u in one phase", b.count, address);
    emulate::arrive_with_warp(b, address);
    emulate::tell(address);
    b.bytes += bytes;
    b.pending--;
    emulate::finish_phase(b);
}

RUNTIME void ptx_mbarrier_expect_tx_relaxed_cta_shared__cta_b64(emulate::u32 address, emulate::u32 bytes)
{
    emulate::barrier_at(address).bytes += bytes;
}

RUNTIME void ptx_mbarrier_arrive_shared__cta_b64(emulate::nothing none, emulate::u32 address)
{
    ptx_mbarrier_arrive_expect_tx_shared__cta_b64(none, address, 0);
}

/* Comes back when the phase of that parity is over. */
RUNTIME void ptx_mbarrier_try_wait_parity_shared__cta_b64(bool &done, emulate::u32 address,
                                                          emulate::u32 parity)
{
    using namespace emulate;
    thread &t = threads[current];
    barrier &b = awaited_barrier(address);
    done = true;
    if (b.phase == parity) {
        t.waits = &b;
        t.parity = parity;
        t.address = address;
        leave();
    }
    hear(address);
}

/* Whether it is. */
RUNTIME void ptx_mbarrier_test_wait_parity_shared__cta_b64(bool &done, emulate::u32 address,
                                                           emulate::u32 parity)
{
    done = emulate::awaited_barrier(address).phase != parity;
    if (done)
        emulate::hear(address);
}

RUNTIME void ptx_selp_b32(emulate::u32 &d, emulate::u32 a, emulate::u32 b, bool chosen)
{
    d = chosen ? a : b;
}

RUNTIME void ptx_cp_async_bulk_shared__cluster_global_mbarrier__complete_tx__bytes(emulate::u32 to,
                                                                                   const void *from,
                                                                                   emulate::u32 bytes,
                                                                                   emulate::u32 barrier)
{
    using namespace emulate;
    if (bytes % 16 || (uintptr_t)from % 16)
        stop("a bulk copy of %u bytes from %p", bytes, from);
    if (overlapping && threads[current].beside != thread::SEEN && !(from >= gates && from < gates_end))
        stop("a bulk copy of what may not be written yet");
    barrier_at(barrier);
    at(to, 16), at(to + bytes - 16, 16);
    copy c = {memory + (to - BASE), from, bytes, barrier, 0, false, {}, 0, 0, 0};
    note_copy(to, c);
    if (late_copies)
        blocks[rank].on_their_way.push_back(c);
    else
        perform(c);
}

#include "ptx_boxes.h"

RUNTIME void ptx_cp_async_bulk_global_shared__cta_bulk_group(void *to, emulate::u32 from, emulate::u32 bytes)
{
    using namespace emulate;
    if (bytes % 16 || (uintptr_t)to % 16)
        stop("a bulk copy of %u bytes to %p", bytes, to);
    at(from, 16), at(from + bytes - 16, 16);
    for (emulate::u32 i = 0; i < bytes; i += 16)
        check_fence(from + i);
    note_read(from, bytes);
    threads[current].open_out.push_back({to, memory + (from - BASE), bytes, 0, from, false, {}, 0, 0, 0});
}

RUNTIME void ptx_cp_async_bulk_commit_group(void)
{
    emulate::thread &t = emulate::threads[emulate::current];
    if (t.out.empty())
        t.sent = emulate::own_warp().lanes.generation;
    t.out.push_back(std::move(t.open_out));
    t.open_out.clear();
    if (!emulate::late_copies)
        emulate::perform_until(t.out, 0);
}

/* Late: not before all others have gone on as far as they can. */
RUNTIME void ptx_cp_async_bulk_wait_group(int pending)
{
    if (emulate::late_copies) {
        emulate::threads[emulate::current].patient = true;
        emulate::leave();
    }
    emulate::perform_until(emulate::threads[emulate::current].out, pending);
}

RUNTIME void ptx_cp_async_bulk_wait_group_read(int pending)
{
    emulate::read_until(emulate::threads[emulate::current].out, pending);
}

#include "ptx_threads.h"
#include "ptx_clusters.h"
#include "ptx_products.h"

#endif
