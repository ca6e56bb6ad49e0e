/* declarations: the emulation's headers as emitted files include them. What those share is compiled once (runtime.cpp): a
 * compiler that reads its functions again makes their templates again, twice the time that a brief text takes. */
#ifndef FPAC_TESTS_EMULATE_DECLARATIONS_H
#define FPAC_TESTS_EMULATE_DECLARATIONS_H

#include "base/error.h"

/* Writes each header of a folder into another one, without the bodies of its functions that are RUNTIME: a line that says
 * so begins them, a line of { and one of } are around each body. */
fpa_status declarations_write(const char *from, const char *to, fpa_error *error);

#endif
