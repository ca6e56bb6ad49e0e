/* bench_backward: the time of a head's gradients, compared with its forward pass. */
#ifndef FPAC_COMMAND_BENCH_BACKWARD_H
#define FPAC_COMMAND_BENCH_BACKWARD_H

#include "bench_candidates.h"

void bench_backward_title(const bench_options *options);

/* Open the head with its gradients, time both, print a line or JSON, and free the head. */
fpa_status bench_backward(const bench_job *job, fpa_head *head, fpa_error *error);

#endif
