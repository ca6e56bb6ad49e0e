/* random_head: seeded random heads and numbers for tests. One seed, one head, on every machine. */
#ifndef FPAC_TESTS_RANDOM_HEAD_H
#define FPAC_TESTS_RANDOM_HEAD_H

#include "head/head.h"

typedef struct random_source {
    uint64_t state; /* any value is a seed */
} random_source;

uint64_t random_bits(random_source *random);
int random_between(random_source *random, int low, int high); /* both included */
bool random_chance(random_source *random, double probability);
double random_unit(random_source *random);   /* inside (0, 1) */
double random_normal(random_source *random); /* mean 0, deviation 1 */

typedef struct random_limits {
    int d, dv;       /* largest widths */
    int degree;      /* most branches of a term */
    int terms;       /* most terms */
    double features; /* most features as written */
    bool trainable;  /* run-time matrices may occur */
    bool dense;      /* constant matrices may occur */
    bool gate;       /* a gate may occur */
    bool normalize;  /* a normaliser may occur */
    bool noncausal;  /* the head may see all keys */
    bool half;       /* dtypes other than f32 may occur */
    bool lift;       /* half of the heads have coordinates of their own */
} random_limits;

/* Everything, small: d 13, dv 9, degree 3, 4 terms, 600 features. f32 only. */
extern const random_limits random_all;
/* The same without anything but constants and terms: what simplification is about. */
extern const random_limits random_plain;

/* A valid head (head_validate accepts it), or NULL when memory is out. limits NULL: random_all.
 * The caller frees it. */
fpa_head *random_head(uint64_t seed, const random_limits *limits);

#endif
