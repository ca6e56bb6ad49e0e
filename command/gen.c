/* gen: write C source, and shared libraries, ahead of time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/bundle.h"
#include "command.h"
#include "options.h"

enum { MANY_TARGETS = 16, TARGET_TEXT = 32 };

/* "c:avx2,avx512" -> "c:avx2", "c:avx512". */
typedef struct target_names {
    int count;
    char text[MANY_TARGETS][TARGET_TEXT];
    const char *name[MANY_TARGETS];
} target_names;

static fpa_status add_target(target_names *targets, const char *isa, size_t length, fpa_error *error)
{
    const fpa_target *known;
    if (targets->count == MANY_TARGETS || length + 3 > TARGET_TEXT)
        return fail(error, FPA_INVALID, "--target", "%.*s is one target too many, or too long", (int)length,
                    isa);
    char *text = targets->text[targets->count];
    if (length == 1 && *isa == 'c')
        strcpy(text, "c");
    else if (length > 2 && !memcmp(isa, "c:", 2))
        snprintf(text, TARGET_TEXT, "%.*s", (int)length, isa);
    else
        snprintf(text, TARGET_TEXT, "c:%.*s", (int)length, isa);
    targets->name[targets->count++] = text;
    return select_target(text, &known, error);
}

static fpa_status parse_targets(const char *text, target_names *targets, fpa_error *error)
{
    while (*text) {
        size_t length = strcspn(text, ",");
        fpa_status status = add_target(targets, text, length, error);
        if (status)
            return status;
        text += length + (text[length] == ',');
    }
    return targets->count ? FPA_OK : fail(error, FPA_INVALID, "--target", "names no target");
}

/* Heads of all specs, in order; owned. */
static fpa_status add_heads(const char *spec, const char *name, fpa_head_list *all, fpa_error *error)
{
    fpa_head_list list = {0};
    int first, end;
    fpa_status status = select_heads(spec, name, &list, &first, &end, error);
    if (status)
        return status;
    fpa_head **heads = realloc(all->heads, (size_t)(all->count + end - first) * sizeof *heads + 1);
    if (heads)
        all->heads = heads;
    else
        status = fail_memory(error);
    for (int i = first; i < end && !status; i++) {
        all->heads[all->count++] = list.heads[i];
        list.heads[i] = NULL;
    }
    head_list_free(&list);
    return status;
}

static void show_progress(void *user, const char *line)
{
    (void)user;
    progress("%s", line);
}

static fpa_status write_bundle(const fpa_texts *specs, const char *head, const char *folder,
                               const char *target, bool objects, fpa_error *error)
{
    target_names targets = {0};
    fpa_head_list all = {0};
    const fpa_options options = {.log = show_progress};
    fpa_status status = parse_targets(target, &targets, error);
    for (int i = 0; i < specs->count && !status; i++)
        status = add_heads(specs->text[i], head, &all, error);
    if (!status)
        status =
            bundle_write(all.heads, all.count, folder, targets.name, targets.count, objects, &options, error);
    progress_end();
    head_list_free(&all);
    return status;
}

int command_gen(int count, char **arguments)
{
    const char *head = NULL, *folder = NULL, *target = "c";
    bool objects = false;
    const fpa_option table[] = {
        {"-o", OPTION_TEXT, &folder, "DIR", "write there; made when it is missing", 0, 0},
        {"--head", OPTION_TEXT, &head, "NAME", "only this head of each file", 0, 0},
        {"--target", OPTION_TEXT, &target, "c[:ISA,...]", "one or more; c: the best here (fpac list)", 0, 0},
        {"--object", OPTION_FLAG, &objects, NULL, "compile shared libraries too, verified where they run", 0,
         0},
    };
    const fpa_syntax syntax = {
        "gen SPEC... -o DIR [--head NAME] [--target c[:ISA,...]] [--object]",
        "Write NAME.c and NAME.h for each head (they need libm and OpenMP only), NAME.head, the\n"
        "head's canonical text, and manifest.fpa. With --object also NAME.ISA.so, which\n"
        "fpa_open_bundle loads without Lua and without a compiler. With several targets the\n"
        "sources are NAME.ISA.c and NAME.ISA.h.",
        OPTION_TABLE(table),
        1,
        -1,
        "The same spec and target give the same bytes. Exit code 3 when a kernel is refused:\n"
        "it is not written then."};
    fpa_texts operands;
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    if (!folder) {
        fprintf(stderr, "fpac: -o: is needed\nusage: fpac %s\n", syntax.usage);
        return EXIT_USAGE;
    }
    return write_bundle(&operands, head, folder, target, objects, &error) ? report(&error) : EXIT_OK;
}
