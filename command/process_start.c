#include "process_start.h"
#include "base/unfinished.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

void open_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
            return;
}

static void end_by_signal(int signal)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t only;
    unfinished_remove();
    sigaction(signal, &usual, NULL);
    sigemptyset(&only);
    sigaddset(&only, signal);
    raise(signal);
    sigprocmask(SIG_UNBLOCK, &only, NULL); /* the signal ends the process here */
    _exit(128 + signal);
}

void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    enum { SIGNALS = sizeof signals / sizeof *signals };
    struct sigaction ours = {.sa_handler = end_by_signal}, before;
    signal(SIGCHLD, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN); /* so that a write beyond `ulimit -f` fails, and its file is removed */
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < SIGNALS; i++) /* a second signal must not interrupt the handler */
        sigaddset(&ours.sa_mask, signals[i]);
    for (int i = 0; i < SIGNALS; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &ours, NULL);
}
