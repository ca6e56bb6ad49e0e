/* gen: writes sources, shared libraries and cubins ahead of time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle.h"
#include "command.h"
#include "options.h"
#include "runtime/store/manifest.h"
#include "show_layer.h"

enum { MANY_TARGETS = 16, TARGET_TEXT = 32 };

/* A list of targets: "c:avx2,avx512,sm_90" -> "c:avx2", "c:avx512", "cuda:sm_90". */
typedef struct target_names {
    int count;
    bool cuda; /* one of them is a CUDA target */
    const char *name[MANY_TARGETS];
} target_names;

/* Finds a target of the list by its whole name, or by the short name of a C target or a GPU. */
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

/* The options of the command line. */
typedef struct gen_options {
    const char *head, *folder, *target, *dtype;
    bundle_parts parts;
} gen_options;

/* The heads of all specs, in order, and layers of them, that are written; owned. */
typedef struct gen_work {
    fpa_head_list heads;
    fpa_bundle_layer *layers;
    int layer_count;
} gen_work;

/* Describes a layer as in a manifest. */
static void describe_layer(const fpa_head_list *list, const fpa_layer_spec *layer, fpa_bundle_layer *listed)
{
    *listed = (fpa_bundle_layer){.part_count = layer->part_count};
    snprintf(listed->name, sizeof listed->name, "%s", layer->name);
    for (int p = 0; p < layer->part_count; p++) {
        const fpa_layer_share *part = &layer->parts[p];
        listed->parts[p].heads = part->count;
        snprintf(listed->parts[p].head, sizeof listed->parts[p].head, "%s", list->heads[part->head]->name);
    }
}

/* Adds all layers of a spec, or the one of that name. */
static fpa_status add_layers(const fpa_head_list *list, const char *name, gen_work *work, fpa_error *error)
{
    fpa_bundle_layer *layers =
        realloc(work->layers, (size_t)(work->layer_count + list->layer_count) * sizeof *layers + 1);
    if (!layers)
        return fail_memory(error);
    work->layers = layers;
    for (int i = 0; i < list->layer_count; i++) {
        if (name && strcmp(name, list->layers[i].name) != 0)
            continue;
        describe_layer(list, &list->layers[i], &layers[work->layer_count++]);
        note("layer %s: its heads are written, and the manifest names it", list->layers[i].name);
    }
    return FPA_OK;
}

static fpa_status add_heads(const char *spec, const gen_options *wanted, gen_work *work, fpa_error *error)
{
    fpa_head_list *all = &work->heads;
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
    if (!status)
        status = add_layers(&list, wanted->head, work, error);
    for (int i = 0; i < list.count && !status; i++) {
        if (first == end ? !is_of_layer(&list, wanted->head, i) : i < first || i >= end)
            continue;
        all->heads[all->count++] = list.heads[i];
        list.heads[i] = NULL;
    }
    head_list_free(&list);
    return status;
}

/* Adds the heads of a spec; one with errors is reported, and does not stop the others. */
static fpa_status add_spec(const char *spec, const gen_options *wanted, gen_work *work, int *code,
                           fpa_error *error)
{
    fpa_status status = add_heads(spec, wanted, work, error);
    if (!status || status == FPA_NO_MEMORY || is_of_line(error))
        return status;
    *code = report(error);
    return FPA_OK;
}

static fpa_status write_bundle(const fpa_texts *specs, const gen_options *wanted, int *code, fpa_error *error)
{
    target_names targets = {0};
    gen_work work = {0};
    bundle_parts parts = wanted->parts;
    const fpa_options options = {.log = say_log};
    fpa_status status = parse_targets(wanted->target, &targets, error);
    if (!status && wanted->parts.ptx && !targets.cuda)
        status = fail(error, FPA_INVALID, "--ptx", "is for CUDA targets, and --target names none");
    for (int i = 0; i < specs->count && !status; i++)
        status = add_spec(specs->text[i], wanted, &work, code, error);
    parts.layers = work.layers;
    parts.layer_count = work.layer_count;
    if (!status && work.heads.count)
        status = bundle_write(work.heads.heads, work.heads.count, wanted->folder, targets.name, targets.count,
                              parts, &options, error);
    progress_end();
    head_list_free(&work.heads);
    free(work.layers);
    return status;
}

int command_gen(int count, char **arguments)
{
    gen_options options = {.target = "c"};
    const fpa_option table[] = {
        {"-o", OPTION_TEXT, &options.folder, "DIR", "directory to write to; created if missing", 0, 0},
        {"--head", OPTION_TEXT, &options.head, "NAME", "only this head, or those of this layer, of each file",
         0, 0},
        {"--target", OPTION_TEXT, &options.target, "NAME[,NAME...]",
         "c:avx2, sm_90 ... (fpac list); c: the best here", 0, 0},
        {"--dtype", OPTION_TEXT, &options.dtype, "DTYPE", dtype_help, 0, 0},
        {"--backward", OPTION_FLAG, &options.parts.backward, NULL,
         "also gradients: sources, libraries and cubins of their own", 0, 0},
        {"--object", OPTION_FLAG, &options.parts.objects, NULL,
         "also compile shared libraries; verify those that run here", 0, 0},
        {"--ptx", OPTION_FLAG, &options.parts.ptx, NULL, "also write CUDA kernels as PTX, for reading", 0, 0},
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
        "NAME.sm_90.backward.cubin, for fpa_open_bundle with backward = 1. Layers are named in\n"
        "manifest.fpa: fpa_open_bundle_layer opens one with its heads.",
        OPTION_TABLE(table),
        1,
        -1,
        "The same spec and target give the same bytes. A kernel that is refused (exit code 3), a head that\n"
        "the target does not support and a wrong spec (exit code 1) are not written; the others are."};
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
