/* cuda_padding: rows that are padded to multiples of 16 bytes before kernels fetch them, and the kernel that computes coordinates. */
#ifndef FPAC_MACHINE_CUDA_PADDING_H
#define FPAC_MACHINE_CUDA_PADDING_H

#include "cuda_mechanism.h"
#include "gpu_room.h"

/* Widths to which NAME_pad_rows pads rows, in numbers; 0: they are multiples of 16 bytes already, or another kernel packs them, or
 * fetches single numbers. Values are padded for every mechanism if keys may be masked. */
typedef struct cuda_padding {
    int vector, value; /* of q and k, of v */
} cuda_padding;

/* Tokens of the keys, including recent ones. */
static inline int64_t cuda_key_tokens(const fpa_call_size *size)
{
    return size->batch * (size->length + size->recent);
}

/* NAME_lift_rows: tiles of tokens; blocks that share each tile's rows, so that few tokens fill the GPU; all blocks. The launch has at
 * most as many blocks as run at a time, which process tiles in turn, of one head if that matters: then a block loads what it keeps only
 * once. */
int64_t cuda_lift_tiles(const struct fpa_cuda_geometry *geometry, const fpa_call_size *size);
int64_t cuda_lift_slices(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                         const fpa_call_size *size);
int64_t cuda_lift_blocks(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                         const fpa_call_size *size);

/* Whether the mechanism's kernel computes coordinates itself. */
static inline bool cuda_maps_in_place(const struct fpa_cuda_geometry *geometry, cuda_mechanism mechanism)
{
    return (mechanism == MECHANISM_CLUSTER_SCAN && geometry->cluster_maps) ||
           (mechanism == MECHANISM_FUSED_CHUNK && geometry->fused_maps);
}

/* Whether its kernels read vectors packed by NAME_pack_rows in place of q and k. */
static inline bool cuda_packs_rows(const struct fpa_cuda_geometry *geometry, cuda_mechanism mechanism)
{
    return geometry->kernel[CUDA_PACK_ROWS].threads &&
           (mechanism == MECHANISM_SPLIT || (mechanism == MECHANISM_FUSED_CHUNK && geometry->fused_packs));
}

/* Whether its kernels fetch values as given although rows are not multiples of 16 bytes, if heads' rows of a token are contiguous. */
bool cuda_leans_values(const struct fpa_cuda_geometry *geometry, const fpa_call_size *size,
                       cuda_mechanism mechanism);

cuda_padding cuda_padding_of(const struct fpa_cuda_geometry *geometry, cuda_mechanism mechanism);

#endif
