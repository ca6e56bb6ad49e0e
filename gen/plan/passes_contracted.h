/* passes_contracted: of which sizes passes of values contract; what others ask of them is in passes.h. */
#ifndef FPAC_GEN_PLAN_PASSES_CONTRACTED_H
#define FPAC_GEN_PLAN_PASSES_CONTRACTED_H

#include <stdbool.h>

/* Sums of gradients of d coordinates have registers beside rows g, which are an operand; of pairs alone. */
bool contraction_sums_fit(int d, int values, bool gate);
bool contraction_pairs_fit(int d);

/* Registers of a thread where two warpgroups multiply, or three. */
enum { REGISTERS_OF_TWO = 232, REGISTERS_OF_THREE = 160 };

#endif
