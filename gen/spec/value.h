/* spec_value: the values that a spec's Lua functions pass to each other. Users see opaque values.
 *
 * Branches, terms and heads are Lua userdata, so that an error at any point frees them. Each stores the line of
 * the user's file that made it. Private to gen/spec. */
#ifndef FPAC_GEN_SPEC_VALUE_H
#define FPAC_GEN_SPEC_VALUE_H

#include <lauxlib.h>
#include <lua.h>

#include "head/layer.h"
#include "head/lift.h"

/* An exact number: value, or the square root of value if that is irrational. The part of a number beyond 64 bits
 * follows the struct in its Lua value, here and in the terms and branches below. */
typedef struct spec_exact {
    bool root;
    bool negative; /* of a root: it has a minus sign */
    fpa_number value;
} spec_exact;

typedef struct spec_range {
    int first, last; /* 1-based, inclusive; empty if last == first - 1 */
} spec_range;

/* An orthogonal matrix that has not been drawn yet (drawing.c); rows 0: there is none. */
typedef struct spec_drawing {
    int rows, d;
    uint64_t seed;
} spec_drawing;

/* The fields of coordinates {...} other than factors. Those are user values of the branch: 1 .. factor_count, for
 * complex parts as many imaginary parts after them; then angle, phase and amplitude, nil if absent. */
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
    int width;   /* number of rows; 0: the head's d, or that of the part to which the weights belong */
    int listed;  /* number of columns that the user wrote, which d must equal; 0: none */
    int heads;   /* dense with a matrix for each key/value head: the number of heads; else 0 */
    bool shared; /* trainable: shared by all key/value heads */
    bool bias;   /* trainable: a column of constants follows the d columns */
    char name[HEAD_MAX_NAME + 1]; /* trainable */
    double *data;         /* dense: [heads][width][listed]; diagonal: [width], the entries themselves */
    spec_drawing drawing; /* dense: if rows > 0, the matrix is drawn later, and data is NULL */
    fpa_number *gram;     /* diagonal: [width]; NULL: all 1 */
    int *row;             /* select, diagonal: [width], 0-based */
    spec_part part;       /* coordinates */
} spec_branch;

typedef struct spec_map {
    fpa_map map;
} spec_map;

/* A term. Its branches are user values 1 .. branch_count. */
typedef struct spec_term {
    int line;
    int branch_count;
    fpa_number weight;
} spec_term;

typedef struct spec_head {
    int line;
    fpa_head *head;                /* NULL once the list has it */
    int place;                     /* then the index in the list */
    bool returned;                 /* the file returns it by itself, not only in a layer */
    int64_t memory;                /* bytes held for the head */
    int drawing_count;             /* number of matrices that are not drawn yet */
    struct spec_undrawn *drawings; /* those matrices, in memory of the head */
} spec_head;

/* A matrix of a head that is not drawn yet: its index, and how to draw it. */
typedef struct spec_undrawn {
    int matrix;
    spec_drawing drawing;
} spec_undrawn;

/* A layer. Its heads are user values 1 .. part_count. */
typedef struct spec_layer {
    int line;
    char name[HEAD_MAX_NAME + 1];
    int part_count;
    int counts[LAYER_MAX_PARTS];
} spec_layer;

/* Names of the metatables, by which messages refer to these values. */
#define SPEC_EXACT "exact number"
#define SPEC_RANGE "range"
#define SPEC_BRANCH "branch"
#define SPEC_MAP "map"
#define SPEC_TERM "term"
#define SPEC_HEAD "head"
#define SPEC_LAYER "layer"

/* The functions that each file adds to the vocabulary (script_vocabulary). */
extern const luaL_Reg spec_number_functions[], spec_field_functions[], spec_branch_functions[],
    spec_coordinates_functions[], spec_matrix_functions[], spec_drawing_functions[], spec_draw_functions[],
    spec_term_functions[], spec_head_functions[], spec_layer_functions[];

/* Create the metatables of this file's values. */
void spec_number_open(lua_State *L);
void spec_coordinates_open(lua_State *L);
void spec_head_open(lua_State *L);

/* ---- describe.c ---- */

/* Push a description of the value at index for a message: "nan", "3", "'text'", "a branch". */
const char *spec_describe(lua_State *L, int index);

/* ---- number.c ---- */

