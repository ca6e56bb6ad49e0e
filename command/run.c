/* run: applies a head to NumPy arrays. Every file is read and checked before anything is computed, and an output
 * file appears whole or not at all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "device.h"
#include "notes.h"
#include "operand.h"
#include "run_kernel.h"
#include "run_paths.h"

/* All data of a run. */
typedef struct run_data {
    run_kernel opened;
    fpa_operand input[INPUTS], o, state_out;
    fpa_operand *weight;          /* [description->weight_count] */
    const DLTensor **weight_list; /* their tensors; NULL: not given */
    fpa_tensors tensors;
    void *workspace;
    size_t workspace_size;
} run_data;

static fpa_status check_axes(const char *path, const fpa_operand *operand, const char *form, fpa_error *error)
{
    if (operand->array.axes == 4)
        return FPA_OK;
    return fail(error, FPA_INVALID, path, "has %d axes, but %s are needed", operand->array.axes, form);
}

/* Reads an input: positions may be integers, and a mask is bool or uint8. */
static fpa_status read_input(int input, const char *path, fpa_array *array, fpa_error *error)
{
    const bool counts = input == INPUT_POSITIONS || input > INPUT_MASK;
    return counts                ? npy_read_numbers(path, array, error)
           : input == INPUT_MASK ? npy_read_mask(path, array, error)
                                 : npy_read(path, array, error);
}

static fpa_status read_inputs(const run_options *options, run_data *data, fpa_error *error)
{
    for (int i = 0; i < INPUTS; i++) {
        fpa_status status =
            options->input[i] ? read_input(i, options->input[i], &data->input[i].array, error) : FPA_OK;
        if (status)
            return status;
        note_order(options->input[i], &data->input[i].array);
    }
    fpa_status status = check_axes(options->input[INPUT_Q], &data->input[INPUT_Q], "[B, L, Hq, d]", error);
    return status ? status
                  : check_axes(options->input[INPUT_K], &data->input[INPUT_K], "[B, L, H, d]", error);
}

static fpa_status bind_inputs(const run_options *options, run_data *data, fpa_error *error)
{
    const fpa_description *about = &data->opened.about;
    const fpa_dtype dtype = dtype_find(about->dtype);
    const fpa_dtype dtypes[INPUT_MASK] = {dtype,  dtype, dtype, FPA_F32, dtype_find(about->state_dtype),
                                          FPA_F32};
    fpa_status status = FPA_OK;
    for (int i = 0; i < INPUTS && !status; i++)
        status = i > INPUT_MASK    ? operand_bind_index(&data->input[i], run_input_names[i], error)
                 : i == INPUT_MASK ? operand_bind_mask(&data->input[i], error)
                                   : operand_bind(&data->input[i], dtypes[i], error);
    if (status)
        run_name_file(options, error);
    return status;
}

/* The index of the run-time matrix in "NAME=path"; *path is the text after the '='. */
static fpa_status find_weight(const fpa_description *about, const char *text, int *index, const char **path,
                              fpa_error *error)
{
    size_t length = strcspn(text, "=");
    if (text[length] && !text[length + 1])
        return fail(error, FPA_INVALID, "--weights", "%s names no file: give NAME=FILE.npy", text);
    *path = text + length + 1;
    for (int i = 0; i < about->weight_count && text[length]; i++) {
        if (strlen(about->weight_names[i]) == length && !memcmp(about->weight_names[i], text, length)) {
            *index = i;
            return FPA_OK;
        }
    }
    char names[512] = "none";
    for (int i = 0; i < about->weight_count; i++) {
        size_t used = i ? strlen(names) : 0;
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", about->weight_names[i]);
    }
    return fail(error, FPA_INVALID, "--weights", "%s is not NAME=FILE of one of the head's weights: %s", text,
                names);
}

static fpa_status allocate_weights(run_data *data, int count, fpa_error *error)
{
    size_t size = count > 0 ? (size_t)count : 1;
    data->weight = calloc(size, sizeof *data->weight);
    data->weight_list = calloc(size, sizeof *data->weight_list);
    if (!data->weight || !data->weight_list)
        return fail_memory(error);
    return FPA_OK;
}

