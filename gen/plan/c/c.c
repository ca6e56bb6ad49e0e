/* Chooses the sizes of C kernels: tiles, slices, panels, chunk and crossover, by the seconds of the cost model
 * (work.h). */
#include "c.h"

#include "counting.h"
#include "gen/plan/features.h"
#include "work.h"

enum {
    /* tokens of a panel: a multiple of a register tile's 6 rows and of the lanes of every vector; twice as many
     * for pairs of bf16 */
    PANEL = 48,
    TILE = 48, /* features of a tile: with fewer, products load and store their sums after too few steps */
    /* the most features that are unrolled, a line of code each: a few seconds of compile time */
    UNROLL_LIMIT = 4096,
    /* the fewest features of a slice: with fewer, adding up the slices' parts of outputs costs too much */
    SLICE_FEATURES = 200,
    MAX_SLICES = 8,
    UNIT_TOKENS = 192, /* queries of a unit of the parallel form; twice as many for pairs of bf16 */
    /* a unit may have up to 4 times as many queries, if packing keys takes much of the time */
    MOST_UNITS = 4,
    MAX_ABREAST = 64, /* the most heads that a thread processes by turns */
    /* tokens of a chunk: a thread's workspace grows with them; twice as many for pairs of bf16 */
    MAX_CHUNK = 768,
};

/* a panel is replaced only if that saves this part of the seconds, about twice the median error of work_cost */
static const double WORTH = 0.05;

/* Chooses what does not depend on a panel's tokens. */
static void choose_sizes(fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    fpa_c_plan *c = &plan->c;
    c->pairs = plan->target->pairs && head->dtype == FPA_BF16 && head->dv >= plan->target->vector;
    c->converts = head->dtype == FPA_F16 ? plan->target->converts : c->pairs;
    c->decays_features =
        head->gate && head->causal && !plan->written->window && !c->pairs && plan->features < head->dv;
    c->unrolled = plan->features <= UNROLL_LIMIT;
    c->tile_features = TILE;
}

/* The register tile of scores that are used in registers, without a panel of dot products in memory. That is
 * possible with one dot product, whose polynomial is evaluated on its sum; or if each dot product occurs in one
 * monomial: then one set of registers holds the sum of a dot, another one the monomial's product, and the sum of
 * monomials is in memory. */
static fpa_register_tile choose_whole_scores(const fpa_plan *plan, const fpa_cpu *cpu)
{
    const fpa_score *score = plan->score;
    for (int i = 0; score->dot_count > 1 && i < score->dot_count; i++) {
        int monomials = 0;
        for (int m = 0; m < score->monomial_count; m++)
            monomials += score->monomials[m].power[i] > 0;
        if (monomials != 1)
            return (fpa_register_tile){0};
    }
    if (!score->dot_count || plan->written->window)
        return (fpa_register_tile){0};
    return tile_choose_sets(cpu, plan->target->vector, plan->c.tokens, score->dot_count > 1 ? 2 : 1);
}

/* Sets a panel's tokens, and the register tiles that follow from them. The plan's tiles of features are already
 * known. */
static void set_panel(fpa_plan *plan, int tokens)
{
    fpa_c_plan *c = &plan->c;
    const fpa_cpu *cpu = cpu_of_target(plan->target);
    const int unit = UNIT_TOKENS * (c->pairs ? 2 : 1);
    c->tokens = tokens;
    c->query_blocks = c->shared_blocks = unit / tokens;
    c->values = tile_choose_even(cpu, plan->target->vector, plan->head->dv, tokens, c->pairs);
    c->scores = tile_choose(cpu, plan->target->vector, tokens, tokens, c->pairs);
    c->whole_scores = choose_whole_scores(plan, cpu);
    c->forming = forming_count(plan);
}

