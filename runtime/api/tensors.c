#include "tensors.h"
#include "head/lift.h"
#include "sequences.h"
#include "view.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The tensors of a call while they are checked. */
typedef struct operands {
    const fpa_head *head;
    const fpa_facts *facts;
    DLDevice device;
    const fpa_tensors *tensors;
    fpa_checks *checks;
    bool with_data;
    bool keys_only; /* neither q nor o is given: only the state is computed */
    /* tensor NULL: not given */
    fpa_view q, k, v, o, log_gate, positions, key_mask, state_in, state_out, den;
    fpa_sequences sequences;
} operands;

static void take(const operands *all, fpa_view *view, const char *name, const DLTensor *tensor,
                 fpa_dtype dtype, int axes)
{
    *view = (fpa_view){.name = name,
                       .tensor = tensor,
                       .device = all->device,
                       .dtype = dtype,
                       .axes = axes,
                       .with_data = all->with_data};
    view_check(all->checks, view);
}

/* Views q, k, v or o: [batch, tokens, heads, width], the width contiguous. */
static void take_vectors(const operands *all, fpa_view *view, const char *name, const DLTensor *tensor,
                         int width)
{
    char why[HEAD_MAX_NAME + 32];
    take(all, view, name, tensor, all->head->dtype, 4);
    snprintf(why, sizeof why, "the %s of %s is", view == &all->v || view == &all->o ? "value width" : "width",
             all->head->name);
    view_axis(all->checks, view, 3, width, "elements", why);
    view_contiguous(all->checks, view, 3);
}

/* The view whose batch all others must have: q, or k if there is no q. */
static const fpa_view *leader(const operands *all)
{
    return all->keys_only ? &all->k : &all->q;
}

static const char *leader_has(const operands *all)
{
    return all->keys_only ? "k has" : "q has";
}

static void match_batch(const operands *all, const fpa_view *view)
{
    view_axis(all->checks, view, 0, leader(all)->shape[0], "sequences", leader_has(all));
}

/* Checks batch, tokens and heads of a tensor of queries. */
static void match_queries(const operands *all, const fpa_view *view)
{
    match_batch(all, view);
    view_axis(all->checks, view, 1, all->q.shape[1], "tokens", "q has");
    view_axis(all->checks, view, 2, all->q.shape[2], "heads", "q has");
}

/* Whether the call is packed with `recent`: keys are packed, and q has one token per sequence. */
static bool packs_recent(const operands *all)
{
    return all->tensors->recent && all->tensors->cu_seqlens;
}

/* Checks batch and tokens of a tensor of keys. */
static void match_tokens(const operands *all, const fpa_view *view)
{
    const int64_t recent = all->tensors->recent;
    const bool packed = packs_recent(all);
    const char *why = !recent                      ? leader_has(all)
                      : packed                     ? "k has"
                      : leader(all)->shape[1] == 1 ? "q's token and the recent ones are"
                                                   : "q's tokens and the recent ones are";
    match_batch(all, view);
    view_axis(all->checks, view, 1, packed ? all->k.shape[1] : leader(all)->shape[1] + recent, "tokens", why);
}

/* Checks `recent`, the tokens that the state does not contain. Without a window, q has one token after them, and
 * the state is not updated. With a window, q may have any number of tokens after them, and state_out contains the
 * keys that are older than the next token's window. */
