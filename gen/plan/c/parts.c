#include "parts.h"

#include <math.h>
#include <string.h>

/* ---- sizes ---- */

static int lanes_of(const fpa_plan *plan)
{
    return plan->target->vector;
}

static double vectors(const fpa_plan *plan, int count)
{
    return ceil((double)count / lanes_of(plan));
}

static bool normalizes(const fpa_plan *plan)
{
    return plan->head->normalize != FPA_NORMALIZE_NONE;
}

/* Parts that a row of values is handled in: whole vectors, then narrower ones. */
static double row_vectors(const fpa_plan *plan)
{
    return plan->head->dv / lanes_of(plan); // NOLINT(bugprone-integer-division): whole vectors
}

static double row_rests(const fpa_plan *plan)
{
    double parts = 0;
    for (int bits = plan->head->dv % lanes_of(plan); bits; bits &= bits - 1)
        parts++;
    return parts;
}

double parts_rows_bytes(const fpa_plan *plan)
{
    double rows = plan->row_count;
    for (int i = 0; plan->c.pairs && i < plan->score->dot_count; i++)
        rows += (plan->dots[i].row_count + 1) / 2; // NOLINT(bugprone-integer-division): whole pairs
    return 4.0 * rows * plan->c.tokens;
}

double parts_read_bytes(const fpa_counting *of)
{
    return 4.0 * of->forming.rows * of->plan->c.tokens;
}

double parts_values_bytes(const fpa_plan *plan)
{
    return 4.0 * plan->head->dv * plan->c.tokens * (plan->c.pairs ? 1.5 : 1);
}

double parts_outputs_bytes(const fpa_plan *plan)
{
    return 4.0 * (plan->head->dv + normalizes(plan)) * plan->c.tokens;
}

double parts_state_bytes(const fpa_plan *plan)
{
    return 4.0 * (double)plan->features * (plan->head->dv + normalizes(plan));
}

static void add(const fpa_counting *to, fpa_cpu_loop loop)
{
    loop.runs *= to->times;
    cpu_work_loop(to->work, loop);
}

/* ---- features, counted once ---- */

/* Are the features of a tile consecutive rows as they lie (templates/c/features_unrolled.c.in: rows_of)? */
static bool is_rows(const fpa_plan *plan, const fpa_tile *tile)
{
    const fpa_piece *first = &plan->pieces[tile->piece];
    for (int i = 0; i < tile->piece_count; i++) {
        const fpa_piece *piece = first + i;
        if (piece->prefix_count || piece->weight != 1 ||
            piece->base - first->base != piece->feature - first->feature)
            return false;
    }
    return true;
}

/* Leading factors, the weight counted in, that a piece's prefix has in common with the one before: compilers keep their
 * product. */
static int kept_factors(const fpa_piece *piece, const fpa_piece *before)
{
    if (!before || piece->weight != before->weight)
        return 0;
    int kept = 0;
    while (kept < piece->prefix_count && kept < before->prefix_count &&
           piece->prefix[kept] == before->prefix[kept])
        kept++;
    return kept + (piece->weight != 1);
}

static void count_piece(const fpa_plan *plan, const fpa_piece *piece, const fpa_piece *before, int prefixes,
                        fpa_forming *f)
{
    const bool table = !plan->c.unrolled, weighs = table || piece->weight != 1;
    const double factors = table ? prefixes : piece->prefix_count,
                 kept = table ? 0 : kept_factors(piece, before);
    f->pieces++;
    f->features += piece->width;
    f->weights += weighs && kept == 0;
    f->loads += fmax(0, factors + weighs - kept) + piece->width;
    f->products += fmax(0, factors + weighs - fmax(kept, 1)) + (factors + weighs > 0 ? piece->width : 0);
}

enum { WORD = 64, ROW_WORDS = 1 << 10 }; /* rows' numbers have 16 bits */

static int see_row(uint64_t *seen, int row)
{
    const uint64_t bit = (uint64_t)1 << row % WORD;
    const bool is_new = !(seen[row / WORD] & bit);
    seen[row / WORD] |= bit;
    return is_new;
}

/* Different rows that the features of a tile are made of. */
static double rows_of_tile(const fpa_plan *plan, const fpa_tile *tile)
{
    uint64_t seen[ROW_WORDS];
    double rows = 0;
    memset(seen, 0, sizeof *seen * (size_t)(plan->row_count / WORD + 1));
    for (int i = 0; i < tile->piece_count; i++) {
        const fpa_piece *piece = &plan->pieces[tile->piece + i];
        for (int p = 0; p < piece->prefix_count; p++)
            rows += see_row(seen, piece->prefix[p]);
        for (int w = 0; w < piece->width; w++)
            rows += see_row(seen, piece->base + w);
    }
    return rows;
}

