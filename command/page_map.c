/* page_map: draws which products of rows the features of a head are, as areas of a square.
 *
 * Both axes show the rows of all sources of branches, one source after the other. A term of two branches is a
 * rectangle: rows of its first branch (downwards) by rows of its second one (to the right); for a term of more
 * branches the first two are used, so that several of them overlap. A term of one branch is a strip above the
 * square, the constant term a dot in the corner. */
#include "page.h"

#include <math.h>

#include "markup.h"

enum {
    SIDE = 280,
    STRIP = 14,
    GAP = 4,
    SMALL = 120,
    MOST_AREAS = 6000,
    MOST_SMALL = 1200,
    NARROW = 6 /* pixels, of 280 */
};

typedef struct area {
    double x, y, width, height, weight;
} area;

typedef struct map {
    FILE *out;
    const fpa_head *head;
    double unit;  /* pixels per row */
    int rows;     /* rows of an axis */
    bool input;   /* the axis includes the input */
    double most;  /* the largest weight */
    int areas;    /* number of areas */
    int shown;    /* the most areas that are drawn */
    double faint; /* opacity of areas that overlap */
    bool small;   /* adjacent narrow areas are drawn as one, since there is no room for lines between them */
    area last;    /* the last area; height 0: there is none */
} map;

/* Where the rows of a source begin on an axis; matrices that no branch uses are included. */
static int offset_of(const map *m, int source)
{
    int offset = 0;
    if (source == FPA_INPUT)
        return 0;
    if (m->input)
        offset += m->head->d;
    for (int i = 0; i < source; i++)
        offset += m->head->matrices[i].rows;
    return offset;
}

int page_run_end(const fpa_branch *branch, int first)
{
    int end = first + 1;
    while (end < branch->width && branch->row[end] == branch->row[end - 1] + 1 &&
           branch_gram(branch, end) == branch_gram(branch, first))
        end++;
    return end;
}

/* The largest weight of a product in the term. */
static double term_weight(const fpa_term *term)
{
    double weight = fabs(term->weight.value);
    for (int b = 0; b < term->branch_count; b++) {
        double most = 0;
        for (int i = 0; i < term->branches[b].width; i++)
            most = fmax(most, branch_gram(&term->branches[b], i));
        weight *= b < 2 ? most : 1;
    }
    return weight;
}

static void measure(map *m)
{
    for (int t = 0; t < m->head->term_count; t++) {
        const fpa_term *term = &m->head->terms[t];
        m->most = fmax(m->most, term_weight(term));
        for (int b = 0; b < term->branch_count; b++)
            m->input |= term->branches[b].source == FPA_INPUT;
    }
    m->rows = offset_of(m, m->head->matrix_count);
}

static void write_area(map *m, const area *of)
{
    if (of->height <= 0 || m->areas++ >= m->shown)
        return;
    const double shade = (0.35 + 0.65 * fabs(of->weight) / m->most) * m->faint;
    fprintf(
        m->out,
        "<rect class=\"tile\" fill-opacity=\"%.2f\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>",
        shade, of->x, of->y, fmax(0.5, of->width), fmax(0.5, of->height));
}

static bool continues(const area *last, const area *next)
{
    return next->width < NARROW && last->y == next->y && last->height == next->height &&
           last->weight == next->weight && fabs(last->x + last->width - next->x) < 1e-6;
}

static void draw_rectangle(map *m, double x, double y, double width, double height, double weight)
{
    const area next = {x, y, width, height, weight};
    if (m->small && continues(&m->last, &next)) {
        m->last.width += width;
        return;
    }
    write_area(m, &m->last);
    m->last = next;
}

static void draw_pair(map *m, const fpa_branch *down, const fpa_branch *right, double weight)
{
    const int from = offset_of(m, down->source), over = offset_of(m, right->source);
    for (int i = 0, last; i < down->width; i = last) {
        last = page_run_end(down, i);
        for (int j = 0, end; j < right->width; j = end) {
            end = page_run_end(right, j);
            draw_rectangle(m, (over + right->row[j]) * m->unit, STRIP + GAP + (from + down->row[i]) * m->unit,
                           (end - j) * m->unit, (last - i) * m->unit,
                           weight * branch_gram(down, i) * branch_gram(right, j));
        }
    }
}

static void draw_single(map *m, const fpa_branch *branch, double weight)
{
    const int from = offset_of(m, branch->source);
    for (int i = 0, end; i < branch->width; i = end) {
        end = page_run_end(branch, i);
        draw_rectangle(m, (from + branch->row[i]) * m->unit, 0, (end - i) * m->unit, STRIP,
                       weight * branch_gram(branch, i));
    }
}

