#include "tensors.h"
#include "head/lift.h"
#include "sequences.h"
#include "view.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* One call's tensors while they are checked. */
typedef struct operands {
    const fpa_head *head;
    const fpa_facts *facts;
    DLDevice device;
    const fpa_tensors *tensors;
    bool with_data;
    bool keys_only; /* neither q nor o: only the state is wanted */
    /* of those not given, tensor is NULL */
    fpa_view q, k, v, o, log_gate, positions, key_mask, state_in, state_out, den;
    fpa_sequences sequences;
} operands;

static fpa_status take(const operands *all, fpa_view *view, const char *name, const DLTensor *tensor,
                       fpa_dtype dtype, int axes, fpa_error *error)
{
    *view = (fpa_view){.name = name,
                       .tensor = tensor,
                       .device = all->device,
                       .dtype = dtype,
                       .axes = axes,
                       .with_data = all->with_data};
    return view_check(view, error);
}

/* q, k, v or o: [batch, tokens, heads, width], the width contiguous. */
static fpa_status take_vectors(const operands *all, fpa_view *view, const char *name, const DLTensor *tensor,
                               int width, fpa_error *error)
{
    char why[HEAD_MAX_NAME + 32];
    fpa_status status = take(all, view, name, tensor, all->head->dtype, 4, error);
    if (status)
        return status;
    snprintf(why, sizeof why, "the %s of %s is", view == &all->v || view == &all->o ? "value width" : "width",
             all->head->name);
    status = view_axis(view, 3, width, "elements", why, error);
    return status ? status : view_contiguous(view, 3, error);
}

/* The view whose batch all others have: q's, or k's without a q. */
static const fpa_view *leader(const operands *all)
{
    return all->keys_only ? &all->k : &all->q;
}

static const char *leader_has(const operands *all)
{
    return all->keys_only ? "k has" : "q has";
}

static fpa_status match_batch(const operands *all, const fpa_view *view, fpa_error *error)
{
    return view_axis(view, 0, leader(all)->shape[0], "sequences", leader_has(all), error);
}

/* Batch and tokens of what belongs to queries. */
static fpa_status match_queries(const operands *all, const fpa_view *view, fpa_error *error)
{
    fpa_status status = match_batch(all, view, error);
    return status ? status : view_axis(view, 1, all->q.shape[1], "tokens", "q has", error);
}

/* Recent tokens, of each sequence as many as it has: keys are packed, and q has a token a sequence. */
static bool packs_recent(const operands *all)
{
    return all->tensors->recent && all->tensors->cu_seqlens;
}

/* Batch and tokens of what belongs to keys. */
static fpa_status match_tokens(const operands *all, const fpa_view *view, fpa_error *error)
{
    const int64_t recent = all->tensors->recent;
    const bool packed = packs_recent(all);
    const char *why = !recent                      ? leader_has(all)
                      : packed                     ? "k has"
                      : leader(all)->shape[1] == 1 ? "q's token and the recent ones are"
                                                   : "q's tokens and the recent ones are";
    fpa_status status = match_batch(all, view, error);
    return status ? status
                  : view_axis(view, 1, packed ? all->k.shape[1] : leader(all)->shape[1] + recent, "tokens",
                              why, error);
}

/* Tokens that the state has not seen: q has the one behind them, and the state stays as it is. Beside a window, q may
 * have any number behind them, and a state that is given out has what is older than the next token's window. */
