#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of a path, malloc'ed; *name is the part after it, within path. */
static char *split_path(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* The target of the symbolic link at path, malloc'ed; NULL with errno EINVAL or ENOENT: there is no link. */
static char *follow(const char *path)
{
    char target[PATH_MAX];
    const char *name;
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return NULL;
    target[length] = 0;
    if (target[0] == '/')
        return strdup(target);
    char *folder = split_path(path, &name);
    char *next = folder ? file_path(folder, target) : NULL;
    free(folder);
    return next;
}

/* Path with all symbolic links followed, malloc'ed; NULL: errno has the reason. */
static char *resolve(const char *path)
{
    enum { MOST_LINKS = 40 }; /* as in Linux */
    char *at = strdup(path);
    for (int i = 0; at && i < MOST_LINKS; i++) {
        char *next = follow(at);
        if (!next && (errno == EINVAL || errno == ENOENT))
            return at;
        int reason = errno;
        free(at);
        errno = reason;
        at = next;
    }
    if (!at)
        return NULL;
    free(at);
    errno = ELOOP;
    return NULL;
}

/* The number of the open descriptor that a path names; -1: it names none. Writing to the descriptor keeps its
 * offset (the shell's >>), while opening the path would begin at the start of the file. */
static int descriptor_named(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(folders[i]);
        const char *digits = path + length;
        if (strncmp(path, folders[i], length) == 0 && *digits && strlen(digits) < 8 &&
            digits[strspn(digits, "0123456789")] == 0)
            return atoi(digits);
    }
    return -1;
}

static bool write_through(const char *path, const fpa_bytes *parts, int count)
{
    int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    return file_close(fd, file_write_parts(fd, parts, count));
}

/* Replace the file that path leads to. */
static fpa_status replace(const char *path, mode_t mode, const fpa_bytes *parts, int count, fpa_error *error)
{
    const char *name;
    char *folder = NULL, *end = resolve(path);
    if (!end)
        return errno == ENOMEM ? fail_memory(error)
                               : fail(error, FPA_IO, path, "cannot be written: %s", strerror(errno));
    folder = split_path(end, &name);
    fpa_status status = FPA_OK;
    if (!folder)
        status = fail_memory(error);
    else if (!*name)
        status = fail(error, FPA_IO, path, "names no file");
    else {
        folder_sweep(folder);
        status = file_write(folder, name, mode, parts, count, error);
    }
    /* the error names the path that the caller gave, not the resolved one */
    if (status && status != FPA_NO_MEMORY && error)
        snprintf(error->where, sizeof error->where, "%s", path);
    free(folder);
    free(end);
    return status;
}

fpa_status output_write(const char *path, mode_t mode, const fpa_bytes *parts, int count, fpa_error *error)
{
    struct stat facts;
    int descriptor = descriptor_named(path);
    bool there = stat(path, &facts) == 0;
    if (descriptor < 0 && there && S_ISDIR(facts.st_mode))
        return fail(error, FPA_IO, path, "cannot be written: it is a folder");
    if (descriptor < 0 && (!there || S_ISREG(facts.st_mode)))
        return replace(path, mode, parts, count, error);
    bool fine =
        descriptor < 0 ? write_through(path, parts, count) : file_write_parts(descriptor, parts, count);
    return fine ? FPA_OK : fail(error, FPA_IO, path, "cannot be written: %s", strerror(errno));
}

static bool is_same_missing(const char *path, const char *other)
{
    struct stat facts[2];
    const char *const paths[2] = {path, other};
    const char *names[2] = {"", ""};
    char *ends[2] = {NULL, NULL}, *folders[2] = {NULL, NULL};
    bool same = true;
    for (int i = 0; i < 2 && same; i++) {
        ends[i] = resolve(paths[i]);
        folders[i] = ends[i] ? split_path(ends[i], &names[i]) : NULL;
        same = folders[i] && stat(folders[i], &facts[i]) == 0;
    }
    same = same && facts[0].st_dev == facts[1].st_dev && facts[0].st_ino == facts[1].st_ino &&
           strcmp(names[0], names[1]) == 0;
    for (int i = 0; i < 2; i++) {
        free(ends[i]);
        free(folders[i]);
    }
    return same;
}

bool output_is_same(const char *path, const char *other)
{
    struct stat facts[2];
    bool there[2] = {stat(path, &facts[0]) == 0, stat(other, &facts[1]) == 0};
    if (there[0] != there[1])
        return false;
    if (!there[0])
        return is_same_missing(path, other);
    return S_ISREG(facts[0].st_mode) && facts[0].st_dev == facts[1].st_dev &&
           facts[0].st_ino == facts[1].st_ino;
}
