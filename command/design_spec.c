/* design_spec: the rows of `fpac design` as specs: to plan them, and to write the chosen one. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/text.h"
#include "design.h"

static void write_spec(FILE *out, const design_request *request, const design_row *row, const char *name,
                       bool comments)
{
    if (row->before[0])
        fprintf(out, "%s\n", row->before);
    fprintf(out, "return head {\n  name = \"%s\", d = %d, dv = %d,\n", name, (int)request->d,
            (int)request->dv);
    fprintf(out, "  scale = %.17g,%s\n", row->scale,
            comments ? "  -- multiplies q: 1 / sqrt(d), or of fewer rows" : "");
    if (request->normalize != FPA_NORMALIZE_NONE)
        fprintf(out, "  normalize = \"%s\",\n", normalize_name(request->normalize));
    if (request->gate)
        fprintf(out, "  gate = true,%s\n",
                comments ? "  -- a log-gate a step: fpac run --log-gate FILE" : "");
    if (request->dtype != FPA_F32)
        fprintf(out, "  dtype = \"%s\",\n", dtype_name(request->dtype));
    fprintf(out, "  terms = %s,\n}\n", row->terms);
}

static char *spec_text(const design_request *request, const design_row *row)
{
    text_buffer buffer;
    FILE *out = text_open(&buffer);
    if (!out)
        return NULL;
    write_spec(out, request, row, "designed", false);
    return text_finish(&buffer);
}

fpa_status design_load(const design_request *request, const design_row *row, fpa_head_list *list,
                       fpa_error *error)
{
    char *text = spec_text(request, row);
    if (!text)
        return fail_memory(error);
    fpa_status status = spec_load_text(row->label, NULL, text, strlen(text), list, error);
    free(text);
    return status;
}

static void write_comments(FILE *out, const design_request *request, const design_row *row, const char *name)
{
    char state[SIZE_TEXT], budget[SIZE_TEXT];
    fprintf(out, "-- %s: %s; %s.\n", name, row->label, row->about);
    fprintf(out, "-- Designed by fpac %s for d = %d, dv = %d and a state of at most %s.\n", FPA_VERSION,
            (int)request->d, (int)request->dv, size_text(budget, request->state));
    fprintf(out, "-- Predicted for %s, a call of %d x %d heads x %lld tokens:\n", request->target->name,
            (int)request->batch, (int)request->heads, (long long)request->length);
    fprintf(out, "--   D %lld, state %s a head\n", (long long)row->facts.features,
            size_text(state, row->facts.state_bytes));
    fprintf(out, "--   prefill %.4g ns, decode %.4g ns a token and head\n", row->prefill, row->decode);
    fprintf(out, "--   recall %.0f pairs, of which %d %% come back\n", row->pairs, (int)request->recalled);
    fputs("-- fpac explain tells its terms and plan, fpac verify compiles it and compares it with the "
          "formula.\n",
          out);
}

/* Names the head like the file, if that is a valid name. */
static void choose_name(const char *path, char name[HEAD_MAX_NAME + 1])
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t length = strcspn(base, ".");
    bool fits = length > 0 && length <= HEAD_MAX_NAME && !isdigit((unsigned char)base[0]);
    for (size_t i = 0; i < length; i++)
        fits = fits && (isalnum((unsigned char)base[i]) || base[i] == '_');
    snprintf(name, HEAD_MAX_NAME + 1, "%.*s", fits ? (int)length : 8, fits ? base : "designed");
}

fpa_status design_write_chosen(const design_request *request, const design_list *list, fpa_error *error)
{
    char name[HEAD_MAX_NAME + 1];
    text_buffer buffer;
    if (request->chosen > list->count)
        return fail(error, FPA_INVALID, "--choose", "there are %d rows only", list->count);
    const design_row *row = &list->rows[request->chosen - 1];
    FILE *out = text_open(&buffer);
    if (!out)
        return fail_memory(error);
    choose_name(request->output, name);
    write_comments(out, request, row, name);
    write_spec(out, request, row, name, true);
    char *text = text_finish(&buffer);
    if (!text)
        return fail_memory(error);
    const fpa_bytes part = {text, strlen(text)};
    fpa_status status = output_write(request->output, 0666, &part, 1, error);
    free(text);
    return status;
}
