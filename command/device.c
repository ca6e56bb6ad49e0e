#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "median.h"

enum { L2_CACHE_SIZE = 38 }; /* CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE */

/* ---- memory of a kernel ---- */

bool device_is_remote(const fpa_kernel *kernel)
{
    return kernel->module.backend->memory != NULL;
}

DLDevice device_of(const fpa_kernel *kernel)
{
    return (DLDevice){(DLDeviceType)kernel->module.backend->device_type, kernel->module.device};
}

fpa_status device_allocate(const fpa_kernel *kernel, size_t size, void **address, fpa_error *error)
{
    const fpa_memory *memory = kernel->module.backend->memory;
    size_t rounded = size ? (size + 63) / 64 * 64 : 64;
    *address = NULL;
    if (memory)
        return memory->allocate(&kernel->module, rounded, address, error);
    *address = aligned_alloc(64, rounded);
    return *address
               ? FPA_OK
               : fail(error, FPA_NO_MEMORY, "memory", "%zu bytes of workspace cannot be allocated", rounded);
}

void device_release(const fpa_kernel *kernel, void *address)
{
    if (kernel && device_is_remote(kernel))
        kernel->module.backend->memory->release(&kernel->module, address);
    else
        free(address);
}

fpa_status device_enter(const fpa_kernel *kernel, fpa_error *error)
{
    const fpa_memory *memory = kernel->module.backend->memory;
    return memory ? memory->enter(&kernel->module, error) : FPA_OK;
}

void device_leave(const fpa_kernel *kernel)
{
    if (device_is_remote(kernel))
        kernel->module.backend->memory->leave(&kernel->module);
}

fpa_status device_finish(const fpa_kernel *kernel, fpa_error *error)
{
    const fpa_memory *memory = kernel->module.backend->memory;
    return memory ? memory->finish(&kernel->module, error) : FPA_OK;
}

/* ---- a GPU to measure ---- */

fpa_status device_row(int number, const fpa_gpu **gpu, fpa_error *error)
{
    const fpa_driver *driver;
    CUdevice device;
    char name[128] = "";
    int capability;
    fpa_status status = driver_find(&driver, error);
    if (!status)
        status = driver_device(driver, number, &device, &capability, error);
    if (status)
        return status;
    const CUresult result = driver->cuDeviceGetName(name, sizeof name, device);
    *gpu = gpu_of_device(name, capability);
    return result ? driver_fail(driver, result, "--device", "its name", error) : FPA_OK;
}

fpa_status device_check(const fpa_device *device, CUresult result, const char *what, fpa_error *error)
{
    return result ? driver_fail(device->driver, result, device->name, what, error) : FPA_OK;
}

static fpa_status describe(fpa_device *device, fpa_error *error)
{
    const fpa_driver *driver = device->driver;
    int cache = 0;
    fpa_status status = device_check(
        device, driver->cuDeviceGetName(device->name, sizeof device->name, device->gpu), "its name", error);
    if (!status)
        status = device_check(device, driver->cuDeviceGetAttribute(&cache, L2_CACHE_SIZE, device->gpu),
                              "the size of its cache", error);
    device->cache_bytes = (size_t)cache;
    return status ? status
                  : device_check(device,
                                 driver->cuDeviceGetAttribute(&device->multiprocessors,
                                                              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                                              device->gpu),
                                 "the number of its multiprocessors", error);
}

static fpa_status enter(fpa_device *device, fpa_error *error)
{
    const fpa_driver *driver = device->driver;
    fpa_status status = device_check(device, driver->cuDevicePrimaryCtxRetain(&device->context, device->gpu),
                                     "its context", error);
    if (status)
        return status;
    status = device_check(device, driver->cuCtxPushCurrent(device->context), "entering its context", error);
    if (status) {
        driver->cuDevicePrimaryCtxRelease(device->gpu);
        return status;
    }
    device->entered = true;
    /* CU_STREAM_DEFAULT: the stream waits for this process's copies, which are in the default stream */
    return device_check(device, driver->cuStreamCreate(&device->stream, CU_STREAM_DEFAULT), "a stream",
                        error);
}

fpa_status device_open(int number, fpa_device *device, fpa_error *error)
{
    memset(device, 0, sizeof *device);
    fpa_status status = driver_find(&device->driver, error);
    if (!status)
        status = driver_device(device->driver, number, &device->gpu, NULL, error);
    if (!status)
        status = describe(device, error);
    return status ? status : enter(device, error);
}

