#include "module.h"
#include "base/file.h"
#include "draft.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct loaded {
    void *code; /* handle of dlopen */
    /* memory file from which the code was loaded; -1: it was a file on disk, which is already removed */
    int fd;
    size_t (*workspace)(int form, const struct fpa_launch *launch);
    /* returns 0, or 1: the workspace is too small */
    int (*forward)(int form, const struct fpa_launch *launch);
    size_t (*backward_workspace)(int form, const struct fpa_backward_launch *launch);
    int (*backward)(int form, const struct fpa_backward_launch *launch);
    c_pieces pieces;
} loaded;

const c_pieces *module_pieces(const fpa_module *module)
{
    const loaded *l = module->handle;
    return &l->pieces;
}

static size_t workspace_of(const fpa_module *module, int form, const struct fpa_launch *launch,
                           const fpa_candidate *candidate)
{
    (void)candidate; /* there is only one candidate */
    const loaded *l = module->handle;
    return l->workspace(form, launch);
}

static size_t backward_workspace_of(const fpa_module *module, int form,
                                    const struct fpa_backward_launch *launch)
{
    const loaded *l = module->handle;
    return l->backward_workspace(form, launch);
}

static fpa_status outcome(int code, fpa_error *error)
{
    if (code == 0)
        return FPA_OK;
    if (code == 1)
        return fail(error, FPA_INVALID, "workspace",
                    "became too small: more threads than it was measured for");
    return fail(error, FPA_LOAD, "", "the module returned %d, which no emitted code does", code);
}

static fpa_status forward(const fpa_module *module, int form, const struct fpa_launch *launch,
                          const fpa_candidate *candidate, void *stream, fpa_error *error)
{
    const loaded *l = module->handle;
    (void)candidate, (void)stream;
    return outcome(l->forward(form, launch), error);
}

static fpa_status backward(const fpa_module *module, int form, const struct fpa_backward_launch *launch,
                           void *stream, fpa_error *error)
{
    const loaded *l = module->handle;
    (void)stream;
    return outcome(l->backward(form, launch), error);
}

/* Whether the file is as long as its program headers say: the loader trusts them, and would crash on a shorter
 * file. */
static bool is_whole(const fpa_object *object)
{
    ElfW(Ehdr) header;
    if (object->size < sizeof header)
        return false;
    memcpy(&header, object->bytes, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr)) ||
        header.e_phoff > object->size ||
        header.e_phnum > (object->size - header.e_phoff) / sizeof(ElfW(Phdr)))
        return false;
    for (int i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        memcpy(&segment, object->bytes + header.e_phoff + (size_t)i * sizeof segment, sizeof segment);
        if (segment.p_offset > object->size || segment.p_filesz > object->size - segment.p_offset)
            return false;
    }
    return header.e_phnum > 0;
}

/* Whether the loader's message, in the C locale, says that memory is out; there is no error code for it. */
static bool is_out_of_memory(const char *reason)
{
    static const char *const words[] = {"annot allocate", "ut of memory", "annot create shared object"};
    bool out = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        out = out || (reason && strstr(reason, words[i]));
    return out;
}

/* A descriptor whose name the loader does not know. The loader identifies modules by name, and a name
 * "/proc/self/fd/7" occurs again when the number is reused: it would then return the old code. So the descriptor
 * stays open while the module is loaded, and a number under which other code is, or may be, loaded is skipped. */
static int unused_name(int fd, char *path, size_t size)
{
    snprintf(path, size, "/proc/self/fd/%d", fd);
    dlerror();
    void *old = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (!old && !dlerror())
        return fd;
    if (!old) { /* the loader could not find out whether the name is known */
        close(fd);
        return -1;
    }
    dlclose(old);
    int next = fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
    close(fd);
    return next < 0 ? -1 : unused_name(next, path, size);
}

/* Loads from a memory file; l->code stays NULL if the system does not allow that. */
static fpa_status load_memory(const fpa_object *object, const char *name, loaded *l, fpa_error *error)
{
    char path[64];
    int fd = memfd_create(name, MFD_CLOEXEC);
    l->fd = -1;
    if (fd < 0)
        return FPA_OK;
    if (!file_write_all(fd, object->bytes, object->size)) {
        close(fd);
        return FPA_OK;
    }
    fd = unused_name(fd, path, sizeof path);
    if (fd < 0)
        return FPA_OK;
    l->code = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (l->code) {
        l->fd = fd;
        return FPA_OK;
    }
    close(fd);
    return is_out_of_memory(dlerror()) ? fail_memory(error) : FPA_OK;
}

