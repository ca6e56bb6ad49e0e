#include "lock.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_SECONDS = 600, SHORTEST = 1, LONGEST = 50 /* milliseconds between two attempts */ };

/* Polls instead of blocking in flock: children that a dead holder has forked may keep its lock for ever, so
 * waiting needs a limit. */
static bool wait_for(int fd)
{
    const double start = clock_seconds();
    for (long pause = SHORTEST;; pause = 2 * pause < LONGEST ? 2 * pause : LONGEST) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        if ((errno != EWOULDBLOCK && errno != EINTR) || clock_seconds() - start > WAIT_SECONDS)
            return false;
        nanosleep(&(struct timespec){0, pause * 1000000}, NULL);
    }
}

/* Whether the previous holder released the lock, which removes its file; if a holder dies, the file remains. */
static bool was_released(const fpa_lock *lock)
{
    struct stat held, named;
    return fstat(lock->fd, &held) != 0 || stat(lock->path, &named) != 0 || held.st_ino != named.st_ino ||
           held.st_dev != named.st_dev;
}

/* Takes the lock; true: this process has it. */
static bool take(fpa_lock *lock, const fpa_options *options, const char *what)
{
    if (flock(lock->fd, LOCK_EX | LOCK_NB) == 0)
        return !was_released(lock);
    if (errno != EWOULDBLOCK)
        return false;
    log_line(options, "%s: another process or thread builds it; waiting", what);
    lock->waited = true;
    return wait_for(lock->fd) && !was_released(lock);
}

void lock_take(const fpa_cache *cache, const fpa_options *options, const char *key, const char *what,
               fpa_lock *lock)
{
    char name[sizeof FILE_TEMPORARY + 16];
    *lock = (fpa_lock){.fd = -1};
    snprintf(name, sizeof name, FILE_TEMPORARY "%.16s", key);
    if (!cache->folder || !(lock->path = file_path(cache->folder, name)))
        return;
    lock->fd = open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (lock->fd >= 0 && take(lock, options, what))
        return;
    if (lock->fd >= 0)
        close(lock->fd);
    free(lock->path);
    lock->path = NULL;
}

/* Unlocks explicitly, because a child that was forked meanwhile has the file open, too. */
void lock_release(fpa_lock *lock)
{
    if (!lock->path)
        return;
    unlink(lock->path);
    flock(lock->fd, LOCK_UN);
    close(lock->fd);
    free(lock->path);
    lock->path = NULL;
}
