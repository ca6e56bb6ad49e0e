/* chart: series of points as an SVG 1.1 picture. */
#ifndef FPAC_COMMAND_CHART_H
#define FPAC_COMMAND_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

enum { CHART_LABEL = 320 };

typedef struct fpa_point {
    double x, y; /* above 0; y of a linear axis may be 0 */
} fpa_point;

typedef struct fpa_series {
    char label[CHART_LABEL]; /* UTF-8 that text_is_plain accepts; escaped when it is written */
    bool scattered;          /* markers without a line between them */
    int count;               /* at least 1 */
    fpa_point *point;        /* [count] in order of x */
} fpa_series;

typedef struct fpa_chart {
    const char *title, *x_label, *y_label; /* plain UTF-8, with units */
    bool y_linear;                         /* linear, from 0; else logarithmic, as x always is */
    int count;                             /* at least 1 */
    fpa_series *series;
} fpa_chart;

/* Write the picture: for each series a line, markers, and its label at the end. The same chart gives the same
 * bytes. False: there is no memory, and nothing was written. Errors of the stream are reported by ferror. */
bool chart_write(const fpa_chart *chart, FILE *out);

/* Write the picture to a file, which appears whole or not at all. */
fpa_status chart_save(const fpa_chart *chart, const char *path, fpa_error *error);

#endif
