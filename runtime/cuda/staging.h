/* staging: large copies from the device into memory of the process, through pinned buffers.
 *
 * Given: a context that is current, an address on the device. Gives: the bytes, when the call returns.
 * cuMemcpyDtoH stages copies through pinned buffers of the driver, for which all threads wait in turn. Verification
 * copies states of hundreds of megabytes in each of its threads, so here each thread that copies has two buffers and
 * a stream: while the device fills one buffer, the thread copies the other one to its destination. */
#ifndef FPAC_RUNTIME_CUDA_STAGING_H
#define FPAC_RUNTIME_CUDA_STAGING_H

#include "driver.h"

#include <pthread.h>
#include <stdbool.h>

enum { STAGING_PLACES = 32 }; /* idle pairs of buffers that are kept */

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
