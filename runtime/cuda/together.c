/* together: the heads of a layer in parallel streams. The part that takes longest is launched into the caller's stream, so that it waits
 * for no event; each other part into a stream of the layer:
 *
 *     caller's   --fork----[ part ]-----------join--join-->
 *     own 1           \----[ part ]----done---/     /
 *     own 2            \---[ part ]----done--------/
 *
 * Forks and joins are events, so that a capture of the caller's stream includes all parts (decision 0036). */
#include "together.h"
#include "base/round.h"
#include "grid.h"
#include "module.h"

#include <pthread.h>
#include <stdlib.h>

enum { ALIGNMENT = 256 };

/* A layer's streams and events. The lock is held while launches are put into them. */
typedef struct forks {
    const struct fpa_cuda_module *cuda; /* the streams belong to its context */
    pthread_mutex_t lock;
    int count; /* streams */
    CUstream stream[MOST_PARTS];
    CUevent fork, done[MOST_PARTS];
} forks;

static fpa_status check(const forks *f, CUresult result, const char *what, fpa_error *error)
{
    return result ? driver_fail(f->cuda->driver, result, "layer", what, error) : FPA_OK;
}

static fpa_status make(forks *f, int count, fpa_error *error)
{
    const fpa_driver *driver = f->cuda->driver;
    CUresult result = driver->cuEventCreate(&f->fork, CU_EVENT_DISABLE_TIMING);
    if (result)
        f->fork = NULL;
    for (int i = 0; i < count && !result; i++, f->count += !result) {
        result = driver->cuStreamCreate(&f->stream[i], CU_STREAM_NON_BLOCKING);
        if (result)
            break;
        result = driver->cuEventCreate(&f->done[i], CU_EVENT_DISABLE_TIMING);
        if (result)
            driver->cuStreamDestroy(f->stream[i]);
    }
    return check(f, result, "a stream of a layer cannot be created", error);
}

static void close_forks(void *handle)
{
    forks *f = handle;
    if (!f)
        return;
    if (cuda_enter(f->cuda, NULL) == FPA_OK) {
        for (int i = 0; i < f->count; i++) {
            f->cuda->driver->cuEventDestroy(f->done[i]);
            f->cuda->driver->cuStreamDestroy(f->stream[i]);
        }
        if (f->fork)
            f->cuda->driver->cuEventDestroy(f->fork);
        cuda_leave(f->cuda);
    }
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static fpa_status open_forks(const fpa_module *const *modules, int count, void **handle, fpa_error *error)
{
    *handle = NULL;
    forks *f = calloc(1, sizeof *f);
    if (!f)
        return fail_memory(error);
    f->cuda = modules[0]->handle;
    pthread_mutex_init(&f->lock, NULL);
    fpa_status status = cuda_enter(f->cuda, error);
    if (!status) {
        status = make(f, count - 1, error);
        cuda_leave(f->cuda);
    }
    if (status)
        close_forks(f);
    else
        *handle = f;
    return status;
}

static const fpa_candidate *way_of(const fpa_part *part)
{
    return part->chosen ? &part->fastest : NULL;
}

static size_t part_bytes(const fpa_part *part)
{
    const size_t bytes = part->module->workspace(part->module, part->form, &part->launch, way_of(part));
    return round_up(bytes, ALIGNMENT);
}

static size_t workspace_of(const fpa_part *parts, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += part_bytes(&parts[i]);
    return bytes;
}

static fpa_status launch_part(fpa_part *part, CUstream stream, fpa_error *error)
{
    return part->module->forward(part->module, part->form, &part->launch, way_of(part), stream, error);
}

/* Whether the layer's streams can fork from the caller's: while a capture includes them, which has not ended, no other stream can. */
static fpa_status may_fork(const forks *f, CUstream stream, bool *may, fpa_error *error)
{
    const fpa_driver *driver = f->cuda->driver;
    unsigned long long ours = 0, callers = 0;
    int captured = 0, caller_captured = 0;
    CUresult result = f->count ? driver->cuStreamGetCaptureInfo(f->stream[0], &captured, &ours) : 0;
    if (!result && captured)
        result = driver->cuStreamGetCaptureInfo(stream, &caller_captured, &callers);
    *may = f->count && (!captured || (caller_captured && ours == callers));
    return check(f, result, "the capture status of a stream cannot be read", error);
}

/* Launches order[0] into the caller's stream and the others into forked streams. Streams that were forked are joined also after an error,
 * since a capture cannot end otherwise. */
static fpa_status launch_forked(forks *f, fpa_part *parts, int count, const int *order, CUstream stream,
                                fpa_error *error)
{
    const fpa_driver *driver = f->cuda->driver;
    int forked = 0;
    fpa_status status =
        check(f, driver->cuEventRecord(f->fork, stream), "the streams of a layer cannot be forked", error);
    for (; forked < count - 1 && !status; forked++)
        status = check(f, driver->cuStreamWaitEvent(f->stream[forked], f->fork, 0),
                       "the streams of a layer cannot be forked", error);
    if (!status)
        status = launch_part(&parts[order[0]], stream, error);
    for (int i = 1; i < count && !status; i++)
        status = launch_part(&parts[order[i]], f->stream[i - 1], error);
    for (int i = 0; i < forked; i++) {
        CUresult result = driver->cuEventRecord(f->done[i], f->stream[i]);
        if (!result)
            result = driver->cuStreamWaitEvent(stream, f->done[i], 0);
        if (result && !status)
            status = check(f, result, "the streams of a layer cannot be joined", error);
    }
    return status;
}

static fpa_status launch_in_turn(fpa_part *parts, int count, CUstream stream, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int i = 0; i < count && !status; i++)
        status = launch_part(&parts[i], stream, error);
    return status;
}

/* Orders parts by the model's time, the longest first. */
static void order_parts(const fpa_part *parts, int count, int order[MOST_PARTS])
{
    double seconds[MOST_PARTS];
    for (int i = 0; i < count; i++)
        seconds[i] = parts[i].chosen ? parts[i].fastest.cost.seconds : 0;
    together_order(seconds, count, order);
}

static fpa_status place(fpa_part *parts, int count, char *memory, size_t size, fpa_error *error)
{
    const size_t needed = workspace_of(parts, count);
    if (size < needed)
        return fail(error, FPA_INVALID, "workspace", "has %zu bytes, but this call needs %zu", size, needed);
    for (int i = 0; i < count; i++) {
        const size_t bytes = part_bytes(&parts[i]);
        parts[i].launch.workspace = bytes ? memory : NULL;
        parts[i].launch.workspace_size = bytes;
        memory += bytes;
    }
    return FPA_OK;
}

static fpa_status forward(void *handle, fpa_part *parts, int count, void *workspace, size_t size,
                          void *stream, fpa_error *error)
{
    forks *f = handle;
    int order[MOST_PARTS];
    bool may = false;
    fpa_status status = place(parts, count, workspace, size, error);
    if (!status && count > 1)
        status = cuda_check_context(f->cuda, error);
    if (status)
        return status;
    if (count < 2)
        return launch_in_turn(parts, count, stream, error);
    order_parts(parts, count, order);
    pthread_mutex_lock(&f->lock);
    status = may_fork(f, stream, &may, error);
    if (!status && may)
        status = launch_forked(f, parts, count, order, stream, error);
    pthread_mutex_unlock(&f->lock);
    return status || may ? status : launch_in_turn(parts, count, stream, error);
}

const fpa_together together_cuda = {
    .open = open_forks,
    .close = close_forks,
    .workspace = workspace_of,
    .forward = forward,
};
