/* chart: series of points as an SVG 1.1 picture. */
#ifndef FPAC_COMMAND_CHART_H
#define FPAC_COMMAND_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

enum { CHART_LABEL = 320 };

typedef struct fpa_point {
    double x, y; /* above 0; y 0 or more where it is linear */
} fpa_point;

typedef struct fpa_series {
    char label[CHART_LABEL]; /* UTF-8 that text_is_plain takes; escaped when it is written */
    bool scattered;          /* markers without a line between them */
    int count;               /* at least 1 */
    fpa_point *point;        /* by growing x */
} fpa_series;

typedef struct fpa_chart {
    const char *title, *x_label, *y_label; /* as labels; units included */
    bool y_linear;                         /* from 0; else logarithmic, as x always is */
    int count;                             /* at least 1 */
    fpa_series *series;
} fpa_chart;

/* Write the picture: a line and markers a series, with its label at its end. The same chart gives the
 * same bytes. False: there is no memory, and nothing was written. Errors of the stream are ferror's. */
bool chart_write(const fpa_chart *chart, FILE *out);

/* To a file, which is whole or not there. */
fpa_status chart_save(const fpa_chart *chart, const char *path, fpa_error *error);

#endif
