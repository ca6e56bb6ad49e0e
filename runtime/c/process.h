/* process: run one program to its end: no shell, a small environment, a time limit. */
#ifndef FPAC_RUNTIME_C_PROCESS_H
#define FPAC_RUNTIME_C_PROCESS_H

#include "base/error.h"

#include <stdbool.h>

typedef struct fpa_process {
    const char *const *arguments; /* NULL-terminated; arguments[0] is the program's absolute path */
    const char *folder;           /* working folder of the program, and its TMPDIR */
    int seconds; /* after which it and all its children are killed; of CPU time each, once we are gone */
} fpa_process;

typedef struct fpa_outcome {
    int exit_code;  /* of the program; 128 + signal when one ended it */
    bool timed_out; /* killed because its time was over */
    bool unknown;   /* the exit code went elsewhere: this process ignores SIGCHLD, or waits for any child */
    char output[4096]; /* the first bytes of stdout and stderr, terminated */
} fpa_outcome;

/* Run it. It is killed when the calling thread ends before it. IO when it could not be started at all. Its standard
 * input is empty. Of the environment it sees PATH, HOME, LD_LIBRARY_PATH, LC_ALL=C and TMPDIR=folder only, so that
 * variables which change a compiler's output (CPATH, LIBRARY_PATH ...) cannot slip past the cache's key. */
fpa_status process_run(const fpa_process *process, fpa_outcome *outcome, fpa_error *error);

#endif
