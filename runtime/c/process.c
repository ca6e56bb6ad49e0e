#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { VARIABLES = 5 };

typedef struct environment {
    char *values[VARIABLES + 1]; /* "NAME=value", NULL-terminated */
    int count;
} environment;

static void environment_free(environment *e)
{
    for (int i = 0; i < e->count; i++)
        free(e->values[i]);
}

static bool environment_add(environment *e, const char *name, const char *value)
{
    if (!value)
        return true;
    size_t size = strlen(name) + strlen(value) + 2;
    char *text = malloc(size);
    if (!text)
        return false;
    snprintf(text, size, "%s=%s", name, value);
    e->values[e->count++] = text;
    return true;
}

static bool environment_fill(environment *e, const char *folder)
{
    return environment_add(e, "LC_ALL", "C") && environment_add(e, "TMPDIR", folder) &&
           environment_add(e, "PATH", getenv("PATH")) && environment_add(e, "HOME", getenv("HOME")) &&
           environment_add(e, "LD_LIBRARY_PATH", getenv("LD_LIBRARY_PATH"));
}

/* A process group of its own, so that a compiler's children can be killed with it; no signal
 * blocked or ignored, whatever the caller's thread does. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int rc = posix_spawnattr_setflags(attributes,
                                      POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!rc)
        rc = posix_spawnattr_setpgroup(attributes, 0);
    if (!rc)
        rc = posix_spawnattr_setsigmask(attributes, &none);
    return rc ? rc : posix_spawnattr_setsigdefault(attributes, &all);
}

static int set_actions(posix_spawn_file_actions_t *actions, const char *folder, int output)
{
    int rc = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(actions, output, 1);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(actions, output, 2);
    return rc ? rc : posix_spawn_file_actions_addchdir_np(actions, folder);
}

/* posix_spawn, because fork in a program with threads may not allocate before exec. */
static int spawn(const fpa_process *process, char *const *variables, int output, pid_t *pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    int rc = posix_spawnattr_init(&attributes);
    if (rc)
        return rc;
    rc = posix_spawn_file_actions_init(&actions);
    if (rc) {
        posix_spawnattr_destroy(&attributes);
        return rc;
    }
    rc = set_attributes(&attributes);
    if (!rc)
        rc = set_actions(&actions, process->folder, output);
    if (!rc)
        rc = posix_spawn(pid, process->arguments[0], &actions, &attributes,
                         (char *const *)(uintptr_t)process->arguments, variables);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

static int64_t milliseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Take what the pipe has: the first bytes are kept, the rest dropped so that the writer goes on. */
static bool drain(int pipe_end, fpa_outcome *outcome, size_t *used)
{
    char bytes[4096];
    ssize_t got = read(pipe_end, bytes, sizeof bytes);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    size_t room = sizeof outcome->output - 1 - *used;
    size_t keep = (size_t)got < room ? (size_t)got : room;
    memcpy(outcome->output + *used, bytes, keep);
    *used += keep;
    return got > 0;
}

/* True when the program has ended. A host that ignores SIGCHLD takes the status away from us:
 * the caller then judges by the file that the program was to write. */
static bool has_ended(pid_t pid, fpa_outcome *outcome)
{
    int status = 0;
    pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    if (got == pid && !outcome->timed_out)
        outcome->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
}

/* Read the output until the program itself ends, even when a grandchild keeps the pipe open. */
static void supervise(const fpa_process *process, pid_t pid, int pipe_end, fpa_outcome *outcome)
{
    enum { SLICE = 50, PAUSE = 1 }; /* milliseconds: between looks at the program; after its last word */
    int64_t deadline = milliseconds_now() + (int64_t)process->seconds * 1000;
    struct pollfd readable = {pipe_end, POLLIN, 0};
    size_t used = 0;
    while (!has_ended(pid, outcome)) {
        int ready = poll(&readable, 1, readable.fd < 0 ? PAUSE : SLICE);
        if (ready > 0 && !drain(pipe_end, outcome, &used))
            readable.fd = -1;
        if (!outcome->timed_out && milliseconds_now() > deadline) {
            outcome->timed_out = true;
            outcome->exit_code = 128 + SIGKILL;
            kill(-pid, SIGKILL);
        }
    }
    while (readable.fd >= 0 && poll(&readable, 1, 0) > 0 && drain(pipe_end, outcome, &used))
        ;
}

fpa_status process_run(const fpa_process *process, fpa_outcome *outcome, fpa_error *error)
{
    environment variables = {{0}, 0};
    int pipe_ends[2] = {-1, -1};
    fpa_status status = FPA_OK;
    memset(outcome, 0, sizeof *outcome);
    if (!environment_fill(&variables, process->folder)) {
        status = fail_memory(error);
        goto out;
    }
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
        status = fail(error, FPA_IO, process->arguments[0], "cannot be started: pipe: %s", strerror(errno));
        goto out;
    }
    pid_t pid;
    int rc = spawn(process, variables.values, pipe_ends[1], &pid);
    if (rc) {
        status = rc == ENOMEM
                     ? fail_memory(error)
                     : fail(error, FPA_IO, process->arguments[0], "cannot be started: %s", strerror(rc));
        goto out;
    }
    close(pipe_ends[1]);
    pipe_ends[1] = -1;
    supervise(process, pid, pipe_ends[0], outcome);
out:
    for (int i = 0; i < 2; i++)
        if (pipe_ends[i] >= 0)
            close(pipe_ends[i]);
    environment_free(&variables);
    return status;
}
