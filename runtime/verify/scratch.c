/* scratch: a pool of memory for questions that are answered in parallel. */
#include "scratch.h"

#include <stdbool.h>

void scratch_list_make(scratch_list *all)
{
    *all = (scratch_list){0};
    pthread_mutex_init(&all->lock, NULL);
}

void scratch_list_close(scratch_list *all)
{
    pthread_mutex_destroy(&all->lock);
}

static void free_scratch(scratch *r)
{
    spares_free(&r->spares);
    blocks_free(&r->blocks);
}

scratch scratch_take(scratch_list *all)
{
    pthread_mutex_lock(&all->lock);
    const scratch taken = all->count ? all->idle[--all->count] : (scratch){0};
    pthread_mutex_unlock(&all->lock);
    return taken;
}

void scratch_leave(scratch_list *all, scratch *left)
{
    pthread_mutex_lock(&all->lock);
    const bool kept = all->count < MOST_SCRATCH;
    if (kept)
        all->idle[all->count++] = *left;
    pthread_mutex_unlock(&all->lock);
    if (!kept)
        free_scratch(left);
}

void scratch_list_free(scratch_list *all)
{
    while (all->count)
        free_scratch(&all->idle[--all->count]);
}