static fpa_status place_tiles(fpa_plan *plan, fpa_error *error)
{
    fpa_c_plan *c = &plan->c;
    c->tiles = arena_array(&plan->memory, plan->piece_count, sizeof *c->tiles);
    if (!c->tiles)
        return fail_memory(error);
    for (int i = 0; i < plan->piece_count; i++) {
        const fpa_piece *piece = &plan->pieces[i];
        fpa_tile *tile = c->tile_count ? &c->tiles[c->tile_count - 1] : NULL;
        if (!tile || tile->features + piece->width > c->tile_features) {
            tile = &c->tiles[c->tile_count++];
            *tile = (fpa_tile){.feature = piece->feature, .piece = i};
        }
        tile->features += piece->width;
        tile->piece_count++;
    }
    return FPA_OK;
}

/* Divides the tiles into slices. Their number is a power of two, so that teams of 2, 4 and 8 threads have equal
 * shares. */
static fpa_status place_slices(fpa_plan *plan, fpa_error *error)
{
    fpa_c_plan *c = &plan->c;
    int count = 1;
    while (count < MAX_SLICES && 2 * count <= c->tile_count &&
           plan->features >= 2 * count * (int64_t)SLICE_FEATURES)
        count *= 2;
    c->slice_count = count;
    c->slices = arena_array(&plan->memory, c->slice_count + 1, sizeof *c->slices);
    if (!c->slices)
        return fail_memory(error);
    for (int s = 0; s <= c->slice_count; s++)
        c->slices[s] = (int)((int64_t)c->tile_count * s / c->slice_count);
    return FPA_OK;
}

/* ---- choices by seconds ---- */

/* Seconds of an additional chunk of one head, by a team of `threads`. */
static double chunk_seconds(const fpa_plan *plan, const fpa_cpu *cpu, int form, int chunk, int threads)
{
    fpa_call_size size = {
        .form = form, .batch = 1, .length = 2 * (int64_t)chunk, .query_heads = 1, .heads = 1};
    const double both = work_cost(plan, chunk, cpu, &size, threads).seconds;
    size.length = chunk;
    return both - work_cost(plan, chunk, cpu, &size, threads).seconds;
}

/* Seconds of a chunk of three heads on two threads: first each thread has a head, then they share the third one;
 * or, if sharing takes longer, one thread computes it. *shared: whether they share it. */
static double step_seconds(const fpa_plan *plan, const fpa_cpu *cpu, int form, int step, bool *shared)
{
    const double alone = chunk_seconds(plan, cpu, form, step, 1),
                 both = chunk_seconds(plan, cpu, form, step, 2);
    *shared = both < alone;
    return alone + (*shared ? both : alone);
}

/* Chooses the chunk, that of the head or the whole number of panels with the fewest seconds per token, and whether
 * teams of threads share a head in the chunked and the recurrent form. Returns the seconds per token. */
static double choose_chunk(fpa_plan *plan, const fpa_cpu *cpu)
{
    const int panel = plan->c.tokens, fixed = plan->head->chunk, most = MAX_CHUNK * (plan->c.pairs ? 2 : 1);
    double least = 0;
    bool by_chunk = false, by_token = false;
    plan->chunk = 0;
    plan->c.team_by_chunk = plan->c.team_by_token = true;
    for (int chunk = fixed ? fixed : panel; chunk <= (fixed ? fixed : most); chunk += panel) {
        bool shared;
        const double seconds = step_seconds(plan, cpu, FORM_CHUNKED, chunk, &shared) / chunk;
        if (plan->chunk && seconds >= least)
            continue;
        plan->chunk = chunk;
        least = seconds;
        by_chunk = shared;
    }
    step_seconds(plan, cpu, FORM_RECURRENT, 1, &by_token);
    plan->c.team_by_chunk = by_chunk;
    plan->c.team_by_token = by_token;
    return least;
}

/* Whether a panel's register tiles have more sums than multiply-adds are in flight, or at least as many as those
 * of the usual panel, whose rows have more divisors. The cost model does not see how long sums wait for each other
 * if they are just enough. */
