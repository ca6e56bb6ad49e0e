/* scratch: memory, on the device and here, of questions that are asked at the same time. One leaves it to the next: asking for fresh pages takes longer
 * than most of what is done in them. */
#ifndef FPAC_RUNTIME_VERIFY_SCRATCH_H
#define FPAC_RUNTIME_VERIFY_SCRATCH_H

#include <pthread.h>

#include "place.h"

typedef struct scratch {
    fpa_spares spares;
    fpa_blocks blocks;
} scratch;

enum { MOST_SCRATCH = 32 };

/* Memory that nobody has now. */
typedef struct scratch_list {
    pthread_mutex_t lock;
    scratch idle[MOST_SCRATCH];
    int count;
} scratch_list;

void scratch_list_make(scratch_list *all);
scratch scratch_take(scratch_list *all);
void scratch_leave(scratch_list *all, scratch *left);
/* Their memory, while the module is there. */
void scratch_list_free(scratch_list *all);
void scratch_list_close(scratch_list *all);

#endif
