/* bench_backward: what gradients of a head take, beside its forward pass. */
#ifndef FPAC_COMMAND_BENCH_BACKWARD_H
#define FPAC_COMMAND_BENCH_BACKWARD_H

#include "bench_candidates.h"

void bench_backward_title(const bench_options *options);

/* Opens the head with its gradients, times both and prints a line, or JSON. Takes the head. */
fpa_status bench_backward(const bench_job *job, fpa_head *head, fpa_error *error);

#endif
