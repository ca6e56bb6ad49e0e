/* scores: what scores and their products with values are, counted as loops (templates/c/score.c.in). */
#ifndef FPAC_GEN_PLAN_C_SCORES_H
#define FPAC_GEN_PLAN_C_SCORES_H

#include "counting.h"

/* Scores of a panel of keys and one of queries, and their product with values. */
void scores_full(const fpa_counting *to, int keys, int tokens);
void scores_diagonal(const fpa_counting *to, int tokens);

#endif
