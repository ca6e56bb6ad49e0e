/* launch_passes_gathers: which operands of passes lie such that kernels take them there, and which have to be gathered. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PASSES_GATHERS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PASSES_GATHERS_H

#include "launch_passes_sizes.h"

/* Whether parts of values are rows as they are given: else they are gathered, with zeros behind the last one. */
bool pass_parts_are_given(const passes *p);

/* What a contraction can fetch as it lies: whether the driver can describe a tensor of the call. */
bool pass_describes(const passes *p, const void *base, const int64_t stride[3]);

/* Whether rows g and values can be as they are given, where vectors are gathered. */
bool pass_can_give_values(const passes *p);

/* Numbers of a gathered row: 0, of nothing. Of product rows other factors follow behind what else is gathered. */
int pass_row_width(const passes *p, pass_gathered gathered);

/* What has to be gathered where tokens are taken from the last one on as they lie: as the call's operands lie, or at best. */
pass_gathered pass_least_gathered(const passes *p, bool lie);

#endif
