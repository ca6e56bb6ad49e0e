/* field: descriptions of structs, by which templates read a plan's fields by name.
 *
 * A struct has one table of fields, which ends with an empty row; gen/emit/table.c copies the fields to Lua. To
 * let templates read a field, add it to the table. */
#ifndef FPAC_GEN_PLAN_FIELD_H
#define FPAC_GEN_PLAN_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fpa_field_kind {
    FIELD_INT,
    FIELD_LONG, /* int64_t */
    FIELD_BOOL,
    FIELD_DOUBLE,
    FIELD_TEXT,
    FIELD_INTS, /* pointers to an array, with `count`, `times` and `more` */
    FIELD_DOUBLES,
    FIELD_TEXTS,
    FIELD_VALUE,  /* the constant `value` */
    FIELD_STRUCT, /* a table of its own */
    FIELD_STRUCTS /* an array of tables: of structs in the struct itself, or to which it points */
} fpa_field_kind;

typedef struct fpa_field {
    const char *name; /* name that templates use; NULL: the end of the table */
    fpa_field_kind kind;
    size_t offset; /* of the field in the struct */
    /* arrays have `times` * n + `more` elements, where n is the int at offset `count` */
    size_t count;
    int times, more;
    /* structs: their fields, their size, and whether the field is a pointer to them */
    const struct fpa_field *fields;
    size_t size;
    bool pointer;
    int value; /* FIELD_VALUE: the constant; FIELD_INT: added (1 turns an index into Lua's) */
} fpa_field;

/* One struct of a plan with the table of its fields. */
typedef struct fpa_field_set {
    const char *table; /* name of the Lua table within `plan`; NULL: `plan` itself */
    const fpa_field *fields;
    const void *of; /* the struct; NULL: the plan has none, and its table is false */
} fpa_field_set;

#define FIELD_KIND(type, member)                                                                             \
    _Generic(((type *)0)->member,                                                                             \
        int: FIELD_INT,                                                                                       \
        int64_t: FIELD_LONG,                                                                                  \
        bool: FIELD_BOOL,                                                                                     \
        double: FIELD_DOUBLE,                                                                                 \
        char *: FIELD_TEXT,                                                                                   \
        const char *: FIELD_TEXT,                                                                             \
        int *: FIELD_INTS,                                                                                    \
        const int *: FIELD_INTS,                                                                              \
        double *: FIELD_DOUBLES,                                                                              \
        const char **: FIELD_TEXTS)

/* clang-format off */
#define FIELD_AT(type, member) .kind = FIELD_KIND(type, member), .offset = offsetof(type, member)
/* FIELD: by the member's name. FIELD_AS: by another name. FIELD_INDEX: an index, counted from 1 in Lua.
 * FIELD_CONSTANT: a number that is in no struct. */
#define FIELD(type, member) {.name = #member, FIELD_AT(type, member)}
#define FIELD_AS(type, name_, member) {.name = name_, FIELD_AT(type, member)}
#define FIELD_INDEX(type, member) {.name = #member, FIELD_AT(type, member), .value = 1}
#define FIELD_CONSTANT(name_, value_) {.name = name_, .kind = FIELD_VALUE, .value = value_}
/* An array of `times` * counter + `more` elements. */
#define FIELD_ARRAY(type, name_, member, counter, times_, more_) \
    {.name = name_, FIELD_AT(type, member), .count = offsetof(type, counter), .times = times_, .more = more_}
/* FIELD_PART: a struct. FIELD_PARTS: an array of structs; pointer_: the member points to it. */
#define FIELD_PART(type, name_, member, fields_) \
    {.name = name_, .kind = FIELD_STRUCT, .offset = offsetof(type, member), .fields = fields_}
#define FIELD_PARTS(type, name_, member, counter, fields_, pointer_) \
    {.name = name_, .kind = FIELD_STRUCTS, .offset = offsetof(type, member), .fields = fields_, \
     .count = offsetof(type, counter), .times = 1, .pointer = pointer_, .size = sizeof *((type *)0)->member}
#define FIELDS_END {0}
/* clang-format on */

#endif
