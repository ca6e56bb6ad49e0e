/* verify_field: a tensor as verification hands it to a module: any strides, poison (NaN) in every
 * byte that is no element, guards before and behind. */
#ifndef FPAC_RUNTIME_VERIFY_FIELD_H
#define FPAC_RUNTIME_VERIFY_FIELD_H

#include "abi/source.h"
#include "blocks.h"

typedef enum fpa_layout {
    LAYOUT_PLAIN,      /* C order */
    LAYOUT_PADDED,     /* C order with gaps behind each axis, at an odd address */
    LAYOUT_HEAD_MAJOR, /* [batch, head, token, entry] with gaps */
    LAYOUT_PIECES, /* C order, tokens whole pieces of 8 elements apart: heads may begin amid one, all tokens alike */
    LAYOUTS
} fpa_layout;

typedef struct fpa_field {
    fpa_dtype dtype;
    int64_t batch, tokens, heads, entries;
    int64_t stride[3]; /* batch, token, head; in elements */
    unsigned char *bytes;
    size_t size;          /* of all bytes */
    unsigned char *first; /* the element at the origin */
    fpa_blocks *blocks;   /* where bytes come from and go to; NULL: the system */
    uint64_t stamp;       /* identifies the contents: fields with the same known stamp have the same bytes */
} fpa_field;

/* Stamps: unknown contents, poison, and the first one that field_stamp assigns. */
enum { STAMP_NONE, STAMP_POISON, STAMP_FIRST };

/* All poison. The field is empty ({0}) on failure. */
fpa_status field_make(fpa_field *field, fpa_blocks *blocks, fpa_dtype dtype, fpa_layout layout, int64_t batch,
                      int64_t tokens, int64_t heads, int64_t entries, fpa_error *error);
void field_free(fpa_field *field);

unsigned char *field_at(const fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry);
/* Where tokens from `from` on begin, and their strides. */
void *field_from(const fpa_field *field, int64_t from, int64_t stride[3]);
double field_get(const fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry);
void field_put(fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry, double value);
/* Every element from a C-order array of doubles. */
void field_fill(fpa_field *field, const double *values);
void field_poison(fpa_field *field);
/* Gives the present contents a stamp of their own, after single elements were written, so that copies on a device
 * can be recognised and kept. */
void field_stamp(fpa_field *field);
void field_copy(fpa_field *to, const fpa_field *from); /* of the same shape, guards and all */
/* What poison repeats, as little-endian machines have it in memory. */
uint16_t field_poison_unit(void);
/* True while the element is poison. */
bool field_is_poison(const fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry);
/* True while every element of a row is. */
bool field_row_is_poison(const fpa_field *field, int64_t b, int64_t t, int64_t h);

/* No byte outside the elements has changed. */
bool field_guards_hold(const fpa_field *field);

/* True when two rows of a head, at token 0, have the same numbers: zeros of either sign are one. */
bool field_same_numbers(const fpa_field *field, int64_t a, int64_t b, int64_t h);

/* What occurs among the elements. */
typedef struct fpa_scan {
    bool poison, infinite, nonzero; /* infinite: or not a number */
} fpa_scan;

fpa_scan field_scan(const fpa_field *field);

/* True when tokens [from, to) of two fields of one shape have equal bits. */
bool field_equal(const fpa_field *a, const fpa_field *b, int64_t from, int64_t to);

#endif
