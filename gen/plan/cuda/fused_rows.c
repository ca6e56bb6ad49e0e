#include "fused_rows.h"

#include "fused_packed.h"
#include "fused_pass.h"
#include "parts.h"
#include "split_outer.h"
#include "work.h"

enum {
    SLAB = 128 * FUSED_TOKENS, /* bytes of 64 numbers of a panel's tokens */
    /* bytes: sums of log-gates, decays, sums before the panel; slabs follow, so a multiple of 1024 */
    GATES = 1024,
    SCALED_GATES = 2048,    /* the same with factors of scores and numbers of tokens */
    BESIDE = 2,             /* columns of a number: 8 bits of it, and the rest */
    BLOCK_OWN = 1024,       /* shared memory that the GPU reserves for each block */
    PART = 96,              /* bytes of struct fused_part, and of AT_EDGES */
    FACTORS = 256,          /* bytes: decays of segments */
    MOST_SUMS_OF_ONE = 144, /* sums of a thread, with one warpgroup of keys */
    MOST_SUMS_OF_TWO = 128, /* and with two */
    MOST_SUMS_BESIDE = 60,  /* sums of o beside dots, in 120 registers */
    MOST_SUMS_OF_PAIR = 48, /* sums of a thread, with two blocks a multiprocessor */
    FACTOR_ROOM = 64,       /* of the 126 that bf16 has: the rest is left for scores, values and their sums */
    SUM_PARTS = 3,          /* 16-bit parts of a stored sum of values */
};

/* ---- features ---- */

/* Which coordinate a row of a vector is, and its weight for keys (gram); false: it is none. */
static bool find_coordinate(const fpa_plan *plan, int row, int *coordinate, double *gram)
{
    *coordinate = row;
    *gram = 1;
    for (int i = 0; i < plan->weighted_count; i++)
        if (plan->weighted[i].row == row) {
            *coordinate = plan->weighted[i].from;
            *gram = plan->weighted[i].gram;
        }
    return *coordinate < plan->head->d;
}

/* Whether a row is coordinate i with weight gram[i]; unless that is known, sets it. */
static bool is_coordinate(const fpa_plan *plan, int row, int i, bool known, double *gram)
{
    int coordinate;
    double own;
    if (!find_coordinate(plan, row, &coordinate, &own) || coordinate != i || (known && own != gram[i]))
        return false;
    gram[i] = own;
    return true;
}

/* Whether features are the first coordinates, in order, and the kernel is their dot product. */
static bool are_coordinates(const fpa_plan *plan, double *gram)
{
    const fpa_score *score = plan->score;
    const int width = (int)plan->features;
    if (score->dot_count != 1 || score->monomial_count != 1 || score->monomials[0].power[0] != 1 ||
        plan->dots[0].row_count != width || score->monomials[0].weight.value != plan->pieces[0].weight)
        return false;
    for (int p = 0; p < plan->piece_count; p++) {
        const fpa_piece *piece = &plan->pieces[p];
        if (piece->prefix_count || piece->weight != plan->pieces[0].weight)
            return false;
        for (int i = 0; i < piece->width; i++)
            if (!is_coordinate(plan, piece->base + i, (int)piece->feature + i, false, gram))
                return false;
    }
    for (int i = 0; i < width; i++)
        if (!is_coordinate(plan, plan->dots[0].rows[i], i, true, gram))
            return false;
    return true;
}

static bool find_features(const fpa_plan *plan, fpa_fused_rows *rows)
{
    rows->width = (int)plan->features;
    rows->vector = plan->head->d;
    rows->scale_power = 1;
    if (plan->features > plan->head->d || plan->projection_count || !are_coordinates(plan, rows->slot_weight))
        return false;
    for (int i = 0; i < rows->width; i++) {
        rows->slot_feature[i] = i;
        rows->slot_weight[i] *= plan->pieces[0].weight;
        rows->weighted |= rows->slot_weight[i] != 1;
    }
    return true;
}

/* ---- vectors ---- */

/* The vectors of split_outer whose rows are features; NULL: q and k are read as stored in memory. */
static const fpa_split_outer *find_vectors(const fpa_cuda_inputs *in)
{
    const fpa_split_outer *split = in->suited[SPLIT_OUTER].plan;
    return split && split->feature_rows ? split : NULL;
}

