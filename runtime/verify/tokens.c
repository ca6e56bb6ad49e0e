/* tokens: draws positions and key masks, and sets those that modules read. */
#include "tokens.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/splitmix.h"
#include "head/lift.h"

enum { GUARD = 256, BETWEEN = 0xff /* value of bytes that belong to no key: as if it took part */ };

static int numbers_of(const fpa_trial *t)
{
    return t->head->lift ? t->head->lift->positions : 0;
}

static double uniform(uint64_t *state)
{
    return ((double)(splitmix_bits(state) >> 11) + 0.5) * 0x1p-53;
}

/* ---- values ---- */

/* Positions far from 0 give phases of many turns, which float does not resolve. */
static double draw_position(const fpa_trial *t, uint64_t kind, int64_t token, int number, uint64_t *state)
{
    const int64_t side = 7; /* positions of several numbers are those of a grid */
    const double step =
        numbers_of(t) == 1 ? (double)token : (double)(number % 2 ? token / side : token % side);
    switch (kind % 3) {
    case 0:
        return step;
    case 1:
        return step + 0x1p20 + 100 * number;
    default:
        return (double)(float)(100 * uniform(state) - 50);
    }
}

static bool draw_kept(const fpa_trial *t, uint64_t kind, int64_t token, uint64_t *state)
{
    const bool chance = splitmix_bits(state) % 3 > 0;
    const int64_t chunk = t->facts->chunk > 0 ? t->facts->chunk : 1;
    switch (kind % 4) {
    case 0:
        return chance;
    case 1:
        return token > t->shape.length / 3;
    case 2:
        return chance && token / chunk % 2 == 1;
    default:
        return true;
    }
}

/* Any byte but 0 means that the key takes part. */
static void draw_sequence(fpa_trial *t, uint64_t seed, int64_t b, uint64_t *state)
{
    const int64_t length = t->shape.length, numbers = numbers_of(t);
    for (int64_t token = b * length; token < (b + 1) * length; token++) {
        for (int64_t n = 0; n < numbers; n++)
            t->positions[token * numbers + n] =
                draw_position(t, seed + (uint64_t)b, token - b * length, (int)n, state);
        if (t->key_mask)
            t->key_mask[token] = draw_kept(t, seed + (uint64_t)b, token - b * length, state)
                                     ? (unsigned char)(1 + token * 37 % 255)
                                     : 0;
    }
}

fpa_status tokens_draw(fpa_trial *t, uint64_t seed, fpa_error *error)
{
    const int numbers = numbers_of(t);
    const size_t tokens = (size_t)(t->shape.batch * t->shape.length);
    const bool masks = t->head->lift && t->head->lift->key_mask;
    uint64_t state = ~seed;
    if (numbers)
        t->positions = calloc(tokens * (size_t)numbers + 1, sizeof *t->positions);
    if (masks)
        t->key_mask = calloc(tokens + 1, 1);
    if ((numbers && !t->positions) || (masks && !t->key_mask))
        return fail_memory(error);
    for (int64_t b = 0; b < t->shape.batch; b++)
        draw_sequence(t, seed, b, &state);
    return FPA_OK;
}

/* ---- tensors for modules ---- */

/* Makes the mask's bytes in the trial's layout: contiguous, with gaps, or with the batch as the fastest axis. */
static fpa_status place_mask(fpa_trial *t, fpa_error *error)
{
    const fpa_shape *s = &t->shape;
    fpa_mask *mask = &t->mask;
    mask->stride[0] = s->layout == LAYOUT_HEAD_MAJOR ? 1
                      : s->layout == LAYOUT_PLAIN    ? s->length
                                                     : 3 * s->length + 5;
    mask->stride[1] = s->layout == LAYOUT_HEAD_MAJOR ? s->batch : s->layout == LAYOUT_PLAIN ? 1 : 3;
    mask->size = 2 * GUARD + (size_t)(3 * s->length + 5) * (size_t)s->batch;
    mask->bytes = malloc(mask->size);
    if (!mask->bytes)
        return fail_memory(error);
    memset(mask->bytes, BETWEEN, mask->size);
    mask->first = mask->bytes + GUARD + (s->layout != LAYOUT_PLAIN);
    return FPA_OK;
}

fpa_status tokens_place(fpa_trial *t, fpa_error *error)
{
    const fpa_shape *s = &t->shape;
    fpa_status status = FPA_OK;
    if (t->positions) /* a position's numbers use the axis of heads, so that they have a stride */
        status = field_make(&t->position_field, NULL, FPA_F32, s->layout, s->batch, s->length, numbers_of(t),
                            1, error);
    if (status == FPA_OK && t->key_mask)
        status = place_mask(t, error);
    return status;
}

unsigned char *tokens_mask_at(const fpa_trial *t, int64_t b, int64_t token)
{
    return t->mask.first + b * t->mask.stride[0] + token * t->mask.stride[1];
}

static bool is_masked(const fpa_trial *t, int64_t b, int64_t token)
{
    return t->key_mask && t->key_mask[b * t->shape.length + token] == 0;
}

/* Sets a token's values in a field, or NaN and infinities. */
static void put_vectors(fpa_field *field, const double *values, int64_t b, int64_t token, bool no_numbers)
{
    values += (b * field->tokens + token) * field->heads * field->entries;
    for (int64_t h = 0; h < field->heads; h++)
        for (int64_t i = 0; i < field->entries; i++, values++)
            field_put(field, b, token, h, i, !no_numbers ? *values : i % 2 ? (double)NAN : (double)INFINITY);
}

void tokens_restore(fpa_trial *t)
{
    if (t->positions)
        field_fill(&t->position_field, t->positions);
    for (int64_t b = 0; t->key_mask && b < t->shape.batch; b++)
        for (int64_t token = 0; token < t->shape.length; token++) {
            *tokens_mask_at(t, b, token) = t->key_mask[b * t->shape.length + token];
            if (!is_masked(t, b, token))
                continue;
            put_vectors(&t->k_field, t->k, b, token, true);
            put_vectors(&t->v_field, t->v, b, token, true);
        }
}

void tokens_change_future(fpa_trial *t, int64_t from)
{
    for (int64_t b = 0; b < t->shape.batch; b++)
        for (int64_t token = from; token < t->shape.length; token++) {
            for (int n = 0; n < numbers_of(t); n++)
                field_put(&t->position_field, b, token, n, 0, (double)NAN);
            if (!t->key_mask)
                continue;
            *tokens_mask_at(t, b, token) = is_masked(t, b, token);
            if (!is_masked(t, b, token))
                continue;
            put_vectors(&t->k_field, t->k, b, token, false);
            put_vectors(&t->v_field, t->v, b, token, false);
        }
}