/* Checks that log-gates are given if needed, before the library does, which knows tensors but no files. */
static fpa_status check_gate_given(const run_options *options, const run_data *data, fpa_error *error)
{
    const fpa_description *about = &data->opened.about;
    const char *path = options->input[INPUT_GATE];
    if (about->gate && !path)
        return fail(error, FPA_INVALID, "--log-gate",
                    "is needed: %s is gated; give a log-gate a token and head, [B, L, H]", about->name);
    if (!about->gate && path)
        return fail(error, FPA_INVALID, "--log-gate", "is given, but %s has no gate", about->name);
    if (path)
        note_gates(path, &data->input[INPUT_GATE].array);
    return FPA_OK;
}

/* Checks that positions and a mask are given if and only if the head uses them. */
static fpa_status check_tokens_given(const run_options *options, const run_data *data, fpa_error *error)
{
    const fpa_description *about = &data->opened.about;
    const bool positions = options->input[INPUT_POSITIONS], mask = options->input[INPUT_MASK];
    if (about->positions && !positions)
        return fail(error, FPA_INVALID, "--positions",
                    "is needed: %s needs positions of %d number%s; give [B, L%s], a token's own", about->name,
                    about->positions, about->positions == 1 ? "" : "s", about->positions == 1 ? "" : ", n");
    if (!about->positions && positions)
        return fail(error, FPA_INVALID, "--positions", "is given, but %s has no positions", about->name);
    if (about->key_mask && !mask)
        return fail(
            error, FPA_INVALID, "--key-mask",
            "is needed: %s needs a mask of keys; give [B, L] of bool or uint8, true where a key takes "
            "part",
            about->name);
    if (!about->key_mask && mask)
        return fail(error, FPA_INVALID, "--key-mask", "is given, but %s has no mask of keys", about->name);
    return FPA_OK;
}

static fpa_status read_weights(const fpa_texts *texts, run_data *data, fpa_error *error)
{
    const fpa_description *about = &data->opened.about;
    fpa_status status = allocate_weights(data, about->weight_count, error);
    for (int i = 0; i < texts->count && !status; i++) {
        const char *path = NULL;
        int index = 0;
        status = find_weight(about, texts->text[i], &index, &path, error);
        if (!status && data->weight_list[index])
            status = fail(error, FPA_INVALID, "--weights", "%s is given twice", about->weight_names[index]);
        if (!status)
            status = npy_read(path, &data->weight[index].array, error);
        if (!status)
            note_order(path, &data->weight[index].array);
        if (!status)
            status = operand_bind(&data->weight[index], FPA_F32, error);
        if (!status)
            data->weight_list[index] = &data->weight[index].tensor;
    }
    for (int i = 0; i < about->weight_count && !status; i++) {
        if (!data->weight_list[i])
            status = fail(error, FPA_INVALID, "--weights", "%s is missing: give --weights %s=FILE.npy",
                          about->weight_names[i], about->weight_names[i]);
    }
    data->tensors.weights = data->weight_list;
    return status;
}

static fpa_status make_outputs(const run_options *options, run_data *data, fpa_error *error)
{
    const fpa_description *about = &data->opened.about;
    const int64_t *q = data->input[INPUT_Q].array.shape, *k = data->input[INPUT_K].array.shape;
    const int64_t o[4] = {q[0], q[1], q[2], about->dv};
    const fpa_array *offsets = &data->input[INPUT_SEQUENCES].array;
    const int64_t sequences = !options->input[INPUT_SEQUENCES] ? k[0]
                              : offsets->count > 0             ? offsets->count - 1
                                                               : 0;
    const int64_t plain[4] = {sequences, k[2], about->features, about->dv};
    const int64_t whole[3] = {sequences, k[2], about->state_elements},
                  layer[2] = {sequences, about->state_elements};
    fpa_status status = operand_new(4, o, &data->o, error);
    data->o.array.item = data->input[INPUT_Q].array.item == 2 ? 2 : 4; /* float16 if q is */
    if (!status)
        status = operand_bind(&data->o, dtype_find(about->dtype), error);
    if (status || !options->state_output)
        return status;
    status = data->opened.layer  ? operand_new(2, layer, &data->state_out, error)
             : about->normalized ? operand_new(3, whole, &data->state_out, error)
                                 : operand_new(4, plain, &data->state_out, error);
    return status ? status : operand_bind(&data->state_out, dtype_find(about->state_dtype), error);
}