/* Features are rows of packed vectors, which include the weights. */
static void take_vectors(const fpa_split_outer *split, int features, fpa_fused_rows *rows)
{
    rows->packed = true;
    rows->width = features;
    rows->vector = split->outer.vector_rows;
    rows->scale_power = split->dot_degree[0];
    for (int i = 0; i < features; i++)
        rows->slot_feature[i] = i, rows->slot_weight[i] = 1;
}

/* ---- warpgroups ---- */

/* Whether the gates' factors are computed beside the walk, by the warpgroup that fetches. Not for f16, where
 * shared memory has no room for them; not for passes of gradients, of which nothing is measured
 * (docs/decisions/0172-what-gates-cost-a-pass-on-rows.md). */
static bool has_factors(const fpa_plan *plan)
{
    return plan->head->gate && plan->head->dtype == FPA_BF16 && !plan->pass;
}

static int count_tiles(const fpa_cuda_inputs *in, const fpa_fused_rows *rows)
{
    return (int)divide_up(in->plan->features + rows->beside + rows->lean, 64);
}

int fused_rows_columns(const fpa_plan *plan)
{
    const int tiles = (int)divide_up(plan->features, 64);
    const int one = MOST_SUMS_OF_ONE / (4 * tiles), two = MOST_SUMS_OF_TWO / (4 * divide_up(tiles, 2));
    return (one > two ? one : two) - (plan->head->normalize != FPA_NORMALIZE_NONE);
}

/* Four warpgroups share 512 registers a thread; the one that fetches gets what the others do not need. */
static void share_registers(const fpa_cuda_inputs *in, int key_groups, fpa_fused_rows *rows)
{
    const int tiles = count_tiles(in, rows), sums = 4 * in->columns->all * tiles;
    const bool one = key_groups == 1;
    /* a panel's dots beside sums of o, while the product with the copy is in flight; otherwise ptxas
     * serialises products (docs/decisions/0179-columns-to-lean.md) */
    const bool beside = 4 * in->columns->all > MOST_SUMS_BESIDE && has_factors(in->plan);
    rows->key_groups = key_groups;
    rows->query_groups = 3 - key_groups;
    rows->key_tiles = divide_up(tiles, key_groups);
    rows->query_registers = one ? 136 : rows->numbers ? 128 : beside ? 136 : 120;
    rows->key_registers = one && sums > MOST_SUMS_OF_TWO ? 184 : 168;
    rows->fetch_registers =
        512 - rows->key_groups * rows->key_registers - rows->query_groups * rows->query_registers;
    rows->slots = 64 * rows->key_groups * rows->key_tiles;
    rows->blocks = 1, rows->first_registers = 128;
}

static bool choose_groups(const fpa_cuda_inputs *in, fpa_fused_rows *rows)
{
    const int sums = 4 * in->columns->all;
    const bool one = sums * count_tiles(in, rows) <= MOST_SUMS_OF_ONE;
    share_registers(in, one ? 1 : 2, rows);
    return one || sums * rows->key_tiles <= MOST_SUMS_OF_TWO;
}

/* Whether a multiprocessor has two blocks, each with one warpgroup for each task, 240 registers together: if
 * sums are few and three warps take long to finish panels, because of gates or weights. If all wait for
 * queries instead, two blocks gain nothing, with packed rows they lose; gated packed rows were not measured
 * (docs/decisions/0115-what-queries-of-a-panel-wait-for.md). */
static bool choose_pair(const fpa_cuda_inputs *in, fpa_fused_rows *rows)
{
    const int sums = 4 * in->columns->all * rows->key_tiles;
    const bool finishes = (in->plan->head->gate && !rows->packed) || rows->weighted;
    if (rows->key_groups > 1 || sums > MOST_SUMS_OF_PAIR || !finishes || cuda_leaves_dots(in->plan))
        return false;
    rows->blocks = 2, rows->query_groups = 1, rows->first_registers = 80;
    rows->fetch_registers = 48, rows->key_registers = 88, rows->query_registers = 104;
    return true;
}

/* Room for the slots of one or two warpgroups of keys. */
static void allocate(const fpa_cuda_inputs *in, fpa_fused_rows *rows)
{
    const int most = 64 * round_up(count_tiles(in, rows), 2);
    rows->slot_feature = arena_array(in->memory, most, sizeof *rows->slot_feature);
    rows->slot_weight = arena_array(in->memory, most, sizeof *rows->slot_weight);
    for (int i = 0; i < most; i++)
        rows->slot_feature[i] = -1;
}

