#include "parts.h"

#include <math.h>

/* ---- packing ---- */

/* Counts coordinates that are packed one by one: a load, a product and a store each. bf16 takes a shift and a move
 * more, f16 also comparisons. */
static void count_numbers(const fpa_counting *to, double count)
{
    const fpa_dtype dtype = to->plan->head->dtype;
    const double conversion = dtype == FPA_F32 ? 0 : dtype == FPA_BF16 ? 2 : 9;
    counting_once(to, (fpa_cpu_loop){.name = "pack",
                                     .runs = count,
                                     .narrow.arithmetic = 1,
                                     .narrow.loads = 1,
                                     .narrow.stores = 1,
                                     .others = 1 + conversion});
}

/* Operations that convert a vector of the storage type to float, or float to the storage type
 * (templates/c/storage.c.in). */
static double reading_operations(const fpa_plan *plan)
{
    const fpa_dtype dtype = plan->head->dtype;
    return dtype == FPA_F32 ? 0 : dtype == FPA_BF16 || plan->c.converts ? 1 : 9;
}

static double writing_operations(const fpa_plan *plan)
{
    const fpa_dtype dtype = plan->head->dtype;
    return dtype == FPA_F32 ? 0 : plan->c.converts ? 1 : dtype == FPA_BF16 ? 9 : 19;
}

/* Counts the packing of a panel's coordinates: squares of 32-bit words are transposed, each word a coordinate or
 * two of 16 bits; the rest one by one. */
static void count_coordinates(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const int d = head_width(plan->written), numbers = plan->head->dtype == FPA_F32 ? 1 : 2;
    int lanes = counting_lanes(plan);
    while (lanes * numbers > d)
        lanes /= 2;
    const bool turned = lanes >= 4; /* templates/c/helpers.c.in: square_lanes */
    const int squares = turned ? (d + lanes * numbers - 1) / (lanes * numbers) : 0;
    const int groups = turned ? tokens / lanes : 0;
    const double rows = lanes * numbers, each = 1 + reading_operations(plan);
    const fpa_cpu_operations square = {
        .arithmetic = rows * each, .shuffles = lanes * log2(lanes), .loads = lanes, .stores = rows};
    fpa_cpu_loop loop = {.name = "transpose", .runs = (double)groups * squares, .others = lanes};
    if (lanes == counting_lanes(plan))
        loop.step = square;
    else
        loop.narrow = square;
    counting_once(to, loop);
    count_numbers(to, (double)(tokens - groups * lanes) * d);
}

static void count_projection(const fpa_counting *to, const fpa_matrix *matrix, int count)
{
    const fpa_plan *plan = to->plan;
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL) {
        counting_once(to, (fpa_cpu_loop){.name = "project",
                                         .runs = (double)matrix->rows * count / counting_lanes(plan),
                                         .step.arithmetic = 1,
                                         .step.loads = 2,
                                         .step.stores = 1,
                                         .others = 3});
        return;
    }
    counting_projection(to, "project", matrix, count);
}

static double pair_rows_of_dots(const fpa_plan *plan)
{
    double rows = 0;
    for (int i = 0; i < plan->score->dot_count; i++)
        rows += (plan->dots[i].row_count + 1) / 2; // NOLINT(bugprone-integer-division): whole pairs
    return rows;
}

/* Counts the rows that are computed from coordinates. */
static void count_rows(const fpa_counting *to, int count)
{
    const fpa_plan *plan = to->plan;
    if (plan->written->lift)
        parts_lift(to, count);
    for (int i = 0; i < plan->projection_count; i++)
        count_projection(to, &plan->head->matrices[plan->projections[i].matrix], count);
    counting_once(to, (fpa_cpu_loop){.name = "weights of rows",
                                     .runs = (double)plan->weighted_count * count / counting_lanes(plan),
                                     .step.arithmetic = 3,
                                     .step.loads = 1,
                                     .step.stores = 1,
                                     .others = 1});
}

void parts_pack_queries(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    if (tokens < plan->c.tokens) /* a partial panel is cleared first */
        counting_once(to, (fpa_cpu_loop){.name = "clear",
                                         .runs = plan->row_count * counting_vectors(plan, plan->c.tokens),
                                         .step.stores = 1});
    count_coordinates(to, tokens);
    count_rows(to, counting_whole_vectors(plan, tokens));
    if (plan->c.pairs)
        counting_pairing(to, "pairs of rows", 2 * pair_rows_of_dots(plan),
                         counting_vectors(plan, plan->c.tokens));
}

