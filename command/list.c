/* list: lists the heads of specs, or the targets of this build. */
#include <math.h>
#include <stdio.h>

#include "gen/simplify/simplify.h"
#include "runtime/c/compiler.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc_library.h"
#include "head/lift.h"
#include "bundle_heads.h"
#include "command.h"
#include "json.h"
#include "options.h"
#include "show_layer.h"

/* Whether this machine can compile and run a target. */
typedef struct ability {
    bool compiles, runs, best;
    char text[160]; /* for people */
} ability;

static ability cpu_ability(const fpa_target *target)
{
    ability can = {.runs = target_runs(target), .best = target == target_best()};
    fpa_compiler compiler;
    can.compiles = !compiler_find(NULL, target, &compiler, NULL);
    if (can.compiles)
        compiler_free(&compiler);
    snprintf(can.text, sizeof can.text, "%s%s", can.runs ? "runs here" : "not on this machine",
             can.best ? ", the best" : "");
    return can;
}

/* Whether NVRTC is installed and supports the target; `words` is its version, or the reason why not. */
static bool nvrtc_compiles(const fpa_target *target, char *words, size_t size)
{
    const struct nvrtc_library *nvrtc;
    if (nvrtc_library_find(&nvrtc, NULL)) {
        snprintf(words, size, "no NVRTC here");
        return false;
    }
    bool known = false;
    for (int i = 0; i < nvrtc->architectures; i++)
        known = known || nvrtc->architecture[i] == target->capability;
    snprintf(words, size, known ? "NVRTC %s compiles it" : "NVRTC %s is too old for it", nvrtc->version);
    return known;
}

/* The compute capability of the first GPU; 0: there is none, with the reason as an error. */
static int find_capability(fpa_error *error)
{
    const fpa_driver *driver;
    CUdevice gpu;
    int capability = 0;
    if (!driver_find(&driver, error) && driver_device(driver, 0, &gpu, &capability, error))
        return 0;
    return capability;
}

static ability gpu_ability(const fpa_target *target)
{
    char compiler[64];
    ability can = {.compiles = nvrtc_compiles(target, compiler, sizeof compiler)};
    int capability = find_capability(NULL);
    const char *device = "no GPU here";
    if (capability) {
        can.runs = target_fits(target, capability);
        can.best = target == target_for_capability(capability);
        device = can.runs ? "runs here" : "not on this GPU";
    }
    snprintf(can.text, sizeof can.text, "%s; %s%s", compiler, device, can.best ? ", the best" : "");
    return can;
}

static ability ability_of(const fpa_target *target)
{
    return target->backend == BACKEND_CUDA ? gpu_ability(target) : cpu_ability(target);
}

static void print_target(const fpa_target *target)
{
    char size[32];
    if (target->backend == BACKEND_CUDA)
        snprintf(size, sizeof size, "%3d KiB a block", target->shared_memory / 1024);
    else
        snprintf(size, sizeof size, "%2d floats a register", target->vector);
    printf("%-13s %-8s %-20s  %-30s %s\n", target->name, target->machine, size, target->march,
           ability_of(target).text);
}

static void write_target(fpa_json *json, const fpa_target *target)
{
    const ability can = ability_of(target);
    json_object(json, NULL);
    json_text(json, "target", target->name);
    json_text(json, "machine", target->machine);
    json_text(json, "march", target->march);
    if (target->backend == BACKEND_CUDA)
        json_integer(json, "shared_memory", target->shared_memory);
    else
        json_integer(json, "vector", target->vector);
    json_bool(json, "compiles", can.compiles);
    json_bool(json, "runs", can.runs);
    json_bool(json, "best", can.best);
    json_close(json);
}

/* Prints why CUDA targets cannot be compiled or run here, in detail. */
static void print_missing(void)
{
    const struct nvrtc_library *nvrtc;
    fpa_error error;
    if (nvrtc_library_find(&nvrtc, &error))
        printf("NVRTC: %s\n", error.message);
    if (!find_capability(&error))
        printf("GPU: %s\n", error.message);
}

static void detail_programs(void)
{
    const struct nvrtc_library *nvrtc;
    fpa_compiler compiler;
    fpa_error error;
    if (compiler_find(NULL, target_best(), &compiler, &error)) {
        detail("C compiler: %s", error.message);
    } else {
        detail("C compiler: %s", compiler.path);
        compiler_free(&compiler);
    }
    if (nvrtc_library_find(&nvrtc, &error))
        detail("NVRTC: %s", error.message);
    else
        detail("NVRTC: %s, for %d generations of GPUs, sm_%d to sm_%d", nvrtc->version, nvrtc->architectures,
               nvrtc->architecture[0], nvrtc->architecture[nvrtc->architectures - 1]);
}

