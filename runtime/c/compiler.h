/* compiler: which C compiler builds a kernel, and with which arguments. It starts no process.
 *
 * runtime/c is the back end of C kernels. Given: a source. Gives: a shared library in memory, compiled by the
 * system's compiler without a shell, and its functions as a module. */
#ifndef FPAC_RUNTIME_C_COMPILER_H
#define FPAC_RUNTIME_C_COMPILER_H

#include "machine/target.h"
#include "runtime/api/fpa.h"

enum { COMPILER_MAX_ARGUMENTS = 64 };

typedef struct fpa_compiler {
    char *path;  /* absolute, links not resolved: compilers may behave according to argv[0] */
    char *march; /* flags of the target, separated by spaces */
    char *extra; /* $FPA_CFLAGS */
    const char *arguments[COMPILER_MAX_ARGUMENTS]; /* path and flags, without files; NULL-terminated */
    int count;                                     /* arguments before the NULL */
} fpa_compiler;

/* Find the compiler. Native targets: options->compiler, $FPA_CC, else cc, gcc or clang on the PATH. Targets of
 * another architecture: $FPA_CC_AARCH64 (or _X86_64), else aarch64-linux-gnu-gcc on the PATH. $FPA_CFLAGS is split
 * at spaces and added. COMPILE: a named compiler does not exist, or there is none; UNSUPPORTED: there is no cross
 * compiler. */
fpa_status compiler_find(const fpa_options *options, const fpa_target *target, fpa_compiler *compiler,
                         fpa_error *error);
void compiler_free(fpa_compiler *compiler);

/* All properties of the compiler that determine its output, one field a line; malloc'ed. */
fpa_status compiler_identity(const fpa_compiler *compiler, char **identity, fpa_error *error);

#endif
