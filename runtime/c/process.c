#include "process.h"
#include "base/clock.h"
#include "base/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
/* Declared under this name since the thread sanitizer treats clone() as a fork, and would then not see the parent,
 * which shares its memory. */
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);
#define clone __clone
#endif

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

/* Data for a new process, until it becomes the program. */
typedef struct birth {
    const fpa_process *process;
    char *const *variables;
    pid_t parent;
    int input, output; /* descriptors for its standard input, and for its standard output and error */
    int reason;        /* errno if the program could not be executed */
} birth;

/* Unblocks all signals and resets their actions, whatever the caller's thread has set. */
static void reset_signals(void)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int signal = 1; signal < NSIG; signal++)
        sigaction(signal, &usual, NULL); /* fails for the two signals that cannot be ignored */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Kills the child when its parent dies, since nothing else would stop it. The child's own children get no such
 * signal, but inherit the limit of processor time. */
static int limit_life(const birth *b)
{
    const rlim_t seconds = (rlim_t)b->process->seconds;
    struct rlimit limit;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0)
        return -1;
    if (limit.rlim_cur > seconds)
        limit.rlim_cur = seconds;
    if (limit.rlim_max > seconds + 1)
        limit.rlim_max = seconds + 1;
    if (getppid() != b->parent) /* the parent was killed before this call */
        _exit(127);
    return setrlimit(RLIMIT_CPU, &limit);
}

/* Runs in the caller's memory while the caller waits, so it must neither allocate nor lock. The child gets a
 * process group of its own, so that a compiler's children can be killed with it. */
__attribute__((no_sanitize("address", "thread"))) static int become(void *what)
{
    birth *b = what;
    reset_signals();
    if (setpgid(0, 0) == 0 && limit_life(b) == 0 && dup2(b->input, 0) == 0 && dup2(b->output, 1) == 1 &&
        dup2(b->output, 2) == 2 && chdir(b->process->folder) == 0)
        execve(b->process->arguments[0], (char *const *)(uintptr_t)b->process->arguments, b->variables);
    b->reason = errno;
    _exit(127);
}

/* As posix_spawn, which cannot do what limit_life does: fork would copy the page tables of the host, and its child
 * may take no lock. The caller's signals are blocked: a handler must not run in the child. */
static int start(birth *b, pid_t *pid)
{
    enum { STACK = 64 * 1024 };
    sigset_t all, before;
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return errno;
    b->parent = getpid();
    b->reason = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *pid = clone(become, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, b);
    int reason = *pid < 0 ? errno : b->reason;
    if (*pid > 0 && b->reason)
        waitpid(*pid, NULL, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, STACK);
    return reason;
}

/* Opens /dev/null with a descriptor above the standard ones, which the child is about to replace. */
static int open_nothing(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (fd >= 0)
        close(fd);
    return high;
}

static int spawn(const fpa_process *process, char *const *variables, int output, pid_t *pid)
{
    birth b = {.process = process, .variables = variables, .output = -1, .input = open_nothing()};
    int reason = 0;
    if (b.input >= 0)
        b.output = fcntl(output, F_DUPFD_CLOEXEC, 3);
    if (b.output < 0)
        reason = errno;
    else
        reason = start(&b, pid);
    if (b.input >= 0)
        close(b.input);
    if (b.output >= 0)
        close(b.output);
    return reason;
}

/* Reads what is in the pipe: the first bytes are kept, the others dropped, so that the writer can continue. */
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

/* Whether the program has ended. If the host ignores SIGCHLD or waits for any child, the status is lost: the
 * caller then judges by the file that the program should write. */
static bool has_ended(pid_t pid, fpa_outcome *outcome)
{
    int status = 0;
    pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    outcome->unknown = got != pid;
    if (got == pid && !outcome->timed_out)
        outcome->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
}

/* Reads the output until the program itself ends, even if one of its children keeps the pipe open. */
static void supervise(const fpa_process *process, pid_t pid, int pipe_end, fpa_outcome *outcome)
{
    /* milliseconds: between checks whether the program has ended; after the end of its output */
    enum { SLICE = 50, PAUSE = 1 };
    const double deadline = clock_seconds() + process->seconds;
    struct pollfd readable = {pipe_end, POLLIN, 0};
    size_t used = 0;
    while (!has_ended(pid, outcome)) {
        int ready = poll(&readable, 1, readable.fd < 0 ? PAUSE : SLICE);
        if (ready > 0 && !drain(pipe_end, outcome, &used))
            readable.fd = -1;
        if (!outcome->timed_out && clock_seconds() > deadline) {
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
    pid_t pid = -1;
    int rc = spawn(process, variables.values, pipe_ends[1], &pid);
    if (rc) {
        status = rc == ENOMEM
                     ? fail_memory(error)
                     : fail(error, FPA_IO, process->arguments[0], "cannot be started: %s", strerror(rc));
        goto out;
    }
    close(pipe_ends[1]);
    pipe_ends[1] = -1;
    int note = unfinished_begin(UNFINISHED_GROUP, "", pid);
    supervise(process, pid, pipe_ends[0], outcome);
    unfinished_end(note);
out:
    for (int i = 0; i < 2; i++)
        if (pipe_ends[i] >= 0)
            close(pipe_ends[i]);
    environment_free(&variables);
    return status;
}
