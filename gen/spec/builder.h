/* builder: a head that is being made of a spec's values. Private to gen/spec. */
#ifndef FPAC_GEN_SPEC_BUILDER_H
#define FPAC_GEN_SPEC_BUILDER_H

#include "value.h"

/* How the head's lift is being made. */
typedef struct spec_lift {
    bool needed;
    int known;                 /* stack index of a table: the part of each branch seen */
    int one;                   /* the part of ones; -1: none is needed */
    bool used[HEAD_MAX_WIDTH]; /* coordinates of q and k that branches take as they are */
    int place[HEAD_MAX_WIDTH]; /* which coordinate of the lift that is */
    int first[LIFT_MAX_PARTS]; /* first coordinate of each part */
} spec_lift;

/* The head belongs to a Lua value, so that an error frees it. */
typedef struct builder {
    lua_State *L;
    fpa_head *head;
    int width;     /* of q and k: the spec's d */
    int positions; /* numbers of a token's position */
    bool key_mask;
    int terms; /* stack index of the flat list of terms */
    int count; /* of terms in it */
    int block; /* that the lists of terms ask for */
    int matrix_capacity;
    int64_t *held; /* bytes that are counted for the head */
    int undrawn_count, undrawn_capacity;
    spec_undrawn *undrawn; /* [undrawn_count] matrices whose numbers are not drawn yet */
    spec_lift lift;
} builder;

/* Branch l of term t, for messages. */
typedef struct place {
    int l, t;
} place;

/* Memory of the head, counted. */
void builder_hold(builder *b, int64_t bytes);
void *builder_take(builder *b, size_t count, size_t size);

/* The number of a branch's matrix; equal matrices are one matrix, however often the spec wrote them, and so are
 * trainable ones of one name. A trainable one has the rows and columns given. */
int builder_constant(builder *b, const spec_branch *branch);
/* The same for a matrix whose numbers the spec has not read: they are drawn after the spec has run. */
int builder_constant_later(builder *b, const spec_branch *branch);
/* Its numbers rounded to float32, as weights given at run time are. */
int builder_constant_rounded(builder *b, const spec_branch *branch);
int builder_trainable(builder *b, const spec_branch *branch, int rows, int columns);

/* A branch of select or diagonal names coordinates that there are. */
void builder_check_indices(builder *b, const spec_branch *branch, place at);

/* The Gram weights of a branch that has some. */
void builder_copy_grams(builder *b, const spec_branch *branch, fpa_branch *out);

/* ---- lift.c ---- */

/* Make the lift, when a term or a field of the head needs one: its parts, and so the number of coordinates. */
void builder_lift(builder *b);
/* A branch (a stack index) of a head with a lift: rows of the coordinates. */
void builder_lift_branch(builder *b, int branch, fpa_branch *out);
/* A term without a branch has one there whose rows are 1, if keys may be masked. */
bool builder_lift_constant(builder *b, fpa_term *out);

#endif
