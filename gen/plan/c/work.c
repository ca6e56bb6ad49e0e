#include "work.h"

#include <math.h>

#include "base/round.h"
#include "parts.h"
#include "scores.h"

/* A call while it is counted. */
typedef struct call {
    fpa_counting to;
    const fpa_call_size *size;
    int chunk;
    int64_t queries; /* query heads for each key/value head */
    int team;        /* threads that share one head */
    int unit;        /* panels of queries in a unit of the parallel form */
} call;

/* ---- the chunked form ---- */

/* Panels of a chunk: whole ones, then a partial one of `rest` tokens. */
typedef struct panels {
    int whole, rest;
} panels;

static panels panels_of(const fpa_plan *plan, int64_t tokens)
{
    return (panels){(int)(tokens / plan->c.tokens), (int)(tokens % plan->c.tokens)};
}

static int panel_count(panels of)
{
    return of.whole + (of.rest > 0);
}

static fpa_counting times(const call *c, double count)
{
    fpa_counting to = c->to;
    to.times *= count;
    return to;
}

/* The fraction of `units` equal units that the busiest thread of a team has. */
static double share_of(const call *c, double units)
{
    return ceil(units / c->team) / units;
}

/* Counts a part for each panel. */
static void each_panel(const call *c, panels of, double count, void (*part)(const fpa_counting *, int))
{
    fpa_counting to = times(c, count * of.whole);
    part(&to, c->to.plan->c.tokens);
    to = times(c, count);
    if (of.rest)
        part(&to, of.rest);
}

static void count_pack(const call *c, panels of, double count)
{
    const double shared = count * share_of(c, (double)(c->queries + 1) * panel_count(of));
    each_panel(c, of, shared * (double)c->queries, parts_pack_queries);
    each_panel(c, of, shared, parts_pack_keys);
}

/* Counts products with the state; each slice's part of the outputs is cleared, and the parts are added up
 * afterwards. */
static void count_slices(const call *c, panels of, double reads, double writes)
{
    const double slices = c->to.plan->c.slice_count, share = share_of(c, slices);
    const double outputs = reads * (double)c->queries * panel_count(of);
    each_panel(c, of, share * reads * (double)c->queries, parts_read_state);
    each_panel(c, of, share * writes, parts_write_state);
    fpa_counting to = times(c, share * reads);
    parts_pair_state(&to);
    to = times(c, share * outputs * slices);
    parts_clear_outputs(&to);
    to = times(c, outputs * (slices - 1) / c->team);
    parts_add_outputs(&to);
}

/* Counts pairs with a chunk's own keys. A panel of queries sees all panels of keys before it; panels are
 * distributed so that the threads of a team have about equal work. */
static void count_own(const call *c, panels of, double count)
{
    const int tokens = c->to.plan->c.tokens;
    const double each = count * (double)c->queries * fmax(1.0 / c->team, 1.0 / panel_count(of));
    fpa_counting to = times(c, each * of.whole * (of.whole - 1) / 2);
    scores_full(&to, tokens, tokens);
    to = times(c, each * of.whole);
    if (of.rest)
        scores_full(&to, tokens, of.rest);
    each_panel(c, of, each, scores_diagonal);
    each_panel(c, of, each, parts_store_outputs);
}

/* Panels of keys that the state does not contain yet when a chunk of a head with a window begins; 0 without a
 * window. */
static int lagging_panels(const fpa_plan *plan)
{
    const int window = plan->written->window, tokens = plan->c.tokens;
    return window ? (window - 1 + tokens - 1) / tokens : 0;
}

/* The same for a head with a window, whose keys before the chunk are pairs, too. */
static void count_windows(const call *c, panels of, double count)
{
    const fpa_plan *plan = c->to.plan;
    const double each = count * (double)c->queries * fmax(1.0 / c->team, 1.0 / panel_count(of));
    const double older = lagging_panels(plan);
    fpa_counting to = times(c, each);
    scores_window(&to, scores_window_panels(plan, older + 1, older + of.whole), plan->c.tokens);
    if (of.rest)
        scores_window(&to, scores_window_panels(plan, older + of.whole + 1, older + of.whole + 1), of.rest);
    each_panel(c, of, each, parts_store_outputs);
    to = times(c, count / c->team);
    to.times *= older;
    parts_pack_keys(&to, plan->c.tokens);
}

