/* launch_meetings: sectors of 32 bytes of o in which rows of two blocks of a pass meet, which these leave in the workspace, and a launch behind
 * them writes whole (templates/hopper/warpgroup_meet.cu.in). */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_MEETINGS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_MEETINGS_H

#include "grid.h"
#include "sizes.h"

/* Their part of the workspace. */
void cuda_place_meetings(const struct fpa_cuda_geometry *geometry, const struct fpa_launch *launch,
                         char *base, cuda_sizes *s);

/* None, if o does not lie so: each token's heads one behind the other, from a multiple of 32 bytes on. */
void cuda_check_meetings(const struct fpa_cuda_geometry *geometry, struct fpa_cuda_call *call);

/* Behind the pass. */
void cuda_join_sectors(cuda_queue *q, const struct fpa_cuda_call *call);

#endif
