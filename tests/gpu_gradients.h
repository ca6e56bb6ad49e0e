/* gpu_gradients: a backward pass with every gradient wanted, the same on the CPU and on a GPU, for tests. */
#ifndef FPAC_TESTS_GPU_GRADIENTS_H
#define FPAC_TESTS_GPU_GRADIENTS_H

#include "gpu_problem.h"

/* A head with a gate, a normaliser and a run-time matrix W [4, 8] of all heads: one spec file's text. */
#define GRADED_HEAD                                                                                          \
    "return head { name = 'graded', d = 8, dv = 8, gate = true, normalize = 'one_plus_sum',\n"               \
    "              terms = term { trainable { name = 'W', rows = 4, shared = true }, identity() } }\n"

/* Gradients of q, k, v, the log-gates and W by two kernels of that head, opened with gradients, of the same numbers:
 * the largest max |x - y| / max |y|. gpu: where `kernel` computes (NULL: on the CPU, as `host` does). Stops the test
 * when a call fails. */
double gradients_distance(const fpa_kernel *kernel, const test_gpu *gpu, const fpa_kernel *host,
                          fpa_form form);

#endif