/* Counts `count` chunks of `tokens`; `reads` of them read the state, and `writes` write it. */
static void count_chunks(const call *c, int64_t tokens, double count, double reads, double writes)
{
    const fpa_plan *plan = c->to.plan;
    if (count <= 0 || tokens <= 0)
        return;
    const panels of = panels_of(plan, tokens);
    const int here = panel_count(of);
    count_pack(c, of, count);
    count_slices(c, of, reads, writes);
    if (plan->written->window)
        count_windows(c, of, count);
    else
        count_own(c, of, count);
    fpa_counting to = times(c, here * (count - reads) * (double)c->queries);
    parts_clear_outputs(&to);
    to = times(c, here * reads * (double)c->queries);
    if (plan->head->gate)
        parts_decay_outputs(&to);
    if (c->team > 1)
        c->to.work->waits += c->to.times * count * (plan->head->gate ? 4 : 3);
}

/* The same for a head without a causal mask: one loop over the keys, then one over the queries. */
static void count_walked(const call *c, int64_t tokens, double count)
{
    if (count <= 0 || tokens <= 0)
        return;
    const panels of = panels_of(c->to.plan, tokens);
    const double reads = c->queries ? count : 0, stored = count * (double)c->queries;
    count_pack(c, of, count);
    count_slices(c, of, reads, count);
    each_panel(c, of, stored * fmax(1.0 / c->team, 1.0 / panel_count(of)), parts_store_outputs);
    if (c->team > 1)
        c->to.work->waits += c->to.times * (2 * count + 3 * reads);
}

/* Counts the bytes that a chunk accesses: its own panels once per tile, and the state once, or once for keys and
 * once for queries. */
static void count_chunk_data(const call *c, double reads, double writes)
{
    const fpa_plan *plan = c->to.plan;
    const double tiles = plan->c.tile_count / (double)c->team, queries = (double)c->queries;
    const double blocks =
        panel_count(panels_of(plan, c->chunk < c->size->length ? c->chunk : c->size->length));
    const double rows = counting_rows_bytes(plan) * blocks,
                 read = counting_read_bytes(&c->to) * blocks / c->team;
    const double values = counting_values_bytes(plan) * blocks * tiles, state = counting_state_bytes(plan);
    const double outputs = counting_outputs_bytes(plan) * blocks * queries * tiles;
    const double panel = 4.0 * plan->c.tokens * plan->c.tile_features;
    const double walked = rows * (1 + queries) + (values + outputs) / tiles + 2 * panel;
    fpa_cpu_work *work = c->to.work;
    /* rows that one thread packs are read by the others; to pack the next chunk, the thread takes these cache
     * lines back; outputs likewise */
    const double shared = (rows * (1 + queries) + (values + outputs) / tiles) * (1 - 1.0 / c->team);
    const double chunks = c->to.times * fmax(reads, writes);
    const double visits = plan->head->causal ? fmax(reads, writes) : writes + (c->queries ? reads : 0);
    reads *= c->to.times, writes *= c->to.times;
    work->exchanged += chunks * 2 * shared;
    cpu_work_data(work, (fpa_cpu_data){"panels of queries", reads * (read * queries + outputs),
                                       reads * outputs, walked});
    cpu_work_data(work, (fpa_cpu_data){"panels of keys",
                                       writes * (read + values * (plan->c.pairs ? 1 / 3.0 : 1)), 0, walked});
    cpu_work_data(work, (fpa_cpu_data){"state", c->to.times * visits * state / c->team,
                                       writes * state / c->team, state + walked});
}

/* Counts reading the caller's q, k and v once, and writing o. */
static void count_operands(const call *c, double share)
{
    const fpa_head *head = c->to.plan->head;
    const fpa_call_size *s = c->size;
    const double tokens = (double)(s->batch * s->length), element = (double)dtype_size(head->dtype);
    const double queries = tokens * (double)s->query_heads * element,
                 keys = tokens * (double)s->heads * element;
    const int width = head_width(c->to.plan->written);
    const double read = queries * width + keys * (width + head->dv), written = queries * head->dv;
    cpu_work_data(c->to.work, (fpa_cpu_data){"operands", share * read, share * written, read + written});
}

