/* parity_rounding: what a narrower storage type costs a parity case.
 *
 * The peers' results are those of float32 inputs. A head of bf16 or f16 reads rounded inputs, may
 * round the factors of its products to the same type, and rounds its output. How much of that goes
 * into the result depends on how much cancels in the case, so it is measured: a plain evaluation
 * that rounds in all these places is compared with the peer's results. Kernels round in about as many
 * places with other signs (verification allows twice the RMS error of the plain evaluation), and the
 * largest of many errors scatters by less than a factor of two: 4 times the plain evaluation's largest
 * error bounds theirs. */
#ifndef FPAC_TESTS_PARITY_ROUNDING_H
#define FPAC_TESTS_PARITY_ROUNDING_H

#include "head/head.h"

/* Where a case's arrays are. */
typedef struct parity_files {
    const char *folder; /* q, k, v, log_g, positions, key_mask, o, initial_state, final_state, each .npy */
    const char *weight_names[9]; /* of run-time matrices, up to NULL */
    const char *weights[8];      /* their files */
} parity_files;

/* Largest errors over the largest result. */
typedef struct parity_errors {
    double o, state; /* state: 0 without a final state */
} parity_errors;

/* Of the worse of the two plain evaluations in the head's dtype. Stops the test on errors. */
parity_errors parity_rounding(const fpa_head *head, const parity_files *files);

#endif