/* Counts the running products of gates; each token needs the product of the token before. */
static void count_gates(const fpa_counting *to, int tokens)
{
    /* per token: two products with those of the token before, an exp, five stores */
    counting_once(to, (fpa_cpu_loop){.name = "gates", .runs = tokens, .exponentials = 1});
    counting_once(to,
                  (fpa_cpu_loop){.name = "gates", .runs = 2.0 * tokens, .narrow.stores = 2.5, .chain = 1});
}

static void count_scaled_rows(const fpa_counting *to, const char *name, double rows)
{
    const double parts = counting_row_vectors(to->plan), rests = counting_row_rests(to->plan);
    counting_once(to, (fpa_cpu_loop){.name = name,
                                     .runs = rows,
                                     .step = {.arithmetic = parts, .loads = parts, .stores = parts},
                                     .narrow = {.arithmetic = rests, .loads = rests, .stores = rests},
                                     .others = 6});
}

/* Operations to convert a row of values from or to the storage type: whole vectors here, narrower ones in
 * stored_rest. */
static fpa_cpu_operations stored_row(const fpa_plan *plan, double operations)
{
    const double parts = counting_row_vectors(plan);
    return (fpa_cpu_operations){
        .arithmetic = parts * operations, .shuffles = parts, .loads = parts, .stores = parts};
}

static fpa_cpu_operations stored_rest(const fpa_plan *plan, double operations)
{
    const int lanes = counting_lanes(plan);
    const double parts = tile_vectors(plan->head->dv, lanes) - counting_row_vectors(plan);
    return (fpa_cpu_operations){
        .arithmetic = parts * operations, .shuffles = parts, .loads = parts, .stores = parts};
}

/* Counts pairs of two rows of values that are interleaved as stored, without conversion. */
static void count_value_pairs(const fpa_counting *to, int tokens)
{
    const double parts = counting_vectors(to->plan, to->plan->head->dv);
    counting_once(
        to, (fpa_cpu_loop){
                .name = "values",
                .runs = ceil(tokens / 2.0),
                .step = {.arithmetic = 2 * parts, .shuffles = 2 * parts, .loads = 2 * parts, .stores = parts},
                .others = 6});
}

/* The same with factors of decay. */
static void count_decayed_pairs(const fpa_counting *to)
{
    const double parts = counting_vectors(to->plan, to->plan->head->dv);
    counting_once(to, (fpa_cpu_loop){.name = "decay of values",
                                     .runs = to->plan->c.tokens / 2.0,
                                     .step = {.arithmetic = 4 * parts,
                                              .shuffles = parts,
                                              .roundings = parts,
                                              .loads = parts,
                                              .stores = parts},
                                     .others = 6});
}

static void count_values(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const double numbers = (double)tokens * plan->head->dv;
    if (plan->head->dtype == FPA_F32)
        counting_once(to, (fpa_cpu_loop){.name = "values",
                                         .runs = numbers / counting_lanes(plan),
                                         .step = {.loads = 1, .stores = 1},
                                         .others = 1});
    else
        counting_once(to, (fpa_cpu_loop){.name = "values", /* widened, and converted to float */
                                         .runs = tokens,
                                         .step = stored_row(plan, reading_operations(plan)),
                                         .narrow = stored_rest(plan, reading_operations(plan)),
                                         .others = 4});
}

void parts_pack_given(const fpa_counting *to, int tokens)
{
    count_coordinates(to, tokens);
    count_values(to, tokens);
}

void parts_pack_exact(const fpa_counting *to, int tokens)
{
    parts_pack_queries(to, tokens);
    count_values(to, tokens);
    if (to->plan->head->gate)
        count_gates(to, tokens);
}

static void count_decayed_features(const fpa_counting *to)
{
    const double count = counting_vectors(to->plan, to->plan->c.tokens);
    counting_loop(to, (fpa_cpu_loop){.name = "decay of features",
                                     .runs = count,
                                     .steps = (double)to->plan->features,
                                     .step = {.arithmetic = 1, .loads = 1, .stores = 1},
                                     .others = 2,
                                     .first = 2});
}

void parts_pack_keys(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    parts_pack_queries(to, tokens);
    (plan->c.pairs ? count_value_pairs : count_values)(to, tokens);
    if (!plan->head->gate)
        return;
    count_gates(to, tokens);
    if (plan->c.pairs)
        count_decayed_pairs(to);
    else if (plan->c.decays_features)
        count_decayed_features(to);
    else
        count_scaled_rows(to, "decay of values", plan->c.tokens);
}

/* ---- the state ---- */

/* Features that are formed in pairs, without a panel of floats (templates/c/tile_pairs.c.in). */
static double formed_in_pairs(const fpa_plan *plan)
{
    return plan->c.pairs && plan->c.unrolled ? plan->c.forming.features : 0;
}

/* Counts forming all features for `count` vectors of tokens, as panels. pairs: those that are formed in pairs take
 * so many shuffles each. */
