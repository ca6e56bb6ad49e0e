/* verify_run: one call of a module on a trial's operands. */
#include "trial.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "place.h"
#include "tokens.h"

/* What one call works on. */
typedef struct run {
    const fpa_trial *trial;
    const fpa_module *module;
    fpa_form_index form;
    int64_t from, to;                    /* tokens of k, v, log_gate, positions, key_mask */
    int64_t first;                       /* token of q and o, up to `to`; without o none is asked */
    fpa_field *o, *state_in, *state_out; /* NULL when there is none */
    fpa_field *den;
    const fpa_sequence_list *list;  /* NULL: sequences of one length, with states of their own */
    const fpa_draft_trial *draft;   /* NULL: a forward */
    bool piece;                     /* in two halves */
    struct fpa_launch launch, keys; /* keys: of a draft, that may be accepted */
    fpa_draft_launch halves;
    fpa_candidate candidate; /* that was chosen, */
    bool forced;             /* if one was */
    const float **weights;   /* [matrix_count]: where the module finds them */
    fpa_guarded workspace;
    fpa_place place;
} run;

static void copy_strides(int64_t to[3], const fpa_field *field)
{
    memcpy(to, field->stride, sizeof field->stride);
}

static void set_queries(const run *r, struct fpa_launch *launch)
{
    const fpa_trial *t = r->trial;
    launch->query_heads = t->shape.query_heads;
    launch->q = field_at(&t->q_field, 0, r->first, 0, 0);
    launch->o = field_at(r->o, 0, r->first, 0, 0);
    launch->recent = r->first - r->from;
    copy_strides(launch->q_stride, &t->q_field);
    copy_strides(launch->o_stride, r->o);
    if (r->den) {
        launch->den = (float *)(void *)field_at(r->den, 0, r->first, 0, 0);
        copy_strides(launch->den_stride, r->den);
    }
}

static struct fpa_launch launch_of(const run *r)
{
    const fpa_trial *t = r->trial;
    struct fpa_launch launch = {
        .batch = t->shape.batch,
        .length = r->to - (r->o ? r->first : r->from),
        .heads = t->shape.heads,
        .k = field_at(&t->k_field, 0, r->from, 0, 0),
        .v = field_at(&t->v_field, 0, r->from, 0, 0),
        .weights = t->launch_weights,
    };

    if (r->o)
        set_queries(r, &launch);
    copy_strides(launch.k_stride, &t->k_field);
    copy_strides(launch.v_stride, &t->v_field);
    if (t->head->gate) {
        launch.log_gate = (const float *)(const void *)field_at(&t->gate_field, 0, r->from, 0, 0);
        copy_strides(launch.gate_stride, &t->gate_field);
    }
    if (t->positions) {
        launch.positions = (const float *)(const void *)field_at(&t->position_field, 0, r->from, 0, 0);
        copy_strides(launch.position_stride, &t->position_field);
    }
    if (t->key_mask) {
        launch.key_mask = tokens_mask_at(t, 0, r->from);
        memcpy(launch.key_mask_stride, t->mask.stride, sizeof launch.key_mask_stride);
    }
    if (r->state_in) {
        launch.state_in = r->state_in->first;
        launch.state_in_stride[0] = r->state_in->stride[0];
        launch.state_in_stride[1] = r->state_in->stride[2];
    }
    if (r->state_out) {
        launch.state_out = r->state_out->first;
        launch.state_out_stride[0] = r->state_out->stride[0];
        launch.state_out_stride[1] = r->state_out->stride[2];
    }
    return launch;
}

static void set_sequences(const run *r, struct fpa_launch *launch)
{
    const fpa_sequence_list *list = r->list;
    launch->total = launch->batch * launch->length;
    if (!list)
        return;
    if (list->cu_seqlens) {
        launch->cu_seqlens = list->cu_seqlens;
        launch->cu_seqlens_bytes = sizeof *list->cu_seqlens;
        launch->batch = list->count;
        launch->length = list->recent ? 1 : list->longest;
        launch->recent = list->recent ? list->recent : launch->recent;
    }
    if (r->state_in) {
        launch->state_in_index = list->in;
        launch->state_in_slots = r->state_in->batch;
    }
    if (r->state_out) {
        launch->state_out_index = list->out;
        launch->state_out_slots = r->state_out->batch;
    }
}

