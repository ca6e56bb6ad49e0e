/* plot: makes the points of a chart from lines of measurements. */
#ifndef FPAC_COMMAND_PLOT_H
#define FPAC_COMMAND_PLOT_H

#include "chart.h"
#include "measured.h"

typedef enum fpa_plot_kind {
    PLOT_TIME,  /* ns per token and head by length; lines of 2 tokens and more */
    PLOT_SHARE, /* % of the nearer limit, a matrix product or a copy, by length; lines of 2 tokens and more */
    PLOT_DECODE, /* tokens per second by batch; lines of 1 token */
    PLOT_KINDS,
} fpa_plot_kind;

const char *plot_kind_name(fpa_plot_kind kind);  /* "time", "share", "decode" */
const char *plot_kind_needs(fpa_plot_kind kind); /* what a line must have: "a length above 1" */

/* Make the chart of the lines that belong to the kind. A series has one who, what and number of heads; of two
 * lines with the same x the later one counts. chart->count is 0 if no line belongs to it. title: must outlive the
 * chart; NULL: the kind's own. The caller frees the chart (chart_free). */
fpa_status chart_make(const fpa_measured_list *list, fpa_plot_kind kind, const char *title, fpa_chart *chart,
                      fpa_error *error);
void chart_free(fpa_chart *chart);

#endif
