/* bench_candidates: times every candidate of a call, and compares it with the model's prediction. */
#ifndef FPAC_COMMAND_BENCH_CANDIDATES_H
#define FPAC_COMMAND_BENCH_CANDIDATES_H

#include <stdio.h>

#include "bench.h"
#include "runtime/backend.h"

/* A job of fpac bench. */
typedef struct bench_job {
    const bench_options *options;
    const fpa_options *open_options;
    const fpa_target *target; /* target that runs here */
    const fpa_load *load;
    fpa_json *json;
    FILE *tsv; /* NULL: no lines are written */
} bench_job;

/* Open the file of --tsv for lines of candidates; a new file begins with the names of the fields. The caller
 * closes it (fclose). */
fpa_status candidates_open(const char *path, FILE **file, fpa_error *error);

/* Time each candidate of the head's kernel that suits the call; then, on a GPU, the fastest candidate of kernels
 * that are planned by another mechanism. Prints rows and the regret: how much longer the chosen candidate takes
 * than the fastest of all. */
fpa_status bench_candidates(const bench_job *job, const fpa_head *head, fpa_error *error);

/* The model's prediction for the call: seconds, and what limits them ("-": there is no model of this machine). */
fpa_status bench_predict(const bench_job *job, const fpa_kernel *kernel, fpa_cost *cost, fpa_error *error);

/* The number of threads of a C kernel, as OpenMP uses them. */
int bench_threads(void);

#endif
