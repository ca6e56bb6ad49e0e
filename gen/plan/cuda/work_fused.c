/* Work of the one-pass kernels: that of chunk_state and chunk_output with the state in registers, and pairs
 * inside a panel only. */
#include "abi/cuda_kernels.h"
#include "cluster_scan.h"
#include "fused_packed.h"
#include "fused_pass.h"
#include "fused_rows.h"
#include "head/lift.h"
#include "lift_groups.h"
#include "lift_made.h"
#include "parts.h"
#include "work.h"

static void add_side(const struct fpa_cuda_work *made, int count, struct fpa_cuda_work *step)
{
    step->products += count * made->products;
    step->shared += count * made->shared;
    step->instructions += count * made->instructions;
}

static int token_bytes(const fpa_plan *plan, bool queries)
{
    return work_operand_bytes(plan, (queries ? 2 : 1) * (plan->head->d + plan->head->dv));
}

/* Adds the work of a window, for 16 queries: exponents of the keys that they see (one panel is counted among
 * the head's own scores): products, the largest ones, weights, pairs of them; for the panels at both ends,
 * positions, and kernels of older keys. */
static void add_near_keys(const fpa_plan *plan, struct fpa_cuda_work *step)
{
    const int panels = plan->cuda.fused_packed->near_panels, columns = plan->cuda.columns.all;
    const int given = (plan->head->d + 15) / 16;
    step->products += (panels - 1) * work_score_products(given, columns);
    step->shared += (panels - 1) * (4 * given + 2 * columns);
    step->instructions += panels * 150 + 250 + 40 * work_more_scores(plan);
}

/* Instructions that store 16 queries' sums as o: by lanes, or by way of shared memory in pieces of o, which
 * are put together of two pieces of sums if rows begin anywhere (leaves_in_pieces). */
static int leaving_instructions(const fpa_plan *plan)
{
    const fpa_columns *columns = &plan->cuda.columns;
    const int dv = plan->head->dv;
    if (dv % 8 == 0 || !plan->cuda.leaves_in_pieces) /* either way as much */
        return 14 * columns->tiles;
    const bool leans = plan->cuda.fused_rows && plan->cuda.fused_rows->value_room >= cuda_most_lean(dv);
    const int turns = columns->tiles > 8 ? 8 : 4; /* iterations of a warp for 16 rows */
    const int pieces = 3 * columns->tiles + turns * (leans ? 8 : 23) + 50;
    return plan->cuda.fused_rows ? 2 * pieces
                                 : pieces; /* one warpgroup stores while others wait for the buffer */
}

/* Work of fused_packed for 16 tokens: rows of a panel are written and read, units' factors fetched for keys
 * and queries, features formed and multiplied. */
static void count_packed(const fpa_plan *plan, bool queries, struct fpa_cuda_kernel_work *work)
{
    const fpa_cuda_rows *rows = plan->cuda.rows;
    const fpa_fused_packed *fused = plan->cuda.fused_packed;
    const int columns = plan->cuda.columns.all, tiles = fused->key_groups * fused->key_tiles,
              units = rows->units;
    const int steps = rows->dot_steps, sides = queries ? 2 : 1, gate = plan->head->gate ? 1 : 0;
    const int blocks = plan->cuda.columns.blocks, factors = rows->factors;
    /* instructions to pack a row of a side; warps with tasks of their own take as many for a row of both
     * (docs/decisions/0169-who-packs-by-tasks.md) */
    const int packing = queries && fused->tasks ? 7 * fused->rows : sides * 12 * fused->rows;
    struct fpa_cuda_work step = {
        .products =
            4 * columns * tiles + sides * fused->matrix_rows * fused->matrix_parts * plan->head->d / 64,
        .shared = 2 * columns * tiles + sides * (8 * units * factors / 5 + 10 * fused->rows / 3) +
                  30 * sides * gate,
        .instructions = sides * 6 * units * (factors - 1) + packing + 70 + 290 * sides * gate,
    };
    if (queries) {
        step.products += columns * units + work_score_products(steps, columns);
        step.shared += columns * units / 2 + 4 * steps + 2 * columns + 7 * plan->cuda.columns.tiles;
        step.instructions += 145 + leaving_instructions(plan) + 40 * work_more_scores(plan);
    }
    if (queries && fused->near_panels)
        add_near_keys(plan, &step);
    if (fused->lifts) {
        const struct fpa_cuda_work made = work_lift_beside(plan);
        add_side(&made, sides, &step);
    }
    work->warpgroups = 1;
    work->step =
        (struct fpa_cuda_work){.products = blocks * step.products,
                               .shared = blocks * step.shared,
                               .instructions = blocks * step.instructions,
                               .bytes = work_operand_bytes(plan, sides * (fused->vector + plan->head->dv))};
    work->trips = 4;
}