static void count_forms(const fpa_counting *to, double count, bool pairs, double shuffles)
{
    const fpa_forming *f = to->forming;
    const bool table = !to->plan->c.unrolled;
    const double halves = pairs ? formed_in_pairs(to->plan) / 2 : 0;
    const double runs = (table ? f->pieces : f->tiles) * count, each = fmax(table ? f->pieces : f->tiles, 1);
    counting_once(to, (fpa_cpu_loop){.name = "features",
                                     .runs = runs,
                                     /* a weight takes one selection by bits */
                                     .step.arithmetic = (f->products + f->weights) / each,
                                     .step.loads = f->loads / each,
                                     .step.shuffles = halves * shuffles / each,
                                     .step.roundings = halves / each,
                                     .step.stores = (halves > 0 ? halves : f->features) / each,
                                     .others = table ? 12 : 6});
}

/* Counts the sums of features for the normaliser: of queries, features times z; of keys, over all tokens
 * (tile_numbers.c.in). */
static void count_query_sums(const fpa_counting *to, double count)
{
    if (counting_normalizes(to->plan))
        counting_loop(to, (fpa_cpu_loop){.name = "sums of queries",
                                         .runs = count * to->plan->c.tile_count,
                                         .steps = counting_steps(to->plan, (double)to->plan->features /
                                                                               to->plan->c.tile_count),
                                         .step.multiply_adds = 1,
                                         .step.loads = 2,
                                         .others = 3,
                                         .chain = 1,
                                         .first = 1,
                                         .last = 1});
}

static void count_key_sums(const fpa_counting *to, double count)
{
    if (counting_normalizes(to->plan))
        counting_once(to, (fpa_cpu_loop){.name = "sums of keys",
                                         .runs = (double)to->plan->features,
                                         .step.arithmetic = count + 4,
                                         .step.shuffles = 2 * log2(counting_lanes(to->plan)),
                                         .step.loads = count * (to->plan->head->gate ? 2 : 1) + 1,
                                         .step.stores = 1,
                                         .others = 6});
}

void parts_read_state(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const double tiles = plan->c.tile_count, count = counting_vectors(plan, tokens);
    count_forms(to, count, true, 1);
    if (plan->c.pairs)
        counting_pairing(to, "pairs of features", (double)plan->features - formed_in_pairs(plan), count);
    counting_product(to, (fpa_product){.name = "query",
                                       .rows = counting_whole_rows(tokens, plan->c.values),
                                       .columns = plan->head->dv,
                                       .tile = plan->c.values,
                                       .steps = counting_steps(plan, (double)plan->features / tiles),
                                       .times = tiles,
                                       .fetches = true});
    count_query_sums(to, count);
}

/* Counts updates: tiles, by the rows that remain when they are divided into register tiles. */
static void count_updates(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const int rows = plan->c.values.rows;
    fpa_product p = {.name = "update",
                     .columns = plan->head->dv,
                     .tile = plan->c.values,
                     .steps = counting_steps(plan, tokens),
                     .rows = rows,
                     .times = to->forming->register_tiles[0]};
    counting_product(to, p);
    for (p.rows = 1; p.rows < rows; p.rows++) {
        p.times = to->forming->register_tiles[p.rows];
        counting_product(to, p);
    }
}

void parts_write_state(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const int lanes = counting_lanes(plan) * (plan->c.pairs ? 2 : 1);
    const double count = ceil((double)tokens / lanes) * (plan->c.pairs ? 2 : 1); /* vectors of floats */
    count_forms(to, count, true, 0);
    if (plan->c.pairs)
        counting_once(to, (fpa_cpu_loop){.name = "pairs of tokens",
                                         .runs = ((double)plan->features - formed_in_pairs(plan)) * count / 2,
                                         .step.loads = 2,
                                         .step.roundings = 1,
                                         .step.stores = 1,
                                         .others = 3});
    count_updates(to, tokens);
    count_key_sums(to, count);
}

void parts_pair_state(const fpa_counting *to)
{
    const fpa_plan *plan = to->plan;
    if (plan->c.pairs)
        counting_pairing(to, "pairs of the state", (double)plan->features,
                         counting_vectors(plan, plan->head->dv));
}

void parts_clear_state(const fpa_counting *to)
{
    counting_once(to, (fpa_cpu_loop){.name = "clear",
                                     .runs = counting_state_bytes(to->plan) / 4 / counting_lanes(to->plan),
                                     .step.stores = 1});
}

/* ---- outputs ---- */

