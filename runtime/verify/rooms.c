#include "rooms.h"

#include <stdbool.h>

void rooms_make(rooms *all)
{
    *all = (rooms){0};
    pthread_mutex_init(&all->lock, NULL);
}

void rooms_close(rooms *all)
{
    pthread_mutex_destroy(&all->lock);
}

static void free_room(room *r)
{
    spares_free(&r->spares);
    blocks_free(&r->blocks);
}

room rooms_take(rooms *all)
{
    pthread_mutex_lock(&all->lock);
    const room taken = all->count ? all->idle[--all->count] : (room){0};
    pthread_mutex_unlock(&all->lock);
    return taken;
}

void rooms_leave(rooms *all, room *left)
{
    pthread_mutex_lock(&all->lock);
    const bool kept = all->count < MOST_ROOMS;
    if (kept)
        all->idle[all->count++] = *left;
    pthread_mutex_unlock(&all->lock);
    if (!kept)
        free_room(left);
}

void rooms_free(rooms *all)
{
    while (all->count)
        free_room(&all->idle[--all->count]);
}
