/* device: the device on which a kernel computes: its memory, and on a GPU a stream and a clock. */
#ifndef FPAC_COMMAND_DEVICE_H
#define FPAC_COMMAND_DEVICE_H

#include "machine/gpu.h"
#include "runtime/cuda/driver.h"
#include "runtime/kernel.h"

/* Whether the kernel computes on memory other than the process's own. */
bool device_is_remote(const fpa_kernel *kernel);

/* The kernel's device in DLPack's terms. */
DLDevice device_of(const fpa_kernel *kernel);

/* Allocate memory on the kernel's device, 64-byte aligned, at least one byte. The caller frees it
 * (device_release). */
fpa_status device_allocate(const fpa_kernel *kernel, size_t size, void **address, fpa_error *error);
void device_release(const fpa_kernel *kernel, void *address); /* NULL is fine */

/* Before and after a call of the kernel by a thread that has no GPU context of its own; they do nothing on the
 * CPU. */
fpa_status device_enter(const fpa_kernel *kernel, fpa_error *error);
void device_leave(const fpa_kernel *kernel);

/* Wait until all work in the kernel's streams has finished; does nothing on the CPU. */
fpa_status device_finish(const fpa_kernel *kernel, fpa_error *error);

/* A GPU on which this thread measures; its primary context is current until device_close. */
typedef struct fpa_device {
    const fpa_driver *driver;
    CUdevice gpu;
    CUcontext context;
    CUstream stream;
    char name[128];
    int multiprocessors;
    size_t cache_bytes; /* bytes of the second-level cache */
    bool entered;
} fpa_device;

/* number: the GPU, as the driver counts. Call device_close afterwards, also after an error. */
fpa_status device_open(int number, fpa_device *device, fpa_error *error);
void device_close(fpa_device *device);

/* The row of the table of GPUs that applies to a device, without opening it. */
fpa_status device_row(int number, const fpa_gpu **gpu, fpa_error *error);

/* The error of a call to the driver that returned `result`; `what` names the call. */
fpa_status device_check(const fpa_device *device, CUresult result, const char *what, fpa_error *error);

/* Work that can be launched repeatedly in a stream; `number` counts the launches. */
typedef struct fpa_work {
    fpa_status (*launch)(void *user, int64_t number, CUstream stream, fpa_error *error);
    void *user;
} fpa_work;

/* Seconds of one launch, by the device's own events. */
typedef struct fpa_sample {
    double median, least, most;
    int repeats;      /* number of samples */
    int launches;     /* launches of one sample: short work is timed in batches */
    int64_t launched; /* launches in all, warm-up included */
} fpa_sample;

/* Measure the work: at most `repeats` samples, fewer if they would take longer than `seconds`; after a warm-up.
 * All samples are in the stream back to back, so that the device never waits for this process unless launching
 * takes longer than the work. */
fpa_status device_measure(const fpa_device *device, const fpa_work *work, int repeats, double seconds,
                          fpa_sample *sample, fpa_error *error);

#endif
