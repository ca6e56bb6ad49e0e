/* Whether tiles are of the head's rows or of product rows; and what templates read of these and of the score. */
#include <math.h>
#include <string.h>

#include "machine/cuda_chunk.h"
#include "machine/cuda_cost.h"
#include "parts.h"
#include "split_outer.h"
#include "work.h"

static fpa_status list_monomials(const fpa_cuda_inputs *in, fpa_split_outer *split, fpa_error *error)
{
    const fpa_score *score = in->plan->score;
    const int dots = score->dot_count;
    split->monomials = score->monomial_count;
    split->powers = dots * score->monomial_count;
    split->monomial_weight = arena_array(in->memory, split->monomials, sizeof *split->monomial_weight);
    split->monomial_power = arena_array(in->memory, split->powers, sizeof *split->monomial_power);
    if (!split->monomial_weight || !split->monomial_power)
        return fail_memory(error);
    for (int i = 0; i < split->monomials; i++) {
        split->monomial_weight[i] = score->monomials[i].weight.value;
        memcpy(split->monomial_power + i * dots, score->monomials[i].power,
               dots * sizeof *split->monomial_power);
    }
    return FPA_OK;
}

/* Of a vector's row that is none of these the one row that it is. */
static fpa_status list_factors(const fpa_cuda_inputs *in, const fpa_product_rows *products,
                               fpa_split_outer *split, fpa_error *error)
{
    const int count = OUTER_BLOCK * split->outer.row_blocks, factors = products->factors;
    const int first = products->plan.row_count - products->count; /* product row */
    split->product_factors = factors;
    split->product_rows = count * factors;
    split->product_weights = count;
    split->product_row = arena_array(in->memory, split->product_rows, sizeof *split->product_row);
    split->product_weight = arena_array(in->memory, count, sizeof *split->product_weight);
    if (!split->product_row || !split->product_weight)
        return fail_memory(error);
    for (int i = 0; i < count; i++) {
        const int source = split->outer.source[i];
        int *row = split->product_row + i * factors;
        split->product_weight[i] = source >= first ? products->weight[source - first] : 1;
        split->products_weighted |= split->product_weight[i] != 1;
        for (int l = 0; l < factors; l++)
            row[l] = source >= first ? in->rows->row[products->factor[(source - first) * factors + l]]
                     : l > 0         ? in->rows->ones_row
                                     : split->source[i];
    }
    return FPA_OK;
}

fpa_status plan_split_products(const fpa_cuda_inputs *in, const fpa_product_rows *products,
                               fpa_split_outer *split, fpa_error *error)
{
    split->product_count = products ? products->count : 0;
    split->first_product = in->rows->row_count - split->product_count;
    split->dot_degree = arena_array(in->memory, split->dots, sizeof *split->dot_degree);
    if (!split->dot_degree)
        return fail_memory(error);
    for (int i = 0; i < split->dots; i++)
        split->dot_degree[i] = products ? products->dot_degree[i] : 1;
    fpa_status status = list_monomials(in, split, error);
    return status || !products ? status : list_factors(in, products, split, error);
}

/* ---- which takes less time ---- */

/* Of a token, by so many tiles of keys before it, and by a copy of the state or without. */
static double output_seconds(const fpa_plan *plan, const struct fpa_cuda_geometry *g, int warps, double tiles)
{
    const fpa_gpu *gpu = gpu_of_target(plan->target);
    const struct fpa_cuda_kernel_work *work = &g->work[CUDA_CHUNK_OUTPUT];
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &work->step, 1.0 / 16);
    cuda_sum_add(&sum, &work->keys, tiles / 16);
    const double own = cuda_clocks(gpu, &sum, true, warps) / gpu->multiprocessors / gpu->clock,
                 memory = cuda_memory_ahead(gpu, &sum, true);
    return cbrt(own * own * own + memory * memory * memory);
}

