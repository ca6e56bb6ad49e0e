/* blocks: host memory that is kept between runs. */
#include "blocks.h"
#include "base/round.h"

#include <stdint.h>
#include <stdlib.h>

static void *allocate(size_t alignment, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    return alignment ? aligned_alloc(alignment, round_up(size, alignment)) : malloc(size);
}

/* Reuses only a block of exactly this size: so writes beyond a run's memory are beyond the block, where sanitizers see them. */
void *blocks_take(fpa_blocks *blocks, size_t alignment, size_t size)
{
    for (int i = 0; blocks && i < blocks->count; i++)
        if (blocks->free[i].size == size && blocks->free[i].alignment == alignment) {
            void *bytes = blocks->free[i].bytes;
            blocks->free[i] = blocks->free[--blocks->count];
            return bytes;
        }
    return allocate(alignment, size ? size : 1);
}

/* If there are MANY_BLOCKS, the oldest is freed, since sizes change from trial to trial. */
void blocks_leave(fpa_blocks *blocks, void *bytes, size_t alignment, size_t size)
{
    if (!bytes)
        return;
    if (!blocks) {
        free(bytes);
        return;
    }
    if (blocks->count == MANY_BLOCKS) {
        free(blocks->free[0].bytes);
        for (int i = 1; i < MANY_BLOCKS; i++)
            blocks->free[i - 1] = blocks->free[i];
        blocks->count--;
    }
    blocks->free[blocks->count++] = (struct fpa_block){bytes, alignment, size};
}

void blocks_free(fpa_blocks *blocks)
{
    for (int i = 0; i < blocks->count; i++)
        free(blocks->free[i].bytes);
    *blocks = (fpa_blocks){0};
}