/* Sizes of kernels of coordinates, 64 x warp_units of them for the state. For 16 tokens there are products of
 * keys and values, of queries and the copy, and scores; shared memory and instructions are counted for tiles
 * of the state, for 16 coordinates, for 8 columns, and for gates. */
typedef struct coordinate_sizes {
    /* blocks of columns; tiles of 8 columns of a block; tiles of 64 x 8 of the state */
    int blocks, columns, tiles;
    int steps; /* steps of 16 coordinates */
    int gate;  /* 1: gated */
} coordinate_sizes;

static coordinate_sizes sizes_of(const fpa_plan *plan)
{
    const fpa_columns *columns = &plan->cuda.columns;
    return (coordinate_sizes){.blocks = columns->blocks,
                              .columns = columns->all,
                              .tiles = columns->all * plan->cuda.rows->warp_units,
                              .steps = (plan->head->d + 15) / 16,
                              .gate = plan->head->gate};
}

static int products_of(const coordinate_sizes *s, int scores)
{
    return s->blocks * (4 * s->tiles + s->columns * s->steps + scores);
}

/* Without a mask keys and queries are two launches; queries only read the state of all keys. */
static void work_open_coordinates(const fpa_plan *plan, const coordinate_sizes *s, int maps,
                                  struct fpa_cuda_geometry *g)
{
    g->work[CUDA_FUSED_CHUNK] = (struct fpa_cuda_kernel_work){
        .warpgroups = 1,
        .step = {.products = s->blocks * s->columns * s->steps,
                 .shared = s->blocks * (10 * s->steps + 8 * s->columns),
                 .instructions = s->blocks * (13 * s->columns + 200 + maps),
                 .bytes = work_operand_bytes(plan, plan->head->d + plan->head->dv)},
        .trips = 4};
}

/* Totals whose coordinates stay in registers: tokens become operands that each 64 rows of the matrix read; 64
 * x 32 sums take 80 instructions of a warp
 * (docs/decisions/0176-totals-whose-coordinates-stay-in-registers.md). */
static void count_own_totals(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const int units = plan->cuda.rows->warp_units, given = (plan->written->lift->width + 15) / 16;
    const coordinate_sizes s = sizes_of(plan);
    g->totals.step.shared = s.blocks * (4 * units * given + 2 * s.tiles + 128);
    g->totals.step.instructions = s.blocks * (160 * units + 360);
}

/* Computing coordinates of both sides, once for each block of columns, from q and k as given. If queries'
 * coordinates are computed by the warpgroup that multiplies them, they are not stored in shared memory, and
 * neither dot products nor products with the copy of the state read them there. */
static void add_lifted(const fpa_plan *plan, int blocks, struct fpa_cuda_geometry *g)
{
    /* no powers of tokens; keys are announced once */
    enum { STORED = 4, READ = 8, POWERS = 24, TOLD = 130 };
    const bool turns = plan->cuda.fused_coordinates->turns;
    const struct fpa_cuda_work made = turns ? work_made(plan) : work_lift_beside(plan);
    const int given = plan->written->lift->width, dv = plan->head->dv,
              positions = turns ? (int)made.bytes : 0;
    add_side(&made, (turns ? 1 : 2) * blocks, &g->work[CUDA_FUSED_CHUNK].step);
    g->work[CUDA_FUSED_CHUNK].step.bytes = work_operand_bytes(plan, 2 * (given + dv)) + positions;
    if (plan->cuda.fused_coordinates->own) {
        g->work[CUDA_FUSED_CHUNK].step.shared -= blocks * (STORED + READ) * ((plan->head->d + 15) / 16);
        g->work[CUDA_FUSED_CHUNK].step.instructions -= blocks * (2 * POWERS * ((given + 15) / 16) + TOLD);
    }
    add_side(&made, blocks, &g->totals.step);
    if (plan->cuda.fused_coordinates->own)
        count_own_totals(plan, g);
    g->totals.step.bytes = work_operand_bytes(plan, given + dv) + positions;
}

