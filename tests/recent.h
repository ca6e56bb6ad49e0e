/* recent: a decode loop that keeps the newest keys and values beside the state, on the CPU or a GPU. */
#ifndef FPAC_TESTS_RECENT_H
#define FPAC_TESTS_RECENT_H

#include "gpu_problem.h"

/* The outputs of a problem, token by token: each with a state that has not seen up to `most` - 1 tokens
 * before it; after `most` of them, in form `folding`, they go into the state together. At the end all are in
 * the problem's final state. Outputs are poisoned first; where a call fails the test stops. */
void decode_with_recent(gpu_problem *problem, const fpa_kernel *kernel, int64_t most, fpa_form folding);

#endif
