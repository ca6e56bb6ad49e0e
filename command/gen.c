/* gen: write sources, shared libraries and cubins ahead of time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle.h"
#include "command.h"
#include "options.h"
#include "show_layer.h"

enum { MANY_TARGETS = 16, TARGET_TEXT = 32 };

/* "c:avx2,avx512,sm_90" -> "c:avx2", "c:avx512", "cuda:sm_90". */
typedef struct target_names {
    int count;
    bool cuda; /* one of them is a CUDA target */
    const char *name[MANY_TARGETS];
} target_names;

/* One of the list: a whole name, or the short name of a C target or a GPU. */
static fpa_status find_target(const char *name, const fpa_target **target, fpa_error *error)
{
    char whole[TARGET_TEXT + 2];
    snprintf(whole, sizeof whole, "c:%s", name);
    *target = target_find(whole);
    return *target ? FPA_OK : select_target(name, target, error);
}

static fpa_status add_target(target_names *targets, const char *text, size_t length, fpa_error *error)
{
    char name[TARGET_TEXT];
    const fpa_target *target;
    if (targets->count == MANY_TARGETS || length >= TARGET_TEXT)
        return fail(error, FPA_INVALID, "--target", "%.*s is one target too many, or too long", (int)length,
                    text);
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    fpa_status status = find_target(name, &target, error);
    if (status)
        return status;
    targets->name[targets->count++] = target->name;
    targets->cuda = targets->cuda || target->backend == BACKEND_CUDA;
    return FPA_OK;
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

/* What the command line asks for. */
typedef struct gen_options {
    const char *head, *folder, *target, *dtype;
    bundle_parts parts;
} gen_options;

/* Heads of all specs, in order; owned. */
static fpa_status add_heads(const char *spec, const gen_options *wanted, fpa_head_list *all, fpa_error *error)
{
    fpa_head_list list = {0};
    int first, end;
    fpa_status status = select_with_layers(spec, wanted->head, wanted->dtype, &list, &first, &end, error);
    if (status)
        return status;
    fpa_head **heads = realloc(all->heads, (size_t)(all->count + list.count) * sizeof *heads + 1);
    if (heads)
        all->heads = heads;
    else
        status = fail_memory(error);
    for (int i = 0; i < list.layer_count && !status; i++)
        if (!wanted->head || strcmp(wanted->head, list.layers[i].name) == 0)
            note("layer %s: its heads are written; fpa_join_layer makes a layer of their kernels",
                 list.layers[i].name);
    for (int i = 0; i < list.count && !status; i++) {
        if (first == end ? !is_of_layer(&list, wanted->head, i) : i < first || i >= end)
            continue;
        all->heads[all->count++] = list.heads[i];
        list.heads[i] = NULL;
    }
    head_list_free(&list);
    return status;
}

/* A spec that is wrong is told, and does not stop the others. */
static fpa_status add_spec(const char *spec, const gen_options *wanted, fpa_head_list *all, int *code,
                           fpa_error *error)
{
    fpa_status status = add_heads(spec, wanted, all, error);
    if (!status || status == FPA_NO_MEMORY)
        return status;
    *code = report(error);
    return FPA_OK;
}

static fpa_status write_bundle(const fpa_texts *specs, const gen_options *wanted, int *code, fpa_error *error)
{
    target_names targets = {0};
    fpa_head_list all = {0};
    const fpa_options options = {.log = say_log};
    fpa_status status = parse_targets(wanted->target, &targets, error);
    if (!status && wanted->parts.ptx && !targets.cuda)
        status = fail(error, FPA_INVALID, "--ptx", "is for CUDA targets, and --target names none");
    for (int i = 0; i < specs->count && !status; i++)
        status = add_spec(specs->text[i], wanted, &all, code, error);
    if (!status && all.count)
        status = bundle_write(all.heads, all.count, wanted->folder, targets.name, targets.count,
                              wanted->parts, &options, error);
    progress_end();
    head_list_free(&all);
    return status;
}

int command_gen(int count, char **arguments)
{
    gen_options options = {.target = "c"};
    const fpa_option table[] = {
        {"-o", OPTION_TEXT, &options.folder, "DIR", "write there; made when it is missing", 0, 0},
        {"--head", OPTION_TEXT, &options.head, "NAME", "only this head, or those of this layer, of each file",
         0, 0},
        {"--target", OPTION_TEXT, &options.target, "NAME[,NAME...]",
         "c:avx2, sm_90 ... (fpac list); c: the best here", 0, 0},
        {"--dtype", OPTION_TEXT, &options.dtype, "DTYPE", dtype_help, 0, 0},
        {"--backward", OPTION_FLAG, &options.parts.backward, NULL,
         "gradients too: sources, libraries and cubins of their own", 0, 0},
        {"--object", OPTION_FLAG, &options.parts.objects, NULL,
         "compile shared libraries too, verified where they run", 0, 0},
        {"--ptx", OPTION_FLAG, &options.parts.ptx, NULL, "write CUDA kernels as PTX too, to read", 0, 0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "gen SPEC... -o DIR [--head NAME] [--target NAME[,NAME...]] [--dtype DTYPE] [--backward] "
        "[--object] [--ptx] [--verbose]",
        "Write NAME.c and NAME.h for each head (they need libm and OpenMP only), NAME.head, the\n"
        "head's canonical text, and manifest.fpa. With --object also NAME.ISA.so, which\n"
        "fpa_open_bundle loads without Lua and without a compiler. With several targets the\n"
        "sources are NAME.ISA.c and NAME.ISA.h. For CUDA targets: NAME.cu and, compiled by NVRTC\n"
        "(no GPU is needed), NAME.sm_90.cubin, which fpa_open_bundle loads. With --backward also\n"
        "NAME.backward.c and NAME.backward.h, NAME.backward.cu, NAME.ISA.backward.so and\n"
        "NAME.sm_90.backward.cubin: fpa_open_bundle with backward = 1 has gradients then.",
        OPTION_TABLE(table),
        1,
        -1,
        "The same spec and target give the same bytes. Exit code 3 when a kernel is refused:\n"
        "it is not written then, and the others are. The same holds of a head that a target cannot serve\n"
        "and of a spec that is wrong (exit code 1)."};
    fpa_texts operands;
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    if (!options.folder)
        return option_missing(&syntax, "-o");
    code = EXIT_OK;
    return write_bundle(&operands, &options, &code, &error) ? report(&error) : code;
}
