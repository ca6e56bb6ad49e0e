/* page_verdict: the result of verification, and how far errors are from their bounds. */
#include "page.h"

#include <math.h>

#include "markup.h"

static void write_form(const page *p, const page_machine *machine, int form)
{
    const fpa_form_verdict *verdict = &machine->verdict.form[form];
    fprintf(
        p->out,
        "<tr><td>%s, %s</td><td class=\"n\">%.1e</td><td class=\"n\">%.3f</td><td class=\"margin\"><span "
        "class=\"track\"><span style=\"width:%.1f%%\"></span></span></td><td class=\"n\">%.2f</td></tr>\n",
        machine->title, form_name((fpa_form_index)form), verdict->error, verdict->worst,
        100 * fmin(1, verdict->worst), verdict->rms_ratio);
}

static void write_table(const page *p)
{
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Verdict\"><table "
          "class=\"rows\">\n<thead><tr>"
          "<th scope=\"col\">form</th><th scope=\"col\" class=\"n\">largest error</th><th scope=\"col\" "
          "class=\"n\">of the "
          "bound</th><th scope=\"col\">bound: the whole width</th><th scope=\"col\" class=\"n\">RMS, at most "
          "2</th></tr></thead>\n<tbody>\n",
          p->out);
    for (int i = 0; i < PAGE_MACHINES; i++) {
        const page_machine *machine = &p->machine[i];
        for (int form = 0; machine->proof == PROOF_VERIFIED && form < FORMS; form++) {
            if (machine->verdict.form[form].checked)
                write_form(p, machine, form);
        }
    }
    fputs("</tbody></table></div>\n", p->out);
}

static void write_words(const page *p, const page_machine *machine)
{
    const bool refused = machine->proof == PROOF_REFUSED;
    if (machine->proof == PROOF_NONE)
        return;
    fprintf(p->out, "<p class=\"notice small%s\">%s, ", refused ? " bad" : "", machine->title);
    markup_text(p->out, machine->target->name);
    fputs(refused                            ? ": refused. "
          : machine->proof == PROOF_VERIFIED ? ": verified. "
                                             : ": not verified. ",
          p->out);
    markup_text(p->out, machine->proof == PROOF_VERIFIED ? machine->verdict.text : machine->why);
    fputs("</p>\n", p->out);
}

void page_verdict(const page *p)
{
    bool asked = false, verified = false;
    for (int i = 0; i < PAGE_MACHINES; i++) {
        asked |= p->machine[i].proof != PROOF_NONE;
        verified |= p->machine[i].proof == PROOF_VERIFIED;
    }
    page_section(p, "verdict", "Verification");
    fputs("<p>Kernels are compared with the formula in double precision, in every form; each element must "
          "lie within a bound derived from the head's own operations. What fails cannot be called.</p>\n",
          p->out);
    if (!asked)
        fputs("<p class=\"notice\">Not verified for this page: <code>fpac report --verify</code> compiles "
              "the kernels and "
              "writes their margins here.</p>\n",
              p->out);
    if (verified)
        write_table(p);
    for (int i = 0; i < PAGE_MACHINES; i++)
        write_words(p, &p->machine[i]);
    page_section_end(p);
}