static void check_recent(const operands *all)
{
    const int64_t recent = all->tensors->recent;
    const char *const name = all->head->name;
    fpa_checks *c = all->checks;
    if (recent == 0)
        return;
    if (recent < 0 || recent > INT_MAX - 1)
        checks_fail(c, FPA_INVALID, "recent", "is %lld, but 0 to %d are allowed", (long long)recent,
                    INT_MAX - 1);
    if (!all->head->causal)
        checks_fail(c, FPA_INVALID, "recent", "is %lld, but %s is not causal", (long long)recent, name);
    if (all->keys_only)
        checks_fail(c, FPA_INVALID, "recent", "is %lld, but there is no q", (long long)recent);
    if (all->head->window && packs_recent(all))
        checks_fail(c, FPA_INVALID, "recent",
                    "is %lld, but %s has a window, and cu_seqlens is given: give each sequence's last %d "
                    "tokens again before its new ones, in q as well, set recent = 0, and ignore their o",
                    (long long)recent, name, all->head->window - 1);
    if (all->head->window)
        return;
    if (all->tensors->state_out)
        checks_fail(c, FPA_INVALID, "state_out",
                    "is given, but with recent = %lld the state is not changed; fpa_forward without q and o "
                    "adds tokens to it",
                    (long long)recent);
    if (!packs_recent(all))
        view_axis(c, &all->q, 1, 1, "tokens", "with recent tokens q has");
}

static void check_groups(const operands *all)
{
    const int64_t query_heads = all->q.shape[2], heads = all->k.shape[2];
    if (!all->keys_only && !(heads == 0 ? query_heads == 0 : query_heads > 0 && query_heads % heads == 0))
        checks_fail(all->checks, FPA_INVALID, "q",
                    "axis 2 has %lld heads, but k has %lld: a positive multiple is needed",
                    (long long)query_heads, (long long)heads);
}

/* Checks the number of heads against the constants of a lift, which may exist for a certain number of key/value
 * heads. */
static void check_heads(const operands *all)
{
    const int heads = lift_heads(all->head);
    char why[HEAD_MAX_NAME + 32];
    snprintf(why, sizeof why, "the constants of %s are for", all->head->name);
    if (heads)
        view_axis(all->checks, &all->k, 2, heads, "heads", why);
}

static void check_inputs(operands *all)
{
    const fpa_tensors *t = all->tensors;
    all->keys_only = !t->q && !t->o && t->state_out;
    if (!all->keys_only)
        take_vectors(all, &all->q, "q", t->q, head_width(all->head));
    check_recent(all);
    take_vectors(all, &all->k, "k", t->k, head_width(all->head));
    match_tokens(all, &all->k);
    check_groups(all);
    check_heads(all);
    take_vectors(all, &all->v, "v", t->v, all->head->dv);
    match_tokens(all, &all->v);
    view_axis(all->checks, &all->v, 2, all->k.shape[2], "heads", "k has");
    sequences_check(all->checks, t, packs_recent(all) ? &all->k : leader(all), &all->sequences);
    if (packs_recent(all))
        view_axis(all->checks, &all->q, 1, all->sequences.count, "tokens",
                  "with recent tokens each sequence has one query, and cu_seqlens says");
}

static void check_output(operands *all)
{
    if (all->keys_only || (!all->tensors->o && !all->with_data))
        return;
    take_vectors(all, &all->o, "o", all->tensors->o, all->head->dv);
    match_queries(all, &all->o);
    view_distinct(all->checks, &all->o);
}

/* Checks den, [B, L, Hq], which only normalised heads have. */
static void check_den(operands *all)
{
    const DLTensor *den = all->tensors->den;
    if (!den)
        return;
    if (all->head->normalize == FPA_NORMALIZE_NONE || all->keys_only)
        checks_fail(all->checks, FPA_INVALID, "den", "is given, but %s",
                    all->keys_only ? "there is no q" : "the head has no normaliser");
    if (all->head->window)
        checks_fail(all->checks, FPA_UNSUPPORTED, "den",
                    "is given, but %s has a window, whose sums are not stored yet", all->head->name);
    take(all, &all->den, "den", den, FPA_F32, 3);
    match_queries(all, &all->den);
    view_distinct(all->checks, &all->den);
}