static fpa_status check_recent(const operands *all, fpa_error *error)
{
    const int64_t recent = all->tensors->recent;
    if (recent == 0)
        return FPA_OK;
    if (recent < 0 || recent > INT_MAX - 1)
        return fail(error, FPA_INVALID, "recent", "is %lld: 0 to %d are possible", (long long)recent,
                    INT_MAX - 1);
    if (!all->head->causal)
        return fail(error, FPA_INVALID, "recent", "is %lld, but %s is not causal", (long long)recent,
                    all->head->name);
    if (all->keys_only)
        return fail(error, FPA_INVALID, "recent", "is %lld, but there is no q", (long long)recent);
    if (all->head->window && packs_recent(all))
        return fail(
            error, FPA_INVALID, "recent",
            "is %lld, but %s has a window, and cu_seqlens is given: give each sequence's last %d tokens "
            "again before its new ones, in q as well, and recent = 0; their o is nobody's",
            (long long)recent, all->head->name, all->head->window - 1);
    if (all->head->window)
        return FPA_OK;
    if (all->tensors->state_out)
        return fail(
            error, FPA_INVALID, "state_out",
            "is given, but with recent = %lld the state stays as it is; a forward without q and o puts "
            "recent tokens into it",
            (long long)recent);
    return packs_recent(all) ? FPA_OK : view_axis(&all->q, 1, 1, "tokens", "with recent tokens q has", error);
}

static fpa_status check_groups(const operands *all, fpa_error *error)
{
    if (all->keys_only)
        return FPA_OK;
    int64_t query_heads = all->q.shape[2], heads = all->k.shape[2];
    if (heads == 0 ? query_heads == 0 : query_heads > 0 && query_heads % heads == 0)
        return FPA_OK;
    return fail(error, FPA_INVALID, "q",
                "axis 2 has %lld heads, but k has %lld: a positive multiple is needed",
                (long long)query_heads, (long long)heads);
}

/* A lift's constants may be given for so many key/value heads. */
static fpa_status check_heads(const operands *all, fpa_error *error)
{
    const int heads = lift_heads(all->head);
    char why[HEAD_MAX_NAME + 32];
    snprintf(why, sizeof why, "the constants of %s are for", all->head->name);
    return heads ? view_axis(&all->k, 2, heads, "heads", why, error) : FPA_OK;
}

static fpa_status check_inputs(operands *all, fpa_error *error)
{
    const fpa_tensors *t = all->tensors;
    fpa_status status = FPA_OK;
    all->keys_only = !t->q && !t->o && t->state_out;
    if (!all->keys_only)
        status = take_vectors(all, &all->q, "q", t->q, head_width(all->head), error);
    if (!status)
        status = check_recent(all, error);
    if (!status)
        status = take_vectors(all, &all->k, "k", t->k, head_width(all->head), error);
    if (!status)
        status = match_tokens(all, &all->k, error);
    if (!status)
        status = check_groups(all, error);
    if (!status)
        status = check_heads(all, error);
    if (!status)
        status = take_vectors(all, &all->v, "v", t->v, all->head->dv, error);
    if (!status)
        status = match_tokens(all, &all->v, error);
    if (!status)
        status = view_axis(&all->v, 2, all->k.shape[2], "heads", "k has", error);
    if (!status)
        status = sequences_check(t, packs_recent(all) ? &all->k : leader(all), &all->sequences, error);
    return status || !packs_recent(all)
               ? status
               : view_axis(&all->q, 1, all->sequences.count, "tokens",
                           "with recent tokens each sequence has one query, and cu_seqlens says", error);
}

static fpa_status check_output(operands *all, fpa_error *error)
{
    if (all->keys_only || (!all->tensors->o && !all->with_data))
        return FPA_OK;
    fpa_status status = take_vectors(all, &all->o, "o", all->tensors->o, all->head->dv, error);
    if (!status)
        status = match_queries(all, &all->o, error);
    if (!status)
        status = view_axis(&all->o, 2, all->q.shape[2], "heads", "q has", error);
    return status ? status : view_distinct(&all->o, error);
}

/* [B, L, Hq], of outputs that are divided. */
static fpa_status check_den(operands *all, fpa_error *error)
{
    const DLTensor *den = all->tensors->den;
    if (!den)
        return FPA_OK;
    if (all->head->normalize == FPA_NORMALIZE_NONE || all->keys_only)
        return fail(error, FPA_INVALID, "den", "is given, but %s",
                    all->keys_only ? "there is no q" : "the head has no normaliser");
    if (all->head->window)
        return fail(error, FPA_UNSUPPORTED, "den",
                    "is given, but %s has a window, whose sums are not stored yet", all->head->name);
    fpa_status status = take(all, &all->den, "den", den, FPA_F32, 3, error);
    if (!status)
        status = match_queries(all, &all->den, error);
    if (!status)
        status = view_axis(&all->den, 2, all->q.shape[2], "heads", "q has", error);
    return status ? status : view_distinct(&all->den, error);
}

