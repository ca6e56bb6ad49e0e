/* outer_given: coordinates that kernels of a plan_outer read from q and k as they are given, behind packed rows: whole pieces of 16 bytes of a run,
 * since boxes begin at such; what is left of it is packed. */
#ifndef FPAC_GEN_PLAN_CUDA_OUTER_GIVEN_H
#define FPAC_GEN_PLAN_CUDA_OUTER_GIVEN_H

#include "gen/plan/plan.h"
#include "outer.h"

/* True when some dot has one of two rows only: blocks of a dot hold no other dot's rows. */
bool outer_dots_part(const fpa_plan *plan, int a, int b);

/* Whether rows of q and k are coordinates of the head, and every kernel that reads vectors takes them from two places. */
bool outer_may_be_given(const fpa_plan *plan, const fpa_outer_plan *outer);

/* Fills given_rows and given_first, 0: there is no such run. */
void outer_choose_given(const fpa_plan *plan, const bool *kept, fpa_outer_plan *outer);

bool outer_is_given(const fpa_outer_plan *outer, int row);

/* These lie behind `blocks` of others, in slabs of their own. Returns blocks. */
int outer_place_given(fpa_outer_plan *outer, int blocks);

/* Whether a layout with them is as good as one without. */
bool outer_is_as_short(const fpa_plan *plan, const fpa_outer_plan *given, const fpa_outer_plan *outer);

#endif
