/* verify_place: a trial's operands where the module computes: as they are on the CPU, copies in
 * device memory else. */
#ifndef FPAC_RUNTIME_VERIFY_PLACE_H
#define FPAC_RUNTIME_VERIFY_PLACE_H

#include "backend.h"

/* Bytes of this process, and the device's copy of them. */
typedef struct fpa_region {
    unsigned char *bytes;
    size_t size;
    void *copy;
    bool written; /* the module may write it: place_fetch brings it back */
} fpa_region;

typedef struct fpa_place {
    const fpa_module *module;
    int count, room;
    fpa_region *regions; /* NULL: the module computes on the process's own memory */
    fpa_status status;   /* of the first place_take that failed; later ones do nothing */
} fpa_place;

/* Room for so many regions. place_free also after an error. */
fpa_status place_make(fpa_place *place, const fpa_module *module, int room, fpa_error *error);
void place_free(fpa_place *place);

/* Copy size bytes to the device, and return where one of them is there. Bytes that were taken before (a
 * state that is updated in place) are one region with them. */
void *place_take(fpa_place *place, const void *bytes, size_t size, bool written, const void *byte,
                 fpa_error *error);

/* What the module wrote, back into the process's bytes. */
fpa_status place_fetch(const fpa_place *place, fpa_error *error);

#endif
