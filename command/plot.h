/* plot: which lines of measurements become which points of which chart. */
#ifndef FPAC_COMMAND_PLOT_H
#define FPAC_COMMAND_PLOT_H

#include "chart.h"
#include "measured.h"

typedef enum fpa_plot_kind {
    PLOT_TIME,   /* ns per token and head against length; lines of 2 tokens and more */
    PLOT_SHARE,  /* % of the nearer limit, a matrix product or a copy, against length; likewise */
    PLOT_DECODE, /* tokens a second against batch; lines of 1 token */
    PLOT_KINDS,
} fpa_plot_kind;

const char *plot_kind_name(fpa_plot_kind kind);  /* "time", "share", "decode" */
const char *plot_kind_needs(fpa_plot_kind kind); /* of a line: "a length above 1" */

/* The chart of the lines that the kind is about; a series has one who, what and number of heads, and where
 * two lines give it the same x, the later one counts. chart->count is 0 where no line is about it. title
 * NULL: the kind's own; it must outlive the chart. chart_free. */
fpa_status chart_make(const fpa_measured_list *list, fpa_plot_kind kind, const char *title, fpa_chart *chart,
                      fpa_error *error);
void chart_free(fpa_chart *chart);

#endif
