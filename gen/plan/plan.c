#include "plan.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKENS = 48,      /* a multiple of the micro-tile's 6 rows and of every vector width */
    PAIR_TOKENS = 96, /* with pairs of bf16 of 32 consecutive tokens in a vector, as well */
    MICRO_ROWS = 6,
    PANEL_BYTES = 12 * 1024, /* of a tile's slice of the state: a quarter of a first-level cache */
    MAX_TILE = TOKENS,       /* tiles and panels of keys share their product */
    MAX_PIECE = 8,           /* features of a piece in a table-driven kernel */
    UNROLL_LIMIT = 4096,     /* features that are printed one by one: a few seconds of compile time */
    MAX_PIECES = 1 << 19,
    MAX_DOTS = 64,
    MAX_ROWS = 60000,     /* packed rows are 16 bits in the table */
    SLICE_FEATURES = 200, /* of a slice at least: what a part of a chunk's outputs is worth */
    MAX_SLICES = 8,
};

static const double STATE_LIMIT = 2.0 * (1 << 30); /* bytes of one (batch, head) */

/* ---- rows ---- */

static int matrix_first_row(const fpa_plan *plan, int matrix)
{
    for (int i = 0; i < plan->projection_count; i++)
        if (plan->projections[i].matrix == matrix)
            return plan->projections[i].first_row;
    return -1;
}

/* Packed row of a weighted row, made on first use. */
static int weighted_row(fpa_plan *plan, int from, double gram)
{
    for (int i = 0; i < plan->weighted_count; i++)
        if (plan->weighted[i].from == from && plan->weighted[i].gram == gram)
            return plan->weighted[i].row;
    plan->weighted[plan->weighted_count++] = (fpa_weighted_row){plan->row_count, from, gram};
    return plan->row_count++;
}

/* Packed row of row w of a branch. */
static int branch_row(fpa_plan *plan, const fpa_branch *branch, int w)
{
    int row = branch->row[w];
    if (branch->source != FPA_INPUT)
        row += matrix_first_row(plan, branch->source);
    if (branch->gram && !number_is_one(branch->gram[w]))
        row = weighted_row(plan, row, branch->gram[w].value);
    return row;
}

static void use_source(fpa_plan *plan, const fpa_branch *branch)
{
    if (branch->source == FPA_INPUT || matrix_first_row(plan, branch->source) >= 0)
        return;
    plan->projections[plan->projection_count++] = (fpa_projection){branch->source, plan->row_count};
    plan->row_count += plan->head->matrices[branch->source].rows;
}

/* Call visit for every branch of the features, then of the score. */
static void each_branch(fpa_plan *plan, void (*visit)(fpa_plan *, const fpa_branch *))
{
    for (int t = 0; t < plan->head->term_count; t++)
        for (int b = 0; b < plan->head->terms[t].branch_count; b++)
            visit(plan, &plan->head->terms[t].branches[b]);
    for (int i = 0; i < plan->score->dot_count; i++)
        visit(plan, &plan->score->dots[i]);
}

static void count_weighted(fpa_plan *plan, const fpa_branch *branch)
{
    for (int w = 0; branch->gram && w < branch->width; w++)
        plan->weighted_count += !number_is_one(branch->gram[w]);
}

static bool same_branch(const fpa_branch *a, const fpa_branch *b)
{
    return a->source == b->source && a->width == b->width && a->row == b->row && a->gram == b->gram;
}

static fpa_status plan_rows(fpa_plan *plan, fpa_error *error)
{
    const fpa_head *head = plan->head;
    plan->row_count = head->d;
    plan->ones_row = plan->row_count++;
    each_branch(plan, count_weighted);
    plan->weighted = arena_array(&plan->memory, plan->weighted_count, sizeof *plan->weighted);
    plan->projections = arena_array(&plan->memory, head->matrix_count, sizeof *plan->projections);
    if (!plan->weighted || !plan->projections)
        return fail_memory(error);
    plan->weighted_count = 0;
    each_branch(plan, use_source);
    return FPA_OK;
}

