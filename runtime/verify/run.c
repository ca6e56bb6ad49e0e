/* run: one call of a module on a trial's operands. */
#include "trial.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "place.h"

/* One call. */
typedef struct call {
    const fpa_trial *trial;
    const fpa_module *module;
    const fpa_run *run;
    struct fpa_launch launch, keys; /* keys: tokens before a draft, which may be accepted */
    fpa_draft_launch halves;
    fpa_candidate candidate; /* the chosen one, */
    bool forced;             /* if one was chosen */
    const float **weights;   /* [matrix_count]: addresses for the module */
    fpa_guarded workspace;
    fpa_place place;
} call;

/* A window's state lacks its newest keys: the launch has these, too. */
static struct fpa_launch launch_of(const call *c)
{
    const fpa_trial *t = c->trial;
    const fpa_run *r = c->run;
    const int64_t keys = trial_behind_state(t, r->from), first = r->from + r->unseen;
    struct fpa_launch launch = {.batch = t->shape.batch,
                                .length = r->to - (r->o ? first : keys),
                                .heads = t->shape.heads,
                                .weights = t->launch_weights};
    place_set_keys(t, keys, &launch);
    if (r->o) {
        launch.query_heads = t->shape.query_heads;
        launch.recent = first - keys;
        launch.q = field_from(&t->q_field, first, launch.q_stride);
        launch.o = field_from(r->o, first, launch.o_stride);
    }
    if (r->o && r->den)
        launch.den = field_from(r->den, first, launch.den_stride);
    launch.state_in = place_of_state(r->state_in, launch.state_in_stride);
    launch.state_out = place_of_state(r->state_out, launch.state_out_stride);
    return launch;
}

static void set_sequences(const fpa_run *r, struct fpa_launch *launch)
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

/* NULL: the fastest candidate. */
static const fpa_candidate *candidate_of(const call *c)
{
    return c->forced ? &c->candidate : NULL;
}

static void choose_candidate(call *c)
{
    const fpa_trial *t = c->trial;
    const fpa_call_size size = call_size(c->run->form, &c->launch);
    c->forced = t->choose && !c->run->draft && !c->run->piece &&
                t->choose(t->choice, c->module, &size, &c->candidate);
}

static fpa_status make_workspace(call *c, fpa_error *error)
{
    const fpa_module *module = c->module;
    const size_t size = c->run->piece ? module->piece_workspace(module, &c->launch)
                        : c->run->draft
                            ? module->draft_workspace(module, &c->halves)
                            : module->workspace(module, c->run->form, &c->launch, candidate_of(c));
    const size_t all = guarded_bytes(size);
    char text[TRIAL_TEXT];
    c->workspace =
        (fpa_guarded){all ? blocks_take(c->trial->blocks, GUARDED_ALIGNMENT, all) : NULL, size, all};
    c->launch.workspace_size = size;
    if (c->workspace.bytes)
        return FPA_OK;
    trial_describe(c->trial, c->run->form, text);
    return fail(error, FPA_NO_MEMORY, c->trial->head->name, "%s: no memory for a workspace of %zu bytes",
                text, size);
}

/* Takes the matrices in the order of a launch. */
static void take_weights(call *c)
{
    const fpa_head *head = c->trial->head;
    int slot = 0;
    for (int m = 0; m < head->matrix_count; m++) {
        const fpa_matrix *matrix = &head->matrices[m];
        const float *values = c->trial->launch_weights[slot];
        const size_t size = (size_t)trial_matrix_entries(c->trial, matrix) * sizeof *values;
        if (matrix->kind != FPA_MATRIX_CONSTANT)
            c->weights[slot++] = place_take(&c->place, values, size, false, values);
    }
    c->launch.weights = c->weights;
}

/* Takes the arrays that describe sequences and slots. */
static void take_sequences(call *c)
{
    struct fpa_launch *a = &c->launch;
    a->cu_seqlens = place_take_numbers(&c->place, a->cu_seqlens, a->batch + 1);
    a->state_in_index = place_take_numbers(&c->place, a->state_in_index, a->batch);
    a->state_out_index = place_take_numbers(&c->place, a->state_out_index, a->batch);
}

static void take_keys_and_states(call *c, struct fpa_launch *a)
{
    place_take_keys(&c->place, c->trial, a);
    a->state_in = place_take_field(&c->place, c->run->state_in, a->state_in);
    a->state_out = place_take_output(&c->place, c->run->state_out, a->state_out);
}

/* Outputs are copied to the device before the call, so that bytes that the module does not write come back
 * unchanged. */
static fpa_status take_operands(call *c, fpa_error *error)
{
    enum { OTHERS = 15 }; /* operands other than weights */
    const fpa_trial *t = c->trial;
    struct fpa_launch *a = &c->launch;
    fpa_status status = place_make(&c->place, c->module, t->spares, OTHERS + t->head->matrix_count, error);
    if (status != FPA_OK)
        return status;
    a->q = place_take_field(&c->place, &t->q_field, a->q);
    a->o = place_take_output(&c->place, c->run->o, a->o);
    a->den = place_take_output(&c->place, c->run->den, a->den);
    take_keys_and_states(c, a);
    a->workspace = place_take_guarded(&c->place, &c->workspace);
    take_weights(c);
    take_sequences(c);
    if (c->run->draft) { /* tokens that may be accepted are in the same fields */
        take_keys_and_states(c, &c->keys);
        c->keys.weights = a->weights;
        c->halves.counts = place_take_numbers(&c->place, c->halves.counts, c->keys.batch);
    }
    return c->place.status;
}

