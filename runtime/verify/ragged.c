/* ragged: a trial's rows as packed batches in several calls, with sequences without tokens between them, and states in slots of a pool. */
#include "ragged.h"

#include <stdlib.h>
#include <string.h>

#include "handover.h"
#include "tokens.h"

/* Tokens that belong to no sequence, before the first one and after the last. */
enum { LEAD = 3, TAIL = 2 };

enum { NONE = -1 };

/* One call: of each `apart` sequences the last one has tokens from[b] to to[b] - 1 of the trial's row b, the others none. */
typedef struct call {
    const fpa_trial *trial;
    int64_t apart;
    fpa_trial packed; /* the packed tokens */
    fpa_sequence_list list;
    int64_t *from, *to; /* [batch] */
    int first; /* number of the first cut: tokens before it repeat keys of a window, and their outputs are ignored */
    fpa_field o; /* packed */
    /* states lack all tokens, and only each sequence's last token has a query: q and o have one entry for each sequence */
    bool recent;
} call;

/* Data shared by the calls of a trial. */
typedef struct ragged {
    fpa_check *check;
    const fpa_trial *trial;
    int64_t apart;        /* number of sequences for each row */
    int64_t count, slots; /* number of sequences, and of the pool's slots */
    fpa_field o, pool;
} ragged;

/* ---- tokens, packed ---- */

static int64_t sequence_of(const call *c, int64_t row)
{
    return (row + 1) * c->apart - 1;
}

/* The row of a sequence; -1: it has no tokens. */
static int64_t row_of(const call *c, int64_t sequence)
{
    return (sequence + 1) % c->apart ? -1 : (sequence + 1) / c->apart - 1;
}

static void copy_vectors(const fpa_field *from, int64_t b, int64_t token, fpa_field *to, int64_t place)
{
    for (int64_t h = 0; h < from->heads; h++)
        for (int64_t i = 0; i < from->entries; i++)
            field_put(to, 0, place, h, i, field_get(from, b, token, h, i));
}

/* Copies a token's inputs except q, as they are in the trial's fields. */
static void copy_token(const fpa_trial *t, int64_t b, int64_t token, fpa_trial *packed, int64_t place)
{
    copy_vectors(&t->k_field, b, token, &packed->k_field, place);
    copy_vectors(&t->v_field, b, token, &packed->v_field, place);
    if (t->head->gate)
        copy_vectors(&t->gate_field, b, token, &packed->gate_field, place);
    if (t->positions)
        copy_vectors(&t->position_field, b, token, &packed->position_field, place);
    if (t->key_mask)
        *tokens_mask_at(packed, 0, place) = *tokens_mask_at(t, b, token);
}

static fpa_status make_field(const call *c, const fpa_field *like, int64_t tokens, fpa_field *field,
                             fpa_error *error)
{
    return field_make(field, c->trial->blocks, like->dtype, c->trial->shape.layout, 1, tokens, like->heads,
                      like->entries, error);
}

static int64_t query_tokens(const call *c)
{
    return c->recent ? c->list.count : c->packed.shape.length;
}

/* The index in q and o of a sequence's token at index `place`. */
static int64_t query_place(const call *c, int64_t sequence, int64_t place)
{
    return c->recent ? sequence : place;
}

static fpa_status make_fields(call *c, const fpa_field *o, fpa_error *error)
{
    const fpa_trial *t = c->trial;
    const int64_t tokens = c->packed.shape.length;
    fpa_status status = make_field(c, &t->q_field, query_tokens(c), &c->packed.q_field, error);
    if (status == FPA_OK)
        status = make_field(c, &t->k_field, tokens, &c->packed.k_field, error);
    if (status == FPA_OK)
        status = make_field(c, &t->v_field, tokens, &c->packed.v_field, error);
    if (status == FPA_OK && t->head->gate)
        status = make_field(c, &t->gate_field, tokens, &c->packed.gate_field, error);
    if (status == FPA_OK)
        status = tokens_place(&c->packed, error);
    return status == FPA_OK ? make_field(c, o, query_tokens(c), &c->o, error) : status;
}

