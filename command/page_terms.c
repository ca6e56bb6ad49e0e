/* page_terms: draws every term as the matrices W of its branches, with their shapes d_l x d. */
#include "page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "markup.h"

enum {
    MOST_TERMS = 12,
    SIDE = 120,        /* pixels of a picture with d columns */
    TALLEST = 150,     /* most pixels for rows */
    MOST_SQUARES = 32, /* most columns for which entries are squares; with more, runs are lines */
    MOST_CELLS = 4096, /* most entries of a dense matrix that is drawn cell by cell */
    SHADES = 4,
};

static const char *const shades[SHADES] = {".25", ".5", ".75", "1"};

/* A picture of a matrix: pixels per column and per row. */
typedef struct mask {
    FILE *out;
    int rows, cols;
    double x, y;
} mask;

static mask mask_begin(FILE *out, int rows, int cols, const char *title)
{
    mask m = {.out = out, .rows = rows, .cols = cols, .x = (double)SIDE / cols};
    m.y = fmax(fmin(m.x, (double)TALLEST / rows), rows * m.x < 6 ? 6.0 / rows : 0);
    fprintf(
        out,
        "<svg width=\"%d\" height=\"%.1f\" viewBox=\"0 0 %d %.1f\" role=\"img\"><title>%s, %d × %d</title>"
        "<rect class=\"sheet\" width=\"%d\" height=\"%.1f\"/>",
        SIDE, rows * m.y, SIDE, rows * m.y, title, rows, cols, SIDE, rows * m.y);
    return m;
}

/* ---- rows of the identity ---- */

static double largest(const fpa_branch *branch)
{
    double most = 0;
    for (int i = 0; branch->gram && i < branch->width; i++)
        most = fmax(most, branch->gram[i].value);
    return most > 0 ? most : 1;
}

static void draw_run(const mask *m, const fpa_branch *branch, int first, int end, double most)
{
    const double shade = 0.3 + 0.7 * branch_gram(branch, first) / most;
    const double x = branch->row[first] * m->x, y = first * m->y;
    if (m->cols > MOST_SQUARES) {
        fprintf(
            m->out,
            "<line class=\"diagonal\" stroke-opacity=\"%.2f\" stroke-width=\"%.2f\" x1=\"%.2f\" y1=\"%.2f\" "
            "x2=\"%.2f\" y2=\"%.2f\"/>",
            shade, fmax(2, m->x), x, y, x + (end - first) * m->x, y + (end - first) * m->y);
        return;
    }
    fprintf(m->out, "<path class=\"cell\" fill-opacity=\"%.2f\" d=\"", shade);
    for (int i = 0; i < end - first; i++)
        fprintf(m->out, "M%.2f %.2fh%.2fv%.2fh-%.2fz", x + i * m->x, y + i * m->y, m->x, m->y, m->x);
    fputs("\"/>", m->out);
}

static void draw_rows(const page *p, const fpa_branch *branch)
{
    const double most = largest(branch);
    mask m = mask_begin(p->out, branch->width, p->head->d, branch_kind_name(branch->kind));
    for (int first = 0, end; first < branch->width; first = end) {
        end = page_run_end(branch, first);
        draw_run(&m, branch, first, end, most);
    }
    fputs("</svg>", p->out);
}

/* ---- matrices ---- */

static double entry(const fpa_branch *branch, const fpa_matrix *matrix, int row, int col)
{
    return fabs(matrix->data[(size_t)branch->row[row] * (size_t)matrix->cols + (size_t)col]) *
           sqrt(branch_gram(branch, row));
}

static void draw_shade(const mask *m, const fpa_branch *branch, const fpa_matrix *matrix, int shade,
                       double most)
{
    bool any = false;
    for (int row = 0; row < m->rows; row++) {
        for (int col = 0; col < m->cols; col++) {
            const double share = entry(branch, matrix, row, col) / most;
            const int own = (int)fmin(SHADES - 1, floor(share * SHADES));
            if (share < 0.02 || own != shade)
                continue;
            if (!any)
                fprintf(m->out, "<path class=\"cell\" fill-opacity=\"%s\" d=\"", shades[shade]);
            any = true;
            fprintf(m->out, "M%.1f %.1fh%.1fv%.1fh-%.1fz", col * m->x, row * m->y, m->x, m->y, m->x);
        }
    }
    fputs(any ? "\"/>" : "", m->out);
}

