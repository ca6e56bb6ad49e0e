/* breakdown: the time of each kernel of a forward on a GPU, one after the other. */
#ifndef FPAC_COMMAND_BREAKDOWN_H
#define FPAC_COMMAND_BREAKDOWN_H

#include "device.h"
#include "json.h"

enum { BREAKDOWN_KERNELS = 16, BREAKDOWN_LAUNCHES = 256 };

typedef struct kernel_part {
    const char *kernel; /* name in the table of kernels */
    int launches;
    double seconds; /* seconds of all its launches */
} kernel_part;

typedef struct fpa_breakdown {
    int count; /* 0: not wanted */
    kernel_part part[BREAKDOWN_KERNELS];
} fpa_breakdown;

/* Medians of several launches of the work, with an event after each kernel, so that kernels do not overlap.
 * UNSUPPORTED: a launch has more than BREAKDOWN_LAUNCHES kernels. */
fpa_status breakdown_measure(const fpa_device *device, const fpa_work *work, fpa_breakdown *breakdown,
                             fpa_error *error);

/* Print the kernels' times, compared with the seconds of the whole forward. */
void breakdown_print(const fpa_breakdown *breakdown, double whole);
void breakdown_write(fpa_json *json, const fpa_breakdown *breakdown);

#endif