/* Sets `recent` for a head with a window: if a state is given, k and v begin with the window's tokens, which it
 * does not contain. */
static fpa_status set_recent(const run_options *options, run_data *data, fpa_error *error)
{
    const int64_t more = data->input[INPUT_K].array.shape[1] - data->input[INPUT_Q].array.shape[1];
    const int window = data->opened.about.window;
    if (!window)
        return FPA_OK;
    if (options->input[INPUT_STATE] && window > 1 && more <= 0)
        return fail(
            error, FPA_INVALID, "--state-in",
            "lacks the window's keys: k and v need the %d tokens before q's first, or as many as there are, "
            "in front",
            window - 1);
    data->tensors.recent = more > 0 ? more : 0;
    return FPA_OK;
}

static void set_tensors(const run_options *options, run_data *data)
{
    fpa_tensors *tensors = &data->tensors;
    tensors->q = &data->input[INPUT_Q].tensor;
    tensors->k = &data->input[INPUT_K].tensor;
    tensors->v = &data->input[INPUT_V].tensor;
    tensors->o = &data->o.tensor;
    tensors->log_gate = options->input[INPUT_GATE] ? &data->input[INPUT_GATE].tensor : NULL;
    tensors->positions = options->input[INPUT_POSITIONS] ? &data->input[INPUT_POSITIONS].tensor : NULL;
    tensors->key_mask = options->input[INPUT_MASK] ? &data->input[INPUT_MASK].tensor : NULL;
    tensors->state_in = options->input[INPUT_STATE] ? &data->input[INPUT_STATE].tensor : NULL;
    tensors->cu_seqlens = options->input[INPUT_SEQUENCES] ? &data->input[INPUT_SEQUENCES].tensor : NULL;
    tensors->state_index = options->input[INPUT_INDEX] ? &data->input[INPUT_INDEX].tensor : NULL;
    tensors->state_out = options->state_output ? &data->state_out.tensor : NULL;
}

/* Copies inputs, and room for outputs, to the kernel's device. */
static fpa_status place_operands(const run_options *options, run_data *data, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int i = 0; i < INPUTS && !status; i++)
        status = options->input[i] ? operand_place(&data->input[i], data->opened.kernel, error) : FPA_OK;
    for (int i = 0; i < data->opened.about.weight_count && !status; i++)
        status = operand_place(&data->weight[i], data->opened.kernel, error);
    if (!status)
        status = operand_place(&data->o, data->opened.kernel, error);
    if (!status && options->state_output)
        status = operand_place(&data->state_out, data->opened.kernel, error);
    return status;
}

static fpa_status fetch_outputs(run_data *data, fpa_error *error)
{
    fpa_status status = device_finish(data->opened.kernel, error);
    if (!status)
        status = operand_fetch(&data->o, error);
    return status ? status : operand_fetch(&data->state_out, error);
}

static fpa_status forward(int form, const run_data *data, fpa_error *error)
{
    fpa_status status = device_enter(data->opened.kernel, error);
    if (status)
        return status;
    progress("computing");
    status = run_forward(&data->opened, (fpa_form)form, &data->tensors, data->workspace, data->workspace_size,
                         error);
    progress_end();
    device_leave(data->opened.kernel);
    return status;
}

/* Checks the options of drafts, before anything is opened. */
static fpa_status check_draft(const run_options *options, fpa_error *error)
{
    if (!options->input[INPUT_COUNT])
        return FPA_OK;
    if (!options->state_output)
        return fail(error, FPA_INVALID, "--draft",
                    "says how many tokens are added to --state-out, which is not given; for outputs of a "
                    "draft alone give --state-in, and neither of these two");
    if (strcmp(options->form, "auto") != 0)
        return fail(error, FPA_INVALID, "--form", "is for forwards, but --draft is given");
    return FPA_OK;
}

static fpa_status compute_draft(const run_options *options, run_data *data, fpa_error *error)
{
    if (data->opened.layer)
        return fail(error, FPA_UNSUPPORTED, "--draft", "is for heads only, and %s is a layer",
                    data->opened.about.name);
    set_tensors(options, data);
    fpa_status status = place_operands(options, data, error);
    if (!status)
        status = run_draft(&data->opened, &data->tensors, &data->input[INPUT_COUNT].tensor, error);
    if (status)
        run_name_file(options, error);
    return status ? status : fetch_outputs(data, error);
}

