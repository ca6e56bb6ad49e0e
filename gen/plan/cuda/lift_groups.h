/* lift_groups: NAME_lift_rows by warpgroups, for heads all of whose coordinates are projected; matrices are
 * wgmma operands in shared memory. */
#ifndef FPAC_GEN_PLAN_CUDA_LIFT_GROUPS_H
#define FPAC_GEN_PLAN_CUDA_LIFT_GROUPS_H

#include "gen/plan/plan.h"

/* Fills *lift; false, with *lift unchanged, if the head does not suit. packed: for NAME_fused_chunk of packed
 * rows, which computes coordinates this way however few they are. */
bool lift_by_groups(const fpa_plan *plan, bool packed, fpa_cuda_lift *lift);

/* Whether all matrices of the head are constants. */
bool lift_is_constant(const fpa_head *written);

/* Work for 16 tokens of queries or keys. */
struct fpa_cuda_work work_lift_groups(const fpa_plan *plan);

/* The same if coordinates stay in shared memory, where the fused kernel that makes them reads them. */
struct fpa_cuda_work work_lift_beside(const fpa_plan *plan);

/* Registers of a thread of lift_rows with these sizes. */
int lift_group_registers(const fpa_plan *plan, const fpa_cuda_lift *lift);

/* The same for a lifter of fused_lift with the sums of one product: it multiplies again once it has made
 * coordinates of the previous product. */
int lift_single_registers(const fpa_plan *plan, const fpa_cuda_lift *lift);

/* The same for the packing warpgroup, which finishes queries' coordinates while keys are multiplied. */
int lift_pair_registers(const fpa_plan *plan, const fpa_cuda_lift *lift);

/* Bytes of 64 tokens as given. */
int lift_given_bytes(const fpa_lift *lift);

#endif