static fpa_status check_gate(operands *all, fpa_error *error)
{
    const DLTensor *gate = all->tensors->log_gate;
    if (gate && !all->head->gate)
        return fail(error, FPA_INVALID, "log_gate", "is given, but %s has no gate", all->head->name);
    if (!gate && all->head->gate && all->with_data)
        return fail(error, FPA_INVALID, "log_gate",
                    "is NULL, but %s is gated: give the log-gates of all tokens and heads, [B, L, H]",
                    all->head->name);
    if (!gate)
        return FPA_OK;
    fpa_status status = take(all, &all->log_gate, "log_gate", gate, FPA_F32, 3, error);
    if (!status)
        status = match_tokens(all, &all->log_gate, error);
    return status ? status : view_axis(&all->log_gate, 2, all->k.shape[2], "heads", "k has", error);
}

/* Numbers of a token's position that the head takes; 0: none. */
static int positions_of(const fpa_head *head)
{
    return head->lift ? head->lift->positions : 0;
}

/* [B, L, n], or [B, L] when a position is one number; the stride of a missing axis is 0. */
static fpa_status check_positions(operands *all, fpa_error *error)
{
    const DLTensor *positions = all->tensors->positions;
    const int numbers = positions_of(all->head);
    if (positions && !numbers)
        return fail(error, FPA_INVALID, "positions", "is given, but %s takes no positions", all->head->name);
    if (!positions && numbers && all->with_data)
        return fail(error, FPA_INVALID, "positions", "is NULL, but %s takes positions of %d number%s",
                    all->head->name, numbers, numbers == 1 ? "" : "s");
    if (!positions)
        return FPA_OK;
    const int axes = numbers == 1 && positions->ndim == 2 ? 2 : 3;
    char why[HEAD_MAX_NAME + 32];
    snprintf(why, sizeof why, "positions of %s have", all->head->name);
    fpa_status status = take(all, &all->positions, "positions", positions, FPA_F32, axes, error);
    if (!status)
        status = match_tokens(all, &all->positions, error);
    return status || axes == 2 ? status : view_axis(&all->positions, 2, numbers, "numbers", why, error);
}

static fpa_status check_key_mask(operands *all, fpa_error *error)
{
    const DLTensor *mask = all->tensors->key_mask;
    const bool wanted = all->head->lift && all->head->lift->key_mask;
    if (mask && !wanted)
        return fail(error, FPA_INVALID, "key_mask", "is given, but %s takes no mask of keys",
                    all->head->name);
    if (!mask && wanted && all->with_data)
        return fail(error, FPA_INVALID, "key_mask", "is NULL, but %s takes a mask of keys", all->head->name);
    if (!mask)
        return FPA_OK;
    all->key_mask = (fpa_view){.name = "key_mask",
                               .tensor = mask,
                               .device = all->device,
                               .is_mask = true,
                               .axes = 2,
                               .with_data = all->with_data};
    fpa_status status = view_check(&all->key_mask, error);
    return status ? status : match_tokens(all, &all->key_mask, error);
}

