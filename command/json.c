#include "json.h"
#include "plain_text.h"

#include <inttypes.h>
#include <math.h>

void json_write_string(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        size_t size = plain_size(text);
        const unsigned char first = (unsigned char)*text;
        if (first == '"' || first == '\\')
            fprintf(out, "\\%c", first);
        else if (size > 0)
            fwrite(text, 1, size, out);
        else
            fprintf(out, "\\u%04x", first < 0x80 ? first : 0xfffd); /* not UTF-8: the replacement character */
        text += size > 0 ? size : 1;
    }
    fputc('"', out);
}

/* Writes the comma, the line break and the name before a member. */
static void begin_member(fpa_json *json, const char *name)
{
    if (json->depth > 0) {
        fprintf(json->out, "%s\n%*s", json->more[json->depth - 1] ? "," : "", 2 * json->depth, "");
        json->more[json->depth - 1] = true;
    }
    if (name) {
        json_write_string(json->out, name);
        fputs(": ", json->out);
    }
}

static void open_level(fpa_json *json, const char *name, char open, char close)
{
    begin_member(json, name);
    fputc(open, json->out);
    json->close[json->depth] = close;
    json->more[json->depth++] = false;
}

void json_object(fpa_json *json, const char *name)
{
    open_level(json, name, '{', '}');
}

void json_array(fpa_json *json, const char *name)
{
    open_level(json, name, '[', ']');
}

void json_close(fpa_json *json)
{
    json->depth--;
    if (json->more[json->depth])
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    fputc(json->close[json->depth], json->out);
    if (json->depth == 0)
        fputc('\n', json->out);
}

void json_text(fpa_json *json, const char *name, const char *text)
{
    begin_member(json, name);
    if (text)
        json_write_string(json->out, text);
    else
        fputs("null", json->out);
}

void json_number(fpa_json *json, const char *name, double value)
{
    begin_member(json, name);
    if (isfinite(value))
        fprintf(json->out, "%.17g", value);
    else
        fputs("null", json->out);
}

void json_integer(fpa_json *json, const char *name, int64_t value)
{
    begin_member(json, name);
    fprintf(json->out, "%" PRId64, value);
}

void json_bool(fpa_json *json, const char *name, bool value)
{
    begin_member(json, name);
    fputs(value ? "true" : "false", json->out);
}
