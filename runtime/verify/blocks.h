/* blocks: host memory that runs of a module reuse. Large heads have states of hundreds of megabytes, and getting fresh pages takes longer
 * than what verification does in them. */
#ifndef FPAC_RUNTIME_VERIFY_BLOCKS_H
#define FPAC_RUNTIME_VERIFY_BLOCKS_H

#include <stddef.h>

enum { MANY_BLOCKS = 8 };

/* Blocks that are not in use. {0}: none. */
typedef struct fpa_blocks {
    int count;
    struct fpa_block {
        void *bytes;
        size_t alignment, size;
    } free[MANY_BLOCKS];
} fpa_blocks;

/* Takes `size` bytes with any contents; NULL: no memory. alignment 0: that of malloc. blocks NULL: from malloc. */
void *blocks_take(fpa_blocks *blocks, size_t alignment, size_t size);
/* Returns bytes taken with these arguments; NULL: does nothing. */
void blocks_leave(fpa_blocks *blocks, void *bytes, size_t alignment, size_t size);
void blocks_free(fpa_blocks *blocks);

#endif
