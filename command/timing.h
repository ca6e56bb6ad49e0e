/* timing: how long one forward of a kernel takes, by the median of several. */
#ifndef FPAC_COMMAND_TIMING_H
#define FPAC_COMMAND_TIMING_H

#include "../gen/gen.h"
#include "../runtime/fpa.h"

typedef struct fpa_load {
    fpa_form form;
    int64_t batch, length, heads;
    int repeats;    /* at most; at least one is timed after one that is not */
    double seconds; /* stop repeating after this long */
} fpa_load;

typedef struct fpa_timing {
    fpa_form form;      /* what FPA_FORM_AUTO stood for */
    double seconds;     /* median of one forward */
    double nanoseconds; /* per token and head */
    double gflops;      /* by the plan's count of operations */
    int repeats;
} fpa_timing;

/* Random operands from a fixed seed; head is what the kernel was opened from. */
fpa_status time_forward(const fpa_kernel *kernel, const fpa_head *head, const fpa_load *load,
                        fpa_timing *timing, fpa_error *error);

#endif
