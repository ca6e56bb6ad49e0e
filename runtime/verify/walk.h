/* walk: which of a module's candidates verification asks for, beside the fastest: calls here are small, and
 * would never take the ways of large ones. */
#ifndef FPAC_RUNTIME_VERIFY_WALK_H
#define FPAC_RUNTIME_VERIFY_WALK_H

#include "trial.h"

/* One candidate of each call, whatever its size: of those of a mechanism and variant the first or the last,
 * which have the fewest and the most segments or blocks. */
typedef struct fpa_pick {
    const char *mechanism;
    int variant;
    bool last;
    int64_t most; /* not 0: those of more segments are left out */
} fpa_pick;

enum { MANY_PICKS = 32 };

/* Picks that differ for calls of the shape in that form: all mechanisms and variants that suit, but the fastest
 * candidate of all, which a call without a pick has. */
int walk_list(const fpa_module *module, const fpa_shape *shape, fpa_form_index form,
              fpa_pick picks[MANY_PICKS]);

/* One of each mechanism and variant that suits: of the most segments that have several chunks, or of one segment. */
int walk_list_segments(const fpa_module *module, const fpa_shape *shape, int chunk,
                       fpa_pick picks[MANY_PICKS]);

/* That of the fewest blocks for a token beside recent ones, which then have more of these each than they weigh at a time. */
int walk_list_recent(const fpa_module *module, const fpa_shape *shape, fpa_pick picks[MANY_PICKS]);

/* An fpa_trial's choose; choice: an fpa_pick. False: the mechanism does not suit this call. */
bool walk_choose(const void *choice, const fpa_module *module, const fpa_call_size *size,
                 fpa_candidate *candidate);

/* Whether trials of the shape are run in parts of which one has a single token, as recurrent calls have. */
bool walk_is_short(const fpa_shape *shape);

/* Whether the mechanism suits calls of the shape in that form. */
bool walk_has(const fpa_module *module, const fpa_shape *shape, fpa_form_index form, const char *mechanism);

#endif
