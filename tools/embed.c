/* embed OUT.c SYMBOL=PATH ...: each file as `const char SYMBOL[]`, NUL-terminated, and its size
 * without the NUL as `const size_t SYMBOL_size`; the templates (*.in) also as a table by name.
 * The same files give the same bytes. */
#include <stdio.h>
#include <string.h>

static void write_byte(FILE *out, int byte)
{
    if (byte == '\n')
        fprintf(out, "\\n\"\n\"");
    else if (byte == '"' || byte == '\\' || byte == '?') /* ?? may begin a trigraph */
        fprintf(out, "\\%c", byte);
    else if (byte >= ' ' && byte <= '~')
        putc(byte, out);
    else
        fprintf(out, "\\%03o", (unsigned)byte); /* three digits end there, whatever follows */
}

/* A literal a line, which compilers read faster than a number a byte. */
static int copy_bytes(FILE *out, FILE *in, const char *symbol)
{
    size_t size = 0;
    fprintf(out, "\nconst char %s[] =\n\"", symbol);
    for (int byte; (byte = getc(in)) != EOF; size++)
        write_byte(out, byte);
    fprintf(out, "\";\nconst size_t %s_size = %zu;\n", symbol, size);
    return ferror(in) ? -1 : 0;
}

/* argument is SYMBOL=PATH; the = is overwritten. */
static int embed_file(FILE *out, char *argument)
{
    char *path = strchr(argument, '=');
    if (!path) {
        fprintf(stderr, "embed: %s is not SYMBOL=PATH\n", argument);
        return -1;
    }
    *path++ = '\0';
    FILE *in = fopen(path, "rb");
    if (!in || copy_bytes(out, in, argument) < 0) {
        perror(path);
        if (in)
            fclose(in);
        return -1;
    }
    fclose(in);
    return 0;
}

static void declare(FILE *out, const char *argument)
{
    int length = (int)strcspn(argument, "=");
    fprintf(out, "extern const char %.*s[];\n", length, argument);
    fprintf(out, "extern const size_t %.*s_size;\n", length, argument);
}

static int is_template(const char *path)
{
    size_t size = strlen(path);
    return size > 3 && !strcmp(path + size - 3, ".in");
}

/* fpa_embedded_templates: each argument SYMBOL\0PATH whose file is a template. */
static void write_table(FILE *out, char **arguments, int count)
{
    fprintf(out,
            "\nconst struct fpa_embedded_file { const char *name, *text; } fpa_embedded_templates[] = {\n");
    for (int i = 0; i < count; i++) {
        const char *path = arguments[i] + strlen(arguments[i]) + 1;
        const char *slash = strrchr(path, '/');
        if (is_template(path))
            fprintf(out, "    {\"%s\", %s},\n", slash ? slash + 1 : path, arguments[i]);
    }
    fprintf(out, "    {NULL, NULL},\n};\n");
}

static int has_templates(char **arguments, int count)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        found |= is_template(arguments[i] + strlen(arguments[i]) + 1);
    return found;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: embed OUT.c SYMBOL=PATH ...\n");
        return 2;
    }
    FILE *out = fopen(argv[1], "wb");
    if (!out) {
        perror(argv[1]);
        return 1;
    }
    int failed = 0;
    fprintf(out, "/* Written by tools/embed.c; do not edit. */\n#include <stddef.h>\n\n");
    for (int i = 2; i < argc; i++)
        declare(out, argv[i]);
    for (int i = 2; i < argc && !failed; i++)
        failed = embed_file(out, argv[i]) < 0;
    if (!failed && has_templates(argv + 2, argc - 2))
        write_table(out, argv + 2, argc - 2);
    failed |= ferror(out);
    failed |= fclose(out);
    if (failed)
        remove(argv[1]);
    return failed ? 1 : 0;
}