/* Loads from a file on disk, if there is no memfd_create (an old kernel, a strict sandbox). */
static fpa_status load_file(const fpa_object *object, loaded *l, fpa_error *error)
{
    char *folder = NULL, *path = NULL;
    const fpa_bytes part = {object->bytes, object->size};
    fpa_status status = folder_create_private(&folder, error);
    if (status)
        return status;
    status = file_write(folder, "module.so", 0600, &part, 1, error);
    path = file_path(folder, "module.so");
    if (!status && !path)
        status = fail_memory(error);
    if (!status)
        l->code = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    folder_remove(folder);
    free(folder);
    free(path);
    return status;
}

/* OpenMP's threads wait inside its library between calls. If it were unloaded with the last module, they would
 * wake up in unmapped memory; libgomp does not prevent that, so it is kept loaded. False: no memory.
 *
 * Some time after the thread that started them, teams end by pthread_exit, for which libc loads libgcc_s at the
 * first time. A process that is forked at that moment has a loader in the middle of its work, and would block when
 * it opens a module. So libgcc_s is loaded here, in the way libc does. */
static bool keep_openmp(void *code)
{
    void *frame;
    backtrace(&frame, 1);
    Dl_info info;
    dlerror();
    void *function = dlsym(code, "omp_get_max_threads");
    if (!function || !dladdr(function, &info))
        return !is_out_of_memory(dlerror());
    void *openmp = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    if (openmp)
        dlclose(openmp);
    return openmp || !is_out_of_memory(dlerror());
}

static void *find_symbol(const loaded *l, const char *name, const char *suffix)
{
    char symbol[HEAD_MAX_NAME + 24];
    snprintf(symbol, sizeof symbol, "%.63s%s", name, suffix);
    return dlsym(l->code, symbol);
}

/* Binds the functions of a module of gradients. False: it is not one. */
static bool bind_backward(const char *name, fpa_module *module)
{
    loaded *l = module->handle;
    void *workspace = find_symbol(l, name, "_backward_workspace"),
         *compute = find_symbol(l, name, "_backward");
    if (!workspace || !compute)
        return false;
    memcpy(&l->backward_workspace, &workspace, sizeof workspace);
    memcpy(&l->backward, &compute, sizeof compute);
    module->backward_workspace = backward_workspace_of;
    module->backward = backward;
    return true;
}

/* Binds the functions for pieces of work, which only layers need. */
static void bind_pieces(const char *name, loaded *l)
{
    void *share = find_symbol(l, name, "_share"), *piece = find_symbol(l, name, "_piece"),
         *together = find_symbol(l, name, "_together");
    if (!share || !piece || !together)
        return;
    memcpy(&l->pieces.share, &share, sizeof share);
    memcpy(&l->pieces.piece, &piece, sizeof piece);
    memcpy(&l->pieces.together, &together, sizeof together);
}

static fpa_status bind(const char *name, fpa_module *module, fpa_error *error)
{
    loaded *l = module->handle;
    if (bind_backward(name, module))
        return FPA_OK;
    dlerror();
    void *workspace = find_symbol(l, name, "_workspace"), *compute = find_symbol(l, name, "_forward");
    if ((!workspace || !compute) && is_out_of_memory(dlerror()))
        return fail_memory(error);
    if (!workspace || !compute)
        return fail(error, FPA_LOAD, name,
                    "the module does not export %s%s; it was not generated for this head", name,
                    workspace ? "_forward" : "_workspace");
    /* POSIX allows dlsym to return a function's address; ISO C has no cast for it */
    memcpy(&l->workspace, &workspace, sizeof workspace);
    memcpy(&l->forward, &compute, sizeof compute);
    bind_pieces(name, l);
    module->workspace = workspace_of;
    module->forward = forward;
    module->draft_workspace = draft_workspace;
    module->draft = draft_forward;
    module->decodes_recent = true;
    module->saves_den = true;
    module->takes_sequences = true;
    return FPA_OK;
}

fpa_status module_load(const fpa_object *object, const char *name, fpa_module *module, fpa_error *error)
{
    memset(module, 0, sizeof *module);
    if (!is_whole(object))
        return fail(error, FPA_LOAD, name, "the module is no whole shared object (%zu bytes)", object->size);
    loaded *l = calloc(1, sizeof *l);
    if (!l)
        return fail_memory(error);
    module->handle = l;
    fpa_status status = load_memory(object, name, l, error);
    if (!status && !l->code)
        status = load_file(object, l, error);
    if (!status && !l->code) {
        const char *reason = dlerror();
        status = is_out_of_memory(reason) ? fail_memory(error)
                                          : fail(error, FPA_LOAD, name, "the module cannot be loaded: %s",
                                                 reason ? reason : "unknown reason");
    }
    if (!status)
        status = bind(name, module, error);
    if (!status && !keep_openmp(l->code))
        status = fail_memory(error);
    if (status)
        module_unload(module);
    return status;
}

void module_unload(fpa_module *module)
{
    loaded *l = module->handle;
    if (!l)
        return;
    if (l->code)
        dlclose(l->code);
    if (l->fd >= 0)
        close(l->fd);
    free(l);
    memset(module, 0, sizeof *module);
}
