/* reference_lift: the coordinates of a token, computed from its q or k by the formulas of head/lift.h. */
#ifndef FPAC_RUNTIME_REFERENCE_LIFT_H
#define FPAC_RUNTIME_REFERENCE_LIFT_H

#include "head/lift.h"
#include "reference.h"

/* A vector whose coordinates are computed. */
typedef struct fpa_lift_token {
    const fpa_problem *problem;
    int64_t head; /* key/value head, which selects matrices */
    fpa_side side;
    const double *x;        /* [width] as given: the lift applies the head's scale */
    const double *position; /* [positions]; NULL: the head has none */
} fpa_lift_token;

/* The token (batch, t) of a key/value head; x: its vector. */
fpa_lift_token lift_token(const fpa_problem *problem, int64_t b, int64_t t, int64_t head, fpa_side side,
                          const double *x);

/* Compute the coordinates, value [d], and size [d], the magnitudes to which their rounding errors are relative: of
 * a product that cancels, the root of its summed squares; of a map, the effect of its argument's error is
 * included. */
void lift_exact(const fpa_lift_token *token, double *value, double *size);

/* The same in float, rounded at every operation, except that phases are summed in double and reduced to half a
 * turn before they become float for the cosine. Coordinates are finally rounded to the problem's coordinate type. */
void lift_plain(const fpa_lift_token *token, float *value);

/* The entries of a matrix for the token's head; of a diagonal one, the diagonal. */
const double *lift_entries(const fpa_lift_token *token, int matrix);

/* lift_phase: the angle t of row r of a part with a position, for queries with the phase. The second function: its
 * amplitude. */
double lift_phase(const fpa_lift_token *token, const fpa_lift_part *part, int r);
double lift_amplitude(const fpa_lift_token *token, const fpa_lift_part *part, int r);

/* The largest absolute slope of a map within the rounding error of its argument: near its kink, relu may have
 * either slope. */
double lift_slope_near(fpa_map map, double y, double size);

/* Operations for one token; 0 without a lift. */
double lift_work(const fpa_head *head);

/* False: the key is masked and contributes nothing. */
bool problem_keeps(const fpa_problem *problem, int64_t b, int64_t j);

#endif
