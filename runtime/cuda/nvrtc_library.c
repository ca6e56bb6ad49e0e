/* nvrtc_library: finds and opens libnvrtc, once for the process, and finds its functions by dlsym. */
#include "nvrtc_library.h"
#include "base/private.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    size_t field; /* offset in struct nvrtc_library */
    const char *symbol;
} symbols[] = {
#define FUNCTION(name)                                                                                       \
    {                                                                                                        \
        offsetof(struct nvrtc_library, name), #name                                                          \
    }
    FUNCTION(nvrtcGetErrorString),
    FUNCTION(nvrtcVersion),
    FUNCTION(nvrtcGetNumSupportedArchs),
    FUNCTION(nvrtcGetSupportedArchs),
    FUNCTION(nvrtcCreateProgram),
    FUNCTION(nvrtcDestroyProgram),
    FUNCTION(nvrtcCompileProgram),
    FUNCTION(nvrtcGetProgramLogSize),
    FUNCTION(nvrtcGetProgramLog),
    FUNCTION(nvrtcGetCUBINSize),
    FUNCTION(nvrtcGetCUBIN),
    FUNCTION(nvrtcGetPTXSize),
    FUNCTION(nvrtcGetPTX),
#undef FUNCTION
};

enum { SYMBOLS = sizeof symbols / sizeof *symbols };

/* The function pointers are the first members: so this finds a missing entry in `symbols`. */
_Static_assert(offsetof(struct nvrtc_library, version) == SYMBOLS * sizeof(void *),
               "a function without a symbol");

/* Written once, by find(). */
static struct {
    pthread_once_t once;
    struct nvrtc_library nvrtc;
    fpa_status status;
    fpa_error error;
} found = {.once = PTHREAD_ONCE_INIT};

/* In fpac's cache folder; there only files that no other user can write are opened. */
#define IN_CACHE "/fpac/nvrtc/libnvrtc.so*"

/* The places to search, in this order: the folder $variable (NULL: none; skipped if it is not set to an absolute path), then a pattern,
 * whose last match is the newest. A pattern without a folder is a name for the loader. */
static const struct {
    const char *variable, *pattern;
} places[] = {
    {"CUDA_HOME", "/lib64/libnvrtc.so*"},
    {"CUDA_PATH", "/lib64/libnvrtc.so*"},
    {NULL, "/usr/local/cuda/lib64/libnvrtc.so*"},
    {NULL, "/usr/local/cuda/targets/*/lib/libnvrtc.so*"},
    {NULL, "libnvrtc.so.13"},
    {NULL, "libnvrtc.so.12"},
    {NULL, "libnvrtc.so.11.2"},
    {NULL, "libnvrtc.so"},
    {"XDG_CACHE_HOME", IN_CACHE},
    {"HOME", "/.cache" IN_CACHE},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/{cuda_nvrtc,cu[1-9]*}/lib/libnvrtc.so*"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/{cuda_nvrtc,cu[1-9]*}/lib/libnvrtc.so*"},
    {NULL, "/usr/local/lib/python3*/*-packages/nvidia/{cuda_nvrtc,cu[1-9]*}/lib/libnvrtc.so*"},
    {NULL, "/usr/lib/python3*/*-packages/nvidia/{cuda_nvrtc,cu[1-9]*}/lib/libnvrtc.so*"},
};

static bool find_symbols(void *library, struct nvrtc_library *nvrtc)
{
    for (int i = 0; i < SYMBOLS; i++) {
        void *function = dlsym(library, symbols[i].symbol);
        if (!function)
            return false;
        /* POSIX allows a function's address in dlsym's pointer; ISO C has no cast for it */
        memcpy((char *)nvrtc + symbols[i].field, &function, sizeof function);
    }
    return true;
}

static bool ask(struct nvrtc_library *nvrtc)
{
    int major, minor, count = 0;
    if (nvrtc->nvrtcVersion(&major, &minor) || nvrtc->nvrtcGetNumSupportedArchs(&count) ||
        count > NVRTC_MAX_ARCHITECTURES || nvrtc->nvrtcGetSupportedArchs(nvrtc->architecture))
        return false;
    nvrtc->architectures = count;
    snprintf(nvrtc->version, sizeof nvrtc->version, "%d.%d", major, minor);
    return true;
}

