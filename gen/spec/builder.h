/* builder: a head under construction from a spec's values. Private to gen/spec. */
#ifndef FPAC_GEN_SPEC_BUILDER_H
#define FPAC_GEN_SPEC_BUILDER_H

#include "value.h"

/* The head's lift, while it is constructed. */
typedef struct spec_lift {
    bool needed;
    int known;                 /* stack index of a table: the part of each branch seen */
    int one;                   /* the part of ones; -1: none is needed */
    bool used[HEAD_MAX_WIDTH]; /* coordinates of q and k that branches use unchanged */
    int place[HEAD_MAX_WIDTH]; /* index of each of these among the coordinates of the lift */
    int first[LIFT_MAX_PARTS]; /* first coordinate of each part */
} spec_lift;

/* A head under construction. It belongs to a Lua value, so that an error frees it. */
typedef struct builder {
    lua_State *L;
    fpa_head *head;
    int width;     /* of q and k: the spec's d */
    int positions; /* numbers of a token's position */
    bool key_mask;
    int terms; /* stack index of the flat list of terms */
    int count; /* of terms in it */
    int block; /* block that the lists of terms ask for */
    int matrix_capacity;
    int64_t *held; /* bytes of the head that count against the memory limit */
    int undrawn_count, undrawn_capacity;
    spec_undrawn *undrawn; /* [undrawn_count] matrices whose numbers are not drawn yet */
    spec_lift lift;
} builder;

/* A place for messages: branch l of term t. */
typedef struct place {
    int l, t;
} place;

/* builder_hold counts bytes of the head against the memory limit; builder_take allocates from the head's memory
 * and counts it. */
void builder_hold(builder *b, int64_t bytes);
void *builder_take(builder *b, size_t count, size_t size);

/* The index of a branch's matrix in the head, to which it is added. Equal matrices are added once, and so are
 * trainable matrices with equal names. A trainable matrix has the given rows and columns. */
int builder_constant(builder *b, const spec_branch *branch);
/* The same for a matrix whose numbers the spec has not read: they are drawn after the spec has run. */
int builder_constant_later(builder *b, const spec_branch *branch);
/* The same with numbers rounded to float32, as weights given at run time are. */
int builder_constant_rounded(builder *b, const spec_branch *branch);
int builder_trainable(builder *b, const spec_branch *branch, int rows, int columns);

/* Checks that a branch of select or diagonal refers to existing coordinates. */
void builder_check_indices(builder *b, const spec_branch *branch, place at);

/* Copies a branch's Gram weights, if it has any. */
void builder_copy_grams(builder *b, const spec_branch *branch, fpa_branch *out);

/* ---- lift.c ---- */

/* Make the lift, with all its parts and so the number of coordinates, if a term or a field of the head needs one. */
void builder_lift(builder *b);
/* *out: the branch at a stack index, as rows of the lift's coordinates. */
void builder_lift_branch(builder *b, int branch, fpa_branch *out);
/* If keys may be masked, a term without branches gets a branch on a coordinate that is 1; false: it needs none. */
bool builder_lift_constant(builder *b, fpa_term *out);

#endif
