/* field: tensors filled with poison, so that reads and writes outside their elements are found. */
#include "field.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/dtype.h"
#include "base/round.h"

enum { GUARD = 256, ONCE = 1 << 14 /* bytes of poison that are copied at once, from a near cache */ };

/* The poison: NaN in every dtype, a signalling NaN in f32 and bf16. Arithmetic on it gives other bits, so that an element that still is
 * poison was never written. */
static const unsigned char poison[4] = {0xad, 0xff, 0xad, 0xff};

/* size is even. */
static void put_poison(unsigned char *bytes, size_t size)
{
    size_t filled = size < sizeof poison ? size : sizeof poison;
    memcpy(bytes, poison, filled);
    for (size_t more; filled < size; filled += more) {
        more = filled < size - filled ? filled : size - filled;
        more = more < ONCE ? more : ONCE;
        memcpy(bytes + filled, bytes, more);
    }
}

static void choose_strides(fpa_field *f, fpa_layout layout)
{
    enum { PIECE = 8 };
    const int64_t gap = layout == LAYOUT_PADDED || layout == LAYOUT_HEAD_MAJOR ? 3 : 0;
    if (layout == LAYOUT_HEAD_MAJOR) {
        f->stride[1] = f->entries + gap;
        f->stride[2] = f->stride[1] * f->tokens + gap;
        f->stride[0] = f->stride[2] * f->heads + gap;
    } else {
        f->stride[2] = f->entries + gap;
        f->stride[1] = f->stride[2] * f->heads + gap;
        if (layout == LAYOUT_PIECES)
            f->stride[1] = round_up(f->stride[1], PIECE);
        f->stride[0] = f->stride[1] * f->tokens + gap;
    }
}

fpa_status field_make(fpa_field *field, fpa_blocks *blocks, fpa_dtype dtype, fpa_layout layout, int64_t batch,
                      int64_t tokens, int64_t heads, int64_t entries, fpa_error *error)
{
    size_t element = dtype_size(dtype);
    *field =
        (fpa_field){.dtype = dtype, .batch = batch, .tokens = tokens, .heads = heads, .entries = entries};
    choose_strides(field, layout);
    field->size = 2 * GUARD + (size_t)(field->stride[0] * batch + 1) * element;
    field->blocks = blocks;
    field->bytes = blocks_take(blocks, 0, field->size);
    if (!field->bytes) {
        *field = (fpa_field){0};
        return fail_memory(error);
    }
    field->first =
        field->bytes + GUARD + (layout == LAYOUT_PADDED || layout == LAYOUT_HEAD_MAJOR ? element : 0);
    field_poison(field);
    return FPA_OK;
}

void field_free(fpa_field *field)
{
    blocks_leave(field->blocks, field->bytes, 0, field->size);
    *field = (fpa_field){0};
}

unsigned char *field_at(const fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry)
{
    int64_t at = b * field->stride[0] + t * field->stride[1] + h * field->stride[2] + entry;
    return field->first + at * (int64_t)dtype_size(field->dtype);
}

void *field_from(const fpa_field *field, int64_t from, int64_t stride[3])
{
    memcpy(stride, field->stride, sizeof field->stride);
    return field_at(field, 0, from, 0, 0);
}

double field_get(const fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry)
{
    return dtype_load(field->dtype, field_at(field, b, t, h, entry));
}

void field_put(fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry, double value)
{
    field->stamp = STAMP_NONE;
    dtype_store(field->dtype, field_at(field, b, t, h, entry), value);
}

void field_stamp(fpa_field *field)
{
    static _Atomic uint64_t last = STAMP_FIRST;
    field->stamp = atomic_fetch_add(&last, 1);
}

void field_copy(fpa_field *to, const fpa_field *from)
{
    memcpy(to->bytes, from->bytes, from->size);
    to->stamp = from->stamp;
}

void field_fill(fpa_field *field, const double *values)
{
    for (int64_t b = 0; b < field->batch; b++)
        for (int64_t t = 0; t < field->tokens; t++)
            for (int64_t h = 0; h < field->heads; h++)
                for (int64_t i = 0; i < field->entries; i++)
                    field_put(field, b, t, h, i, *values++);
    field_stamp(field);
}

void field_poison(fpa_field *field)
{
    put_poison(field->bytes, field->size);
    field->stamp = STAMP_POISON;
}

uint16_t field_poison_unit(void)
{
    uint16_t unit;
    memcpy(&unit, poison, sizeof unit);
    return unit;
}

bool field_is_poison(const fpa_field *field, int64_t b, int64_t t, int64_t h, int64_t entry)
{
    return memcmp(field_at(field, b, t, h, entry), poison, dtype_size(field->dtype)) == 0;
}

