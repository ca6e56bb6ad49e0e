/* page_formula: k(q, k) as scores compute it, and o_t, as HTML text. */
#include "page.h"

#include <string.h>

enum { MOST_INLINE_DOTS = 4, MOST_INLINE = 6, MOST_MONOMIALS = 10, MOST_DOTS = 6 };

/* ---- dot products ---- */

static bool is_run(const fpa_branch *dot)
{
    for (int i = 1; i < dot->width; i++) {
        if (dot->row[i] != dot->row[i - 1] + 1)
            return false;
    }
    return true;
}

static bool is_even(const fpa_branch *dot)
{
    for (int i = 1; dot->gram && i < dot->width; i++) {
        if (!number_equal(dot->gram[i], dot->gram[0]))
            return false;
    }
    return true;
}

/* Writes the rows of a dot as subscripts, unless they are all rows. */
static void write_rows(const page *p, const fpa_branch *dot, int all)
{
    if (dot->width == all)
        return;
    if (!is_run(dot))
        fprintf(p->out, "<sub>%d&#160;rows</sub>", dot->width);
    else if (dot->width == 1)
        fprintf(p->out, "<sub>%d</sub>", dot->row[0] + 1);
    else
        fprintf(p->out, "<sub>%d…%d</sub>", dot->row[0] + 1, dot->row[dot->width - 1] + 1);
}

/* Writes a dot product: q·k, q₁…₈·k₁…₈, Wq·Wk, or one with weights. */
static void write_dot(const page *p, const fpa_branch *dot)
{
    const fpa_head *head = p->simple->head;
    const int all = dot->source == FPA_INPUT ? head->d : head->matrices[dot->source].rows;
    char weight[NUMBER_TEXT];
    if (dot->gram && is_even(dot) && !number_is_one(dot->gram[0])) {
        number_print(weight, dot->gram[0]);
        fprintf(p->out, "%s ", weight);
    }
    for (int side = 0; side < 2; side++) {
        fputs(side ? "<span class=\"op\">·</span>" : "", p->out);
        if (side && dot->gram && !is_even(dot))
            fputs("<var>g</var><span class=\"op\">·</span>", p->out);
        page_source(head, dot->source, p->out);
        fprintf(p->out, "<var>%c</var>", side ? 'k' : 'q');
        write_rows(p, dot, all);
    }
}

/* ---- the polynomial ---- */

static bool is_inline(const fpa_score *score)
{
    return score->dot_count <= MOST_INLINE_DOTS && score->monomial_count <= MOST_INLINE;
}

static void write_factor(const page *p, int dot, int power, bool alone)
{
    const fpa_score *score = &p->simple->score;
    if (is_inline(score)) {
        fputs(alone ? "" : "(", p->out);
        write_dot(p, &score->dots[dot]);
        fputs(alone ? "" : ")", p->out);
    } else {
        fprintf(p->out, "<var>s</var><sub>%d</sub>", dot + 1);
    }
    if (power > 1)
        fprintf(p->out, "<sup>%d</sup>", power);
}

static int factor_count(const fpa_score *score, const fpa_monomial *monomial)
{
    int count = 0;
    for (int i = 0; i < score->dot_count; i++)
        count += monomial->power[i];
    return count;
}

static void write_monomial(const page *p, const fpa_monomial *monomial, bool first)
{
    const fpa_score *score = &p->simple->score;
    const int factors = factor_count(score, monomial);
    char text[NUMBER_TEXT];
    number_print(text, monomial->weight);
    const bool negative = text[0] == '-', plain = !strcmp(negative ? text + 1 : text, "1");
    if (negative || !first)
        fprintf(p->out, "<span class=\"op\"> %s </span>", negative ? "−" : "+");
    if (!plain || factors == 0)
        fprintf(p->out, "%s%s", negative ? text + 1 : text, factors ? "&#8201;" : "");
    const bool alone = plain && factors == 1 && score->monomial_count == 1;
    for (int i = 0; i < score->dot_count; i++) {
        if (monomial->power[i])
            write_factor(p, i, monomial->power[i], alone);
    }
}

static void write_kernel(const page *p)
{
    const fpa_score *score = &p->simple->score;
    fputs("<p class=\"math large\"><var>k</var>(<var>q</var>, <var>k</var>)<span class=\"op\"> = </span>",
          p->out);
    for (int i = 0; i < score->monomial_count && i < MOST_MONOMIALS; i++)
        write_monomial(p, &score->monomials[i], i == 0);
    if (score->monomial_count > MOST_MONOMIALS)
        fprintf(p->out,
                "<span class=\"op\"> + </span>… <span class=\"soft small\">(%d products in all)</span>",
                score->monomial_count);
    fputs("</p>\n", p->out);
}