static void pack(call *c)
{
    const fpa_trial *t = c->trial;
    int64_t place = LEAD;
    for (int64_t s = 0; s < c->list.count; s++) {
        const int64_t b = row_of(c, s), from = b < 0 ? 0 : c->from[b], to = b < 0 ? 0 : c->to[b];
        c->list.cu_seqlens[s] = (int32_t)place;
        for (int64_t token = from; token < to; token++, place++) {
            copy_token(t, b, token, &c->packed, place);
            copy_vectors(&t->q_field, b, token, &c->packed.q_field, query_place(c, s, place));
        }
        c->list.cu_seqlens[s + 1] = (int32_t)place;
    }
}

/* The token at which piece n of a row begins; the second piece of long rows is a whole chunk. */
static int64_t cut_of(const fpa_trial *t, int n, int64_t b)
{
    const int64_t length = t->shape.length, chunk = t->facts->chunk > 0 ? t->facts->chunk : 1;
    if (n == 2 && chunk > 1 && cut_of(t, 1, b) + chunk <= length)
        return cut_of(t, 1, b) + chunk;
    const int64_t cut = (n * length + n) / 3 + (n % 3 ? b : 0);
    return n == 3 || cut > length ? length : cut;
}

/* Copies outputs to the trial's layout. */
static void unpack(const call *c, fpa_field *o)
{
    for (int64_t b = 0; b < c->trial->shape.batch; b++) {
        const int64_t first = c->recent ? c->to[b] - 1 : cut_of(c->trial, c->first, b);
        for (int64_t token = first; token < c->to[b]; token++) {
            const int64_t at = c->list.cu_seqlens[sequence_of(c, b)] + token - c->from[b];
            const int64_t place = query_place(c, sequence_of(c, b), at);
            o->stamp = STAMP_NONE;
            for (int64_t h = 0; h < o->heads; h++)
                memcpy(field_at(o, b, token, h, 0), field_at(&c->o, 0, place, h, 0),
                       (size_t)(field_at(o, 0, 0, 0, o->entries) - field_at(o, 0, 0, 0, 0)));
        }
    }
}

/* Whether a token's outputs are still poison. */
static bool is_untouched(const fpa_field *o, int64_t token)
{
    for (int64_t h = 0; h < o->heads; h++)
        if (!field_row_is_poison(o, 0, token, h))
            return false;
    return true;
}

static void check_between(const ragged *r, const call *c)
{
    const int64_t end = c->packed.shape.length;
    bool untouched = true;
    if (r->check->status != FPA_OK)
        return;
    for (int64_t s = 0; c->recent && s < c->list.count; s++)
        untouched = untouched && (row_of(c, s) >= 0 || is_untouched(&c->o, s));
    for (int64_t i = 0; !c->recent && i < LEAD; i++)
        untouched = untouched && is_untouched(&c->o, i);
    for (int64_t i = end - TAIL; !c->recent && i < end; i++)
        untouched = untouched && is_untouched(&c->o, i);
    if (!untouched)
        check_refuse(r->check, "o was written for tokens that belong to no sequence");
    check_guards(r->check, "o", &c->o);
}

/* ---- slots ---- */

/* The slot for the state of sequence s after call n: different for all sequences of a call and of the call before it. */
static int32_t slot_after(const ragged *r, int n, int64_t s)
{
    return (int32_t)((n * r->count + (n ? r->count - 1 - s : s)) % r->slots);
}

static bool slot_is_poison(const ragged *r, int64_t slot)
{
    for (int64_t h = 0; h < r->pool.heads; h++)
        if (!field_row_is_poison(&r->pool, slot, 0, h))
            return false;
    return true;
}

/* Whether two slots have the same numbers; zeros of either sign are equal. */
static bool slots_equal(const ragged *r, int64_t a, int64_t b)
{
    for (int64_t h = 0; h < r->pool.heads; h++)
        if (!field_same_numbers(&r->pool, a, b, h))
            return false;
    return true;
}

/* Checks the pool after call n: all states are in their slots, no other slot was written, and sequences without tokens have copied their
 * states. */
