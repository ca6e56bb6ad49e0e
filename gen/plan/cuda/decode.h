/* decode: the recurrent form, one pass over the state a token. */
#ifndef FPAC_GEN_PLAN_CUDA_DECODE_H
#define FPAC_GEN_PLAN_CUDA_DECODE_H

#include "mechanism.h"

typedef struct fpa_decode {
    int features;       /* rows of the state that a block has at a time */
    int stages;         /* pieces of the state that a thread has on their way */
    int blocks;         /* on a multiprocessor at a time */
    int bytes;          /* of its shared memory */
    int together;       /* rows of matrices that a warp multiplies at a time */
    int cluster;        /* blocks of a head, at most, that add their sums up themselves */
    int resident_bytes; /* of decode_resident's beside rows of the state; 0: there is none */
    int resident_least; /* with them, at least */
    int draft_bytes;    /* of decode_draft's shared memory; 0: there is none */
    int draft_queries;  /* that one pass of it serves */
    int draft_stages;   /* as stages */
} fpa_decode;

const char *plan_decode(const fpa_cuda_inputs *in, void *plan);
void geometry_decode(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field decode_fields[];

#endif
