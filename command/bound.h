/* bound: the least time of a forward that a machine allows, whatever computes it.
 *
 * The least over the forms of max(F / P, bytes / M). F, FLOP of a token and head: chunked and recurrent
 * 4 D dv + 4 R d, parallel L (widths of the dots + dv) + 4 R d of a causal head; D the fewest features known,
 * unpadded; R the rows of dense projections; of a window of w keys 2 w (d + dv) more. bytes: q, k, v, o, gates, and a state that is asked for, once.
 * P: rate of a large matrix product; M: of a large copy. A time's share of the bound, at most 1, is what
 * kernels of different heads have in common. */
#ifndef FPAC_COMMAND_BOUND_H
#define FPAC_COMMAND_BOUND_H

#include "abi/source.h"
#include "machine/target.h"

typedef struct fpa_bound {
    double seconds;    /* 0: the rate of products is not known */
    const char *limit; /* "products" or "memory" */
} fpa_bound;

/* What a forward asks for. */
typedef struct fpa_bound_call {
    double sequences, length; /* batch times heads, tokens each */
    double bytes;             /* of the operands, and of states that are read and written */
    bool whole;               /* it has a sequence to itself: the forms without a state may carry it out */
} fpa_bound_call;

/* product: FLOP a second; copy: bytes a second, read plus written. */
fpa_bound forward_bound(const fpa_facts *facts, int dv, bool causal, const fpa_bound_call *call,
                        double product, double copy);

/* Of so many threads of this machine, by its row of machine/cpu.c: multiply-adds of full vectors, memory.
 * arithmetic: what products are rounded to. */
void bound_cpu_rates(const fpa_target *target, fpa_dtype arithmetic, int threads, double *product,
                     double *copy);

#endif
