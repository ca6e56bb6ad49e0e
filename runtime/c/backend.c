/* backend_c: loads C kernels from memory. build.c compiles them. */
#include "backend.h"
#include "base/text.h"
#include "module.h"
#include "together.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

fpa_status c_target(const char *name, const fpa_target **target, fpa_error *error)
{
    *target = target_find(name);
    if (*target && (*target)->backend != BACKEND_C)
        *target = NULL;
    return *target ? FPA_OK : fail(error, FPA_UNSUPPORTED, name, "is no target of the C back end");
}

/* The code runs on this CPU: fpa_options.device does not matter. */
static fpa_status c_choose(const fpa_options *options, const char *name, const fpa_target **target,
                           fpa_error *error)
{
    (void)options;
    fpa_status status = c_target(name, target, error);
    if (!status && !target_runs(*target))
        return fail(error, FPA_UNSUPPORTED, (*target)->name,
                    "cannot run on this machine; leave the target out");
    return status;
}

static fpa_status c_load(const fpa_options *options, const fpa_object *object, const char *name,
                         fpa_module *module, fpa_error *error)
{
    (void)options;
    fpa_status status = module_load(object, name, module, error);
    if (!status)
        module->backend = &backend_c;
    return status;
}

/* Whether a line of the first processor in /proc/cpuinfo says which arithmetic it has. */
static bool tells_device(const char *line)
{
    static const char *const fields[] = {
        "vendor_id",       "cpu family",       "model",       "model name", "stepping",     "flags",
        "CPU implementer", "CPU architecture", "CPU variant", "CPU part",   "CPU revision", "Features",
    };
    size_t length = strcspn(line, ":");
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        length--;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strlen(fields[i]) == length && strncmp(line, fields[i], length) == 0)
            return true;
    return false;
}

/* Copies these lines. False: no memory. */
static bool copy_device(FILE *to)
{
    char *line = NULL;
    size_t room = 0;
    errno = 0;
    FILE *from = fopen("/proc/cpuinfo", "re"); /* may be missing */
    while (from && getline(&line, &room, from) > 0 && *line != '\n')
        if (tells_device(line))
            fputs(line, to);
    const bool fine = errno != ENOMEM;
    if (from)
        fclose(from);
    free(line);
    return fine;
}

static fpa_status c_device(const fpa_options *options, char **device, fpa_error *error)
{
    (void)options;
    struct utsname machine = {0};
    const fpa_target *best = target_best();
    text_buffer buffer;
    *device = NULL;
    FILE *text = text_open(&buffer);
    if (!text)
        return fail_memory(error);
    uname(&machine);
    fprintf(text, "machine %s\nbest %s\n", machine.machine, best ? best->name : "none");
    const bool whole = copy_device(text);
    *device = text_finish(&buffer);
    if (whole && *device)
        return FPA_OK;
    free(*device);
    *device = NULL;
    return fail_memory(error);
}

const fpa_backend backend_c = {
    .name = "c",
    .device_type = kDLCPU,
    .together = &together_c,
    .choose = c_choose,
    .load = c_load,
    .unload = module_unload,
    .device = c_device,
};