static void draw_constant(const page *p, const fpa_branch *branch, const fpa_matrix *matrix)
{
    double most = 1e-300;
    mask m = mask_begin(p->out, branch->width, matrix->cols, "dense, magnitudes");
    if ((double)m.rows * m.cols > MOST_CELLS) {
        fprintf(p->out, "<rect class=\"cell\" fill-opacity=\".5\" width=\"%d\" height=\"%.1f\"/></svg>", SIDE,
                m.rows * m.y);
        return;
    }
    for (int row = 0; row < m.rows; row++)
        for (int col = 0; col < m.cols; col++)
            most = fmax(most, entry(branch, matrix, row, col));
    for (int shade = 0; shade < SHADES; shade++)
        draw_shade(&m, branch, matrix, shade, most);
    fputs("</svg>", p->out);
}

/* Draws a trainable matrix, whose values are unknown: an empty sheet, or a diagonal. */
static void draw_trainable(const page *p, const fpa_branch *branch, const fpa_matrix *matrix)
{
    mask m = mask_begin(p->out, branch->width, matrix->cols, "given at run time");
    const double height = m.rows * m.y;
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
        fprintf(p->out, "<line class=\"learned\" stroke-width=\"2\" x2=\"%d\" y2=\"%.1f\"/>", SIDE, height);
    else
        fprintf(p->out, "<rect class=\"learned\" x=\"1.5\" y=\"1.5\" width=\"%d\" height=\"%.1f\"/>",
                SIDE - 3, height - 3);
    fputs("</svg>", p->out);
}

static void draw_branch(const page *p, const fpa_branch *branch)
{
    if (branch->source == FPA_INPUT) {
        draw_rows(p, branch);
        return;
    }
    const fpa_matrix *matrix = &p->head->matrices[branch->source];
    if (matrix->kind == FPA_MATRIX_CONSTANT)
        draw_constant(p, branch, matrix);
    else
        draw_trainable(p, branch, matrix);
}

/* ---- captions ---- */

/* Writes the weights of rows: "weights 1 and 2". */
static void write_grams(const page *p, const fpa_branch *branch)
{
    enum { KINDS = 3 };
    const fpa_number *seen[KINDS];
    int count = 0;
    bool more = false;
    for (int i = 0; branch->gram && i < branch->width; i++) {
        int at = 0;
        while (at < count && !number_equal(*seen[at], branch->gram[i]))
            at++;
        if (at < count)
            continue;
        if (count == KINDS)
            more = true;
        else
            seen[count++] = &branch->gram[i];
    }
    if (count == 0 || (count == 1 && number_is_one(*seen[0])))
        return;
    fputs(more || count > 1 ? ", weights " : ", weight ", p->out);
    for (int i = 0; i < count; i++) {
        char text[NUMBER_TEXT];
        number_print(text, *seen[i]);
        fprintf(p->out, "%s%s", i ? ", " : "", text);
    }
    fputs(more ? " …" : "", p->out);
}

static void write_branch(const page *p, const fpa_branch *branch)
{
    fputs("<figure>", p->out);
    draw_branch(p, branch);
    fprintf(p->out, "<figcaption>%s %d × %d", branch_kind_name(branch->kind), branch->width, p->head->d);
    if (branch->source != FPA_INPUT && p->head->matrices[branch->source].name) {
        fputs(", ", p->out);
        markup_text(p->out, p->head->matrices[branch->source].name);
    }
    write_grams(p, branch);
    fputs("</figcaption></figure>", p->out);
}

static void write_term(const page *p, int index)
{
    const fpa_term *term = &p->head->terms[index];
    char text[MARKUP_NUMBER];
    const double features = term_features(term);
    fprintf(p->out, "<li><h3><b>Term %d</b>: %s feature%s", index + 1, markup_number(text, features),
            features == 1 ? "" : "s");
    if (!number_is_one(term->weight)) {
        char weight[NUMBER_TEXT];
        number_print(weight, term->weight);
        fprintf(p->out, ", weight %s", weight);
    }
    fputs("</h3><div class=\"branches\">", p->out);
    for (int i = 0; i < term->branch_count; i++)
        write_branch(p, &term->branches[i]);
    fputs(term->branch_count ? "" : "the constant 1", p->out);
    fputs("</div></li>\n", p->out);
}

void page_terms(const page *p)
{
    const int count = p->head->term_count;
    page_section(p, "terms", "Terms and branches, as written");
    fprintf(p->out,
            "<p>The kernel is the sum of <data class=\"terms\" value=\"%d\">%d</data> term%s. A term is "
            "the product of its branches <i class=\"v\">(Wq)·(Wk)</i>; each picture is one <i "
            "class=\"v\">W</i>, a row of it a row, the fuller its colour the larger its weight.</p>\n<ul "
            "class=\"term-list\">\n",
            count, count, count == 1 ? "" : "s");
    for (int i = 0; i < count && i < MOST_TERMS; i++)
        write_term(p, i);
    fputs("</ul>\n", p->out);
    if (count > MOST_TERMS)
        fprintf(p->out, "<p class=\"soft\">and %d more terms</p>\n", count - MOST_TERMS);
    page_section_end(p);
}
