#include "fake_libcuda.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_IMAGE = 200, NOT_FOUND = 500, LAUNCH_FAILED = 719 };

struct fake_state fake_state = {.devices = 1, .capability = 90, .shared_memory = 227 * 1024, .resident = 2};

/* Counts a call, and tells it to fail when its turn has come. */
static int call(void)
{
    return fake_state.fail_at == ++fake_state.calls ? LAUNCH_FAILED : 0;
}

static int is_missing(const char *name)
{
    return fake_state.missing && strcmp(name, fake_state.missing) == 0;
}

int cuInit(unsigned flags)
{
    return fake_state.devices ? call() : NO_DEVICE;
}

int cuGetErrorName(int result, const char **name)
{
    *name = result == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return 0;
}

int cuGetErrorString(int result, const char **text)
{
    (void)result;
    *text = "as the test wanted";
    return 0;
}

int cuDriverGetVersion(int *version)
{
    *version = 12040;
    return call();
}

int cuDeviceGetCount(int *count)
{
    *count = fake_state.devices;
    return call();
}

int cuDeviceGet(int *device, int number)
{
    *device = number;
    return call();
}

int cuDeviceGetName(char *name, int size, int device)
{
    strncpy(name, "Fake GPU", (size_t)size);
    return call();
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 75   ? fake_state.capability / 10
             : attribute == 76 ? fake_state.capability % 10
             : attribute == 97 ? fake_state.shared_memory
                               : 132;
    return call();
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    int result = call();
    *context = &fake_state;
    fake_state.contexts += !result;
    return result;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    fake_state.contexts--;
    return 0;
}

int cuCtxPushCurrent_v2(void *context)
{
    int result = context == &fake_state ? call() : LAUNCH_FAILED;
    fake_state.depth += !result;
    return result;
}

int cuCtxPopCurrent_v2(void **context)
{
    *context = &fake_state;
    fake_state.depth--;
    return 0;
}

/* The header of an image has the places of all that is in it, so that its end follows. */
static unsigned long end_of(const unsigned char *image)
{
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    const unsigned long sections = header.e_shoff + (unsigned long)header.e_shnum * header.e_shentsize,
                        segments = header.e_phoff + (unsigned long)header.e_phnum * header.e_phentsize;
    return sections > segments ? sections : segments;
}

static int is_stranger(const unsigned char *image)
{
    const unsigned char *object = fake_state.object;
    for (unsigned long at = 0; object && at + sizeof(Elf64_Ehdr) <= fake_state.object_size; at += 16) {
        const unsigned long size = memcmp(object + at, ELFMAG, SELFMAG) == 0 ? end_of(object + at) : 0;
        if (size > 0 && size <= fake_state.object_size - at && size == end_of(image) &&
            memcmp(object + at, image, size) == 0)
            return 0;
    }
    return object != NULL;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values)
{
    (void)count, (void)options, (void)values;
    int result = fake_state.refuse_image ? INVALID_IMAGE : call();
    *module = &fake_state;
    fake_state.modules += !result;
    fake_state.loads++;
    fake_state.strangers += is_stranger(image);
    return result;
}

int cuModuleUnload(void *module)
{
    fake_state.modules--;
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = &fake_state;
    return is_missing(name) ? NOT_FOUND : call();
}

int cuModuleGetGlobal_v2(unsigned long long *address, size_t *size, void *module, const char *name)
{
    *address = (uintptr_t)&fake_state.geometry;
    *size = fake_state.geometry_size;
    return is_missing(name) ? NOT_FOUND : call();
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t bytes)
{
    (void)function, (void)threads, (void)bytes;
    *blocks = fake_state.resident;
    return call();
}

int cuMemAlloc_v2(unsigned long long *address, size_t size)
{
    void *memory = size > 0 && size < 1 << 30 ? malloc(size) : NULL;
    *address = (uintptr_t)memory;
    fake_state.allocations += memory != NULL;
    return memory ? 0 : OUT_OF_MEMORY;
}

int cuMemFree_v2(unsigned long long address)
{
    free((void *)(uintptr_t)address);
    fake_state.allocations--;
    return 0;
}

