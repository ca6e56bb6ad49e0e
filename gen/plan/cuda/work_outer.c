/* Counts of split_outer's kernels (work.h): wgmma on tiles of 64 features, a tile and 8 columns being 4 products of
 * 16 x 8 x 16. Coefficients of instructions are those of the emitted loops. */
#include "abi/cuda_kernels.h"
#include "base/round.h"
#include "machine/gpu.h"
#include "parts.h"
#include "work.h"

#include <math.h>

/* Up to which the operations of a polynomial of one dot are counted one by one. */
enum { POLYNOMIAL_DEGREE = 16 };

/* Rows of a vector, packed ones and coordinates as given. */
static int rows_of(const fpa_outer_plan *outer)
{
    return outer->vector_rows + outer->given_rows;
}

/* Passes of 128 bytes of shared memory of a warp, for 16 tokens and a round of strips: rows of suffixes and of
 * prefixes' factors (ldmatrix), and shuffles of prefixes. */
static int words_of_round(const fpa_outer_plan *outer, const fpa_chunk_state_kernel *kernel)
{
    if (outer->rows)
        return 4 * outer->strip_length;
    int words = 2 * (outer->strip_length + outer->prefix_factors * kernel->prefix_blocks);
    for (int l = 0; l < outer->prefix_factors; l++)
        words += (outer_prefix_kind(outer, l) == PREFIX_ROW ? 2 : 4) * kernel->shares;
    return words;
}

/* A copy of the state: sums of all tiles are written to shared memory by threads, and read there by the copy engine. */
static struct fpa_cuda_work count_copy(const fpa_split_outer *split)
{
    const int columns = 8 * split->columns.all * split->columns.blocks,
              numbers = 64 * split->outer.tiles * columns;
    return (struct fpa_cuda_work){.shared = numbers / 32,
                                  .instructions = numbers / 32 * 2,
                                  .bytes = 2 * split->outer.copy_rows * columns};
}

/* Bytes read once more from the second-level cache; not counted for vectors of one or two slabs, whose many stages
 * hide these reads (docs/decisions/0046-product-rows.md). */
static int cached_bytes(const fpa_split_outer *split, double bytes)
{
    enum { FEW_BLOCKS = 2 * 8 };
    return split->outer.row_blocks > FEW_BLOCKS ? (int)(bytes + 0.5) : 0;
}

/* Bytes of keys and values that all blocks of a head fetch for 16 tokens. */
static double fetched_bytes(const fpa_split_outer *split, const fpa_chunk_state_kernel *kernel)
{
    const int64_t values = kernel->slices * divide_up(split->columns.tiles, SLAB_BLOCKS);
    return 16. * SLAB_ROW * split->columns.blocks * (values + kernel->fetched_slabs);
}

/* Tiles of 8 columns that a product is counted as: at least 4, since products of fewer columns wait for their
 * latency, whatever the tensor cores' rate. A lone product takes 49 clocks (8 columns) to 66 (32), one of three
 * warpgroups 19 to 23, on an H200 (docs/decisions/0072-narrow-values.md). */
static int product_columns(int columns)
{
    enum { LEAST = 32 / 8 };
    return largest(columns, LEAST);
}

/* A warp's instructions: 6 for a tile (four multiplications, the product, its wait), 7 for each of a prefix's factors, 19
 * for a step of the loop, 12 for gates. */