static void count_outputs(const fpa_counting *to, const char *name, double loads, double sums)
{
    counting_once(to, (fpa_cpu_loop){.name = name,
                                     .runs = counting_outputs_bytes(to->plan) / 4 / counting_lanes(to->plan),
                                     .step.arithmetic = sums,
                                     .step.loads = loads,
                                     .step.stores = 1,
                                     .others = 2});
}

void parts_clear_outputs(const fpa_counting *to)
{
    count_outputs(to, "clear", 0, 0);
}

void parts_add_outputs(const fpa_counting *to)
{
    count_outputs(to, "slices", 2, 1);
}

void parts_decay_outputs(const fpa_counting *to)
{
    count_scaled_rows(to, "decay of outputs", to->plan->c.tokens);
}

void parts_store_outputs(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const double parts = counting_row_vectors(plan), rests = counting_row_rests(plan),
                 scaled = counting_normalizes(plan);
    if (plan->head->dtype == FPA_F32)
        counting_once(to, (fpa_cpu_loop){
                              .name = "store",
                              .runs = tokens,
                              .step = {.arithmetic = scaled * parts, .loads = parts, .stores = parts},
                              .narrow = {.arithmetic = scaled * (rests + 2), .loads = rests, .stores = rests},
                              .others = 8});
    else
        counting_once(to, (fpa_cpu_loop){.name = "store", /* rounded, and converted to the storage type */
                                         .runs = tokens,
                                         .step = stored_row(plan, writing_operations(plan) + scaled),
                                         .narrow = stored_rest(plan, writing_operations(plan) + scaled),
                                         .others = 4});
}

/* ---- the recurrent form ---- */

static void count_token_pack(const fpa_counting *to, int queries, double count)
{
    const fpa_plan *plan = to->plan;
    counting_once(
        to, (fpa_cpu_loop){.name = "clear", .runs = plan->row_count + parts_lift_rows(plan), .calls = 1});
    count_numbers(to, (double)(1 + queries) * head_width(plan->written));
    count_rows(to, (int)count * counting_lanes(plan));
}

/* Counts one pass over the state: adding a token to it takes one multiply-add per vector, the first query another
 * one. */
static void count_state(const fpa_counting *to, int queries, double set, bool enters)
{
    const fpa_plan *plan = to->plan;
    const double parts = counting_row_vectors(plan), rests = counting_row_rests(plan), first = enters ? 2 : 1;
    const double row = counting_state_bytes(plan) / (double)plan->features;
    const double decayed = plan->head->gate && enters;
    counting_once(to, (fpa_cpu_loop){.name = "state",
                                     .runs = (double)plan->features,
                                     .step = {.multiply_adds = first * parts,
                                              .arithmetic = decayed * parts,
                                              .broadcasts = first,
                                              .loads = parts,
                                              .stores = enters * parts},
                                     .narrow = {.multiply_adds = first * rests,
                                                .arithmetic = decayed * rests,
                                                .loads = rests,
                                                .stores = enters * rests},
                                     .others = 5,
                                     .come = row,
                                     .gone = enters * row,
                                     .set = set,
                                     .chain = 1});
    counting_once(to, (fpa_cpu_loop){.name = "state, more queries",
                                     .runs = (double)plan->features * fmax(0, queries - 1),
                                     .step = {.multiply_adds = parts, .broadcasts = 1, .loads = parts},
                                     .narrow = {.multiply_adds = rests, .loads = rests},
                                     .others = 4,
                                     .chain = 1});
}

/* Counts sums of features, which are in memory from one feature to the next. */
static void count_token_sums(const fpa_counting *to, double count)
{
    if (counting_normalizes(to->plan))
        counting_once(to, (fpa_cpu_loop){.name = "sums",
                                         .runs = (double)to->plan->features,
                                         .step.multiply_adds = count,
                                         .step.arithmetic = 1,
                                         .step.loads = 2 + 2 * count,
                                         .step.stores = 1 + count,
                                         .others = 5,
                                         .chain = 1,
                                         .forwards = 1});
}

void parts_token(const fpa_counting *to, int queries, double share, double set, bool enters)
{
    const fpa_plan *plan = to->plan;
    const double count = counting_vectors(plan, queries + 1);
    fpa_counting mine = *to;
    mine.times *= share;
    count_token_pack(to, queries, count);
    count_forms(&mine, count, false, 0);
    count_state(&mine, queries, set, enters);
    count_token_sums(&mine, count);
    counting_once(to, (fpa_cpu_loop){.name = "slices",
                                     .runs = plan->c.slice_count * queries *
                                             (counting_row_vectors(plan) + counting_row_rests(plan)),
                                     .step.arithmetic = 1,
                                     .step.loads = 2,
                                     .step.stores = 2,
                                     .others = 3});
    if (plan->head->gate)
        count_gates(to, 1);
    parts_store_outputs(to, queries);
}