static int *branch_rows(fpa_plan *plan, const fpa_branch *branch)
{
    int *rows = arena_array(&plan->memory, branch->width, sizeof *rows);
    for (int w = 0; rows && w < branch->width; w++)
        rows[w] = branch_row(plan, branch, w);
    return rows;
}

/* ---- pieces and tiles ---- */

static int run_length(const int *rows, int count)
{
    int length = 1;
    while (length < count && rows[length] == rows[0] + length)
        length++;
    return length;
}

static fpa_status piece_add(fpa_plan *plan, fpa_piece piece, int *capacity, fpa_error *error)
{
    if (plan->piece_count == MAX_PIECES)
        return fail(error, FPA_UNSUPPORTED, plan->head->name,
                    "the kernel would need more than %d pieces of code for its %.0f features; use larger "
                    "blocks or fewer terms",
                    MAX_PIECES, (double)plan->features);
    if (plan->piece_count == *capacity) {
        int grown = *capacity ? 2 * *capacity : 256;
        fpa_piece *pieces = realloc(plan->pieces, grown * sizeof *pieces);
        if (!pieces)
            return fail_memory(error);
        plan->pieces = pieces;
        *capacity = grown;
    }
    plan->pieces[plan->piece_count++] = piece;
    return FPA_OK;
}

/* The longest piece that may start at this feature. */
static int piece_room(const fpa_plan *plan, int64_t feature)
{
    return plan->unrolled ? plan->tile_features - (int)(feature % plan->tile_features) : MAX_PIECE;
}

static fpa_status add_run(fpa_plan *plan, fpa_piece piece, int *capacity, fpa_error *error)
{
    for (int left = piece.width; left > 0;) {
        int room = piece_room(plan, piece.feature);
        piece.width = left < room ? left : room;
        fpa_status status = piece_add(plan, piece, capacity, error);
        if (status)
            return status;
        left -= piece.width;
        piece.feature += piece.width;
        piece.base += piece.width;
    }
    return FPA_OK;
}

static fpa_status add_runs(fpa_plan *plan, fpa_piece piece, const int *last, int width, int *capacity,
                           fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int w = 0; !status && w < width; w += piece.width) {
        piece.base = last[w];
        piece.width = run_length(last + w, width - w);
        status = add_run(plan, piece, capacity, error);
        piece.feature += piece.width;
    }
    return status;
}

/* Step an index over the widths of the first n branches, last fastest; false after the last. */
static bool next_index(int *index, const fpa_term *term, int n)
{
    for (int b = n - 1; b >= 0; b--) {
        if (++index[b] < term->branches[b].width)
            return true;
        index[b] = 0;
    }
    return false;
}

static fpa_status add_term(fpa_plan *plan, const fpa_term *term, int64_t *feature, int *capacity,
                           fpa_error *error)
{
    const int n = term->branch_count;
    int *rows[HEAD_MAX_BRANCHES], index[HEAD_MAX_BRANCHES] = {0};
    int last_width = n ? term->branches[n - 1].width : 1;
    for (int b = 0; b < n; b++) {
        bool shared = b && same_branch(&term->branches[b], &term->branches[b - 1]);
        rows[b] = shared ? rows[b - 1] : branch_rows(plan, &term->branches[b]);
        if (!rows[b])
            return fail_memory(error);
    }
    const int *last = n ? rows[n - 1] : &plan->ones_row;
    do {
        int *prefix = arena_array(&plan->memory, n > 1 ? n - 1 : 0, sizeof *prefix);
        if (!prefix)
            return fail_memory(error);
        for (int b = 0; b < n - 1; b++)
            prefix[b] = rows[b][index[b]];
        fpa_piece piece = {.feature = *feature,
                           .prefix_count = n > 1 ? n - 1 : 0,
                           .prefix = prefix,
                           .weight = term->weight.value};
        fpa_status status = add_runs(plan, piece, last, last_width, capacity, error);
        if (status)
            return status;
        *feature += last_width;
    } while (next_index(index, term, n - 1));
    return FPA_OK;
}

