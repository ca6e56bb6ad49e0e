/* What cases are played with: processes, with deadlines. */
#include "torture.h"
#include "patience.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool torture_says(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return false;
}

void torture_path(const torture *t, const char *name, char path[TORTURE_PATH])
{
    if (snprintf(path, TORTURE_PATH, "%s/%s", t->folder, name) >= TORTURE_PATH)
        abort();
}

void torture_pause(double seconds)
{
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

pid_t torture_start(const torture *t, const char *const *arguments, const char *output, int64_t limit)
{
    char path[TORTURE_PATH];
    torture_path(t, output, path);
    pid_t child = fork();
    if (child != 0)
        return child;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), nothing = open("/dev/null", O_RDONLY);
    struct rlimit data = {(rlim_t)limit, (rlim_t)limit};
    setpgid(0, 0);
    dup2(nothing, 0);
    dup2(file, 1);
    dup2(file, 2);
    if (limit)
        setrlimit(RLIMIT_DATA, &data);
    execv(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(127);
}

int torture_wait(pid_t process, double seconds)
{
    struct patience patience = patience_for(seconds);
    int status = 0;
    while (waitpid(process, &status, WNOHANG) == 0) {
        if (patience_is_over(&patience)) {
            kill(-process, SIGKILL);
            kill(process, SIGKILL);
            waitpid(process, &status, 0);
            return TORTURE_HANGS;
        }
        torture_pause(0.005);
    }
    return status;
}

static bool has_text(const torture *t, const char *name)
{
    struct stat facts;
    char path[TORTURE_PATH];
    torture_path(t, name, path);
    return stat(path, &facts) == 0 && facts.st_size > 0;
}

bool torture_fpac(torture *t, const char *const *arguments, int64_t limit, int *code)
{
    enum { MOST = 40, DEADLINE = 90 };
    char fpac[TORTURE_PATH + 8];
    const char *all[MOST + 1] = {fpac};
    int count = 1;
    snprintf(fpac, sizeof fpac, "%s/fpac", t->builds);
    while (count < MOST && arguments[count - 1]) {
        all[count] = arguments[count - 1];
        count++;
    }
    t->tries++;
    int status = torture_wait(torture_start(t, all, "fpac.output", limit), DEADLINE);
    if (status == TORTURE_HANGS)
        return torture_says("fpac %s did not end within %d seconds of the cores", arguments[0], DEADLINE);
    if (!WIFEXITED(status))
        return torture_says("fpac %s was ended by signal %d", arguments[0], WTERMSIG(status));
    *code = WEXITSTATUS(status);
    if (*code > 3 && !(limit && *code == 127)) /* the loader's, when not even libraries find room */
        return torture_says("fpac %s ended with exit code %d", arguments[0], *code);
    if (*code && !has_text(t, "fpac.output"))
        return torture_says("fpac %s failed without a message", arguments[0]);
    return true;
}
