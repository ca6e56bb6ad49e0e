/* design_show: the rows of `fpac design` as a table, JSON and a picture. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "chart.h"
#include "design.h"
#include "json.h"
#include "median.h"

/* ---- the table ---- */

static void print_title(const design_request *request)
{
    char state[SIZE_TEXT];
    printf("d = %d, dv = %d, state at most %s; %s on %s, %s, %" PRId64 " x %" PRId64 " heads x %" PRId64
           " tokens\n",
           (int)request->d, (int)request->dv, size_text(state, request->state), request->target->name,
           request->machine_name, dtype_name(request->dtype), request->batch, request->heads,
           request->length);
    printf("%5s  %-26s %7s %11s %11s %11s %10s %9s%s\n", "", "head", "D", "state", "prefill ns", "decode ns",
           "crossover", "recall", request->measured ? "    measured ns: prefill, decode" : "");
}

static void print_row(const design_request *request, int number, const design_row *row)
{
    char state[SIZE_TEXT], crossover[32] = "never";
    if (row->facts.crossover > 0)
        snprintf(crossover, sizeof crossover, "%" PRId64, row->facts.crossover);
    printf("%c%4d  %-26s %7" PRId64 " %11s %11.4g %11.4g %10s %8.0f%c", row->front == 1 ? '*' : ' ', number,
           row->label, row->facts.features, size_text(state, row->facts.state_bytes), row->prefill,
           row->decode, crossover, row->pairs, row->is_negative ? '-' : ' ');
    if (row->was_measured)
        printf("   %11.4g %11.4g", row->measured_prefill, row->measured_decode);
    else if (number <= request->measured)
        printf("   not measured");
    putchar('\n');
}

/* ---- advice ---- */

/* The row of (q.k)^degree with the fewest features above `above`, the fastest of several. NULL: there is none. */
static const design_row *next_larger(const design_list *list, int degree, int64_t above)
{
    const design_row *best = NULL;
    for (int i = 0; i < list->count; i++) {
        const design_row *row = &list->rows[i];
        if (row->degree != degree || row->facts.features <= above)
            continue;
        if (!best || row->facts.features < best->facts.features ||
            (row->facts.features == best->facts.features && row->prefill < best->prefill))
            best = row;
    }
    return best;
}

/* Advice if (q.k)^p occurs with different blocks, which decide the state's size and the time of the same function. */
static void advise_on_blocks(const design_list *list, int degree)
{
    const design_row *first = next_larger(list, degree, 0);
    if (!first || !next_larger(list, degree, first->facts.features))
        return;
    printf("(q.k)^%d is one function by every block: ", degree);
    for (const design_row *row = first; row; row = next_larger(list, degree, row->facts.features))
        printf("%sD = %" PRId64 " by %s (%.4g ns)", row == first ? "" : "; ", row->facts.features, row->label,
               row->prefill);
    putchar('\n');
}

static void advise(const design_request *request, const design_list *list)
{
    char smallest[SIZE_TEXT];
    int negative = 0;
    for (int degree = 2; degree <= HEAD_MAX_BRANCHES; degree++)
        advise_on_blocks(list, degree);
    for (int i = 0; i < list->count; i++)
        negative += list->rows[i].is_negative;
    if (negative && request->normalize != FPA_NORMALIZE_NONE)
        printf("-: the kernel is negative for some keys, and normalize = \"%s\" may divide by almost 0: they "
               "come last; even powers and taylor of an even degree are not\n",
               normalize_name(request->normalize));
    if (list->smallest > 0)
        printf("the next state that does not fit: %s, %s\n", list->smallest_label,
               size_text(smallest, list->smallest));
    if (list->count > request->rows)
        printf("%d rows more: --rows %d\n", list->count - (int)request->rows, list->count);
}

/* The median of |predicted / measured - 1| in percent, for prefill or decode; -1: nothing was measured. */
static double median_error(const design_list *list, bool decode)
{
    double *errors = calloc((size_t)list->count + 1, sizeof *errors), median = -1;
    int count = 0;
    for (int i = 0; errors && i < list->count; i++) {
        const design_row *row = &list->rows[i];
        if (row->was_measured)
            errors[count++] = 100 * fabs((decode ? row->decode / row->measured_decode
                                                 : row->prefill / row->measured_prefill) -
                                         1);
    }
    if (count)
        median = median_of(errors, count);
    free(errors);
    return median;
}