/* Blocks of a cluster. Clusters of two leave no multiprocessor without a block. Gated heads wait for gates,
 * not for memory: there lockstep costs more than it saves (docs/decisions/0066-who-stores-o.md). */
static int choose_cluster(const fpa_cuda_inputs *in)
{
    return in->columns->blocks == 2 && !in->plan->head->gate ? 2 : 1;
}

/* ---- shared memory ---- */

/* Bytes for the extra word of each row: rows of 16-bit numbers that begin at any even address may touch one
 * word of 16 bytes more than they fill. */
static int tail_bytes(int width, int slabs)
{
    return (2 * width + 14 + 15) / 16 > slabs * 8 ? 16 * FUSED_TOKENS : 0;
}

/* Assigns addresses; false if they do not fit. words: all operands have room to be fetched by words; else
 * only those whose rows begin anywhere in every call. */
static bool place(const fpa_cuda_inputs *in, int panels, int copies, bool words, fpa_fused_rows *rows)
{
    const fpa_head *head = in->plan->head;
    const bool gate = head->gate;
    const int vectors = rows->slabs * SLAB, values = (in->columns->all + 7) / 8 * SLAB;
    rows->panels = panels, rows->copies = copies;
    rows->vector_words = words || rows->vector % 8, rows->value_words = words || head->dv % 8;
    rows->vector_tails = rows->vector_words ? tail_bytes(rows->width, divide_up(rows->steps, 4)) : 0;
    const int value_tails =
        rows->value_words ? tail_bytes(8 * in->columns->tiles, (in->columns->tiles + 7) / 8) : 0;
    rows->query_bytes = vectors > values ? vectors : values;
    rows->at_gates = rows->query_bytes + vectors + values + 2 * rows->vector_tails + value_tails;
    rows->panel_bytes = rows->at_gates + (rows->scales ? SCALED_GATES : gate ? GATES : 0);
    rows->at_copies = panels * rows->panel_bytes;
    rows->at_barriers = rows->at_copies + copies * rows->copied * 16 * in->columns->all;
    rows->total_panels = rows->at_barriers / (rows->panel_bytes - rows->query_bytes);
    rows->at_part = round_up(rows->at_barriers + 8 * ((gate ? 7 : 6) * rows->total_panels + 2 * copies), 16);
    rows->bytes = rows->at_part + PART + (gate ? FACTORS : 0);
    return rows->blocks * (rows->bytes + BLOCK_OWN) <= in->plan->target->shared_memory + BLOCK_OWN;
}

/* Whether rows begin at other addresses than multiples of 16 bytes in every call. */
static bool begins_anywhere(const fpa_fused_rows *rows, const fpa_head *head)
{
    return rows->vector % 8 || head->dv % 8;
}

/* Whether rows of some heads are fetched by words in every call, by a warp. */
static bool comes_as_words(const fpa_fused_rows *rows, const fpa_head *head)
{
    return cuda_most_lean(rows->vector) > rows->vector_room || cuda_most_lean(head->dv) > rows->value_room;
}

/* Whether finishing panels takes three warps longer than the product of keys and values: keys are multiplied
 * by weights, or rows are fetched by words. */
static bool finishes_much(const fpa_fused_rows *rows, const fpa_head *head)
{
    return rows->weighted || comes_as_words(rows, head);
}

/* How many numbers rows may lean by: those for which steps of 16 features, and all blocks' columns, have room
 * after the last one. */
static void choose_leaning(const fpa_cuda_inputs *in, fpa_fused_rows *rows)
{
    const fpa_head *head = in->plan->head;
    const fpa_columns *columns = in->columns;
    rows->leans = begins_anywhere(rows, head) &&
                  !rows->numbers; /* sums of values (fused_rows_numbers) have the head's columns */
    if (!rows->leans)
        return;
    rows->vector_room = rows->vector % 8 ? 16 * rows->steps - rows->width : 0;
    /* the last block still has a piece of o, whatever columns lean by */
    rows->value_room =
        head->dv % 8 && columns->last >= 16 ? 8 * columns->blocks * columns->tiles - head->dv : 0;
}

/* Stages of panels and copies of the state. A second copy lets keys run ahead of queries; panels in flight
 * hide the latency of memory. Two warpgroups of queries have a copy each: one that waits for every second
 * phase of a barrier would take the phase before the last for it. Rows that the copy engine can fetch in most
 * calls are fetched number by number in the others, if words have no room. If nothing else fits, a copy has
 * only the rows that queries read (no gain was measured for other heads,
 * docs/decisions/0179-columns-to-lean.md). */
