/* bound: the least time of a forward that a machine allows, whatever computes it.
 *
 * The least over the forms of max(F / P, bytes / M). F: FLOP per token and head; chunked and recurrent 4 D dv + 4 R d,
 * parallel, if causal, L (widths of the dots + dv) + 4 R d. D: the fewest features known, unpadded; R: the rows of dense
 * projections; a window of w keys adds 2 w (d + dv). bytes: q, k, v, o, gates, and a state if wanted, once each. P: the
 * rate of a large matrix product; M: the rate of a large copy. The share that the bound has of a time, at most 1, can be
 * compared between kernels of different heads. */
#ifndef FPAC_COMMAND_BOUND_H
#define FPAC_COMMAND_BOUND_H

#include "abi/source.h"
#include "machine/target.h"

typedef struct fpa_bound {
    double seconds;    /* 0: unknown, since the rate of products is */
    const char *limit; /* "products" or "memory" */
} fpa_bound;

/* The size of a forward. */
typedef struct fpa_bound_call {
    double sequences, length; /* batch times heads; tokens of each */
    double bytes;             /* bytes of the operands, and of states that are read and written */
    bool whole;               /* it is a whole sequence, so that the forms without a state are possible */
} fpa_bound_call;

/* product: FLOP per second; copy: bytes per second, read plus written. */
fpa_bound forward_bound(const fpa_facts *facts, int dv, bool causal, const fpa_bound_call *call,
                        double product, double copy);

/* The rates of `threads` threads of this machine, by its row of machine/cpu.c: multiply-adds of full vectors, and
 * memory. arithmetic: type of the factors of products. */
void bound_cpu_rates(const fpa_target *target, fpa_dtype arithmetic, int threads, double *product,
                     double *copy);

#endif