void work_fused_coordinates(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const coordinate_sizes s = sizes_of(plan);
    const int maps =
        plan->cuda.fused_coordinates->maps ? work_maps(plan) / 4 : 0; /* of one side, by all warps */
    g->work[CUDA_FUSED_CHUNK] = (struct fpa_cuda_kernel_work){
        .warpgroups = 1,
        .step = {.products = products_of(&s, work_score_products(s.steps, s.columns)),
                 .shared = s.blocks * (9 * s.tiles / 2 + 20 * s.steps + 8 * s.columns + 60 * s.gate),
                 .instructions = s.blocks * (26 * s.tiles + 450 + 2 * maps + (290 + 20 * s.steps) * s.gate),
                 .bytes = token_bytes(plan, true)},
        .trips = 4};
    if (!plan->head->causal)
        work_open_coordinates(plan, &s, maps, g);
    g->totals = (struct fpa_cuda_kernel_work){
        .warpgroups = 1,
        .step = {.products = s.blocks * 4 * s.tiles,
                 .shared = s.blocks * (4 * s.tiles + 10 * s.steps),
                 .instructions = s.blocks * (13 * s.tiles + 200 + maps + 150 * s.gate),
                 .bytes = token_bytes(plan, false)},
        .trips = 3};
    if (plan->cuda.fused_coordinates->lifts)
        add_lifted(plan, s.blocks, g);
}

/* Queries of a span's second half also see the first half's keys. That operands are read only once is counted
 * in part: otherwise gated heads that use fused_rows would change to clusters, which is not measured. */
void work_cluster_scan(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const coordinate_sizes s = sizes_of(plan);
    const bool makes = plan->cuda.cluster_scan->maps;
    const struct fpa_cuda_work made = makes ? work_made(plan) : (struct fpa_cuda_work){0};
    const int vector = makes ? plan->written->lift->width : plan->head->d;
    const int scores = 3 * work_score_products(s.steps, s.columns) / 2;
    g->work[CUDA_CLUSTER_SCAN] = (struct fpa_cuda_kernel_work){
        .warpgroups = 1,
        .step = {.products = products_of(&s, scores) + s.blocks * made.products,
                 .shared =
                     s.blocks * (7 * s.tiles + 22 * s.steps + 6 * s.columns + 50 * s.gate + made.shared),
                 .instructions = s.blocks * (31 * s.tiles + 300 - 8 * s.steps +
                                             (300 + 12 * s.steps) * s.gate + made.instructions),
                 .bytes = work_operand_bytes(plan, 2 * (vector + plan->head->dv)) + made.bytes},
        .trips = 4};
    if (plan->cuda.cluster_scan->sequences)
        g->work[CUDA_SEQUENCE_SCAN] = g->work[CUDA_CLUSTER_SCAN];
}

/* The portable pass: panels of rows, or coordinates. */
void work_fused_panel(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const struct fpa_cuda_kernel_work *state = &g->work[CUDA_CHUNK_STATE],
                                      *output = &g->work[CUDA_CHUNK_OUTPUT];
    struct fpa_cuda_kernel_work *work = &g->work[CUDA_FUSED_CHUNK];
    const bool packs = !plan->cuda.coordinates;
    /* five eighths of a panel's 16 x 16 tiles are on or before the diagonal */
    work->step.products = state->step.products + output->copy.products + output->keys.products * 5 / 8 +
                          (packs ? output->step.products : 0);
    work->step.shared = state->step.shared + output->copy.shared + output->keys.shared;
    work->step.instructions = state->step.instructions + output->copy.instructions +
                              output->keys.instructions + (packs ? output->step.instructions : 300);
    work->step.bytes = token_bytes(plan, true);
    work->trips = 4;
    g->totals = *state;
}

void work_fused_packed(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    count_packed(plan, true, &g->work[CUDA_FUSED_CHUNK]);
    count_packed(plan, false, &g->totals);
}

/* Work of rows that begin anywhere, of `operands` operands, for 16 tokens: a piece of each of 32 rows takes
 * 30 instructions of a warp, by three of sixteen warps, while the others wait: as if it were 160 of all warps,
 * half of that for 16 tokens. 100 agree better with what was measured later
 * (docs/decisions/0099-ones-of-their-own.md). */
