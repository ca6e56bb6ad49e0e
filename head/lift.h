/* lift: how the coordinates that branches take are made of q and k, for heads whose branches do not take q and k
 * themselves: maps, products of projections, random features, sketches, functions of a position.
 *
 *   x   = scale q, or k                                            [width]
 *   y   = product over factors  (W x + b)[r], element by element, real or complex
 *   m   = map(inner y - square |x|^2 - shift)                      a map of q and one of k
 *   u   = gain m                                                   a gain of q and one of k
 *
 * and u is a coordinate; or Re y and Im y, times the gain, are two (TensorSketch in the frequency domain);
 * or with positions p and t = angle p (for queries: + phase), u cos t and u sin t are (docs/spec.md), u times the
 * amplitude for queries. Coordinates of the parts follow each other; of a part with two, all first ones come first.
 * Every coordinate of a key that is masked is 0: it contributes nothing, whatever its other operands.
 *
 * A head with a lift has its d coordinates here, its matrices belong to the lift, and its branches take rows of the
 * coordinates (FPA_INPUT) only. */
#ifndef FPAC_HEAD_LIFT_H
#define FPAC_HEAD_LIFT_H

#include "head.h"

/* y -> map(y). */
typedef enum fpa_map {
    FPA_MAP_IDENTITY,
    FPA_MAP_RELU,         /* max(y, 0)            */
    FPA_MAP_ELU_PLUS_ONE, /* y + 1 or, below 0, e^y */
    FPA_MAP_SOFTPLUS,     /* ln(1 + e^y)          */
    FPA_MAP_EXP,          /* e^y                  */
    FPA_MAP_SILU,         /* y / (1 + e^-y)       */
    FPA_MAP_ONE,          /* 1: constant terms of heads whose keys may be masked */
    FPA_MAPS
} fpa_map;

/* One projection W: rows of the vector itself, or all rows of a matrix. A matrix of width + 1 columns has b last, which
 * is added as it is: the (c + q.k)^p of sketches is that of (x, sqrt(c)). Others have no b. */
typedef struct fpa_lift_factor {
    int source;    /* FPA_INPUT, or an index of head->matrices */
    int imaginary; /* of a complex part: the matrix of the imaginary parts; else FPA_NO_MATRIX */
    int *row;      /* FPA_INPUT: [rows] of the vector, 0-based; else NULL */
} fpa_lift_factor;

enum { FPA_NO_MATRIX = -2 };

typedef enum fpa_side { FPA_QUERY, FPA_KEY, FPA_SIDES } fpa_side;

typedef struct fpa_lift_part {
    int rows;                 /* of each factor */
    int factor_count;         /* 1..HEAD_MAX_BRANCHES */
    fpa_lift_factor *factors; /* [factor_count] */
    bool is_complex;          /* then maps are identities, inner 1, square and shift 0, no position */
    double inner, square, shift;
    fpa_map map[FPA_SIDES];
    double gain[FPA_SIDES];
    int angle;     /* matrix [rows, positions], or FPA_NO_MATRIX: no function of the position */
    int phase;     /* matrix [rows, 1], or FPA_NO_MATRIX: 0 */
    int amplitude; /* matrix [rows, 1], or FPA_NO_MATRIX: 1 */
} fpa_lift_part;

struct fpa_lift {
    int width;     /* of q and k as they are given */
    int positions; /* numbers of a token's position, [batch, length, positions]; 0: none are given */
    bool key_mask; /* a mask of keys is given, [batch, length] */
    int part_count;
    fpa_lift_part *parts; /* [part_count] */
};

enum { LIFT_MAX_PARTS = 64, LIFT_MAX_POSITIONS = 16 };

/* Whether a matrix of a factor has a column of constants behind the width's. */
bool lift_has_constants(const fpa_lift *lift, const fpa_matrix *matrix);

/* Coordinates of a part: rows, or 2 rows. */
int lift_coordinates(const fpa_lift_part *part);

/* Key/value heads that a head's constants are given for, which calls must have; 0: any number. */
int lift_heads(const fpa_head *head);

/* Whether coordinate r is a map of number r of the vector and of nothing else, keys unmasked: q and k can become coordinates
 * where they lie. */
bool lift_maps_only(const fpa_lift *lift);

/* map(y), its derivative, and what the second one's absolute value does not exceed: what a small error of y makes of the first. Of
 * relu it is 0, whose slope jumps at 0, where it is that of the left. */
double lift_map(fpa_map map, double y);
double lift_map_slope(fpa_map map, double y);
double lift_map_bend(fpa_map map, double y);

const char *map_name(fpa_map map); /* "identity", "relu", "elu_plus_one", "softplus", "exp", "silu", "one" */

/* The rules of a head's lift, for head_validate. */
fpa_status lift_validate(const fpa_head *head, fpa_error *error);

#endif
