/* reference_bench: problems for the reference, with their arrays, and heads to pose them for. */
#ifndef FPAC_TESTS_REFERENCE_BENCH_H
#define FPAC_TESTS_REFERENCE_BENCH_H

#include "runtime/reference/reference.h"

enum { D = 5, DV = 3, LENGTH = 7, BATCH = 2, HEADS = 2, QUERY_HEADS = 4 };

/* A problem that owns its arrays. */
typedef struct bench {
    fpa_problem problem;
    double *q, *k, *v, *gate, *positions, **weights;
    unsigned char *key_mask;
    double *o, *magnitude;
    int64_t outputs; /* tokens of o */
} bench;

/* Random arrays for a head of any d and dv; positive: no negative number in q, k, v and weights. Of a mask of keys
 * the first two of each sequence and some others are 0. */
void bench_setup(bench *b, const fpa_head *head, uint64_t seed, bool positive);
void bench_run(bench *b); /* reference_forward into o and magnitude */
/* Plain evaluations in float, score by score and by features, are within so many roundings of the magnitude of o. */
void bench_expect_plain(const bench *b, double roundings);
void bench_free(bench *b);

/* A head of D and DV with terms of weight 1 and, so far, no branches. */
fpa_head *bench_head(int terms);
/* Rows first..first+width-1 of a source as the next branch of term t. */
fpa_branch *bench_branch(fpa_head *head, int t, int source, int first, int width);
/* (q.k)^degree */
fpa_head *power_head(int degree);

#endif