static fpa_forming count_forming(const fpa_plan *plan)
{
    const fpa_c_plan *c = &plan->c;
    fpa_forming f = {0};
    int prefixes = 0;
    for (int i = 0; i < plan->piece_count; i++)
        prefixes = plan->pieces[i].prefix_count > prefixes ? plan->pieces[i].prefix_count : prefixes;
    for (int t = 0; t < c->tile_count; t++) {
        f.rows += rows_of_tile(plan, &c->tiles[t]);
        if (c->unrolled && is_rows(plan, &c->tiles[t]))
            continue;
        f.tiles++;
        const fpa_piece *piece = &plan->pieces[c->tiles[t].piece];
        for (int i = 0; i < c->tiles[t].piece_count; i++)
            count_piece(plan, piece + i, i ? piece + i - 1 : NULL, prefixes, &f);
    }
    return f;
}

fpa_counting parts_begin(const fpa_plan *plan, fpa_cpu_work *work)
{
    *work = (fpa_cpu_work){.threads = 1};
    return (fpa_counting){plan, count_forming(plan), work, 1};
}

/* ---- products ---- */

/* A product of register tiles (templates/c/products.c.in). */
typedef struct product {
    const char *name;
    int rows, columns;      /* of the result; columns in numbers */
    fpa_register_tile tile; /* that it is cut into */
    double steps;           /* of the inner index */
    double times;           /* that it is done */
    bool clears;            /* sums begin with 0, else with what is there */
    bool fetches;           /* asks for the next chunk's rows in between */
} product;

/* One shape of tile: so many vectors of columns, some of them narrow. */
static void count_tiles(const fpa_counting *to, const product *p, int rows, int columns, int narrow,
                        double runs)
{
    const double sums = (double)rows * columns;
    add(to, (fpa_cpu_loop){.name = p->name,
                           .runs = runs * p->times,
                           .steps = p->steps,
                           .step.multiply_adds = (double)rows * (columns - narrow),
                           .step.loads = columns - narrow,
                           .narrow.multiply_adds = (double)rows * narrow,
                           .step.broadcasts = rows,
                           .narrow.loads = narrow,
                           .others = columns + 2 + (p->fetches ? 2 : 0),
                           .chain = 1,
                           .first = p->clears ? 0 : sums,
                           .last = sums});
}

static void count_product(const fpa_counting *to, product p)
{
    const int lanes = lanes_of(to->plan), parts = tile_vectors(p.columns, lanes);
    const int panels = (parts + p.tile.vectors - 1) / p.tile.vectors;
    for (int i = 0; i < panels; i++) {
        const int columns = parts * (i + 1) / panels - parts * i / panels;
        const int narrow = p.columns < lanes ? columns : i == panels - 1 && p.columns % lanes;
        if (p.rows / p.tile.rows)
            count_tiles(to, &p, p.tile.rows, columns, narrow, p.rows / p.tile.rows); // NOLINT: whole tiles
        if (p.rows % p.tile.rows)
            count_tiles(to, &p, p.rows % p.tile.rows, columns, narrow, 1);
    }
}

/* Rows of outputs are whole register tiles. */
static int whole_rows(int tokens, fpa_register_tile tile)
{
    return (tokens + tile.rows - 1) / tile.rows * tile.rows;
}

/* Two steps at once where a plan multiplies pairs. */
static double steps_of(const fpa_plan *plan, double count)
{
    return plan->c.pairs ? ceil(count / 2) : count;
}

/* `rows` rows of `width` numbers, rounded and brought together two by two (templates/c/pairs.c.in: pair_rows). */
static void count_pairing(const fpa_counting *to, const char *name, double rows, double width_vectors)
{
    add(to, (fpa_cpu_loop){.name = name,
                           .runs = rows / 2 * width_vectors,
                           .steps = 1,
                           .step.loads = 2,
                           .step.shuffles = 1,
                           .step.roundings = 1,
                           .step.stores = 1,
                           .others = 4});
}

/* ---- packing ---- */

