#include "breakdown.h"

#include <stdio.h>
#include <string.h>

#include "median.h"
#include "runtime/cuda/watch.h"

enum { SAMPLES = 9 };

/* One launch of the work, with an event before it and after each of its kernels. */
typedef struct recording {
    const fpa_device *device;
    int events; /* events that exist */
    CUevent event[BREAKDOWN_LAUNCHES + 1];
    int count; /* kernels of this launch so far */
    const char *kernel[BREAKDOWN_LAUNCHES];
    double seconds[BREAKDOWN_LAUNCHES][SAMPLES];
    fpa_status status; /* errors, which the callback cannot return */
    fpa_error *error;
} recording;

static fpa_status record(recording *r, int number)
{
    const fpa_driver *driver = r->device->driver;
    fpa_status status = FPA_OK;
    if (number == r->events) {
        status = device_check(r->device, driver->cuEventCreate(&r->event[number], CU_EVENT_DEFAULT),
                              "an event", r->error);
        r->events += !status;
    }
    return status ? status
                  : device_check(r->device, driver->cuEventRecord(r->event[number], r->device->stream),
                                 "recording an event", r->error);
}

static void note_kernel(void *user, const char *kernel)
{
    recording *r = user;
    if (r->status)
        return;
    if (r->count == BREAKDOWN_LAUNCHES) {
        r->status = fail(r->error, FPA_UNSUPPORTED, "--breakdown", "this call has more than %d kernels",
                         BREAKDOWN_LAUNCHES);
        return;
    }
    r->kernel[r->count++] = kernel;
    r->status = record(r, r->count);
}

static fpa_status read_clock(recording *r, int sample)
{
    fpa_status status = FPA_OK;
    for (int i = 0; i < r->count && !status; i++) {
        float milliseconds = 0;
        status = device_check(
            r->device, r->device->driver->cuEventElapsedTime(&milliseconds, r->event[i], r->event[i + 1]),
            "reading the clock", r->error);
        r->seconds[i][sample] = 1e-3 * (double)milliseconds;
    }
    return status;
}

static fpa_status take_sample(recording *r, const fpa_work *work, int64_t number, int sample)
{
    r->count = 0;
    fpa_status status = record(r, 0);
    if (status)
        return status;
    cuda_watch(note_kernel, r);
    status = work->launch(work->user, number, r->device->stream, r->error);
    cuda_watch(NULL, NULL);
    if (!status)
        status = r->status;
    if (!status)
        status = device_check(r->device, r->device->driver->cuStreamSynchronize(r->device->stream),
                              "what was measured", r->error);
    return status ? status : read_clock(r, sample);
}

/* The entry of a kernel; entries are in the order of first launches. */
static kernel_part *part_of(fpa_breakdown *breakdown, const char *kernel)
{
    for (int i = 0; i < breakdown->count; i++)
        if (!strcmp(breakdown->part[i].kernel, kernel))
            return &breakdown->part[i];
    if (breakdown->count == BREAKDOWN_KERNELS)
        return NULL;
    breakdown->part[breakdown->count].kernel = kernel;
    return &breakdown->part[breakdown->count++];
}

static fpa_status summarise(recording *r, fpa_breakdown *breakdown)
{
    for (int i = 0; i < r->count; i++) {
        kernel_part *part = part_of(breakdown, r->kernel[i]);
        if (!part)
            return fail(r->error, FPA_UNSUPPORTED, "--breakdown",
                        "this call has more than %d different kernels", BREAKDOWN_KERNELS);
        part->launches++;
        part->seconds += median_of(r->seconds[i], SAMPLES);
    }
    return FPA_OK;
}

fpa_status breakdown_measure(const fpa_device *device, const fpa_work *work, fpa_breakdown *breakdown,
                             fpa_error *error)
{
    recording r = {.device = device, .error = error};
    *breakdown = (fpa_breakdown){0};
    fpa_status status = take_sample(&r, work, 0, 0); /* not counted: it may load code */
    for (int i = 0; i < SAMPLES && !status; i++)
        status = take_sample(&r, work, i + 1, i);
    if (!status)
        status = summarise(&r, breakdown);
    while (r.events > 0)
        device->driver->cuEventDestroy(r.event[--r.events]);
    return status;
}

void breakdown_print(const fpa_breakdown *breakdown, double whole)
{
    double sum = 0;
    for (int i = 0; i < breakdown->count; i++)
        sum += breakdown->part[i].seconds;
    for (int i = 0; i < breakdown->count; i++) {
        const kernel_part *part = &breakdown->part[i];
        printf("    %-20s %3d x %12.2f us %6.1f %%\n", part->kernel, part->launches,
               1e6 * part->seconds / part->launches, 100 * part->seconds / sum);
    }
    printf("    %-20s       %12.2f us, each kernel by itself; %.2f us as they follow each other\n", "all",
           1e6 * sum, 1e6 * whole);
    fflush(stdout);
}

void breakdown_write(fpa_json *json, const fpa_breakdown *breakdown)
{
    json_array(json, "breakdown");
    for (int i = 0; i < breakdown->count; i++) {
        json_object(json, NULL);
        json_text(json, "kernel", breakdown->part[i].kernel);
        json_integer(json, "launches", breakdown->part[i].launches);
        json_number(json, "seconds", breakdown->part[i].seconds);
        json_close(json);
    }
    json_close(json);
}