static fpa_status plan_pieces(fpa_plan *plan, fpa_error *error)
{
    int capacity = 0;
    int64_t feature = 0;
    for (int t = 0; t < plan->head->term_count; t++) {
        fpa_status status = add_term(plan, &plan->head->terms[t], &feature, &capacity, error);
        if (status)
            return status;
    }
    return FPA_OK;
}

static fpa_status plan_tiles(fpa_plan *plan, fpa_error *error)
{
    plan->tiles = arena_array(&plan->memory, plan->piece_count, sizeof *plan->tiles);
    if (!plan->tiles)
        return fail_memory(error);
    for (int i = 0; i < plan->piece_count; i++) {
        const fpa_piece *piece = &plan->pieces[i];
        fpa_tile *tile = plan->tile_count ? &plan->tiles[plan->tile_count - 1] : NULL;
        if (!tile || tile->features + piece->width > plan->tile_features) {
            tile = &plan->tiles[plan->tile_count++];
            *tile = (fpa_tile){.feature = piece->feature, .piece = i};
        }
        tile->features += piece->width;
        tile->piece_count++;
    }
    return FPA_OK;
}

/* A power of two, so that teams of 2, 4 and 8 threads have equal shares. */
static fpa_status plan_slices(fpa_plan *plan, fpa_error *error)
{
    int count = 1;
    while (count < MAX_SLICES && 2 * count <= plan->tile_count &&
           plan->features >= 2 * count * (int64_t)SLICE_FEATURES)
        count *= 2;
    plan->slice_count = count;
    plan->slices = arena_array(&plan->memory, plan->slice_count + 1, sizeof *plan->slices);
    if (!plan->slices)
        return fail_memory(error);
    for (int s = 0; s <= plan->slice_count; s++)
        plan->slices[s] = (int)((int64_t)plan->tile_count * s / plan->slice_count);
    return FPA_OK;
}

static fpa_status plan_dots(fpa_plan *plan, fpa_error *error)
{
    const fpa_score *score = plan->score;
    plan->dots = arena_array(&plan->memory, score->dot_count, sizeof *plan->dots);
    if (!plan->dots)
        return fail_memory(error);
    for (int i = 0; i < score->dot_count; i++) {
        const int *rows = branch_rows(plan, &score->dots[i]);
        if (!rows)
            return fail_memory(error);
        plan->dots[i] = (fpa_dot){score->dots[i].width, rows};
    }
    return FPA_OK;
}

/* ---- sizes and costs ---- */

static int tile_features(int dv)
{
    int features = PANEL_BYTES / (4 * dv) / MICRO_ROWS * MICRO_ROWS;
    return features < 2 * MICRO_ROWS ? 2 * MICRO_ROWS : features > MAX_TILE ? MAX_TILE : features;
}

/* A chunk costs c (d + dv) FLOP a token for its own part, and 8 D dv bytes of state traffic for
 * all of its tokens, worth about 24 D dv FLOP: the sum is least at the root of their ratio. */
static int choose_chunk(const fpa_head *head, double features, int tokens)
{
    if (head->chunk)
        return head->chunk;
    double best = sqrt(24.0 * features * head->dv / (head->d + head->dv));
    int blocks = (int)(best / tokens + 0.5);
    return tokens * (blocks < 1 ? 1 : blocks > 16 ? 16 : blocks);
}

static double projection_flop(const fpa_plan *plan)
{
    double flop = 0;
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_matrix *matrix = &plan->head->matrices[plan->projections[i].matrix];
        flop += 2.0 * matrix->rows * (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? 1 : matrix->cols);
    }
    return 2 * flop; /* q and k */
}

/* FLOP of one visible pair: each dot once, the polynomial, the product with v. */
static double pair_flop(const fpa_plan *plan)
{
    double flop = 2.0 * plan->head->dv;
    for (int i = 0; i < plan->score->dot_count; i++)
        flop += 2.0 * plan->dots[i].row_count;
    return flop;
}

/* Bytes that a token and head must move: its operands, and the state once a chunk or once a token;
 * a visible pair: its share of the keys and values, which are read once for query_blocks panels. */
