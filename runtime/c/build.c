/* build: runs the system's compiler in a private folder. */
#include "backend.h"
#include "runtime/builder.h"
#include "compiler.h"
#include "base/file.h"
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COMPILE_SECONDS = 120 };

static fpa_status c_identity(const fpa_options *options, const char *name, char **identity, fpa_error *error)
{
    fpa_compiler compiler;
    const fpa_target *target;
    fpa_status status = c_target(name, &target, error);
    if (!status)
        status = compiler_find(options, target, &compiler, error);
    if (status)
        return status;
    status = compiler_identity(&compiler, identity, error);
    compiler_free(&compiler);
    return status;
}

/* Joins the compiler's first lines, since an error's message has no newline. */
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

static bool is_written(const char *folder, const char *name)
{
    struct stat facts;
    char *path = file_path(folder, name);
    bool there = path && stat(path, &facts) == 0;
    free(path);
    return there;
}

/* Compiles folder/NAME.c to folder/NAME.so. File names are relative, so that the bytes contain no path. */
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
    if (!status && outcome.unknown && !is_written(folder, object))
        status = fail(
            error, FPA_COMPILE, compiler->path,
            "failed (its exit code was lost: this program ignores SIGCHLD or waits for any child): %.700s",
            *outcome.output ? outcome.output : "it said nothing");
    if (!status && *outcome.output)
        log_line(options, "%s: %.800s", compiler->path, outcome.output);
    return status;
}

/* Reads the compiled file. It may be missing although no failure was seen, if the exit code is unknown
 * (process.h). */
static fpa_status read_object(const char *compiler, const char *folder, const char *name, fpa_object *object,
                              fpa_error *error)
{
    fpa_file file;
    char *path = file_path(folder, name);
    if (!path)
        return fail_memory(error);
    fpa_status status = file_read(path, &file, error);
    free(path);
    if (status && file.missing)
        return fail(error, FPA_COMPILE, compiler, "wrote no %s", name);
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
    return status ? status : read_object(compiler->path, folder, result, object, error);
}

static fpa_status c_compile(const fpa_options *options, const fpa_source *source, fpa_object *object,
                            fpa_error *error)
{
    fpa_compiler compiler;
    const fpa_target *target;
    char *folder = NULL;
    memset(object, 0, sizeof *object);
    fpa_status status = c_target(source->facts.target, &target, error);
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

const fpa_builder builder_c = {.identity = c_identity, .compile = c_compile};
