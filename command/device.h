/* device: where a kernel computes: its memory, and on a GPU a stream with a clock. */
#ifndef FPAC_COMMAND_DEVICE_H
#define FPAC_COMMAND_DEVICE_H

#include "machine/gpu.h"
#include "runtime/cuda/driver.h"
#include "runtime/kernel.h"

/* True when the kernel computes on memory that is not the process's own. */
bool device_is_remote(const fpa_kernel *kernel);

/* Where DLPack says that the kernel's operands lie. */
DLDevice device_of(const fpa_kernel *kernel);

/* Memory that the kernel computes on, 64-byte aligned, at least one byte; device_release. */
fpa_status device_allocate(const fpa_kernel *kernel, size_t size, void **address, fpa_error *error);
void device_release(const fpa_kernel *kernel, void *address); /* NULL is fine */

/* Around a call of the kernel by a thread that has no GPU context of its own; nothing on the CPU. */
fpa_status device_enter(const fpa_kernel *kernel, fpa_error *error);
void device_leave(const fpa_kernel *kernel);

/* Wait for all that was put into the kernel's streams; nothing to wait for on the CPU. */
fpa_status device_finish(const fpa_kernel *kernel, fpa_error *error);

/* A GPU that this thread measures: its primary context is current until device_close. */
typedef struct fpa_device {
    const fpa_driver *driver;
    CUdevice gpu;
    CUcontext context;
    CUstream stream;
    char name[128];
    int multiprocessors;
    size_t cache_bytes; /* of the second level */
    bool entered;
} fpa_device;

/* number: as the driver counts GPUs. device_close also after an error. */
fpa_status device_open(int number, fpa_device *device, fpa_error *error);
void device_close(fpa_device *device);

/* The row of the table of GPUs that a device's launches take, without opening it. */
fpa_status device_row(int number, const fpa_gpu **gpu, fpa_error *error);

/* The error of a call to the driver that returned result; what is its name. */
fpa_status device_check(const fpa_device *device, CUresult result, const char *what, fpa_error *error);

/* Something that can be put into a stream again and again; number counts the launches. */
typedef struct fpa_work {
    fpa_status (*launch)(void *user, int64_t number, CUstream stream, fpa_error *error);
    void *user;
} fpa_work;

/* Seconds that one launch took, by the device's own events. */
typedef struct fpa_sample {
    double median, least, most;
    int repeats;      /* samples */
    int launches;     /* of one sample: short work is timed in batches */
    int64_t launched; /* in all, warm-up included */
} fpa_sample;

/* At most that many samples, fewer where they would take longer than seconds; after a warm-up. All
 * samples lie in the stream back to back, so that the device never waits for this process unless
 * launching takes longer than the work. */
fpa_status device_measure(const fpa_device *device, const fpa_work *work, int repeats, double seconds,
                          fpa_sample *sample, fpa_error *error);

#endif
