/* source: emitted code, and what its caller has to know of it.
 *
 * abi/ is what emitted code and the runtime agree on: launch.h (arguments of C kernels), cuda_call.h (those
 * of CUDA kernels, and their geometry), this file (facts). Given by the generator, it gives the runtime all
 * that it may know of a kernel; it has data only, no logic. */
#ifndef FPAC_ABI_SOURCE_H
#define FPAC_ABI_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "head/form.h"
#include "head/head.h"

/* Gradients that are forward passes of other heads, in turn of the tokens and against it: of the rows q and k, and of v. */
typedef enum fpa_pass { PASS_ROWS, PASS_VALUES, PASSES } fpa_pass;

/* Which heads these are; neither, nor own: there is no such pass. */
typedef struct fpa_passes {
    fpa_head *head[PASSES]; /* the caller's (head_free) */
    bool own[PASSES];       /* the forward pass of the head itself, by its own module */
} fpa_passes;

/* What a caller of the emitted code has to know; plain data, kept in bundles' manifests. */
typedef struct fpa_facts {
    char name[HEAD_MAX_NAME + 1]; /* of the head: prefix of the emitted symbols */
    char target[32];              /* "c:avx512", "cuda:sm_90" */
    fpa_dtype arithmetic;         /* what products are rounded to; sums are always fp32 */
    int64_t features;             /* D */
    int64_t features_written;     /* D of the head as written */
    int64_t features_minimum;     /* the fewest known: simplify.h */
    int64_t features_tpow;        /* d^n, summed over degrees */
    int64_t state_elements;       /* of one (batch, head): D*dv, then D more when normalised */
    int block;                    /* of symmetric features */
    int chunk;                    /* tokens between state updates */
    int formed;                   /* 1: a pair's score is a sum over features, which both sides round */
    int forms;                    /* bit 1 << form: that form is emitted */
    int64_t crossover;            /* tokens from which chunked is cheaper than parallel; 0: always parallel */
    double flop[FORMS];           /* per token and head; parallel: per visible pair */
    double state_bytes;           /* of one (batch, head) in state_dtype */
} fpa_facts;

/* Emitted code: two files' texts and what they are. malloc'ed; source_free. */
typedef struct fpa_source {
    fpa_facts facts;
    char *code;   /* NAME.c, NAME.cu */
    char *header; /* NAME.h, which code does without; NULL: CUDA kernels have none */
} fpa_source;

#endif
