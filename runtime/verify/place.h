/* verify_place: a trial's operands where the module computes: as they are on the CPU, copies in
 * device memory else. */
#ifndef FPAC_RUNTIME_VERIFY_PLACE_H
#define FPAC_RUNTIME_VERIFY_PLACE_H

#include "runtime/backend.h"

/* Device memory that one run leaves to the next: asking the driver for it takes longer than many runs. */
typedef struct fpa_spares {
    fpa_module module; /* whose memory it is; wherever that one has gone since */
    int count;
    struct fpa_spare {
        void *copy;
        size_t size;
    } * blocks;
} fpa_spares;

void spares_free(fpa_spares *spares);

/* Bytes of this process, and the device's copy of them. */
typedef struct fpa_region {
    unsigned char *bytes;
    size_t size;
    size_t front, back; /* bytes at its ends that place_fetch brings back */
    struct fpa_spare block;
} fpa_region;

typedef struct fpa_place {
    const fpa_module *module;
    fpa_spares *spares;
    int count, room;
    fpa_region *regions; /* NULL: the module computes on the process's own memory */
    fpa_status status;   /* of the first place_take that failed; later ones do nothing */
} fpa_place;

/* Room for so many regions. place_free also after an error; memory then goes to the spares. */
fpa_status place_make(fpa_place *place, const fpa_module *module, fpa_spares *spares, int room,
                      fpa_error *error);
void place_free(fpa_place *place);

/* Copy size bytes to the device, and return where one of them is there. Bytes that were taken before (a
 * state that is updated in place) are one region with them. written: the module may write all of them. */
void *place_take(fpa_place *place, const void *bytes, size_t size, bool written, const void *byte,
                 fpa_error *error);

/* The same for bytes that need not travel: on the device all are `filling`, and only those in front of
 * `first` and behind `end` come back. On the CPU they are filled too. */
void *place_take_scratch(fpa_place *place, unsigned char *bytes, size_t size, int filling,
                         const unsigned char *first, const unsigned char *end, fpa_error *error);

/* What the module wrote, back into the process's bytes. */
fpa_status place_fetch(const fpa_place *place, fpa_error *error);

#endif
