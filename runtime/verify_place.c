#include "verify_place.h"

#include <stdlib.h>

fpa_status place_make(fpa_place *place, const fpa_module *module, int room, fpa_error *error)
{
    *place = (fpa_place){.module = module, .room = room};
    if (!module->backend->memory)
        return FPA_OK;
    place->regions = calloc((size_t)room + 1, sizeof *place->regions);
    return place->regions ? FPA_OK : fail_memory(error);
}

void place_free(fpa_place *place)
{
    for (int i = 0; i < place->count; i++)
        place->module->backend->memory->release(place->module, place->regions[i].copy);
    free(place->regions);
    *place = (fpa_place){0};
}

/* The region of bytes that were taken before, or NULL. */
static fpa_region *find(const fpa_place *place, const void *bytes)
{
    for (int i = 0; i < place->count; i++)
        if (place->regions[i].bytes == bytes)
            return &place->regions[i];
    return NULL;
}

static fpa_region *add(fpa_place *place, const void *bytes, size_t size, fpa_error *error)
{
    const fpa_module *module = place->module;
    fpa_region *region = &place->regions[place->count];
    if (place->count == place->room) {
        place->status = fail(error, FPA_UNSUPPORTED, "", "a run has more than %d operands", place->room);
        return NULL;
    }
    *region = (fpa_region){.bytes = (unsigned char *)(uintptr_t)bytes, .size = size};
    place->status = module->backend->memory->allocate(module, size, &region->copy, error);
    if (place->status)
        return NULL;
    place->count++;
    place->status = module->backend->memory->upload(module, region->copy, bytes, size, error);
    return place->status ? NULL : region;
}

void *place_take(fpa_place *place, const void *bytes, size_t size, bool written, const void *byte,
                 fpa_error *error)
{
    if (!place->regions || !byte)
        return (void *)(uintptr_t)byte;
    fpa_region *region = place->status ? NULL : find(place, bytes);
    if (!region && !place->status)
        region = add(place, bytes, size, error);
    if (!region)
        return NULL;
    region->written |= written;
    return (unsigned char *)region->copy + ((const unsigned char *)byte - (const unsigned char *)bytes);
}

fpa_status place_fetch(const fpa_place *place, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int i = 0; i < place->count && !status; i++) {
        const fpa_region *region = &place->regions[i];
        if (region->written)
            status = place->module->backend->memory->download(place->module, region->bytes, region->copy,
                                                              region->size, error);
    }
    return status;
}
