/* Kernels of one pass: what chunk_state and chunk_output do, with the state on the way, and only a panel's own keys for
 * each query. */
#include "abi/cuda_kernels.h"
#include "work.h"

static int token_bytes(const fpa_plan *plan, bool queries)
{
    return work_operand_bytes(plan, (queries ? 2 : 1) * (plan->head->d + plan->head->dv));
}

/* Rows of a panel are written and read, units' factors fetched from them for keys and queries, and multiplied. */
static void count_packed(const fpa_plan *plan, bool queries, struct fpa_cuda_kernel_work *work)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const fpa_fused_packed_plan *fused = &plan->fused_packed;
    const int columns = cuda->all_tiles, tiles = fused->key_groups * fused->key_tiles, units = cuda->units;
    const int steps = cuda->dot_first[plan->score->dot_count], sides = queries ? 2 : 1,
              gate = plan->head->gate ? 1 : 0;
    const int blocks = cuda->column_blocks, factors = cuda->factors;
    struct fpa_cuda_work step = {
        .products =
            4 * columns * tiles + sides * fused->matrix_rows * fused->matrix_parts * plan->head->d / 64,
        .shared = 2 * columns * tiles + sides * (8 * units * factors / 5 + 10 * fused->rows / 3) +
                  30 * sides * gate,
        .instructions = sides * (6 * units * (factors - 1) + 12 * fused->rows) + 70 + 290 * sides * gate,
    };
    if (queries) {
        step.products += columns * units + work_score_products(plan, steps);
        step.shared += columns * units / 2 + 4 * steps + 2 * columns + 7 * cuda->column_tiles;
        step.instructions += 145 + 14 * cuda->column_tiles + 40 * work_more_scores(plan);
    }
    work->warpgroups = 1;
    work->step = (struct fpa_cuda_work){.products = blocks * step.products,
                                        .shared = blocks * step.shared,
                                        .instructions = blocks * step.instructions,
                                        .bytes = token_bytes(plan, queries)};
    work->trips = 4;
}

/* Coordinates as they lie: 64 x warp_units features. shared and instructions: of tiles of the state, rows, o, and gates. */
static void count_coordinates(const fpa_plan *plan, bool cluster, struct fpa_cuda_kernel_work *work)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const int columns = cuda->all_tiles, rows = (plan->head->d + 15) / 16, gate = plan->head->gate ? 1 : 0;
    const int tiles = columns * cuda->warp_units, scores = work_score_products(plan, rows),
              blocks = cuda->column_blocks;
    work->warpgroups = 1;
    /* queries of the second half of a cluster's span have the first half's keys, too */
    work->step = (struct fpa_cuda_work){
        .products = blocks * (4 * tiles + columns * rows + (cluster ? 3 * scores / 2 : scores)),
        .shared = blocks * (cluster ? 7 * tiles + 22 * rows + 6 * columns + 50 * gate
                                    : 9 * tiles / 2 + 20 * rows + 8 * columns + 60 * gate),
        .instructions = blocks * (26 * tiles + (cluster ? 390 + (200 + 12 * rows) * gate
                                                        : 650 + (290 + 20 * rows) * gate)),
        .bytes = token_bytes(plan, true)};
    work->trips = 4;
}

/* Keys alone: their product, and half of the rows. */
static void count_coordinate_totals(const fpa_plan *plan, struct fpa_cuda_kernel_work *work)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const int tiles = cuda->all_tiles * cuda->warp_units, rows = (plan->head->d + 15) / 16,
              blocks = cuda->column_blocks;
    work->warpgroups = 1;
    work->step =
        (struct fpa_cuda_work){.products = blocks * 4 * tiles,
                               .shared = blocks * (4 * tiles + 10 * rows),
                               .instructions = blocks * (13 * tiles + 200 + (plan->head->gate ? 150 : 0)),
                               .bytes = token_bytes(plan, false)};
    work->trips = 3;
}

/* The portable pass: panels of rows, or coordinates. */
static void count_portable(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const struct fpa_cuda_kernel_work *state = &g->work[CUDA_CHUNK_STATE],
                                      *output = &g->work[CUDA_CHUNK_OUTPUT];
    struct fpa_cuda_kernel_work *work = &g->work[CUDA_FUSED_CHUNK];
    const bool rows = !plan->cuda.coordinates;
    /* of a panel's own keys five eighths of the tiles are before a query */
    work->step.products = state->step.products + output->copy.products + output->keys.products * 5 / 8 +
                          (rows ? output->step.products : 0);
    work->step.shared = state->step.shared + output->copy.shared + output->keys.shared;
    work->step.instructions = state->step.instructions + output->copy.instructions +
                              output->keys.instructions + (rows ? output->step.instructions : 300);
    work->step.bytes = token_bytes(plan, true);
    work->trips = 4;
    g->totals = *state;
}

void work_fused(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    struct fpa_cuda_kernel_work *work = &g->work[CUDA_FUSED_CHUNK];
    if (plan->fused_packed.used) {
        count_packed(plan, true, work);
        count_packed(plan, false, &g->totals);
    } else if (plan->cuda.fused_coordinates) {
        count_coordinates(plan, false, work);
        count_coordinate_totals(plan, &g->totals);
    } else {
        count_portable(plan, g);
    }
    if (plan->cluster_scan.used)
        count_coordinates(plan, true, &g->work[CUDA_CLUSTER_SCAN]);
}