void design_print(const design_request *request, const design_list *list)
{
    print_title(request);
    for (int i = 0; i < list->count && i < request->rows; i++)
        print_row(request, i + 1, &list->rows[i]);
    if (median_error(list, false) >= 0)
        printf("\nmedian error of what is predicted: prefill %.0f %%, decode %.0f %%\n",
               median_error(list, false), median_error(list, true));
    printf("\n*: none recalls more in less time. recall: pairs of which %d %% come back, by interference "
           "alone.\n",
           (int)request->recalled);
    advise(request, list);
}

/* ---- JSON ---- */

static void write_row(fpa_json *json, const design_request *request, const design_row *row)
{
    json_object(json, NULL);
    json_text(json, "label", row->label);
    json_text(json, "before", row->before);
    json_text(json, "terms", row->terms);
    json_number(json, "scale", row->scale);
    json_text(json, "target", request->target->name);
    json_text(json, "machine", request->machine_name);
    json_integer(json, "features", row->facts.features);
    json_number(json, "state_bytes", row->facts.state_bytes);
    json_integer(json, "block", row->facts.block);
    json_integer(json, "crossover", row->facts.crossover);
    json_number(json, "prefill_ns", row->prefill);
    json_number(json, "decode_ns", row->decode);
    json_number(json, "recall_pairs", row->pairs);
    json_number(json, "effective_features", row->worth);
    json_bool(json, "is_negative", row->is_negative);
    json_integer(json, "front", row->front);
    if (row->was_measured) {
        json_number(json, "measured_prefill_ns", row->measured_prefill);
        json_number(json, "measured_decode_ns", row->measured_decode);
    }
    json_close(json);
}

void design_write_json(const design_request *request, const design_list *list)
{
    fpa_json json = {.out = stdout};
    json_array(&json, NULL);
    for (int i = 0; i < list->count; i++)
        write_row(&json, request, &list->rows[i]);
    json_close(&json);
}

/* ---- the picture ---- */

/* Order of a series' points: by x. */
static int compare_points(const void *left, const void *right)
{
    const fpa_point *a = left, *b = right;
    return (a->x > b->x) - (a->x < b->x);
}

/* Whether a label begins with the family: "tspow 3, block 4" belongs to "tspow". */
static bool is_family(const design_row *row, const char *family)
{
    const size_t length = strlen(family);
    return !strncmp(row->label, family, length) &&
           row->label[length] == (strchr(row->label, ' ') ? ' ' : '\0');
}

/* Adds a series of the rows of a family, or of the front (NULL). */
static void add_series(const design_list *list, const char *family, fpa_series *series)
{
    series->count = 0;
    series->scattered = family != NULL;
    snprintf(series->label, sizeof series->label, "%s", family ? family : "none recalls more in less time");
    for (int i = 0; i < list->count; i++) {
        const design_row *row = &list->rows[i];
        if (family ? is_family(row, family) : row->front == 1)
            series->point[series->count++] = (fpa_point){row->prefill, row->pairs};
    }
    qsort(series->point, (size_t)series->count, sizeof *series->point, compare_points);
}

fpa_status design_plot(const design_request *request, const design_list *list, fpa_error *error)
{
    static const char *const families[] = {NULL,     "linear",        "power",   "spow",  "tspow",
                                           "taylor", "inhomogeneous", "product", "sketch"};
    enum { FAMILIES = sizeof families / sizeof *families };
    char title[160], state[SIZE_TEXT];
    fpa_series series[FAMILIES];
    fpa_point *points = calloc((size_t)FAMILIES * (size_t)list->count, sizeof *points);
    fpa_chart chart = {.title = title,
                       .x_label = "predicted ns per token and head, prefill",
                       .y_label = "pairs recalled",
                       .series = series};
    if (!points)
        return fail_memory(error);
    snprintf(title, sizeof title, "d = %d, dv = %d, state at most %s, %s, %lld tokens", (int)request->d,
             (int)request->dv, size_text(state, request->state), request->target->name,
             (long long)request->length);
    for (int i = 0; i < FAMILIES; i++) {
        fpa_series *next = &series[chart.count];
        next->point = points + (size_t)i * (size_t)list->count;
        add_series(list, families[i], next);
        chart.count += next->count > 0;
    }
    fpa_status status = chart_save(&chart, request->plot, error);
    free(points);
    return status;
}