static bool keeps_busy(const fpa_plan *plan, const fpa_cpu *cpu, int tokens, int usual)
{
    const int lanes = plan->target->vector, dv = plan->head->dv;
    const fpa_register_tile tile = tile_choose_even(cpu, lanes, dv, tokens, plan->c.pairs),
                            other = tile_choose_even(cpu, lanes, dv, usual, plan->c.pairs);
    const int sums = tile.rows * tile.vectors;
    return sums > cpu->latency * cpu->multiply_adds || sums >= other.rows * other.vectors;
}

/* Chooses panel and chunk: the usual panel, or a smaller one if that saves more than the cost model's error.
 * Smaller panels have fewer pairs inside a chunk, which matters if features are few. */
static void choose_panel(fpa_plan *plan, const fpa_cpu *cpu)
{
    static const int smaller[] = {16, 24, 32};
    const int usual = PANEL * (plan->c.pairs ? 2 : 1);
    set_panel(plan, usual);
    double least = (1 - WORTH) * choose_chunk(plan, cpu);
    int best = usual;
    for (size_t i = 0; i < sizeof smaller / sizeof *smaller; i++) {
        const int tokens = smaller[i] * (plan->c.pairs ? 2 : 1);
        if (tokens % (plan->target->vector * (plan->c.pairs ? 2 : 1)) ||
            !keeps_busy(plan, cpu, tokens, usual))
            continue;
        set_panel(plan, tokens);
        const double seconds = choose_chunk(plan, cpu);
        if (seconds < least) {
            least = seconds;
            best = tokens;
        }
    }
    set_panel(plan, best);
    choose_chunk(plan, cpu);
}

/* Whether the chunked form is faster than the parallel one for a length, with one head on one thread. */
static bool is_sooner_chunked(const fpa_plan *plan, const fpa_cpu *cpu, int64_t length)
{
    fpa_call_size size = {.form = FORM_CHUNKED, .batch = 1, .length = length, .query_heads = 1, .heads = 1};
    const double chunked = work_cost(plan, plan->chunk, cpu, &size, 1).seconds;
    size.form = FORM_PARALLEL;
    return chunked < work_cost(plan, plan->chunk, cpu, &size, 1).seconds;
}

/* The least length for which the chunked form is faster. It is then faster for longer ones, too, since the number
 * of pairs grows with the square of the length. */
static int64_t choose_crossover(const fpa_plan *plan, const fpa_cpu *cpu)
{
    int64_t slower = 0, sooner = 1;
    while (!is_sooner_chunked(plan, cpu, sooner)) {
        slower = sooner;
        sooner *= 2;
    }
    while (sooner - slower > 1) {
        const int64_t middle = slower + (sooner - slower) / 2;
        if (is_sooner_chunked(plan, cpu, middle))
            sooner = middle;
        else
            slower = middle;
    }
    return sooner;
}

/* The most heads that a thread processes by turns, one chunk of each: so many that their states stay in half of
 * the second-level cache, while the other half is for rows of tokens. Heads with a window or without a causal mask
 * are processed one after the other. */
static int choose_abreast(const fpa_plan *plan, const fpa_cpu *cpu)
{
    const double states = cpu->cache[CACHE_SECOND].bytes / 2 / counting_state_bytes(plan);
    const bool one_walk = plan->head->causal && !plan->written->window;
    return !one_walk || states < 2 ? 1 : states < MAX_ABREAST ? (int)states : MAX_ABREAST;
}

/* Chooses the panels of a unit of the parallel form, which packs the keys that it sees once for all of its panels:
 * their number is doubled as long as that saves PART of a long call's time. More panels take more memory. */
static void choose_unit(fpa_plan *plan, const fpa_cpu *cpu)
{
    static const double PART = 0.02;
    fpa_c_plan *c = &plan->c;
    const int most = MOST_UNITS * c->shared_blocks;
    const int64_t length = 4 * (int64_t)most * c->tokens;
    const fpa_call_size size = {
        .form = FORM_PARALLEL, .batch = 1, .length = length, .query_heads = 1, .heads = 1};
    double seconds = work_cost(plan, plan->chunk, cpu, &size, 1).seconds;
    for (int blocks = 2 * c->shared_blocks; blocks <= most; blocks *= 2) {
        const int before = c->query_blocks;
        c->query_blocks = blocks;
        const double now = work_cost(plan, plan->chunk, cpu, &size, 1).seconds;
        if (now > (1 - PART) * seconds) {
            c->query_blocks = before;
            return;
        }
        seconds = now;
    }
}