/* NULL: the fastest. */
static const fpa_candidate *candidate_of(const run *r)
{
    return r->forced ? &r->candidate : NULL;
}

static void choose_candidate(run *r)
{
    const fpa_trial *t = r->trial;
    const fpa_call_size size = call_size(r->form, &r->launch);
    r->forced = t->choose && !r->draft && !r->piece && t->choose(t->choice, r->module, &size, &r->candidate);
}

static size_t workspace_size(const run *r, fpa_form_index form)
{
    return r->piece   ? r->module->piece_workspace(r->module, &r->launch)
           : r->draft ? r->module->draft_workspace(r->module, &r->halves)
                      : r->module->workspace(r->module, form, &r->launch, candidate_of(r));
}

static fpa_status make_workspace(run *r, fpa_form_index form, fpa_error *error)
{
    const size_t size = workspace_size(r, form), all = guarded_bytes(size);
    char text[TRIAL_TEXT];
    r->workspace.bytes = all ? blocks_take(r->trial->blocks, GUARDED_ALIGNMENT, all) : NULL;
    if (!r->workspace.bytes) {
        trial_describe(r->trial, form, text);
        return fail(error, FPA_NO_MEMORY, r->trial->head->name, "%s: no memory for a workspace of %zu bytes",
                    text, size);
    }
    r->workspace.all = all;
    r->workspace.size = r->launch.workspace_size = size;
    return FPA_OK;
}

/* The matrices in the order of a launch. */
static void take_weights(run *r, fpa_error *error)
{
    const fpa_head *head = r->trial->head;
    int slot = 0;
    for (int m = 0; m < head->matrix_count; m++) {
        const fpa_matrix *matrix = &head->matrices[m];
        const float *values = r->trial->launch_weights[slot];
        size_t rows = matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? 1 : (size_t)matrix->rows;
        size_t heads = matrix->per_head ? (size_t)r->trial->shape.heads : 1;
        if (matrix->kind != FPA_MATRIX_CONSTANT)
            r->weights[slot++] =
                place_take(&r->place, values, heads * rows * (size_t)matrix->cols * sizeof *values, false,
                           values, error);
    }
    r->launch.weights = r->weights;
}

static const void *take_numbers(run *r, const void *numbers, int64_t count, fpa_error *error)
{
    return numbers ? place_take(&r->place, numbers, (size_t)count * sizeof(int32_t), false, numbers, error)
                   : NULL;
}

/* What a launch says of its sequences. */
static void take_sequences(run *r, fpa_error *error)
{
    struct fpa_launch *a = &r->launch;
    a->cu_seqlens = take_numbers(r, a->cu_seqlens, a->batch + 1, error);
    a->state_in_index = take_numbers(r, a->state_in_index, a->batch, error);
    a->state_out_index = take_numbers(r, a->state_out_index, a->batch, error);
}

/* Keys that may be accepted are of the same fields, elsewhere. */
static void take_accepted(run *r, fpa_error *error)
{
    const fpa_trial *t = r->trial;
    struct fpa_launch *a = &r->keys;
    a->k = place_take_field(&r->place, &t->k_field, a->k, error);
    a->v = place_take_field(&r->place, &t->v_field, a->v, error);
    a->log_gate = place_take_field(&r->place, &t->gate_field, a->log_gate, error);
    a->positions = place_take_field(&r->place, &t->position_field, a->positions, error);
    a->key_mask = place_take(&r->place, t->mask.bytes, t->mask.size, false, a->key_mask, error);
    a->state_in = place_take_field(&r->place, r->state_in, a->state_in, error);
    a->state_out = place_take_output(&r->place, r->state_out, a->state_out, error);
    a->weights = r->launch.weights;
    r->halves.counts = take_numbers(r, r->halves.counts, a->batch, error);
}

