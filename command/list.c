/* list: the heads of specs, or the targets of this build. */
#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "json.h"
#include "options.h"

static void print_target(const fpa_target *target)
{
    printf("%-12s %-8s %2d floats a register  %-20s %s%s\n", target->name, target->machine, target->vector,
           target->march, target_runs(target) ? "runs here" : "not on this machine",
           target == target_best() ? ", the best" : "");
}

static void write_target(fpa_json *json, const fpa_target *target)
{
    json_object(json, NULL);
    json_text(json, "target", target->name);
    json_text(json, "machine", target->machine);
    json_text(json, "march", target->march);
    json_integer(json, "vector", target->vector);
    json_bool(json, "runs", target_runs(target));
    json_bool(json, "best", target == target_best());
    json_close(json);
}

static void list_targets(fpa_json *json)
{
    for (int i = 0; i < target_count(); i++) {
        if (json)
            write_target(json, target_at(i));
        else
            print_target(target_at(i));
    }
}

static void print_head(const fpa_head *head)
{
    printf("%-28s d %4d  dv %4d  degree %d  terms %6d  D %10.0f%s%s%s%s\n", head->name, head->d, head->dv,
           head_degree(head), head->term_count, head_features(head), head->causal ? "" : "  not causal",
           head->normalize ? "  normaliser " : "", head->normalize ? normalize_name(head->normalize) : "",
           head->gate ? "  gated" : "");
}

static void write_head(fpa_json *json, const char *spec, const fpa_head *head)
{
    json_object(json, NULL);
    json_text(json, "spec", spec);
    json_text(json, "head", head->name);
    json_text(json, "origin", head->origin);
    json_integer(json, "d", head->d);
    json_integer(json, "dv", head->dv);
    json_integer(json, "degree", head_degree(head));
    json_integer(json, "terms", head->term_count);
    json_number(json, "features_written", head_features(head));
    json_bool(json, "causal", head->causal);
    json_text(json, "normalize", normalize_name(head->normalize));
    json_bool(json, "gate", head->gate);
    json_text(json, "dtype", dtype_name(head->dtype));
    json_close(json);
}

static fpa_status list_spec(const char *spec, fpa_json *json, fpa_error *error)
{
    fpa_head_list list = {0};
    fpa_status status = spec_load(spec, &list, error);
    for (int i = 0; !status && i < list.count; i++) {
        if (json)
            write_head(json, spec, list.heads[i]);
        else
            print_head(list.heads[i]);
    }
    if (!status)
        head_list_free(&list);
    return status;
}

int command_list(int count, char **arguments)
{
    bool as_json = false;
    const fpa_option table[] = {
        {"--json", OPTION_FLAG, &as_json, NULL, "for a program to read: an array", 0, 0},
    };
    const fpa_syntax syntax = {
        "list [SPEC...] [--json]",
        "List the heads of specs as they are written (D before simplification); without a\n"
        "spec, the targets that this build can emit code for.",
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
