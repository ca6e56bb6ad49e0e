/* parts: the operations of each part of a C kernel, counted as loops of machine/cpu_cost.h.
 *
 * A part is a function of the emitted code: packing a panel, forming features, a product. Counts follow the
 * templates in templates/c: whoever changes the printed code changes the count here. */
#ifndef FPAC_GEN_PLAN_C_PARTS_H
#define FPAC_GEN_PLAN_C_PARTS_H

#include "counting.h"

/* Packing a panel of tokens: as queries, or as keys with their values. */
void parts_pack_queries(const fpa_counting *to, int tokens);
void parts_pack_keys(const fpa_counting *to, int tokens);
/* Packing keys for the recurrent form, and converting their values to float. */
void parts_pack_exact(const fpa_counting *to, int tokens);
/* Packing keys of a window as given, without rows that are computed from them, and their values. */
void parts_pack_given(const fpa_counting *to, int tokens);
/* parts_lift: computing the coordinates of `count` tokens. The second function: rows that q and k as given take
 * before; a head without a lift has none. */
void parts_lift(const fpa_counting *to, int count);
int parts_lift_rows(const fpa_plan *plan);
/* Forming all features of a panel, and multiplying them by the state (read), or by values and adding the products
 * to the state (write). */
void parts_read_state(const fpa_counting *to, int tokens);
void parts_write_state(const fpa_counting *to, int tokens);
/* Rounding the state to pairs, once per chunk. */
void parts_pair_state(const fpa_counting *to);
/* Outputs of a panel: clearing them; adding them to others; multiplying them by decays; dividing by normalisers
 * and storing. */
void parts_clear_outputs(const fpa_counting *to);
void parts_add_outputs(const fpa_counting *to);
void parts_decay_outputs(const fpa_counting *to);
void parts_store_outputs(const fpa_counting *to, int tokens);
/* Clearing the state of one head. */
void parts_clear_state(const fpa_counting *to);
/* One token of the recurrent form, for `queries` query heads; `share`: the part of the slices that a thread has.
 * `set`: bytes that are used between two passes over the state. enters: the token is added to the state; else the
 * state is only read. */
void parts_token(const fpa_counting *to, int queries, double share, double set, bool enters);

#endif
