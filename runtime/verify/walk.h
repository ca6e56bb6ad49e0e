/* walk: the candidates that verification runs in addition to the fastest, since its small calls would never use those of large calls. */
#ifndef FPAC_RUNTIME_VERIFY_WALK_H
#define FPAC_RUNTIME_VERIFY_WALK_H

#include "trial.h"

/* Picks a candidate for calls of any size: of those of a mechanism and variant the first or the last, which have the fewest and the most
 * segments or blocks. */
typedef struct fpa_pick {
    const char *mechanism;
    int variant;
    bool last;
    int64_t most; /* not 0: the largest number of segments */
} fpa_pick;

enum { MANY_PICKS = 32 };

/* Lists different picks for calls of the shape in that form: all mechanisms and variants that apply, except the fastest candidate, which
 * is used without a pick. */
int walk_list(const fpa_module *module, const fpa_shape *shape, fpa_form_index form,
              fpa_pick picks[MANY_PICKS]);

/* Lists one pick for each mechanism and variant that applies: with the most segments that have several chunks, or with one segment. */
int walk_list_segments(const fpa_module *module, const fpa_shape *shape, int chunk,
                       fpa_pick picks[MANY_PICKS]);

/* Lists the candidate with the fewest blocks for decoding with recent tokens: each block then has more of these tokens than it processes
 * at a time. */
int walk_list_recent(const fpa_module *module, const fpa_shape *shape, fpa_pick picks[MANY_PICKS]);

/* fpa_trial.choose for an fpa_pick as choice. False: the mechanism does not apply to this call. */
bool walk_choose(const void *choice, const fpa_module *module, const fpa_call_size *size,
                 fpa_candidate *candidate);

/* Whether trials of the shape are run in parts, one of which has a single token, as recurrent calls have. */
bool walk_is_short(const fpa_shape *shape);

/* Whether the mechanism applies to calls of the shape in that form. */
bool walk_has(const fpa_module *module, const fpa_shape *shape, fpa_form_index form, const char *mechanism);

#endif