static void draw_term(map *m, const fpa_term *term)
{
    const double weight = term->weight.value;
    if (term->branch_count == 0)
        draw_rectangle(m, -STRIP - GAP, 0, STRIP, STRIP, weight);
    else if (term->branch_count == 1)
        draw_single(m, &term->branches[0], weight);
    else
        draw_pair(m, &term->branches[0], &term->branches[1], weight);
}

/* Which degrees occur: 0, 1, and 2 for all higher ones. */
static void find_degrees(const fpa_head *head, bool has[3])
{
    for (int t = 0; t < head->term_count; t++)
        has[head->terms[t].branch_count < 2 ? head->terms[t].branch_count : 2] = true;
}

static void write_caption(const map *m, const char *title, const bool has[3])
{
    char text[MARKUP_NUMBER];
    fprintf(m->out, "<figcaption><b class=\"ink\">%s</b>: %s features in %d term%s. ", title,
            markup_number(text, head_features(m->head)), m->head->term_count,
            m->head->term_count == 1 ? "" : "s");
    if (has[2])
        fprintf(m->out,
                "An area is the products of the rows at its left with the rows above it%s; a fuller "
                "colour: a larger weight.",
                head_degree(m->head) > 2 ? " (the first two factors of a product)" : "");
    if (has[1])
        fputs(" Strip: rows alone.", m->out);
    if (has[0])
        fputs(" Corner: the constant.", m->out);
    if (m->areas > m->shown)
        fprintf(m->out, " The first %d areas of %d are shown.", m->shown, m->areas);
    fputs("</figcaption>", m->out);
}

/* Writes a line and a letter where the rows of a matrix begin, if there are few matrices. */
static void write_source(const map *m, int source)
{
    const double at = offset_of(m, source) * m->unit;
    const double middle = at + m->head->matrices[source].rows * m->unit / 2;
    if (at > 0)
        fprintf(m->out, "<path class=\"mark\" stroke-width=\"1\" d=\"M%.1f %dv%dM0 %.1fh%d\"/>", at,
                STRIP + GAP, SIDE, STRIP + GAP + at, SIDE);
    fprintf(m->out, "<text x=\"-8\" y=\"%.1f\" text-anchor=\"end\" class=\"ink\">", STRIP + GAP + middle + 4);
    matrix_letter(m->head, source, m->out);
    fputs("</text>", m->out);
}

/* Writes the sources along the axes; for the input alone, the numbers of its first and last row. */
static void write_axis(const map *m)
{
    enum { MOST_SOURCES = 8 };
    if (!m->input && m->head->matrix_count <= MOST_SOURCES) {
        fputs("<g font-size=\"13\">", m->out);
        for (int i = 0; i < m->head->matrix_count; i++)
            write_source(m, i);
        fputs("</g>", m->out);
        return;
    }
    fprintf(m->out, "<g font-size=\"12\"><text x=\"-6\" y=\"%d\" text-anchor=\"end\">1</text>",
            STRIP + GAP + 11);
    fprintf(m->out, "<text x=\"-6\" y=\"%d\" text-anchor=\"end\">%d</text></g>", STRIP + GAP + SIDE - 2,
            m->rows);
}

bool page_map(FILE *out, const fpa_head *head, const char *title, bool small)
{
    map m = {.out = out,
             .head = head,
             .small = small,
             .shown = small ? MOST_SMALL : MOST_AREAS,
             .faint = head_degree(head) > 2 ? 0.3 : 0.85};
    bool has[3] = {false};
    find_degrees(head, has);
    measure(&m);
    if (m.rows == 0 || m.most == 0)
        return false;
    m.unit = (double)SIDE / m.rows;
    const int height = STRIP + GAP + SIDE, left = small ? STRIP + GAP + 1 : 34;
    fputs(small ? "" : "<figure class=\"map\">", out);
    fprintf(out,
            "<svg width=\"%d\" viewBox=\"-%d -1 %d %d\" role=\"img\" stroke-width=\"%s\"><title>%s</title>",
            small ? SMALL : SIDE + left + 1, left, SIDE + left + 1, height + 2, small ? "1.2" : ".6", title);
    fprintf(out, "<rect class=\"sheet\" y=\"%d\" width=\"%d\" height=\"%d\"/>", STRIP + GAP, SIDE, SIDE);
    if (has[1])
        fprintf(out, "<rect class=\"sheet\" width=\"%d\" height=\"%d\"/>", SIDE, STRIP);
    for (int t = 0; t < head->term_count; t++)
        draw_term(&m, &head->terms[t]);
    write_area(&m, &m.last);
    if (!small)
        write_axis(&m);
    fputs("</svg>", out);
    if (!small) {
        write_caption(&m, title, has);
        fputs("</figure>\n", out);
    }
    return true;
}
