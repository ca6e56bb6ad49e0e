/* torture: attacks on fpac, one case after another until the time is over.
 *
 * A kind of attack is a row of the table in torture.c. A case of it follows from one seed; it runs in a process of
 * its own, in a folder of its own, so that a crash or a hang is seen and the case can be repeated. */
#ifndef FPAC_TESTS_TORTURE_H
#define FPAC_TESTS_TORTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/random_head.h"

enum { TORTURE_PATH = 512 };

typedef struct torture {
    random_source random;
    char folder[TORTURE_PATH]; /* of this case, empty at first but for tmp, which is TMPDIR */
    char builds[TORTURE_PATH]; /* where fpac and the fuzzers are */
    int tries;                 /* inputs of this case so far; the table adds them up */
} torture;

/* Each plays one case; false, with a line on stderr, when fpac did not hold. */
bool torture_head(torture *t);
bool torture_future(torture *t);
bool torture_gradients(torture *t);
bool torture_locale(torture *t);
bool torture_spec(torture *t);
bool torture_arguments(torture *t);
bool torture_memory(torture *t);
bool torture_cache(torture *t);
bool torture_bundle(torture *t);
bool torture_signal(torture *t);
bool torture_together(torture *t);
bool torture_fork(torture *t);
bool torture_fuzz(torture *t);

/* Say why on stderr; always false. */
bool torture_says(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "folder/name" of this case. */
void torture_path(const torture *t, const char *name, char path[TORTURE_PATH]);

/* Start a program; what it prints goes to the case's file `output`. limit: bytes of data it may have, 0: any. */
pid_t torture_start(const torture *t, const char *const *arguments, const char *output, int64_t limit);

enum { TORTURE_HANGS = -1 };

/* Its status as waitpid gives it; TORTURE_HANGS: it did not end within some seconds (patience.h) and was killed. */
int torture_wait(pid_t process, double seconds);

/* Run fpac. True when it ended by itself within a minute and a half of the cores with an exit code that it documents (and, at a
 * failure, with a message). *code: that exit code. */
bool torture_fpac(torture *t, const char *const *arguments, int64_t limit, int *code);

void torture_pause(double seconds);

#endif
