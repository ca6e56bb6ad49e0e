/* formula: a random head as its spec's text and as plain numbers, and o from these by loops over pairs of tokens.
 * It shares nothing with the library: no reader, no reference, no head. */
#ifndef FPAC_TESTS_TORTURE_FORMULA_H
#define FPAC_TESTS_TORTURE_FORMULA_H

#include <stdio.h>

#include "torture.h"

enum {
    MOST_TERMS = 4,
    MOST_BRANCHES = 3,
    MOST_WIDTH = 20,
    MOST_ROWS = 8,
    MOST_WEIGHTS = MOST_TERMS * MOST_BRANCHES
};

/* (W q).(W k); W [rows][d], or of each key/value head. */
typedef struct branch {
    int rows;
    int weight; /* which run-time matrix; -1: w, as the spec says */
    double *w;
} branch;

typedef struct term {
    double weight;
    int branches;
    branch branch[MOST_BRANCHES];
} term;

typedef struct formula {
    int d, dv, terms;
    term term[MOST_TERMS];
    double polynomial[5]; /* of q.k, added to the terms */
    double scale, eps;
    int normalize; /* 0 none, 1 sum, 2 max, 3 one_plus_sum */
    bool causal, gate;
    int dtype; /* 0 f32, 1 bf16, 2 f16 */
    int weights;
    bool shared[MOST_WEIGHTS];
    int weight_rows[MOST_WEIGHTS];
} formula;

/* One call. q [B][L][Hq][d] and so on, C order; log_gate [B][L][H]. */
typedef struct call_numbers {
    int batch, length, query_heads, heads;
    double *q, *k, *v, *log_gate;
    double *weight[MOST_WEIGHTS]; /* [H] (unless shared), rows, d */
} call_numbers;

/* Write a head named "random" as a spec. */
void formula_random(random_source *random, formula *f, FILE *spec);

/* o [B][L][Hq][dv], and how far from it a right result may be. */
void formula_output(const formula *f, const call_numbers *call, double *o, double *bound);

#endif