static void plan_bytes(fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    double element = (double)dtype_size(head->dtype);
    double operands = 2 * element * (head->d + head->dv);
    double state = 4.0 * (double)plan->features * (head->dv + (head->normalize != FPA_NORMALIZE_NONE));
    plan->bytes[FORM_PARALLEL] = element * (head->d + head->dv) / (plan->query_blocks * plan->tokens);
    plan->bytes[FORM_CHUNKED] = operands + 2 * state / plan->chunk;
    plan->bytes[FORM_RECURRENT] = operands + 2 * state;
}

/* Bytes of machine code. A register tile is one instruction of about 10 bytes a product, and three more to
 * clear or load, and store, a sum;
 * an unrolled feature a product and a store; a piece a row of the table. */
static double code_bytes(const fpa_plan *plan)
{
    const double value_tile = 10.0 * (plan->values.rows + 1) * plan->values.vectors;
    const double score_tile = 10.0 * (plan->scores.rows + 1) * plan->scores.vectors;
    double features = plan->unrolled ? 18.0 * (double)plan->features : 16.0 * plan->piece_count;
    double matrices = 0;
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_matrix *matrix = &plan->head->matrices[plan->projections[i].matrix];
        matrices += matrix->data ? 4.0 * matrix->rows * matrix->cols : 0;
    }
    return 4 * (2 * value_tile + (1 + plan->score->dot_count) * score_tile) + features + matrices +
           24 * 1024; /* the forms themselves */
}

/* What a FLOP over scores takes, compared with one over the state. Warpgroups: as much, but that each pair's
 * gate takes more; heads of one pass by warpgroups have portable kernels for the parallel form, which is
 * slower from about 256 tokens on. Measured on an H200 (docs/decisions/0010-crossover.md). */
static double pair_cost(const fpa_plan *plan)
{
    if (plan->fused_packed.used || plan->cuda.fused_coordinates)
        return 5;
    return plan->outer.used && plan->head->gate ? 1.1 : 1;
}

static void plan_costs(fpa_plan *plan, const fpa_head *written, double minimum)
{
    const fpa_head *head = plan->head;
    fpa_facts *facts = &plan->facts;
    double state = 4.0 * plan->features * head->dv;
    double projected = projection_flop(plan);
    facts->flop[FORM_PARALLEL] = pair_flop(plan);
    facts->flop[FORM_CHUNKED] = state + plan->chunk * (head->d + head->dv) + projected;
    facts->flop[FORM_RECURRENT] = state + projected;
    /* half of L^2 pairs against L tokens */
    facts->crossover =
        (int64_t)(2 * facts->flop[FORM_CHUNKED] / (facts->flop[FORM_PARALLEL] * pair_cost(plan)));
    plan_bytes(plan);
    plan->code_bytes = code_bytes(plan);
    facts->features = plan->features;
    facts->features_written = (int64_t)head_features(written);
    facts->features_minimum = (int64_t)minimum;
    facts->features_tpow = (int64_t)fmin(head_features_tpow(written), 9e18);
    facts->state_elements = plan->features * (head->dv + (head->normalize != FPA_NORMALIZE_NONE));
    facts->state_bytes = (double)facts->state_elements * dtype_size(head->state_dtype);
    facts->block = head->block;
    facts->chunk = plan->chunk;
    facts->forms = head->causal ? (1 << FORMS) - 1 : 1 << FORM_PARALLEL;
    if (!head->causal)
        facts->crossover = 0;
    memcpy(facts->name, head->name, strlen(head->name) + 1);
    snprintf(facts->target, sizeof facts->target, "%s", plan->target->name);
}

/* The weight of a branch's row that float32 cannot hold; NULL: there is none. */
static const fpa_number *large_gram(const fpa_branch *branch)
{
    for (int w = 0; branch->gram && w < branch->width; w++)
        if (branch->gram[w].value > FLT_MAX)
            return &branch->gram[w];
    return NULL;
}