static void check_pool(const ragged *r, int n, const fpa_sequence_list *list)
{
    if (r->check->status != FPA_OK)
        return;
    for (int64_t slot = 0; slot < r->slots; slot++) {
        bool expected = false;
        for (int past = 0; past <= n; past++)
            for (int64_t s = 1; s < r->count; s++)
                expected = expected || slot_after(r, past, s) == slot;
        if (expected == slot_is_poison(r, slot))
            check_refuse(r->check, expected ? "a state was not written to its slot"
                                            : "a slot of the pool that no sequence uses was written");
    }
    for (int64_t s = 2; s < r->count; s += 2) /* sequences without tokens */
        if (list->in && !slots_equal(r, list->in[s], list->out[s]))
            check_refuse(r->check, "a sequence of no tokens changed its state");
    check_guards(r->check, "the pool of states", &r->pool);
}

/* ---- a call ---- */

static void free_call(call *c)
{
    trial_free_fields(&c->packed);
    field_free(&c->o);
    free(c->from);
    free(c->to);
    free(c->list.cu_seqlens);
    free(c->list.in);
    free(c->list.out);
}

/* Makes a call with each row's tokens from cut `first` to cut `last`, or to `end` if that is not 0. */
static void make_call(const ragged *r, int first, int last, int64_t end, call *c)
{
    const fpa_trial *t = r->trial;
    fpa_check *check = r->check;
    const size_t rows = (size_t)t->shape.batch, count = (size_t)r->count;
    int64_t total = LEAD + TAIL, longest = 0;
    *c =
        (call){.trial = t, .apart = r->apart, .list = {.count = r->count}, .first = first, .recent = end > 0};
    trial_without_fields(t, &c->packed);
    c->from = calloc(rows, sizeof *c->from);
    c->to = calloc(rows, sizeof *c->to);
    c->list.cu_seqlens = calloc(count + 1, sizeof *c->list.cu_seqlens);
    c->list.in = calloc(count, sizeof *c->list.in);
    c->list.out = calloc(count, sizeof *c->list.out);
    if (check->status == FPA_OK && !(c->from && c->to && c->list.cu_seqlens && c->list.in && c->list.out))
        check->status = fail_memory(check->error);
    if (check->status != FPA_OK)
        return;
    for (int64_t b = 0; b < t->shape.batch; b++) {
        c->from[b] = trial_behind_state(t, cut_of(t, first, b));
        c->to[b] = end ? end : cut_of(t, last, b);
        total += c->to[b] - c->from[b];
        longest = c->to[b] - c->from[b] > longest ? c->to[b] - c->from[b] : longest;
    }
    c->packed.shape.batch = 1;
    c->packed.shape.length = total;
    /* callers may know the longest sequence, or only the total */
    c->list.longest = last % 2 ? total : longest;
    if (end)
        c->list.recent = longest > 1 ? longest - 1 : 1;
    check->status = make_fields(c, &r->o, check->error);
    if (check->status == FPA_OK)
        pack(c);
}

/* An index that means no slot; a GPU also treats one beyond the pool's end so. */
static int32_t no_slot(const ragged *r, int n)
{
    return is_of_gpu(r->trial->facts) && n == 1 ? (int32_t)r->slots : NONE;
}

/* Sets the slots of call n's states. A sequence with an odd number continues from its state of the call before; one with an even number
 * has no tokens and copies the state of the sequence before it. Sequence 0 has no state. */
static void set_slots(const ragged *r, int n, fpa_sequence_list *list)
{
    for (int64_t s = 0; s < list->count; s++) {
        list->in[s] = n == 0 || s == 0 ? no_slot(r, n) : slot_after(r, n - 1, s % 2 ? s : s - 1);
        list->out[s] = s == 0 ? no_slot(r, n) : slot_after(r, n, s);
    }
}

/* Runs a call, and checks that outputs of tokens that belong to no sequence are unchanged. */
static void run_packed(const ragged *r, int n, call *c, fpa_field *state_in, fpa_field *state_out)
{
    fpa_check *check = r->check;
    const fpa_run run = {.form = check->form,
                         .to = c->packed.shape.length,
                         .o = &c->o,
                         .state_in = state_in,
                         .state_out = state_out,
                         .list = &c->list};
    if (check->status != FPA_OK)
        return;
    set_slots(r, n, &c->list);
    check->status = trial_run(&c->packed, check->module, &run, check->error);
    check_between(r, c);
}