static void add_words(int operands, int words, struct fpa_cuda_work *step)
{
    step->shared += operands * 4 * words;
    step->instructions += operands * 100 * words;
}

/* Pieces of 8 numbers of a row that are shifted: all, or, if boxes may begin before rows, the `ends` ones
 * that are cleared. */
static int odd_pieces(int width, int room, int pieces, int ends)
{
    return width % 8 == 0 ? 0 : cuda_most_lean(width) <= room ? ends : pieces;
}

/* Bytes of 16 tokens that boxes fetch beyond those in device memory: whole slabs of rows that lean, columns
 * after a block's; queries and keys once if blocks are a cluster. An H200 fetched 3.9 GB of r3_01 for 1.3 GB,
 * at the full rate of its second-level cache (docs/decisions/0066-who-stores-o.md). */
static int boxed_bytes(const fpa_plan *plan, bool queries)
{
    const fpa_fused_rows *rows = plan->cuda.fused_rows;
    const fpa_columns *columns = &plan->cuda.columns;
    const fpa_head *head = plan->head;
    const int sides = queries ? 2 : 1, own = 8 * columns->tiles, slabs = round_up(own, 64);
    const int vector = rows->vector % 8 ? 64 * rows->slabs : rows->width;
    const int values =
        head->dv % 8 ? columns->blocks * slabs : head->dv + (columns->blocks - 1) * (slabs - own);
    const int fetched = work_operand_bytes(plan, sides * vector * columns->blocks / rows->cluster + values);
    const int once = work_operand_bytes(plan, sides * rows->vector + head->dv);
    return fetched > once ? fetched - once : 0;
}

/* Work of fused_rows for 16 tokens and a block of columns. Shared memory: values of keys' products, keys'
 * rows, copies that are written; copies that queries' products read, queries' rows, both sides of dots,
 * values of scores; panels that arrive. Instructions: rounding and storing copies; steps of products; scores,
 * and o, of each query. */
static void count_rows(const fpa_plan *plan, bool queries, struct fpa_cuda_kernel_work *work)
{
    const fpa_fused_rows *rows = plan->cuda.fused_rows;
    const fpa_columns *columns = &plan->cuda.columns;
    const int tiles = rows->key_groups * rows->key_tiles, units = rows->steps, all = columns->all;
    const int slabs = rows->slabs, values = (columns->tiles + 7) / 8, gate = plan->head->gate;
    const int weighed = rows->weighted ? units : 0;
    /* one warpgroup has a panel's queries, and keys wait for its copy: as if each of four did so much. Two
     * that alternate hide what a lone warp waits for between its instructions, and more if rows are fetched
     * by boxes (docs/decisions/0059-what-blocks-wait-for.md, 0099-ones-of-their-own.md) */
    const double serial = 2.5;
    struct fpa_cuda_work step = {.products = 4 * all * tiles,
                                 .shared = 2 * all * tiles + 16 * tiles + 16 * (slabs + values) + 30 * gate +
                                           6 * weighed,
                                 .instructions = 28 * tiles + 60 + 150 * gate + 35 * weighed};
    if (queries) {
        step.products += all * units + work_score_products(units, all);
        step.shared += 2 * all * tiles + all * units / 2 + 4 * units + 8 * units + 2 * all + 16 * slabs;
        step.instructions +=
            (int)(serial * (3 * all * tiles + 10 * units + 145 + leaving_instructions(plan) + 140 * gate));
    }
    add_words(queries ? 2 : 1, odd_pieces(rows->vector, rows->vector_room, 2 * units, 2), &step);
    add_words(1, odd_pieces(plan->head->dv, rows->value_room, columns->tiles, 0), &step);
    work->warpgroups = 1;
    work->step = (struct fpa_cuda_work){
        .products = columns->blocks * step.products,
        .shared = columns->blocks * step.shared,
        .instructions = columns->blocks * step.instructions,
        .bytes = work_operand_bytes(plan, (queries ? 2 : 1) * (rows->vector + plan->head->dv)),
        .cached = boxed_bytes(plan, queries)};
    work->trips = 4;
}

void work_fused_rows(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    count_rows(plan, true, &g->work[CUDA_FUSED_CHUNK]);
    count_rows(plan, false, &g->totals);
}
