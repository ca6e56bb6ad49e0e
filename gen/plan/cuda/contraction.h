/* contraction: of which plans gradients of queries are contracted (NAME_chunk_contraction, split_contraction.c). */
#ifndef FPAC_GEN_PLAN_CUDA_CONTRACTION_H
#define FPAC_GEN_PLAN_CUDA_CONTRACTION_H

#include "gen/plan/plan.h"

typedef enum fpa_contracted {
    CONTRACTS_NOTHING,
    CONTRACTS_PAIRS, /* of tokens alone, in the parallel form: rows lie block by block; */
    CONTRACTS_STATES /* states, too: and prefixes of a tile are rows of one block */
} fpa_contracted;

/* Which is wanted. */
fpa_contracted contraction_of(const fpa_plan *plan);

#endif