struct fpa_cuda_kernel_work work_chunk_state(const fpa_plan *plan, const fpa_split_outer *split,
                                             const fpa_chunk_state_kernel *kernel)
{
    const fpa_outer_plan *outer = &split->outer;
    const int blocks = kernel->slices * split->columns.blocks,
              strips = blocks * kernel->groups * kernel->strips;
    const int tiles = strips * outer->strip_length, rounds = 4 * strips / kernel->shares;
    const int warps = 4 * blocks * kernel->groups, columns = split->columns.all;
    return (struct fpa_cuda_kernel_work){
        .warpgroups = 1,
        .step = {.products = 4 * product_columns(columns) * tiles,
                 .shared = 2 * columns * tiles + words_of_round(outer, kernel) * rounds,
                 .instructions = (outer->rows ? 4 : 6) * 4 * tiles +
                                 (outer->rows ? 0 : 7 * outer->prefix_factors * kernel->shares * rounds) +
                                 (19 + (plan->head->gate ? 12 : 0)) * warps,
                 .bytes = work_operand_bytes(plan, rows_of(outer) + plan->head->dv),
                 .cached = cached_bytes(split, fetched_bytes(split, kernel))},
        .copy = count_copy(split),
        .trips = 3};
}

/* How many factors of prefixes are whole blocks of rows (blocks), or are not, so that queries fetch them one number
 * at a time. */
static int count_factors(const fpa_outer_plan *outer, bool blocks)
{
    int count = 0;
    for (int l = 0; l < outer->prefix_factors; l++)
        count += (outer_prefix_kind(outer, l) == PREFIX_BLOCK) == blocks;
    return count;
}

/* A copy read by 16 queries, a warp's share of 64: for each tile four products of 16 features (three for a folded
 * one), whose features take 8 instructions each (four words shuffled, four multiplied); waits and counters are
 * divided among the tiles of queries that a warp has. */
static struct fpa_cuda_work count_reading(const fpa_split_outer *split)
{
    const fpa_outer_plan *outer = &split->outer;
    const int whole = outer->tiles - outer->folded, units = 4 * outer->tiles - outer->folded;
    const int blocks = outer->groups * count_factors(outer, true),
              others = outer->groups * count_factors(outer, false);
    const int columns = split->columns.all, query_tiles = split->query_tiles;
    const double copy = 16.0 * columns * split->columns.blocks * outer->copy_rows;
    return (struct fpa_cuda_work){
        .products = split->columns.blocks * units * columns,
        .cached = cached_bytes(split, copy * 16 / split->query_tokens),
        .shared = split->columns.blocks *
                  (units * columns / 2 + 3 * whole / 2 + 8 * blocks + 17 * others + 10 * outer->folded),
        .instructions =
            split->columns.blocks *
            (whole * (24 + 67 / query_tiles) + 73 * outer->folded / query_tiles + 23 * blocks + 76 * others)};
}

/* Clocks for a stage of keys: a trip to memory, and their bytes at a multiprocessor's share of the second-level
 * cache's rate. */
static double stage_clocks(const fpa_gpu *gpu, const fpa_split_outer *split)
{
    const double share = gpu->cache / gpu->clock / gpu->multiprocessors;
    return GPU_TRIP * gpu->clock + 64 * 2.0 * (rows_of(&split->outer) + 8 * split->columns.tiles) / share;
}

/* Clocks that a warp waits for keys, for 16 queries and 64 keys, if these have one stage; more stages hide the waits. */
static int count_stage_waits(const fpa_gpu *gpu, const fpa_split_outer *split, int stages)
{
    return stages == 1 ? (int)(split->columns.blocks * stage_clocks(gpu, split) / split->query_tiles) : 0;
}

/* All clocks that a warp waits for 16 queries and 64 keys. With one tile of queries at a time (alone) it waits for
 * its warpgroup's products. With dots in turn the producer's warps, which the model counts among those that hide
 * waits, have nothing to do, so that fewer warps share the waits; of this three fifths are counted, since r1_03,
 * r1_05 and r3_13 took 0.70, 0.88 and 0.82 of the time with all of it (docs/decisions/0071-dots-two-at-a-time.md). */
static int count_waiting(const fpa_gpu *gpu, const fpa_split_outer *split, int products, int instructions)
{
    const bool alone = split->query_tiles == 1 || split->dots_in_turn;
    const int waits = alone ? 4 * products : 0;
    const int more =
        split->dots_in_turn ? 3 * (waits + GPU_LATENCY * instructions) / (5 * split->output_groups) : 0;
    return waits + more + count_stage_waits(gpu, split, split->most_key_stages);
}

