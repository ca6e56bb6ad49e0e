/* output: files that a person named on a command line. */
#ifndef FPAC_BASE_OUTPUT_H
#define FPAC_BASE_OUTPUT_H

#include "file.h"

/* Write the parts, one after another, to where path leads. A link is followed. What is a regular file, or not there
 * yet, appears whole or not at all (file_write), with the mode that it had; a device, a FIFO or a descriptor
 * (/dev/stdout, /dev/fd/3) is written through. */
fpa_status output_write(const char *path, mode_t mode, const fpa_bytes *parts, int count, fpa_error *error);

/* Whether to write to one would change the other: both lead to one regular file, or to one that is not there. */
bool output_is_same(const char *path, const char *other);

#endif
