/* page_cost: the time of a forward for each length, by the model of each machine, with measured points. */
#include "page.h"

#include <math.h>
#include <stdlib.h>

#include "candidates.h"
#include "markup.h"

enum {
    LEAST_POWER = 7, /* lengths 2^7 ... 2^17 */
    MOST_POWER = 17,
    LENGTHS = MOST_POWER - LEAST_POWER + 1,
    LEFT = 56,
    TOP = 26,
    RIGHT = 452,
    BOTTOM = 280,
    WIDTH = 470,
    HEIGHT = 332,
    CURVES = 2,
};

static const int curve_forms[CURVES] = {FORM_CHUNKED, FORM_PARALLEL};
static const char *const curve_class[CURVES] = {"", " second"};

/* Times of the two forms for each length; 0: no candidate is possible. */
typedef struct curves {
    double nanoseconds[CURVES][LENGTHS];
    double low, high; /* range of the axis */
    const char *model;
} curves;

/* ---- the model ---- */

static fpa_status time_of(const page_machine *machine, int form, int64_t length, curves *c,
                          double *nanoseconds, fpa_error *error)
{
    const fpa_call_size size = page_call(machine, form, length);
    fpa_candidate_list list;
    *nanoseconds = 0;
    fpa_status status = plan_candidates(&machine->plan, &size, (fpa_machine){.threads = 1}, &list, error);
    if (status)
        return status;
    if (list.fastest >= 0)
        *nanoseconds = candidate_nanoseconds(&size, list.list[list.fastest].cost.seconds);
    c->model = list.machine;
    candidate_list_free(&list);
    return FPA_OK;
}

static void include(curves *c, double nanoseconds)
{
    if (nanoseconds <= 0)
        return;
    c->low = fmin(c->low, nanoseconds);
    c->high = fmax(c->high, nanoseconds);
}

static fpa_status fill(const page_machine *machine, curves *c, fpa_error *error)
{
    fpa_status status = FPA_OK;
    *c = (curves){.low = HUGE_VAL};
    for (int i = 0; i < CURVES; i++) {
        for (int l = 0; l < LENGTHS && !status; l++) {
            double *at = &c->nanoseconds[i][l];
            if (machine->plan.facts.forms & 1 << curve_forms[i])
                status = time_of(machine, curve_forms[i], (int64_t)1 << (LEAST_POWER + l), c, at, error);
            include(c, *at);
        }
    }
    for (int i = 0; i < machine->point_count; i++)
        include(c, machine->point[i].nanoseconds);
    c->low = pow(10, floor(log10(c->low) * 2) / 2 - 0.02);
    c->high = pow(10, ceil(log10(c->high) * 2) / 2 + 0.02);
    return status;
}

/* ---- the picture ---- */

static double x_of(double length)
{
    return LEFT + (RIGHT - LEFT) * (log2(length) - LEAST_POWER) / (MOST_POWER - LEAST_POWER);
}

static double y_of(const curves *c, double nanoseconds)
{
    return BOTTOM - (BOTTOM - TOP) * log(nanoseconds / c->low) / log(c->high / c->low);
}

static void draw_lengths(FILE *out)
{
    char text[MARKUP_NUMBER];
    for (int power = LEAST_POWER; power <= MOST_POWER; power += 2) {
        const double length = ldexp(1, power), x = x_of(length);
        if (length < 1024)
            markup_number(text, length);
        else
            snprintf(text, sizeof text, "%.0f Ki", length / 1024);
        fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, TOP, BOTTOM);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", x, BOTTOM + 20, text);
    }
}

/* Draws ticks of times: 1, 2 and 5 in each decade, or decades alone. */
static void draw_times(FILE *out, const curves *c)
{
    static const double steps[] = {1, 2, 5};
    const int first = (int)floor(log10(c->low)), last = (int)floor(log10(c->high));
    const int kinds = last - first <= 2 ? 3 : 1;
    char text[MARKUP_NUMBER];
    for (int power = first; power <= last; power++) {
        for (int i = 0; i < kinds; i++) {
            const double value = steps[i] * pow(10, power), y = y_of(c, value);
            if (value < c->low || value > c->high)
                continue;
            fprintf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, RIGHT, y,
                    y);
            if (value < 1e6)
                markup_number(text, value);
            else
                snprintf(text, sizeof text, "%g M", 1e-6 * value);
            fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>", LEFT - 8, y + 4.5, text);
        }
    }
}

static void draw_curve(FILE *out, const curves *c, int curve)
{
    bool drawing = false;
    double y = 0;
    for (int l = 0; l < LENGTHS; l++) {
        if (c->nanoseconds[curve][l] <= 0)
            continue;
        y = y_of(c, c->nanoseconds[curve][l]);
        if (!drawing)
            fprintf(out, "<path class=\"curve%s\" d=\"M", curve_class[curve]);
        fprintf(out, "%s%.1f %.1f", drawing ? "L" : "", x_of(ldexp(1, LEAST_POWER + l)), y);
        drawing = true;
    }
    fputs(drawing ? "\"/>" : "", out);
}

/* Writes a curve's name next to its middle, on the side away from the other curve. */
static void draw_name(FILE *out, const curves *c, int curve)
{
    const int at = curve ? LENGTHS - 3 : LENGTHS - 2;
    const double own = c->nanoseconds[curve][at], other = c->nanoseconds[!curve][at];
    if (own <= 0)
        return;
    const bool above = own > other;
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>",
            curve ? "name" : "accent-text", x_of(ldexp(1, LEAST_POWER + at)) + (curve ? -10 : 0),
            y_of(c, own) + (above ? -9 : 19), curve ? "end" : "middle",
            form_name((fpa_form_index)curve_forms[curve]));
}

