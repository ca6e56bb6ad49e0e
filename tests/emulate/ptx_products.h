/* ptx_products: matrix instructions of warps and of warpgroups; a part of ptx.h. */
#ifndef FPAC_TESTS_PTX_PRODUCTS_H
#define FPAC_TESTS_PTX_PRODUCTS_H

#include "ptx.h"

namespace emulate
{

enum { MOST_COLUMNS = 256 };

/* ---- operands ---- */

/* sum[16][some] = a[16][16] b[16][some], of b's `columns`: products of one number after the other, so that their sums are what
 * they are in any order of rows and columns. */
template <typename vector>
static inline void multiply_block(float *sum, int pitch, const float (*a)[16], const float *b, int columns)
{
    vector all[16], one;
    memcpy(&one, b, sizeof one);
    for (int row = 0; row < 16; row++)
        all[row] = a[row][0] * one;
    for (int k = 1; k < 16; k++) {
        memcpy(&one, b + k * columns, sizeof one);
        for (int row = 0; row < 16; row++)
            all[row] += a[row][k] * one;
    }
    for (int row = 0; row < 16; row++)
        memcpy(sum + row * pitch, &all[row], sizeof one);
}

typedef float eight __attribute__((vector_size(32)));
typedef float sixteen __attribute__((vector_size(64)));

/* c[16][columns] of a warp, as its lanes have it, += or = a[16][16] b[16][columns]. Most of the time goes by here. */
RUNTIME void multiply_parts(float *const *c, const float (*a)[16], const float *b, int columns, bool add)
{
    float sum[16][MOST_COLUMNS];
    int done = 0;
    for (; done + 16 <= columns; done += 16)
        multiply_block<sixteen>(sum[0] + done, MOST_COLUMNS, a, b + done, columns);
    for (; done < columns; done += 8)
        multiply_block<eight>(sum[0] + done, MOST_COLUMNS, a, b + done, columns);
    for (int lane = 0; lane < WARP; lane++)
        for (int tile = 0; tile < columns / 8; tile++)
            for (int half = 0; half < 2; half++) {
                const float *from = &sum[lane / 4 + half * 8][tile * 8 + lane % 4 * 2];
                float *to = &c[lane][tile * 4 + half * 2];
                to[0] = add ? to[0] + from[0] : from[0];
                to[1] = add ? to[1] + from[1] : from[1];
            }
}

/* a[16][16] from what lanes have: words of rows g and g + 8, columns 2t.. and 2t + 8... */
RUNTIME void spread(float (*a)[16], const u32 (*word)[4], bool half)
{
    for (int lane = 0; lane < WARP; lane++)
        for (int i = 0; i < 4; i++) {
            float *to = &a[lane / 4 + (i & 1) * 8][lane % 4 * 2 + (i >> 1) * 8];
            if (half) {
                to[0] = from_f16(word[lane][i]), to[1] = from_f16(word[lane][i] >> 16);
            } else {
                to[0] = from_bf16(word[lane][i]), to[1] = from_bf16(word[lane][i] >> 16);
            }
        }
}

/* Address of number k of row r (of a column of b) of an operand in shared memory; along: 16 bytes run along
 * r. */
RUNTIME u32 place_of(u64 operand, int r, int k, bool along)
{
    const u32 start = (operand & 0x3fff) << 4, lead = (operand >> 16 & 0x3fff) << 4,
              stride = (operand >> 32 & 0x3fff) << 4;
    const int swizzle = operand >> 62;
    if (swizzle == 0)
        return start + r / 8 * stride + k / 8 * lead +
               (along ? k % 8 * 16 + r % 8 * 2 : r % 8 * 16 + k % 8 * 2);
    if (swizzle != 1)
        stop("an operand with swizzle %d", swizzle);
    const u32 address = start + (along ? r / 64 * lead + r % 64 * 2 + k / 8 * stride + k % 8 * 128
                                       : r / 8 * stride + r % 8 * 128 + k * 2);
    return address ^ (address >> 7 & 7) << 4;
}

/* x[r * row + k * deep] = number k of row r of an operand in shared memory, 16 bytes at a time. */
RUNTIME void fetch(int warp, float *x, int row, int deep, u64 operand, int first, int rows, bool along,
                   bool half)
{
    for (int part = 0; part < rows * 2; part++) {
        const int r = along ? part / 16 * 8 : part / 2, k = along ? part % 16 : part % 2 * 8,
                  step = along ? row : deep;
        const u32 address = place_of(operand, first + r, k, along);
        u16 bits[8];
        memcpy(bits, at(address, sizeof bits), sizeof bits);
        check_fence(address);
        note_read_by(rank * count + warp * WARP, address, 16);
        float number[8];
        for (int i = 0; i < 8; i++)
            number[i] = half ? from_f16(bits[i]) : from_bf16(bits[i]);
        for (int i = 0; i < 8; i++)
            x[r * row + k * deep + i * step] = number[i];
    }
}

/* b: of all columns, as fetch_columns() has it. */
RUNTIME void perform(const product &p, int warp, const float *b)
{
    float a[16][16];
    if (p.a_place)
        fetch(warp, a[0], 16, 1, p.a_place, warp % 4 * 16, 16, p.a_rows, p.half);
    else
        spread(a, p.a, p.half);
    multiply_parts(p.c, a, b, p.columns, p.add);
}

RUNTIME void fetch_columns(const product &p, int warp, float *b)
{
    fetch(warp, b, 1, p.columns, p.b_place, 0, p.columns, p.b_columns, p.half);
}

/* ---- late ones ---- */

RUNTIME std::vector<float> sums_of(const product &p)
{
    std::vector<float> sums;
    for (int lane = 0; lane < WARP; lane++)
        sums.insert(sums.end(), p.c[lane], p.c[lane] + p.columns / 2);
    return sums;
}

RUNTIME bool sums_differ(const product &p)
{
    for (int lane = 0; lane < WARP; lane++)
        if (memcmp(&p.before[lane * p.columns / 2], p.c[lane], p.columns / 2 * sizeof(float)) != 0)
            return true;
    return false;
}

RUNTIME product *find_sums(std::vector<product> &group, size_t from, const float *c)
{
    for (size_t i = from; i < group.size(); i++)
        if (group[i].c[0] == c)
            return &group[i];
    return NULL;
}

/* The first one on its way that has the same sums, or NULL. */
RUNTIME product *find_late(warp &own, const float *c)
{
    product *late = NULL;
    for (size_t i = 0; i < own.products.size() && !late; i++)
        late = find_sums(own.products[i], 0, c);
    return late ? late : find_sums(own.open, 0, c);
}

RUNTIME void begin_late(warp &own, product &p)
{
    if (!find_late(own, p.c[0]))
        p.before = sums_of(p);
    own.open.push_back(std::move(p));
}

/* The first group. Until somebody waits for it nobody writes its sums; nor may they be variables of a function that has
 * returned, in whose place there are others. */
RUNTIME void end_late(warp &own, int number)
{
    float b[16 * MOST_COLUMNS];
    std::vector<product> group = std::move(own.products.front());
    own.products.pop_front();
    for (size_t i = 0; i < group.size(); i++) {
        const product &p = group[i];
        product *next = find_sums(group, i + 1, p.c[0]);
        if (!p.before.empty() && sums_differ(p))
            stop("sums of a matrix instruction are written before it is through");
        fetch_columns(p, number, b);
        perform(p, number, b);
        next = next ? next : find_late(own, p.c[0]);
        if (next)
            next->before = sums_of(*next);
    }
}

/* ---- of a warpgroup ---- */

/* What one lane brings. */
struct part {
    u32 a[4];
    u64 a_place, b_place;
    float *c;
};

/* How operands lie and what signs they have: the last words of an instruction. */
struct flags {
    bool half, add;
    int scale_a, scale_b, a_rows, b_columns;
};

/* Of a warp, but for what its lanes bring. */
RUNTIME product product_of(const flags &f, int columns, const part &any)
{
    product p = {};
    p.a_place = any.a_place, p.b_place = any.b_place, p.columns = columns;
    p.half = f.half, p.add = f.add, p.a_rows = f.a_rows, p.b_columns = f.b_columns;
    return p;
}

/* Warps of a warpgroup have the same columns; who looks for races notes who reads them. */
RUNTIME void issue(const flags &f, int columns, const part &any, group &g, int lanes, int first_warp)
{
    float b[16 * MOST_COLUMNS];
    for (int w = 0; w < lanes / WARP; w++) {
        product p = product_of(f, columns, any);
        warp &own = warps[first_warp + w];
        if (lanes > WARP)
            warp_has_met(first_warp + w);
        for (int i = 0; i < WARP; i++) {
            const part *mine = (const part *)g.argument[w * WARP + i];
            if (mine->a_place != p.a_place || mine->b_place != p.b_place)
                stop("lanes of a matrix instruction have other operands");
            memcpy(p.a[i], mine->a, sizeof p.a[i]);
            p.c[i] = mine->c;
        }
        if (!own.fenced)
            stop("a matrix instruction without wgmma.fence since the last commit");
        own.issued = own.issued * 1000003 + p.a_place * 31 + p.b_place * 7 + p.add;
        if (!late_products && (w == 0 || looking))
            fetch_columns(p, first_warp + w, b);
        if (late_products)
            begin_late(own, p);
        else
            perform(p, first_warp + w, b);
    }
}

/* All warps of a warpgroup together, or (late) each for itself, and not before somebody waits for it. */
RUNTIME void multiply(const flags &f, int columns, part mine)
{
    const int lanes = late_products ? WARP : WARPGROUP, first = current / lanes * lanes;
    group &g = late_products ? own_warp().lanes : warpgroups[current / WARPGROUP];
    meet(g, "wgmma", current % lanes, &mine, [&] { issue(f, columns, mine, g, lanes, first / WARP); });
}

RUNTIME float *whole(float *const *c, size_t size)
{
    uintptr_t other = 0; /* bits of any: without a branch for each */
    for (size_t i = 0; i < size; i++)
        other |= (uintptr_t)c[i] ^ (uintptr_t)(c[0] + i);
    if (other)
        stop("sums of a matrix instruction that do not follow each other");
    return c[0];
}

/* a: four registers, or NULL: it is at a_place. */
RUNTIME void multiply_group(const flags &f, float *const *c, size_t size, const u32 *const *a, u64 a_place,
                            u64 b)
{
    if (f.scale_a != 1 || f.scale_b != 1)
        stop("a matrix instruction with another sign");
    part mine = {{}, a_place, b, whole(c, size)};
    for (int i = 0; i < 4 && a; i++)
        mine.a[i] = *a[i];
    multiply(f, 2 * (int)size, mine);
}

template <size_t size, typename word>
static void multiply_registers(bool half, const floats<size> &c, const emulate::array<word *, 4> &a, u64 b,
                               bool add, int scale_a, int scale_b, int b_columns)
{
    multiply_group({half, add, scale_a, scale_b, false, b_columns}, c.item, size, a.item, 0, b);
}

template <size_t size>
static void multiply_shared(bool half, const floats<size> &c, u64 a, u64 b, bool add, int scale_a,
                            int scale_b, int a_rows, int b_columns)
{
    multiply_group({half, add, scale_a, scale_b, a_rows, b_columns}, c.item, size, NULL, a, b);
}

/* ---- of a warp ---- */

struct warp_part {
    u32 a[4], b[2];
    float *c;
};

RUNTIME warp_part warp_part_of(float *const *c, const u32 *const *a, const u32 *const *b)
{
    return {{*a[0], *a[1], *a[2], *a[3]}, {*b[0], *b[1]}, whole(c, 4)};
}

RUNTIME void multiply_lanes(bool half, float *const *c, const u32 *const *a, const u32 *const *b)
{
    warp_part own = warp_part_of(c, a, b);
    group &g = own_warp().lanes;
    meet(g, "mma", current % WARP, &own, [&g, half] {
        float x[16][16], y[16 * 8], *sums[WARP];
        u32 words[WARP][4];
        for (int i = 0; i < WARP; i++) {
            const warp_part *one = (const warp_part *)g.argument[i];
            memcpy(words[i], one->a, sizeof words[i]);
            sums[i] = one->c;
            for (int e = 0; e < 4; e++)
                y[(i % 4 * 2 + e / 2 * 8 + e % 2) * 8 + i / 4] =
                    to_float(one->b[e / 2] >> 16 * (e % 2), half);
        }
        spread(x, words, half);
        multiply_parts(sums, x, y, 8, true);
    });
}

/* tf32: what a float has besides its last 13 bits. Sums of eight products, in float. */
RUNTIME void multiply_lanes_tf32(float *const *c, const u32 *const *a, const u32 *const *b)
{
    warp_part own = warp_part_of(c, a, b);
    group &g = own_warp().lanes;
    meet(g, "mma", current % WARP, &own, [&g] {
        float x[16][8], y[8][8];
        for (int i = 0; i < WARP; i++) {
            const warp_part *one = (const warp_part *)g.argument[i];
            for (int e = 0; e < 4; e++)
                x[i / 4 + e % 2 * 8][i % 4 + e / 2 * 4] = __uint_as_float(one->a[e] & ~0x1fffu);
            for (int e = 0; e < 2; e++)
                y[i % 4 + e * 4][i / 4] = __uint_as_float(one->b[e] & ~0x1fffu);
        }
        for (int i = 0; i < WARP; i++)
            for (int e = 0; e < 4; e++) {
                double sum = 0;
                for (int k = 0; k < 8; k++)
                    sum += (double)x[i / 4 + e / 2 * 8][k] * y[k][i % 4 * 2 + e % 2];
                ((const warp_part *)g.argument[i])->c[e] += (float)sum;
            }
    });
}

} // namespace emulate