/* Runs the first half, the total of the keys, then the second, the outputs. */
static fpa_status run_halves(const call *c, fpa_error *error)
{
    struct fpa_launch total = c->launch, outputs = c->launch;
    total.q = NULL;
    total.o = NULL;
    total.query_heads = 0;
    total.state_in = NULL;
    outputs.state_out = NULL;
    fpa_status status = c->module->piece(c->module, &total, NULL, error);
    return status != FPA_OK ? status : c->module->piece(c->module, &outputs, NULL, error);
}

static fpa_status forward(const call *c, fpa_error *error)
{
    const fpa_module *module = c->module;
    fpa_status status = place_enter(module, error);
    if (status != FPA_OK)
        return status;
    status = c->run->piece ? run_halves(c, error)
             : c->run->draft
                 ? module->draft(module, &c->halves, NULL, error)
                 : module->forward(module, c->run->form, &c->launch, candidate_of(c), NULL, error);
    return place_leave(module, status, error);
}

/* The error of a failed call: REFUSED if it is the module's fault, otherwise the device's status. */
static fpa_status tell_failure(const call *c, fpa_status status, const fpa_error *reason, fpa_error *error)
{
    char text[TRIAL_TEXT];
    trial_describe(c->trial, c->run->form, text);
    if (status == FPA_INVALID)
        return fail(error, FPA_REFUSED, c->trial->head->name,
                    "%s: the module asked for this workspace, and then reported that it is too small", text);
    return fail(error, status, c->trial->head->name, "%s: %s", text, reason->message);
}

static fpa_status check_workspace(const call *c, fpa_error *error)
{
    char text[TRIAL_TEXT];
    if (guarded_is_whole(&c->workspace))
        return FPA_OK;
    trial_describe(c->trial, c->run->form, text);
    return fail(error, FPA_REFUSED, c->trial->head->name,
                "%s: the module wrote outside its workspace of %zu bytes", text, c->workspace.size);
}

/* Moves sequence b by b * more tokens, by the stride of the batch axis. */
static void shift_sequences(struct fpa_launch *a, int64_t more)
{
    int64_t *strides[] = {a->q_stride,    a->k_stride,        a->v_stride,       a->o_stride,
                          a->gate_stride, a->position_stride, a->key_mask_stride};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        strides[i][0] += more * strides[i][1];
}

/* Sets a draft's two halves: tokens that may be accepted, and queries with their keys. */
static void set_halves(call *c)
{
    const fpa_draft_trial *draft = c->run->draft;
    fpa_run accepted = *c->run;
    call keys = *c;
    c->halves = (fpa_draft_launch){.element = dtype_size(c->trial->head->dtype),
                                   .state_element = dtype_size(c->trial->head->state_dtype)};
    accepted.from = draft->accepted_from;
    accepted.to = draft->accepted_from + draft->accepted;
    accepted.o = NULL;
    keys.run = &accepted;
    c->keys = launch_of(&keys);
    shift_sequences(&c->keys, draft->accepted_apart);
    c->launch.state_out = NULL;
    if (c->run->o) {
        shift_sequences(&c->launch, draft->apart);
        c->halves.queries = &c->launch;
    }
    if (draft->counts) {
        c->halves.keys = &c->keys;
        c->halves.counts = draft->counts;
    }
}

static fpa_status compute(call *c, fpa_error *error)
{
    fpa_error reason = {0};
    fpa_status status = make_workspace(c, error);
    if (status == FPA_OK)
        status = take_operands(c, error);
    c->halves.workspace = c->launch.workspace;
    c->halves.workspace_size = c->launch.workspace_size;
    if (status == FPA_OK && (status = forward(c, &reason)) != FPA_OK)
        status = tell_failure(c, status, &reason, error);
    if (status == FPA_OK)
        status = place_fetch(&c->place);
    return status == FPA_OK ? check_workspace(c, error) : status;
}

fpa_status trial_run(const fpa_trial *t, const fpa_module *module, const fpa_run *run, fpa_error *error)
{
    call c = {.trial = t, .module = module, .run = run};
    c.launch = launch_of(&c);
    set_sequences(run, &c.launch);
    if (run->piece)
        *run->piece = run->to > run->from && module->piece_workspace(module, &c.launch) > 0;
    if (run->piece && !*run->piece)
        return FPA_OK;
    if (run->draft)
        set_halves(&c);
    choose_candidate(&c);
    c.weights = calloc((size_t)t->head->matrix_count + 1, sizeof *c.weights);
    const fpa_status status = c.weights ? compute(&c, error) : fail_memory(error);
    place_free(&c.place);
    blocks_leave(t->blocks, c.workspace.bytes, GUARDED_ALIGNMENT, c.workspace.all);
    free(c.weights);
    return status;
}