static fpa_status compute(const run_options *options, int form, run_data *data, fpa_error *error)
{
    set_tensors(options, data);
    fpa_status status = set_recent(options, data, error);
    if (!status)
        status = place_operands(options, data, error);
    if (!status)
        status = run_workspace(&data->opened, (fpa_form)form, &data->tensors, &data->workspace,
                               &data->workspace_size, error);
    if (!status && !data->opened.layer)
        note_call(data->opened.kernel, (fpa_form)form, &data->tensors);
    if (!status)
        status = forward(form, data, error);
    if (status)
        run_name_file(options, error);
    return status ? status : fetch_outputs(data, error);
}

static bool is_positive_somewhere(const fpa_array *array)
{
    for (int64_t i = 0; i < array->count; i++)
        if (array->data[i] > 0)
            return true;
    return false;
}

static fpa_status check_inputs_finite(const run_options *options, const run_data *data, fpa_error *error)
{
    const fpa_description *about = &data->opened.about;
    fpa_status status = FPA_OK;
    for (int i = 0; i < INPUTS && !status && options->check_finite; i++)
        if (options->input[i])
            status = operand_check_finite(&data->input[i], run_input_names[i], "", error);
    for (int i = 0; i < about->weight_count && !status && options->check_finite; i++) {
        char where[3 * HEAD_MAX_NAME]; /* HEAD@2.NAME */
        snprintf(where, sizeof where, "weights[%d] (%s)", i, about->weight_names[i]);
        status = operand_check_finite(&data->weight[i], where, "", error);
    }
    if (status)
        run_name_file(options, error);
    return status;
}

static fpa_status check_outputs_finite(const run_options *options, const run_data *data, fpa_error *error)
{
    const char *hint = is_positive_somewhere(&data->input[INPUT_GATE].array)
                           ? ": there are positive log-gates, and exp of a sum above 88.7 overflows float32"
                           : ": products of the inputs overflow the dtype in which they are stored";
    if (!options->check_finite)
        return FPA_OK;
    fpa_status status = operand_check_finite(&data->o, "o", hint, error);
    return status ? status : operand_check_finite(&data->state_out, "state_out", hint, error);
}

static fpa_status write_outputs(const run_options *options, const run_data *data, fpa_error *error)
{
    fpa_status status = FPA_OK;
    if (options->state_output)
        status = npy_write(options->state_output, &data->state_out.array, error);
    if (!status)
        note_overflow(options->output, &data->o.array);
    return status ? status : npy_write(options->output, &data->o.array, error);
}

static void free_data(run_data *data)
{
    const int weights = data->opened.about.weight_count;
    for (int i = 0; data->weight && i < weights; i++)
        operand_free(&data->weight[i]);
    for (int i = 0; i < INPUTS; i++)
        operand_free(&data->input[i]);
    operand_free(&data->o);
    operand_free(&data->state_out);
    free(data->weight);
    free(data->weight_list);
    device_release(data->opened.kernel, data->workspace);
    run_close(&data->opened);
}

static fpa_status run_head(const char *spec, const run_options *options, fpa_error *error)
{
    run_data data = {0};
    fpa_options open_options = {.target = options->target, .device = (int)options->device, .log = say_log};
    const fpa_backend *backend;
    const fpa_target *target;
    int form;
    fpa_status status = run_check_paths(spec, options, error);
    if (!status)
        status = check_draft(options, error);
    if (!status)
        status = select_form(options->form, &form, error);
    if (!status)
        status = select_running(&open_options, &backend, &target, error);
    if (!status)
        status = read_inputs(options, &data, error);
    if (!status) {
        progress("opening %s", spec);
        status = run_open(spec, options->head, options->dtype, &open_options, &data.opened, error);
        progress_end();
    }
    if (!status)
        status = check_gate_given(options, &data, error);
    if (!status)
        status = check_tokens_given(options, &data, error);
    if (!status)
        status = bind_inputs(options, &data, error);
    if (!status)
        status = read_weights(&options->weights, &data, error);
    if (!status)
        status = check_inputs_finite(options, &data, error);
    if (!status)
        status = make_outputs(options, &data, error);
    if (!status)
        status = options->input[INPUT_COUNT] ? compute_draft(options, &data, error)
                                             : compute(options, form, &data, error);
    if (!status)
        status = check_outputs_finite(options, &data, error);
    if (!status)
        status = write_outputs(options, &data, error);
    free_data(&data);
    return status;
}

