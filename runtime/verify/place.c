/* place: copies of operands in device memory, which is reused between runs. */
#include "place.h"

#include <stdlib.h>
#include <string.h>

#include "tokens.h"

/* Blocks of a size that are kept for their contents: with more, one is reused for other bytes. */
enum { KEPT_COPIES = 4 };

static void take_block(fpa_spares *spares, int i, struct fpa_spare *block)
{
    *block = spares->blocks[i];
    spares->blocks[i] = spares->blocks[--spares->count];
}

/* The better block to reuse: without known contents, else with the older ones; if equal, the smaller one. */
static bool is_better(const struct fpa_spare *a, const struct fpa_spare *b)
{
    return a->stamp != b->stamp ? a->stamp < b->stamp : a->size < b->size;
}

/* Takes a block of at least this size and at most twice as large; false: there is none to reuse. */
static bool take_spare(fpa_spares *spares, size_t size, struct fpa_spare *block)
{
    int best = -1, fit = 0;
    for (int i = 0; i < spares->count; i++) {
        const struct fpa_spare *its = &spares->blocks[i];
        if (its->size < size || its->size / 2 > size)
            continue;
        fit++;
        if (best < 0 || is_better(its, &spares->blocks[best]))
            best = i;
    }
    if (best < 0 || (spares->blocks[best].stamp != STAMP_NONE && fit < KEPT_COPIES))
        return false;
    take_block(spares, best, block);
    return true;
}

/* Takes the block whose contents are the field's. */
static bool take_copy(fpa_spares *spares, const fpa_field *field, struct fpa_spare *block)
{
    for (int i = 0; i < spares->count && field->stamp >= STAMP_FIRST; i++)
        if (spares->blocks[i].stamp == field->stamp) {
            take_block(spares, i, block);
            return true;
        }
    return false;
}

static void leave_spare(fpa_spares *spares, const fpa_module *module, struct fpa_spare block)
{
    struct fpa_spare *blocks = realloc(spares->blocks, (size_t)(spares->count + 1) * sizeof *spares->blocks);
    if (!blocks) {
        module->backend->memory->release(module, block.copy);
        return;
    }
    spares->module = *module;
    spares->blocks = blocks;
    spares->blocks[spares->count++] = block;
}

void spares_forget(fpa_spares *spares)
{
    for (int i = 0; i < spares->count; i++)
        spares->blocks[i].stamp = STAMP_NONE;
}

void spares_free(fpa_spares *spares)
{
    for (int i = 0; i < spares->count; i++)
        spares->module.backend->memory->release(&spares->module, spares->blocks[i].copy);
    free(spares->blocks);
    *spares = (fpa_spares){0};
}

fpa_status place_make(fpa_place *place, const fpa_module *module, fpa_spares *spares, int room,
                      fpa_error *error)
{
    *place = (fpa_place){.module = module, .spares = spares, .room = room, .error = error};
    if (!module->backend->memory)
        return FPA_OK;
    place->regions = calloc((size_t)room + 1, sizeof *place->regions);
    return place->regions ? FPA_OK : fail_memory(error);
}

void place_free(fpa_place *place)
{
    for (int i = 0; i < place->count; i++)
        leave_spare(place->spares, place->module, place->regions[i].block);
    free(place->regions);
    *place = (fpa_place){0};
}

/* The region of bytes that were already taken, or NULL. */
static fpa_region *find(const fpa_place *place, const void *bytes)
{
    for (int i = 0; i < place->count; i++)
        if (place->regions[i].bytes == bytes)
            return &place->regions[i];
    return NULL;
}

static fpa_region *next_region(fpa_place *place, const void *bytes, size_t size)
{
    fpa_region *region = &place->regions[place->count];
    if (place->status)
        return NULL;
    if (place->count == place->room) {
        place->status =
            fail(place->error, FPA_UNSUPPORTED, "", "a run has more than %d operands", place->room);
        return NULL;
    }
    *region = (fpa_region){.bytes = (unsigned char *)(uintptr_t)bytes, .size = size};
    return region;
}

/* Adds a region with uninitialised device memory; NULL after an error. */
static fpa_region *add(fpa_place *place, const void *bytes, size_t size)
{
    fpa_region *region = next_region(place, bytes, size);
    if (!region)
        return NULL;
    if (!take_spare(place->spares, size, &region->block)) {
        region->block.size = size;
        place->status =
            place->module->backend->memory->allocate(place->module, size, &region->block.copy, place->error);
    }
    if (place->status)
        return NULL;
    region->block.stamp = STAMP_NONE;
    place->count++;
    return region;
}

/* Adds a region with a copy of a field. */
static fpa_region *add_field(fpa_place *place, const fpa_field *field)
{
    const fpa_memory *memory = place->module->backend->memory;
    fpa_region *region = next_region(place, field->bytes, field->size);
    if (region && take_copy(place->spares, field, &region->block)) {
        place->count++;
        return region;
    }
    region = region ? add(place, field->bytes, field->size) : NULL;
    if (!region)
        return NULL;
    place->status =
        field->stamp == STAMP_POISON
            ? memory->fill(place->module, region->block.copy, field_poison_unit(), field->size, place->error)
            : memory->upload(place->module, region->block.copy, field->bytes, field->size, place->error);
    region->block.stamp = place->status || field->stamp < STAMP_FIRST ? STAMP_NONE : field->stamp;
    return region;
}

static void *copy_of(const fpa_region *region, const void *byte)
{
    return (unsigned char *)region->block.copy + ((const unsigned char *)byte - region->bytes);
}