static void list_targets(fpa_json *json)
{
    detail_programs();
    for (int i = 0; i < target_count(); i++) {
        if (json)
            write_target(json, target_at(i));
        else
            print_target(target_at(i));
    }
    if (!json)
        print_missing();
}

/* The sizes of a head at run time; features 0: it cannot be simplified, for a reason that opening it reports. */
typedef struct head_size {
    double features, state_bytes;
} head_size;

static fpa_status measure_head(const fpa_head *head, head_size *size, fpa_error *error)
{
    fpa_simplified simple;
    *size = (head_size){0};
    fpa_status status = simplify(head, &simple, error);
    if (status)
        return status == FPA_NO_MEMORY ? status : FPA_OK;
    const double columns = head->dv + (head->normalize != FPA_NORMALIZE_NONE);
    size->features = head_features(simple.head);
    size->state_bytes = size->features * columns * (double)dtype_size(head->state_dtype);
    simplified_free(&simple);
    return FPA_OK;
}

static void print_head(const fpa_head *head, const head_size *size)
{
    char features[32] = "-", state[SIZE_TEXT] = "-";
    if (size->features > 0) {
        snprintf(features, sizeof features, "%.0f", size->features);
        size_text(state, size->state_bytes);
    }
    printf("%-28s d %4d  dv %4d  degree %d  terms %6d  D %10.0f -> %8s  state %10s%s%s%s%s%s%s", head->name,
           head_width(head), head->dv, head_degree(head), head->term_count, head_features(head), features,
           state, head->causal ? "" : "  not causal", head->normalize ? "  normaliser " : "",
           head->normalize ? normalize_name(head->normalize) : "", head->gate ? "  gated" : "",
           head->lift && head->lift->positions ? "  positions" : "",
           head->lift && head->lift->key_mask ? "  key mask" : "");
    if (head->window)
        printf("  window %d", head->window);
    putchar('\n');
}

static void write_head(fpa_json *json, const char *spec, const fpa_head *head, const head_size *size)
{
    json_object(json, NULL);
    json_text(json, "spec", spec);
    json_text(json, "head", head->name);
    json_text(json, "origin", head->origin);
    json_integer(json, "d", head_width(head));
    json_integer(json, "dv", head->dv);
    json_integer(json, "degree", head_degree(head));
    json_integer(json, "terms", head->term_count);
    json_number(json, "features_written", head_features(head));
    json_number(json, "features", size->features > 0 ? size->features : NAN);
    json_number(json, "state_bytes", size->features > 0 ? size->state_bytes : NAN);
    json_bool(json, "causal", head->causal);
    json_text(json, "normalize", normalize_name(head->normalize));
    json_bool(json, "gate", head->gate);
    json_integer(json, "positions", head->lift ? head->lift->positions : 0);
    json_bool(json, "key_mask", head->lift && head->lift->key_mask);
    json_integer(json, "window", head->window);
    json_text(json, "dtype", dtype_name(head->dtype));
    json_close(json);
}

static fpa_status list_spec(const char *spec, fpa_json *json, fpa_error *error)
{
    fpa_head_list list = {0};
    fpa_status status = load_heads(spec, NULL, &list, error);
    if (!status)
        detail("%s: %d heads", spec, list.count);
    for (int i = 0; i < list.count && !status; i++) {
        head_size size;
        status = measure_head(list.heads[i], &size, error);
        if (status)
            break;
        if (json)
            write_head(json, spec, list.heads[i], &size);
        else
            print_head(list.heads[i], &size);
    }
    for (int i = 0; i < list.layer_count && !status; i++) {
        if (json)
            write_layer(json, spec, &list, &list.layers[i]);
        else
            print_layer(&list, &list.layers[i]);
    }
    head_list_free(&list);
    return status;
}

int command_list(int count, char **arguments)
{
    bool as_json = false;
    const fpa_option table[] = {
        {"--json", OPTION_FLAG, &as_json, NULL, "print JSON: an array", 0, 0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "list [SPEC...] [--json] [--verbose]",
        "List the heads and layers of specs, or of bundles (their folders): D as written and after\n"
        "simplification, the size of one (batch, head)'s state. Without a spec: the targets that this build\n"
        "can emit code for, and which of them this machine compiles and runs.",
        OPTION_TABLE(table),
        0,
        -1,
        NULL};
    fpa_texts operands;
    fpa_json writer = {.out = stdout}, *json = NULL;
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    if (as_json)
        json_array(json = &writer, NULL);
    if (operands.count == 0)
        list_targets(json);
    code = EXIT_OK;
    for (int i = 0; i < operands.count; i++) {
        if (list_spec(operands.text[i], json, &error))
            code = report(&error);
    }
    if (json)
        json_close(json);
    return finish_output(code);
}