static bool choose_places(const fpa_cuda_inputs *in, fpa_fused_rows *rows)
{
    static const int sizes[][2] = {{4, 2}, {3, 2}, {2, 2}, {2, 1}};
    rows->copied = rows->slots;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i][1] >= rows->query_groups && place(in, sizes[i][0], sizes[i][1], true, rows))
            return true;
    if (rows->query_groups == 1 && place(in, 2, 1, false, rows))
        return true;
    rows->copied = 16 * rows->steps;
    return rows->query_groups == 1 && rows->blocks == 1 && !in->plan->pass && place(in, 2, 1, true, rows);
}

/* Two blocks a multiprocessor, if they fit; else one, with one warpgroup of queries if copies of two do not
 * fit. */
static bool choose_blocks(const fpa_cuda_inputs *in, fpa_fused_rows *rows)
{
    const fpa_fused_rows one = *rows;
    if (choose_pair(in, rows) && choose_places(in, rows))
        return true;
    *rows = one;
    if (choose_places(in, rows))
        return true;
    share_registers(in, 2, rows);
    return choose_places(in, rows);
}

/* Numbers by which vectors may lean, for which slabs and rows of the state get room: a lane copies one word
 * of a row, so there are at most 32 words. Passes of gradients, of which nothing is measured, may lean by
 * what is left of a step of 16; coordinates that a lift makes need no room. */
static int choose_lean(const fpa_plan *plan, const fpa_fused_rows *rows)
{
    enum { MOST = 32 * 8 };
    const int lean = cuda_most_lean(plan->head->d);
    return rows->numbers || plan->pass || plan->written->lift || plan->features + lean > MOST ? 0 : lean;
}

/* Chooses warpgroups, registers and stages, with room to lean by `lean` numbers; NULL, or why they do not
 * fit. */
static const char *choose_sizes(const fpa_cuda_inputs *in, int lean, fpa_fused_rows *rows)
{
    rows->lean = lean;
    rows->steps = divide_up(rows->width + lean, 16);
    rows->slabs = divide_up(rows->width + rows->beside + lean, 64);
    return !choose_groups(in, rows) ? "its state does not fit into the registers of a block"
           : !choose_blocks(in, rows)
               ? "two panels of tokens and a copy of its state do not fit into shared memory"
               : NULL;
}

bool cuda_leaves_dots(const fpa_plan *plan)
{
    return plan->pass && plan->head->gate && plan->forced == FUSED_ROWS;
}

/* Other mechanisms cannot read such rows in reverse order: they would be gathered first. */
bool cuda_turns_anywhere(const fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    return plan->pass && plan->target->warpgroups && head->causal && head->normalize == FPA_NORMALIZE_NONE &&
           (head->d % 8 || head->dv % 8);
}

const char *plan_fused_rows(const fpa_cuda_inputs *in, void *made)
{
    fpa_fused_rows *rows = made;
    const fpa_plan *plan = in->plan;
    if (!plan->head->causal)
        return "it is not causal";
    if (plan->written->window)
        return "it has a window";
    const fpa_split_outer *vectors = find_vectors(in);
    if (!plan->target->warpgroups || in->rows->element != 2 || (in->rows->factors != 1 && !vectors))
        return "its features are not 16-bit coordinates, or the GPU has no wgmma (sm_90a)";
    rows->numbers = cuda_leaves_dots(plan) && plan->written->numbers;
    rows->scales = rows->numbers && plan->head->dtype == FPA_F16;
    rows->beside = rows->scales && plan->written->beside ? BESIDE : 0;
    rows->lean = vectors ? 0 : choose_lean(plan, rows);
    allocate(in, rows);
    if (vectors)
        take_vectors(vectors, (int)plan->features, rows);
    else if (!find_features(plan, rows))
        return "its features are not the first coordinates of q and k";
    const char *refused = choose_sizes(in, rows->lean, rows);
    if (refused && rows->lean)
        refused = choose_sizes(in, 0, rows);
    if (refused)
        return refused;
    choose_leaning(in, rows);
    rows->finishes_much = finishes_much(rows, plan->head);
    rows->factored = has_factors(plan) && !comes_as_words(rows, plan->head);
    rows->factor_room = FACTOR_ROOM;
    rows->cluster = choose_cluster(in);
    rows->reverses = !rows->packed && plan->head->normalize == FPA_NORMALIZE_NONE;
    /* the pass of d_v stores none */
    rows->leaves_dots = cuda_leaves_dots(plan) && (rows->beside || !rows->scales);
    rows->narrows = plan->pass && plan->written->narrows;
    rows->adds = plan->pass && plan->written->adds;
    rows->kept = (64 * rows->slabs * in->columns->all +
                  (rows->numbers && !rows->scales ? SUM_PARTS * in->columns->tiles : 0)) *
                 8 * in->columns->blocks;
    return NULL;
}

