/* passes_parts: passes of rows of a line by parts of the values. With c columns of values in each part
 *   dq_i = sum over parts p of  sum_{j <= i} scale (g_i[p].v_j[p] + h_i[p]) k_j,   h in the first part alone,
 * since g.v is a sum over columns; d_k likewise. d_v of a column needs no other one. So each part is a pass of a line of c coordinates, whose state has a block's
 * registers, and all but the first add to what is there (docs/decisions/0139-gradients-of-wide-values-by-parts.md). */
#ifndef FPAC_GEN_PLAN_PASSES_PARTS_H
#define FPAC_GEN_PLAN_PASSES_PARTS_H

#include <stdbool.h>

typedef struct fpa_pass_parts {
    int count, width; /* of values, in whole pieces of 8 */
} fpa_pass_parts;

/* Of so many numbers of [g, h]: one part, or of a line as few as passes take. */
fpa_pass_parts passes_parts(int values, bool line);

/* Of a normalised line: whether rows [g, h] are wider than kernels take them, and those without h are not. */
bool passes_parts_are_full(int values);
/* Or whether all rows begin at multiples of 16 bytes, and one part has room for columns behind them. */
bool passes_parts_have_columns(int d, int values);
/* Whether all parts are of values as they are given, nothing behind them. */
bool passes_parts_whole(int values);

#endif
