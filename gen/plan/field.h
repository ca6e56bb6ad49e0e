/* field: descriptions of structs, so that plans go to templates by the names of their fields.
 *
 * A struct has one table, which ends with an empty row; gen/emit/table.c walks it. A field that a template
 * shall read is a line here and nothing else. */
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
    FIELD_INTS, /* pointers to so many of them */
    FIELD_DOUBLES,
    FIELD_TEXTS,
    FIELD_VALUE,  /* `value`, whatever is in the struct */
    FIELD_STRUCT, /* a table of its own */
    FIELD_STRUCTS /* several, in the struct itself or behind a pointer */
} fpa_field_kind;

typedef struct fpa_field {
    const char *name; /* that templates read; NULL: the table's end */
    fpa_field_kind kind;
    size_t offset; /* in the struct */
    /* several: as many as the int there says, times `times`, and `more` */
    size_t count;
    int times, more;
    /* structs: their own fields and bytes */
    const struct fpa_field *fields;
    size_t size;
    bool pointer;
    int value; /* FIELD_VALUE; FIELD_INT, FIELD_LONG: added (Lua counts from 1) */
} fpa_field;

/* A table of fields for one struct, as a back end hands it out. */
typedef struct fpa_field_set {
    const char *table; /* of the plan; NULL: the plan itself */
    const fpa_field *fields;
    const void *of; /* NULL: there is none; its table is false */
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
/* By its own name; by another one; as Lua counts; of a name that no field has. */
#define FIELD(type, member) {.name = #member, FIELD_AT(type, member)}
#define FIELD_AS(type, name_, member) {.name = name_, FIELD_AT(type, member)}
#define FIELD_INDEX(type, member) {.name = #member, FIELD_AT(type, member), .value = 1}
#define FIELD_CONSTANT(name_, value_) {.name = name_, .kind = FIELD_VALUE, .value = value_}
/* `times` elements for each of counter, and `more`. */
#define FIELD_ARRAY(type, name_, member, counter, times_, more_) \
    {.name = name_, FIELD_AT(type, member), .count = offsetof(type, counter), .times = times_, .more = more_}
/* A struct; several, that lie behind a pointer if so. */
#define FIELD_PART(type, name_, member, fields_) \
    {.name = name_, .kind = FIELD_STRUCT, .offset = offsetof(type, member), .fields = fields_}
#define FIELD_PARTS(type, name_, member, counter, fields_, pointer_) \
    {.name = name_, .kind = FIELD_STRUCTS, .offset = offsetof(type, member), .fields = fields_, \
     .count = offsetof(type, counter), .times = 1, .pointer = pointer_, .size = sizeof *((type *)0)->member}
#define FIELDS_END {0}
/* clang-format on */

#endif
