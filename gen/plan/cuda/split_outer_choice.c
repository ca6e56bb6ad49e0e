/* plan_split_outer: plans the kernels from the head's own rows and from product rows, and keeps what is predicted to
 * take less time. If the inputs ask for it (feature_rows), rows are the features. */
#include <math.h>
#include <string.h>

#include "feature_rows.h"
#include "machine/cuda_chunk.h"
#include "parts.h"
#include "split_outer.h"
#include "work.h"

/* ---- time ---- */

/* Seconds of a token: the geometric mean of sequences of 65,536 and of 4,096 tokens, each in the form that takes less
 * time. */
static double token_seconds(const fpa_plan *plan, const fpa_split_outer *split)
{
    static const double lengths[] = {65536, 4096};
    const fpa_gpu *gpu = gpu_of_target(plan->target);
    const int warps = split->pack.threads / 32;
    struct fpa_cuda_geometry geometry = {0};
    work_split_outer(plan, split, &geometry);
    const double chunked = cuda_chunk_seconds(gpu, &geometry, split->chunk),
                 pack = split->outer.coordinates ? 0 : cuda_pack_seconds(gpu, &geometry, warps);
    double product = 1;
    for (int i = 0; i < 2; i++) {
        const double seen = plan->head->causal ? lengths[i] / 2 : lengths[i];
        product *=
            pack + fmin(chunked, cuda_score_seconds(gpu, &geometry, 4 * (split->output_groups + 1), seen));
    }
    return sqrt(product);
}

/* ---- product rows ---- */

/* Numbers of packed rows for the plan of product rows: the head's rows keep theirs, product rows follow. */
static void number_rows(const fpa_cuda_inputs *in, const fpa_product_rows *products, fpa_cuda_rows *rows)
{
    const int count = in->plan->row_count;
    *rows = *in->rows;
    rows->row = arena_array(in->memory, products->plan.row_count, sizeof *rows->row);
    memcpy(rows->row, in->rows->row, count * sizeof *rows->row);
    for (int i = 0; i < products->count; i++)
        rows->row[count + i] = rows->row_count++;
}

/* Product rows. Rows of both orders (i, j) and (j, i) only if features need both, or for products of states
 * (unweighted): there the keys of one pass are the queries of the other, so that weights on keys would count twice.
 * Returns NULL, or why there are none. */
static const char *make_products(const fpa_cuda_inputs *in, bool unweighted, fpa_product_rows *products)
{
    const int columns = cuda_columns(in->plan->head, split_most_columns(in)).all;
    const char *why = plan_product_rows(in->plan, columns, unweighted, in->memory, products);
    return why && !unweighted ? plan_product_rows(in->plan, columns, true, in->memory, products) : why;
}

/* The factor by which the head's own rows must be faster, if their tiles have several suffix blocks: measured times
 * of product rows are 0.86 to 0.98 of their prediction, those of prefixes of two factors in such tiles 1.07 and 1.09
 * (docs/decisions/0096-tiles-of-several-suffixes.md). */
static const double clearly = 0.85;

/* The inputs with the plan of product rows in place of the head's. */
static fpa_cuda_inputs inputs_of(const fpa_cuda_inputs *in, const fpa_product_rows *products)
{
    fpa_cuda_inputs seen = *in;
    fpa_cuda_rows *rows = arena_alloc(in->memory, sizeof *rows);
    number_rows(in, products, rows);
    seen.plan = &products->plan;
    seen.rows = rows;
    return seen;
}

/* Plans the kernels from rows that are the features themselves. */
static const char *plan_features_as_rows(const fpa_cuda_inputs *in, fpa_split_outer *split)
{
    fpa_product_rows *products = arena_alloc(in->memory, sizeof *products);
    const char *why = plan_feature_rows(in->plan, in->memory, products);
    if (why)
        return why;
    const fpa_cuda_inputs seen = inputs_of(in, products);
    why = plan_split_of(&seen, products, split);
    split->seen = &products->plan;
    split->feature_rows = true;
    return why;
}

/* Plans the kernels from product rows: with dots that are no factors of products after the others (late), if
 * chunk_state then has no room for more tiles and less time is taken. */
static const char *plan_by_products(const fpa_cuda_inputs *seen, fpa_product_rows *products,
                                    fpa_split_outer *split)
{
    fpa_split_outer late = {0};
    const char *why = plan_split_of(seen, products, split);
    if (why || !outer_has_late_dots(&products->plan))
        return why;
    products->late = true;
    if (!plan_split_of(seen, products, &late) && split_places(&late) <= split_places(split) &&
        token_seconds(&products->plan, &late) < token_seconds(&products->plan, split))
        *split = late;
    return NULL;
}

/* Replaces *split, or the reason `why` there is none, by a plan from product rows, if that takes less time. Returns
 * NULL, or why. */
static const char *choose_products(const fpa_cuda_inputs *in, fpa_split_outer *split, const char *why)
{
    fpa_product_rows *products = arena_alloc(in->memory, sizeof *products);
    fpa_split_outer other = {0};
    if (make_products(in, split->leaves_dots, products))
        return why;
    const fpa_cuda_inputs seen = inputs_of(in, products);
    if (plan_by_products(&seen, products, &other) ||
        (!why && token_seconds(in->plan, split) <=
                     (split->outer.parted ? clearly : 1) * token_seconds(&products->plan, &other)))
        return why;
    other.seen = &products->plan;
    *split = other;
    return NULL;
}

const char *plan_split_outer(const fpa_cuda_inputs *in, void *made)
{
    if (!in->plan->target->warpgroups)
        return "the GPU has no wgmma (sm_90a)";
    if (in->plan->written->window)
        return "it has a window";
    if (in->rows->element != 2)
        return "its products are not of 16-bit numbers";
    if (in->feature_rows)
        return plan_features_as_rows(in, made);
    const fpa_split_outer *split = made;
    const char *why = plan_split_of(in, NULL, made);
    const bool contracts = !why && split->contraction.groups; /* it reads the head's own rows */
    return contracts ? NULL : choose_products(in, made, why);
}
