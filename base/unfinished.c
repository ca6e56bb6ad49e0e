#include "unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOTES = 256, NOTE_PATH = 512, DEPTH = 8 };

/* A note belongs to the process that wrote it. A forked child inherits its parent's notes, and treats them as
 * free. */
typedef struct note {
    _Atomic pid_t owner; /* 0: free; negative: that process is writing it */
    unfinished_kind kind;
    pid_t group;
    char path[NOTE_PATH];
} note;

/* Static, since a signal handler has to find them. */
static note notes[NOTES];

static bool take(note *n, pid_t self)
{
    pid_t owner = atomic_load(&n->owner);
    return owner != self && owner != -self && atomic_compare_exchange_strong(&n->owner, &owner, -self);
}

int unfinished_begin(unfinished_kind kind, const char *path, pid_t pid)
{
    pid_t self = getpid();
    size_t length = strlen(path);
    if (length >= NOTE_PATH)
        return -1;
    for (int i = 0; i < NOTES; i++) {
        if (!take(&notes[i], self))
            continue;
        notes[i].kind = kind;
        notes[i].group = pid;
        memcpy(notes[i].path, path, length + 1);
        atomic_store(&notes[i].owner, self);
        return i;
    }
    return -1;
}

void unfinished_end(int number)
{
    if (number >= 0)
        atomic_store(&notes[number].owner, 0);
}

void unfinished_end_path(const char *path)
{
    pid_t self = getpid();
    for (int i = 0; i < NOTES; i++)
        if (atomic_load(&notes[i].owner) == self && strcmp(notes[i].path, path) == 0)
            unfinished_end(i);
}

/* The entries that the system call getdents64 returns: a signal handler must not allocate, as opendir and nftw do. */
struct name_entry {
    uint64_t inode;
    int64_t next;
    unsigned short size;
    unsigned char kind;
    char name[];
};

static void remove_inside(int folder, int depth);

static void remove_name(int folder, const char *name, int depth)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(folder, name, 0) == 0)
        return;
    int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return;
    if (depth > 0)
        remove_inside(inner, depth - 1);
    close(inner);
    unlinkat(folder, name, AT_REMOVEDIR);
}

static void remove_inside(int folder, int depth)
{
    char list[2048] __attribute__((aligned(8)));
    long size;
    while ((size = syscall(SYS_getdents64, folder, list, sizeof list)) > 0)
        for (long at = 0; at < size;) {
            const struct name_entry *entry = (const struct name_entry *)(list + at);
            remove_name(folder, entry->name, depth);
            at += entry->size;
        }
}

/* A process that was just killed may still create files in the folder, so removing it is tried again for half a
 * second. */
static void remove_folder(const char *path)
{
    const struct timespec pause = {0, 10 * 1000 * 1000};
    for (int i = 0; i < 50; i++) {
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder >= 0) {
            remove_inside(folder, DEPTH);
            close(folder);
        }
        if (rmdir(path) == 0 || errno != ENOTEMPTY)
            return;
        nanosleep(&pause, NULL);
    }
}

static void remove_noted(const note *n)
{
    if (n->kind == UNFINISHED_FILE)
        unlink(n->path);
    else if (n->kind == UNFINISHED_FOLDER)
        remove_folder(n->path);
}

void unfinished_remove(void)
{
    pid_t self = getpid();
    for (int i = 0; i < NOTES; i++)
        if (atomic_load(&notes[i].owner) == self && notes[i].kind == UNFINISHED_GROUP) {
            kill(-notes[i].group, SIGKILL);
            waitpid(notes[i].group, NULL, 0);
        }
    for (int i = 0; i < NOTES; i++)
        if (atomic_load(&notes[i].owner) == self)
            remove_noted(&notes[i]);
}
