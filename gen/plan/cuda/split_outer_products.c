/* plan_split_products: tables of the score's monomials and of product rows that templates print. */
#include <string.h>

#include "parts.h"
#include "split_outer.h"

static void list_monomials(const fpa_cuda_inputs *in, fpa_split_outer *split)
{
    const fpa_score *score = in->plan->score;
    const int dots = score->dot_count;
    split->monomials = score->monomial_count;
    split->powers = dots * score->monomial_count;
    split->monomial_weight = arena_array(in->memory, split->monomials, sizeof *split->monomial_weight);
    split->monomial_power = arena_array(in->memory, split->powers, sizeof *split->monomial_power);
    for (int i = 0; i < split->monomials; i++) {
        split->monomial_weight[i] = score->monomials[i].weight.value;
        memcpy(split->monomial_power + i * dots, score->monomials[i].power,
               dots * sizeof *split->monomial_power);
    }
}

/* Factors and weights of each row of a vector. A row that is no product row has itself as the first factor, then rows
 * of ones. */
static void list_factors(const fpa_cuda_inputs *in, const fpa_product_rows *products, fpa_split_outer *split)
{
    const int count = OUTER_BLOCK * split->outer.row_blocks, factors = products->factors;
    const int first = products->plan.row_count - products->count; /* the first product row */
    split->product_factors = factors;
    split->product_entries = count * factors;
    split->product_weights = count;
    split->product_row = arena_array(in->memory, split->product_entries, sizeof *split->product_row);
    split->product_weight = arena_array(in->memory, count, sizeof *split->product_weight);
    split->query_weight = arena_array(in->memory, count, sizeof *split->query_weight);
    for (int i = 0; i < count; i++) {
        const int source = split->outer.source[i];
        int *row = split->product_row + i * factors;
        split->product_weight[i] = source >= first ? products->weight[source - first] : 1;
        split->products_weighted |= split->product_weight[i] != 1;
        split->query_weight[i] =
            source >= first && products->query_weight ? products->query_weight[source - first] : 1;
        split->queries_weighted |= split->query_weight[i] != 1;
        for (int l = 0; l < factors; l++)
            row[l] = source >= first ? in->rows->row[products->factor[(source - first) * factors + l]]
                     : l > 0         ? in->rows->ones_row
                                     : split->source[i];
    }
}

void plan_split_products(const fpa_cuda_inputs *in, const fpa_product_rows *products, fpa_split_outer *split)
{
    split->product_count = products ? products->count : 0;
    split->first_product = in->rows->row_count - split->product_count;
    split->dot_degree = arena_array(in->memory, split->dots, sizeof *split->dot_degree);
    for (int i = 0; i < split->dots; i++)
        split->dot_degree[i] = products ? products->dot_degree[i] : 1;
    list_monomials(in, split);
    if (products)
        list_factors(in, products, split);
}
