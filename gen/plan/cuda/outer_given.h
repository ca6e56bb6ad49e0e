/* outer_given: coordinates that kernels read from q and k as given, in slabs behind packed rows: the pieces of 16
 * bytes that lie inside of a run of coordinates, since boxes begin at such; the rest of the run is packed. */
#ifndef FPAC_GEN_PLAN_CUDA_OUTER_GIVEN_H
#define FPAC_GEN_PLAN_CUDA_OUTER_GIVEN_H

#include "gen/plan/plan.h"
#include "outer.h"

/* Whether some dot has exactly one of two rows: then these cannot be in one block, since a dot's blocks hold no other
 * dot's rows. */
bool outer_dots_part(const fpa_plan *plan, int a, int b);

/* Whether q and k as given are the head's coordinates (no lift), and all its kernels can read vectors from two places. */
bool outer_may_be_given(const fpa_plan *plan, const fpa_outer_plan *outer);

/* Fills given_rows and given_first; given_rows 0: no run is long enough or worth it. kept: rows that features or dots
 * use. */
void outer_choose_given(const fpa_plan *plan, const bool *kept, fpa_outer_plan *outer);

/* Whether a row of the plan is such a coordinate. */
bool outer_is_given(const fpa_outer_plan *outer, int row);

/* Places these coordinates behind `blocks` other blocks, in slabs of their own. Returns the number of blocks. */
int outer_place_given(fpa_outer_plan *outer, int blocks);

/* Whether the layout `given`, with them, is no longer than `outer`, without: no rows follow them, as few slabs, at
 * most one step of dots more, for the rest of the run. */
bool outer_is_as_short(const fpa_plan *plan, const fpa_outer_plan *given, const fpa_outer_plan *outer);

#endif