int cuMemAllocHost_v2(void **address, size_t size)
{
    *address = malloc(size);
    fake_state.allocations += *address != NULL;
    return *address ? 0 : OUT_OF_MEMORY;
}

int cuMemFreeHost(void *address)
{
    free(address);
    fake_state.allocations--;
    return 0;
}

static int copy(void *to, const void *from, size_t size)
{
    int result = fake_state.depth > 0 ? call() : LAUNCH_FAILED;
    if (!result)
        memcpy(to, from, size);
    return result;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size)
{
    return copy((void *)(uintptr_t)to, from, size);
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size)
{
    return copy(to, (const void *)(uintptr_t)from, size);
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t size, void *stream)
{
    (void)stream;
    return copy(to, (const void *)(uintptr_t)from, size);
}

/* A kernel takes a quarter of a millisecond. */
int cuEventElapsedTime(float *milliseconds, void *start, void *end)
{
    *milliseconds = 0.25F;
    return call();
}

int cuCtxGetCurrent(void **context)
{
    *context = fake_state.depth > 0 ? &fake_state : NULL;
    return call();
}

/* ---- streams and events, by their numbers ---- */

static const char *name_of(char text[24], const char *kind, const void *made, unsigned long most)
{
    const unsigned long number = (unsigned long)(uintptr_t)made;
    if (number == 0 || number > most)
        return "c";
    snprintf(text, 24, "%s%lu", kind, number);
    return text;
}

static void note(const char *verb, const void *stream, const char *with, const void *event)
{
    char s[24], e[24];
    const size_t used = strlen(fake_state.trace), room = sizeof fake_state.trace - used;
    const char *its = name_of(s, "s", stream, fake_state.made_streams);
    if (!event)
        snprintf(fake_state.trace + used, room, "%s on %s;", verb, its);
    else
        snprintf(fake_state.trace + used, room, "%s %s %s %s;", verb,
                 strcmp(verb, "wait") ? name_of(e, "e", event, fake_state.made_events) : its, with,
                 strcmp(verb, "wait") ? its : name_of(e, "e", event, fake_state.made_events));
}

int cuStreamCreate(void **stream, unsigned flags)
{
    int result = call();
    if (result)
        return result;
    fake_state.streams++;
    *stream = (void *)(uintptr_t)++fake_state.made_streams;
    return 0;
}

int cuStreamDestroy_v2(void *stream)
{
    fake_state.streams--;
    return 0;
}

int cuEventCreate(void **event, unsigned flags)
{
    int result = call();
    if (result)
        return result;
    fake_state.events++;
    *event = (void *)(uintptr_t)++fake_state.made_events;
    return 0;
}

int cuEventDestroy_v2(void *event)
{
    fake_state.events--;
    return 0;
}

int cuEventRecord(void *event, void *stream)
{
    note("record", stream, "on", event);
    return call();
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    note("wait", stream, "for", event);
    return call();
}

int cuStreamGetCaptureInfo(void *stream, int *captured, unsigned long long *number)
{
    const unsigned long made = (unsigned long)(uintptr_t)stream;
    *number = made > 0 && made <= fake_state.made_streams ? fake_state.capture : fake_state.callers_capture;
    *captured = *number > 0;
    return call();
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned bytes, void *stream, void **parameters,
                   void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z,
        (void)bytes, (void)parameters, (void)extra;
    note("launch", stream, NULL, NULL);
    return call();
}

/* Nothing to do, or nothing that these tests ask for. */
#define CALL(name)                                                                                           \
    int name(void)                                                                                           \
    {                                                                                                        \
        return call();                                                                                       \
    }
CALL(cuCtxSynchronize)
CALL(cuFuncSetAttribute)
CALL(cuMemGetInfo_v2)
CALL(cuMemcpyDtoDAsync_v2)
CALL(cuMemsetD8_v2)
CALL(cuMemsetD16_v2)
CALL(cuMemsetD8Async)
CALL(cuStreamSynchronize)
CALL(cuStreamBeginCapture_v2)
CALL(cuStreamEndCapture)
CALL(cuGraphInstantiateWithFlags)
CALL(cuGraphLaunch)
CALL(cuGraphExecDestroy)
CALL(cuGraphDestroy)