/* Call n, from cut `first` to cut `last`. reads, leaves: with initial, with final states. */
static void run_call(ragged *r, int n, int first, int last, bool reads, bool leaves)
{
    call c;
    make_call(r, first, last, 0, &c);
    run_packed(r, n, &c, reads ? &r->pool : NULL, leaves ? &r->pool : NULL);
    if (!reads) {
        free(c.list.in);
        c.list.in = NULL;
    }
    if (leaves)
        check_pool(r, n, &c.list);
    if (r->check->status == FPA_OK)
        unpack(&c, &r->o);
    free_call(&c);
}

/* ---- later tokens ---- */

/* Whether the changed call's outputs before token `edge` of each row equal those in r->o. */
static bool same_before(const ragged *r, const call *c, int64_t edge)
{
    const fpa_field *o = &r->o;
    for (int64_t b = 0; b < r->trial->shape.batch; b++)
        for (int64_t token = c->from[b]; token < c->to[b] && token < edge; token++) {
            const int64_t place = c->list.cu_seqlens[sequence_of(c, b)] + token - c->from[b];
            for (int64_t h = 0; h < o->heads; h++)
                if (memcmp(field_at(o, b, token, h, 0), field_at(&c->o, 0, place, h, 0),
                           (size_t)(field_at(o, 0, 0, 0, o->entries) - field_at(o, 0, 0, 0, 0))) != 0)
                    return false;
        }
    return true;
}

/* Repeats the call of all tokens up to a cut, whose outputs are in r->o, with other or non-finite values from the middle of each sequence
 * on: only later outputs of the same sequence may change. */
static void check_later(const ragged *r, int last)
{
    fpa_check *check = r->check;
    const int64_t edge = (cut_of(r->trial, last, 0) + 1) / 2;
    call c;
    trial_change_future(check->trial, edge);
    make_call(r, 0, last, 0, &c);
    trial_restore(check->trial);
    run_packed(r, 0, &c, NULL, NULL);
    if (check->status == FPA_OK && !same_before(r, &c, edge))
        check_refuse(check, "changing the later tokens of each sequence changed an earlier output");
    free_call(&c);
}

/* ---- states and recent tokens ---- */

/* Decodes with recent tokens: with the states after the first call, and all later tokens up to `end` as recent ones, a different number
 * for each sequence; each sequence's last token is its query. States in slots must not change. */
static void check_query(ragged *r, int64_t end, const fpa_bound *bound)
{
    fpa_check *check = r->check;
    /* on a device later calls show whether states have changed */
    const bool here = !check->module->backend->memory;
    call c;
    make_call(r, 1, 1, end, &c);
    unsigned char *before = here ? malloc(r->pool.size) : NULL;
    if (check->status == FPA_OK && here && !before)
        check->status = fail_memory(check->error);
    if (check->status == FPA_OK && here)
        memcpy(before, r->pool.bytes, r->pool.size);
    run_packed(r, 1, &c, &r->pool, NULL);
    if (check->status == FPA_OK && here && memcmp(before, r->pool.bytes, r->pool.size) != 0)
        check_refuse(check, "a state that must not change was changed");
    if (check->status == FPA_OK)
        unpack(&c, &r->o);
    check_values(check, &r->o, end - 1, end, bound);
    free(before);
    free_call(&c);
}

/* Once with a sequence that has only its query's token, once with more. */
static void check_queries(ragged *r)
{
    fpa_check *check = r->check;
    const fpa_trial *t = r->trial;
    const fpa_form_index form = check->form;
    const char *const how = check->how;
    const int64_t most = cut_of(t, 1, t->shape.batch - 1), ends[] = {most + 1, most + 6};
    if (!check->module->decodes_recent || !(t->facts->forms & 1 << FORM_RECURRENT))
        return;
    check->form = FORM_RECURRENT;
    check->how = " (recent tokens of sequences of different lengths)";
    const fpa_bound bound = handover_bound(check, form);
    for (int i = 0; i < 2; i++)
        if (ends[i] <= t->shape.length)
            check_query(r, ends[i], &bound);
    check->form = form;
    check->how = how;
}