void device_close(fpa_device *device)
{
    CUcontext left;
    if (!device->entered)
        return;
    if (device->stream)
        device->driver->cuStreamDestroy(device->stream);
    device->driver->cuCtxPopCurrent(&left);
    device->driver->cuDevicePrimaryCtxRelease(device->gpu);
    device->entered = false;
}

/* ---- its clock ---- */

enum { MANY_SAMPLES = 1024, MANY_LAUNCHES = 1024 };

/* A measurement, with an event before the first sample and after each. */
typedef struct watch {
    const fpa_device *device;
    const fpa_work *work;
    int events;
    CUevent event[MANY_SAMPLES + 1];
    int64_t launched;
} watch;

static fpa_status make_events(watch *w, int count, fpa_error *error)
{
    fpa_status status = FPA_OK;
    while (w->events < count && !status) {
        status =
            device_check(w->device, w->device->driver->cuEventCreate(&w->event[w->events], CU_EVENT_DEFAULT),
                         "an event", error);
        w->events += !status;
    }
    return status;
}

static void free_events(watch *w)
{
    while (w->events > 0)
        w->device->driver->cuEventDestroy(w->event[--w->events]);
}

static fpa_status record(const watch *w, int event, fpa_error *error)
{
    return device_check(w->device, w->device->driver->cuEventRecord(w->event[event], w->device->stream),
                        "recording an event", error);
}

static fpa_status launch(watch *w, int64_t count, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int64_t i = 0; i < count && !status; i++)
        status = w->work->launch(w->work->user, w->launched++, w->device->stream, error);
    return status;
}

static fpa_status elapsed(const watch *w, int first, double *seconds, fpa_error *error)
{
    float milliseconds = 0;
    fpa_status status = device_check(
        w->device, w->device->driver->cuEventElapsedTime(&milliseconds, w->event[first], w->event[first + 1]),
        "reading the clock", error);
    *seconds = 1e-3 * (double)milliseconds;
    return status;
}

/* Takes `samples` samples, each a batch of consecutive launches; seconds[i] is the time of one launch in sample i. */
static fpa_status take_samples(watch *w, int samples, int64_t launches, double *seconds, fpa_error *error)
{
    fpa_status status = record(w, 0, error);
    for (int i = 0; i < samples && !status; i++) {
        status = launch(w, launches, error);
        if (!status)
            status = record(w, i + 1, error);
    }
    if (!status)
        status = device_check(w->device, w->device->driver->cuStreamSynchronize(w->device->stream),
                              "what was measured", error);
    for (int i = 0; i < samples && !status; i++) {
        status = elapsed(w, i, &seconds[i], error);
        seconds[i] /= (double)launches;
    }
    return status;
}

static double bounded(double least, double value, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* Launches once to load code, then long enough for the clocks to rise. *seconds: roughly the time of one launch. */
static fpa_status warm_up(watch *w, double budget, double *seconds, fpa_error *error)
{
    const double warm = 0.05, shortest = 1e-7;
    fpa_status status = take_samples(w, 1, 1, seconds, error);
    if (!status)
        status = take_samples(w, 1, 1, seconds, error);
    double limit = budget / 4 < warm ? budget / 4 : warm;
    double once = *seconds > shortest ? *seconds : shortest;
    if (!status)
        status = take_samples(w, 1, (int64_t)bounded(1, limit / once, 4 * MANY_LAUNCHES), seconds, error);
    *seconds = *seconds > shortest ? *seconds : shortest;
    return status;
}

static void summarise(double *seconds, int samples, fpa_sample *sample)
{
    sample->median = median_of(seconds, samples);
    sample->repeats = samples;
    sample->least = seconds[0];
    sample->most = seconds[samples - 1];
}

fpa_status device_measure(const fpa_device *device, const fpa_work *work, int repeats, double seconds,
                          fpa_sample *sample, fpa_error *error)
{
    const double batch = 5e-4; /* seconds of a sample: a thousand times the resolution of an event */
    double taken[MANY_SAMPLES], once = 0;
    watch w = {.device = device, .work = work};
    *sample = (fpa_sample){0};
    fpa_status status = make_events(&w, 2, error);
    if (!status)
        status = warm_up(&w, seconds, &once, error);
    if (!status) {
        sample->launches = (int)bounded(1, batch / once, MANY_LAUNCHES);
        int samples = (int)bounded(1, seconds / (once * sample->launches), bounded(1, repeats, MANY_SAMPLES));
        status = make_events(&w, samples + 1, error);
        if (!status)
            status = take_samples(&w, samples, sample->launches, taken, error);
        if (!status)
            summarise(taken, samples, sample);
    }
    sample->launched = w.launched;
    free_events(&w);
    return status;
}