static void count_chunked(const call *c)
{
    const fpa_call_size *s = c->size;
    const int64_t whole = s->length / c->chunk, rest = s->length % c->chunk;
    const double first = s->state_in ? 0 : 1, last = s->state_out ? 0 : 1;
    /* 1 if there is a whole chunk; 1 if there is a partial one */
    const double one = whole > 0 ? 1 : 0, tail = rest > 0 ? 1 : 0;
    fpa_counting to = c->to;
    if (!s->state_in)
        parts_clear_state(&to);
    if (!c->to.plan->head->causal) {
        count_walked(c, c->chunk, (double)whole);
        count_walked(c, rest, tail);
        count_chunk_data(c, (double)whole + tail, (double)whole + tail);
        return;
    }
    count_chunks(c, c->chunk, (double)whole, (double)whole - first * one,
                 (double)whole - (rest ? 0 : last * one));
    count_chunks(c, rest, tail, rest && !whole ? 1 - first : tail, 1 - last);
    count_chunk_data(c, (double)whole + tail - first, (double)whole + tail - last);
}

/* ---- the parallel form ---- */

/* Counts the scores of all pairs of panels that see each other, and their products with values. */
static void count_pairs(const call *c, panels of)
{
    const fpa_plan *plan = c->to.plan;
    const int tokens = plan->c.tokens;
    const bool causal = plan->head->causal;
    if (plan->written->window) {
        scores_window(&c->to, scores_window_panels(plan, 1, of.whole), tokens);
        if (of.rest)
            scores_window(&c->to, scores_window_panels(plan, of.whole + 1, of.whole + 1), of.rest);
        return;
    }
    if (causal)
        each_panel(c, of, 1, scores_diagonal);
    fpa_counting to = times(c, causal ? of.whole * (of.whole - 1) / 2.0 : (double)of.whole * of.whole);
    scores_full(&to, tokens, tokens);
    if (!of.rest)
        return;
    to = times(c, of.whole);
    scores_full(&to, tokens, of.rest);
    if (causal)
        return;
    scores_full(&to, of.rest, tokens);
    to = times(c, 1);
    scores_full(&to, of.rest, of.rest);
}

/* Counts packing of keys and values: each unit packs all that it sees, and reads them from memory again. */
static void count_seen_keys(const call *c, panels of)
{
    const fpa_plan *plan = c->to.plan;
    const bool causal = plan->head->causal;
    const int count = panel_count(of), unit = c->unit, tokens = plan->c.tokens;
    double packed = 0;
    for (int first = 0; first < count; first += unit)
        packed += causal && first + unit < count ? first + unit : count;
    const double last =
        of.rest ? (causal ? 1 : ceil((double)count / unit)) : 0; /* units that see the partial panel */
    fpa_counting to = times(c, packed - last);
    parts_pack_keys(&to, tokens);
    to = times(c, last);
    parts_pack_keys(&to, of.rest);
    const double token = (double)dtype_size(plan->head->dtype) * (head_width(plan->written) + plan->head->dv);
    cpu_work_data(c->to.work,
                  (fpa_cpu_data){"keys and values", c->to.times * (packed - count) * tokens * token, 0,
                                 (double)c->size->length * token});
}

/* Counts one (batch, query head): units of query panels, each with all keys that it sees. */
static void count_parallel(const call *c)
{
    const panels of = panels_of(c->to.plan, c->size->length);
    fpa_counting to = times(c, panel_count(of));
    each_panel(c, of, 1, parts_pack_queries);
    count_seen_keys(c, of);
    count_pairs(c, of);
    parts_clear_outputs(&to);
    each_panel(c, of, 1, parts_store_outputs);
    if (!c->size->state_in)
        return;
    each_panel(c, of, 1, parts_read_state);
    parts_pair_state(&to);
    parts_clear_outputs(&to);
    parts_add_outputs(&to);
}

/* ---- the recurrent form ---- */

/* Counts recent tokens, the newest included, which are keys and values outside of the state: panel by panel, for
 * all query heads at once. */
static void count_recent(const call *c)
{
    const int count = (int)c->queries + 1 < c->to.plan->c.tokens ? (int)c->queries + 1 : c->to.plan->c.tokens;
    const panels of = panels_of(c->to.plan, c->size->recent + 1);
    fpa_counting to = times(c, of.whole);
    parts_pack_exact(&to, c->to.plan->c.tokens);
    scores_full(&to, c->to.plan->c.tokens, count);
    to = times(c, of.rest > 0);
    parts_pack_exact(&to, of.rest);
    scores_full(&to, of.rest, count);
}

/* Counts a token's window, for all query heads at once. */
static void count_window(const call *c)
{
    const fpa_plan *plan = c->to.plan;
    const int tokens = plan->c.tokens, window = plan->written->window;
    const int count = (int)c->queries + 1 < tokens ? (int)c->queries + 1 : tokens;
    fpa_counting to = times(c, (double)c->size->length * window / tokens);
    parts_pack_given(&to, tokens);
    scores_window(&to, (fpa_window_panels){.near = 1}, count);
}

