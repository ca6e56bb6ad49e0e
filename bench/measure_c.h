/* measure_c: a kernel and its ceiling in turns, on this machine's cores. */
#ifndef FPAC_BENCH_MEASURE_C_H
#define FPAC_BENCH_MEASURE_C_H

#include <stdbool.h>

#include "runtime/api/fpa.h"

enum { MOST_THREADS = 2, ROUNDS = 8 };

/* One forward's size. */
typedef struct bench_load {
    fpa_form form;
    int64_t length;
    int batch, heads;
    bool decode; /* with a state that is updated in place */
} bench_load;

/* Best seconds of a forward and of its ceiling, by threads - 1. */
typedef struct bench_times {
    double forward[MOST_THREADS], ceiling[MOST_THREADS];
    double workspace; /* bytes */
} bench_times;

double bench_now(void);
/* count numbers of -0.5..0.5, 64-byte aligned; ends the program when there is no memory. */
float *bench_numbers(size_t count);

/* The ceiling of arithmetic: sgemm of SGEMM_SIZE^3; of decoding: a copy of as many bytes as the states have.
 */
enum { SGEMM_SIZE = 1024 };

/* Forwards with 1..threads threads and their ceiling take turns, ROUNDS times at least and until forwards had
 * a second; the best of each counts. Ends the program with the library's message when a call fails. */
void bench_measure(const fpa_kernel *kernel, const bench_load *load, int threads, bench_times *times);

#endif
