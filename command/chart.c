#include "chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/text.h"
#include "markup.h"

/* Lengths are in user units: pixels at a zoom of 1. */
enum {
    LEFT = 84,
    TOP = 56,
    BOTTOM = 64,
    PLOT_WIDTH = 640,
    PLOT_HEIGHT = 440, /* at least; many labels need more */
    LABEL_GAP = 28,    /* from the frame to the labels */
    LABEL_STEP = 15,   /* least distance of two labels' baselines */
    LABEL_GLYPH = 7,   /* an upper estimate, since the viewer chooses the font */
    MOST_TICKS = 9,
    TICKS = 64,
};

/* Colours on white that people with colour blindness can distinguish (Okabe and Ito). */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#000000", "#e69f00", "#56b4e9", "#7f6000"};
static const char *const dashes[] = {"", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 3\""};
enum { COLOURS = sizeof colours / sizeof *colours, DASHES = sizeof dashes / sizeof *dashes };

typedef struct tick {
    double value;
    bool named;
} tick;

/* An axis: values low..high, drawn from pixel `from` to pixel `to`. */
typedef struct axis {
    bool linear;
    double low, high, from, to;
    int count;
    tick ticks[TICKS];
} axis;

/* A picture that is being written. */
typedef struct picture {
    FILE *out;
    const fpa_chart *chart;
    axis x, y;
    double right, bottom, width, height; /* of the frame; of the picture */
    double *label_y;                     /* [chart->count] baselines */
} picture;

static double place(const axis *on, double value)
{
    double low = on->linear ? on->low : log(on->low), high = on->linear ? on->high : log(on->high);
    double share = ((on->linear ? value : log(value)) - low) / (high - low);
    return on->from + share * (on->to - on->from);
}

/* ---- ticks ---- */

static void add_tick(axis *on, double value, bool named)
{
    double slack = 1e-9 * on->high;
    if (on->count < TICKS && value >= on->low - slack && value <= on->high + slack)
        on->ticks[on->count++] = (tick){value, named};
}

/* Ticks at powers of two, for lengths and batches. */
static void tick_by_two(axis *on)
{
    int first = (int)ceil(log2(on->low)), last = (int)floor(log2(on->high));
    int step = (last - first) / MOST_TICKS + 1;
    for (int power = first; power <= last; power++)
        add_tick(on, ldexp(1, power), (power - first) % step == 0);
}

/* Ticks at 1, 2 and 5 in each decade, or at decades alone if there are many. */
static void tick_by_ten(axis *on)
{
    static const double steps[] = {1, 2, 5};
    int first = (int)floor(log10(on->low)), last = (int)floor(log10(on->high));
    bool all = last - first <= 3;
    for (int power = first; power <= last; power++) {
        for (int i = 0; i < 3; i++)
            add_tick(on, steps[i] * pow(10, power), i == 0 || all);
    }
}

static void tick_evenly(axis *on)
{
    double rough = on->high / 6, decade = pow(10, floor(log10(rough)));
    double step = rough > 5 * decade ? 10 * decade : rough > 2 * decade ? 5 * decade : 2 * decade;
    for (int i = 0; i * step <= on->high * (1 + 1e-9); i++)
        add_tick(on, i * step, true);
}

/* ---- layout ---- */

static void find_range(const fpa_chart *chart, axis *x, axis *y)
{
    const fpa_point *first = chart->series[0].point;
    x->low = x->high = first->x;
    y->low = y->high = first->y;
    for (int i = 0; i < chart->count; i++) {
        for (int j = 0; j < chart->series[i].count; j++) {
            const fpa_point *at = &chart->series[i].point[j];
            x->low = fmin(x->low, at->x);
            x->high = fmax(x->high, at->x);
            y->low = fmin(y->low, at->y);
            y->high = fmax(y->high, at->y);
        }
    }
}

/* Adds room around the points, so that none is on the frame. least: ratio of high to low at least, so that there
 * are ticks. */
static void widen(axis *on, double least)
{
    double ratio = on->high / on->low, factor = fmax(pow(ratio, 0.04), 1.15);
    factor = fmax(factor, sqrt(least / ratio));
    on->high *= on->linear ? 1.05 : factor;
    on->low = on->linear ? 0 : on->low / factor;
}

