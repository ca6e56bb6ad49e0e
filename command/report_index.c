/* report_index: the index of a folder of pages. */

#include "command.h"
#include "markup.h"
#include "report.h"

void index_begin(FILE *out)
{
    page_begin(out, "Heads of Factorized Polynomial Attention");
    fputs("<header>\n<p class=\"kind\">fpac report</p>\n<h1 style=\"font-family:var(--sans)\">Attention "
          "heads</h1>\n"
          "<p>Every head is a sum of products of projections, evaluated over pairs of tokens, through a "
          "state, or token by "
          "token. A picture shows which products of coordinates its state holds: down and right the "
          "coordinates, fuller in colour "
          "where the weight is larger.</p>\n</header>\n<main>\n",
          out);
}

void index_add_spec(FILE *out, const char *spec, bool first)
{
    fputs(first ? "" : "</ul>\n</section>\n", out);
    fputs("<section>\n<h2>", out);
    markup_text(out, spec);
    fputs("</h2>\n<ul class=\"cards\">\n", out);
}

/* Adds a page. Its name is a C identifier, and so can be part of a file's name and a link. */
void index_add(const page *p)
{
    char size[SIZE_TEXT], features[MARKUP_NUMBER];
    fputs("<li><a href=\"", p->out);
    markup_text(p->out, p->head->name);
    fputs(".html\">", p->out);
    page_map(p->out, p->simple->head, "Products in the state", true);
    fputs("<span class=\"title\">", p->out);
    markup_text(p->out, p->head->name);
    fprintf(p->out,
            "</span><span class=\"small\">D = %s, state %s</span><span class=\"small\">d = %d, dv = %d, "
            "degree %d%s%s</span>",
            markup_number(features, (double)p->facts.features), size_text(size, p->facts.state_bytes),
            head_width(p->head), p->head->dv, head_degree(p->head),
            p->head->normalize == FPA_NORMALIZE_NONE ? "" : ", normalised", p->head->gate ? ", gated" : "");
    fputs("</a></li>\n", p->out);
}

void index_end(FILE *out)
{
    fputs("</ul>\n</section>\n</main>\n", out);
    page_end(out);
}
