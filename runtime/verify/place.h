/* place: a trial's operands where the module computes: on the CPU the fields themselves, otherwise copies in device memory. */
#ifndef FPAC_RUNTIME_VERIFY_PLACE_H
#define FPAC_RUNTIME_VERIFY_PLACE_H

#include "field.h"
#include "trial.h"

/* Device memory that is kept between runs, since allocating it takes longer than many runs. Its contents are kept, too: a field with a
 * block's stamp need not be copied again. */
typedef struct fpa_spares {
    fpa_module module; /* a copy of the module that releases it */
    int count;
    struct fpa_spare {
        void *copy;
        size_t size;
        uint64_t stamp; /* that of the field whose bytes it has; STAMP_NONE: unknown contents */
    } * blocks;
} fpa_spares;

void spares_free(fpa_spares *spares);
/* Forgets the blocks' contents, but keeps the memory. */
void spares_forget(fpa_spares *spares);

/* Bytes of this process, and their copy on the device. */
typedef struct fpa_region {
    unsigned char *bytes;
    size_t size;
    size_t front, back; /* bytes at its start and end that place_fetch copies back */
    struct fpa_spare block;
    fpa_field *field; /* a field that the module writes, or NULL */
} fpa_region;

typedef struct fpa_place {
    const fpa_module *module;
    fpa_spares *spares;
    int count, room;
    fpa_region *regions; /* NULL: the module computes on the process's own memory */
    fpa_error *error;
    fpa_status status; /* the first error; later calls do nothing */
} fpa_place;

/* Makes a place of at most `room` regions. Call place_free also after an error: it returns memory to the spares. */
fpa_status place_make(fpa_place *place, const fpa_module *module, fpa_spares *spares, int room,
                      fpa_error *error);
void place_free(fpa_place *place);

/* Copies `size` bytes to the device, and returns the address there of one of them. Bytes that were already taken (a state that is updated
 * in place) are the same region. written: the module may write all of them. */
void *place_take(fpa_place *place, const void *bytes, size_t size, bool written, const void *byte);

/* The same for a whole field, which is not copied if the device has its bytes from a run before, or if they are poison; NULL: none. */
void *place_take_field(fpa_place *place, const fpa_field *field, const void *byte);
/* The same for a field that the module writes. */
void *place_take_output(fpa_place *place, fpa_field *field, const void *byte);

/* Set a launch's keys, values, log-gates, positions and mask from token `from` on; then replace these by their copies on the device. */
void place_set_keys(const fpa_trial *trial, int64_t from, struct fpa_launch *launch);
void place_take_keys(fpa_place *place, const fpa_trial *trial, struct fpa_launch *launch);
/* A state's address and strides; NULL: none. */
void *place_of_state(const fpa_field *state, int64_t stride[2]);
/* Takes `count` 32-bit numbers; NULL: none. */
const void *place_take_numbers(fpa_place *place, const void *numbers, int64_t count);

/* A workspace between guards, which a module must not write. It has the alignment of device memory, but no larger one. */
typedef struct fpa_guarded {
    unsigned char *bytes; /* the caller's, aligned to GUARDED_ALIGNMENT */
    size_t size, all;     /* bytes of the workspace; with guards */
} fpa_guarded;

enum { GUARDED_ALIGNMENT = 64, GUARDED_FILLING = 0xff };

/* Bytes of a workspace with guards; 0: too many. */
size_t guarded_bytes(size_t size);
/* Fills the workspace and its guards, on a device without a copy; place_fetch copies back only the guards. */
void *place_take_guarded(fpa_place *place, const fpa_guarded *guarded);
bool guarded_is_whole(const fpa_guarded *guarded);

/* Called before and after a call of the module: they make its context current, as a caller would, and return the status of the call and
 * of everything that it launched. */
fpa_status place_enter(const fpa_module *module, fpa_error *error);
fpa_status place_leave(const fpa_module *module, fpa_status status, fpa_error *error);

/* Copies what the module wrote back to the process's bytes. */
fpa_status place_fetch(const fpa_place *place);

#endif
