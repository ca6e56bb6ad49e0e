/* lift_groups: NAME_lift_rows by warpgroups, of heads all of whose coordinates are projected: matrices lie in shared memory as operands. */
#ifndef FPAC_GEN_PLAN_CUDA_LIFT_GROUPS_H
#define FPAC_GEN_PLAN_CUDA_LIFT_GROUPS_H

#include "gen/plan/plan.h"

/* Fills *lift; false, with *lift unchanged, if the head does not suit. packed: for NAME_fused_chunk of packed
 * rows, which computes coordinates this way however few they are. */
bool lift_by_groups(const fpa_plan *plan, bool packed, fpa_cuda_lift *lift);

/* Whether all matrices of the head are constants. */
bool lift_is_constant(const fpa_head *written);

/* Of 16 tokens of queries or keys. */
struct fpa_cuda_work work_lift_groups(const fpa_plan *plan);

/* The same where coordinates are not stored: the kernel that walks a sequence reads them in shared memory. */
struct fpa_cuda_work work_lift_beside(const fpa_plan *plan);

/* Registers of a thread that makes coordinates by these sizes. */
int lift_group_registers(const fpa_plan *plan, const fpa_cuda_lift *lift);

/* The same of one that multiplies when it has made coordinates of what it has multiplied before. */
int lift_single_registers(const fpa_plan *plan, const fpa_cuda_lift *lift);

/* The same of one that finishes queries' coordinates while keys are multiplied. */
int lift_pair_registers(const fpa_plan *plan, const fpa_cuda_lift *lift);

/* Bytes of 64 tokens as they are given. */
int lift_given_bytes(const fpa_lift *lift);

#endif
