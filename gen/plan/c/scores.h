/* scores: scores and their products with values, counted as loops (templates/c/score.c.in). */
#ifndef FPAC_GEN_PLAN_C_SCORES_H
#define FPAC_GEN_PLAN_C_SCORES_H

#include "counting.h"

/* Scores of a panel of keys and one of queries, and their product with values: with all keys (full), or with keys
 * up to the query (diagonal). */
void scores_full(const fpa_counting *to, int keys, int tokens);
void scores_diagonal(const fpa_counting *to, int tokens);

/* Pairs of panels in a head with a window (templates/c/window.c.in): those whose keys are in the windows of all
 * queries, of some, of none. */
typedef struct fpa_window_panels {
    double near, both, far;
} fpa_window_panels;

/* The pairs of panels for query panels `first` to `last`, counted from a sequence's first key. */
fpa_window_panels scores_window_panels(const fpa_plan *plan, double first, double last);
void scores_window(const fpa_counting *to, fpa_window_panels panels, int tokens);

#endif
