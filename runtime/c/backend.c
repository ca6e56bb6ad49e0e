/* backend_c: the C back end. Compiles with the system's compiler, loads from memory. */
#include "runtime/backend.h"
#include "compiler.h"
#include "base/file.h"
#include "base/text.h"
#include "module.h"
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { COMPILE_SECONDS = 120 };

static fpa_status find_target(const char *name, const fpa_target **target, fpa_error *error)
{
    *target = target_find(name);
    if (*target && (*target)->backend != BACKEND_C)
        *target = NULL;
    return *target ? FPA_OK : fail(error, FPA_UNSUPPORTED, name, "is no target of the C back end");
}

/* The CPU that runs the code is this one: fpa_options.device does not matter. */
static fpa_status c_choose(const fpa_options *options, const char *name, const fpa_target **target,
                           fpa_error *error)
{
    (void)options;
    fpa_status status = find_target(name, target, error);
    if (!status && !target_runs(*target))
        return fail(error, FPA_UNSUPPORTED, (*target)->name,
                    "cannot run on this machine; leave the target out");
    return status;
}

static fpa_status c_identity(const fpa_options *options, const char *name, char **identity, fpa_error *error)
{
    fpa_compiler compiler;
    const fpa_target *target;
    fpa_status status = find_target(name, &target, error);
    if (!status)
        status = compiler_find(options, target, &compiler, error);
    if (status)
        return status;
    status = compiler_identity(&compiler, identity, error);
    compiler_free(&compiler);
    return status;
}

/* The compiler's first lines as one: an error's message has no newline. */
static void join_lines(char *text)
{
    size_t used = strlen(text);
    while (used > 0 && text[used - 1] == '\n')
        text[--used] = 0;
    for (char *c = text; *c; c++)
        *c = *c == '\n' ? '|' : (unsigned char)*c < ' ' ? ' ' : *c;
}

static fpa_status judge(const fpa_compiler *compiler, fpa_outcome *outcome, fpa_error *error)
{
    join_lines(outcome->output);
    if (outcome->timed_out)
        return fail(error, FPA_COMPILE, compiler->path, "was stopped after %d seconds", COMPILE_SECONDS);
    if (outcome->exit_code != 0)
        return fail(error, FPA_COMPILE, compiler->path, "failed (exit code %d): %.800s", outcome->exit_code,
                    *outcome->output ? outcome->output : "it said nothing");
    return FPA_OK;
}

/* Compile folder/NAME.c to folder/NAME.so. File names are relative: no path gets into the bytes. */
static fpa_status run_compiler(const fpa_options *options, fpa_compiler *compiler, const char *folder,
                               const char *code, const char *object, fpa_error *error)
{
    fpa_outcome outcome;
    const char *const last[] = {"-o", object, code, "-lm", NULL};
    memcpy(compiler->arguments + compiler->count, last, sizeof last);
    const fpa_process process = {compiler->arguments, folder, COMPILE_SECONDS};
    fpa_status status = process_run(&process, &outcome, error);
    if (!status)
        status = judge(compiler, &outcome, error);
    if (!status && *outcome.output)
        log_line(options, "%s: %.800s", compiler->path, outcome.output);
    return status;
}

static fpa_status read_object(const char *folder, const char *name, fpa_object *object, fpa_error *error)
{
    fpa_file file;
    char *path = file_path(folder, name);
    if (!path)
        return fail_memory(error);
    fpa_status status = file_read(path, &file, error);
    free(path);
    object->bytes = file.bytes;
    object->size = file.size;
    return status;
}

static fpa_status compile_in(const fpa_options *options, fpa_compiler *compiler, const char *folder,
                             const fpa_source *source, fpa_object *object, fpa_error *error)
{
    char code[HEAD_MAX_NAME + 8], result[HEAD_MAX_NAME + 8];
    const fpa_bytes part = {source->code, strlen(source->code)};
    snprintf(code, sizeof code, "%s.c", source->facts.name);
    snprintf(result, sizeof result, "%s.so", source->facts.name);
    fpa_status status = file_write(folder, code, 0600, &part, 1, error);
    if (!status)
        status = run_compiler(options, compiler, folder, code, result, error);
    return status ? status : read_object(folder, result, object, error);
}

static fpa_status c_compile(const fpa_options *options, const fpa_source *source, fpa_object *object,
                            fpa_error *error)
{
    fpa_compiler compiler;
    const fpa_target *target;
    char *folder = NULL;
    memset(object, 0, sizeof *object);
    fpa_status status = find_target(source->facts.target, &target, error);
    if (!status)
        status = compiler_find(options, target, &compiler, error);
    if (status)
        return status;
    status = folder_create_private(&folder, error);
    if (!status) {
        status = compile_in(options, &compiler, folder, source, object, error);
        folder_remove(folder);
    }
    free(folder);
    compiler_free(&compiler);
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

/* Lines of the first processor in /proc/cpuinfo that say which arithmetic it has. */
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

static void copy_device(FILE *from, FILE *to)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, from) > 0 && *line != '\n')
        if (tells_device(line))
            fputs(line, to);
    free(line);
}

static fpa_status c_device(const fpa_options *options, char **device, fpa_error *error)
{
    (void)options;
    struct utsname machine = {0};
    const fpa_target *best = target_best();
    size_t size = 0;
    *device = NULL;
    FILE *text = open_memstream(device, &size);
    if (!text)
        return fail_memory(error);
    uname(&machine);
    fprintf(text, "machine %s\nbest %s\n", machine.machine, best ? best->name : "none");
    FILE *cpus = fopen("/proc/cpuinfo", "re");
    if (cpus) {
        copy_device(cpus, text);
        fclose(cpus);
    }
    return text_finish(text, device) ? FPA_OK : fail_memory(error);
}

const fpa_backend backend_c = {
    .name = "c",
    .device_type = kDLCPU,
    .choose = c_choose,
    .identity = c_identity,
    .compile = c_compile,
    .load = c_load,
    .unload = module_unload,
    .device = c_device,
};