static void check_gate(operands *all)
{
    const DLTensor *gate = all->tensors->log_gate;
    if (gate && !all->head->gate)
        checks_fail(all->checks, FPA_INVALID, "log_gate", "is given, but %s has no gate", all->head->name);
    if (!gate && all->head->gate && all->with_data)
        checks_fail(all->checks, FPA_INVALID, "log_gate",
                    "is NULL, but %s is gated: give the log-gates of all tokens and heads, [B, L, H]",
                    all->head->name);
    if (!gate)
        return;
    take(all, &all->log_gate, "log_gate", gate, FPA_F32, 3);
    match_tokens(all, &all->log_gate);
    view_axis(all->checks, &all->log_gate, 2, all->k.shape[2], "heads", "k has");
}

/* Checks positions: [B, L, n], or [B, L] if n is 1; the stride of a missing axis is 0. */
static void check_positions(operands *all)
{
    const DLTensor *positions = all->tensors->positions;
    /* numbers of a position; 0: the head has none */
    const int numbers = all->head->lift ? all->head->lift->positions : 0;
    char why[HEAD_MAX_NAME + 32];
    if (positions && !numbers)
        checks_fail(all->checks, FPA_INVALID, "positions", "is given, but %s has no positions",
                    all->head->name);
    if (!positions && numbers && all->with_data)
        checks_fail(all->checks, FPA_INVALID, "positions", "is NULL, but %s needs positions of %d number%s",
                    all->head->name, numbers, numbers == 1 ? "" : "s");
    if (!positions)
        return;
    const int axes = numbers == 1 && positions->ndim == 2 ? 2 : 3;
    snprintf(why, sizeof why, "positions of %s have", all->head->name);
    take(all, &all->positions, "positions", positions, FPA_F32, axes);
    match_tokens(all, &all->positions);
    if (axes == 3)
        view_axis(all->checks, &all->positions, 2, numbers, "numbers", why);
}

static void check_key_mask(operands *all)
{
    const DLTensor *mask = all->tensors->key_mask;
    const bool wanted = all->head->lift && all->head->lift->key_mask;
    if (mask && !wanted)
        checks_fail(all->checks, FPA_INVALID, "key_mask", "is given, but %s has no mask of keys",
                    all->head->name);
    if (!mask && wanted && all->with_data)
        checks_fail(all->checks, FPA_INVALID, "key_mask", "is NULL, but %s needs a mask of keys",
                    all->head->name);
    if (!mask)
        return;
    all->key_mask = (fpa_view){.name = "key_mask",
                               .tensor = mask,
                               .device = all->device,
                               .is_mask = true,
                               .axes = 2,
                               .with_data = all->with_data};
    view_check(all->checks, &all->key_mask);
    match_tokens(all, &all->key_mask);
}

/* Checks a state: [B, H, N], or [B, H, D, dv] if there is no z after S; with an index, any number of slots instead
 * of B. */
static void check_state(const operands *all, fpa_view *view, const char *name, const DLTensor *tensor,
                        const fpa_view *index)
{
    const char *why = all->sequences.cu_seqlens.tensor ? "cu_seqlens has" : leader_has(all);
    fpa_checks *c = all->checks;
    if (!tensor)
        return;
    const bool matrix = tensor->ndim == 4 && all->head->normalize == FPA_NORMALIZE_NONE;
    take(all, view, name, tensor, all->head->state_dtype, matrix ? 4 : 3);
    if (!index->tensor)
        view_axis(c, view, 0, all->sequences.count, "sequences", why);
    view_axis(c, view, 1, all->k.shape[2], "heads", "k has");
    if (matrix) {
        view_axis(c, view, 2, all->facts->features, "rows", "the head's features number");
        view_axis(c, view, 3, all->head->dv, "columns", "the value width is");
    } else {
        view_axis(c, view, 2, all->facts->state_elements, "elements", "one head's state has");
    }
    view_contiguous(c, view, 2);
}

