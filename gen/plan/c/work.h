/* work: the work of a call of a C kernel, as counts from which machine/cpu_cost.h computes seconds. */
#ifndef FPAC_GEN_PLAN_C_WORK_H
#define FPAC_GEN_PLAN_C_WORK_H

#include "gen/plan/plan.h"
#include "machine/cpu_cost.h"

/* Counts the work of the busiest of so many threads in a call. The plan's sizes are known; `chunk` may differ from
 * the plan's. */
void work_of_call(const fpa_plan *plan, int chunk, const fpa_call_size *size, int threads,
                  fpa_cpu_work *work);

fpa_cost work_cost(const fpa_plan *plan, int chunk, const fpa_cpu *cpu, const fpa_call_size *size,
                   int threads);

/* The candidates for a call of that size, one for each C mechanism (c_parallel, c_chunked, c_recurrent), on one
 * thread of this machine's processor or of the target's default row. Returns their number, at most `most`. */
int plan_candidates_c(const fpa_plan *plan, const fpa_call_size *size, fpa_candidate *out, int most);

#endif