static double label_room(const fpa_chart *chart)
{
    size_t longest = 0;
    for (int i = 0; i < chart->count; i++) {
        size_t size = strlen(chart->series[i].label);
        longest = size > longest ? size : longest;
    }
    return LABEL_GAP + (double)longest * LABEL_GLYPH + 12;
}

static void lay_out(picture *p)
{
    int labels = p->chart->count * LABEL_STEP;
    p->right = LEFT + PLOT_WIDTH;
    p->bottom = TOP + (labels > PLOT_HEIGHT ? labels : PLOT_HEIGHT);
    p->width = p->right + label_room(p->chart);
    p->height = p->bottom + BOTTOM;
    find_range(p->chart, &p->x, &p->y);
    p->y.linear = p->chart->y_linear;
    widen(&p->x, 4);
    widen(&p->y, 7);
    p->x.from = LEFT;
    p->x.to = p->right;
    p->y.from = p->bottom;
    p->y.to = TOP;
    tick_by_two(&p->x);
    if (p->y.linear)
        tick_evenly(&p->y);
    else
        tick_by_ten(&p->y);
}

static const fpa_point *last_point(const fpa_series *series)
{
    return &series->point[series->count - 1];
}

/* Places labels at the ends of their series, moved apart so that they do not overlap: each takes the next free
 * line below the one before, then all move up by as much as the last one is too low. */
static void place_labels(picture *p, int *order)
{
    int count = p->chart->count;
    for (int i = 0; i < count; i++) {
        int at = i;
        p->label_y[i] = place(&p->y, last_point(&p->chart->series[i])->y);
        for (; at > 0 && p->label_y[order[at - 1]] > p->label_y[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 1; i < count; i++)
        p->label_y[order[i]] = fmax(p->label_y[order[i]], p->label_y[order[i - 1]] + LABEL_STEP);
    for (int i = count - 1, below = 0; i >= 0; i--, below++)
        p->label_y[order[i]] = fmin(p->label_y[order[i]], p->bottom - below * LABEL_STEP);
}

/* ---- writing ---- */

/* Writes a text; attributes are not escaped. */
static void write_text(FILE *out, double x, double y, const char *attributes, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes);
    markup_text(out, text);
    fputs("</text>\n", out);
}

static void write_line(FILE *out, double x, double y, double to_x, double to_y)
{
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x, y, to_x, to_y);
}

/* A short number, since it is beside the axis' title: 2000000 is "2 M". */
static const char *short_text(char text[MARKUP_NUMBER], double value)
{
    if (value < 1e6)
        return markup_number(text, value);
    snprintf(text, MARKUP_NUMBER, "%g M", 1e-6 * value);
    return text;
}

static void write_grid(const picture *p)
{
    fputs("<g stroke=\"#dddddd\" stroke-width=\"1\">\n", p->out);
    for (int i = 0; i < p->x.count; i++) {
        double at = place(&p->x, p->x.ticks[i].value);
        write_line(p->out, at, TOP, at, p->bottom);
    }
    for (int i = 0; i < p->y.count; i++) {
        double at = place(&p->y, p->y.ticks[i].value);
        write_line(p->out, LEFT, at, p->right, at);
    }
    fprintf(p->out,
            "</g>\n<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%.1f\" fill=\"none\" stroke=\"#555555\"/>\n",
            LEFT, TOP, PLOT_WIDTH, p->bottom - TOP);
}

static void write_tick_names(const picture *p)
{
    char text[MARKUP_NUMBER];
    fputs("<g fill=\"#333333\">\n", p->out);
    for (int i = 0; i < p->x.count; i++) {
        if (p->x.ticks[i].named)
            write_text(p->out, place(&p->x, p->x.ticks[i].value), p->bottom + 20, " text-anchor=\"middle\"",
                       markup_number(text, p->x.ticks[i].value));
    }
    for (int i = 0; i < p->y.count; i++) {
        if (p->y.ticks[i].named)
            write_text(p->out, LEFT - 8, place(&p->y, p->y.ticks[i].value) + 4, " text-anchor=\"end\"",
                       short_text(text, p->y.ticks[i].value));
    }
    fputs("</g>\n", p->out);
}

