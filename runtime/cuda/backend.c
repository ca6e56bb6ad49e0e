/* backend_cuda: loads cubins on a GPU. What compiles them is build.c. */
#include "backend.h"
#include "driver.h"
#include "module.h"
#include "together.h"

#include <stdio.h>
#include <string.h>

fpa_status cuda_target(const char *name, const fpa_target **target, fpa_error *error)
{
    *target = target_find(name);
    if (*target && (*target)->backend == BACKEND_CUDA)
        return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, name, "is no target of the CUDA back end");
}

static int device_number(const fpa_options *options)
{
    return options ? options->device : 0;
}

/* "GPU 0 (NVIDIA H200)" */
static void describe(const fpa_driver *driver, CUdevice device, int number, char *text, size_t size)
{
    char name[128] = "";
    if (driver->cuDeviceGetName(name, sizeof name, device))
        snprintf(name, sizeof name, "of unknown name");
    snprintf(text, size, "GPU %d (%s)", number, name);
}

static fpa_status cuda_choose(const fpa_options *options, const char *name, const fpa_target **target,
                              fpa_error *error)
{
    char text[192];
    int capability;
    CUdevice device;
    const fpa_driver *driver;
    const fpa_target *wanted = NULL;
    int number = device_number(options);
    *target = NULL;
    fpa_status status = strcmp(name, "cuda") == 0 ? FPA_OK : cuda_target(name, &wanted, error);
    if (!status)
        status = driver_find(&driver, error);
    if (!status)
        status = driver_device(driver, number, &device, &capability, error);
    if (status)
        return status;
    const fpa_target *best = target_for_capability(capability);
    describe(driver, device, number, text, sizeof text);
    if (!best)
        return fail(error, FPA_UNSUPPORTED, name,
                    "%s has compute capability %d.%d, for which there is no CUDA target; a C target works",
                    text, capability / 10, capability % 10);
    if (wanted && !target_fits(wanted, capability))
        return fail(error, FPA_UNSUPPORTED, wanted->name,
                    "does not run on %s, which has compute capability %d.%d: %s does", text, capability / 10,
                    capability % 10, best->name);
    *target = wanted ? wanted : best;
    return FPA_OK;
}

static fpa_status load(const fpa_options *options, const fpa_object *object, const char *name,
                       fpa_module *module, fpa_error *error)
{
    fpa_status status = cuda_module_load(options, object, name, module, error);
    if (!status)
        module->backend = &backend_cuda;
    return status;
}

/* Text that identifies the GPU; the number of multiprocessors is part of it, since it decides how a forward pass is divided into blocks. */
static fpa_status cuda_device(const fpa_options *options, char **text, fpa_error *error)
{
    char name[128] = "";
    int capability, multiprocessors = 0;
    CUdevice device;
    const fpa_driver *driver;
    *text = NULL;
    fpa_status status = driver_find(&driver, error);
    if (!status)
        status = driver_device(driver, device_number(options), &device, &capability, error);
    if (status)
        return status;
    CUresult result = driver->cuDeviceGetName(name, sizeof name, device);
    if (!result)
        result =
            driver->cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (result)
        return driver_fail(driver, result, "cuda", "the GPU's properties cannot be read", error);
    if (asprintf(text, "gpu %s\ncapability %d.%d\nmultiprocessors %d\ndriver %d.%d\n", name, capability / 10,
                 capability % 10, multiprocessors, driver->version / 1000, driver->version % 1000 / 10) >= 0)
        return FPA_OK;
    *text = NULL;
    return fail_memory(error);
}

const fpa_backend backend_cuda = {
    .name = "cuda",
    .device_type = kDLCUDA,
    .memory = &cuda_memory,
    .together = &together_cuda,
    .choose = cuda_choose,
    .load = load,
    .unload = cuda_module_unload,
    .device = cuda_device,
};
