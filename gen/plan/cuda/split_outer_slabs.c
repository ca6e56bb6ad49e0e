/* Which slabs of 64 rows of a vector the blocks of chunk_state fetch, and bytes of stages. */
#include "parts.h"
#include "split_outer.h"

int split_fetched_bytes(const fpa_split_outer *split, int slabs)
{
    return 64 * SLAB_ROW * (slabs + divide_up(split->columns.tiles, SLAB_BLOCKS));
}

int split_ones_bytes(const fpa_plan *plan, const fpa_split_outer *split)
{
    if (plan->head->normalize == FPA_NORMALIZE_NONE || split->ones_behind)
        return 0;
    return split->columns.ones_slabs ? 16 * SLAB_ROW : 256;
}

/* Slabs in which a strip has suffixes or prefixes, a bit each; vectors of more than 31 slabs do not fit into shared
 * memory. */
static unsigned strip_slabs(const fpa_outer_plan *outer, int strip)
{
    unsigned slabs = 0;
    for (int i = 0; i < outer->strip_length; i++) {
        const int tile = outer->strip_tile[strip * outer->strip_length + i];
        for (int q = 0; q < OUTER_QUARTERS && tile >= 0; q++) /* if features are rows, a tile is a slab */
            slabs |= 1u << outer->tile_quarter[tile * OUTER_QUARTERS + q] / SLAB_BLOCKS;
    }
    const int prefixes = outer->rows ? 0 : OUTER_BLOCK * outer->prefix_factors;
    for (int i = 0; i < prefixes; i++)
        slabs |= 1u << outer->prefix[outer->strip_group[strip] * prefixes + i] / (OUTER_BLOCK * SLAB_BLOCKS);
    return slabs;
}

/* Slabs that a block fetches. Warps without a strip, in the last block, process the last strip again. */
static unsigned block_slabs(const fpa_outer_plan *outer, const fpa_chunk_state_kernel *kernel, int slice)
{
    const int block = kernel->groups * kernel->strips;
    unsigned slabs = 0;
    for (int i = slice * block; i < (slice + 1) * block; i++)
        slabs |= strip_slabs(outer, i < outer->strips ? i : outer->strips - 1);
    return slabs;
}

void split_count_slabs(const fpa_outer_plan *outer, fpa_chunk_state_kernel *kernel)
{
    kernel->slabs = kernel->fetched_slabs = 0;
    for (int slice = 0; slice < kernel->slices; slice++) {
        const int slabs = __builtin_popcount(block_slabs(outer, kernel, slice));
        kernel->slabs = largest(kernel->slabs, slabs);
        kernel->fetched_slabs += slabs;
    }
}

void split_list_slabs(arena *memory, fpa_split_outer *split)
{
    for (int k = 0; k < split->kernels; k++) {
        fpa_chunk_state_kernel *kernel = &split->state[k];
        kernel->slab_mask = arena_array(memory, kernel->slices, sizeof *kernel->slab_mask);
        for (int slice = 0; slice < kernel->slices; slice++) {
            kernel->slab_mask[slice] = (int)block_slabs(&split->outer, kernel, slice);
            split->partial_slabs |=
                kernel->slab_mask[slice] + 1 != 1 << divide_up(split->outer.row_blocks, SLAB_BLOCKS);
        }
    }
}
