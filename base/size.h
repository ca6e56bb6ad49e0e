/* size: bytes as people write them. */
#ifndef FPAC_BASE_SIZE_H
#define FPAC_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Parse a number of bytes: "512KiB", "1.5 MiB", "64K", "524288"; K, M and G are powers of 1024. False: the text is
 * not a size from 1 byte to 2^50. */
bool size_parse(const char *text, int64_t *bytes);

#endif
