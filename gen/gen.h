/* gen: everything that the runtime may know of the generator.
 *
 * spec -> head -> simplify -> plan -> emit: from here the runtime gets heads, and for a
 * head and a target the source text with the facts that describe it. */
#ifndef FPAC_GEN_GEN_H
#define FPAC_GEN_GEN_H

#include "cuda_call.h"
#include "head.h"
#include "launch.h"
#include "spec.h"

typedef enum fpa_form_index { FORM_PARALLEL, FORM_CHUNKED, FORM_RECURRENT, FORMS } fpa_form_index;

const char *form_name(fpa_form_index form); /* "parallel", "chunked", "recurrent" */

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

/* head -> simplify -> plan -> emit. target is a name that target_find knows. */
fpa_status source_generate(const fpa_head *head, const char *target, fpa_source *source, fpa_error *error);
void source_free(fpa_source *source);

/* SHA-256 of the generator's own files, templates included. A head as written, a target and this decide
 * the emitted text, as nothing else goes into it. */
extern const char generator_digest[];

/* Targets, and how a compiler is told of them. */
typedef struct fpa_target {
    const char *name;    /* "c:avx512", "cuda:sm_90" */
    const char *march;   /* C: words as "-march=x86-64-v4"; CUDA: "sm_90" */
    const char *machine; /* C: "x86_64" or "aarch64"; CUDA: "cuda" */
    int vector;          /* C: floats a register */
    int registers;       /* C: vector registers */
    bool pairs;          /* C: it multiplies and adds pairs of bf16 in one instruction */
    int capability;      /* CUDA: 90 for sm_90; 0: a C target */
    int shared_memory;   /* CUDA: bytes that one block may have */
    bool
        warpgroups; /* CUDA: its code runs on that capability alone, with matrix instructions of warpgroups */
} fpa_target;

int target_count(void);
const fpa_target *target_at(int index);
/* "c:avx2", "cuda:sm_90" or short "sm_90"; "c": the best that this machine's CPU runs. NULL: there
 * is no such target. ("cuda" alone is the runtime's to choose: it can ask the device.) */
const fpa_target *target_find(const char *name);
/* The best C target this machine runs, by its CPU's features. */
const fpa_target *target_best(void);
/* True when this machine's CPU can run code of the target; false of CUDA targets. */
bool target_runs(const fpa_target *target);
/* True when a device of that compute capability runs code of the CUDA target. */
bool target_fits(const fpa_target *target, int capability);
/* The best portable CUDA target whose code a device of that compute capability (90 for 9.0) runs, or NULL. */
const fpa_target *target_for_capability(int capability);

#endif