/* Multiplications for x^power by repeated squaring. */
static int count_squares(int power)
{
    int count = 0;
    for (; power > 1; power /= 2)
        count += 1 + power % 2;
    return count;
}

/* b, if a polynomial of one dot is a binomial (s + b)^n; false: it is not. */
static bool find_base(const fpa_split_outer *split, double *base)
{
    double weight[POLYNOMIAL_DEGREE + 1] = {0}, term = 1;
    const int degree = split->monomial_power[0];
    for (int i = 0; i < split->monomials; i++)
        weight[split->monomial_power[i]] = split->monomial_weight[i];
    *base = weight[degree - 1] / degree;
    for (int m = degree; m >= 0; m--) {
        if (fabs(weight[m] - term) > 1e-12 * fabs(weight[m]))
            return false;
        term *= *base * m / (degree - m + 1);
    }
    return true;
}

/* Operations that polynomial_of_dot (templates/common/numbers.in) saves against scaling the dot and Horner's rule:
 * the scale's multiplication, unless the polynomial is a power of the dot; and for binomials what powers of the root
 * save. */
static int count_spared(const fpa_split_outer *split)
{
    const int degree = split->monomial_power[0];
    double base;
    if (!find_base(split, &base))
        return 1;
    return base != 0 ? degree - count_squares(degree) : degree - 1 - count_squares(degree);
}

/* Whether a score is printed that way. */
static bool is_polynomial(const fpa_split_outer *split)
{
    return split->dots == 1 && !split->dots_in_turn && split->monomials > 0 &&
           split->monomial_power[0] >= 2 && split->monomial_power[0] <= POLYNOMIAL_DEGREE;
}

/* Multiplications for gates, for a lane's 32 pairs: by keys' factors, and by queries' factors, or of a lane's sums if
 * these decay from tile to tile of keys. In bf16 sums seldom decay, unless ones are columns
 * (templates/hopper/split_score.cu.in). */
static int count_gates(const fpa_plan *plan, const fpa_split_outer *split)
{
    enum { PAIRS = 32, FACTORS = 15 };
    const int sums = 4 * split->columns.all;
    if (!plan->head->gate)
        return 0;
    if (!plan->head->causal || split->contraction.turns)
        return PAIRS + FACTORS + PAIRS;
    return PAIRS + FACTORS +
           (plan->facts.arithmetic == FPA_BF16 && !split->columns.ones_slabs ? 0
            : sums < PAIRS                                                   ? sums
                                                                             : PAIRS);
}

/* Instructions from dots to scores, for 16 queries and 64 keys, of which a lane has 32 pairs. */
static int count_scores(const fpa_plan *plan, const fpa_split_outer *split)
{
    return 64 + 47 * work_more_scores(plan) + count_gates(plan, split) -
           (is_polynomial(split) ? 32 * count_spared(split) : 0);
}

/* 16 queries and 64 keys of their chunk. If dots are computed for 32 keys at a time, queries are read twice. */
static struct fpa_cuda_work count_keys(const fpa_plan *plan, const fpa_split_outer *split)
{
    const fpa_gpu *gpu = gpu_of_target(plan->target);
    const int blocks = split->columns.blocks, columns = split->columns.all,
              vector = rows_of(&split->outer) + plan->head->dv;
    const int steps = split->outer.dot_first[plan->score->dot_count];
    const bool halves = split->dots_in_turn && split->turn_keys < 64;
    const int products = blocks * work_score_products(steps, columns);
    const int instructions = blocks * (41 + (halves ? 18 : 14) * steps + count_scores(plan, split));
    return (struct fpa_cuda_work){
        .products = products,
        .shared = blocks * ((halves ? 11 : 7) * steps + 2 * columns + (plan->head->gate ? 21 : 0)),
        .instructions = instructions,
        .bytes = 4 * work_operand_bytes(plan, vector) * 16 / split->query_tokens,
        .awaited = count_waiting(gpu, split, products, instructions)};
}

