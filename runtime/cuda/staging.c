#include "staging.h"

#include <string.h>

/* Bytes. While the device writes one piece, the previous one is copied to its destination. */
enum { PIECE = 1 << 19 };

void staging_make(cuda_staging *staging)
{
    staging->idle = 0;
    pthread_mutex_init(&staging->lock, NULL);
}

static void free_place(const fpa_driver *driver, struct staging_place place)
{
    if (place.stream)
        driver->cuStreamDestroy(place.stream);
    if (place.bytes)
        driver->cuMemFreeHost(place.bytes);
}

void staging_free(cuda_staging *staging, const fpa_driver *driver, bool in_context)
{
    while (in_context && staging->idle > 0)
        free_place(driver, staging->places[--staging->idle]);
    pthread_mutex_destroy(&staging->lock);
}

static CUresult make_place(const fpa_driver *driver, struct staging_place *place)
{
    void *bytes = NULL;
    CUresult result = driver->cuMemAllocHost(&bytes, 2 * PIECE);
    *place = (struct staging_place){.bytes = bytes};
    if (!result)
        result = driver->cuStreamCreate(&place->stream, CU_STREAM_NON_BLOCKING);
    return result;
}

static CUresult take_place(cuda_staging *staging, const fpa_driver *driver, struct staging_place *place)
{
    pthread_mutex_lock(&staging->lock);
    const bool found = staging->idle > 0;
    if (found)
        *place = staging->places[--staging->idle];
    pthread_mutex_unlock(&staging->lock);
    return found ? CUDA_SUCCESS : make_place(driver, place);
}

static void leave_place(cuda_staging *staging, const fpa_driver *driver, struct staging_place place)
{
    pthread_mutex_lock(&staging->lock);
    const bool kept = staging->idle < STAGING_PLACES;
    if (kept)
        staging->places[staging->idle++] = place;
    pthread_mutex_unlock(&staging->lock);
    if (!kept)
        free_place(driver, place);
}

static CUresult copy_by(const fpa_driver *driver, struct staging_place place, unsigned char *to,
                        CUdeviceptr from, size_t size)
{
    CUresult result = CUDA_SUCCESS;
    /* bytes in the buffers or in transfer, of which the first `done` are at their destination */
    size_t ready = 0;
    for (size_t done = 0; done < size && !result;) {
        const size_t more = size - ready < PIECE ? size - ready : PIECE, whole = ready - done;
        if (whole > 0)
            result = driver->cuStreamSynchronize(place.stream);
        if (more > 0 && !result)
            result = driver->cuMemcpyDtoHAsync(place.bytes + ready / PIECE % 2 * PIECE, from + ready, more,
                                               place.stream);
        if (whole > 0 && !result)
            memcpy(to + done, place.bytes + done / PIECE % 2 * PIECE, whole);
        done = ready;
        ready += more;
    }
    return result;
}

CUresult staging_download(cuda_staging *staging, const fpa_driver *driver, void *to, CUdeviceptr from,
                          size_t size)
{
    struct staging_place place;
    if (size < 2 * PIECE)
        return driver->cuMemcpyDtoH(to, from, size);
    CUresult result = take_place(staging, driver, &place);
    if (result) {
        free_place(driver, place);
        return driver->cuMemcpyDtoH(to, from, size);
    }
    result = copy_by(driver, place, to, from, size);
    if (result)
        driver->cuStreamSynchronize(place.stream);
    leave_place(staging, driver, place);
    return result;
}
