/* clock: elapsed time. */
#ifndef FPAC_BASE_CLOCK_H
#define FPAC_BASE_CLOCK_H

/* Seconds since an arbitrary moment, by a clock that is never set: differences are elapsed times. */
double clock_seconds(void);

#endif
