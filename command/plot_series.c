/* plot_series: makes the series of a chart from lines of measurements. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"

/* A kind of plot: which lines it uses, and the points that it makes of them. */
typedef struct kind_row {
    const char *name, *needs, *title, *x_label, *y_label;
    bool y_linear;
    bool (*takes)(const fpa_measured *item);
    double (*x)(const fpa_measured *item);
    double (*y)(const fpa_measured *item);
} kind_row;

static double limit_share(const fpa_measured *item)
{
    return 100 * (item->product > item->copy ? item->product : item->copy);
}

static bool has_length(const fpa_measured *item)
{
    return item->length > 1;
}

static bool has_share(const fpa_measured *item)
{
    return item->length > 1 && limit_share(item) > 0;
}

static bool is_step(const fpa_measured *item)
{
    return item->length == 1;
}

static double length_of(const fpa_measured *item)
{
    return (double)item->length;
}

static double batch_of(const fpa_measured *item)
{
    return (double)item->batch;
}

static double time_of(const fpa_measured *item)
{
    return item->nanoseconds;
}

static double rate_of(const fpa_measured *item)
{
    return (double)item->batch / (1e-3 * item->milliseconds);
}

static const kind_row kinds[PLOT_KINDS] = {
    {"time", "a length above 1", "Time of a forward", "length (tokens a sequence)", "ns per token and head",
     false, has_length, length_of, time_of},
    {"share", "a length above 1 and a share", "Share of the limit", "length (tokens a sequence)",
     "% of a matrix product's or a copy's rate, the larger", true, has_share, length_of, limit_share},
    {"decode", "a length of 1", "Decoding", "batch (sequences)", "tokens a second", false, is_step, batch_of,
     rate_of},
};

const char *plot_kind_name(fpa_plot_kind kind)
{
    return kinds[kind].name;
}

const char *plot_kind_needs(fpa_plot_kind kind)
{
    return kinds[kind].needs;
}

static bool same_series(const fpa_measured *one, const fpa_measured *other)
{
    return !strcmp(one->who, other->who) && !strcmp(one->what, other->what) && one->heads == other->heads;
}

/* Whether a line is the first one of its series, which determines the series' place and name. */
static bool is_first(const fpa_measured_list *list, const kind_row *kind, int index)
{
    for (int i = 0; i < index; i++) {
        if (kind->takes(&list->item[i]) && same_series(&list->item[i], &list->item[index]))
            return false;
    }
    return true;
}

/* Whether lines differ in the number of heads, so that labels have to include it. */
static bool heads_differ(const fpa_measured_list *list, const kind_row *kind)
{
    int64_t heads = 0;
    for (int i = 0; i < list->count; i++) {
        if (!kind->takes(&list->item[i]))
            continue;
        if (heads && list->item[i].heads != heads)
            return true;
        heads = list->item[i].heads;
    }
    return false;
}

/* Inserts a point, in order of x. */
static void put_point(fpa_series *series, double x, double y)
{
    int at = series->count;
    for (int i = 0; i < series->count; i++) {
        if (series->point[i].x == x) {
            series->point[i].y = y;
            return;
        }
    }
    for (; at > 0 && series->point[at - 1].x > x; at--)
        series->point[at] = series->point[at - 1];
    series->point[at] = (fpa_point){x, y};
    series->count++;
}

static fpa_status fill_series(const fpa_measured_list *list, const kind_row *kind, int first, bool say_heads,
                              fpa_series *series, fpa_error *error)
{
    const fpa_measured *of = &list->item[first];
    char heads[40] = "";
    if (say_heads)
        snprintf(heads, sizeof heads, ", %" PRId64 " head%s", of->heads, of->heads == 1 ? "" : "s");
    snprintf(series->label, sizeof series->label, "%s %s%s", of->who, of->what, heads);
    series->point = calloc((size_t)(list->count - first), sizeof *series->point);
    if (!series->point)
        return fail_memory(error);
    for (int i = first; i < list->count; i++) {
        const fpa_measured *item = &list->item[i];
        if (kind->takes(item) && same_series(of, item))
            put_point(series, kind->x(item), kind->y(item));
    }
    return FPA_OK;
}

fpa_status chart_make(const fpa_measured_list *list, fpa_plot_kind kind, const char *title, fpa_chart *chart,
                      fpa_error *error)
{
    const kind_row *row = &kinds[kind];
    bool say_heads = heads_differ(list, row);
    fpa_status status = FPA_OK;
    *chart = (fpa_chart){.title = title ? title : row->title,
                         .x_label = row->x_label,
                         .y_label = row->y_label,
                         .y_linear = row->y_linear,
                         .series = calloc((size_t)list->count + 1, sizeof *chart->series)};
    if (!chart->series)
        return fail_memory(error);
    for (int i = 0; i < list->count && !status; i++) {
        if (row->takes(&list->item[i]) && is_first(list, row, i))
            status = fill_series(list, row, i, say_heads, &chart->series[chart->count++], error);
    }
    return status;
}

void chart_free(fpa_chart *chart)
{
    for (int i = 0; i < chart->count; i++)
        free(chart->series[i].point);
    free(chart->series);
    *chart = (fpa_chart){0};
}