/* The memory of numbers while one function of the vocabulary runs; it is freed when the next function begins. */
arena *spec_numbers(lua_State *L);
/* Returns number; raises an error if it has no value. */
fpa_number spec_checked(lua_State *L, fpa_number number);
/* Convert a finite Lua number or an exact number at index; false: it is something else. */
bool spec_to_exact(lua_State *L, int index, spec_exact *number);
bool spec_to_double(lua_State *L, int index, double *number);
/* Convert an integer, which may be written as 8.0 or be an exact number; false: it is something else. */
bool spec_to_whole(lua_State *L, int index, int64_t *whole);
fpa_number spec_exact_square(lua_State *L, spec_exact number);

/* ---- field.c: fields of a constructor's table; `what` is the constructor's name, for messages ---- */

/* Raise an error unless the value is a table whose keys are among names (NULL ends them) or, if `list` is true,
 * indices of the list. */
void spec_fields(lua_State *L, int table, const char *what, const char *const *names, bool list);

#define SPEC_REQUIRED INT64_MIN
/* The field, an integer of low..high. If it is absent: `missing`, or an error if that is SPEC_REQUIRED. */
int64_t spec_field_whole(lua_State *L, int table, const char *what, const char *name, int64_t low,
                         int64_t high, int64_t missing);
double spec_field_double(lua_State *L, int table, const char *what, const char *name, double missing);
/* The same for a number that kernels store as float32; a number that float32 would turn into 0 or infinity is an
 * error. */
double spec_field_float(lua_State *L, int table, const char *what, const char *name, double missing);
bool spec_field_flag(lua_State *L, int table, const char *what, const char *name, bool missing);
/* The index of the field's text among words (NULL ends them); other texts are errors. */
int spec_field_word(lua_State *L, int table, const char *what, const char *name, const char *const *words,
                    int missing);
/* Copy the field, a C identifier of at most HEAD_MAX_NAME bytes. */
void spec_field_name(lua_State *L, int table, const char *what, char name[HEAD_MAX_NAME + 1]);

/* ---- matrix.c ---- */

/* Set the folder in which .npy files are searched; NULL: none may be read. */
void spec_set_folder(lua_State *L, const char *folder);
/* Push the file's matrix as a table of rows, several matrices as a list of such tables. */
int spec_push_npy(lua_State *L, const char *name);
/* Push data, [rows][columns], as a table of rows. */
void spec_push_rows(lua_State *L, const double *data, int64_t rows, int64_t columns);

/* ---- drawing.c ---- */

/* Make the rows of values, [rows][d], orthonormal, one after the other; rows <= d. */
void spec_orthogonalize(double *values, int rows, int d);
/* Draw a matrix: values is [rows][d]. */
void spec_draw(const spec_drawing *drawing, double *values);
/* Whether the table at index is an orthogonal matrix that is not drawn yet, because the spec has not read its
 * numbers; *drawing describes it. */
bool spec_is_drawing(lua_State *L, int index, spec_drawing *drawing);
/* Draw such a matrix now, since C code reads the table's rows without metamethods; other values remain unchanged. */
void spec_fill(lua_State *L, int index);

/* ---- branch.c ---- */

/* The sizes of a new branch. */
typedef struct spec_shape {
    fpa_branch_kind kind;
    int width, columns;     /* as width and listed of spec_branch */
    int heads;              /* dense */
    bool drawn_later;       /* dense: drawn later, so that numbers need no room */
    const fpa_number *gram; /* diagonal: [width], copied; NULL: all 1 */
    int values;             /* coordinates: number of user values */
} spec_shape;

/* Push a new branch, with the user's current line. */
spec_branch *spec_push_branch(lua_State *L, spec_shape shape);
/* The constructor identity(), which also stands for the map that changes nothing. */
int spec_make_identity(lua_State *L);

/* ---- returned.c ---- */

/* Move the heads among the `count` values on top of the stack, which the file returned, into list. line: the
 * file's last one, which messages name if values are no heads. */
void spec_take_heads(lua_State *L, int count, int line, fpa_head_list *list);

/* ---- head.c ---- */

/* Move the head at index to the list, if it is not there yet; returns its index in the list. */
int spec_take_head(lua_State *L, int index, fpa_head_list *list);
/* Draw the matrices that are not drawn yet, of all heads of the list (only = -1) or of the one at index `only`. */
void spec_draw_heads(lua_State *L, const fpa_head_list *list, int only);

/* ---- origin.c ---- */

/* Set the file that origins name. */
void spec_set_file(lua_State *L, const char *file);
/* Push "FILE:line". */
const char *spec_origin(lua_State *L, int line);

/* ---- layer.c ---- */

/* Add the layer at index, which the file returned, to the list, with those of its heads that are not there yet. */
void spec_take_layer(lua_State *L, int index, fpa_head_list *list);

#endif