/* NVRTC opens its libnvrtc-builtins by name; from version 13 on the loader does not search NVRTC's own folder for that name. If we have
 * opened it from there, the loader finds it under its name, and it is the one that belongs to this NVRTC. If it is not there, the loader
 * may find one elsewhere; otherwise compilation fails with a message. */
static void open_builtins(void *function, struct nvrtc_library *nvrtc)
{
    Dl_info info;
    struct stat facts;
    char path[4096];
    if (!dladdr(function, &info) || !info.dli_fname || stat(info.dli_fname, &facts) != 0)
        return;
    nvrtc->file_size = (long long)facts.st_size;
    const char *slash = strrchr(info.dli_fname, '/');
    if (!slash)
        return;
    snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%s", (int)(slash - info.dli_fname), info.dli_fname,
             nvrtc->version);
    dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Opens a library and checks that it is a supported NVRTC; else `reason` is set. */
static bool try_library(const char *path, char *reason, size_t size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *message = dlerror();
        snprintf(reason, size, "%s", message ? message : path);
        return false;
    }
    if (find_symbols(library, &found.nvrtc) && ask(&found.nvrtc)) {
        open_builtins(dlsym(library, "nvrtcVersion"), &found.nvrtc);
        return true;
    }
    snprintf(reason, size, "%s: no NVRTC of CUDA 11.2 or later", path);
    dlclose(library);
    return false;
}

bool nvrtc_library_is_private(const char *path, char *reason, size_t size)
{
    char part[4096];
    glob_t matches;
    bool trusted = file_is_private(path, reason, size);
    snprintf(part, sizeof part, "%s", path);
    for (int i = 0; i < 2 && trusted; i++) {
        *strrchr(part, '/') = 0;
        trusted = folder_is_private(part, reason, size);
    }
    snprintf(part, sizeof part, "%.*s/libnvrtc-builtins.so*", (int)(strrchr(path, '/') - path), path);
    if (!trusted || glob(part, 0, NULL, &matches) != 0)
        return trusted;
    for (size_t i = 0; i < matches.gl_pathc && trusted; i++)
        trusted = file_is_private(matches.gl_pathv[i], reason, size);
    globfree(&matches);
    return trusted;
}

static bool try_pattern(const char *pattern, bool is_cache, char *reason, size_t size)
{
    glob_t matches;
    bool done = false;
    if (!strchr(pattern, '/'))
        return try_library(pattern, reason, size);
    if (glob(pattern, GLOB_BRACE, NULL, &matches) == 0) {
        for (size_t i = matches.gl_pathc; i > 0 && !done; i--)
            done = (!is_cache || nvrtc_library_is_private(matches.gl_pathv[i - 1], reason, size)) &&
                   try_library(matches.gl_pathv[i - 1], reason, size);
        globfree(&matches);
    }
    return done;
}

static bool try_place(int i, char *reason, size_t size)
{
    char pattern[4096];
    const char *folder = places[i].variable ? getenv(places[i].variable) : "";
    if (!folder || (places[i].variable && *folder != '/'))
        return false;
    const bool is_cache = strstr(places[i].pattern, IN_CACHE) != NULL;
    int length = snprintf(pattern, sizeof pattern, "%s%s", folder, places[i].pattern);
    return length < (int)sizeof pattern && try_pattern(pattern, is_cache, reason, size);
}

static void find(void)
{
    char reason[512] = "";
    const char *own = getenv("FPA_LIBNVRTC");
    if (own && *own) {
        if (!try_library(own, reason, sizeof reason))
            found.status = fail(&found.error, FPA_COMPILE, "FPA_LIBNVRTC", "cannot be used: %s", reason);
        return;
    }
    for (int i = 0; i < (int)(sizeof places / sizeof *places); i++)
        if (try_place(i, reason, sizeof reason))
            return;
    found.status =
        fail(&found.error, FPA_COMPILE, "nvrtc",
             "no NVRTC (libnvrtc.so) in $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, the loader's path, "
             "~/.cache/fpac/nvrtc or a Python environment's nvidia packages: `make demo` and `make "
             "test` fetch it, or name the library in FPA_LIBNVRTC (last: %s)",
             reason);
}

fpa_status nvrtc_library_find(const struct nvrtc_library **nvrtc, fpa_error *error)
{
    pthread_once(&found.once, find);
    *nvrtc = found.status ? NULL : &found.nvrtc;
    if (found.status && error)
        *error = found.error;
    return found.status;
}
