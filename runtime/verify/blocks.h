/* blocks: host memory that runs of a module take in turn. Large heads have states of hundreds of megabytes, and
 * fresh pages take longer than what verification does in them. */
#ifndef FPAC_RUNTIME_VERIFY_BLOCKS_H
#define FPAC_RUNTIME_VERIFY_BLOCKS_H

#include <stddef.h>

enum { MANY_BLOCKS = 8 };

/* Blocks that nobody has now. {0} has none. */
typedef struct fpa_blocks {
    int count;
    struct fpa_block {
        void *bytes;
        size_t alignment, size;
    } free[MANY_BLOCKS];
} fpa_blocks;

/* size bytes with anything in them; NULL without memory. alignment 0: as malloc has it, no better. blocks may be
 * NULL: then from the system. */
void *blocks_take(fpa_blocks *blocks, size_t alignment, size_t size);
/* Give back what was taken so; NULL is fine. */
void blocks_leave(fpa_blocks *blocks, void *bytes, size_t alignment, size_t size);
void blocks_free(fpa_blocks *blocks);

#endif