static const char *missing_option(const run_options *options)
{
    if (!options->input[INPUT_Q])
        return "--q";
    if (!options->input[INPUT_K])
        return "--k";
    if (!options->input[INPUT_V])
        return "--v";
    return options->output ? NULL : "-o";
}

int command_run(int count, char **arguments)
{
    run_options options = {.form = "auto"};
    const fpa_option table[] = {
        {"--head", OPTION_TEXT, &options.head, "NAME", "which head or layer, if the file has several", 0, 0},
        {"--q", OPTION_TEXT, &options.input[INPUT_Q], "FILE", "[B, L, Hq, d]", 0, 0},
        {"--k", OPTION_TEXT, &options.input[INPUT_K], "FILE", "[B, L, H, d]; Hq is a multiple of H", 0, 0},
        {"--v", OPTION_TEXT, &options.input[INPUT_V], "FILE", "[B, L, H, dv]", 0, 0},
        {"--log-gate", OPTION_TEXT, &options.input[INPUT_GATE], "FILE",
         "[B, L, H], natural logarithms of the gates", 0, 0},
        {"--positions", OPTION_TEXT, &options.input[INPUT_POSITIONS], "FILE",
         "[B, L, n], or [B, L] if n is 1; floats or integers", 0, 0},
        {"--key-mask", OPTION_TEXT, &options.input[INPUT_MASK], "FILE",
         "[B, L], bool or uint8; true: the key takes part", 0, 0},
        {"--weights", OPTION_MANY, &options.weights, "NAME=FILE", "a trainable matrix; repeat for each", 0,
         0},
        {"--state-in", OPTION_TEXT, &options.input[INPUT_STATE], "FILE",
         "initial state, [B, H, N] or [B, H, D, dv]; layers: [B, S] (zero)", 0, 0},
        {"--cu-seqlens", OPTION_TEXT, &options.input[INPUT_SEQUENCES], "FILE",
         "[S + 1], integers: offsets of S packed sequences", 0, 0},
        {"--state-index", OPTION_TEXT, &options.input[INPUT_INDEX], "FILE",
         "[B] or [S], integers: which state of --state-in a sequence starts from; -1: zero", 0, 0},
        {"--draft", OPTION_TEXT, &options.input[INPUT_COUNT], "FILE",
         "[B], integers: q, k, v are a draft, of which so many tokens go into --state-out", 0, 0},
        {"--state-out", OPTION_TEXT, &options.state_output, "FILE", "write the final state", 0, 0},
        {"--check-finite", OPTION_FLAG, &options.check_finite, NULL,
         "fail if an input or a result is infinite or NaN", 0, 0},
        {"--form", OPTION_TEXT, &options.form, "FORM", "auto, parallel, chunked or recurrent", 0, 0},
        {"--target", OPTION_TEXT, &options.target, "TARGET", target_help, 0, 0},
        {"--dtype", OPTION_TEXT, &options.dtype, "DTYPE", dtype_help, 0, 0},
        {"--device", OPTION_COUNT, &options.device, "N", device_help, 0, MOST_DEVICES},
        {"-o", OPTION_TEXT, &options.output, "FILE", "write o, [B, L, Hq, dv]", 0, 0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "run SPEC [--head NAME] --q FILE --k FILE --v FILE [options] -o FILE",
        "Apply a head to arrays in NumPy's .npy format (float16, float32, or float64 rounded to it). For a\n"
        "head of dtype bf16 or f16 they are rounded to that. o is float16 if q is, else float32.",
        OPTION_TABLE(table),
        1,
        1,
        "D is the number of features, N the number of elements of a state: D * dv, and D more if the head\n"
        "is normalised. A state is written as [B, H, D, dv] without a normaliser, else as [B, H, N]; that "
        "of\n"
        "a layer, which has the states of all its heads, as [B, S]. A layer's weights are named HEAD.NAME."};
    fpa_texts operands;
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    const char *missing = missing_option(&options);
    if (missing)
        return option_missing(&syntax, missing);
    return run_head(operands.text[0], &options, &error) ? report(&error) : EXIT_OK;
}
