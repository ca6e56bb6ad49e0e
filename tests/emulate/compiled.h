/* compiled: translated texts as libraries of the CPU. Each is compiled once, in a store that test programs share where
 * tools/run-tests.sh names one ($FPA_TEST_COMPILED): by the digest of the compiler, the emulation and the text. */
#ifndef FPAC_TESTS_EMULATE_COMPILED_H
#define FPAC_TESTS_EMULATE_COMPILED_H

#include "base/error.h"

#include <stdbool.h>

/* Whether the compiler and tests/emulate are here. */
bool compiled_possible(void);

/* Before the others: the store, else this folder. */
fpa_status compiled_prepare(const char *folder, fpa_error *error);

/* A library of its own at `library`, in a folder that is there: a copy, because libraries of one file share their
 * variables. COMPILE: what the compiler says. As many threads at once as one likes. */
fpa_status compiled_library(const char *text, const char *library, fpa_error *error);

#endif