static double pack_seconds(const fpa_plan *plan, const fpa_split_outer *split,
                           const struct fpa_cuda_geometry *g)
{
    enum { DIRECT = 64 };
    const fpa_gpu *gpu = gpu_of_target(plan->target);
    const int warps = split->pack.direct ? DIRECT : split->pack.threads * split->pack.blocks / 32;
    fpa_cuda_sum sum = {0};
    cuda_sum_add(&sum, &g->work[CUDA_PACK_ROWS].step, 2.0 / 16);
    const double own = cuda_clocks(gpu, &sum, false, warps) / gpu->multiprocessors / gpu->clock,
                 memory = cuda_memory_ahead(gpu, &sum, false);
    return cbrt(own * own * own + memory * memory * memory);
}

/* A token of a head in sequences of 65,536 and of 4,096 tokens, the geometric mean: each by the form that takes less. */
static double token_seconds(const fpa_plan *plan, const fpa_split_outer *split)
{
    static const double lengths[] = {65536, 4096};
    struct fpa_cuda_geometry geometry = {0};
    work_split_outer(plan, split, &geometry);
    const double chunked = cuda_chunk_seconds(gpu_of_target(plan->target), &geometry, split->chunk),
                 pack = split->outer.coordinates ? 0 : pack_seconds(plan, split, &geometry);
    double product = 1;
    for (int i = 0; i < 2; i++)
        product *= pack + fmin(chunked, output_seconds(plan, &geometry, 4 * (split->output_groups + 1),
                                                       lengths[i] / (plan->head->causal ? 128 : 64)));
    return sqrt(product);
}

/* ---- product rows ---- */

/* Numbers that the plan's rows have, and behind them product rows. */
static fpa_status number_rows(const fpa_cuda_inputs *in, const fpa_product_rows *products,
                              fpa_cuda_rows *rows, fpa_error *error)
{
    const int count = in->plan->row_count;
    *rows = *in->rows;
    rows->row = arena_array(in->memory, products->plan.row_count, sizeof *rows->row);
    if (!rows->row)
        return fail_memory(error);
    memcpy(rows->row, in->rows->row, count * sizeof *rows->row);
    for (int i = 0; i < products->count; i++)
        rows->row[count + i] = rows->row_count++;
    return FPA_OK;
}

/* Rows of both orders only where features ask for them, or where products of states are wanted: in these keys of one walk are
 * the other's queries, and weights of keys would count twice. */
static fpa_status make_products(const fpa_cuda_inputs *in, bool unweighted, fpa_product_rows *products,
                                char *why, fpa_error *error)
{
    const int columns = cuda_columns(in->plan->head, SPLIT_MOST_COLUMNS).all;
    fpa_status status = plan_product_rows(in->plan, columns, unweighted, in->memory, products, why, error);
    if (status || !*why)
        return status;
    *why = 0;
    return plan_product_rows(in->plan, columns, true, in->memory, products, why, error);
}

fpa_status plan_split_by_products(const fpa_cuda_inputs *in, fpa_split_outer *split, char *why,
                                  fpa_error *error)
{
    fpa_product_rows *products = arena_alloc(in->memory, sizeof *products);
    fpa_cuda_rows *rows = arena_alloc(in->memory, sizeof *rows);
    fpa_split_outer other = {0};
    char refused[WHY] = "";
    if (!products || !rows)
        return fail_memory(error);
    fpa_cuda_inputs seen = *in;
    seen.plan = &products->plan;
    seen.rows = rows;
    fpa_status status = make_products(in, split->leaves_dots, products, refused, error);
    if (!status && !*refused)
        status = number_rows(in, products, rows, error);
    if (!status && !*refused)
        status = plan_split_of(&seen, products, &other, refused, error);
    if (status || *refused ||
        (!*why && token_seconds(in->plan, split) <= token_seconds(&products->plan, &other)))
        return status;
    *why = 0;
    other.seen = &products->plan;
    *split = other;
    return FPA_OK;
}