/* [B, H, N], or [B, H, D, dv] when there is no z behind S; with an index any number of them. */
static fpa_status check_state(const operands *all, fpa_view *view, const char *name, const DLTensor *tensor,
                              const fpa_view *index, fpa_error *error)
{
    const char *why = all->sequences.cu_seqlens.tensor ? "cu_seqlens has" : leader_has(all);
    if (!tensor)
        return FPA_OK;
    bool matrix = tensor->ndim == 4 && all->head->normalize == FPA_NORMALIZE_NONE;
    fpa_status status = take(all, view, name, tensor, all->head->state_dtype, matrix ? 4 : 3, error);
    if (!status && !index->tensor)
        status = view_axis(view, 0, all->sequences.count, "sequences", why, error);
    if (!status)
        status = view_axis(view, 1, all->k.shape[2], "heads", "k has", error);
    if (!status && !matrix)
        status = view_axis(view, 2, all->facts->state_elements, "elements", "one head's state has", error);
    if (!status && matrix)
        status = view_axis(view, 2, all->facts->features, "rows", "the head's features number", error);
    if (!status && matrix)
        status = view_axis(view, 3, all->head->dv, "columns", "the value width is", error);
    return status ? status : view_contiguous(view, 2, error);
}

static bool same_memory(const fpa_view *a, const fpa_view *b)
{
    return a->data == b->data && a->stride[0] == b->stride[0] && a->stride[1] == b->stride[1];
}

static fpa_status check_states(operands *all, fpa_error *error)
{
    const fpa_sequences *s = &all->sequences;
    const fpa_tensors *t = all->tensors;
    fpa_status status = check_state(all, &all->state_in, "state_in", t->state_in, &s->in, error);
    status = status ? status : check_state(all, &all->state_out, "state_out", t->state_out, &s->out, error);
    if (!status && t->state_out)
        status = view_distinct(&all->state_out, error);
    return status ? status : sequences_check_states(s, &all->state_in, &all->state_out, error);
}

static fpa_status keep_apart(const operands *all, const fpa_view *output, fpa_error *error)
{
    const fpa_sequences *s = &all->sequences;
    const fpa_view *others[] = {&all->q,        &all->k,         &all->v,        &all->o,
                                &all->log_gate, &all->positions, &all->key_mask, &all->state_in,
                                &all->den,      &s->cu_seqlens,  &s->in,         &s->out};
    fpa_status status = FPA_OK;
    for (size_t i = 0; !status && i < sizeof others / sizeof *others; i++) {
        bool updated_in_place =
            output == &all->state_out && others[i] == &all->state_in && same_memory(output, others[i]);
        if (others[i] != output && !updated_in_place)
            status = view_apart(output, others[i], error);
    }
    return status;
}

static fpa_status check_overlaps(const operands *all, fpa_error *error)
{
    if (!all->with_data)
        return FPA_OK;
    fpa_status status = all->keys_only ? FPA_OK : keep_apart(all, &all->o, error);
    if (!status && all->tensors->den)
        status = keep_apart(all, &all->den, error);
    return status ? status : keep_apart(all, &all->state_out, error);
}

bool tensors_is_column(const fpa_matrix *matrix, const DLTensor *tensor)
{
    return matrix->kind == FPA_MATRIX_TRAINABLE && matrix->cols == 1 && tensor &&
           tensor->ndim == matrix->per_head + 1;
}

/* One run-time matrix: [heads,] rows, columns, or [heads,] columns of a diagonal, or [heads,] rows of one column; C
 * order. */
static fpa_status check_weight(const operands *all, const fpa_matrix *matrix, int index, const float **weight,
                               fpa_error *error)
{
    char name[HEAD_MAX_NAME + 48];
    fpa_view view;
    bool diagonal = matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL;
    int first = matrix->per_head ? 1 : 0; /* axis of the matrix proper */
    const DLTensor *tensor = all->tensors->weights[index];
    const bool column = tensors_is_column(matrix, tensor);
    snprintf(name, sizeof name, "weights[%d] (%.63s)", index, matrix->name);
    fpa_status status = take(all, &view, name, tensor, FPA_F32, first + (diagonal || column ? 1 : 2), error);
    if (status && first && tensor && tensor->ndim == 1 + !diagonal)
        fail_more(error, ": a matrix for each of k's heads; shared = true in the spec makes it one for all");
    if (!status && first)
        status = view_axis(&view, 0, all->k.shape[2], "heads", "k has", error);
    if (!status && !diagonal)
        status = view_axis(&view, first, matrix->rows, "rows", "the spec says", error);
    if (!status && !column)
        status = view_axis(&view, first + !diagonal, matrix->cols, "columns", "the spec says", error);
    if (!status)
        status = view_contiguous(&view, 0, error);
    const fpa_view *outputs[] = {&all->state_out, &all->den, &all->o};
    for (int i = 0; !status && all->with_data && i < (all->keys_only ? 2 : 3); i++)
        status = view_apart(outputs[i], &view, error);
    if (!status)
        *weight = (const float *)(const void *)view.data;
    return status;
}

