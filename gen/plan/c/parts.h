/* parts: what each part of a C kernel does, counted as loops of machine/cpu_cost.h.
 *
 * A part is a function of the emitted text: packing a panel, forming features, a product. Counts follow the
 * templates in templates/c: whoever changes what those print changes the count here. */
#ifndef FPAC_GEN_PLAN_C_PARTS_H
#define FPAC_GEN_PLAN_C_PARTS_H

#include "counting.h"

/* One panel of tokens: packed, as queries, or as keys with their values. */
void parts_pack_queries(const fpa_counting *to, int tokens);
void parts_pack_keys(const fpa_counting *to, int tokens);
/* Keys that the recurrent form packs, and values as numbers. */
void parts_pack_exact(const fpa_counting *to, int tokens);
/* Keys of a window as they are given, without rows that follow from that, and values. */
void parts_pack_given(const fpa_counting *to, int tokens);
/* The coordinates of `count` lanes from what is given of them; the rows that what is given takes, of which a head
 * without a lift has none. */
void parts_lift(const fpa_counting *to, int count);
int parts_lift_rows(const fpa_plan *plan);
/* One panel's features, all of them, multiplied with the state, or with values and added to the state. */
void parts_read_state(const fpa_counting *to, int tokens);
void parts_write_state(const fpa_counting *to, int tokens);
/* The state rounded to pairs, once a chunk. */
void parts_pair_state(const fpa_counting *to);
/* Outputs of a panel: cleared; added to others; decayed by gates; normalised and stored. */
void parts_clear_outputs(const fpa_counting *to);
void parts_add_outputs(const fpa_counting *to);
void parts_decay_outputs(const fpa_counting *to);
void parts_store_outputs(const fpa_counting *to, int tokens);
/* The state of one head, cleared. */
void parts_clear_state(const fpa_counting *to);
/* One token of the recurrent form, for `queries` query heads; slices of `share` of the features. `set`: bytes between
 * two visits of the state, which the token enters, or which is only read. */
void parts_token(const fpa_counting *to, int queries, double share, double set, bool enters);

#endif
