#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_ours_alone(int fd, const char *path, char *reason, size_t size)
{
    struct stat facts;
    reason[0] = 0;
    if (fstat(fd, &facts) != 0)
        snprintf(reason, size, "%.160s: %s", path, strerror(errno));
    else if (facts.st_uid != geteuid())
        snprintf(reason, size, "%.160s belongs to another user", path);
    else if (facts.st_mode & (S_IWGRP | S_IWOTH))
        snprintf(reason, size, "%.160s can be written by others; chmod go-w it", path);
    return reason[0] == 0;
}

static bool is_private(const char *path, int flags, const char *otherwise, char *reason, size_t size)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd < 0) {
        bool link = errno == ELOOP || errno == ENOTDIR;
        snprintf(reason, size, "%.160s %s", path, link ? otherwise : strerror(errno));
        return false;
    }
    bool ours = is_ours_alone(fd, path, reason, size);
    close(fd);
    return ours;
}

bool folder_is_private(const char *path, char *reason, size_t size)
{
    const char *slash = strrchr(path, '/');
    /* which folder ".." is may depend on a symbolic link before it */
    if (strcmp(slash ? slash + 1 : path, "..") == 0) {
        snprintf(reason, size, "%.160s ends with ..: give the folder's own path", path);
        return false;
    }
    return is_private(path, O_DIRECTORY, "is a symlink or not a folder", reason, size);
}

bool file_is_private(const char *path, char *reason, size_t size)
{
    return is_private(path, 0, "is a symlink", reason, size);
}

void path_trim(char *path)
{
    size_t length = strlen(path);
    for (;;) {
        if (length > 1 && path[length - 1] == '/')
            length -= 1;
        else if (length > 2 && path[length - 1] == '.' && path[length - 2] == '/')
            length -= 1;
        else
            break;
        path[length] = 0;
    }
}
