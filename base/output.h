/* output: files that a person named on a command line. */
#ifndef FPAC_BASE_OUTPUT_H
#define FPAC_BASE_OUTPUT_H

#include "file.h"

/* Write the parts, one after another, to the file that path leads to; symbolic links are followed. A regular or
 * new file appears whole or not at all (file_write), and a replaced file keeps its mode. Devices, FIFOs and
 * descriptors (/dev/stdout, /dev/fd/3) are written directly. */
fpa_status output_write(const char *path, mode_t mode, const fpa_bytes *parts, int count, fpa_error *error);

/* Whether both paths lead to one regular file, or to one file that does not exist yet, so that writing one would
 * overwrite the other. */
bool output_is_same(const char *path, const char *other);

#endif
