#include "compiled.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "declarations.h"
#include "runtime/c/process.h"

enum { SECONDS = 120, DIGEST = SHA256_DIGEST_STRING_LENGTH };

/* Texts without optimisation: compiling them would take several times what their kernels run. What all have in common is
 * compiled once. */
static const char text_level[] = "-O0", common_level[] = "-O3";

#define COMPILER(name, own, level)                                                                           \
    "/usr/bin/env", name, own, "-std=c++17", level, "-w", "-fPIC", "-fno-strict-aliasing",                   \
        "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-fno-exceptions", "-fno-rtti",                            \
        "-fno-asynchronous-unwind-tables"

/* Of texts: clang, where it is, takes half the time of the other one, which everybody has, and whose headers and library it uses. Templates
 * that the header itself makes are in the compiled header. */
static const struct {
    const char *name, *own;
} text_compiler[] = {{"g++", "-fno-gnu-unique"}, {"clang++", "-fpch-instantiate-templates"}};

static struct {
    char here[PATH_MAX];  /* tests/emulate */
    char abi[PATH_MAX];   /* abi */
    char store[PATH_MAX]; /* of libraries and of compiled headers */
    char version[2][256]; /* the compilers' first words; of the second one none where it is not here */
    bool brief;           /* it is */
    bool gold;            /* there is the linker that takes half the time */
    char headers[DIGEST]; /* of all that emitted files include, and of what is common */
} compiled;

static fpa_status run_compiler(const char *const *arguments, const char *folder, const char *source,
                               fpa_error *error)
{
    const fpa_process process = {arguments, folder, SECONDS};
    fpa_outcome outcome;
    fpa_status status = process_run(&process, &outcome, error);
    if (!status && (outcome.exit_code || outcome.timed_out))
        status = fail(error, FPA_COMPILE, source, "%.900s", outcome.output);
    return status;
}

static bool has_gold(void)
{
    static const char *const arguments[] = {"/usr/bin/env", "g++", "-fuse-ld=gold", "-Wl,--version", NULL};
    const fpa_process process = {arguments, "/tmp", SECONDS};
    fpa_outcome outcome;
    return process_run(&process, &outcome, NULL) == FPA_OK && outcome.exit_code == 0;
}

static bool find_compiler(int number)
{
    const char *const arguments[] = {"/usr/bin/env", text_compiler[number].name, "--version", NULL};
    const fpa_process process = {arguments, "/tmp", SECONDS};
    fpa_outcome outcome;
    if (process_run(&process, &outcome, NULL) || outcome.exit_code)
        return false;
    snprintf(compiled.version[number], sizeof compiled.version[number], "%.255s", outcome.output);
    return true;
}

/* It may be too old, or find no headers of C++. */
static bool compiles(int number)
{
    const char *const arguments[] = {"/usr/bin/env",
                                     text_compiler[number].name,
                                     "-std=c++17",
                                     text_compiler[number].own,
                                     "-fsyntax-only",
                                     "-include",
                                     "cstddef",
                                     "-x",
                                     "c++",
                                     "/dev/null",
                                     NULL};
    const fpa_process process = {arguments, "/tmp", SECONDS};
    fpa_outcome outcome;
    return process_run(&process, &outcome, NULL) == FPA_OK && outcome.exit_code == 0;
}

bool compiled_possible(void)
{
    if (!realpath("tests/emulate", compiled.here) || !realpath("abi", compiled.abi) || !find_compiler(0))
        return false;
    compiled.gold = has_gold();
    compiled.brief = find_compiler(1) && compiles(1);
    return true;
}

/* ---- digests ---- */

static int is_source(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && (strcmp(dot, ".h") == 0 || strcmp(dot, ".cpp") == 0);
}

static fpa_status digest_folder(const char *folder, SHA2_CTX *sha, fpa_error *error)
{
    struct dirent **names;
    fpa_status status = FPA_OK;
    const int count = scandir(folder, &names, is_source, alphasort);
    if (count < 1)
        return fail(error, FPA_IO, folder, "has no headers");
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX + 256];
        fpa_file file = {0};
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (!status)
            status = file_read(path, &file, error);
        if (!status)
            SHA256Update(sha, file.bytes, file.size + 1);
        free(file.bytes);
        free(names[i]);
    }
    free(names);
    return status;
}

static fpa_status digest_headers(fpa_error *error)
{
    SHA2_CTX sha;
    SHA256Init(&sha);
    fpa_status status = digest_folder(compiled.here, &sha, error);
    if (!status)
        status = digest_folder(compiled.abi, &sha, error);
    SHA256End(&sha, compiled.headers);
    return status;
}

static void digest_text(const char *text, const char *level, char digest[DIGEST])
{
    const char *const parts[] = {compiled.version[0], compiled.version[compiled.brief], compiled.headers,
                                 level, text};
    SHA2_CTX sha;
    SHA256Init(&sha);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        SHA256Update(&sha, (const uint8_t *)parts[i], strlen(parts[i]) + 1);
    SHA256End(&sha, digest);
}

/* ---- the store ---- */

fpa_status compiled_prepare(const char *folder, fpa_error *error)
{
    const char *shared = getenv("FPA_TEST_COMPILED");
    if (shared && *shared && !folder_create(shared, 0700))
        return fail(error, FPA_IO, shared, "%s", strerror(errno));
    if (!realpath(shared && *shared ? shared : folder, compiled.store))
        return fail(error, FPA_IO, folder, "%s", strerror(errno));
    return digest_headers(error);
}

