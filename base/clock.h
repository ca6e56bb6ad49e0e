/* clock: how long something takes. */
#ifndef FPAC_BASE_CLOCK_H
#define FPAC_BASE_CLOCK_H

/* Seconds of a clock that nobody sets, since some moment: for differences. */
double clock_seconds(void);

#endif
