/* splitmix: random numbers from a seed, the same bits on every machine. */
#ifndef FPAC_BASE_SPLITMIX_H
#define FPAC_BASE_SPLITMIX_H

#include <stdint.h>

/* splitmix64 (Vigna): 64 random bits. *state is initially the seed, and each call changes it. */
uint64_t splitmix_bits(uint64_t *state);

/* Approximately a standard normal: the sum of twelve uniform numbers in [0, 1), minus 6. All operations are exact,
 * and no libm is used, so that results are the same everywhere. */
double splitmix_normal(uint64_t *state);

#endif
