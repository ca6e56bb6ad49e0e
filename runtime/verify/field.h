/* field: a tensor as verification gives it to a module: of any strides, with poison (NaN) in all bytes outside its elements, and guards
 * before and after it. */
#ifndef FPAC_RUNTIME_VERIFY_FIELD_H
#define FPAC_RUNTIME_VERIFY_FIELD_H

#include "abi/source.h"
#include "blocks.h"

typedef enum fpa_layout {
    LAYOUT_PLAIN,      /* C order */
    LAYOUT_PADDED,     /* C order with gaps after each axis, at an odd address */
    LAYOUT_HEAD_MAJOR, /* [batch, head, token, entry] with gaps */
    /* C order, the token stride a multiple of 8 elements: a head may begin inside such a unit, at the same offset for all tokens */
    LAYOUT_PIECES,
    LAYOUTS
} fpa_layout;

typedef struct fpa_field {
    fpa_dtype dtype;
    int64_t batch, tokens, heads, entries;
    int64_t stride[3]; /* batch, token, head; in elements */
    unsigned char *bytes;
    size_t size;          /* of bytes, with guards */
    unsigned char *first; /* the element at the origin */
    fpa_blocks *blocks;   /* where bytes are taken from and returned to; NULL: malloc */
    uint64_t stamp;       /* identifies the contents: fields with the same known stamp have the same bytes */
} fpa_field;

/* Stamps: unknown contents, poison, and the first one that field_stamp assigns. */
enum { STAMP_NONE, STAMP_POISON, STAMP_FIRST };

/* Makes a field filled with poison; {0} after an error. */
fpa_status field_make(fpa_field *field, fpa_blocks *blocks, fpa_dtype dtype, fpa_layout layout, int64_t batch,
                      int64_t tokens, int64_t heads, int64_t entries, fpa_error *error);
void field_free(fpa_field *field);

unsigned char *field_at(const fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry);
/* The address of token `from`, and the strides. */
void *field_from(const fpa_field *field, int64_t from, int64_t stride[3]);
double field_get(const fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry);
void field_put(fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry, double value);
/* Sets all elements from an array of doubles in C order. */
void field_fill(fpa_field *field, const double *values);
void field_poison(fpa_field *field);
/* Gives the present contents a stamp of their own, after single elements were written, so that copies on a device
 * can be recognised and kept. */
void field_stamp(fpa_field *field);
void field_copy(fpa_field *to, const fpa_field *from); /* fields of the same shape; copies the guards, too */
/* The 16-bit number that poison repeats, on little-endian machines. */
uint16_t field_poison_unit(void);
/* Whether an element is poison. */
bool field_is_poison(const fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry);
/* Whether all elements of a row are poison. */
bool field_row_is_poison(const fpa_field *field, int64_t b, int64_t t, int64_t h);

/* Whether no byte outside the elements has changed. */
bool field_guards_hold(const fpa_field *field);

/* Whether two rows of a head, at token 0, have the same numbers; zeros of either sign are equal. */
bool field_same_numbers(const fpa_field *field, int64_t a, int64_t b, int64_t h);

/* Properties of all elements. */
typedef struct fpa_scan {
    bool poison, infinite, nonzero; /* infinite: or NaN */
} fpa_scan;

fpa_scan field_scan(const fpa_field *field);

/* Whether tokens [from, to) of two fields of the same shape have equal bits. */
bool field_equal(const fpa_field *a, const fpa_field *b, int64_t from, int64_t to);

#endif
