/* feature_line: a head of few features as a line of them.
 *
 * k(q, k) = sum_f phi_f(q) (w_f phi_f(k)), whatever the features are products of. So gradients of q's and k's features are those of a linear head, for
 * which there are passes (passes.h); what these are to the factors' rows is a sum of products, token by token. Features are formed before the passes, and
 * their gradients joined behind them, where rows are made by matrices (row_head.h).
 * Given: a simplified head of rows that were made. Gives: the line, of features in whole pieces, zeros behind the last one. */
#ifndef FPAC_GEN_PLAN_FEATURE_LINE_H
#define FPAC_GEN_PLAN_FEATURE_LINE_H

#include "base/arena.h"
#include "gen/simplify/simplify.h"
#include "machine/target.h"

/* Whether gradients go that way: of products, of as many features as a pass of rows has a state of, by passes that take the line. */
bool feature_line_suits(const fpa_simplified *rows, const fpa_head *written, const fpa_target *target);

/* In `memory`, as lives no shorter than `rows`, and fails by a jump (arena.h). */
const fpa_simplified *feature_line_make(const fpa_simplified *rows, arena *memory);

#endif
