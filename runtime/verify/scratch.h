/* scratch: device and host memory of questions that are answered in parallel, passed from one to the next, since getting fresh pages
 * takes longer than most of what is done in them. */
#ifndef FPAC_RUNTIME_VERIFY_SCRATCH_H
#define FPAC_RUNTIME_VERIFY_SCRATCH_H

#include <pthread.h>

#include "place.h"

typedef struct scratch {
    fpa_spares spares;
    fpa_blocks blocks;
} scratch;

enum { MOST_SCRATCH = 32 };

/* Memory that is not in use. Thread-safe: take and leave. */
typedef struct scratch_list {
    pthread_mutex_t lock;
    scratch idle[MOST_SCRATCH];
    int count;
} scratch_list;

void scratch_list_make(scratch_list *all);
scratch scratch_take(scratch_list *all);
void scratch_leave(scratch_list *all, scratch *left);
/* Frees the memory; must be called before the module is unloaded. */
void scratch_list_free(scratch_list *all);
void scratch_list_close(scratch_list *all);

#endif