static void write_titles(const picture *p)
{
    char turned[96];
    double middle = (TOP + p->bottom) / 2;
    snprintf(turned, sizeof turned, " text-anchor=\"middle\" transform=\"rotate(-90 22 %.1f)\"", middle);
    write_text(p->out, LEFT, 30, " font-size=\"17\" font-weight=\"bold\"", p->chart->title);
    write_text(p->out, LEFT + PLOT_WIDTH / 2.0, p->bottom + 46, " text-anchor=\"middle\"", p->chart->x_label);
    write_text(p->out, 22, middle, turned, p->chart->y_label);
}

/* Writes a circle, a square or a diamond: with eight colours, 24 series look different. */
static void write_marker(FILE *out, int kind, double x, double y)
{
    if (kind == 0)
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", x, y);
    else if (kind == 1)
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\"/>\n", x - 3.5, y - 3.5);
    else
        fprintf(out, "<path d=\"M%.1f %.1fl4.5 4.5l-4.5 4.5l-4.5 -4.5z\"/>\n", x, y - 4.5);
}

static void write_curve(const picture *p, const fpa_series *series, const char *dash)
{
    fprintf(p->out, "<polyline fill=\"none\" stroke-width=\"2\"%s points=\"", dash);
    for (int i = 0; i < series->count; i++)
        fprintf(p->out, "%s%.1f,%.1f", i ? " " : "", place(&p->x, series->point[i].x),
                place(&p->y, series->point[i].y));
    fputs("\"/>\n", p->out);
}

/* Writes the label, and a thin line to it from the last point. */
static void write_label(const picture *p, int index)
{
    const fpa_series *series = &p->chart->series[index];
    double y = p->label_y[index];
    fputs("<g stroke-width=\"0.7\" stroke-opacity=\"0.6\">\n", p->out);
    write_line(p->out, place(&p->x, last_point(series)->x), place(&p->y, last_point(series)->y),
               p->right + LABEL_GAP - 5, y);
    fputs("</g>\n", p->out);
    write_text(p->out, p->right + LABEL_GAP, y + 4, " stroke=\"none\"", series->label);
}

static void write_series(const picture *p, int index)
{
    const fpa_series *series = &p->chart->series[index];
    int turn = index / COLOURS % DASHES;
    fprintf(p->out, "<g stroke=\"%s\" fill=\"%s\">\n", colours[index % COLOURS], colours[index % COLOURS]);
    if (!series->scattered)
        write_curve(p, series, dashes[turn]);
    for (int i = 0; i < series->count; i++)
        write_marker(p->out, turn, place(&p->x, series->point[i].x), place(&p->y, series->point[i].y));
    write_label(p, index);
    fputs("</g>\n", p->out);
}

/* Writes the beginning, with a white background, so that the picture is readable in a dark viewer. */
static void write_head(const picture *p)
{
    fprintf(
        p->out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"0 0 %.0f %.0f\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n<title>",
        p->width, p->height, p->width, p->height);
    markup_text(p->out, p->chart->title);
    fprintf(p->out, "</title>\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", p->width,
            p->height);
}

bool chart_write(const fpa_chart *chart, FILE *out)
{
    picture p = {.out = out, .chart = chart};
    size_t count = (size_t)chart->count;
    int *order = calloc(count, sizeof *order);
    p.label_y = calloc(count, sizeof *p.label_y);
    bool enough = order && p.label_y;
    if (enough) {
        lay_out(&p);
        place_labels(&p, order);
        write_head(&p);
        write_grid(&p);
        write_tick_names(&p);
        write_titles(&p);
        for (int i = 0; i < chart->count; i++)
            write_series(&p, i);
        fputs("</svg>\n", out);
    }
    free(order);
    free(p.label_y);
    return enough;
}

fpa_status chart_save(const fpa_chart *chart, const char *path, fpa_error *error)
{
    text_buffer buffer;
    FILE *memory = text_open(&buffer);
    if (!memory)
        return fail_memory(error);
    const bool written = chart_write(chart, memory);
    char *bytes = text_finish(&buffer);
    const fpa_bytes part = {bytes, bytes ? strlen(bytes) : 0};
    const fpa_status status =
        written && bytes ? output_write(path, 0666, &part, 1, error) : fail_memory(error);
    free(bytes);
    return status;
}