/* Coordinates one by one: a load, product and store each; bf16 is shifted and moved, f16 compared as well. */
static void count_numbers(const fpa_counting *to, double count)
{
    const fpa_dtype dtype = to->plan->head->dtype;
    const double conversion = dtype == FPA_F32 ? 0 : dtype == FPA_BF16 ? 2 : 9;
    add(to, (fpa_cpu_loop){.name = "pack",
                           .runs = count,
                           .steps = 1,
                           .narrow.arithmetic = 1,
                           .narrow.loads = 1,
                           .narrow.stores = 1,
                           .others = 1 + conversion});
}

/* Tokens of a panel by squares, the rest number by number. */
static void count_coordinates(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const int lanes = lanes_of(plan), d = plan->head->d;
    const int squares = plan->head->dtype == FPA_F32 ? d / lanes : 0, groups = squares ? tokens / lanes : 0;
    add(to, (fpa_cpu_loop){.name = "transpose",
                           .runs = (double)groups * squares,
                           .steps = 1,
                           .step.arithmetic = lanes,
                           .step.shuffles = lanes * log2(lanes),
                           .step.loads = lanes,
                           .step.stores = lanes,
                           .others = lanes});
    const double alone =
        (double)(tokens - groups * lanes) * d + (double)groups * lanes * (squares ? d % lanes : 0);
    count_numbers(to, alone);
}

static void count_projection(const fpa_counting *to, const fpa_matrix *matrix, int count)
{
    const fpa_plan *plan = to->plan;
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL) {
        add(to, (fpa_cpu_loop){.name = "project",
                               .runs = (double)matrix->rows * count / lanes_of(plan),
                               .steps = 1,
                               .step.arithmetic = 1,
                               .step.loads = 2,
                               .step.stores = 1,
                               .others = 3});
        return;
    }
    /* whole panels of tokens are projected, however few are there */
    const int panel = plan->c.scores.vectors * lanes_of(plan);
    const int columns = (count + panel - 1) / panel * panel;
    count_product(to, (product){.name = "project",
                                .rows = matrix->rows,
                                .columns = columns < plan->c.tokens ? columns : plan->c.tokens,
                                .tile = plan->c.scores,
                                .steps = plan->head->d,
                                .times = 1,
                                .clears = true});
}

static double pair_rows_of_dots(const fpa_plan *plan)
{
    double rows = 0;
    for (int i = 0; i < plan->score->dot_count; i++)
        rows += (plan->dots[i].row_count + 1) / 2; // NOLINT(bugprone-integer-division): whole pairs
    return rows;
}

/* Rows that follow from coordinates. */
static void count_rows(const fpa_counting *to, int count)
{
    const fpa_plan *plan = to->plan;
    for (int i = 0; i < plan->projection_count; i++)
        count_projection(to, &plan->head->matrices[plan->projections[i].matrix], count);
    add(to, (fpa_cpu_loop){.name = "weights of rows",
                           .runs = (double)plan->weighted_count * count / lanes_of(plan),
                           .steps = 1,
                           .step.arithmetic = 3,
                           .step.loads = 1,
                           .step.stores = 1,
                           .others = 1});
}

static int whole_vectors(const fpa_plan *plan, int tokens)
{
    return (int)vectors(plan, tokens) * lanes_of(plan);
}

void parts_pack_queries(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    if (tokens < plan->c.tokens) /* a panel that is not full is cleared first */
        add(to, (fpa_cpu_loop){.name = "clear",
                               .runs = plan->row_count * vectors(plan, plan->c.tokens),
                               .steps = 1,
                               .step.stores = 1});
    count_coordinates(to, tokens);
    count_rows(to, whole_vectors(plan, tokens));
    if (plan->c.pairs)
        count_pairing(to, "pairs of rows", 2 * pair_rows_of_dots(plan), vectors(plan, plan->c.tokens));
}

/* exp of a gate and its products; each token's needs the one before. */
static void count_gates(const fpa_counting *to, int tokens)
{
    /* two products with the one before, an exp, five stores */
    add(to, (fpa_cpu_loop){.name = "gates", .runs = tokens, .steps = 1, .exponentials = 1});
    add(to,
        (fpa_cpu_loop){.name = "gates", .runs = 2.0 * tokens, .steps = 1, .narrow.stores = 2.5, .chain = 1});
}

static void count_scaled_rows(const fpa_counting *to, const char *name, double rows)
{
    const double parts = row_vectors(to->plan), rests = row_rests(to->plan);
    add(to, (fpa_cpu_loop){.name = name,
                           .runs = rows,
                           .steps = 1,
                           .step = {.arithmetic = parts, .loads = parts, .stores = parts},
                           .narrow = {.arithmetic = rests, .loads = rests, .stores = rests},
                           .others = 6});
}

