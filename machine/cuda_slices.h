/* cuda_slices: blocks that share a head's features in the recurrent form. Counts, no costs. */
#ifndef FPAC_MACHINE_CUDA_SLICES_H
#define FPAC_MACHINE_CUDA_SLICES_H

#include "candidate.h"
#include "gpu_room.h"

/* Units of features, decode_features each, that blocks can have of a head. */
int64_t cuda_decode_units(const struct fpa_cuda_geometry *geometry);

/* The next number of blocks that gives each fewer units; slices < units. */
int64_t cuda_more_slices(int64_t units, int64_t slices);

/* Features that a block has at most. */
int64_t cuda_slice_features(const struct fpa_cuda_geometry *geometry, int64_t slices);

/* Whether a head's blocks are one cluster, which adds its parts of o up itself: only where each has a
 * multiprocessor for itself, because clusters wait for room for all of their blocks. */
bool cuda_joins(const fpa_gpu_room *room, const fpa_call_size *size, int64_t slices);

/* Shared memory that a block of NAME_decode_resident asks for, when so many share a head. */
int64_t cuda_resident_bytes(const struct fpa_cuda_geometry *geometry, int64_t slices);

#endif
