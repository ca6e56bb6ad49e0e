/* cuda_launches: seconds of a mechanism's launches, one function a kernel, from its counts and the size of a call.
 * Private to cuda_estimate*.c. */
#ifndef FPAC_MACHINE_CUDA_LAUNCHES_H
#define FPAC_MACHINE_CUDA_LAUNCHES_H

#include "cuda_cost.h"
#include "cuda_division.h"
#include "cuda_mechanism.h"

/* Warps of a kernel on one multiprocessor, when there are so many blocks of it. */
double launch_warps(const cuda_task *task, cuda_kernel kernel, double blocks);

/* chunk_state of all sequences: all its counts together; in so many segments. */
fpa_cuda_sum walk_sum(const cuda_task *task, cuda_kernel kernel);
fpa_cost walk_cost(const cuda_task *task, cuda_kernel kernel, int64_t segments);
/* Seconds of so many walks, one after the other, in which states come and go and nothing else happens. */
double walk_handovers(const cuda_task *task, int64_t walks);

/* chunk_output of all queries. */
fpa_cuda_sum output_sum(const cuda_task *task);
fpa_cost output_cost(const cuda_task *task);

/* What comes before them: sums of gates, coordinates, padded rows, packed rows. */
fpa_cost before_cost(const cuda_task *task, cuda_mechanism mechanism);

/* What segments that were walked apart lack: a pass over all copies; of so many segments. */
fpa_cost copies_cost(const cuda_task *task);
fpa_cost scan_cost(const cuda_task *task, fpa_cost copies, int64_t segments);

/* The cost of a fused kernel with so many blocks, for the share `tokens` of all tokens of so many sequences; the
 * slowest block has `longest` times the tokens of an average one. */
typedef struct fpa_pass {
    cuda_kernel kernel;
    const struct fpa_cuda_kernel_work *work;
    double sequences, blocks, tokens, longest;
} fpa_pass;

fpa_cost pass_cost(const cuda_task *task, const fpa_pass *pass);

#endif
