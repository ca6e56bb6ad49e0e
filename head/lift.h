/* lift: how coordinates are computed from q and k, for heads whose branches do not use q and k themselves: maps,
 * products of projections, random features, sketches, functions of a position. A lift is a list of parts; a part has
 * this formula for each of its rows r:
 *
 *   x   = scale q, or k                                            [width]
 *   y   = product over factors  (W x + b)[r], real or complex
 *   m   = map(inner y - square |x|^2 - shift)                      a map for q and one for k
 *   u   = gain m                                                   a gain for q and one for k
 *
 * The coordinate is u. A complex part has two coordinates per row: gain Re y and gain Im y (TensorSketch in the
 * frequency domain). A part with positions p has two, too: u cos t and u sin t with t = angle p, and for queries
 * t = angle p + phase and u multiplied by the amplitude (docs/spec.md). The coordinates of parts follow each other; in a
 * part with two per row, the first ones of all rows come before the second ones. All coordinates of a masked key are 0,
 * so that it contributes nothing, whatever its other operands are.
 *
 * In a head with a lift, d is the number of these coordinates, all matrices belong to the lift, and branches select
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

/* One projection W: selected elements of the vector itself, or all rows of a matrix. If a matrix has width + 1
 * columns, the last one is b, which is added as it is: the kernel (c + q.k)^p of sketches is that of the vectors
 * (x, sqrt(c)). Else b is 0. */
typedef struct fpa_lift_factor {
    int source;    /* FPA_INPUT, or an index of head->matrices */
    int imaginary; /* complex part: the matrix of the imaginary parts; else FPA_NO_MATRIX */
    int *row;      /* FPA_INPUT: [rows] indices of the vector's elements, 0-based; else NULL */
} fpa_lift_factor;

enum { FPA_NO_MATRIX = -2 };

typedef enum fpa_side { FPA_QUERY, FPA_KEY, FPA_SIDES } fpa_side;

typedef struct fpa_lift_part {
    int rows;                 /* of each factor */
    int factor_count;         /* 1..HEAD_MAX_BRANCHES */
    fpa_lift_factor *factors; /* [factor_count] */
    /* if true, maps are identities, inner is 1, square and shift are 0, and there is no position */
    bool is_complex;
    double inner, square, shift;
    fpa_map map[FPA_SIDES];
    double gain[FPA_SIDES];
    int angle;     /* matrix [rows, positions], or FPA_NO_MATRIX: no function of the position */
    int phase;     /* matrix [rows, 1], or FPA_NO_MATRIX: 0 */
    int amplitude; /* matrix [rows, 1], or FPA_NO_MATRIX: 1 */
} fpa_lift_part;

struct fpa_lift {
    int width; /* width of q and k as given */
    /* numbers of a token's position, which callers give as [batch, length, positions]; 0: none */
    int positions;
    bool key_mask; /* callers give a mask of keys, [batch, length] */
    int part_count;
    fpa_lift_part *parts; /* [part_count] */
};

enum { LIFT_MAX_PARTS = 64, LIFT_MAX_POSITIONS = 16 };

/* Whether a factor's matrix has a column of constants b after the `width` columns. */
bool lift_has_constants(const fpa_lift *lift, const fpa_matrix *matrix);

/* The number of coordinates of a part: rows, or 2 * rows. */
int lift_coordinates(const fpa_lift_part *part);

/* The number of key/value heads for which constants are given, and which calls must have; 0: any number. */
int lift_heads(const fpa_head *head);

/* Whether each coordinate r is a map of element r of the vector and of nothing else, and keys have no mask: then q
 * and k can be replaced by their coordinates in place. */
bool lift_maps_only(const fpa_lift *lift);

/* lift_map: map(y). lift_map_slope: its derivative; of relu at 0 that of the left side. lift_map_bend: a bound of
 * the absolute value of its second derivative, which says how much a small error of y changes the derivative; of
 * relu 0, although the derivative jumps at 0. */
double lift_map(fpa_map map, double y);
double lift_map_slope(fpa_map map, double y);
double lift_map_bend(fpa_map map, double y);

const char *map_name(fpa_map map); /* "identity", "relu", "elu_plus_one", "softplus", "exp", "silu", "one" */

/* Checks the rules for a head's lift; called by head_validate. */
fpa_status lift_validate(const fpa_head *head, fpa_error *error);

#endif