/* Outputs go to the device as they are, so that what the module leaves alone comes back unchanged. */
static fpa_status take_operands(run *r, fpa_error *error)
{
    enum { OTHERS = 15 }; /* operands that are no weights */
    const fpa_trial *t = r->trial;
    struct fpa_launch *a = &r->launch;
    fpa_status status = place_make(&r->place, r->module, t->spares, OTHERS + t->head->matrix_count, error);
    if (status != FPA_OK)
        return status;
    a->q = place_take_field(&r->place, &t->q_field, a->q, error);
    a->k = place_take_field(&r->place, &t->k_field, a->k, error);
    a->v = place_take_field(&r->place, &t->v_field, a->v, error);
    a->o = place_take_output(&r->place, r->o, a->o, error);
    a->den = place_take_output(&r->place, r->den, a->den, error);
    a->log_gate = place_take_field(&r->place, &t->gate_field, a->log_gate, error);
    a->positions = place_take_field(&r->place, &t->position_field, a->positions, error);
    a->key_mask = place_take(&r->place, t->mask.bytes, t->mask.size, false, a->key_mask, error);
    a->state_in = place_take_field(&r->place, r->state_in, a->state_in, error);
    a->state_out = place_take_output(&r->place, r->state_out, a->state_out, error);
    a->workspace = place_take_guarded(&r->place, &r->workspace, error);
    take_weights(r, error);
    take_sequences(r, error);
    if (r->draft)
        take_accepted(r, error);
    return r->place.status;
}

/* The total of the keys, then the outputs. */
static fpa_status run_halves(const run *r, fpa_error *error)
{
    struct fpa_launch total = r->launch, outputs = r->launch;
    total.q = NULL;
    total.o = NULL;
    total.query_heads = 0;
    total.state_in = NULL;
    outputs.state_out = NULL;
    fpa_status status = r->module->piece(r->module, &total, NULL, error);
    return status != FPA_OK ? status : r->module->piece(r->module, &outputs, NULL, error);
}

static fpa_status forward(const run *r, fpa_form_index form, fpa_error *error)
{
    const fpa_module *module = r->module;
    fpa_status status = place_enter(module, error);
    if (status != FPA_OK)
        return status;
    status = r->piece   ? run_halves(r, error)
             : r->draft ? module->draft(module, &r->halves, NULL, error)
                        : module->forward(module, form, &r->launch, candidate_of(r), NULL, error);
    return place_leave(module, status, error);
}

/* A verdict on the module, where the failure is one; a device that fails is none. */
static fpa_status tell_failure(const run *r, fpa_form_index form, fpa_status status, const fpa_error *reason,
                               fpa_error *error)
{
    char text[TRIAL_TEXT];
    trial_describe(r->trial, form, text);
    if (status == FPA_INVALID)
        return fail(error, FPA_REFUSED, r->trial->head->name,
                    "%s: the module finds the workspace that it asked for too small", text);
    return fail(error, status, r->trial->head->name, "%s: %s", text, reason->message);
}

static fpa_status check_workspace(const run *r, fpa_form_index form, fpa_error *error)
{
    char text[TRIAL_TEXT];
    if (guarded_is_whole(&r->workspace))
        return FPA_OK;
    trial_describe(r->trial, form, text);
    return fail(error, FPA_REFUSED, r->trial->head->name,
                "%s: the module wrote outside its workspace of %zu bytes", text, r->workspace.size);
}

/* Sequence b is `more` tokens further on: its place on the batch's axis. */
static void shift_sequences(struct fpa_launch *a, int64_t more)
{
    int64_t *strides[] = {a->q_stride,    a->k_stride,        a->v_stride,       a->o_stride,
                          a->gate_stride, a->position_stride, a->key_mask_stride};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        strides[i][0] += more * strides[i][1];
}

/* A draft's halves: keys that may be accepted, and queries with theirs. */
static void set_halves(run *r)
{
    const fpa_draft_trial *draft = r->draft;
    run keys = *r;
    r->halves = (fpa_draft_launch){.element = dtype_size(r->trial->head->dtype),
                                   .state_element = dtype_size(r->trial->head->state_dtype)};
    keys.from = draft->accepted_from;
    keys.to = draft->accepted_from + draft->accepted;
    keys.o = NULL;
    r->keys = launch_of(&keys);
    shift_sequences(&r->keys, draft->accepted_apart);
    r->launch.state_out = NULL;
    if (r->o) {
        shift_sequences(&r->launch, draft->apart);
        r->halves.queries = &r->launch;
    }
    if (draft->counts) {
        r->halves.keys = &r->keys;
        r->halves.counts = draft->counts;
    }
}