RUNTIME void ptx_wgmma_fence_sync_aligned(void)
{
    emulate::meet_warp("wgmma.fence");
    emulate::own_warp().fenced = true;
}

RUNTIME void ptx_wgmma_commit_group_sync_aligned(void)
{
    using namespace emulate;
    warp &own = own_warp();
    meet(own.lanes, "wgmma.commit_group", current % WARP, NULL, [&own] {
        own.products.push_back(std::move(own.open));
        own.open.clear();
        own.fenced = false;
    });
}

RUNTIME void ptx_wgmma_wait_group_sync_aligned(int pending)
{
    using namespace emulate;
    warp &own = own_warp();
    meet(own.lanes, "wgmma.wait_group", current % WARP, NULL, [&own, pending] {
        while ((int)own.products.size() > pending)
            end_late(own, current / WARP);
    });
}

#define EMULATE_WGMMA(n)                                                                                     \
    template <typename... more>                                                                              \
    static void ptx_wgmma_mma_async_sync_aligned_m64n##n##k16_f32_bf16_bf16(                                 \
        const emulate::floats<n / 2> &c, emulate::u64 a, emulate::u64 b, more... flags)                      \
    {                                                                                                        \
        emulate::multiply_shared(false, c, a, b, flags...);                                                  \
    }                                                                                                        \
    template <typename... more>                                                                              \
    static void ptx_wgmma_mma_async_sync_aligned_m64n##n##k16_f32_f16_f16(                                   \
        const emulate::floats<n / 2> &c, emulate::u64 a, emulate::u64 b, more... flags)                      \
    {                                                                                                        \
        emulate::multiply_shared(true, c, a, b, flags...);                                                   \
    }                                                                                                        \
    template <typename word, typename... more>                                                               \
    static void ptx_wgmma_mma_async_sync_aligned_m64n##n##k16_f32_bf16_bf16(                                 \
        const emulate::floats<n / 2> &c, const emulate::array<word *, 4> &a, emulate::u64 b, more... flags)  \
    {                                                                                                        \
        emulate::multiply_registers(false, c, a, b, flags...);                                               \
    }                                                                                                        \
    template <typename word, typename... more>                                                               \
    static void ptx_wgmma_mma_async_sync_aligned_m64n##n##k16_f32_f16_f16(                                   \
        const emulate::floats<n / 2> &c, const emulate::array<word *, 4> &a, emulate::u64 b, more... flags)  \
    {                                                                                                        \
        emulate::multiply_registers(true, c, a, b, flags...);                                                \
    }