/* Compilers take whole vectors of bf16 where a row of values is made of them, of half the width at least; f16 has
 * branches. */
static bool converts_vectors(const fpa_plan *plan)
{
    return plan->head->dtype == FPA_BF16 && plan->head->dv % lanes_of(plan) == 0;
}

void parts_pack_keys(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const double numbers = (double)tokens * plan->head->dv;
    parts_pack_queries(to, tokens);
    if (plan->head->dtype == FPA_F32)
        add(to, (fpa_cpu_loop){.name = "values",
                               .runs = numbers / lanes_of(plan),
                               .steps = 1,
                               .step = {.loads = 1, .stores = 1},
                               .others = 1});
    else if (converts_vectors(plan))
        add(to, (fpa_cpu_loop){.name = "values", /* two vectors of a load of halves: widened, shifted */
                               .runs = numbers / lanes_of(plan) / 2,
                               .steps = 1,
                               .step = {.arithmetic = 2, .shuffles = 3, .loads = 2, .stores = 2},
                               .others = 2});
    else
        add(to, (fpa_cpu_loop){.name = "values",
                               .runs = numbers,
                               .steps = 1,
                               .narrow = {.loads = 1, .stores = 1},
                               .others = plan->head->dtype == FPA_BF16 ? 4 : 11});
    if (plan->c.pairs)
        count_pairing(to, "pairs of values", plan->c.tokens, vectors(plan, plan->head->dv));
    if (!plan->head->gate)
        return;
    count_gates(to, tokens);
    count_scaled_rows(to, "decay of values", plan->c.tokens);
    if (plan->c.pairs)
        count_pairing(to, "pairs of values", plan->c.tokens, vectors(plan, plan->head->dv));
}

/* ---- the state ---- */

/* All features of `count` tokens, as panels. */
static void count_forms(const fpa_counting *to, double count)
{
    const fpa_forming *f = &to->forming;
    const bool table = !to->plan->c.unrolled;
    const double runs = (table ? f->pieces : f->tiles) * count, each = fmax(table ? f->pieces : f->tiles, 1);
    add(to, (fpa_cpu_loop){.name = "features",
                           .runs = runs,
                           .steps = 1,
                           .step.arithmetic =
                               (f->products + f->weights) / each, /* a weight: one choice by bits */
                           .step.loads = f->loads / each,
                           .step.stores = f->features / each,
                           .others = table ? 12 : 6});
}

/* Sums of features for the normaliser: of queries, features times z; of keys, of all tokens (tile_numbers.c.in). */
static void count_query_sums(const fpa_counting *to, double count)
{
    if (normalizes(to->plan))
        add(to,
            (fpa_cpu_loop){.name = "sums of queries",
                           .runs = count * to->plan->c.tile_count,
                           .steps = steps_of(to->plan, (double)to->plan->features / to->plan->c.tile_count),
                           .step.multiply_adds = 1,
                           .step.loads = 2,
                           .others = 3,
                           .chain = 1,
                           .first = 1,
                           .last = 1});
}

static void count_key_sums(const fpa_counting *to, double count)
{
    if (normalizes(to->plan))
        add(to, (fpa_cpu_loop){.name = "sums of keys",
                               .runs = (double)to->plan->features,
                               .steps = 1,
                               .step.arithmetic = count + 4,
                               .step.shuffles = 2 * log2(lanes_of(to->plan)),
                               .step.loads = count * (to->plan->head->gate ? 2 : 1) + 1,
                               .step.stores = 1,
                               .others = 6});
}

void parts_read_state(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const double tiles = plan->c.tile_count, count = vectors(plan, tokens);
    count_forms(to, count);
    if (plan->c.pairs)
        count_pairing(to, "pairs of features", (double)plan->features, count);
    count_product(to, (product){.name = "query",
                                .rows = whole_rows(tokens, plan->c.values),
                                .columns = plan->head->dv,
                                .tile = plan->c.values,
                                .steps = steps_of(plan, (double)plan->features / tiles),
                                .times = tiles,
                                .fetches = true});
    count_query_sums(to, count);
}

