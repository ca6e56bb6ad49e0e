/* spec_value: what a spec's Lua functions hand to each other. Users see opaque values.
 *
 * A branch, a term and a head are Lua userdata, so that an error at any point frees them.
 * Each remembers the user's line that made it. Private to gen/spec*.c. */
#ifndef FPAC_GEN_SPEC_VALUE_H
#define FPAC_GEN_SPEC_VALUE_H

#include <lauxlib.h>
#include <lua.h>

#include "head/layer.h"
#include "head/lift.h"

/* An exact number: value, or the square root of value where that is no rational. What value needs
 * beyond 64 bits follows the struct in its Lua value; here and in the terms and branches below. */
typedef struct spec_exact {
    bool root;
    bool negative; /* of a root: the sign before it */
    fpa_number value;
} spec_exact;

typedef struct spec_range {
    int first, last; /* 1-based, both included; empty when last == first - 1 */
} spec_range;

/* An orthogonal matrix that is not drawn yet; rows 0: there is none. */
typedef struct spec_drawing {
    int rows, d;
    uint64_t seed;
} spec_drawing;

/* What coordinates {...} say beside their factors. These are the branch's user values: 1 .. factor_count, of complex
 * ones as many imaginary parts behind them, then angle, phase and amplitude, nil where there is none. */
typedef struct spec_part {
    int factor_count;
    bool is_complex;
    double inner, square, shift;
    fpa_map map[FPA_SIDES];
    double gain[FPA_SIDES];
} spec_part;

enum spec_weight { SPEC_ANGLE, SPEC_PHASE, SPEC_AMPLITUDE, SPEC_WEIGHTS };

typedef struct spec_branch {
    fpa_branch_kind kind;
    int line;
    int width;   /* rows; 0: as many as the head's d, or as the part whose weights they are */
    int listed;  /* columns that the user wrote out, and that d must equal; 0: none */
    int heads;   /* dense, a matrix a key/value head: how many heads that is; else 0 */
    bool shared; /* trainable: by all key/value heads */
    bool bias;   /* trainable: a column behind those of d, which is added */
    char name[HEAD_MAX_NAME + 1]; /* trainable */
    double *data;         /* dense: [heads][width][listed]; diagonal: [width], the entries themselves */
    spec_drawing drawing; /* dense: what the matrix is, and there is no data then */
    fpa_number *gram;     /* diagonal: [width]; NULL: all 1 */
    int *row;             /* select, diagonal: [width], 0-based */
    spec_part part;       /* coordinates */
} spec_branch;

typedef struct spec_map {
    fpa_map map;
} spec_map;

/* Its branches are its user values 1 .. branch_count. */
typedef struct spec_term {
    int line;
    int branch_count;
    fpa_number weight;
} spec_term;

typedef struct spec_head {
    int line;
    fpa_head *head;                /* NULL once it was taken, */
    int place;                     /* when this is its index in the list */
    bool returned;                 /* by the file itself, and not in a layer alone */
    int64_t memory;                /* bytes that are held for it */
    int drawing_count;             /* matrices whose numbers nobody has drawn, */
    struct spec_undrawn *drawings; /* in memory of the head */
} spec_head;

/* A matrix of a head, by its index. */
typedef struct spec_undrawn {
    int matrix;
    spec_drawing drawing;
} spec_undrawn;

/* Its heads are its user values 1 .. part_count. */
typedef struct spec_layer {
    int line;
    char name[HEAD_MAX_NAME + 1];
    int part_count;
    int counts[LAYER_MAX_PARTS];
} spec_layer;

/* The metatables' names, which are also what messages call these values. */
#define SPEC_EXACT "exact number"
#define SPEC_RANGE "range"
#define SPEC_BRANCH "branch"
#define SPEC_MAP "map"
#define SPEC_TERM "term"
#define SPEC_HEAD "head"
#define SPEC_LAYER "layer"

/* The functions of each file, for script_vocabulary. */
extern const luaL_Reg spec_number_functions[], spec_field_functions[], spec_branch_functions[],
    spec_coordinates_functions[], spec_matrix_functions[], spec_drawing_functions[], spec_draw_functions[],
    spec_term_functions[], spec_head_functions[], spec_layer_functions[];

/* Create the metatables of this file's values. */
void spec_number_open(lua_State *L);
void spec_coordinates_open(lua_State *L);
void spec_head_open(lua_State *L);

/* ---- describe.c ---- */

/* The value at index for a message: "nan", "3", "'text'", "a branch"; pushed. */
const char *spec_describe(lua_State *L, int index);

/* ---- number.c ---- */

