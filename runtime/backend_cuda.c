#include "backend_cuda.h"
#include "driver.h"
#include "module_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fpa_status find_target(const char *name, const fpa_target **target, fpa_error *error)
{
    *target = target_find(name);
    if (*target && (*target)->capability)
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
    fpa_status status = strcmp(name, "cuda") == 0 ? FPA_OK : find_target(name, &wanted, error);
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

static fpa_status cuda_identity(const fpa_options *options, const char *name, char **identity,
                                fpa_error *error)
{
    const fpa_target *target;
    (void)options; /* none of them changes what NVRTC writes */
    *identity = NULL;
    fpa_status status = find_target(name, &target, error);
    return status ? status : nvrtc_identity(target, identity, error);
}

static void log_report(const fpa_options *options, const char *name, const fpa_target *target,
                       const nvrtc_report *report)
{
    char figures[96] = "", remarks[800];
    if (report->registers > 0)
        snprintf(figures, sizeof figures, ", at most %d registers, %lld bytes of spills", report->registers,
                 report->spill_bytes);
    log_line(options, "%s: NVRTC %s for %s: %.2f s%s", name, report->version, target->march, report->seconds,
             figures);
    if (nvrtc_remarks(report, remarks, sizeof remarks))
        log_line(options, "%s: warning: %s", name, remarks);
}

fpa_status cuda_compile(const fpa_options *options, const fpa_source *source, bool ptx, fpa_object *object,
                        nvrtc_report *report, fpa_error *error)
{
    char file[HEAD_MAX_NAME + 8];
    const fpa_target *target;
    memset(object, 0, sizeof *object);
    memset(report, 0, sizeof *report);
    fpa_status status = find_target(source->facts.target, &target, error);
    if (status)
        return status;
    snprintf(file, sizeof file, "%s.cu", source->facts.name);
    status = nvrtc_compile(source->code, file, target, ptx, object, report, error);
    if (!status)
        log_report(options, source->facts.name, target, report);
    return status;
}

static fpa_status compile(const fpa_options *options, const fpa_source *source, fpa_object *object,
                          fpa_error *error)
{
    nvrtc_report report;
    fpa_status status = cuda_compile(options, source, false, object, &report, error);
    nvrtc_report_free(&report);
    return status;
}

static fpa_status load(const fpa_options *options, const fpa_object *object, const char *name,
                       fpa_module *module, fpa_error *error)
{
    fpa_status status = cuda_module_load(options, object, name, module, error);
    if (!status)
        module->backend = &backend_cuda;
    return status;
}

/* The number of multiprocessors belongs to it: it decides how a forward is cut into blocks. */
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
        return driver_fail(driver, result, "cuda", "the GPU cannot be asked what it is", error);
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
    .choose = cuda_choose,
    .identity = cuda_identity,
    .compile = compile,
    .load = load,
    .unload = cuda_module_unload,
    .device = cuda_device,
};
