/* passes_parts: passes of rows of a line, divided into parts of the values. With c columns of values in each part,
 *   dq_i = sum over parts p of  sum_{j <= i} scale (g_i[p].v_j[p] + h_i[p]) k_j,   h in the first part alone,
 * since g.v is a sum over columns; d_k likewise. A column of d_v needs no other column. So each part is a pass of a line
 * of c coordinates, whose state fits into a block's registers, and all parts but the first add to the output that is
 * there (docs/decisions/0139-gradients-of-wide-values-by-parts.md). */
#ifndef FPAC_GEN_PLAN_PASSES_PARTS_H
#define FPAC_GEN_PLAN_PASSES_PARTS_H

#include <stdbool.h>

typedef struct fpa_pass_parts {
    int count, width; /* number of parts; columns of each, a multiple of 8 */
} fpa_pass_parts;

/* The parts of so many columns of [g, h]: one, or for a line as few as kernels can read. */
fpa_pass_parts passes_parts(int values, bool line);

/* For a normalised line: whether rows [g, h] would need several parts, while values without h are one part, or divide
 * into equal parts with nothing after them. */
bool passes_parts_are_full(int values);
/* Whether all rows begin at multiples of 16 bytes, and one part has room for the columns of h. */
bool passes_parts_have_columns(int d, int values);
/* Whether the parts divide the values as given, with nothing after them. */
bool passes_parts_whole(int values);

#endif
