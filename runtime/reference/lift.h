/* reference_lift: coordinates of one token, made of its q or k by the formulas of head/lift.h. */
#ifndef FPAC_RUNTIME_REFERENCE_LIFT_H
#define FPAC_RUNTIME_REFERENCE_LIFT_H

#include "head/lift.h"
#include "reference.h"

/* One vector that is lifted. */
typedef struct fpa_lift_token {
    const fpa_problem *problem;
    int64_t head; /* key/value head, whose matrices count */
    fpa_side side;
    const double *x;        /* [width] as given: the lift applies the head's scale */
    const double *position; /* [positions], or NULL when the head takes none */
} fpa_lift_token;

/* The token (batch, t) of a key/value head; x: its vector. */
fpa_lift_token lift_token(const fpa_problem *problem, int64_t b, int64_t t, int64_t head, fpa_side side,
                          const double *x);

/* value, size: [d]. size is what a rounding error of a coordinate is relative to: where a product cancels the root of
 * its summed squares stands for it, and a map passes on what it makes of its argument's. */
void lift_exact(const fpa_lift_token *token, double *value, double *size);

/* The same in float, rounded at every operation, phases excepted: they are summed in double and reduced to half a
 * turn, in float, before their cosine. Coordinates are rounded to the problem's coordinate type at last. */
void lift_plain(const fpa_lift_token *token, float *value);

/* The entries of a matrix, of the token's head; of a diagonal one its row. */
const double *lift_entries(const fpa_lift_token *token, int matrix);

/* Of row r of a part with a position: its phase, angle p and for queries what is added; and its amplitude. */
double lift_phase(const fpa_lift_token *token, const fpa_lift_part *part, int r);
double lift_amplitude(const fpa_lift_token *token, const fpa_lift_part *part, int r);

/* The absolute slope of a map where a rounded argument may be: that of relu is not known near its kink. */
double lift_slope_near(fpa_map map, double y, double size);

/* Operations of one token; 0 without a lift. */
double lift_work(const fpa_head *head);

/* False: the key is masked, and contributes nothing. */
bool problem_keeps(const fpa_problem *problem, int64_t b, int64_t j);

#endif
