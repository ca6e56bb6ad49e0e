/* process: run a program to its end: without a shell, with a small environment and a time limit. */
#ifndef FPAC_RUNTIME_C_PROCESS_H
#define FPAC_RUNTIME_C_PROCESS_H

#include "base/error.h"

#include <stdbool.h>

typedef struct fpa_process {
    const char *const *arguments; /* NULL-terminated; arguments[0] is the program's absolute path */
    const char *folder;           /* working folder of the program, and its TMPDIR */
    /* time after which it and its children are killed; if this process dies before, each is limited to as much CPU
     * time */
    int seconds;
} fpa_process;

typedef struct fpa_outcome {
    int exit_code;     /* exit code of the program; 128 + signal if a signal ended it */
    bool timed_out;    /* killed at the time limit */
    bool unknown;      /* the exit code is lost: this process ignores SIGCHLD, or waits for any child */
    char output[4096]; /* the first bytes of stdout and stderr, NUL-terminated */
} fpa_outcome;

/* Run the program and wait for its end. It is killed if the calling thread ends before it. IO: it could not be
 * started. Its standard input is empty. Its environment consists of PATH, HOME, LD_LIBRARY_PATH, LC_ALL=C and
 * TMPDIR=folder, so that variables that change a compiler's output (CPATH, LIBRARY_PATH ...) cannot bypass the
 * cache's key. */
fpa_status process_run(const fpa_process *process, fpa_outcome *outcome, fpa_error *error);

#endif