static void count_recurrent(const call *c)
{
    const fpa_call_size *s = c->size;
    /* heads that are processed between two passes over a state */
    const double heads = s->length > 1 ? 1 : (double)(s->batch * s->heads);
    fpa_counting to = c->to;
    if (!s->state_in)
        parts_clear_state(&to);
    to = times(c, (double)s->length);
    parts_token(&to, (int)c->queries, share_of(c, c->to.plan->c.slice_count),
                counting_state_bytes(c->to.plan) * heads, s->recent == 0);
    if (c->to.plan->written->window)
        count_window(c);
    else if (s->recent)
        count_recent(c);
    if (c->team > 1)
        c->to.work->waits += to.times;
}

/* ---- threads ---- */

static double units_of(const fpa_plan *plan, const fpa_call_size *size, int unit)
{
    const double heads = (double)(size->batch * size->query_heads);
    return fmax(1, heads * ceil((double)size->length / (unit * plan->c.tokens)));
}

/* Panels of a unit of the parallel form (templates/c/parallel.c.in: unit_panels). */
static int unit_panels(const fpa_plan *plan, const fpa_call_size *size, int threads)
{
    int unit = plan->c.query_blocks;
    while (threads > 1 && unit > plan->c.shared_blocks && units_of(plan, size, unit) < 4 * threads)
        unit /= 2;
    return unit;
}

/* Counts heads in rounds, one head for each thread; the remaining heads are shared by teams
 * (templates/c/entry.c.in: run_heads). */
static void count_heads(const call *all, int threads, bool teams, void (*form)(const call *))
{
    const int64_t heads = all->size->batch * all->size->heads;
    const int64_t alone = teams ? heads / threads : divide_up(heads, threads);
    const int64_t rest = teams ? heads % threads : 0;
    call c = *all;
    c.team = 1;
    c.to.times = (double)alone;
    if (alone)
        form(&c);
    c.team = rest ? (int)(threads / rest) : 1;
    c.to.times = 1;
    if (rest)
        form(&c);
    c.to.work->regions += threads > 1 ? (alone > 0) + (rest > 0) : 0;
}

void work_of_call(const fpa_plan *plan, int chunk, const fpa_call_size *size, int threads, fpa_cpu_work *work)
{
    call c = {.to = counting_begin(plan, work), .size = size, .chunk = chunk, .team = 1};
    c.queries = size->heads ? size->query_heads / size->heads : 0;
    work->threads = threads;
    if (size->form == FORM_PARALLEL) {
        const double heads = (double)(size->batch * size->query_heads);
        c.unit = unit_panels(plan, size, threads);
        const double units = units_of(plan, size, c.unit);
        c.to.times = heads * ceil(units / threads) / units;
        count_parallel(&c);
        work->regions += threads > 1;
        c.queries = 0; /* the chunked form without queries computes the final state */
        if (size->state_out)
            count_heads(&c, threads, plan->c.team_by_chunk, count_chunked);
    } else if (size->form == FORM_CHUNKED) {
        count_heads(&c, threads, plan->c.team_by_chunk, count_chunked);
    } else {
        count_heads(&c, threads, plan->c.team_by_token, count_recurrent);
    }
    count_operands(&c, 1.0 / threads);
}

fpa_cost work_cost(const fpa_plan *plan, int chunk, const fpa_cpu *cpu, const fpa_call_size *size,
                   int threads)
{
    fpa_cpu_work work;
    work_of_call(plan, chunk, size, threads, &work);
    return cpu_cost(cpu, &work);
}

/* ---- candidates ---- */

static const char *refusal(const fpa_plan *plan, const fpa_call_size *size, int form)
{
    if (form != size->form)
        return "another form";
    return form == FORM_RECURRENT && !plan->head->causal ? "the head is not causal" : NULL;
}

int plan_candidates_c(const fpa_plan *plan, const fpa_call_size *size, fpa_candidate *out, int most)
{
    static const char *const names[FORMS] = {
        [FORM_PARALLEL] = "c_parallel", [FORM_CHUNKED] = "c_chunked", [FORM_RECURRENT] = "c_recurrent"};
    int count = 0;
    for (int form = 0; form < FORMS && count < most; form++) {
        fpa_candidate *row = &out[count++];
        *row = (fpa_candidate){.mechanism = names[form], .refused = refusal(plan, size, form), .segments = 1};
        if (!row->refused)
            row->cost = work_cost(plan, plan->chunk, cpu_here(plan->target), size, 1);
    }
    return count;
}
