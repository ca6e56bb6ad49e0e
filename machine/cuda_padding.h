/* cuda_padding: rows that are brought to whole pieces of 16 bytes before kernels fetch them, and coordinates. */
#ifndef FPAC_MACHINE_CUDA_PADDING_H
#define FPAC_MACHINE_CUDA_PADDING_H

#include "cuda_mechanism.h"
#include "gpu_room.h"

/* Numbers that rows are brought to by NAME_pad_rows; 0: their widths are whole pieces of 16 bytes, or another kernel
 * packs them, or fetches them number by number. Values are padded for every mechanism where keys may be masked. */
typedef struct cuda_padding {
    int vector, value; /* of q and k, of v */
} cuda_padding;

/* Tokens of the keys, recent ones among them. */
static inline int64_t cuda_key_tokens(const fpa_call_size *size)
{
    return size->batch * (size->length + size->recent);
}

/* NAME_lift_rows: pieces of work; blocks that share each one's rows, so that few tokens fill the GPU; all blocks. There are as many
 * as run at a time, and take one piece after the other, of the same head if that matters: what they keep is then loaded once. */
int64_t cuda_lift_tiles(const struct fpa_cuda_geometry *geometry, const fpa_call_size *size);
int64_t cuda_lift_slices(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                         const fpa_call_size *size);
int64_t cuda_lift_blocks(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                         const fpa_call_size *size);

/* Whether its kernel makes the coordinates itself. */
static inline bool cuda_maps_in_place(const struct fpa_cuda_geometry *geometry, cuda_mechanism mechanism)
{
    return (mechanism == MECHANISM_CLUSTER_SCAN && geometry->cluster_maps) ||
           (mechanism == MECHANISM_FUSED_CHUNK && geometry->fused_maps);
}

/* Whether it has vectors that NAME_pack_rows leaves in the place of q and k. */
static inline bool cuda_packs_rows(const struct fpa_cuda_geometry *geometry, cuda_mechanism mechanism)
{
    return geometry->kernel[CUDA_PACK_ROWS].threads &&
           (mechanism == MECHANISM_SPLIT || (mechanism == MECHANISM_FUSED_CHUNK && geometry->fused_packs));
}

/* Whether its kernels fetch values where they lie, though their rows begin amid 16 bytes, if heads' rows of a token lie one behind the other. */
bool cuda_leans_values(const struct fpa_cuda_geometry *geometry, const fpa_call_size *size,
                       cuda_mechanism mechanism);

cuda_padding cuda_padding_of(const struct fpa_cuda_geometry *geometry, cuda_mechanism mechanism);

#endif
