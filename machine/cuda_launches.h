/* cuda_launches: seconds of a mechanism's launches, one function for each kernel, from its counts and the size of a call. Internal to
 * cuda_estimate*.c. */
#ifndef FPAC_MACHINE_CUDA_LAUNCHES_H
#define FPAC_MACHINE_CUDA_LAUNCHES_H

#include "cuda_cost.h"
#include "cuda_division.h"
#include "cuda_mechanism.h"

/* Warps of a kernel on one multiprocessor, for a launch of `blocks` blocks. */
double launch_warps(const cuda_task *task, cuda_kernel kernel, double blocks);

/* chunk_state for all sequences: its counts, and its cost in `segments` segments. */
fpa_cuda_sum walk_sum(const cuda_task *task, cuda_kernel kernel);
fpa_cost walk_cost(const cuda_task *task, cuda_kernel kernel, int64_t segments);
/* Seconds of one multiprocessor for initial and final states of all walks, during which it does nothing else. */
double walk_handovers(const cuda_task *task, int64_t walks);

/* chunk_output for all queries. */
fpa_cuda_sum output_sum(const cuda_task *task);
fpa_cost output_cost(const cuda_task *task);

/* The cost of the launches before these: sums of gates, coordinates, padded rows, packed rows. */
fpa_cost before_cost(const cuda_task *task, cuda_mechanism mechanism);

/* The cost of updating copies of states by the segments before them: of a pass over all copies, and of a segment scan for `segments`
 * segments. */
fpa_cost copies_cost(const cuda_task *task);
fpa_cost scan_cost(const cuda_task *task, fpa_cost copies, int64_t segments);

/* A launch of a fused kernel with `blocks` blocks, for the share `tokens` of all tokens of its sequences; the slowest block has `longest`
 * times the average's tokens. */
typedef struct fpa_pass {
    cuda_kernel kernel;
    const struct fpa_cuda_kernel_work *work;
    double sequences, blocks, tokens, longest;
} fpa_pass;

fpa_cost pass_cost(const cuda_task *task, const fpa_pass *pass);

#endif
