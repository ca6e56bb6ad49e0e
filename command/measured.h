/* measured: measurements as lines of text, for `fpac bench`, `fpac plot` and bench/peers.
 *
 * A line has these fields, with a tab between two of them:
 *     who, version, what, length, batch, heads, ns a token and head, ms a forward[, of product, of copy]
 * who names a package ("fpac", "torch"), what the work ("tspow2_d64_bf16 bf16 chunked"), and the two
 * last are shares of the rate of a matrix product and of a copy: 0.85, or "-" where it was not
 * measured. Lines that are empty, begin with '#', or whose first field is "skipped" say nothing. */
#ifndef FPAC_COMMAND_MEASURED_H
#define FPAC_COMMAND_MEASURED_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum { MEASURED_NAME = 128 }; /* bytes of a name, the 0 included */

typedef struct fpa_measured {
    char who[MEASURED_NAME], version[MEASURED_NAME], what[MEASURED_NAME]; /* UTF-8 */
    int64_t length;                                                       /* tokens a sequence */
    int64_t batch, heads;
    double nanoseconds;   /* per token and head */
    double milliseconds;  /* of one forward */
    double product, copy; /* shares of what the device does at best, 1: all; 0: not measured */
} fpa_measured;

typedef struct fpa_measured_list {
    int count;
    fpa_measured *item;
} fpa_measured_list;

/* Add the lines of a file to the list. INVALID with file:line: a line is none of the above; what was
 * read before it stays. measured_free. */
fpa_status measured_read(const char *path, fpa_measured_list *list, fpa_error *error);
void measured_free(fpa_measured_list *list);

/* Open a file to append lines to; it is made when it is missing. INVALID: it holds something else;
 * IO: it cannot be written. fclose. */
fpa_status measured_open(const char *path, FILE **file, fpa_error *error);

/* Append a line, and flush it. */
fpa_status measured_write(FILE *file, const char *path, const fpa_measured *item, fpa_error *error);

#endif
