/* parts: what each part of a C kernel does, counted as loops of machine/cpu_cost.h.
 *
 * A part is a function of the emitted text: packing a panel, forming features, a product. Counts follow the
 * templates in templates/c: whoever changes what those print changes the count here. */
#ifndef FPAC_GEN_PLAN_C_PARTS_H
#define FPAC_GEN_PLAN_C_PARTS_H

#include "gen/plan/plan.h"
#include "machine/cpu_cost.h"

/* Forming the features of one vector of tokens: counted once a plan. */
typedef struct fpa_forming {
    double tiles; /* whose features are formed; others are rows as they lie */
    double features, pieces;
    double loads, products, weights; /* of rows; of two vectors; pieces with a weight */
    double rows;                     /* that a tile reads, added up over tiles */
} fpa_forming;

/* Where counts go. */
typedef struct fpa_counting {
    const fpa_plan *plan;
    fpa_forming forming;
    fpa_cpu_work *work;
    double times; /* that what is counted next is done */
} fpa_counting;

fpa_counting parts_begin(const fpa_plan *plan, fpa_cpu_work *work);

/* One panel of tokens: packed, as queries, or as keys with their values. */
void parts_pack_queries(const fpa_counting *to, int tokens);
void parts_pack_keys(const fpa_counting *to, int tokens);
/* One panel's features, all of them, multiplied with the state, or with values and added to the state. */
void parts_read_state(const fpa_counting *to, int tokens);
void parts_write_state(const fpa_counting *to, int tokens);
/* The state rounded to pairs, once a chunk. */
void parts_pair_state(const fpa_counting *to);
/* Scores of a panel of keys and one of queries, and their product with values. */
void parts_score(const fpa_counting *to, int keys, int tokens);
void parts_score_diagonal(const fpa_counting *to, int tokens);
/* Outputs of a panel: cleared; added to others; decayed by gates; normalised and stored. */
void parts_clear_outputs(const fpa_counting *to);
void parts_add_outputs(const fpa_counting *to);
void parts_decay_outputs(const fpa_counting *to);
void parts_store_outputs(const fpa_counting *to, int tokens);
/* The state of one head, cleared. */
void parts_clear_state(const fpa_counting *to);
/* One token of the recurrent form, for `queries` query heads; slices of `share` of the features. `set`: bytes between
 * two visits of the state. */
void parts_token(const fpa_counting *to, int queries, double share, double set);

/* Bytes of what the parts work on. */
double parts_rows_bytes(const fpa_plan *plan);    /* a panel's packed rows */
double parts_read_bytes(const fpa_counting *of);  /* what all tiles read of them */
double parts_values_bytes(const fpa_plan *plan);  /* a panel's values */
double parts_outputs_bytes(const fpa_plan *plan); /* a panel's outputs */
double parts_state_bytes(const fpa_plan *plan);   /* the state, as it runs */

#endif