static bool same_memory(const fpa_view *a, const fpa_view *b)
{
    return a->data == b->data && a->stride[0] == b->stride[0] && a->stride[1] == b->stride[1];
}

static void check_states(operands *all)
{
    const fpa_sequences *s = &all->sequences;
    const fpa_tensors *t = all->tensors;
    check_state(all, &all->state_in, "state_in", t->state_in, &s->in);
    check_state(all, &all->state_out, "state_out", t->state_out, &s->out);
    if (t->state_out)
        view_distinct(all->checks, &all->state_out);
    sequences_check_states(all->checks, s, &all->state_in, &all->state_out);
}

static void keep_apart(const operands *all, const fpa_view *output)
{
    const fpa_sequences *s = &all->sequences;
    const fpa_view *others[] = {&all->q,        &all->k,         &all->v,        &all->o,
                                &all->log_gate, &all->positions, &all->key_mask, &all->state_in,
                                &all->den,      &s->cu_seqlens,  &s->in,         &s->out};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bool updated_in_place =
            output == &all->state_out && others[i] == &all->state_in && same_memory(output, others[i]);
        if (others[i] != output && !updated_in_place)
            view_apart(all->checks, output, others[i]);
    }
}

static void check_overlaps(const operands *all)
{
    if (!all->with_data)
        return;
    if (!all->keys_only)
        keep_apart(all, &all->o);
    if (all->tensors->den)
        keep_apart(all, &all->den);
    keep_apart(all, &all->state_out);
}

bool tensors_is_column(const fpa_matrix *matrix, const DLTensor *tensor)
{
    return matrix->kind == FPA_MATRIX_TRAINABLE && matrix->cols == 1 && tensor &&
           tensor->ndim == matrix->per_head + 1;
}

/* Checks a run-time matrix: [heads,] rows, columns; [heads,] columns for a diagonal; [heads,] rows for a single
 * column. C order. */
static void check_weight(const operands *all, const fpa_matrix *matrix, int index, const float **weight)
{
    char name[HEAD_MAX_NAME + 48];
    fpa_checks *c = all->checks;
    fpa_view view;
    const bool diagonal = matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL, good = !c->status;
    const int first = matrix->per_head ? 1 : 0; /* first axis of the matrix itself */
    const DLTensor *tensor = all->tensors->weights[index];
    const bool column = tensors_is_column(matrix, tensor);
    snprintf(name, sizeof name, "weights[%d] (%.63s)", index, matrix->name);
    take(all, &view, name, tensor, FPA_F32, first + (diagonal || column ? 1 : 2));
    if (good && c->status && first && tensor && tensor->ndim == 1 + !diagonal)
        fail_more(c->error,
                  ": a matrix for each of k's heads; shared = true in the spec makes it one for all");
    if (first)
        view_axis(c, &view, 0, all->k.shape[2], "heads", "k has");
    if (!diagonal)
        view_axis(c, &view, first, matrix->rows, "rows", "the spec says");
    if (!column)
        view_axis(c, &view, first + !diagonal, matrix->cols, "columns", "the spec says");
    view_contiguous(c, &view, 0);
    const fpa_view *outputs[] = {&all->state_out, &all->den, &all->o};
    for (int i = 0; all->with_data && i < (all->keys_only ? 2 : 3); i++)
        view_apart(c, outputs[i], &view);
    *weight = (const float *)(const void *)view.data;
}

const DLTensor *tensor_of_row(const tensor_row *row, const void *tensors)
{
    const DLTensor *tensor;
    memcpy(&tensor, (const char *)tensors + row->offset, sizeof tensor);
    return tensor;
}

/* The names of run-time matrices, as many as there is room for: "A, B". */
static const char *names_of_matrices(const fpa_head *head, char *names, size_t size)
{
    size_t used = 0;
    names[0] = '\0';
    for (int m = 0; m < head->matrix_count && used < size; m++)
        if (head->matrices[m].kind != FPA_MATRIX_CONSTANT)
            used +=
                (size_t)snprintf(names + used, size - used, "%s%s", used ? ", " : "", head->matrices[m].name);
    return names;
}

