/* plan_cuda_parts: steps of plan_cuda, in files of their own. Internal to plan_cuda*.c. */
#ifndef FPAC_GEN_PLAN_CUDA_PARTS_H
#define FPAC_GEN_PLAN_CUDA_PARTS_H

#include "base/round.h"
#include "gen/plan/features.h"
#include "gen/plan/plan.h"

static inline int largest(int a, int b)
{
    return a > b ? a : b;
}

/* Numbers of packed rows, then of features' and dots' rows. Needs cuda->features. */
fpa_status plan_cuda_rows(fpa_plan *plan, fpa_error *error);

/* Linear attention on the coordinates themselves, on tensor cores: rows by 16 are units as they are. Needs
 * rows. */
bool plan_cuda_reads_coordinates(const fpa_plan *plan);
/* Bytes from row to row of panels, and places in shared memory, for blocks of the sizes in plan->cuda. */
void plan_cuda_pitches(fpa_plan *plan);
void plan_cuda_memory(fpa_plan *plan);
/* Whether the chunked form is one pass, and its places. */
void plan_cuda_fused(fpa_plan *plan);
/* What a pair of tokens costs in the parallel form, once all blocks are chosen. */
void plan_cuda_pairs(fpa_plan *plan);
/* Blocks that share a multiprocessor. */
void plan_cuda_resident(fpa_plan *plan);

#endif
