/* page_state: the state, and the products that belong to its rows. */
#include "page.h"

#include <inttypes.h>
#include <math.h>

#include "markup.h"

enum { WIDTH = 720, LEFT = 40, MOST_ROWS = 14, TALLEST = 120, LEAST = 14 };

/* ---- the picture: S, turned so that its rows run from left to right ---- */

static double across(const page *p, int64_t row)
{
    return LEFT + (double)(WIDTH - LEFT) * (double)row / (double)p->facts.features;
}

/* Draws lines between the rows of different terms, if they are wide enough to be visible. */
static void draw_borders(const page *p, double height)
{
    double last = LEFT;
    int64_t row = 0;
    fputs("<g stroke=\"var(--paper)\" stroke-width=\"1\">", p->out);
    for (int t = 0; t + 1 < p->simple->head->term_count; t++) {
        row += (int64_t)term_features(&p->simple->head->terms[t]);
        const double x = across(p, row);
        if (x - last < 2)
            continue;
        fprintf(p->out, "<line x1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x, x, height);
        last = x;
    }
    fputs("</g>", p->out);
}

static void draw_state(const page *p)
{
    const fpa_head *head = p->head;
    const double height = fmax(LEAST, fmin(TALLEST, TALLEST * head->dv / 128.0));
    const bool normalised = head->normalize != FPA_NORMALIZE_NONE;
    char text[MARKUP_NUMBER];
    fprintf(p->out,
            "<figure><svg width=\"%d\" viewBox=\"0 -1 %d %.1f\" role=\"img\"><title>The state: %s rows of %d "
            "values%s</title>",
            WIDTH, WIDTH, height + 44, markup_number(text, (double)p->facts.features), head->dv,
            normalised ? ", and a column of its own for the normaliser" : "");
    fprintf(p->out, "<rect class=\"cell\" fill-opacity=\".55\" x=\"%d\" width=\"%d\" height=\"%.1f\"/>", LEFT,
            WIDTH - LEFT, height);
    draw_borders(p, height);
    if (normalised)
        fprintf(p->out, "<rect class=\"cell\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"6\"/>", LEFT,
                height + 3, WIDTH - LEFT);
    fprintf(p->out,
            "<g font-size=\"14\"><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">dv</text><text x=\"%d\" "
            "y=\"%.1f\">1</text>"
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">D = %s</text></g></svg>",
            LEFT - 8, height / 2 + 5, LEFT, height + 28, WIDTH, height + 28, text);
    fprintf(p->out,
            "<figcaption>S, its rows from left to right; a line where the next product "
            "begins.%s</figcaption></figure>\n",
            normalised ? " Below it z, the sums of the features alone, which the normaliser needs." : "");
}

/* ---- the table ---- */

static void write_rows(const page *p, const fpa_branch *branch, int all)
{
    const int last = branch->width - 1;
    bool run = true;
    for (int i = 1; i < branch->width; i++)
        run &= branch->row[i] == branch->row[i - 1] + 1;
    if (!run)
        fprintf(p->out, "<sub>%d of %d rows</sub>", branch->width, all);
    else if (last == 0)
        fprintf(p->out, "<sub>%d</sub>", branch->row[0] + 1);
    else
        fprintf(p->out, "<sub>%d…%d</sub>", branch->row[0] + 1, branch->row[last] + 1);
}

static void write_product(const page *p, const fpa_term *term)
{
    const fpa_head *head = p->simple->head;
    fputs(term->branch_count ? "" : "1", p->out);
    for (int i = 0; i < term->branch_count; i++) {
        const fpa_branch *branch = &term->branches[i];
        const bool input = branch->source == FPA_INPUT;
        fputs(i ? " × " : "", p->out);
        fputs(input ? "" : "(", p->out);
        page_source(head, branch->source, p->out);
        fputs("<var>x</var>", p->out);
        fputs(input ? "" : ")", p->out);
        write_rows(p, branch, input ? head->d : head->matrices[branch->source].rows);
    }
}

static void write_term(const page *p, const fpa_term *term, int64_t first)
{
    char from[MARKUP_NUMBER], to[MARKUP_NUMBER], weight[NUMBER_TEXT];
    const int64_t rows = (int64_t)term_features(term);
    number_print(weight, term->weight);
    markup_number(from, (double)first + 1);
    markup_number(to, (double)(first + rows));
    fprintf(p->out, "<tr><td>%s%s%s</td><td>", from, rows > 1 ? " to " : "", rows > 1 ? to : "");
    write_product(p, term);
    fprintf(p->out, "</td><td class=\"n\">%s</td></tr>\n", weight);
}

static void write_table(const page *p)
{
    const fpa_head *head = p->simple->head;
    int64_t row = 0;
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Rows of the state\"><table "
          "class=\"rows narrow\">\n"
          "<thead><tr><th scope=\"col\">rows of S</th><th scope=\"col\">product of coordinates</th>"
          "<th scope=\"col\" class=\"n\">weight</th></tr></thead>\n<tbody>\n",
          p->out);
    for (int t = 0; t < head->term_count && t < MOST_ROWS; t++) {
        write_term(p, &head->terms[t], row);
        row += (int64_t)term_features(&head->terms[t]);
    }
    fputs("</tbody></table></div>\n", p->out);
    if (head->term_count > MOST_ROWS)
        fprintf(p->out,
                "<p class=\"soft small\">and %d more products, up to row %" PRId64
                "; <code>fpac explain --dump=simplified</code> has all of them</p>\n",
                head->term_count - MOST_ROWS, p->facts.features);
}

void page_state(const page *p)
{
    page_section(p, "state", "The state");
    fputs("<p>A key and its value are kept as φ(<i class=\"v\">k</i>) <i class=\"v\">v</i>′, a sum of D × "
          "dv numbers. Each row of it belongs to one product of coordinates, the same in every form and on "
          "every machine; the last factor runs fastest.</p>\n",
          p->out);
    draw_state(p);
    write_table(p);
    page_section_end(p);
}
