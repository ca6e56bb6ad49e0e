/* timing: the time of one forward of a kernel, as the median of several. */
#ifndef FPAC_COMMAND_TIMING_H
#define FPAC_COMMAND_TIMING_H

#include "head/form.h"
#include "head/head.h"
#include "runtime/api/forward.h"
#include "breakdown.h"

typedef struct fpa_load {
    fpa_form form;
    int64_t batch, length, heads;
    int repeats;    /* the most repeats; at least one is timed, after one that is not */
    double seconds; /* stop repeating after this long */
    /* GPU, recurrent form, length 1: a forward is a cycle: so many tokens that are decoded without changing the
     * state, then a call that adds them to it; 0: each token updates the state at once */
    int64_t recent;
    int64_t layers; /* GPU: forwards in a CUDA graph, which is replayed; 0: kernels are launched directly */
    const fpa_candidate *candidate; /* candidate to use; NULL: the fastest */
    fpa_breakdown *breakdown;       /* GPU: result, the time of each kernel; NULL: not wanted */
} fpa_load;

typedef struct fpa_timing {
    fpa_form form;      /* form that was used, which FPA_FORM_AUTO selects */
    double seconds;     /* median of one forward */
    double nanoseconds; /* per token and head */
    double gflops;      /* 10^9 operations per second, by the plan's count */
    int repeats;
    /* GPU only */
    double least, most; /* least and most seconds of a repeat */
    double bytes;       /* bytes of the operands once, and of a state that is read and written */
    int launches;       /* forwards in one repeat */
    int64_t sets;       /* sets of operands, used alternately */
    double set_bytes;   /* bytes of a set */
    double cache_bytes; /* bytes of the device's second-level cache */
} fpa_timing;

/* Time forwards with random operands from a fixed seed; `head` is the one from which the kernel was opened. On the
 * CPU with one set of operands and the wall clock; on a GPU with the device's own clock, and so many sets
 * alternately that none is still in its cache. The recurrent form updates a state in place. */
fpa_status time_forward(const fpa_kernel *kernel, const fpa_head *head, const fpa_load *load,
                        fpa_timing *timing, fpa_error *error);

/* Tokens of k before the queries' first one: in the recurrent form, so many that a decoded token has its whole
 * window. */
static inline int64_t timing_tokens_before(const fpa_head *head, const fpa_load *load)
{
    return head->window && load->length == 1 && !load->recent ? head->window - 1 : 0;
}

/* The part of time_forward for a kernel on a GPU; sets all fields except rates. */
fpa_status time_on_device(const fpa_kernel *kernel, const fpa_head *head, const fpa_load *load,
                          fpa_timing *timing, fpa_error *error);

#endif