void *place_take(fpa_place *place, const void *bytes, size_t size, bool written, const void *byte)
{
    if (!place->regions || !byte)
        return (void *)(uintptr_t)byte;
    fpa_region *region = place->status ? NULL : find(place, bytes);
    if (!region && (region = add(place, bytes, size)))
        place->status = place->module->backend->memory->upload(place->module, region->block.copy, bytes, size,
                                                               place->error);
    if (place->status)
        return NULL;
    region->front = written ? size : region->front;
    return copy_of(region, byte);
}

static fpa_region *take_field(fpa_place *place, const fpa_field *field)
{
    fpa_region *region = place->status ? NULL : find(place, field->bytes);
    if (!region)
        region = add_field(place, field);
    return place->status ? NULL : region;
}

void *place_take_field(fpa_place *place, const fpa_field *field, const void *byte)
{
    if (!field || !byte || !place->regions)
        return field ? (void *)(uintptr_t)byte : NULL;
    const fpa_region *region = take_field(place, field);
    return region ? copy_of(region, byte) : NULL;
}

void *place_take_output(fpa_place *place, fpa_field *field, const void *byte)
{
    if (field && !place->regions)
        field->stamp = STAMP_NONE;
    if (!field || !byte || !place->regions)
        return field ? (void *)(uintptr_t)byte : NULL;
    fpa_region *region = take_field(place, field);
    if (!region)
        return NULL;
    region->front = region->size;
    region->field = field;
    region->block.stamp = STAMP_NONE; /* until place_fetch has copied its bytes to the field */
    return copy_of(region, byte);
}

/* ---- launches ---- */

void *place_of_state(const fpa_field *state, int64_t stride[2])
{
    if (!state)
        return NULL;
    stride[0] = state->stride[0];
    stride[1] = state->stride[2];
    return state->first;
}

void place_set_keys(const fpa_trial *t, int64_t from, struct fpa_launch *a)
{
    a->k = field_from(&t->k_field, from, a->k_stride);
    a->v = field_from(&t->v_field, from, a->v_stride);
    if (t->head->gate)
        a->log_gate = field_from(&t->gate_field, from, a->gate_stride);
    if (t->positions)
        a->positions = field_from(&t->position_field, from, a->position_stride);
    if (t->key_mask) {
        a->key_mask = tokens_mask_at(t, 0, from);
        memcpy(a->key_mask_stride, t->mask.stride, sizeof a->key_mask_stride);
    }
}

void place_take_keys(fpa_place *place, const fpa_trial *t, struct fpa_launch *a)
{
    a->k = place_take_field(place, &t->k_field, a->k);
    a->v = place_take_field(place, &t->v_field, a->v);
    a->log_gate = place_take_field(place, &t->gate_field, a->log_gate);
    a->positions = place_take_field(place, &t->position_field, a->positions);
    a->key_mask = place_take(place, t->mask.bytes, t->mask.size, false, a->key_mask);
}

const void *place_take_numbers(fpa_place *place, const void *numbers, int64_t count)
{
    return numbers ? place_take(place, numbers, (size_t)count * sizeof(int32_t), false, numbers) : NULL;
}

/* ---- workspaces ---- */

enum { GUARD = 256 }; /* bytes before a workspace, and at least as many after it */

size_t guarded_bytes(size_t size)
{
    return size > SIZE_MAX / 2
               ? 0
               : (size + 2 * GUARD + GUARDED_ALIGNMENT - 1) / GUARDED_ALIGNMENT * GUARDED_ALIGNMENT;
}

void *place_take_guarded(fpa_place *place, const fpa_guarded *guarded)
{
    if (!place->regions) {
        memset(guarded->bytes, GUARDED_FILLING, guarded->all);
        return guarded->bytes + GUARD;
    }
    fpa_region *region = add(place, guarded->bytes, guarded->all);
    if (!region)
        return NULL;
    place->status = place->module->backend->memory->fill(place->module, region->block.copy,
                                                         GUARDED_FILLING * 0x101, guarded->all, place->error);
    region->front = GUARD;
    region->back = guarded->all - GUARD - guarded->size;
    return place->status ? NULL : copy_of(region, guarded->bytes + GUARD);
}

static bool is_filled(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != GUARDED_FILLING)
            return false;
    return true;
}

bool guarded_is_whole(const fpa_guarded *guarded)
{
    const size_t end = GUARD + guarded->size;
    return is_filled(guarded->bytes, GUARD) && is_filled(guarded->bytes + end, guarded->all - end);
}

/* ---- calls ---- */

fpa_status place_enter(const fpa_module *module, fpa_error *error)
{
    const fpa_memory *memory = module->backend->memory;
    return memory ? memory->enter(module, error) : FPA_OK;
}

fpa_status place_leave(const fpa_module *module, fpa_status status, fpa_error *error)
{
    const fpa_memory *memory = module->backend->memory;
    if (!memory)
        return status;
    memory->leave(module);
    return status != FPA_OK ? status : memory->finish(module, error);
}

static fpa_status fetch(const fpa_place *place, const fpa_region *region, size_t at, size_t size)
{
    const fpa_module *module = place->module;
    return size ? module->backend->memory->download(module, region->bytes + at,
                                                    (unsigned char *)region->block.copy + at, size,
                                                    place->error)
                : FPA_OK;
}

fpa_status place_fetch(const fpa_place *place)
{
    fpa_status status = FPA_OK;
    for (int i = 0; i < place->count && !status; i++) {
        fpa_region *region = &place->regions[i];
        if (region->field)
            region->field->stamp = STAMP_NONE;
        status = fetch(place, region, 0, region->front);
        if (!status)
            status = fetch(place, region, region->size - region->back, region->back);
        if (status || !region->field)
            continue;
        field_stamp(region->field);
        region->block.stamp = region->field->stamp;
    }
    return status;
}
