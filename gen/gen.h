/* gen: everything that the runtime may know of the generator.
 *
 * spec -> head -> simplify -> plan -> emit: from here the runtime gets heads, and for a
 * head and a target the source text with the facts that describe it. */
#ifndef FPAC_GEN_GEN_H
#define FPAC_GEN_GEN_H

#include "head.h"
#include "launch.h"
#include "spec.h"

typedef enum fpa_form_index { FORM_PARALLEL, FORM_CHUNKED, FORM_RECURRENT, FORMS } fpa_form_index;

const char *form_name(fpa_form_index form); /* "parallel", "chunked", "recurrent" */

/* What a caller of the emitted code has to know; plain data, kept in bundles' manifests. */
typedef struct fpa_facts {
    char name[HEAD_MAX_NAME + 1]; /* of the head: prefix of the emitted symbols */
    char target[32];              /* "c:avx512" */
    int64_t features;             /* D */
    int64_t features_written;     /* D of the head as written */
    int64_t features_minimum;     /* C(d+n-1, n), summed over degrees */
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
    char *code;   /* NAME.c */
    char *header; /* NAME.h; code has all it needs without it */
} fpa_source;

/* head -> simplify -> plan -> emit. target is "c:<isa>", isa one of target_list. */
fpa_status source_generate(const fpa_head *head, const char *target, fpa_source *source,
                           fpa_error *error);
void source_free(fpa_source *source);

/* Targets, and how a compiler is told of them. */
typedef struct fpa_target {
    const char *name;    /* "c:avx512" */
    const char *march;   /* "-march=x86-64-v4" */
    const char *machine; /* "x86_64" or "aarch64" */
    int vector;          /* floats a register */
    int registers;       /* vector registers */
} fpa_target;

int target_count(void);
const fpa_target *target_at(int index);
const fpa_target *target_find(const char *name); /* NULL: no such target */
/* The best target this machine runs, by its CPU's features. */
const fpa_target *target_best(void);
/* True when this machine can run code of the target. */
bool target_runs(const fpa_target *target);

#endif