static void write_matrix(const page *p, const fpa_head *head, int index)
{
    const fpa_matrix *matrix = &head->matrices[index];
    fputs("<li>", p->out);
    page_source(head, index, p->out);
    if (matrix->kind == FPA_MATRIX_CONSTANT)
        fprintf(p->out, ": %d × %d, constant</li>\n", matrix->rows, matrix->cols);
    else
        fprintf(p->out, ": %s%d × %d, given at run time, %s</li>\n",
                matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? "diagonal, " : "", matrix->rows, matrix->cols,
                matrix->per_head ? "one a key/value head" : "one for all heads");
}

/* Writes what the letters of the formula mean. */
static void write_letters(const page *p)
{
    const fpa_score *score = &p->simple->score;
    const fpa_head *head = p->simple->head;
    fputs("<ul class=\"where\">\n", p->out);
    for (int i = 0; !is_inline(score) && i < score->dot_count && i < MOST_DOTS; i++) {
        fprintf(p->out, "<li><var>s</var><sub>%d</sub> = ", i + 1);
        write_dot(p, &score->dots[i]);
        fputs("</li>\n", p->out);
    }
    if (!is_inline(score) && score->dot_count > MOST_DOTS)
        fprintf(p->out, "<li>and %d more dot products</li>\n", score->dot_count - MOST_DOTS);
    for (int i = 0; i < score->dot_count; i++) {
        if (score->dots[i].gram && !is_even(&score->dots[i])) {
            fputs("<li><var>g</var>: a weight a row</li>\n", p->out);
            break;
        }
    }
    for (int i = 0; i < head->matrix_count && i < MOST_DOTS; i++)
        write_matrix(p, head, i);
    fputs("</ul>\n", p->out);
}

/* ---- the output ---- */

static void write_sum(const page *p, bool values)
{
    const fpa_head *head = p->head;
    fprintf(p->out, "∑<sub><var>j</var>%s</sub> ", head->causal ? "&#8201;≤&#8201;<var>t</var>" : "");
    if (head->gate)
        fputs("e<sup><var>G</var><sub>t</sub>−<var>G</var><sub>j</sub></sup> ", p->out);
    fprintf(p->out, "<var>k</var>(%s<var>q</var><sub>t</sub>, <var>k</var><sub>j</sub>)%s",
            head->scale != 1 ? "<var>σ</var>&#8201;" : "", values ? " <var>v</var><sub>j</sub>" : "");
}

static void write_denominator(const page *p)
{
    const fpa_normalize kind = p->head->normalize;
    fputs(kind == FPA_NORMALIZE_MAX            ? "max("
          : kind == FPA_NORMALIZE_ONE_PLUS_SUM ? "1<span class=\"op\"> + </span>"
                                               : "",
          p->out);
    write_sum(p, false);
    fputs(kind == FPA_NORMALIZE_MAX   ? ", <var>ε</var>)"
          : kind == FPA_NORMALIZE_SUM ? "<span class=\"op\"> + </span><var>ε</var>"
                                      : "",
          p->out);
}

static void write_output(const page *p)
{
    const bool divided = p->head->normalize != FPA_NORMALIZE_NONE;
    fputs("<p class=\"math\"><var>o</var><sub>t</sub><span class=\"op\"> = </span>", p->out);
    fputs(divided ? "<span class=\"fraction\"><span>" : "", p->out);
    write_sum(p, true);
    if (divided) {
        fputs("</span><span>", p->out);
        write_denominator(p);
        fputs("</span></span>", p->out);
    }
    fputs("</p>\n<ul class=\"where\">\n", p->out);
    if (p->head->scale != 1)
        fprintf(p->out, "<li><var>σ</var> = %.9g</li>\n", p->head->scale);
    if (p->head->normalize == FPA_NORMALIZE_SUM || p->head->normalize == FPA_NORMALIZE_MAX)
        fprintf(p->out, "<li><var>ε</var> = %g</li>\n", p->head->eps);
    if (p->head->gate)
        fputs("<li><var>G</var><sub>t</sub>: the running sum of the log-gates, one a token and head, given "
              "at run time</li>\n",
              p->out);
    if (p->head->window)
        fprintf(p->out,
                "<li>of the newest %d keys, the token's own among them, <var>k</var> is "
                "e<sup>%s<var>q</var>·<var>k</var></sup> "
                "of the vectors as they are given</li>\n",
                p->head->window, p->head->scale != 1 ? "<var>σ</var>&#8201;" : "");
    fputs("</ul>\n", p->out);
}

void page_formula(const page *p)
{
    page_section(p, "formula", "The formula");
    write_kernel(p);
    write_letters(p);
    write_output(p);
    page_section_end(p);
}
