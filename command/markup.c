#include "markup.h"

#include <math.h>
#include <string.h>

#include "plain_text.h"

static const char *entity_of(char character)
{
    switch (character) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

void markup_text(FILE *out, const char *text)
{
    while (*text) {
        const size_t size = plain_size(text);
        const char *entity = entity_of(*text);
        if (entity)
            fputs(entity, out);
        else if (size > 0)
            fwrite(text, 1, size, out);
        else
            fputs("\xef\xbf\xbd", out);
        text += size > 0 ? size : 1;
    }
}

const char *markup_number(char text[MARKUP_NUMBER], double value)
{
    char digits[32];
    size_t size = 0;
    if (value != floor(value) || fabs(value) >= 1e12) {
        snprintf(text, MARKUP_NUMBER, "%g", value);
        return text;
    }
    const int count = snprintf(digits, sizeof digits, "%.0f", value);
    for (int i = 0; i < count; i++) {
        if (i > (value < 0) && (count - i) % 3 == 0)
            text[size++] = ',';
        text[size++] = digits[i];
    }
    text[size] = 0;
    return text;
}

const char *markup_seconds(char text[MARKUP_NUMBER], double seconds)
{
    static const struct {
        double least;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {0, "ns"}};
    int unit = 0;
    while (seconds < units[unit].least)
        unit++;
    const double value = seconds / (units[unit].least > 0 ? units[unit].least : 1e-9);
    snprintf(text, MARKUP_NUMBER, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, units[unit].name);
    return text;
}

void markup_data(FILE *out, const char *name, double value)
{
    char text[MARKUP_NUMBER];
    fprintf(out, "<data class=\"%s\" value=\"%.17g\">%s</data>", name, value, markup_number(text, value));
}
