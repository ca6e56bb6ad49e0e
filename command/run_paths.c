#include "run_paths.h"

#include <stdio.h>
#include <string.h>

#include "base/output.h"

const char *const run_input_names[INPUTS] = {
    "q",         "k",        "v",          "log_gate",    "state_in",
    "positions", "key_mask", "cu_seqlens", "state_index", "accepted.count"};

/* What writing to path would overwrite: the spec, an input or a weight, as words for a message; NULL: nothing.
 * --state-out may name the same file as --state-in, which a caller that decodes step by step replaces. */
static const char *overwritten(const char *spec, const run_options *options, const char *path, bool is_state)
{
    if (output_is_same(path, spec))
        return "the spec";
    for (int i = 0; i < INPUTS; i++)
        if (options->input[i] && !(is_state && i == INPUT_STATE) && output_is_same(path, options->input[i]))
            return run_input_names[i];
    for (int i = 0; i < options->weights.count; i++) {
        const char *equals = strchr(options->weights.text[i], '=');
        if (equals && output_is_same(path, equals + 1))
            return "a weight";
    }
    return NULL;
}

fpa_status run_check_paths(const char *spec, const run_options *options, fpa_error *error)
{
    const char *lost = overwritten(spec, options, options->output, false);
    if (lost)
        return fail(error, FPA_INVALID, options->output, "is also %s: -o would overwrite it", lost);
    if (!options->state_output)
        return FPA_OK;
    lost = overwritten(spec, options, options->state_output, true);
    if (lost)
        return fail(error, FPA_INVALID, options->state_output, "is also %s: --state-out would overwrite it",
                    lost);
    if (output_is_same(options->output, options->state_output))
        return fail(error, FPA_INVALID, options->output,
                    "is also the file of --state-out: one would overwrite the other");
    return FPA_OK;
}

/* Replaces "weights[1] (w2)" in an error by the file of --weights w2=FILE. */
static void name_weight_file(const run_options *options, fpa_error *error)
{
    const char *open = strchr(error->where, '('), *close = open ? strchr(open, ')') : NULL;
    for (int i = 0; i < options->weights.count && close; i++) {
        const char *text = options->weights.text[i];
        const size_t length = (size_t)(close - open - 1);
        if (strcspn(text, "=") == length && !memcmp(text, open + 1, length)) {
            snprintf(error->where, sizeof error->where, "%s (--weights %.63s)", text + length + 1, text);
            return;
        }
    }
}

void run_name_file(const run_options *options, fpa_error *error)
{
    if (!strncmp(error->where, "weights[", strlen("weights[")))
        name_weight_file(options, error);
    for (int i = 0; i < INPUTS; i++) {
        if (!strcmp(error->where, run_input_names[i]) && options->input[i])
            snprintf(error->where, sizeof error->where, "%s (%s)", options->input[i], run_input_names[i]);
    }
}
