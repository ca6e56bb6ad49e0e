/* mechanism: the ways to carry out forms on a GPU, as a table.
 *
 * A row's planner reads the head, the packed rows and the plans of rows before it, and fills a plan of its
 * own, which nobody changes afterwards. Of the rows of a role one is chosen, or none:
 *
 *   split    the parallel form, and the chunked one by chunk_state and chunk_output
 *   fused    the chunked form in one pass, where it suits
 *   cluster  the same for few sequences, beside a fused one
 *   decode   the recurrent form */
#ifndef FPAC_GEN_PLAN_CUDA_MECHANISM_H
#define FPAC_GEN_PLAN_CUDA_MECHANISM_H

#include <stdio.h>

#include "abi/cuda_kernels.h"
#include "gen/plan/plan.h"

typedef enum fpa_role { ROLE_SPLIT, ROLE_FUSED, ROLE_CLUSTER, ROLE_DECODE } fpa_role;

/* What a planner is given. */
typedef struct fpa_cuda_inputs {
    const fpa_plan *plan; /* head, score and target; rows, pieces and dots */
    const fpa_cuda_rows *rows;
    const fpa_suited *suited;   /* [CUDA_MECHANISMS] rows before this one */
    const fpa_columns *columns; /* of the split that is chosen; NULL before that */
    bool feature_rows;          /* a vector's rows are the features (feature_rows.h) */
    bool lifts;                 /* passes on coordinates are to make these themselves, where they can */
    int most_columns;           /* tiles of 8 of a block's columns; 0: as many as a split has registers for */
    arena *memory;
} fpa_cuda_inputs;

typedef struct fpa_mechanism {
    const char *name;
    fpa_role role;
    size_t size; /* bytes of its plan */
    /* Fills a plan of zeros; NULL, or why it does not suit. */
    const char *(*plan)(const fpa_cuda_inputs *in, void *plan);
    /* Of a chosen one: its lines of --dump=plan, NULL: it has none; its entries of the geometry. */
    void (*print)(FILE *out, const fpa_plan *plan);
    void (*geometry)(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
    const char *table;       /* of the templates' plan, for its fields; NULL: the plan itself */
    const fpa_field *fields; /* of its plan */
} fpa_mechanism;

extern const fpa_mechanism cuda_mechanisms[CUDA_MECHANISMS];

/* Plans of all rows, in order, into plan->cuda, and which of them are chosen: what is fastest, or `forced`
 * (-1: none) where it suits. */
fpa_status plan_mechanisms(fpa_plan *plan, int forced, fpa_error *error);

#endif
