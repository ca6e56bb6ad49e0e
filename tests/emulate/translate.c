#include "translate.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPERANDS = 160, MOST_TEXT = 8192 };

/* One asm statement. */
typedef struct assembly {
    char text[MOST_TEXT]; /* its strings, joined, with spaces for \n */
    struct {
        const char *at; /* expression in the source */
        size_t size;
    } operand[MOST_OPERANDS];
    int operands;
} assembly;

static const char *skip_space(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* ---- reading ---- */

/* Append a string to text (NULL: drop it); returns the place behind it. */
static const char *read_string(const char *at, char *text)
{
    size_t used = text ? strlen(text) : 0;
    for (at++; *at && *at != '"'; at++) {
        char c = *at;
        if (c == '\\') {
            at++;
            c = ' ';
        }
        if (text && used + 1 < MOST_TEXT)
            text[used++] = c;
    }
    if (text)
        text[used] = 0;
    return *at ? at + 1 : at;
}

/* The place of the parenthesis that closes the one at `at`. */
static const char *find_close(const char *at)
{
    int depth = 0;
    for (; *at; at++) {
        depth += *at == '(';
        depth -= *at == ')';
        if (depth == 0)
            return at;
    }
    return NULL;
}

/* From the first string on, up to the closing parenthesis: text : "constraint"(expression), ... : ... :
 * "memory". */
static const char *read_assembly(const char *at, assembly *a)
{
    a->text[0] = 0;
    a->operands = 0;
    for (at = skip_space(at); *at == '"'; at = skip_space(at))
        at = read_string(at, a->text);
    while (*at && *at != ')') {
        at = skip_space(at);
        if (*at == '"') {
            at = skip_space(read_string(at, NULL));
            if (*at != '(')
                continue;
            const char *close = find_close(at);
            if (!close || a->operands == MOST_OPERANDS)
                return NULL;
            a->operand[a->operands].at = at;
            a->operand[a->operands++].size = (size_t)(close + 1 - at);
            at = close + 1;
        } else if (*at == ':' || *at == ',') {
            at++;
        } else if (*at != ')') {
            return NULL;
        }
    }
    return *at == ')' ? at + 1 : NULL;
}

/* ---- writing ---- */

static bool write_operands(FILE *out, const char *from, const char *end, const assembly *a)
{
    for (; from < end; from++) {
        if (*from == '%') {
            char *behind;
            long number = strtol(from + 1, &behind, 10);
            if (behind == from + 1 || number >= a->operands)
                return false;
            fwrite(a->operand[number].at, 1, a->operand[number].size, out);
            from = behind - 1;
        } else if (*from == '{') {
            fputs("emulate::list(", out);
        } else if (*from == '}') {
            putc(')', out);
        } else if (*from == '_' && !is_name(from[1])) {
            fputs("emulate::sink", out);
        } else if (*from != '[' && *from != ']') {
            putc(*from, out);
        }
    }
    return true;
}

static bool write_instruction(FILE *out, const char *from, const char *end, const assembly *a)
{
    char name[64], label[64];
    if (sscanf(from, ".reg .pred %63[a-z_]", name) == 1)
        return fprintf(out, "bool %s = false; ", name) > 0;
    if (sscanf(from, "@!%63[a-z_] bra %63[a-z_]", name, label) == 2)
        return fprintf(out, "if (!%s) goto %s; ", name, label) > 0;
    if (!islower((unsigned char)*from))
        return false;
    fputs("ptx_", out);
    for (; from < end && !isspace((unsigned char)*from); from++)
        putc(*from == '.' || *from == ':' ? '_' : *from, out);
    putc('(', out);
    if (!write_operands(out, from, end, a))
        return false;
    fputs("); ", out);
    return true;
}

/* Instructions end with semicolons; braces and labels stand before them. */
static bool write_assembly(FILE *out, const assembly *a)
{
    const char *at = skip_space(a->text);
    fputs("{ ", out);
    while (*at) {
        size_t name = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
        if (*at == '{' || *at == '}') {
            fprintf(out, "%c ", *at++);
        } else if (name > 0 && at[name] == ':' && at[name + 1] != ':') {
            fprintf(out, "%.*s: ", (int)name, at);
            at += name + 1;
        } else {
            const char *end = strchr(at, ';');
            if (!end || !write_instruction(out, at, end, a))
                return false;
            at = end + 1;
        }
        at = skip_space(at);
    }
    fputs("}", out);
    return true;
}

/* The first string of the asm statement that begins here, or NULL: none does. */
static const char *find_strings(const char *code, const char *at)
{
    if (strncmp(at, "asm", 3) != 0 || (at > code && is_name(at[-1])))
        return NULL;
    at = skip_space(at + 3);
    if (strncmp(at, "volatile", 8) == 0)
        at = skip_space(at + 8);
    return *at == '(' ? at + 1 : NULL;
}

static const char *translate_code(FILE *out, const char *code)
{
    static const char shared[] = "extern __shared__"; /* emulate.h has it */
    for (const char *at = code; *at;) {
        const char *strings = find_strings(code, at);
        assembly a;
        if (strings) {
            at = read_assembly(strings, &a);
            if (!at)
                return "an asm statement that cannot be read";
            if (!write_assembly(out, &a))
                return "an instruction that cannot be read";
        } else if (strncmp(at, shared, sizeof shared - 1) == 0) {
            at += strcspn(at, "\n");
        } else {
            putc(*at++, out);
        }
    }
    return NULL;
}

char *emulate_translate(const char *code, const char **reason)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    *reason = "out of memory";
    if (!out)
        return NULL;
    fputs("#include <ptx.h>\n#line 1 \"emitted.cu\"\n", out); /* first: it may have been compiled */
    *reason = translate_code(out, code);
    fprintf(out, "\n%s%s#include <kernel_thread.h>\n",
            strstr(code, "struct run_time_weights {") ? "#define EMULATED_WEIGHTS\n" : "",
            strstr(code, "struct fpa_cuda_backward back") ? "#define EMULATED_BACKWARD\n" : "");
    if (fclose(out) || *reason) {
        free(text);
        return NULL;
    }
    return text;
}