/* ---- sequences of one length ---- */

static void run_equal(ragged *r)
{
    const fpa_trial *t = r->trial;
    const int64_t cut = t->shape.length / 2;
    int32_t slots[t->shape.batch], none[t->shape.batch];
    fpa_sequence_list first = {.count = t->shape.batch, .in = none, .out = slots};
    fpa_sequence_list second = {.count = t->shape.batch, .in = slots, .out = none};
    for (int64_t b = 0; b < t->shape.batch; b++) {
        slots[b] = (int32_t)(r->slots - 1 - 2 * b);
        none[b] = NONE;
    }
    fpa_run run = {.to = cut, .o = &r->o, .state_in = &r->pool, .state_out = &r->pool, .list = &first};
    check_run(r->check, run);
    run.from = cut;
    run.to = t->shape.length;
    run.list = &second;
    check_run(r->check, run);
    for (int64_t slot = 0; r->check->status == FPA_OK && slot < r->slots; slot++)
        if (slot_is_poison(r, slot) ==
            ((r->slots - 1 - slot) % 2 == 0 && r->slots - 1 - slot < 2 * t->shape.batch))
            check_refuse(r->check, "states were not written to their slots, or to others, too");
}

/* ---- all calls ---- */

static void check_outputs(const ragged *r, int64_t from)
{
    const fpa_bound bound = handover_bound(r->check, r->check->form);
    check_values(r->check, &r->o, from, r->trial->shape.length, &bound);
    check_guards(r->check, "o", &r->o);
}

/* Without a mask only the last call reads all keys. */
static void run_ragged(ragged *r)
{
    const fpa_head *head = r->trial->head;
    /* first all tokens in one call without states: short sequences may be computed differently then, with other bits */
    run_call(r, 0, 0, 3, false, false);
    check_outputs(r, 0);
    if (head->causal)
        check_later(r, 3);
    run_call(r, 0, 0, 1, false, true);
    if (head->causal && !head->window)
        check_queries(r);
    run_call(r, 1, 1, 2, true, true);
    run_call(r, 2, 2, 3, true, false);
    check_outputs(r, head->causal ? 0 : cut_of(r->trial, 2, r->trial->shape.batch - 1));
}

/* Runs with more sequences than a warp has lanes, and on a device than a block has threads, as far as memory suffices for a copy of each
 * one's state. */
static void run_many(ragged *r)
{
    enum { LANES = 32, THREADS = 512, ELEMENTS = 20000000 };
    const int64_t most = (r->check->module->backend->memory ? THREADS : LANES) + 8,
                  room = ELEMENTS / (r->trial->facts->state_elements * r->trial->shape.heads + 1),
                  all = room < most ? room : most, apart = r->apart, count = r->count;
    if (all / r->trial->shape.batch <= apart)
        return;
    r->apart = all / r->trial->shape.batch;
    r->count = r->apart * r->trial->shape.batch + 1;
    run_call(r, 0, 0, 3, false, false);
    check_outputs(r, 0);
    r->apart = apart;
    r->count = count;
}

void check_ragged(fpa_check *c)
{
    const fpa_trial *t = c->trial;
    ragged r = {.check = c, .trial = t, .apart = 2, .count = 2 * t->shape.batch + 1};
    r.slots = 2 * r.count + 3;
    check_make_output(c, &r.o);
    check_make_states(c, LAYOUT_PADDED, r.slots, &r.pool);
    c->how = " (sequences of different lengths)";
    if (c->status == FPA_OK)
        run_ragged(&r);
    c->how = " (many sequences of no tokens beside others)";
    field_poison(&r.o);
    if (c->status == FPA_OK && t->shape.checks & CHECK_MANY)
        run_many(&r);
    c->how = " (states in slots of a pool)";
    if (c->status == FPA_OK) {
        field_poison(&r.o);
        field_poison(&r.pool);
        run_equal(&r);
    }
    check_outputs(&r, t->head->causal ? 0 : t->shape.length / 2);
    c->how = "";
    field_free(&r.o);
    field_free(&r.pool);
}
