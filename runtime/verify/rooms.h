/* rooms: memory, on the device and here, of questions that are asked at the same time. One leaves it to the next: asking for fresh pages takes longer
 * than most of what is done in them. */
#ifndef FPAC_RUNTIME_VERIFY_ROOMS_H
#define FPAC_RUNTIME_VERIFY_ROOMS_H

#include <pthread.h>

#include "place.h"

typedef struct room {
    fpa_spares spares;
    fpa_blocks blocks;
} room;

enum { MOST_ROOMS = 32 };

/* Rooms that nobody is in. */
typedef struct rooms {
    pthread_mutex_t lock;
    room idle[MOST_ROOMS];
    int count;
} rooms;

void rooms_make(rooms *all);
room rooms_take(rooms *all);
void rooms_leave(rooms *all, room *left);
/* Their memory, while the module is there. */
void rooms_free(rooms *all);
void rooms_close(rooms *all);

#endif