/* The same among all weights of the features and of the score. */
static const fpa_number *large_weight(const fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    const fpa_score *score = plan->score;
    const fpa_number *large = NULL;
    for (int t = 0; t < head->term_count && !large; t++) {
        const fpa_term *term = &head->terms[t];
        large = fabs(term->weight.value) > FLT_MAX ? &term->weight : NULL;
        for (int b = 0; b < term->branch_count && !large; b++)
            large = large_gram(&term->branches[b]);
    }
    for (int i = 0; i < score->monomial_count && !large; i++)
        large = fabs(score->monomials[i].weight.value) > FLT_MAX ? &score->monomials[i].weight : NULL;
    for (int f = 0; f < score->dot_count && !large; f++)
        large = large_gram(&score->dots[f]);
    return large;
}

static fpa_status plan_limits(const fpa_plan *plan, double minimum, fpa_error *error)
{
    const fpa_head *head = plan->head;
    double features = head_features(head);
    double bytes = features * (head->dv + 1) * 4;
    if (bytes > STATE_LIMIT)
        return fail(
            error, FPA_UNSUPPORTED, head->origin,
            "head '%s' has %.0f features: its state would take %.1f GiB for every batch entry and head, "
            "the limit is %.0f GiB (exact minimum: %.0f features)",
            head->name, features, bytes / (1 << 30), STATE_LIMIT / (1 << 30), minimum);
    if (plan->score->dot_count > MAX_DOTS)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' needs %d different dot products a pair of tokens, the limit is %d", head->name,
                    plan->score->dot_count, MAX_DOTS);
    const fpa_number *large = large_weight(plan);
    if (!large)
        return FPA_OK;
    char text[NUMBER_TEXT];
    number_print(text, *large);
    return fail(error, FPA_UNSUPPORTED, head->origin,
                "head '%s' has the weight %s, but kernels compute in float32, which ends at 3.4e38",
                head->name, text);
}

/* CUDA kernels are driven by tables of features: their pieces are as long as those of a tile. */
static void choose_sizes(fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    plan->features = (int64_t)head_features(head);
    plan->unrolled = plan->features <= UNROLL_LIMIT && !plan->target->capability;
    plan->tokens = TOKENS;
    plan->tile_features = tile_features(head->dv);
    if (!plan->target->capability) {
        plan->pairs = plan->target->pairs && head->dtype == FPA_BF16 && head->dv % plan->target->vector == 0;
        plan->facts.arithmetic = plan->pairs ? FPA_BF16 : FPA_F32;
        plan->tokens = plan->pairs ? PAIR_TOKENS : TOKENS;
        plan->values = tile_choose(plan->target, head->dv, plan->tokens);
        plan->scores = tile_choose(plan->target, plan->tokens, plan->tokens);
    }
    plan->chunk = choose_chunk(head, (double)plan->features, plan->tokens);
    plan->query_blocks = 4;
}

fpa_status plan_choose(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                       fpa_plan *plan, fpa_error *error)
{
    const fpa_head *head = simple->head;
    *plan = (fpa_plan){.head = head, .score = &simple->score, .target = target};
    fpa_status status = plan_limits(plan, simple->minimum, error);
    if (status)
        return status;
    choose_sizes(plan);
    if ((status = plan_rows(plan, error)) || (status = plan_pieces(plan, error)) ||
        (status = plan_tiles(plan, error)) || (status = plan_slices(plan, error)) ||
        (status = plan_dots(plan, error)))
        goto out;
    if (target->capability && (status = plan_cuda(plan, error)))
        goto out;
    if (plan->row_count > MAX_ROWS) {
        status =
            fail(error, FPA_UNSUPPORTED, head->origin, "head '%s' needs %d rows a token, the limit is %d",
                 head->name, plan->row_count, MAX_ROWS);
        goto out;
    }
    plan_costs(plan, written, simple->minimum);
out:
    if (status)
        plan_free(plan);
    return status;
}

void plan_free(fpa_plan *plan)
{
    free(plan->pieces);
    arena_free(&plan->memory);
    *plan = (fpa_plan){0};
}