/* Of several that want one thing, threads or programs, the first makes it: a lock for all that have one first digit. */
static int lock(const char *digest)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.3000s/lock-%c", compiled.store, digest[0]);
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0)
        flock(file, LOCK_EX);
    return file;
}

/* True where it is there; its time is that of its last use. */
static bool is_stored(const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, 0) == 0;
}

/* A file of tests/emulate, compiled once into a folder of the store, where it has that name; declared: as all headers are
 * that are there then. */
static fpa_status compile_once(const char *const *options, const char *level, const char *source,
                               bool declared, const char *name, char folder[PATH_MAX], fpa_error *error)
{
    enum { MOST = 32 };
    char made[PATH_MAX + 16], wanted[PATH_MAX + 64], path[PATH_MAX + 64], digest[DIGEST];
    const bool brief = declared && compiled.brief;
    const char *arguments[MOST] = {COMPILER(text_compiler[brief].name, text_compiler[brief].own, level)};
    fpa_status status = FPA_OK;
    int count = 0;
    digest_text(name, level, digest);
    snprintf(folder, PATH_MAX, "%.3000s/%s", compiled.store, digest);
    snprintf(wanted, sizeof wanted, "%s/%s", folder, name);
    snprintf(made, sizeof made, "%s/made", folder);
    snprintf(path, sizeof path, "%s/%s", declared ? folder : compiled.here, source);
    while (arguments[count])
        count++;
    for (; *options; options++)
        arguments[count++] = *options;
    const char *const last[] = {"-I", compiled.abi, "-o", made, path};
    memcpy(arguments + count, last, sizeof last);
    if (!folder_create(folder, 0700))
        return fail(error, FPA_IO, folder, "%s", strerror(errno));
    const int own = lock(digest);
    if (!is_stored(wanted)) {
        if (declared)
            status = declarations_write(compiled.here, folder, error);
        if (!status)
            status = run_compiler(arguments, folder, path, error);
        if (!status && rename(made, wanted))
            status = fail(error, FPA_IO, wanted, "%s", strerror(errno));
    }
    close(own);
    return status;
}

/* What every text begins with: a third of a brief compilation. The compiler prefers ptx.h.gch to the text beside it. */
static fpa_status compile_header(char place[PATH_MAX], fpa_error *error)
{
    static const char *const options[] = {"-x", "c++-header", NULL};
    return compile_once(options, text_level, "ptx.h", true, "ptx.h.gch", place, error);
}

static fpa_status compile_common(char place[PATH_MAX], fpa_error *error)
{
    static const char *const options[] = {"-c", "-march=native", NULL};
    return compile_once(options, common_level, "runtime.cpp", false, "runtime.o", place, error);
}

/* headers, common: the folders that have the two above. */
static fpa_status compile_text(const char *text, const char *library, const char *headers, const char *common,
                               fpa_error *error)
{
    char source[PATH_MAX], folder[PATH_MAX], object[PATH_MAX + 16], header[PATH_MAX + 16];
    const fpa_bytes part = {text, strlen(text)};
    snprintf(folder, sizeof folder, "%s", library);
    *strrchr(folder, '/') = 0;
    snprintf(source, sizeof source, "%.200s.cpp", strrchr(library, '/') + 1);
    snprintf(object, sizeof object, "%s/runtime.o", common);
    snprintf(header, sizeof header, "%s/ptx.h", headers);
    fpa_status status = file_write(folder, source, 0600, &part, 1, error);
    const char *const arguments[] = {
        COMPILER(text_compiler[compiled.brief].name, text_compiler[compiled.brief].own, text_level),
        "-shared",
        "-include",
        header,
        "-I",
        headers,
        "-Wl,-Bsymbolic",
        "-Wl,--no-undefined",
        "-o",
        library,
        source,
        object,
        "-lm",
        compiled.gold ? "-fuse-ld=gold" : NULL,
        NULL};
    return status ? status : run_compiler(arguments, folder, source, error);
}

/* ---- libraries ---- */

static fpa_status copy_file(const char *from, const char *to, fpa_error *error)
{
    char folder[PATH_MAX];
    fpa_file file;
    fpa_status status = file_read(from, &file, error);
    if (status)
        return status;
    const fpa_bytes part = {file.bytes, file.size};
    snprintf(folder, sizeof folder, "%s", to);
    *strrchr(folder, '/') = 0;
    status = file_write(folder, strrchr(to, '/') + 1, 0700, &part, 1, error);
    free(file.bytes);
    return status;
}

static void stored_path(const char *digest, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.3000s/%s.so", compiled.store, digest);
}

fpa_status compiled_library(const char *text, const char *library, fpa_error *error)
{
    char headers[PATH_MAX], common[PATH_MAX], stored[PATH_MAX], digest[DIGEST];
    digest_text(text, text_level, digest);
    stored_path(digest, stored);
    if (is_stored(stored))
        return copy_file(stored, library, error);
    fpa_status status = compile_header(headers, error);
    if (!status)
        status = compile_common(common, error);
    if (status)
        return status;
    const int own = lock(digest);
    if (!is_stored(stored)) {
        status = compile_text(text, library, headers, common, error);
        if (!status)
            status = copy_file(library, stored, error);
    } else {
        status = copy_file(stored, library, error);
    }
    close(own);
    return status;
}