/* ---- plan, geometry and fields ---- */

void print_fused_rows(FILE *out, const fpa_plan *plan)
{
    const fpa_fused_rows *rows = plan->cuda.fused_rows;
    fprintf(out,
            "fused_chunk  chunked%s: %d warpgroup%s %d tile%s of 64 features of the state each, %d compute%s "
            "outputs, 1 fetches; panels of 64 tokens in flight: %d, for totals of segments %d; %d cop%s of "
            "the state; %.1f KiB of shared memory%s\n",
            rows->packed ? ", from packed features" : "", rows->key_groups,
            rows->key_groups == 1 ? " updates" : "s update", rows->key_tiles, rows->key_tiles == 1 ? "" : "s",
            rows->query_groups, rows->query_groups == 1 ? "s" : "", rows->panels, rows->total_panels,
            rows->copies, rows->copies == 1 ? "y" : "ies", rows->bytes / 1024.0,
            rows->blocks > 1 ? "; two blocks on a multiprocessor" : "");
}

void geometry_fused_rows(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_fused_rows *rows = plan->cuda.fused_rows;
    const fpa_columns *columns = &plan->cuda.columns;
    g->kernel[CUDA_FUSED_CHUNK] =
        (struct fpa_cuda_block){128 * (1 + rows->key_groups + rows->query_groups), rows->bytes, rows->blocks};
    g->fused_totals = 1;
    g->fused_total =
        (rows->slots + (rows->numbers && !rows->scales ? 64 : 0)) * columns->all * 8 * columns->blocks;
    g->fused_vector = rows->vector;
    g->fused_packs = rows->packed;
    g->fused_value = plan->head->dv;
    g->fused_unpadded = rows->leans ? 2 : 1;
    g->fused_reverses = rows->reverses;
    g->fused_narrows = rows->narrows;
    if (rows->leaves_dots) {
        g->fused_kept = rows->kept;
        g->kernel[CUDA_STATE_PRODUCT] = (struct fpa_cuda_block){PRODUCT_THREADS, 0, 0};
    }
    work_fused_rows(plan, g);
}

#define ROWS(member) FIELD(fpa_fused_rows, member)
const fpa_field fused_rows_fields[] = {ROWS(width),
                                       ROWS(packed),
                                       ROWS(scale_power),
                                       ROWS(weighted),
                                       ROWS(key_groups),
                                       ROWS(query_groups),
                                       ROWS(cluster),
                                       ROWS(key_tiles),
                                       ROWS(blocks),
                                       ROWS(first_registers),
                                       ROWS(fetch_registers),
                                       ROWS(key_registers),
                                       ROWS(query_registers),
                                       FIELD_ARRAY(fpa_fused_rows, "feature", slot_feature, slots, 1, 0),
                                       FIELD_ARRAY(fpa_fused_rows, "weight", slot_weight, slots, 1, 0),
                                       ROWS(panels),
                                       ROWS(total_panels),
                                       ROWS(copies),
                                       ROWS(copied),
                                       ROWS(slots),
                                       ROWS(panel_bytes),
                                       ROWS(query_bytes),
                                       ROWS(steps),
                                       ROWS(slabs),
                                       ROWS(lean),
                                       ROWS(vector_words),
                                       ROWS(value_words),
                                       ROWS(vector_tails),
                                       ROWS(leans),
                                       ROWS(finishes_much),
                                       ROWS(vector_room),
                                       ROWS(value_room),
                                       ROWS(reverses),
                                       ROWS(factored),
                                       ROWS(factor_room),
                                       ROWS(leaves_dots),
                                       ROWS(numbers),
                                       ROWS(scales),
                                       ROWS(beside),
                                       ROWS(narrows),
                                       ROWS(adds),
                                       ROWS(kept),
                                       ROWS(at_gates),
                                       ROWS(at_copies),
                                       ROWS(at_barriers),
                                       ROWS(at_part),
                                       ROWS(bytes),
                                       FIELDS_END};
