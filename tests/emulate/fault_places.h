/* fault_places: where mistakes of tests/emulate/faults.h are, and of which kind. */
#ifndef FPAC_TESTS_EMULATE_FAULT_PLACES_H
#define FPAC_TESTS_EMULATE_FAULT_PLACES_H

#include "../fault.h"

/* Kernels of tiles, whose vectors come by the copy engine or by threads, and of segments that begin with a state; the
 * kernel of one pass, the same, where it makes coordinates of packed rows, where keys of a total are shared out, where one warpgroup holds the state and has queries, of coordinates as they lie, and of rows as they
 * lie, by words, by boxes and with a gate, also as factors of keys and of queries, and a strong one, and of features that are packed as rows; of clusters, also where o has no place of its own, and where coordinates are made: maps, turned by
 * positions, and of a product with a matrix; of one token; of tiles, of panels, and of one pass, where queries read the state of all keys; of coordinates, by tensor
 * cores, with sums of them, with run-time matrices, with matrices that are read each time, by warpgroups, also with run-time matrices, and by plain sums; of
 * windows, where keys in them are masked, and in one pass, also where rings are gone round; of tiles, also where tokens have positions, of one pass, and of
 * clusters, where lengths of sequences differ, where clusters share sequences and where they take whole ones;
 * of tiles, where values lean; of product rows, where blocks fetch some slabs of vectors, where the row of ones lies behind boxes of coordinates, also where lengths differ, and where dots go two after two; of packed rows that lie here and there, and whose matrices come by
 * turns. */
enum fault_place {
    BY_BOXES,
    BY_THREADS,
    IN_SEGMENTS,
    IN_CHUNKS_OF_SEGMENTS, /* of several each, with slow gates, */
    IN_CHUNKS_OF_PASSES,   /* also in one pass */
    IN_ROUNDS,
    IN_FUSED,
    IN_FUSED_BY_THREADS,
    IN_LIFTED_ROWS,
    IN_TOTALS,
    IN_AHEAD,
    IN_HEADS_AHEAD, /* of several heads of keys, each of several of queries */
    IN_COORDINATES_AHEAD,
    IN_JOINED,
    IN_COORDINATES,
    IN_ROWS,
    IN_BOXED_ROWS,
    IN_GATED_ROWS,
    IN_FACTORED_ROWS,
    IN_STRONG_GATES,
    IN_BLOCKS_OF_ROWS,
    IN_FEATURES,
    IN_CLUSTER_SCAN,
    IN_WIDE_CLUSTER_SCAN,
    IN_MAPPED_CLUSTER_SCAN,
    IN_TURNED_CLUSTER_SCAN,
    IN_PRODUCT_CLUSTER_SCAN,
    IN_TOKEN,
    IN_LEANING_TOKEN,
    IN_RECENT_TOKENS, /* more than a block weighs at a time */
    WITHOUT_MASK,
    WITHOUT_MASK_IN_PANELS,
    WITHOUT_MASK_IN_PASS,
    IN_PACKED_PANELS, /* of portable kernels */
    IN_PACKED_PANELS_OF_SEQUENCES,
    IN_LIFT,
    IN_LIFT_SUMS,
    IN_LIFT_WEIGHTS,
    IN_BROAD_LIFT,
    IN_LIFT_GROUPS,
    IN_LIFT_GROUPS_CUT,
    IN_LIFT_GROUP_SQUARES,
    IN_LIFT_GROUP_WEIGHTS,
    IN_LIFTING_PASS,
    IN_ALIKE_LIFTING_PASS,
    IN_OWN_PASS,
    IN_TURNING_PASS,
    IN_TURNING_STATES,
    IN_PLAIN_LIFT,
    IN_WINDOW,
    IN_MASKED_WINDOW,
    IN_NEAR_PASS,
    IN_NEAR_ROUNDS,
    IN_NEAR_TASKS, /* the same of a pass whose packing is tasks */
    IN_SEQUENCES,
    IN_PLACED_SEQUENCES,
    IN_PASSED_SEQUENCES,
    IN_SCANNED_SEQUENCES,
    IN_SHARED_SCAN,
    IN_LEANING,
    IN_WHOLE_SCAN,
    IN_PRODUCTS,
    IN_SLABS,
    IN_BOXES,
    IN_BOXED_SEQUENCES,
    IN_TURN,
    IN_APART,
    IN_APART_BESIDE_WALK,
    IN_PARTS,
    IN_CUT_GROUPS,
    IN_PACKED,
    IN_PACKED_TURNS,
    IN_PACKED_NARROW,
    IN_GIVEN_ROWS,
    IN_GIVEN_SEQUENCES,
    PLACES
};

/* What is wrong. */
enum fault_kind {
    OTHER_PLACE, /* numbers are read or written that belong elsewhere */
    LEFT_OUT,    /* something is not done */
    NO_FADE,     /* gates are ignored */
    NOT_AWAITED, /* numbers are read before they are there */
    NOT_TOLD,    /* who waits is told too late, too early, or of something else */
    OTHER_COUNT, /* a barrier counts wrong */
    NO_FENCE,    /* the copy engine or matrix instructions need not see what was written */
    TOO_EARLY,   /* a place is written again while it is read */
    NEVER_FREE,  /* a place is never given back */
    KINDS
};

struct emulated_fault {
    enum fault_place place;
    enum fault_kind kind;
    struct fault fault;
};

#endif