static fpa_status compute(run *r, fpa_error *error)
{
    fpa_error reason = {0};
    fpa_status status;
    r->launch = launch_of(r);
    set_sequences(r, &r->launch);
    if (r->draft)
        set_halves(r);
    choose_candidate(r);
    r->weights = calloc((size_t)r->trial->head->matrix_count + 1, sizeof *r->weights);
    status = r->weights ? make_workspace(r, r->form, error) : fail_memory(error);
    if (status == FPA_OK)
        status = take_operands(r, error);
    r->halves.workspace = r->launch.workspace;
    r->halves.workspace_size = r->launch.workspace_size;
    if (status == FPA_OK && (status = forward(r, r->form, &reason)) != FPA_OK)
        status = tell_failure(r, r->form, status, &reason, error);
    if (status == FPA_OK)
        status = place_fetch(&r->place, error);
    if (status == FPA_OK)
        status = check_workspace(r, r->form, error);
    place_free(&r->place);
    blocks_leave(r->trial->blocks, r->workspace.bytes, GUARDED_ALIGNMENT, r->workspace.all);
    free(r->weights);
    return status;
}

fpa_status trial_run(const fpa_trial *t, const fpa_module *module, fpa_form_index form, int64_t from,
                     int64_t to, fpa_field *o, fpa_field *state_in, fpa_field *state_out, fpa_error *error)
{
    return trial_run_pooled(t, module, form, from, to, NULL, o, state_in, state_out, error);
}

fpa_status trial_run_saving(const fpa_trial *t, const fpa_module *module, fpa_form_index form, fpa_field *o,
                            fpa_field *den, fpa_error *error)
{
    run r = {.trial = t, .module = module, .form = form, .to = t->shape.length, .o = o, .den = den};
    return compute(&r, error);
}

fpa_status trial_run_sequences(const fpa_trial *t, const fpa_module *module, fpa_form_index form,
                               const fpa_sequence_list *list, fpa_field *o, fpa_field *state_in,
                               fpa_field *state_out, fpa_error *error)
{
    return trial_run_pooled(t, module, form, 0, t->shape.length, list, o, state_in, state_out, error);
}

fpa_status trial_run_pooled(const fpa_trial *t, const fpa_module *module, fpa_form_index form, int64_t from,
                            int64_t to, const fpa_sequence_list *list, fpa_field *o, fpa_field *state_in,
                            fpa_field *state_out, fpa_error *error)
{
    run r = {.trial = t,
             .module = module,
             .form = form,
             .from = trial_behind_state(t, from),
             .to = to,
             .first = from,
             .o = o,
             .state_in = state_in,
             .state_out = state_out,
             .list = list};
    return compute(&r, error);
}

fpa_status trial_decode_recent(const fpa_trial *t, const fpa_module *module, int64_t from, int64_t token,
                               fpa_field *o, fpa_field *state, fpa_error *error)
{
    run r = {.trial = t,
             .module = module,
             .form = FORM_RECURRENT,
             .from = trial_behind_state(t, from),
             .to = token + 1,
             .first = token,
             .o = o,
             .state_in = state};
    return compute(&r, error);
}

fpa_status trial_run_draft(const fpa_trial *t, const fpa_module *module, const fpa_draft_trial *draft,
                           fpa_field *o, fpa_field *state_in, fpa_field *state_out, fpa_error *error)
{
    run r = {.trial = t,
             .module = module,
             .form = FORM_RECURRENT,
             .from = draft->from,
             .to = draft->from + draft->length,
             .first = draft->from,
             .o = o,
             .state_in = state_in,
             .state_out = state_out,
             .draft = draft};
    return compute(&r, error);
}

fpa_status trial_run_piece(const fpa_trial *t, const fpa_module *module, int64_t from, int64_t to,
                           fpa_field *o, fpa_field *state_in, fpa_field *total, bool *kept, fpa_error *error)
{
    run r = {.trial = t,
             .module = module,
             .form = FORM_CHUNKED,
             .from = from,
             .to = to,
             .first = from,
             .o = o,
             .state_in = state_in,
             .state_out = total,
             .piece = true};
    r.launch = launch_of(&r);
    *kept = to > from && module->piece_workspace(module, &r.launch) > 0;
    return *kept ? compute(&r, error) : FPA_OK;
}
