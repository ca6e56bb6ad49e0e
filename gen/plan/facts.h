/* plan_facts: operations, bytes and sizes of a plan, and the lines of --dump=plan that all back ends share. */
#ifndef FPAC_GEN_PLAN_FACTS_H
#define FPAC_GEN_PLAN_FACTS_H

#include <stdio.h>

#include "plan.h"

/* Fills plan->facts and plan->bytes once the back end has set all sizes. */
void plan_facts(fpa_plan *plan);
/* The same for gradients, which have a chunk of their own and are counted in float32. */
void plan_backward_facts(fpa_plan *plan);

void plan_print_costs(FILE *out, const fpa_plan *plan);
void plan_print_score(FILE *out, const fpa_plan *plan);

#endif
