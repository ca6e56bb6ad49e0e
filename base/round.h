/* round: whole numbers of units. */
#ifndef FPAC_BASE_ROUND_H
#define FPAC_BASE_ROUND_H

#include <stdint.h>

/* For value >= 0 and unit >= 1. */
static inline int64_t divide_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit;
}

static inline int64_t round_up(int64_t value, int64_t unit)
{
    return divide_up(value, unit) * unit;
}

#endif
