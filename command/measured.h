/* measured: measurements as lines of text, for `fpac bench`, `fpac plot` and bench/peers.
 *
 * A line has these fields, separated by tabs:
 *     who, version, what, length, batch, heads, ns per token and head, ms of a forward[, product, copy]
 * `who` names a package ("fpac", "torch"), `what` the work ("tspow2_d64_bf16 bf16 chunked"); the last two are the shares
 * of the rates of a matrix product and of a copy: 0.85, or "-" if not measured. Lines that are empty, begin with '#', or
 * whose first field is "skipped" are ignored. */
#ifndef FPAC_COMMAND_MEASURED_H
#define FPAC_COMMAND_MEASURED_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum { MEASURED_NAME = 128 }; /* bytes of a name, terminating 0 included */

typedef struct fpa_measured {
    char who[MEASURED_NAME], version[MEASURED_NAME], what[MEASURED_NAME]; /* UTF-8 */
    int64_t length;                                                       /* tokens of a sequence */
    int64_t batch, heads;
    double nanoseconds;   /* per token and head */
    double milliseconds;  /* of one forward */
    double product, copy; /* shares of the device's best rates, at most 1; 0: not measured */
} fpa_measured;

typedef struct fpa_measured_list {
    int count;
    fpa_measured *item;
} fpa_measured_list;

/* Add the lines of a file to the list. INVALID, with file:line: a line has another form; earlier ones remain in
 * the list. The caller frees it (measured_free). */
fpa_status measured_read(const char *path, fpa_measured_list *list, fpa_error *error);
void measured_free(fpa_measured_list *list);

/* Open a file to append lines to; it is created if missing. INVALID: it contains something else; IO: it cannot be
 * written. The caller closes it (fclose). */
fpa_status measured_open(const char *path, FILE **file, fpa_error *error);

/* Append a line, and flush it. */
fpa_status measured_write(FILE *file, const char *path, const fpa_measured *item, fpa_error *error);

#endif
