/* cuda_slices: the division of a head's features among blocks in the recurrent form. Only counts, no costs. */
#ifndef FPAC_MACHINE_CUDA_SLICES_H
#define FPAC_MACHINE_CUDA_SLICES_H

#include "candidate.h"
#include "gpu_room.h"

/* Units of decode_features features of a head, which can be divided among blocks. */
int64_t cuda_decode_units(const struct fpa_cuda_geometry *geometry);

/* The next larger number of blocks with which each has fewer units; slices < units. */
int64_t cuda_more_slices(int64_t units, int64_t slices);

/* The most features of a block. */
int64_t cuda_slice_features(const struct fpa_cuda_geometry *geometry, int64_t slices);

/* Whether a head's blocks are one cluster, which adds up its parts of o itself: only if each block has a multiprocessor of its own,
 * because a cluster starts only when all of its blocks fit. */
bool cuda_joins(const fpa_gpu_room *room, const fpa_call_size *size, int64_t slices);

/* Shared memory of a block of NAME_decode_resident if `slices` blocks share a head. */
int64_t cuda_resident_bytes(const struct fpa_cuda_geometry *geometry, int64_t slices);

#endif
