/* splitmix: random numbers from a seed, the same bits on every machine. */
#ifndef FPAC_BASE_SPLITMIX_H
#define FPAC_BASE_SPLITMIX_H

#include <stdint.h>

/* splitmix64 (Vigna): 64 random bits; *state is the seed at first. */
uint64_t splitmix_bits(uint64_t *state);

/* Nearly normal: twelve uniform numbers of [0, 1) less 6. Only exact operations, no libm. */
double splitmix_normal(uint64_t *state);

#endif
