/* feature_line: a head of few features as a line (docs/glossary.md) of its features.
 *
 *   k(q, k) = sum_f phi_f(q) (w_f phi_f(k))
 *
 * So the gradients of phi(q) and phi(k) are those of a linear head with phi(q) and phi(k) in place of q and k, which
 * passes (passes.h) compute. The gradients of the rows of which features are products are then sums of products, token
 * by token. NAME_backward_form computes features before the passes, and NAME_backward_join the gradients of rows after
 * them, where rows are made by matrices (row_head.h).
 * Given: a simplified head of made rows. Gives: the line, with its features in whole pieces of 8, zeros after the last. */
#ifndef FPAC_GEN_PLAN_FEATURE_LINE_H
#define FPAC_GEN_PLAN_FEATURE_LINE_H

#include "base/arena.h"
#include "gen/simplify/simplify.h"
#include "machine/target.h"

/* Whether gradients are computed this way: features are products, no more than a pass of rows has a state for, and
 * passes can compute the line. */
bool feature_line_suits(const fpa_simplified *rows, const fpa_head *written, const fpa_target *target);

/* The line, allocated in `memory`, which must live as long as `rows` and fails by a jump (arena.h). */
const fpa_simplified *feature_line_make(const fpa_simplified *rows, arena *memory);

#endif