/* Tiles by the rows that are left over when they are cut into register tiles. */
static void count_updates(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const int rows = plan->c.values.rows;
    product p = {.name = "update",
                 .columns = plan->head->dv,
                 .tile = plan->c.values,
                 .steps = steps_of(plan, tokens),
                 .rows = rows};
    for (int t = 0; t < plan->c.tile_count; t++)
        p.times += plan->c.tiles[t].features / rows; // NOLINT(bugprone-integer-division): whole tiles
    count_product(to, p);
    for (p.rows = 1; p.rows < rows; p.rows++) {
        p.times = 0;
        for (int t = 0; t < plan->c.tile_count; t++)
            p.times += plan->c.tiles[t].features % rows == p.rows;
        count_product(to, p);
    }
}

void parts_write_state(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const int lanes = lanes_of(plan) * (plan->c.pairs ? 2 : 1);
    const double count = ceil((double)tokens / lanes) * (plan->c.pairs ? 2 : 1); /* vectors of numbers */
    count_forms(to, count);
    if (plan->c.pairs)
        add(to, (fpa_cpu_loop){.name = "pairs of tokens",
                               .runs = (double)plan->features * count / 2,
                               .steps = 1,
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
        count_pairing(to, "pairs of the state", (double)plan->features, vectors(plan, plan->head->dv));
}

void parts_clear_state(const fpa_counting *to)
{
    add(to, (fpa_cpu_loop){.name = "clear",
                           .runs = parts_state_bytes(to->plan) / 4 / lanes_of(to->plan),
                           .steps = 1,
                           .step.stores = 1});
}

/* ---- scores ---- */

/* Products and sums of the polynomial for one vector (templates/c/score.c.in, Horner in the first dot). */
static double kernel_operations(const fpa_plan *plan)
{
    const fpa_score *score = plan->score;
    double operations = 0;
    for (int i = 0; i < score->monomial_count; i++) {
        for (int f = 0; f < score->dot_count; f++)
            operations += score->monomials[i].power[f];
        operations += score->monomials[i].weight.value != 1;
    }
    return fmax(0, operations - 1);
}

static void count_kernel(const fpa_counting *to, double count, double more)
{
    add(to, (fpa_cpu_loop){.name = "kernel",
                           .runs = count,
                           .steps = 1,
                           .step.arithmetic = kernel_operations(to->plan) + more,
                           .step.loads = to->plan->score->dot_count + more / 2,
                           .step.stores = 1,
                           .others = 3});
}

static void count_dots(const fpa_counting *to, int keys, int columns, double times)
{
    const fpa_plan *plan = to->plan;
    for (int i = 0; i < plan->score->dot_count; i++)
        count_product(to, (product){.name = "dots",
                                    .rows = whole_rows(keys, plan->c.scores),
                                    .columns = columns,
                                    .tile = plan->c.scores,
                                    .steps = steps_of(plan, plan->dots[i].row_count),
                                    .times = times,
                                    .clears = true});
}

/* Scores times values: `steps` keys a row. */
static void count_values(const fpa_counting *to, int keys, int tokens, double steps)
{
    const fpa_plan *plan = to->plan;
    const double count = vectors(plan, tokens);
    if (plan->c.pairs)
        count_pairing(to, "pairs of scores", keys, count);
    count_product(to, (product){.name = "scores by values",
                                .rows = whole_rows(tokens, plan->c.values),
                                .columns = plan->head->dv,
                                .tile = plan->c.values,
                                .steps = steps_of(plan, steps),
                                .times = 1,
                                .fetches = true});
    if (normalizes(plan))
        add(to, (fpa_cpu_loop){.name = "sums of scores",
                               .runs = count,
                               .steps = steps_of(plan, keys),
                               .step.arithmetic = 1,
                               .step.loads = 1,
                               .others = 2,
                               .chain = 1,
                               .first = 1,
                               .last = 1});
}

void parts_score(const fpa_counting *to, int keys, int tokens)
{
    const fpa_plan *plan = to->plan;
    count_dots(to, keys, whole_vectors(plan, tokens), 1);
    count_kernel(to, keys * vectors(plan, tokens), plan->head->gate ? 2 : 0);
    count_values(to, keys, tokens, keys);
}

void parts_score_diagonal(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const int lanes = lanes_of(plan), rows = plan->c.scores.rows, count = whole_vectors(plan, tokens);
    for (int j = 0; j < tokens; j += rows)
        count_dots(to, rows, count - j / lanes * lanes, 1);
    double seen = 0;
    for (int t = 0; t < count; t += lanes)
        seen += t + lanes < tokens ? t + lanes : tokens;
    count_kernel(to, seen, plan->head->gate ? 6 : 1);
    add(to, (fpa_cpu_loop){.name = "clear",
                           .runs = (double)tokens * count / lanes - seen,
                           .steps = 1,
                           .step.stores = 1,
                           .others = 1});
    double steps = 0;
    const int value_rows = plan->c.values.rows;
    for (int m = 0; m < tokens; m += value_rows)
        steps += m + value_rows < tokens ? m + value_rows : tokens;
    count_values(to, tokens, tokens, steps / ceil((double)tokens / value_rows));
}

/* ---- outputs ---- */

static void count_outputs(const fpa_counting *to, const char *name, double loads, double sums)
{
    add(to, (fpa_cpu_loop){.name = name,
                           .runs = parts_outputs_bytes(to->plan) / 4 / lanes_of(to->plan),
                           .steps = 1,
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
    const double parts = row_vectors(plan), rests = row_rests(plan), scaled = normalizes(plan);
    if (plan->head->dtype == FPA_F32)
        add(to,
            (fpa_cpu_loop){.name = "store",
                           .runs = tokens,
                           .steps = 1,
                           .step = {.arithmetic = scaled * parts, .loads = parts, .stores = parts},
                           .narrow = {.arithmetic = scaled * (rests + 2), .loads = rests, .stores = rests},
                           .others = 8});
    else if (converts_vectors(plan))
        add(to, (fpa_cpu_loop){
                    .name = "store", /* two vectors: rounded, compared with NaN, narrowed, brought together */
                    .runs = (double)tokens * plan->head->dv / lanes_of(plan) / 2,
                    .steps = 1,
                    .step = {.arithmetic = 14 + 2 * scaled, .shuffles = 3, .loads = 2, .stores = 1},
                    .others = 4});
    else
        add(to, (fpa_cpu_loop){.name = "store",
                               .runs = (double)tokens * plan->head->dv,
                               .steps = 1,
                               .narrow = {.arithmetic = scaled, .loads = 1, .stores = 1},
                               .others = plan->head->dtype == FPA_BF16 ? 10 : 14});
}

/* ---- the recurrent form ---- */

static void count_token_pack(const fpa_counting *to, int queries, double count)
{
    const fpa_plan *plan = to->plan;
    add(to, (fpa_cpu_loop){.name = "clear", .runs = plan->row_count, .steps = 1, .calls = 1});
    count_numbers(to, (double)(1 + queries) * plan->head->d);
    count_rows(to, (int)count * lanes_of(plan));
}

void parts_token(const fpa_counting *to, int queries, double share, double set)
{
    const fpa_plan *plan = to->plan;
    const double count = vectors(plan, queries + 1), parts = row_vectors(plan), rests = row_rests(plan);
    count_token_pack(to, queries, count);
    fpa_counting mine = *to;
    mine.times *= share;
    count_forms(&mine, count);
    const double features = (double)plan->features;
    add(&mine, (fpa_cpu_loop){.name = "state",
                              .runs = features,
                              .steps = 1,
                              .step = {.multiply_adds = 2 * parts,
                                       .arithmetic = plan->head->gate ? parts : 0,
                                       .broadcasts = 2,
                                       .loads = parts,
                                       .stores = parts},
                              .narrow = {.multiply_adds = 2 * rests,
                                         .arithmetic = plan->head->gate ? rests : 0,
                                         .loads = rests,
                                         .stores = rests},
                              .others = 5,
                              .far = parts_state_bytes(plan) / features,
                              .set = set,
                              .chain = 1});
    add(&mine, (fpa_cpu_loop){.name = "state, more queries",
                              .runs = features * fmax(0, queries - 1),
                              .steps = 1,
                              .step = {.multiply_adds = parts, .broadcasts = 1, .loads = parts},
                              .narrow = {.multiply_adds = rests, .loads = rests},
                              .others = 4,
                              .chain = 1});
    if (normalizes(plan))
        add(&mine, (fpa_cpu_loop){.name = "sums",
                                  .runs = features,
                                  .steps = 1,
                                  .step.multiply_adds = count,
                                  .step.arithmetic = 1,
                                  .step.loads = 2 + 2 * count,
                                  .step.stores = 1 + count,
                                  .others = 5,
                                  .chain = 1,
                                  .forwards = 1});
    const double slices = plan->c.slice_count;
    add(to, (fpa_cpu_loop){.name = "slices",
                           .runs = slices * queries * (parts + rests),
                           .steps = 1,
                           .step.arithmetic = 1,
                           .step.loads = 2,
                           .step.stores = 2,
                           .others = 3});
    if (plan->head->gate)
        count_gates(to, 1);
    parts_store_outputs(to, queries);
}
