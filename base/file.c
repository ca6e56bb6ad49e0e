#include "file.h"
#include "unfinished.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const int64_t FILE_LIMIT = (int64_t)1 << 30; /* bytes */

static ssize_t read_all(int fd, unsigned char *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(fd, bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static fpa_status read_open(int fd, const char *path, fpa_file *file, fpa_error *error)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0)
        return fail(error, FPA_IO, path, "cannot be read: %s", strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return fail(error, FPA_IO, path, "is not a regular file");
    if (facts.st_size > FILE_LIMIT)
        return fail(error, FPA_IO, path, "has %lld bytes; at most 1 GiB is read", (long long)facts.st_size);
    size_t size = (size_t)facts.st_size;
    unsigned char *bytes = malloc(size + 1);
    if (!bytes)
        return fail_memory(error);
    ssize_t got = read_all(fd, bytes, size);
    if (got != (ssize_t)size) {
        const char *reason = got < 0 ? strerror(errno) : "it became shorter while it was read";
        free(bytes);
        return fail(error, FPA_IO, path, "cannot be read: %s", reason);
    }
    bytes[size] = 0;
    file->bytes = bytes;
    file->size = size;
    return FPA_OK;
}

fpa_status file_read(const char *path, fpa_file *file, fpa_error *error)
{
    memset(file, 0, sizeof *file);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a FIFO must not wait for a writer */
    if (fd < 0) {
        file->missing = errno == ENOENT;
        return fail(error, FPA_IO, path, "cannot be opened: %s", strerror(errno));
    }
    fpa_status status = read_open(fd, path, file, error);
    close(fd);
    return status;
}

bool file_write_all(int fd, const void *bytes, size_t size)
{
    const char *next = bytes;
    while (size > 0) {
        ssize_t put = write(fd, next, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        next += put;
        size -= (size_t)put;
    }
    return true;
}

bool file_write_parts(int fd, const fpa_bytes *parts, int count)
{
    bool fine = true;
    for (int i = 0; fine && i < count; i++)
        fine = file_write_all(fd, parts[i].bytes, parts[i].size);
    return fine;
}

bool file_close(int fd, bool fine)
{
    const int reason = errno;
    if (close(fd) != 0 && fine)
        return false;
    errno = reason;
    return fine;
}

char *file_path(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

/* A random name, so that two writers of one file never share a temporary. */
static char *temporary_path(const char *folder)
{
    uint64_t chance = 0;
    if (getrandom(&chance, sizeof chance, 0) != (ssize_t)sizeof chance)
        return NULL;
    char name[64];
    snprintf(name, sizeof name, FILE_TEMPORARY "%016llx", (unsigned long long)chance);
    return file_path(folder, name);
}

bool file_is_temporary(const char *name)
{
    const size_t length = strlen(FILE_TEMPORARY);
    return strncmp(name, FILE_TEMPORARY, length) == 0 && strspn(name + length, "0123456789abcdef") == 16 &&
           name[length + 16] == 0;
}

/* Gives the new file the mode and owner of the one that it replaces; where the owner cannot be set, the file
 * belongs to the caller. */
static bool keep_owner_and_mode(int fd, const char *path)
{
    struct stat facts;
    if (lstat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        return true;
    if (fchown(fd, facts.st_uid, facts.st_gid) != 0 && errno != EPERM)
        return false;
    return fchmod(fd, facts.st_mode & 0777) == 0;
}

/* Write a new file that will replace the one at path. */
static bool write_new(const char *temporary, const char *path, mode_t mode, const fpa_bytes *parts, int count)
{
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return false;
    const bool fine = keep_owner_and_mode(fd, path) && file_write_parts(fd, parts, count) && fsync(fd) == 0;
    return file_close(fd, fine);
}

/* fsync of the folder: the rename has to reach the disk, too. */
static bool sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool fine = fsync(fd) == 0 || errno == EINVAL; /* EINVAL: the file system cannot sync a folder */
    int reason = errno;
    close(fd);
    errno = reason;
    return fine;
}

fpa_status file_write(const char *folder, const char *name, mode_t mode, const fpa_bytes *parts, int count,
                      fpa_error *error)
{
    fpa_status status = FPA_OK;
    char *path = file_path(folder, name);
    char *temporary = temporary_path(folder);
    if (!path || !temporary) {
        status = fail_memory(error);
        goto out;
    }
    int note = unfinished_begin(UNFINISHED_FILE, temporary, 0);
    if (!write_new(temporary, path, mode, parts, count) || rename(temporary, path) != 0) {
        status = fail(error, FPA_IO, path, "cannot be written: %s", strerror(errno));
        unlink(temporary);
    } else if (!sync_folder(folder)) {
        status =
            fail(error, FPA_IO, path, "may be lost in a power failure, since its folder cannot be synced: %s",
                 strerror(errno));
    }
    unfinished_end(note);
out:
    free(path);
    free(temporary);
    return status;
}

static bool make_folder(const char *path, mode_t mode)
{
    return mkdir(path, mode) == 0 || errno == EEXIST;
}

bool folder_create(const char *path, mode_t mode)
{
    if (make_folder(path, mode))
        return true;
    if (errno != ENOENT)
        return false;
    char *parent = strdup(path);
    if (!parent)
        return false;
    bool fine = true;
    for (char *slash = strchr(parent + 1, '/'); fine && slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        fine = make_folder(parent, mode);
        *slash = '/';
    }
    int reason = errno;
    free(parent);
    errno = reason;
    return fine && make_folder(path, mode);
}

fpa_status folder_create_private(char **path, fpa_error *error)
{
    const char *above = getenv("TMPDIR");
    /* the compiler changes into this folder, so a relative TMPDIR would not hold */
    if (!above || above[0] != '/')
        above = "/tmp";
    folder_sweep(above);
    char *made = temporary_path(above);
    if (!made)
        return fail_memory(error);
    int note = unfinished_begin(UNFINISHED_FOLDER, made, 0);
    if (mkdir(made, 0700) != 0) {
        fail(error, FPA_IO, above, "a private folder cannot be made here: %s; set TMPDIR", strerror(errno));
        unfinished_end(note);
        free(made);
        return FPA_IO;
    }
    *path = made;
    return FPA_OK;
}

static void remove_entry(int above, const char *name);

/* Remove all entries of an open folder. It lists them by getdents64, since opendir allocates: a folder can be
 * removed even if memory is out. Removing entries may hide others from a list that is being read, so the folder is
 * listed again until nothing more can be removed. */
static void remove_entries(int folder)
{
    _Alignas(struct dirent64) char list[2048];
    for (bool removed = true; removed && lseek(folder, 0, SEEK_SET) == 0;) {
        removed = false;
        for (ssize_t size; (size = getdents64(folder, list, sizeof list)) > 0;)
            for (ssize_t at = 0; at < size;) {
                const struct dirent64 *entry = (const void *)(list + at);
                at += entry->d_reclen;
                if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
                    continue;
                remove_entry(folder, entry->d_name);
                removed = removed || faccessat(folder, entry->d_name, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
            }
    }
}

static void remove_entry(int above, const char *name)
{
    if (unlinkat(above, name, 0) == 0)
        return;
    /* O_NOFOLLOW: never the target of a symbolic link */
    int folder = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    remove_entries(folder);
    close(folder);
    unlinkat(above, name, AT_REMOVEDIR);
}

void folder_remove(const char *path)
{
    remove_entry(AT_FDCWD, path);
    unfinished_end_path(path);
}

/* Left behind by a process that was killed: no compilation and no writer takes a day. */
static bool is_abandoned(const struct stat *facts)
{
    enum { DAY = 24 * 60 * 60 };
    return facts->st_uid == geteuid() && (S_ISREG(facts->st_mode) || S_ISDIR(facts->st_mode)) &&
           time(NULL) - facts->st_mtime > DAY;
}

void folder_sweep(const char *folder)
{
    struct stat facts;
    DIR *list = opendir(folder);
    if (!list)
        return;
    for (struct dirent *item = readdir(list); item; item = readdir(list)) {
        if (!file_is_temporary(item->d_name) ||
            fstatat(dirfd(list), item->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 || !is_abandoned(&facts))
            continue;
        char *path = file_path(folder, item->d_name);
        if (path)
            folder_remove(path);
        free(path);
    }
    closedir(list);
}