static void draw_crossover(FILE *out, int64_t crossover)
{
    if (crossover < 1 << LEAST_POWER || crossover > 1 << MOST_POWER)
        return;
    const double x = x_of((double)crossover);
    fprintf(out, "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, TOP, BOTTOM);
}

static void draw_points(FILE *out, const curves *c, const page_machine *machine)
{
    for (int i = 0; i < machine->point_count; i++) {
        const page_point *point = &machine->point[i];
        if (point->length < 1 << LEAST_POWER || point->length > 1 << MOST_POWER)
            continue;
        fprintf(out,
                "<circle class=\"dot%s\" r=\"5\" cx=\"%.1f\" cy=\"%.1f\"><title>%s, %lld tokens, measured: "
                "%.4g ns</title></circle>",
                point->form == FORM_PARALLEL ? " second" : "", x_of((double)point->length),
                y_of(c, point->nanoseconds), form_name((fpa_form_index)point->form), (long long)point->length,
                point->nanoseconds);
    }
}

static void draw(const page *p, const page_machine *machine, const curves *c)
{
    FILE *out = p->out;
    fprintf(out,
            "<svg width=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" font-size=\"13\"><title>%s: nanoseconds "
            "per token and head against tokens a sequence</title>",
            WIDTH, WIDTH, HEIGHT, machine->title);
    draw_lengths(out);
    draw_times(out, c);
    draw_crossover(out, machine->plan.facts.crossover);
    for (int curve = CURVES - 1; curve >= 0; curve--)
        draw_curve(out, c, curve);
    draw_points(out, c, machine);
    for (int curve = 0; curve < CURVES; curve++)
        draw_name(out, c, curve);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">tokens a sequence</text>",
            (LEFT + RIGHT) / 2, BOTTOM + 44);
    fputs("<text y=\"13\">ns a token and head</text></svg>", out);
}

/* ---- text ---- */

static void write_caption(const page *p, const page_machine *machine, const curves *c)
{
    const int64_t crossover = machine->plan.facts.crossover;
    char text[MARKUP_NUMBER];
    fputs("<figcaption>", p->out);
    if (machine->heads == 1)
        fputs("One sequence, one head, one thread. ", p->out);
    else
        fprintf(p->out, "%d heads, %s tokens in all. ", (int)machine->heads,
                markup_number(text, (double)machine->tokens));
    if (crossover > 0)
        fprintf(p->out, "Chunked is cheaper from %s tokens on (dotted), by the plan. ",
                markup_number(text, (double)crossover));
    if (machine->point_count)
        fputs("Circles were measured. ", p->out);
    if (machine->points_left)
        fprintf(p->out, "%d measurement%s of another size %s left out. ", machine->points_left,
                machine->points_left == 1 ? "" : "s", machine->points_left == 1 ? "is" : "are");
    fputs("Model: ", p->out);
    markup_text(p->out, c->model ? c->model : "none");
    fputs(".</figcaption>", p->out);
}

static fpa_status write_machine(const page *p, const page_machine *machine, fpa_error *error)
{
    curves c;
    fprintf(p->out, "<figure class=\"chart\"><h3>%s, ", machine->title);
    markup_text(p->out, machine->target->name);
    fprintf(p->out, ", %s</h3>\n", dtype_name(machine->head->dtype));
    fpa_status status = FPA_OK;
    if (machine->planned) {
        status = fill(machine, &c, error);
        if (!status && c.high > c.low) {
            draw(p, machine, &c);
            write_caption(p, machine, &c);
        }
    } else {
        fputs("<p class=\"notice\">No kernels: ", p->out);
        markup_text(p->out, machine->unplanned.message);
        fputs("</p>", p->out);
    }
    fputs("</figure>\n", p->out);
    return status;
}

static void write_flop(const page *p)
{
    static const char *const units[FORMS] = {"a visible pair", "a token", "a token"};
    const page_machine *machine = &p->machine[PAGE_CPU];
    if (!machine->planned)
        return;
    fputs("<p>Operations of one head:", p->out);
    for (int form = 0; form < FORMS; form++) {
        if (!(machine->plan.facts.forms & 1 << form))
            continue;
        char name[32];
        snprintf(name, sizeof name, "flop_%s", form_name((fpa_form_index)form));
        fprintf(p->out, "%s %s ", form ? "," : "", form_name((fpa_form_index)form));
        markup_data(p->out, name, machine->plan.facts.flop[form]);
        fprintf(p->out, " FLOP %s", units[form]);
    }
    fputs(".</p>\n", p->out);
}

fpa_status page_cost(const page *p, fpa_error *error)
{
    fpa_status status = FPA_OK;
    page_section(p, "cost", "Cost");
    fputs("<p>The parallel form is quadratic in the length, the chunked one linear: seconds by the model "
          "of each machine, from counts of what the kernels do.</p>\n",
          p->out);
    write_flop(p);
    fputs("<div class=\"figure-row\">\n", p->out);
    for (int i = 0; i < PAGE_MACHINES && !status; i++)
        status = write_machine(p, &p->machine[i], error);
    fputs("</div>\n", p->out);
    page_section_end(p);
    return status;
}
