/* bench_candidates: every way to carry out a call, forced and timed, beside what the model predicts. */
#ifndef FPAC_COMMAND_BENCH_CANDIDATES_H
#define FPAC_COMMAND_BENCH_CANDIDATES_H

#include <stdio.h>

#include "bench.h"
#include "runtime/backend.h"

/* What it is asked for. */
typedef struct bench_job {
    const bench_options *options;
    const fpa_options *open_options;
    const fpa_target *target; /* that runs here */
    const fpa_load *load;
    fpa_json *json;
    FILE *tsv; /* NULL: no lines are kept */
} bench_job;

/* Open the file of --tsv for lines of candidates, and say in a new one what their fields are. fclose. */
fpa_status candidates_open(const char *path, FILE **file, fpa_error *error);

/* Time each candidate of the head's kernel that suits the call; then, on a GPU, the fastest candidate of kernels
 * that are planned by another mechanism. Prints rows and the regret: how much longer what is chosen takes than
 * the fastest of all. */
fpa_status bench_candidates(const bench_job *job, const fpa_head *head, fpa_error *error);

/* What the model of the machine says of the call: seconds, and what limits them ("-": it knows no such machine). */
fpa_status bench_predict(const bench_job *job, const fpa_kernel *kernel, fpa_cost *cost, fpa_error *error);

/* Threads of a C kernel, as OpenMP counts them. */
int bench_threads(void);

#endif