static void choose_by_seconds(fpa_plan *plan)
{
    const fpa_cpu *cpu = cpu_of_target(plan->target);
    choose_panel(plan, cpu);
    choose_unit(plan, cpu);
    plan->c.abreast = choose_abreast(plan, cpu);
    plan->facts.crossover = choose_crossover(plan, cpu);
}

/* An estimate of the machine code's bytes. A register tile has one instruction of about 10 bytes for each product,
 * and three more for a sum, to clear or load it and to store it. An unrolled feature has a product and a store,
 * and about four times as many bytes in pairs; a piece has a row of the table. */
static double code_bytes(const fpa_plan *plan)
{
    const fpa_c_plan *c = &plan->c;
    const double value_tile = 10.0 * (c->values.rows + 1) * c->values.vectors;
    const double score_tile = 10.0 * (c->scores.rows + 1) * c->scores.vectors;
    const double feature = c->pairs ? 72 : 18;
    double features = c->unrolled ? feature * (double)plan->features : 16.0 * plan->piece_count;
    double matrices = 0;
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_matrix *matrix = &plan->head->matrices[plan->projections[i].matrix];
        matrices += matrix->data ? 4.0 * matrix->rows * matrix->cols : 0;
    }
    for (int m = 0; plan->written->lift && m < plan->written->matrix_count; m++) {
        const fpa_matrix *matrix = &plan->written->matrices[m];
        matrices +=
            matrix->data ? 4.0 * matrix->rows * matrix->cols * (matrix->heads ? matrix->heads : 1) : 0;
    }
    return 4 * (2 * value_tile + (1 + plan->score->dot_count) * score_tile) + features + matrices +
           24 * 1024; /* the code of the forms around these */
}

fpa_status plan_c(fpa_plan *plan, fpa_error *error)
{
    fpa_c_plan *c = &plan->c;
    choose_sizes(plan);
    const fpa_piece_limit whole_tiles = {.most = c->tile_features, .aligned = true};
    fpa_status status = plan_features(plan, c->unrolled ? whole_tiles : PIECES_OF_TABLES, error);
    if (!status)
        status = place_tiles(plan, error);
    if (!status)
        status = place_slices(plan, error);
    if (status)
        return status;
    plan->facts.arithmetic = c->pairs ? FPA_BF16 : FPA_F32;
    choose_by_seconds(plan);
    plan->pair_queries = c->query_blocks * c->tokens;
    /* causal: a chunk's queries and keys read and write the state in one loop; else in two */
    plan->chunk_states = plan->head->causal ? 2 : 3;
    plan->weighs = plan->weighs || !c->unrolled || plan->weighted_count;
    c->code_bytes = code_bytes(plan);
    return FPA_OK;
}

/* Gradients compute the pairs inside a chunk twice, so that chunks are short: one panel if the state fits into a
 * near cache, else two. The panel is the usual one, since seconds are those of the forward pass. */
fpa_status plan_c_backward(fpa_plan *plan, fpa_error *error)
{
    enum { NEAR = 64 << 10 }; /* bytes of a state that stays in a near cache */
    set_panel(plan, plan->c.pairs ? 2 * PANEL : PANEL);
    choose_chunk(plan, cpu_of_target(plan->target));
    plan->pair_queries = plan->c.query_blocks * plan->c.tokens;
    const int most = (4 * plan->features * plan->head->dv > NEAR ? 2 : 1) * plan->c.tokens;
    (void)error;
    plan->chunk = plan->chunk < most ? plan->chunk : most;
    plan->facts.arithmetic = FPA_F32;
    return FPA_OK;
}
