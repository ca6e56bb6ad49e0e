/* page_kernels: the mechanism for each call, what limits it, and its time by the model. */
#include "page.h"

#include <inttypes.h>
#include <math.h>

#include "candidates.h"
#include "markup.h"

/* The calls that are shown. */
static const struct {
    int form;
    int64_t length;
} calls[] = {{FORM_PARALLEL, 1024}, {FORM_CHUNKED, 4096}, {FORM_CHUNKED, 65536}, {FORM_RECURRENT, 1}};
enum { CALLS = sizeof calls / sizeof *calls };

static void write_size(const page *p, const fpa_call_size *size)
{
    char tokens[MARKUP_NUMBER];
    fprintf(p->out, "<td>%s</td><td>%s token%s", form_name((fpa_form_index)size->form),
            markup_number(tokens, (double)size->length), size->length == 1 ? "" : "s");
    if (size->batch > 1)
        fprintf(p->out, " × %s", markup_number(tokens, (double)size->batch));
    if (size->heads > 1)
        fprintf(p->out, ", %" PRId64 " heads", size->heads);
    fputs("</td>", p->out);
}

static void write_fastest(const page *p, const fpa_call_size *size, const fpa_candidate *fastest)
{
    char text[CANDIDATE_TEXT], seconds[MARKUP_NUMBER];
    fputs("<td class=\"mono\">", p->out);
    markup_text(p->out, fastest->mechanism);
    fputs("</td><td>", p->out);
    markup_text(p->out, candidate_text(text, fastest));
    fputs("</td><td>", p->out);
    markup_text(p->out, fastest->cost.limit);
    fprintf(p->out,
            "</td><td class=\"n\"><data class=\"seconds_%s_%" PRId64 "\" value=\"%.17g\">%s</data></td>",
            form_name((fpa_form_index)size->form), size->length, fastest->cost.seconds,
            markup_seconds(seconds, fastest->cost.seconds));
    const double nanoseconds = candidate_nanoseconds(size, fastest->cost.seconds);
    if (nanoseconds < 100)
        fprintf(p->out, "<td class=\"n\">%.3f</td>", nanoseconds);
    else
        fprintf(p->out, "<td class=\"n\">%s</td>", markup_number(seconds, round(nanoseconds)));
}

static fpa_status write_call(const page *p, const page_machine *machine, int call, fpa_error *error)
{
    const fpa_call_size size = page_call(machine, calls[call].form, calls[call].length);
    fpa_candidate_list list;
    if (!(machine->plan.facts.forms & 1 << size.form))
        return FPA_OK;
    fpa_status status = plan_candidates(&machine->plan, &size, (fpa_machine){.threads = 1}, &list, error);
    if (status)
        return status;
    fputs("<tr>", p->out);
    write_size(p, &size);
    if (list.fastest >= 0)
        write_fastest(p, &size, &list.list[list.fastest]);
    else
        fputs("<td colspan=\"5\">no candidate can compute it</td>", p->out);
    fputs("</tr>\n", p->out);
    candidate_list_free(&list);
    return FPA_OK;
}

static fpa_status write_calls(const page *p, const page_machine *machine, fpa_error *error)
{
    fpa_status status = FPA_OK;
    fprintf(p->out,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Kernels on the %s\"><table "
            "class=\"rows kernels\" id=\"kernels-%s\">\n<thead><tr><th scope=\"col\">form</th><th "
            "scope=\"col\">call</th><th scope=\"col\">mechanism</th><th scope=\"col\">how</th><th "
            "scope=\"col\">limited by</th><th scope=\"col\" class=\"n\">a call</th><th scope=\"col\" "
            "class=\"n\">ns a token, head</th></tr></thead>\n<tbody>\n",
            machine->title, machine->title);
    for (int call = 0; call < CALLS && !status; call++)
        status = write_call(p, machine, call, error);
    fputs("</tbody></table></div>\n", p->out);
    return status;
}

/* Writes the mechanisms that the plan has not chosen, each with its time or the reason against it. */
static void write_others(const page *p, const page_machine *machine)
{
    const fpa_call_size size = page_call(machine, FORM_CHUNKED, 4096);
    fpa_alternative other;
    char seconds[MARKUP_NUMBER];
    int next = 0, count = 0;
    while (plan_alternative(&machine->plan, &machine->simple, machine->head, &size,
                            (fpa_machine){.threads = 1}, &next, &other)) {
        if (count++ == 0)
            fputs("<details><summary>Mechanisms that were not chosen, chunked form, 4,096 "
                  "tokens</summary>\n<ul "
                  "class=\"notes small\">\n",
                  p->out);
        fputs("<li><span class=\"mono\">", p->out);
        markup_text(p->out, other.mechanism);
        fputs("</span>: ", p->out);
        if (other.why[0] || other.fastest.refused)
            markup_text(p->out, other.why[0] ? other.why : other.fastest.refused);
        else
            fprintf(p->out, "%s, limited by %s", markup_seconds(seconds, other.fastest.cost.seconds),
                    other.fastest.cost.limit);
        fputs("</li>\n", p->out);
    }
    fputs(count ? "</ul></details>\n" : "", p->out);
}

static fpa_status write_machine(const page *p, const page_machine *machine, fpa_error *error)
{
    fpa_status status = FPA_OK;
    fprintf(p->out, "<h3>%s, ", machine->title);
    markup_text(p->out, machine->target->name);
    fprintf(p->out, ", %s</h3>\n", dtype_name(machine->head->dtype));
    if (machine->other_dtype)
        fprintf(p->out,
                "<p class=\"soft small\">The head stores %s; kernels for GPUs are shown with %s, which their "
                "tensor cores multiply.</p>\n",
                dtype_name(p->head->dtype), dtype_name(machine->head->dtype));
    if (!machine->planned) {
        fputs("<p class=\"notice\">No kernels: ", p->out);
        markup_text(p->out, machine->unplanned.message);
        fputs("</p>\n", p->out);
        return FPA_OK;
    }
    status = write_calls(p, machine, error);
    write_others(p, machine);
    return status;
}

fpa_status page_kernels(const page *p, fpa_error *error)
{
    fpa_status status = FPA_OK;
    page_section(p, "kernels", "Kernels");
    for (int i = 0; i < PAGE_MACHINES && !status; i++)
        status = write_machine(p, &p->machine[i], error);
    page_section_end(p);
    return status;
}