EMULATE_WGMMA(8)
EMULATE_WGMMA(16)
EMULATE_WGMMA(24)
EMULATE_WGMMA(32)
EMULATE_WGMMA(40)
EMULATE_WGMMA(48)
EMULATE_WGMMA(56)
EMULATE_WGMMA(64)
EMULATE_WGMMA(72)
EMULATE_WGMMA(80)
EMULATE_WGMMA(88)
EMULATE_WGMMA(96)
EMULATE_WGMMA(104)
EMULATE_WGMMA(112)
EMULATE_WGMMA(120)
EMULATE_WGMMA(128)
EMULATE_WGMMA(136)
EMULATE_WGMMA(144)
EMULATE_WGMMA(152)
EMULATE_WGMMA(160)
EMULATE_WGMMA(168)
EMULATE_WGMMA(176)
EMULATE_WGMMA(184)
EMULATE_WGMMA(192)
EMULATE_WGMMA(200)
EMULATE_WGMMA(208)
EMULATE_WGMMA(216)
EMULATE_WGMMA(224)
EMULATE_WGMMA(232)
EMULATE_WGMMA(240)
EMULATE_WGMMA(248)
EMULATE_WGMMA(256)

template <typename a_words, typename b_words>
static void ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(const emulate::floats<4> &d,
                                                                    const a_words &a, const b_words &b,
                                                                    const emulate::floats<4> &)
{
    emulate::multiply_lanes(false, d.item, a.item, b.item);
}

template <typename a_words, typename b_words>
static void ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(const emulate::floats<4> &d,
                                                                  const a_words &a, const b_words &b,
                                                                  const emulate::floats<4> &)
{
    emulate::multiply_lanes(true, d.item, a.item, b.item);
}

template <typename a_words, typename b_words>
static void ptx_mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(const emulate::floats<4> &d,
                                                                   const a_words &a, const b_words &b,
                                                                   const emulate::floats<4> &)
{
    emulate::multiply_lanes_tf32(d.item, a.item, b.item);
}

#endif
