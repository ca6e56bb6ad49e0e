/* staging: large copies from the device through pinned buffers of the calling thread.
 *
 * cuMemcpyDtoH into pageable memory runs in the default stream and through the driver's own buffers, so that copies of several
 * threads wait for each other. Verification downloads states of hundreds of megabytes in every thread
 * (docs/decisions/0214-what-a-first-open-still-waits-for.md). */
#ifndef FPAC_RUNTIME_CUDA_STAGING_H
#define FPAC_RUNTIME_CUDA_STAGING_H

#include "driver.h"

#include <pthread.h>
#include <stdbool.h>

enum { STAGING_PLACES = 32 }; /* idle buffers that are kept */

/* Buffers of a module. A thread that finds none idle allocates one. */
typedef struct cuda_staging {
    pthread_mutex_t lock;
    int idle;
    struct staging_place {
        unsigned char *bytes; /* pinned: two pieces */
        CUstream stream;      /* non-blocking: independent of the default stream */
    } places[STAGING_PLACES];
} cuda_staging;

void staging_make(cuda_staging *staging);
/* in_context: the module's context is current. Else its memory is gone together with it. */
void staging_free(cuda_staging *staging, const fpa_driver *driver, bool in_context);

/* Called in the module's context, after all writers of `from` have finished. Without a buffer: cuMemcpyDtoH. */
CUresult staging_download(cuda_staging *staging, const fpa_driver *driver, void *to, CUdeviceptr from,
                          size_t size);

#endif