/* The memory of numbers while one function of the vocabulary runs, which frees it when it starts. */
arena *spec_numbers(lua_State *L);
/* number, or the error of one without a value. */
fpa_number spec_checked(lua_State *L, fpa_number number);
/* A finite Lua number or an exact number at index; false: something else. */
bool spec_to_exact(lua_State *L, int index, spec_exact *number);
bool spec_to_double(lua_State *L, int index, double *number);
/* An integer, also as 8.0 or as an exact number. */
bool spec_to_whole(lua_State *L, int index, int64_t *whole);
fpa_number spec_exact_square(lua_State *L, spec_exact number);

/* ---- field.c: fields of a constructor's table; what names the constructor ---- */

/* Refuse what is no table, or has a key that is neither of names (NULL ends them) nor, where
 * list is true, an index of the list. */
void spec_fields(lua_State *L, int table, const char *what, const char *const *names, bool list);

#define SPEC_REQUIRED INT64_MIN
/* An integer of low..high; missing when the field is absent, unless that is SPEC_REQUIRED. */
int64_t spec_field_whole(lua_State *L, int table, const char *what, const char *name, int64_t low,
                         int64_t high, int64_t missing);
double spec_field_double(lua_State *L, int table, const char *what, const char *name, double missing);
/* The same of a number that kernels have as float32: what float32 would make 0 or infinite is refused. */
double spec_field_float(lua_State *L, int table, const char *what, const char *name, double missing);
bool spec_field_flag(lua_State *L, int table, const char *what, const char *name, bool missing);
/* The index of the field's text among words (NULL ends them). */
int spec_field_word(lua_State *L, int table, const char *what, const char *name, const char *const *words,
                    int missing);
/* A C identifier of at most HEAD_MAX_NAME bytes, copied. */
void spec_field_name(lua_State *L, int table, const char *what, char name[HEAD_MAX_NAME + 1]);

/* ---- matrix.c ---- */

/* Where .npy files are looked for; NULL: they may not be read. */
void spec_set_folder(lua_State *L, const char *folder);
/* Push the file's matrix as a table of rows, several matrices as a list of such tables. */
int spec_push_npy(lua_State *L, const char *name);
/* Push data, [rows][columns], as a table of rows. */
void spec_push_rows(lua_State *L, const double *data, int64_t rows, int64_t columns);

/* ---- drawing.c ---- */

/* Make rows of d numbers orthonormal, one after the other; at most d of them. */
void spec_orthogonalize(double *values, int rows, int d);
/* values: [rows][d] */
void spec_draw(const spec_drawing *drawing, double *values);
/* Whether the table at index is an orthogonal matrix whose numbers the spec has not read, and which therefore is
 * not drawn yet. */
bool spec_is_drawing(lua_State *L, int index, spec_drawing *drawing);
/* Draws such a matrix now, before C code reads the table's rows without metamethods; other values remain
 * unchanged. */
void spec_fill(lua_State *L, int index);

/* ---- branch.c ---- */

/* What a new branch needs room for. */
typedef struct spec_shape {
    fpa_branch_kind kind;
    int width, columns;     /* spec_branch's width and listed */
    int heads;              /* dense */
    bool drawn_later;       /* dense: without room for numbers */
    const fpa_number *gram; /* diagonal: [width], copied; NULL: all 1 */
    int values;             /* coordinates: how many values belong to the branch */
} spec_shape;

/* A new branch on the stack, of the user's current line. */
spec_branch *spec_push_branch(lua_State *L, spec_shape shape);
/* identity() itself stands for the map that changes nothing. */
int spec_make_identity(lua_State *L);

/* ---- returned.c ---- */

/* Move the heads among the `count` values on top of the stack, which the file returned, into
 * list. line is the file's last: the one to blame when they are not heads. */
void spec_take_heads(lua_State *L, int count, int line, fpa_head_list *list);

/* ---- head.c ---- */

/* The head at index, in the list from now on; its place there. */
int spec_take_head(lua_State *L, int index, fpa_head_list *list);
/* Draw what is left to draw of the list's heads, or of the one at `only` alone (-1: all). */
void spec_draw_heads(lua_State *L, const fpa_head_list *list, int only);

/* ---- origin.c ---- */

/* Stands before the line in an origin. */
void spec_set_file(lua_State *L, const char *file);
/* "FILE:line", pushed. */
const char *spec_origin(lua_State *L, int line);

/* ---- layer.c ---- */

/* The layer at index, which the file returned, and those of its heads that are not in the list yet. */
void spec_take_layer(lua_State *L, int index, fpa_head_list *list);

#endif
