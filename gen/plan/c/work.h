/* work: what a call of a C kernel does, as counts that machine/cpu_cost.h makes seconds of. */
#ifndef FPAC_GEN_PLAN_C_WORK_H
#define FPAC_GEN_PLAN_C_WORK_H

#include "gen/plan/plan.h"
#include "machine/cpu_cost.h"

/* What the busiest of so many threads does in a call. The plan has its sizes; its chunk may be another. */
void work_of_call(const fpa_plan *plan, int chunk, const fpa_call_size *size, int threads,
                  fpa_cpu_work *work);

fpa_cost work_cost(const fpa_plan *plan, int chunk, const fpa_cpu *cpu, const fpa_call_size *size,
                   int threads);

/* The C mechanisms for a call of that size, on one thread of this machine's processor, or of the target's default
 * row where it has none: c_parallel, c_chunked, c_recurrent. Returns how many there are, at most `most`. */
int plan_candidates_c(const fpa_plan *plan, const fpa_call_size *size, fpa_candidate *out, int most);

#endif
