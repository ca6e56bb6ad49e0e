#include "page.h"

#include "command.h"
#include "markup.h"

/* ---- the top of the page ---- */

static void write_kind(const page *p)
{
    const fpa_head *head = p->head;
    fprintf(p->out, "<p class=\"kind\">d = %d, dv = %d, degree %d, %s", head_width(head), head->dv,
            head_degree(head), head->causal ? "causal" : "not causal");
    if (head->normalize != FPA_NORMALIZE_NONE)
        fprintf(p->out, ", normalised (%s)", normalize_name(head->normalize));
    if (head->window)
        fprintf(p->out, ", window %d", head->window);
    fprintf(p->out, "%s, stored as %s, state as %s</p>\n", head->gate ? ", gated" : "",
            dtype_name(head->dtype), dtype_name(head->state_dtype));
}

static void write_crossover(const page *p)
{
    const page_machine *machine = &p->machine[PAGE_CPU];
    fputs("<div><dt>Crossover</dt><dd>", p->out);
    if (!machine->planned)
        fputs("none<small>there is no plan</small>", p->out);
    else if (machine->plan.facts.crossover > 0)
        markup_data(p->out, "crossover", (double)machine->plan.facts.crossover);
    else
        fputs("<data class=\"crossover\" value=\"0\">none</data>", p->out);
    if (machine->planned) {
        fputs("<small>tokens, ", p->out);
        markup_text(p->out, machine->target->name);
        fputs("</small>", p->out);
    }
    fputs("</dd></div>\n", p->out);
}

static void write_state_size(const page *p)
{
    char size[SIZE_TEXT];
    fprintf(p->out, "<div><dt>State</dt><dd><data class=\"state_bytes\" value=\"%.17g\">%s</data>",
            p->facts.state_bytes, size_text(size, p->facts.state_bytes));
    fputs("<small>", p->out);
    markup_data(p->out, "state_elements", (double)p->facts.state_elements);
    fputs(" numbers a head</small></dd></div>\n", p->out);
}

static const char *proof_word(const page_machine *machine)
{
    static const char *const words[] = {"not asked", "verified", "refused", "not run"};
    return words[machine->proof];
}

/* Writes the most important figures of a head. */
static void write_figures(const page *p)
{
    fputs("<dl class=\"figures\">\n<div><dt>Features D</dt><dd class=\"accent\">", p->out);
    markup_data(p->out, "features", (double)p->facts.features);
    fputs("<small>of at least ", p->out);
    markup_data(p->out, "features_minimum", (double)p->facts.features_minimum);
    fputs("</small></dd></div>\n", p->out);
    write_state_size(p);
    write_crossover(p);
    const page_machine *cpu = &p->machine[PAGE_CPU], *gpu = &p->machine[PAGE_GPU];
    fprintf(p->out, "<div><dt>Verification</dt><dd>%s<small>CPU; GPU: %s</small></dd></div>\n</dl>\n",
            proof_word(cpu), proof_word(gpu));
}

static void write_header(const page *p)
{
    fputs("<header>\n", p->out);
    write_kind(p);
    fputs("<h1>", p->out);
    markup_text(p->out, p->head->name);
    fputs("</h1>\n<p class=\"soft small\">from ", p->out);
    markup_text(p->out, p->head->origin ? p->head->origin : "no file");
    fputs("</p>\n", p->out);
    write_figures(p);
    fputs("</header>\n<main>\n", p->out);
}

fpa_status page_write(page *p, fpa_error *error)
{
    char title[HEAD_MAX_NAME + 32];
    snprintf(title, sizeof title, "%s: an attention head", p->head->name);
    page_begin(p->out, title);
    write_header(p);
    page_formula(p);
    page_terms(p);
    page_features(p);
    page_state(p);
    page_visible(p);
    fpa_status status = page_cost(p, error);
    if (!status)
        status = page_kernels(p, error);
    page_verdict(p);
    fputs("</main>\n", p->out);
    page_end(p->out);
    return status;
}