static void check_weights(const operands *all, const float **weights)
{
    int count = head_run_time_matrices(all->head), index = 0;
    char names[256];
    memset(weights, 0, (size_t)count * sizeof *weights);
    if (count == 0 || (!all->tensors->weights && !all->with_data))
        return;
    if (!all->tensors->weights) {
        checks_fail(all->checks, FPA_INVALID, "weights", "is NULL, but %s has %d run-time matri%s: %s",
                    all->head->name, count, count == 1 ? "x" : "ces",
                    names_of_matrices(all->head, names, sizeof names));
        return;
    }
    for (int m = 0; m < all->head->matrix_count; m++)
        if (all->head->matrices[m].kind != FPA_MATRIX_CONSTANT) {
            check_weight(all, &all->head->matrices[m], index, &weights[index]);
            index++;
        }
}

static void fill_launch(const operands *all, const float **weights, struct fpa_launch *launch)
{
    *launch = (struct fpa_launch){
        .batch = leader(all)->shape[0],
        .length = leader(all)->shape[1],
        .query_heads = all->q.shape[2], /* 0 without q */
        .recent = all->tensors->recent,
        .heads = all->k.shape[2],
        .q = view_address(&all->q),
        .k = view_address(&all->k),
        .v = view_address(&all->v),
        .o = view_address(&all->o),
        .log_gate = view_address(&all->log_gate),
        .positions = view_address(&all->positions),
        .key_mask = view_address(&all->key_mask),
        .state_in = view_address(&all->state_in),
        .state_out = view_address(&all->state_out),
        .den = view_address(&all->den),
        .weights = weights,
    };
    memcpy(launch->q_stride, all->q.stride, sizeof launch->q_stride);
    memcpy(launch->k_stride, all->k.stride, sizeof launch->k_stride);
    memcpy(launch->v_stride, all->v.stride, sizeof launch->v_stride);
    memcpy(launch->o_stride, all->o.stride, sizeof launch->o_stride);
    memcpy(launch->gate_stride, all->log_gate.stride, sizeof launch->gate_stride);
    memcpy(launch->position_stride, all->positions.stride, sizeof launch->position_stride);
    memcpy(launch->key_mask_stride, all->key_mask.stride, sizeof launch->key_mask_stride);
    memcpy(launch->state_in_stride, all->state_in.stride, sizeof launch->state_in_stride);
    memcpy(launch->state_out_stride, all->state_out.stride, sizeof launch->state_out_stride);
    memcpy(launch->den_stride, all->den.stride, sizeof launch->den_stride);
    sequences_fill(&all->sequences, all->tensors, &all->state_in, &all->state_out, launch);
}

fpa_status tensors_check(const fpa_head *head, const fpa_facts *facts, DLDevice device, tensors_mode mode,
                         const fpa_tensors *tensors, const float **weights, struct fpa_launch *launch,
                         fpa_error *error)
{
    fpa_checks checks = {error, FPA_OK};
    operands all = {.head = head,
                    .facts = facts,
                    .device = device,
                    .tensors = tensors,
                    .checks = &checks,
                    .with_data = mode == TENSORS_DATA};
    if (!tensors)
        return fail(error, FPA_INVALID, "tensors", "is NULL");
    if (device.device_type == kDLCPU && tensors->stream)
        checks_fail(&checks, FPA_INVALID, "stream", "is given, but kernels for the CPU have no streams");
    check_inputs(&all);
    check_output(&all);
    check_den(&all);
    check_gate(&all);
    check_positions(&all);
    check_key_mask(&all);
    check_states(&all);
    check_overlaps(&all);
    check_weights(&all, weights);
    if (!checks.status)
        fill_launch(&all, weights, launch);
    return checks.status;
}