/* Whether bytes [from, to) of a field are still poison, whose period is two bytes. */
static bool holds_poison(const fpa_field *field, size_t from, size_t to)
{
    const unsigned char *bytes = field->bytes + from;
    size_t size = to - from;
    if (size > 0 && bytes[0] != poison[from % 2])
        return false;
    if (size > 1 && bytes[1] != poison[(from + 1) % 2])
        return false;
    return size <= 2 || memcmp(bytes, bytes + 2, size - 2) == 0;
}

bool field_row_is_poison(const fpa_field *field, int64_t b, int64_t t, int64_t h)
{
    const size_t from = (size_t)((const unsigned char *)field_at(field, b, t, h, 0) - field->bytes);
    return holds_poison(field, from, from + (size_t)field->entries * dtype_size(field->dtype));
}

/* Offset of the i-th row in memory order. */
static size_t row_offset(const fpa_field *field, int64_t i)
{
    bool by_head = field->stride[2] > field->stride[1];
    int64_t inner = by_head ? field->tokens : field->heads, outer = by_head ? field->heads : field->tokens;
    int64_t t = i % inner, h = i / inner % outer;
    if (!by_head) {
        int64_t swap = t;
        t = h;
        h = swap;
    }
    return (size_t)(field_at(field, i / inner / outer, t, h, 0) - field->bytes);
}

bool field_guards_hold(const fpa_field *field)
{
    size_t row = (size_t)field->entries * dtype_size(field->dtype), at = 0;
    int64_t rows = field->batch * field->tokens * field->heads;
    for (int64_t i = 0; i < rows; i++) {
        size_t next = row_offset(field, i);
        if (!holds_poison(field, at, next))
            return false;
        at = next + row;
    }
    return holds_poison(field, at, field->size);
}

bool field_equal(const fpa_field *a, const fpa_field *b, int64_t from, int64_t to)
{
    size_t row = (size_t)a->entries * dtype_size(a->dtype);
    for (int64_t batch = 0; batch < a->batch; batch++)
        for (int64_t t = from; t < to; t++)
            for (int64_t h = 0; h < a->heads; h++)
                if (memcmp(field_at(a, batch, t, h, 0), field_at(b, batch, t, h, 0), row) != 0)
                    return false;
    return true;
}

bool field_same_numbers(const fpa_field *field, int64_t a, int64_t b, int64_t h)
{
    const unsigned char *one = field_at(field, a, 0, h, 0), *other = field_at(field, b, 0, h, 0);
    bool differ = false;
    if (field->dtype == FPA_F32)
        for (int64_t i = 0; i < field->entries; i++) { /* without branches, so that compilers vectorise it */
            float x, y;
            memcpy(&x, one + i * (int64_t)sizeof x, sizeof x);
            memcpy(&y, other + i * (int64_t)sizeof y, sizeof y);
            differ |= !(x == y);
        }
    else
        for (int64_t i = 0; i < field->entries && !differ; i++)
            differ = field_get(field, a, 0, h, i) != field_get(field, b, 0, h, i);
    return !differ;
}

static void scan_float(const float *at, int64_t count, fpa_scan *scan)
{
    uint32_t unwritten, poisoned = 0, infinite = 0, nonzero = 0;
    memcpy(&unwritten, poison, sizeof unwritten);
    for (int64_t i = 0; i < count; i++) { /* without branches, so that compilers vectorise it */
        uint32_t bits;
        memcpy(&bits, at + i, sizeof bits);
        poisoned |= bits == unwritten;
        infinite |= (bits & 0x7f800000) == 0x7f800000;
        nonzero |= bits & 0x7fffffff;
    }
    scan->poison |= poisoned != 0;
    scan->infinite |= infinite != 0;
    scan->nonzero |= nonzero != 0;
}

fpa_scan field_scan(const fpa_field *field)
{
    fpa_scan scan = {0};
    for (int64_t b = 0; b < field->batch; b++)
        for (int64_t t = 0; t < field->tokens; t++)
            for (int64_t h = 0; h < field->heads; h++) {
                if (field->dtype == FPA_F32) {
                    scan_float((const float *)(const void *)field_at(field, b, t, h, 0), field->entries,
                               &scan);
                    continue;
                }
                for (int64_t i = 0; i < field->entries; i++) {
                    double value = field_get(field, b, t, h, i);
                    scan.poison |= field_is_poison(field, b, t, h, i);
                    scan.infinite |= !isfinite(value);
                    scan.nonzero |= value != 0;
                }
            }
    return scan;
}
