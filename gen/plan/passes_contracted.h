/* passes_contracted: of which sizes passes of values contract; what others ask of them is in passes.h. */
#ifndef FPAC_GEN_PLAN_PASSES_CONTRACTED_H
#define FPAC_GEN_PLAN_PASSES_CONTRACTED_H

#include <stdbool.h>

/* Sums of gradients of d coordinates have registers beside rows g, which are an operand; of pairs alone. */
bool contraction_sums_fit(int d, int values, bool gate);
bool contraction_pairs_fit(int d);

/* Of pairs alone: registers of a thread that has 16 tokens' queries and rows g as operands, beside dots, their operand and sums of gradients; with sums
 * of values, too. And those that one has where two warpgroups multiply, or three. */
int contraction_held_registers(int d, int values, bool sums);
enum { REGISTERS_OF_TWO = 232, REGISTERS_OF_THREE = 160 };

/* A sum of so many powers whose values are so few that features' own work is more than that of passes of rows. */
bool contraction_of_few(int powers, int values, bool gate);

#endif
