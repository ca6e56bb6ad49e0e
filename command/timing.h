/* timing: how long one forward of a kernel takes, by the median of several. */
#ifndef FPAC_COMMAND_TIMING_H
#define FPAC_COMMAND_TIMING_H

#include "head/form.h"
#include "head/head.h"
#include "runtime/api/forward.h"
#include "breakdown.h"

typedef struct fpa_load {
    fpa_form form;
    int64_t batch, length, heads;
    int repeats;    /* at most; at least one is timed after one that is not */
    double seconds; /* stop repeating after this long */
    int64_t recent; /* GPU, recurrent form, length 1: a forward is that many tokens, of which none is in the
                       state, and then another that puts them there; 0: each token is, at once */
    int64_t layers; /* GPU: forwards in a CUDA graph that is replayed; 0: kernels are launched */
    const fpa_candidate *candidate; /* that carries calls out; NULL: the fastest */
    fpa_breakdown *breakdown;       /* GPU: of each kernel's time; NULL: is not wanted */
} fpa_load;

typedef struct fpa_timing {
    fpa_form form;      /* what FPA_FORM_AUTO stood for */
    double seconds;     /* median of one forward */
    double nanoseconds; /* per token and head */
    double gflops;      /* by the plan's count of operations */
    int repeats;
    /* GPU only */
    double least, most; /* seconds: the spread */
    double bytes;       /* of the operands once, and of a state that is read and written */
    int launches;       /* forwards in one repeat */
    int64_t sets;       /* of operands, taken in turn */
    double set_bytes;   /* of one */
    double cache_bytes; /* of the device's second-level cache */
} fpa_timing;

/* Random operands from a fixed seed; head is what the kernel was opened from. On the CPU one set of
 * operands and the wall clock. On a GPU the device's own clock, and so many sets in turn that none is
 * still in its cache; the recurrent form updates a state in place. */
fpa_status time_forward(const fpa_kernel *kernel, const fpa_head *head, const fpa_load *load,
                        fpa_timing *timing, fpa_error *error);

/* Tokens before the queries' own: a token that is decoded has its whole window. */
static inline int64_t timing_tokens_before(const fpa_head *head, const fpa_load *load)
{
    return head->window && load->length == 1 && !load->recent ? head->window - 1 : 0;
}

/* The part of time_forward for a kernel on a GPU; fills all but rates. */
fpa_status time_on_device(const fpa_kernel *kernel, const fpa_head *head, const fpa_load *load,
                          fpa_timing *timing, fpa_error *error);

#endif
