/* page_frame: functions that the sections of a page share. */
#include "page.h"

#include "markup.h"

extern const char page_css[]; /* command/page.css */

void page_begin(FILE *out, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
          "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\"/>\n"
          "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
          "style-src 'unsafe-inline'\"/>\n"
          "<link rel=\"icon\" href=\"data:,\"/>\n<title>",
          out);
    markup_text(out, title);
    fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", page_css);
}

void page_end(FILE *out)
{
    fputs("<footer>\n<p>Written by fpac " FPA_VERSION
          ". A head is what is computed; the kernels that compute it are "
          "generated from it, and are called only after they were compared with the formula.</p>\n"
          "</footer>\n</body>\n</html>\n",
          out);
}

void page_section(const page *p, const char *id, const char *title)
{
    fprintf(p->out, "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">%s</h2>\n", id, id,
            id, title);
}

void page_section_end(const page *p)
{
    fputs("</section>\n", p->out);
}

fpa_call_size page_call(const page_machine *machine, int form, int64_t length)
{
    const int64_t fitting = machine->tokens > length ? machine->tokens / length : 1;
    const int64_t batch = form == FORM_RECURRENT ? machine->sequences : fitting;
    return (fpa_call_size){.form = form,
                           .batch = batch,
                           .length = length,
                           .query_heads = machine->heads,
                           .heads = machine->heads,
                           .state_in = form == FORM_RECURRENT,
                           .state_out = form == FORM_RECURRENT,
                           .joined = true};
}

/* Constant matrices are A, B, ... in their order, Z27 and so on after Z. */
void matrix_letter(const fpa_head *head, int source, FILE *out)
{
    int number = 0;
    for (int i = 0; i < source; i++)
        number += head->matrices[i].kind == FPA_MATRIX_CONSTANT;
    if (head->matrices[source].kind != FPA_MATRIX_CONSTANT)
        markup_text(out, head->matrices[source].name);
    else if (number < 26)
        fputc('A' + number, out);
    else
        fprintf(out, "Z%d", number + 1);
}

void page_source(const fpa_head *head, int source, FILE *out)
{
    if (source == FPA_INPUT)
        return;
    fputs("<var>", out);
    matrix_letter(head, source, out);
    fputs("</var>", out);
}
