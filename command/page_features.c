/* page_features: D compared with other numbers of features, and the simplifications that led to it. */
#include "page.h"

#include <math.h>

#include "markup.h"

/* Writes a number of features with a bar; here: it is that of the state. */
static void write_bar(const page *p, const char *label, const char *name, double value, double most,
                      bool here)
{
    fprintf(p->out, "<tr%s><th scope=\"row\">%s</th><td class=\"n\">", here ? " class=\"here\"" : "", label);
    markup_data(p->out, name, value);
    fprintf(p->out, "</td><td><span class=\"bar\" style=\"width:%.2f%%\"></span></td></tr>\n",
            100 * fmin(1, value / most));
}

static void write_bars(const page *p)
{
    const fpa_facts *facts = &p->facts;
    const double written = (double)facts->features_written, features = (double)facts->features;
    const double tpow = head_features_tpow(p->head);
    /* d^n may be huge: its bar is cut so that the others can still be distinguished */
    const double most = fmax(fmax(written, features), fmin(tpow, 4 * fmax(written, features)));
    fputs("<table class=\"bars\">\n<caption class=\"soft small\" style=\"text-align:left\">Features, as "
          "rows of the state</caption>\n<tbody>\n",
          p->out);
    write_bar(p, "all products, d<sup>n</sup>", "features_tpow", tpow, most, false);
    write_bar(p, "as written", "features_written", written, most, false);
    write_bar(p, "in the state, D", "features_kept", features, most, true);
    write_bar(p, "fewest known", "features_least", (double)facts->features_minimum, most, false);
    fputs("</tbody>\n</table>\n", p->out);
}

static void write_notes(const page *p)
{
    const fpa_simplified *simple = p->simple;
    if (simple->note_count == 0)
        fputs("<p>Nothing was to be simplified: the state has the features of the terms as they were "
              "written.</p>\n",
              p->out);
    fputs("<ol class=\"notes\">\n", p->out);
    for (int i = 0; i < simple->note_count; i++) {
        fputs("<li>", p->out);
        markup_text(p->out, simple->notes[i]);
        fputs("</li>\n", p->out);
    }
    fputs("</ol>\n", p->out);
    for (int i = 0; i < simple->warning_count; i++) {
        fputs("<p class=\"notice bad\">Warning: ", p->out);
        markup_text(p->out, simple->warnings[i]);
        fputs("</p>\n", p->out);
    }
}

/* Writes the maps of products of coordinates, before and after simplification. */
static void write_maps(const page *p)
{
    fputs("<div class=\"figure-row\">\n", p->out);
    page_map(p->out, p->head, "Products as written", false);
    page_map(p->out, p->simple->head, "Products in the state", false);
    fputs("</div>\n", p->out);
}

void page_features(const page *p)
{
    page_section(p, "features", "Simplification");
    fputs("<p>Before anything is planned, the terms are rewritten to equal ones with fewer features; each "
          "step proves its identity, in exact arithmetic.</p>\n",
          p->out);
    write_bars(p);
    write_notes(p);
    write_maps(p);
    page_section_end(p);
}
