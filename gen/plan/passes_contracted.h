/* passes_contracted: the sizes for which passes of values have contractions; used by passes*.c only. */
#ifndef FPAC_GEN_PLAN_PASSES_CONTRACTED_H
#define FPAC_GEN_PLAN_PASSES_CONTRACTED_H

#include <stdbool.h>

/* contraction_sums_fit: whether sums of gradients of d coordinates fit into registers beside rows g, an operand.
 * contraction_pairs_fit: the same if only pairs are contracted. */
bool contraction_sums_fit(int d, int values, bool gate);
bool contraction_pairs_fit(int d);

/* Registers of a thread if two, or three, warpgroups of a block multiply. */
enum { REGISTERS_OF_TWO = 232, REGISTERS_OF_THREE = 160 };

#endif
