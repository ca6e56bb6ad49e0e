#include "compiler.h"
#include "base/file.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *const flags[] = {
    "-std=gnu11", "-O2", "-fopenmp", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra",
};

static bool is_program(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0;
}

/* Makes a path absolute, because the compiler is started in another folder. */
static fpa_status find_path(const char *path, char **found, fpa_error *error)
{
    char *folder = NULL;
    *found = path[0] == '/' ? strdup(path) : NULL;
    if (path[0] != '/' && !(folder = getcwd(NULL, 0)) && errno != ENOMEM)
        return fail(error, FPA_COMPILE, path, "is a relative path, and the working folder: %s",
                    strerror(errno));
    if (folder)
        *found = file_path(folder, path);
    free(folder);
    if (!*found)
        return fail_memory(error);
    if (!is_program(*found)) {
        free(*found);
        *found = NULL;
    }
    return FPA_OK;
}

/* Looks a name up in the absolute folders of PATH; *found stays NULL if it is in none. */
static fpa_status find_name(const char *name, char **found, fpa_error *error)
{
    const char *folder = getenv("PATH");
    *found = NULL;
    while (folder && *folder) {
        size_t length = strcspn(folder, ":");
        if (folder[0] == '/') {
            char *path = malloc(length + strlen(name) + 2);
            if (!path)
                return fail_memory(error);
            sprintf(path, "%.*s/%s", (int)length, folder, name);
            if (is_program(path)) {
                *found = path;
                return FPA_OK;
            }
            free(path);
        }
        folder += length + (folder[length] == ':');
    }
    return FPA_OK;
}

static fpa_status find_program(const char *name, char **found, fpa_error *error)
{
    return strchr(name, '/') ? find_path(name, found, error) : find_name(name, found, error);
}

/* A compiler that was chosen by name must exist: falling back to another one would hide a mistake. */
static fpa_status find_named(const char *name, const char *from, char **found, fpa_error *error)
{
    fpa_status status = find_program(name, found, error);
    if (status == FPA_OK && !*found)
        return fail(error, FPA_COMPILE, from, "names the compiler '%s', which is not a program%s", name,
                    strchr(name, '/') ? "" : " on the PATH (flags belong into FPA_CFLAGS)");
    return status;
}

static fpa_status find_native(const fpa_options *options, char **found, fpa_error *error)
{
    static const char *const usual[] = {"cc", "gcc", "clang"};
    const char *variable = getenv("FPA_CC");
    if (options && options->compiler)
        return find_named(options->compiler, "options.compiler", found, error);
    if (variable && *variable)
        return find_named(variable, "FPA_CC", found, error);
    for (int i = 0; i < 3; i++) {
        fpa_status status = find_name(usual[i], found, error);
        if (status || *found)
            return status;
    }
    return fail(error, FPA_COMPILE, "compiler",
                "none of cc, gcc and clang is on the PATH; install one (Debian: apt install gcc) or name one "
                "in FPA_CC");
}

static fpa_status find_cross(const fpa_target *target, char **found, fpa_error *error)
{
    char variable[32] = "FPA_CC_", name[48], debian[16];
    size_t length = strlen(variable);
    snprintf(variable + length, sizeof variable - length, "%s", target->machine);
    for (char *c = variable; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    const char *named = getenv(variable);
    if (named && *named)
        return find_named(named, variable, found, error);
    snprintf(name, sizeof name, "%s-linux-gnu-gcc", target->machine);
    fpa_status status = find_name(name, found, error);
    if (status || *found)
        return status;
    snprintf(debian, sizeof debian, "%s", target->machine);
    for (char *c = debian; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return fail(
        error, FPA_UNSUPPORTED, target->name,
        "is code for another machine, and there is no %s on the PATH; install it (Debian: apt install "
        "gcc-%s-linux-gnu) or name one in %s",
        name, debian, variable);
}

static bool is_native(const fpa_target *target)
{
    struct utsname machine;
    return uname(&machine) == 0 && strcmp(machine.machine, target->machine) == 0;
}

static void add_argument(fpa_compiler *compiler, const char *argument)
{
    if (compiler->count < COMPILER_MAX_ARGUMENTS)
        compiler->arguments[compiler->count++] = argument;
}

static void add_words(fpa_compiler *compiler, char *words)
{
    char *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        add_argument(compiler, word);
}

static fpa_status collect_arguments(const fpa_target *target, fpa_compiler *compiler, fpa_error *error)
{
    enum { ROOM = 8 }; /* room for the files, -lm and NULL that are added for a compilation */
    const char *extra = getenv("FPA_CFLAGS");
    add_argument(compiler, compiler->path);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        add_argument(compiler, flags[i]);
    compiler->march = strdup(target->march);
    compiler->extra = strdup(extra ? extra : "");
    if (!compiler->march || !compiler->extra)
        return fail_memory(error);
    add_words(compiler, compiler->march);
    if (target->vector == 16) /* for most of these CPUs compilers prefer vectors of half the width */
        add_argument(compiler, "-mprefer-vector-width=512");
    add_words(compiler, compiler->extra);
    if (compiler->count > COMPILER_MAX_ARGUMENTS - ROOM)
        return fail(error, FPA_INVALID, "FPA_CFLAGS", "has too many words; about 40 fit");
    compiler->arguments[compiler->count] = NULL;
    return FPA_OK;
}

fpa_status compiler_find(const fpa_options *options, const fpa_target *target, fpa_compiler *compiler,
                         fpa_error *error)
{
    memset(compiler, 0, sizeof *compiler);
    fpa_status status = is_native(target) ? find_native(options, &compiler->path, error)
                                          : find_cross(target, &compiler->path, error);
    if (status == FPA_OK)
        status = collect_arguments(target, compiler, error);
    if (status)
        compiler_free(compiler);
    return status;
}

void compiler_free(fpa_compiler *compiler)
{
    free(compiler->path);
    free(compiler->march);
    free(compiler->extra);
    memset(compiler, 0, sizeof *compiler);
}

/* The binary's size and modification time stand for its version: asking for it (--version) would start a process
 * in every open, and an open from the cache should take less than 20 ms. An update of the compiler's package
 * replaces the binary, so that both change. */
fpa_status compiler_identity(const fpa_compiler *compiler, char **identity, fpa_error *error)
{
    struct stat facts = {0};
    text_buffer buffer;
    char *real = realpath(compiler->path, NULL);
    if (!real && errno == ENOMEM)
        return fail_memory(error);
    if (!real || stat(real, &facts) != 0) {
        free(real);
        return fail(error, FPA_COMPILE, compiler->path, "the compiler's file cannot be examined");
    }
    FILE *stream = text_open(&buffer);
    if (!stream) {
        free(real);
        return fail_memory(error);
    }
    fprintf(stream, "real %s\nsize %lld\nmtime %lld.%09ld\n", real, (long long)facts.st_size,
            (long long)facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
    for (int i = 0; i < compiler->count; i++)
        fprintf(stream, "argument %s\n", compiler->arguments[i]);
    free(real);
    *identity = text_finish(&buffer);
    return *identity ? FPA_OK : fail_memory(error);
}
