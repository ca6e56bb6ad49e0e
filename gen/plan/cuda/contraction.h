/* contraction: of which plans states are contracted (NAME_chunk_contraction, split_contraction.c). */
#ifndef FPAC_GEN_PLAN_CUDA_CONTRACTION_H
#define FPAC_GEN_PLAN_CUDA_CONTRACTION_H

#include "gen/plan/plan.h"

/* Whether it is wanted: then prefixes of a tile are rows of one block. */
bool contraction_is_wanted(const fpa_plan *plan);

#endif
