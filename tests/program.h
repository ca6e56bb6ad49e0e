/* program: running a program from a test, and the text that it reads and writes. */
#ifndef FPAC_TESTS_PROGRAM_H
#define FPAC_TESTS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "scratch.h"

typedef struct program_result {
    int code;        /* exit code, or 128 + signal */
    char *out, *err; /* what it wrote; malloc'ed */
} program_result;

/* Run arguments[0] (a path, or "fpac" for the command under test) with arguments up to NULL.
 * Stops the test when the program cannot be started. program_free afterwards. */
program_result program_run(const char *const *arguments);
void program_free(program_result *result);

/* program_run for a literal list: RUN("fpac", "list", spec). */
#define RUN(...) program_run((const char *const[]){__VA_ARGS__, NULL})

/* Whether there is a process of that number that has not ended. */
bool program_runs(int pid);

/* Write text to a file, whole; read a file as malloc'ed text (NULL: there is none). */
void text_write(const char *path, const char *text);
char *text_read(const char *path, size_t *size);

#endif