struct fpa_cuda_kernel_work work_chunk_output(const fpa_plan *plan, const fpa_split_outer *split)
{
    const int blocks = split->columns.blocks, tiles = split->columns.tiles;
    const int steps = split->outer.dot_first[plan->score->dot_count];
    const int vector = rows_of(&split->outer) + plan->head->dv;
    return (struct fpa_cuda_kernel_work){.warpgroups = 1,
                                         .step = {.shared = blocks * (4 * tiles + 11 * steps),
                                                  .instructions = blocks * (455 + 25 * tiles),
                                                  .bytes = work_operand_bytes(plan, vector)},
                                         .copy = count_reading(split),
                                         .keys = count_keys(plan, split),
                                         .trips = 3};
}

/* The same in parallel_output, all columns together. A warp that computes scores has 6 instructions for each step of
 * dots, 41 besides, as in chunk_output, and 20 to store scores; a warp that multiplies values has 6 for each product,
 * and 30 besides. Scores are stored once, and read for each block of columns. Dots are waited for by the warpgroups
 * that compute scores only; three fifths of that are counted, as in count_waiting: r3_13 and r2_05 take 1.00 and 0.98
 * of the prediction then (docs/decisions/0193-scores-by-warpgroups-of-their-own.md). */
static struct fpa_cuda_work count_parallel_keys(const fpa_plan *plan, const fpa_split_outer *split)
{
    const fpa_parallel_output *p = &split->parallel;
    const int blocks = split->columns.blocks, columns = split->columns.all * blocks,
              steps = split->outer.dot_first[plan->score->dot_count],
              vector = rows_of(&split->outer) + plan->head->dv;
    const int scores = 61 + 6 * steps + count_scores(plan, split), values = 30 + 24 * blocks;
    const int groups = p->score_groups + p->value_groups + 1, waits = 3 * 4 * 8 * steps / 5;
    return (struct fpa_cuda_work){.products = work_score_products(steps, columns),
                                  .shared = 7 * steps + 2 * columns + 16 * blocks + 16,
                                  .instructions = scores + values,
                                  .bytes = work_operand_bytes(plan, vector) / p->tiles,
                                  .awaited = groups * waits / p->score_groups};
}

struct fpa_cuda_kernel_work work_parallel_output(const fpa_plan *plan, const fpa_split_outer *split)
{
    struct fpa_cuda_kernel_work work = work_chunk_output(plan, split);
    work.copy = (struct fpa_cuda_work){0};
    work.keys = count_parallel_keys(plan, split);
    return work;
}

/* Blocks of 8 rows of a vector that pack_rows forms. */
static int count_formed(const fpa_pack_kernel *pack)
{
    int formed = 0;
    for (int b = 0; b < pack->blocks_of_vector; b++)
        formed += pack->block[b] >= pack->first_formed;
    return formed;
}

/* Projections of 16 tokens, a warp's share of 64. Tokens are loaded once; matrices are read from shared memory for
 * all four warps. A chunk's product has three instructions for each 16 coordinates, and sums are stored 16 rows at a
 * time. Streamed matrices come from the second-level cache, once for the tokens of all warpgroups, and their chunks
 * are waited for. Converting tokens to f16 takes five instructions a word, and one for each sum. */
static struct fpa_cuda_work count_projections(const fpa_plan *plan, const fpa_pack_kernel *pack)
{
    const int d = plan->head->d, steps = (d + 15) / 16, slabs = (d + 63) / 64,
              rows = pack->chunks * pack->chunk_rows;
    const int turns = pack->kept ? 0 : 4 * pack->groups;
    const int narrowed = pack->narrows ? 20 * steps + rows / 2 : 0;
    return (struct fpa_cuda_work){.products = pack->parts * rows / 8 * steps,
                                  .shared = 4 * steps + pack->parts * rows * steps / 16 + rows / 4,
                                  .instructions = steps + pack->chunks * (3 * steps + (turns ? 40 : 20)) +
                                                  10 * rows / 16 + narrowed,
                                  .cached = turns ? rows * slabs * pack->parts * 128 / turns : 0};
}

