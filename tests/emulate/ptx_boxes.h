/* ptx_boxes: boxes of tensors that the copy engine fetches and stores; part of ptx.h. */
#ifndef FPAC_TESTS_PTX_BOXES_H
#define FPAC_TESTS_PTX_BOXES_H

#include "tensor_map.h"

namespace emulate
{

/* Where 8 numbers of a token of a box are, or NULL: outside of the tensor. Addresses are sums modulo 2^64. */
RUNTIME unsigned char *tensor_place(const tensor_map &t, const int *const *place, int number, int token)
{
    uint64_t from = (uint64_t)(uintptr_t)t.base;
    for (int i = 0; i < t.rank; i++) {
        const int64_t at = *place[i] + (i == 0 ? number : i == 2 ? token : 0);
        if (at < 0 || (uint64_t)at >= t.size[i])
            return NULL;
        from += (uint64_t)at * t.stride[i];
    }
    return (unsigned char *)(uintptr_t)from;
}

/* 8 numbers of a token, or NULL: zeros. Tensors here end with whole runs of 8, or a copy of what is left. */
RUNTIME const void *tensor_part(const tensor_map &t, const int *const *place, int number, int token)
{
    const unsigned char *from = tensor_place(t, place, number, token);
    number += *place[0];
    if (!from || (uint64_t)number + 8 <= t.size[0])
        return from;
    static std::deque<std::array<unsigned char, 16>> parts; /* whoever copies late finds them */
    bool late = false;
    for (int i = 0; i < ranks; i++)
        late = late || !blocks[i].on_their_way.empty();
    if (!late)
        parts.clear();
    parts.emplace_back();
    memset(parts.back().data(), 0, 16);
    memcpy(parts.back().data(), from, (t.size[0] - number) * 2);
    return parts.back().data();
}

/* Place of 16 bytes of a row: its number is changed by the lines of 128 bytes before, as far as a row has pieces. */
static u32 swizzled_place(const tensor_map &t, int row, int part)
{
    const int line = row * t.row / 128;
    return row * t.row + ((part ^ line % (t.row / 16)) << 4);
}

/* A box of 64 numbers, or fewer, of 64 or 32 tokens, in rows of 128 bytes, or fewer, swizzled; outside of the tensor are zeros, and behind a box's numbers a row stays as it
 * is. map: what tests/emulate/tensor_map.h describes. */
RUNTIME void fetch_box(u32 to, const void *map, const int *const *place, u32 barrier)
{
    const tensor_map &tensor = *(const tensor_map *)map;
    barrier_at(barrier);
    if (to % 1024 || *place[0] % 8 || *place[1] < 0 ||
        *place[3] < 0) /* 16 bytes: else it is illegal on an H100 */
        stop("a box from column %d is copied to address %u", (int)*place[0], to);
    if (tensor.tokens != 64 && tensor.tokens != 32)
        stop("a box of %d tokens is copied", tensor.tokens);
    for (int row = 0; row < tensor.tokens; row++)
        for (int part = 0; part < tensor.numbers / 8; part++) {
            const u32 address = to + swizzled_place(tensor, row, part);
            copy c = {at(address, 16),
                      tensor_part(tensor, place, part * 8, row),
                      16,
                      barrier,
                      0,
                      row < tensor.tokens - 1 || part < tensor.numbers / 8 - 1,
                      {},
                      0,
                      0,
                      0};
            note_copy(address, c);
            if (late_copies)
                blocks[rank].on_their_way.push_back(c);
            else
                perform(c);
        }
}

/* A box that comes near is of a head and a batch entry that there are; tokens behind the last one are nowhere, nor is the tile that comes behind the first
 * one's where tokens are taken from the last one on. */
enum { TILE_BEFORE = -64 };
RUNTIME void bring_box(const tensor_map &t, const int *const *place)
{
    for (int i = 0; i < t.rank; i++)
        if (i == 2 ? *place[i] < TILE_BEFORE : *place[i] < 0 || (uint64_t)*place[i] >= t.size[i])
            stop("a box comes near from place %d of dimension %d", (int)*place[i], i);
}

/* The other way round: a box as the map says; what is outside of the tensor is left out. */
RUNTIME void send_box(const void *map, const int *const *place, u32 from)
{
    const tensor_map &t = *(const tensor_map *)map;
    if (t.numbers != 64 || t.row != 128 || from % 1024 || *place[0] % 8 || *place[1] < 0 || *place[3] < 0)
        stop("a box is sent from address %u to column %d", from, (int)*place[0]);
    for (int row = 0; row < t.tokens; row++)
        for (int part = 0; part < 8; part++) {
            const u32 address = from + row * 128 + ((part ^ row % 8) << 4);
            unsigned char *to = tensor_place(t, place, part * 8, row);
            check_fence(address);
            note_read(address, 16);
            if (!to)
                continue;
            const uint64_t left = t.size[0] - (*place[0] + part * 8);
            threads[current].open_out.push_back(
                {to, at(address, 16), (u32)(left < 8 ? left * 2 : 16), 0, address, false, {}, 0, 0, 0});
        }
}

} // namespace emulate

template <typename coordinate>
static void ptx_cp_async_bulk_tensor_4d_shared__cluster_global_tile_mbarrier__complete_tx__bytes(
    emulate::u32 to, const void *map, const emulate::array<coordinate *, 4> &place, emulate::u32 barrier)
{
    emulate::fetch_box(to, map, place.item, barrier);
}

template <typename coordinate>
static void ptx_cp_async_bulk_prefetch_tensor_4d_L2_global_tile(const void *map,
                                                                const emulate::array<coordinate *, 4> &place)
{
    emulate::bring_box(*(const tensor_map *)map, place.item);
}

template <typename coordinate>
static void ptx_cp_async_bulk_tensor_4d_global_shared__cta_tile_bulk_group(
    const void *map, const emulate::array<coordinate *, 4> &place, emulate::u32 from)
{
    emulate::send_box(map, place.item, from);
}

template <typename coordinate>
static void ptx_cp_async_bulk_tensor_5d_shared__cluster_global_tile_mbarrier__complete_tx__bytes(
    emulate::u32 to, const void *map, const emulate::array<coordinate *, 5> &place, emulate::u32 barrier)
{
    emulate::fetch_box(to, map, place.item, barrier);
}

template <typename coordinate>
static void ptx_cp_async_bulk_tensor_5d_global_shared__cta_tile_bulk_group(
    const void *map, const emulate::array<coordinate *, 5> &place, emulate::u32 from)
{
    emulate::send_box(map, place.item, from);
}

#endif
