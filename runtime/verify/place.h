/* verify_place: a trial's operands where the module computes: as they are on the CPU, copies in
 * device memory else. */
#ifndef FPAC_RUNTIME_VERIFY_PLACE_H
#define FPAC_RUNTIME_VERIFY_PLACE_H

#include "field.h"
#include "trial.h"

/* Device memory that is kept between runs, since allocating takes longer than many runs. Its contents are kept,
 * too: a field with the stamp of a block need not be copied again. */
typedef struct fpa_spares {
    fpa_module module; /* whose memory it is; wherever that one has gone since */
    int count;
    struct fpa_spare {
        void *copy;
        size_t size;
        uint64_t stamp; /* of the field whose bytes it has; STAMP_NONE: of none */
    } * blocks;
} fpa_spares;

void spares_free(fpa_spares *spares);
/* Nobody asks for what is in them any more. */
void spares_forget(fpa_spares *spares);

/* Bytes of this process, and the device's copy of them. */
typedef struct fpa_region {
    unsigned char *bytes;
    size_t size;
    size_t front, back; /* bytes at its ends that place_fetch brings back */
    struct fpa_spare block;
    fpa_field *field; /* that the module writes; NULL: none */
} fpa_region;

typedef struct fpa_place {
    const fpa_module *module;
    fpa_spares *spares;
    int count, room;
    fpa_region *regions; /* NULL: the module computes on the process's own memory */
    fpa_error *error;
    fpa_status status; /* of the first place_take that failed; later ones do nothing */
} fpa_place;

/* Room for so many regions. place_free also after an error; memory then goes to the spares. */
fpa_status place_make(fpa_place *place, const fpa_module *module, fpa_spares *spares, int room,
                      fpa_error *error);
void place_free(fpa_place *place);

/* Copy size bytes to the device, and return where one of them is there. Bytes that were taken before (a
 * state that is updated in place) are one region with them. written: the module may write all of them. */
void *place_take(fpa_place *place, const void *bytes, size_t size, bool written, const void *byte);

/* The same of a whole field, which does not travel where the device has its bytes from a run before, or can make them; NULL is none. */
void *place_take_field(fpa_place *place, const fpa_field *field, const void *byte);
/* And of one that the module writes. */
void *place_take_output(fpa_place *place, fpa_field *field, const void *byte);

/* What a launch has of a trial's fields: keys, values and what goes with them, of tokens from `from` on; then as the module finds it. */
void place_set_keys(const fpa_trial *trial, int64_t from, struct fpa_launch *launch);
void place_take_keys(fpa_place *place, const fpa_trial *trial, struct fpa_launch *launch);
/* A state's address and strides; NULL: none. */
void *place_of_state(const fpa_field *state, int64_t stride[2]);
/* So many 32-bit numbers; NULL: none. */
const void *place_take_numbers(fpa_place *place, const void *numbers, int64_t count);

/* A workspace between guards that a module must leave alone: aligned as device memory is, but no better. */
typedef struct fpa_guarded {
    unsigned char *bytes; /* the caller's, GUARDED_ALIGNMENT */
    size_t size, all;     /* of the workspace; guarded_bytes of it */
} fpa_guarded;

enum { GUARDED_ALIGNMENT = 64, GUARDED_FILLING = 0xff };

/* 0: too many. */
size_t guarded_bytes(size_t size);
/* All of it is filled, and need not travel: of what is on a device only the guards come back. */
void *place_take_guarded(fpa_place *place, const fpa_guarded *guarded);
bool guarded_is_whole(const fpa_guarded *guarded);

/* Around a call of the module, whose own context is the current one meanwhile, as a caller's would be; after it, what became
 * of the call and of all that it put into streams. */
fpa_status place_enter(const fpa_module *module, fpa_error *error);
fpa_status place_leave(const fpa_module *module, fpa_status status, fpa_error *error);

/* What the module wrote, back into the process's bytes. */
fpa_status place_fetch(const fpa_place *place);

#endif
