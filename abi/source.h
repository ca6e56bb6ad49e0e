/* source: emitted code, and what its caller has to know about it.
 *
 * abi/ contains what emitted code and the runtime agree on: launch.h (arguments of C kernels), cuda_call.h
 * (arguments of CUDA kernels, and their geometry) and this file (facts). Given by the generator, it gives the
 * runtime all that it may know about a kernel. There are data only, no logic. */
#ifndef FPAC_ABI_SOURCE_H
#define FPAC_ABI_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "head/form.h"
#include "head/head.h"

/* Gradients computed as forward passes (gen/plan/passes.h): those of the rows q and k, and those of v. Passes run
 * in the order of tokens or in reverse order. */
typedef enum fpa_pass { PASS_ROWS, PASS_VALUES, PASSES } fpa_pass;

/* The heads of these passes. head NULL and own false: the gradient is no forward pass. */
typedef struct fpa_passes {
    fpa_head *head[PASSES]; /* owned by the caller: head_free */
    bool own[PASSES];       /* the pass is a forward pass of the head itself, by its own module */
} fpa_passes;

/* What a caller of emitted code has to know; plain data, also kept in bundles' manifests. */
typedef struct fpa_facts {
    char name[HEAD_MAX_NAME + 1]; /* the head's name, prefix of the emitted symbols */
    char target[32];              /* "c:avx512", "cuda:sm_90" */
    fpa_dtype arithmetic;         /* type of the factors of products; sums are always fp32 */
    int64_t features;             /* D */
    int64_t features_written;     /* D of the head as written */
    int64_t features_minimum;     /* the fewest features known for this kernel (gen/simplify/simplify.h) */
    int64_t features_tpow;        /* d^n, summed over degrees */
    int64_t state_elements; /* elements of the state of one (batch, head): D*dv, then D of z if normalised */
    int block;              /* block of symmetric features (docs/glossary.md) */
    int chunk;              /* tokens between state updates */
    /* 1: a score of a query and a key is the sum over features of both sides, each rounded; 0: it is a polynomial
     * of dot products */
    int formed;
    int forms; /* bit 1 << form: that form is emitted */
    /* tokens from which the chunked form is faster than the parallel one; 0: the parallel form always is */
    int64_t crossover;
    double flop[FORMS]; /* per token and head; of the parallel form, per visible pair of a query and a key */
    double state_bytes; /* bytes of the state of one (batch, head) in state_dtype */
} fpa_facts;

/* Emitted code: the texts of its files, malloc'ed (source_free), and its facts. */
typedef struct fpa_source {
    fpa_facts facts;
    char *code;   /* NAME.c, NAME.cu */
    char *header; /* NAME.h, which declares the kernels for C callers; NULL: CUDA kernels have no header */
} fpa_source;

#endif
