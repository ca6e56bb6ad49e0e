#include "complaint.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Messages of Lua 5.4 (ldebug.c), and the sentence about the value that replaces each. */
static const struct {
    const char *attempt, *wrong;
} operations[] = {
    {"attempt to index a ", "has no fields and no methods"},
    {"attempt to call a ", "cannot be called: it is no function (`fpac prelude` shows the vocabulary)"},
    {"attempt to perform arithmetic on a ", "cannot be used in arithmetic, which needs numbers"},
    {"attempt to perform bitwise operation on a ",
     "cannot be used with &, |, ~, << and >>, which need whole numbers"},
    {"attempt to concatenate a ", "cannot be joined by ..: it takes texts and numbers"},
    {"attempt to get length of a ", "has no length: # needs a table, text or range"},
};

enum { OPERATIONS = sizeof operations / sizeof *operations };

/* The name in "(local 'x')". Returns its length; 0: it is not the name of a variable or field. */
static int find_name(const char *rest, const char **name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const char *quote = strchr(rest, '\'');
    *name = quote ? quote + 1 : "";
    const size_t length = strspn(*name, letters);
    const bool is_variable = quote && (*name)[length] == '\'' && !strstr(rest, "(constant ");
    return is_variable ? (int)length : 0;
}

static void write_sentence(const char *rest, const char *wrong, char *out, size_t size)
{
    const char *name, *end = strstr(rest, " value");
    const int type = end ? (int)(end - rest) : (int)strcspn(rest, " "), length = find_name(rest, &name);
    const char *article = !strncmp(rest, "nil", 3) ? "" : strchr("aeiou", *rest) ? "an " : "a ";
    if (length)
        snprintf(out, size, "%.*s is %s%.*s, and %s", length, name, article, type, rest, wrong);
    else
        snprintf(out, size, "%s%.*s %s", article, type, rest, wrong);
}

void complaint_write(const char *message, char *out, size_t size)
{
    static const char compare[] = "attempt to compare ";
    for (int i = 0; i < OPERATIONS; i++) {
        const size_t length = strlen(operations[i].attempt);
        if (!strncmp(message, operations[i].attempt, length)) {
            write_sentence(message + length, operations[i].wrong, out, size);
            return;
        }
    }
    if (!strncmp(message, compare, strlen(compare)))
        snprintf(out, size, "%s cannot be compared: < and > take two numbers or two texts",
                 message + strlen(compare));
    else
        snprintf(out, size, "%s", message);
}
