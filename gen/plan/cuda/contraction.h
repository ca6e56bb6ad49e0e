/* contraction: which heads have NAME_chunk_contraction, which computes gradients of queries (split_contraction.c). */
#ifndef FPAC_GEN_PLAN_CUDA_CONTRACTION_H
#define FPAC_GEN_PLAN_CUDA_CONTRACTION_H

#include "gen/plan/plan.h"

typedef enum fpa_contracted {
    CONTRACTS_NOTHING,
    CONTRACTS_PAIRS, /* pairs of tokens alone, in the parallel form */
    CONTRACTS_STATES /* the state before a chunk, too, whose tiles' prefixes are then rows of one block */
} fpa_contracted;

fpa_contracted contraction_of(const fpa_plan *plan);

#endif
