/* complaint: rewrites Lua's messages about operations on wrong values as sentences about the value. */
#ifndef FPAC_GEN_SPEC_COMPLAINT_H
#define FPAC_GEN_SPEC_COMPLAINT_H

#include <stddef.h>

/* "attempt to index a string value (local 'x')" -> "x is a string, and has no fields: ...". Other messages are copied. */
void complaint_write(const char *message, char *out, size_t size);

#endif
