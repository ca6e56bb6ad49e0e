/* median: the median of repeated measurements. */
#ifndef FPAC_COMMAND_MEDIAN_H
#define FPAC_COMMAND_MEDIAN_H

/* The median of count > 0 values, which are sorted in ascending order. */
double median_of(double *values, int count);

#endif
