/* driver: opens libcuda once for the process and finds its functions by dlsym. */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    size_t field; /* offset in fpa_driver */
    const char *symbol;
    bool optional; /* older drivers lack it */
} symbols[] = {
#define FUNCTION(name, version)                                                                              \
    {                                                                                                        \
        offsetof(fpa_driver, name), #name version, false                                                     \
    }
#define OPTIONAL(name)                                                                                       \
    {                                                                                                        \
        offsetof(fpa_driver, name), #name, true                                                              \
    }
    FUNCTION(cuInit, ""),
    FUNCTION(cuGetErrorName, ""),
    FUNCTION(cuGetErrorString, ""),
    FUNCTION(cuDriverGetVersion, ""),
    FUNCTION(cuDeviceGet, ""),
    FUNCTION(cuDeviceGetCount, ""),
    FUNCTION(cuDeviceGetName, ""),
    FUNCTION(cuDeviceGetAttribute, ""),
    FUNCTION(cuDevicePrimaryCtxRetain, ""),
    FUNCTION(cuDevicePrimaryCtxRelease, "_v2"),
    FUNCTION(cuCtxGetCurrent, ""),
    FUNCTION(cuCtxPushCurrent, "_v2"),
    FUNCTION(cuCtxPopCurrent, "_v2"),
    FUNCTION(cuCtxSynchronize, ""),
    FUNCTION(cuModuleLoadDataEx, ""),
    FUNCTION(cuModuleUnload, ""),
    FUNCTION(cuModuleGetFunction, ""),
    FUNCTION(cuModuleGetGlobal, "_v2"),
    FUNCTION(cuFuncSetAttribute, ""),
    FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor, ""),
    FUNCTION(cuLaunchKernel, ""),
    FUNCTION(cuMemAlloc, "_v2"),
    FUNCTION(cuMemFree, "_v2"),
    FUNCTION(cuMemAllocHost, "_v2"),
    FUNCTION(cuMemFreeHost, ""),
    FUNCTION(cuMemGetInfo, "_v2"),
    FUNCTION(cuMemcpyHtoD, "_v2"),
    FUNCTION(cuMemcpyDtoH, "_v2"),
    FUNCTION(cuMemcpyDtoHAsync, "_v2"),
    FUNCTION(cuMemcpyDtoDAsync, "_v2"),
    FUNCTION(cuMemsetD8, "_v2"),
    FUNCTION(cuMemsetD16, "_v2"),
    FUNCTION(cuMemsetD8Async, ""),
    FUNCTION(cuStreamCreate, ""),
    FUNCTION(cuStreamDestroy, "_v2"),
    FUNCTION(cuStreamSynchronize, ""),
    FUNCTION(cuStreamBeginCapture, "_v2"),
    FUNCTION(cuStreamEndCapture, ""),
    FUNCTION(cuStreamGetCaptureInfo, ""),
    FUNCTION(cuStreamWaitEvent, ""),
    FUNCTION(cuGraphInstantiate, "WithFlags"),
    FUNCTION(cuGraphLaunch, ""),
    FUNCTION(cuGraphExecDestroy, ""),
    FUNCTION(cuGraphDestroy, ""),
    FUNCTION(cuEventCreate, ""),
    FUNCTION(cuEventRecord, ""),
    FUNCTION(cuEventElapsedTime, ""),
    FUNCTION(cuEventDestroy, "_v2"),
    OPTIONAL(cuOccupancyMaxActiveClusters),
    OPTIONAL(cuLaunchKernelEx),
    OPTIONAL(cuTensorMapEncodeTiled),
#undef OPTIONAL
#undef FUNCTION
};

enum { SYMBOLS = sizeof symbols / sizeof *symbols };

/* The function pointers are the first members of fpa_driver: so this finds a missing entry in `symbols`. */
_Static_assert(offsetof(fpa_driver, devices) == SYMBOLS * sizeof(void *), "a function without a symbol");

/* Written once, by open_driver; the library stays open for the life of the process. */
static struct {
    pthread_once_t once;
    fpa_driver driver;
    fpa_status status;
    fpa_error error;
} found = {.once = PTHREAD_ONCE_INIT};

static fpa_status find_symbols(void *library, const char *path, fpa_driver *driver, fpa_error *error)
{
    for (int i = 0; i < SYMBOLS; i++) {
        void *function = dlsym(library, symbols[i].symbol);
        if (!function && !symbols[i].optional)
            return fail(error, FPA_DEVICE, path,
                        "has no %s: install an NVIDIA driver that serves CUDA 11.4 or later",
                        symbols[i].symbol);
        /* POSIX allows a function's address in dlsym's pointer; ISO C has no cast for it */
        memcpy((char *)driver + symbols[i].field, &function, sizeof function);
    }
    return FPA_OK;
}

static fpa_status start(fpa_driver *driver, const char *path, fpa_error *error)
{
    CUresult result = driver->cuInit(0);
    if (!result)
        result = driver->cuDriverGetVersion(&driver->version);
    if (!result)
        result = driver->cuDeviceGetCount(&driver->devices);
    if (result == CUDA_ERROR_NO_DEVICE || (!result && driver->devices < 1))
        return fail(error, FPA_DEVICE, path,
                    "the NVIDIA driver finds no GPU: check CUDA_VISIBLE_DEVICES and the container's devices; "
                    "C targets work without one");
    return result ? driver_fail(driver, result, path, "the NVIDIA driver does not start", error) : FPA_OK;
}

static void open_driver(void)
{
    const char *own = getenv("FPA_LIBCUDA");
    const char *path = own && *own ? own : "libcuda.so.1";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        found.status = fail(&found.error, FPA_DEVICE, "cuda",
                            "no NVIDIA driver (%s); install it, or name its library in FPA_LIBCUDA; C "
                            "targets work without one",
                            reason ? reason : path);
        return;
    }
    found.status = find_symbols(library, path, &found.driver, &found.error);
    if (!found.status)
        found.status = start(&found.driver, path, &found.error);
}

fpa_status driver_find(const fpa_driver **driver, fpa_error *error)
{
    pthread_once(&found.once, open_driver);
    *driver = found.status ? NULL : &found.driver;
    if (found.status && error)
        *error = found.error;
    return found.status;
}

fpa_status driver_fail(const fpa_driver *driver, CUresult result, const char *where, const char *what,
                       fpa_error *error)
{
    const char *name = NULL, *text = NULL;
    fpa_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? FPA_NO_MEMORY : FPA_DEVICE;
    if (driver->cuGetErrorName(result, &name) || !name)
        return fail(error, status, where, "%s: CUDA error %d", what, result);
    if (driver->cuGetErrorString(result, &text) || !text)
        text = "no description";
    return fail(error, status, where, "%s: %s (%s)", what, name, text);
}

fpa_status driver_device(const fpa_driver *driver, int number, CUdevice *device, int *capability,
                         fpa_error *error)
{
    int major = 0, minor = 0;
    if (number < 0 || number >= driver->devices)
        return fail(error, FPA_INVALID, "options.device", "is %d, but there %s %d GPU%s, counted from 0",
                    number, driver->devices == 1 ? "is" : "are", driver->devices,
                    driver->devices == 1 ? "" : "s");
    CUresult result = driver->cuDeviceGet(device, number);
    if (!result)
        result = driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, *device);
    if (!result)
        result = driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, *device);
    if (result)
        return driver_fail(driver, result, "cuda", "the GPU cannot be opened", error);
    if (capability)
        *capability = 10 * major + minor;
    return FPA_OK;
}