/* Whether some blocks of a vector begin between multiples of 16 bytes in a tile. */
static bool is_shifted(const fpa_pack_kernel *pack)
{
    for (int b = 0; b < pack->blocks_of_vector; b++)
        if (pack->block[b] % OUTER_BLOCK)
            return true;
    return false;
}

/* pack_rows for 16 tokens. Coordinates are fetched by words of 16 bytes (14 instructions), which are shifted if rows
 * are not aligned (14). For a formed block a lane has a token: for each factor it loads 16 bytes once or twice, and
 * selects, weighs and multiplies four words. Blocks are stored 16 bytes at a time (7 instructions, 12 more if they
 * are not aligned in the tile). Everything else takes 40. */
static struct fpa_cuda_kernel_work count_pack(const fpa_plan *plan, const fpa_split_outer *split)
{
    const fpa_pack_kernel *pack = &split->pack;
    const int d = plan->head->d, pieces = (d + 7) / 8, words = (2 * d + 29) / 16,
              blocks = pack->blocks_of_vector;
    const int formed = count_formed(pack), factors = largest(split->product_factors, 1);
    const bool amid = d % 8, shifted = is_shifted(pack);
    struct fpa_cuda_work step = pack->chunks ? count_projections(plan, pack) : (struct fpa_cuda_work){0};
    step.shared +=
        2 * words + (amid ? 4 * pieces : 0) + (3 * factors + 2) * formed + (shifted ? 4 : 2) * blocks;
    step.instructions += 40 + 7 * words + (amid ? 7 * pieces : 0) + (5 * factors + 2) * formed +
                         (shifted ? 19 : 7) * blocks / 2;
    step.bytes = work_operand_bytes(plan, d + 8 * blocks);
    return (struct fpa_cuda_kernel_work){.warpgroups = pack->chunks > 0, .step = step, .trips = 2};
}

/* state_product: reads two copies. */
static struct fpa_cuda_kernel_work count_product(const fpa_split_outer *split)
{
    const int numbers = split->outer.copy_rows * split->columns.blocks * 8 * split->columns.all;
    return (struct fpa_cuda_kernel_work){
        .copy = {.bytes = 2 * numbers * 2, .instructions = numbers / (32 * 8) * 60}, .trips = 1};
}

/* Stages of keys that overlap tiles are counted as saving half of the waits of a single stage: with this the model
 * chooses the chunks and blocks that were measured as the fastest for r3_02 and r1_06
 * (docs/decisions/0138-keys-and-tiles-share-room.md). */
int work_awaited_keys(const fpa_plan *plan, const fpa_split_outer *split)
{
    const fpa_gpu *gpu = gpu_of_target(plan->target);
    return (count_stage_waits(gpu, split, largest(split->key_stages, 1)) -
            count_stage_waits(gpu, split, split->most_key_stages)) /
           2;
}

void work_split_outer(const fpa_plan *plan, const fpa_split_outer *split, struct fpa_cuda_geometry *g)
{
    g->awaited_keys = work_awaited_keys(plan, split);
    g->work[CUDA_CHUNK_STATE] = work_chunk_state(plan, split, &split->state[0]);
    if (split->kernels > 1)
        g->work[CUDA_CHUNK_STATE_SMALL] = work_chunk_state(plan, split, &split->state[1]);
    g->work[CUDA_CHUNK_OUTPUT] = work_chunk_output(plan, split);
    if (split->parallel.tiles)
        g->work[CUDA_PARALLEL_OUTPUT] = work_parallel_output(plan, split);
    if (split->leaves_dots)
        g->work[CUDA_STATE_PRODUCT] = count_product(split);
    if (!split->outer.coordinates)
        g->work[CUDA_PACK_ROWS] = count_pack(plan, split);
}
