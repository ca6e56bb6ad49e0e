/* median: of what was measured several times. */
#ifndef FPAC_COMMAND_MEDIAN_H
#define FPAC_COMMAND_MEDIAN_H

/* The median of count > 0 values, which are in ascending order afterwards. */
double median_of(double *values, int count);

#endif