int tensors_weights(const fpa_head *head)
{
    int count = 0;
    for (int m = 0; m < head->matrix_count; m++)
        count += head->matrices[m].kind != FPA_MATRIX_CONSTANT;
    return count;
}

/* Of the run-time ones: "A, B"; as many as there is room for. */
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

static fpa_status check_weights(const operands *all, const float **weights, fpa_error *error)
{
    int count = tensors_weights(all->head), index = 0;
    char names[256];
    memset(weights, 0, (size_t)count * sizeof *weights);
    if (count == 0 || (!all->tensors->weights && !all->with_data))
        return FPA_OK;
    if (!all->tensors->weights)
        return fail(error, FPA_INVALID, "weights", "is NULL, but %s has %d run-time matri%s: %s",
                    all->head->name, count, count == 1 ? "x" : "ces",
                    names_of_matrices(all->head, names, sizeof names));
    for (int m = 0; m < all->head->matrix_count; m++) {
        const fpa_matrix *matrix = &all->head->matrices[m];
        if (matrix->kind == FPA_MATRIX_CONSTANT)
            continue;
        fpa_status status = check_weight(all, matrix, index, &weights[index], error);
        if (status)
            return status;
        index++;
    }
    return FPA_OK;
}

/* A tensor without memory (empty, or only its shape counts) still has to look given. */
static void *address(const fpa_view *view)
{
    return view->data ? view->data : (void *)(uintptr_t)view->tensor;
}

static void fill_launch(const operands *all, const float **weights, struct fpa_launch *launch)
{
    *launch = (struct fpa_launch){
        .batch = leader(all)->shape[0],
        .length = leader(all)->shape[1],
        .query_heads = all->q.shape[2], /* 0 without q */
        .recent = all->tensors->recent,
        .heads = all->k.shape[2],
        .q = address(&all->q),
        .k = address(&all->k),
        .v = address(&all->v),
        .o = address(&all->o),
        .log_gate = address(&all->log_gate),
        .positions = address(&all->positions),
        .key_mask = address(&all->key_mask),
        .state_in = address(&all->state_in),
        .state_out = address(&all->state_out),
        .den = address(&all->den),
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

static fpa_status check_stream(const operands *all, fpa_error *error)
{
    if (all->device.device_type == kDLCPU && all->tensors->stream)
        return fail(error, FPA_INVALID, "stream", "is given, but a kernel for the CPU takes none");
    return FPA_OK;
}

fpa_status tensors_check(const fpa_head *head, const fpa_facts *facts, DLDevice device, tensors_mode mode,
                         const fpa_tensors *tensors, const float **weights, struct fpa_launch *launch,
                         fpa_error *error)
{
    operands all = {.head = head,
                    .facts = facts,
                    .device = device,
                    .tensors = tensors,
                    .with_data = mode == TENSORS_DATA};
    if (!tensors)
        return fail(error, FPA_INVALID, "tensors", "is NULL");
    fpa_status status = check_stream(&all, error);
    if (!status)
        status = check_inputs(&all, error);
    if (!status)
        status = check_output(&all, error);
    if (!status)
        status = check_den(&all, error);
    if (!status)
        status = check_gate(&all, error);
    if (!status)
        status = check_positions(&all, error);
    if (!status)
        status = check_key_mask(&all, error);
    if (!status)
        status = check_states(&all, error);
    if (!status)
        status = check_overlaps(&all, error);
    if (!status)
        status = check_weights(&all, weights, error);
    if (!status)
        fill_launch(&all, weights, launch);
    return status;
}
