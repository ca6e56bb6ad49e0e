/* plan_product_rows: with rows of any numbers, features and the kernel are those of the head, and blocks of chunk_state fetch
 * all that they read. */
#include "machine/cuda_padding.h"
#include "claims.h"
#include "planned.h"
#include "random_head.h"
#include "gen/plan/cuda/split_outer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SOME(rows, d, seed) "dense(orthogonal { rows = " #rows ", d = " #d ", seed = " #seed " })"

/* Heads whose products have halves; and of which rows of both orders are one, or keys carry powers of two. */
static const struct products {
    const char *body;
    bool weighted;
} products[] = {
    {"d = 24, dv = 24, terms = { term { " SOME(4, 24, 1) ", " SOME(5, 24, 2) ", " SOME(12, 24, 3) " } }",
     false},
    {"d = 32, dv = 16, scale = 1 / 4, terms = { term { " SOME(
         3, 32, 1) ", select(range(1, 16)), "
                   "select(range(9, 28)), weight = 3 }, term { " SOME(2, 32, 2) ", " SOME(
                       3, 32, 3) ", select(range(5, 32)) } }",
     false},
    {"d = 10, dv = 24, scale = 1 / 4, terms = power { degree = 4, weight = 1 }", true},
    {"d = 12, dv = 20, terms = { term { " SOME(4, 12, 1) ", " SOME(4, 12, 1) ", " SOME(6, 12, 2) " } }",
     false},
    {"d = 11, dv = 16, scale = 1 / 4, terms = inhomogeneous { degree = 4, constant = 1 }", true},
    {"d = 44, dv = 40, scale = 1 / 8, normalize = 'sum', terms = { term { select(range(1, 10)) }, term { "
     "select(range(1, 3)), select(range(1, 5)), " SOME(41, 44, 1) " }, term { " SOME(3, 44, 2) ", " SOME(
         6, 44, 3) ", select(range(4, 10)) } }",
     false},
};

enum { HEADS = sizeof products / sizeof *products };

/* What a token has in packed rows; weights are of keys. */
static double *packed_rows(const fpa_plan *plan, bool key, uint64_t seed)
{
    const fpa_cuda_rows *rows = plan->cuda.rows;
    random_source random = {seed};
    double *x = calloc(rows->row_count, sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < plan->row_count; i++)
        x[rows->row[i]] = random_normal(&random);
    x[rows->ones_row] = 1;
    x[rows->zero_row] = 0;
    for (int i = 0; i < plan->weighted_count; i++) {
        const fpa_weighted_row *w = &plan->weighted[i];
        x[rows->row[w->row]] = (key ? w->gram : 1) * x[rows->row[w->from]];
    }
    return x;
}

/* Of such a token, as the kernel packs it. */
static double *vector_of(const fpa_split_outer *split, const double *x, bool key)
{
    const int count = OUTER_BLOCK * split->outer.row_blocks;
    double *vector = calloc(count, sizeof *vector);
    assert_non_null(vector);
    for (int i = 0; i < count; i++) {
        vector[i] = key ? split->product_weight[i] : 1;
        for (int l = 0; l < split->product_factors; l++)
            vector[i] *= x[split->product_row[i * split->product_factors + l]];
    }
    return vector;
}

static double feature_of(const fpa_plan *plan, const double *x, const fpa_piece *piece, int i)
{
    double product = piece->weight * x[plan->cuda.rows->row[piece->base + i]];
    for (int l = 0; l < piece->prefix_count; l++)
        product *= x[plan->cuda.rows->row[piece->prefix[l]]];
    return product;
}

/* The vector's product in a slot of a tile, without its weight. */
static double slot_product(const fpa_outer_plan *outer, const double *vector, int tile, int slot)
{
    int group = 0;
    for (int s = 0; s < outer->strips; s++)
        for (int i = 0; i < outer->strip_length; i++)
            if (outer->strip_tile[s * outer->strip_length + i] == tile)
                group = outer->strip_group[s];
    return vector[outer->prefix[group * OUTER_BLOCK + slot / OUTER_BLOCK]] *
           vector[outer->tile_quarter[tile * OUTER_QUARTERS + slot / 16] * OUTER_BLOCK + slot % OUTER_BLOCK];
}

static const fpa_split_outer *split_of(const planned_head *made, const struct products *p)
{
    const fpa_split_outer *split = made->plan.cuda.suited[SPLIT_OUTER].plan;
    assert_non_null(split);
    if (!split->product_factors)
        fail_msg("%s: no product rows", p->body);
    assert_int_equal(split->products_weighted, p->weighted);
    return split;
}

static void each_feature_is_a_row_of_one_half_times_a_row_of_the_other(void **state)
{
    for (int h = 0; h < HEADS; h++) {
        planned_head made;
        planned_make(&made, products[h].body, "cuda:sm_90a");
        const fpa_plan *plan = &made.plan;
        const fpa_split_outer *split = split_of(&made, &products[h]);
        double *x = packed_rows(plan, true, 7), *vector = vector_of(split, x, true);
        double *found = calloc((size_t)plan->features, sizeof *found);
        assert_non_null(found);
        for (int i = 0; i < split->outer.tiles * OUTER_TILE; i++)
            if (split->outer.feature[i] >= 0)
                found[split->outer.feature[i]] =
                    split->outer.weight[i] *
                    slot_product(&split->outer, vector, i / OUTER_TILE, i % OUTER_TILE);
        for (int p = 0; p < plan->piece_count; p++)
            for (int i = 0; i < plan->pieces[p].width; i++) {
                const double wanted = feature_of(plan, x, &plan->pieces[p], i);
                assert_true(fabs(found[plan->pieces[p].feature + i] - wanted) <= 1e-12 * fabs(wanted));
            }
        free(found);
        free(vector);
        free(x);
        planned_free(&made);
    }
}

static double power_of(double x, int power)
{
    return power ? x * power_of(x, power - 1) : 1;
}

static double kernel_of(const fpa_score *score, const double *dot)
{
    double sum = 0;
    for (int m = 0; m < score->monomial_count; m++) {
        double product = score->monomials[m].weight.value;
        for (int i = 0; i < score->dot_count; i++)
            product *= power_of(dot[i], score->monomials[m].power[i]);
        sum += product;
    }
    return sum;
}

static double kernel_by_rows(const fpa_plan *plan, const double *q, const double *k)
{
    double dot[64] = {0};
    for (int i = 0; i < plan->score->dot_count; i++)
        for (int r = 0; r < plan->dots[i].row_count; r++) {
            const int row = plan->cuda.rows->row[plan->dots[i].rows[r]];
            dot[i] += q[row] * k[row];
        }
    return kernel_of(plan->score, dot);
}

/* As kernels have it: by steps of 16 rows of vectors. */
static double kernel_by_vectors(const fpa_split_outer *split, const double *q, const double *k)
{
    const fpa_outer_plan *outer = &split->outer;
    double dot[64] = {0};
    for (int i = 0; i < split->dots; i++)
        for (int s = outer->dot_first[i]; s < outer->dot_first[i + 1]; s++)
            for (int r = OUTER_STEP * outer->dot_step[s]; r < OUTER_STEP * (outer->dot_step[s] + 1); r++)
                dot[i] += q[r] * k[r];
    return kernel_of(split->seen->score, dot);
}

static void the_kernel_is_the_heads(void **state)
{
    for (int h = 0; h < HEADS; h++) {
        planned_head made;
        planned_make(&made, products[h].body, "cuda:sm_90a");
        const fpa_split_outer *split = split_of(&made, &products[h]);
        double *q = packed_rows(&made.plan, false, 3), *k = packed_rows(&made.plan, true, 4);
        double *query = vector_of(split, q, false), *key = vector_of(split, k, true);
        const double wanted = kernel_by_rows(&made.plan, q, k);
        assert_true(fabs(kernel_by_vectors(split, query, key) - wanted) <= 1e-9 * fabs(wanted) + 1e-9);
        free(query);
        free(key);
        free(q);
        free(k);
        planned_free(&made);
    }
}

/* Keys of one walk are the queries of the other: weights of both would count twice. */
static void keys_carry_no_weights_where_products_of_states_are_wanted(void **state)
{
    planned_head made;
    planned_make(&made,
                 "d = 12, dv = 64, gate = true, terms = { term { " SOME(6, 12, 1) ", " SOME(
                     6, 12, 1) ", " SOME(6, 12, 3) ", " SOME(6, 12, 3) " } }",
                 "cuda:sm_90a");
    const fpa_split_outer *split = made.plan.cuda.suited[SPLIT_OUTER].plan;
    assert_non_null(split);
    assert_true(split->leaves_dots);
    assert_true(split->product_factors > 0);
    assert_false(split->products_weighted);
    planned_free(&made);
}

/* A half of one dot, too, has so many rows at most. */
static void heads_of_wide_dots_keep_their_rows(void **state)
{
    planned_head made;
    planned_make(&made,
                 "d = 24, dv = 16, terms = { term { trainable { name = 'w', rows = 1100 } }, term { " SOME(
                     4, 24, 1) ", " SOME(5, 24, 2) ", " SOME(12, 24, 3) " } }",
                 "cuda:sm_90a");
    fpa_product_rows rows;
    assert_string_equal(plan_product_rows(&made.plan, 2, false, &made.plan.memory, &rows),
                        "one half of its dot products has too many product rows");
    planned_free(&made);
}

static bool fetches(const fpa_chunk_state_kernel *kernel, int slice, int block)
{
    return kernel->slab_mask[slice] >> block / 8 & 1;
}

/* Whatever a block's strips name lies in a slab that it fetches, and none fetches more than a stage has room for. */
static void blocks_fetch_the_slabs_of_their_strips(void **state)
{
    planned_head made;
    planned_make(&made,
                 "d = 64, dv = 64, terms = { term { " SOME(12, 64, 1) ", " SOME(4, 64, 2) ", " SOME(
                     36, 64, 3) " }, term { " SOME(30, 64, 4) ", " SOME(3, 64, 5) ", " SOME(20, 64, 6) " } }",
                 "cuda:sm_90a");
    const fpa_split_outer *split = made.plan.cuda.suited[SPLIT_OUTER].plan;
    assert_non_null(split);
    assert_true(split->partial_slabs);
    const fpa_outer_plan *outer = &split->outer;
    for (int k = 0; k < split->kernels; k++) {
        const fpa_chunk_state_kernel *kernel = &split->state[k];
        for (int s = 0; s < outer->strips; s++) {
            const int slice = s / (kernel->groups * kernel->strips);
            assert_true(__builtin_popcount((unsigned)kernel->slab_mask[slice]) <= kernel->slabs);
            for (int c = 0; c < OUTER_BLOCK * outer->prefix_factors; c++)
                assert_true(fetches(
                    kernel, slice,
                    outer->prefix[outer->strip_group[s] * OUTER_BLOCK * outer->prefix_factors + c] / 8));
            for (int i = 0; i < outer->strip_length; i++) {
                const int tile = outer->strip_tile[s * outer->strip_length + i];
                for (int q = 0; q < OUTER_QUARTERS && tile >= 0; q++)
                    assert_true(fetches(kernel, slice, outer->tile_quarter[tile * OUTER_QUARTERS + q]));
            }
        }
    }
    planned_free(&made);
}

/* A third stage where half of a copy's tiles give it room; else all tiles have a place on their way out. */
static void copies_leave_in_turns_where_that_is_a_third_stage(void **state)
{
    static const struct {
        const char *spec;
        int stages, layers, leaving;
    } heads[] = {
        {"d = 160, dv = 161, dtype = 'f16', terms = { term { " SOME(144, 160, 1) " }, term { " SOME(
             2, 160, 2) ", select(range(1, 16)), select(range(17, 56)) }, term "
                        "{ " SOME(6, 160, 3) ", " SOME(2, 160, 4) ", select(range(60, 91)) } }",
         3, 2, 1},
        {"d = 64, dv = 64, terms = { term { " SOME(12, 64, 1) ", " SOME(40, 64, 2) " } }", 8, 3, 3},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        planned_head made;
        planned_make(&made, heads[i].spec, "cuda:sm_90a");
        const fpa_split_outer *split = made.plan.cuda.suited[SPLIT_OUTER].plan;
        assert_non_null(split);
        const fpa_chunk_state_kernel *kernel = &split->state[0];
        assert_int_equal(kernel->stages, heads[i].stages);
        assert_int_equal(kernel->layers, heads[i].layers);
        assert_int_equal(kernel->leaving, heads[i].leaving);
        assert_true(kernel->bytes <= made.plan.target->shared_memory);
        planned_free(&made);
    }
}

/* Rows of projections come first in a tile, in whole chunks, with nothing else between them. */
static void chunks_have_all_projected_rows(const fpa_pack_kernel *pack, int rows)
{
    const int end = pack->given + pack->chunks * pack->chunk_rows;
    int found = 0;
    for (int i = 0; i < pack->places; i++)
        found += pack->place[i] >= pack->given && pack->place[i] < end;
    assert_int_equal(found, rows);
    assert_true(end <= pack->rows && pack->chunk_rows % 8 == 0);
}

static void plan_packing(planned_head *made, const char *spec, int rows, const fpa_pack_kernel **pack)
{
    planned_make(made, spec, "cuda:sm_90a");
    const fpa_split_outer *split = made->plan.cuda.suited[SPLIT_OUTER].plan;
    assert_non_null(split);
    *pack = &split->pack;
    chunks_have_all_projected_rows(*pack, rows);
    assert_true((*pack)->bytes <= made->plan.target->shared_memory);
    assert_int_equal((*pack)->threads, 128 * (*pack)->groups);
}

static void matrices_of_packed_rows_stay_where_two_warpgroups_have_room(void **state)
{
    planned_head made;
    const fpa_pack_kernel *pack;
    plan_packing(&made, "d = 240, dv = 64, terms = { term { " SOME(40, 240, 1) ", " SOME(6, 240, 2) " } }",
                 46, &pack);
    assert_true(pack->kept && pack->chunk_places == pack->chunks);
    assert_int_equal(pack->groups, 2);
    assert_int_equal(pack->stages, 2);
    planned_free(&made);
}

static void chunks_of_larger_matrices_come_by_turns(void **state)
{
    planned_head made;
    const fpa_pack_kernel *pack;
    plan_packing(
        &made,
        "d = 240, dv = 64, dtype = 'f16', terms = { term { " SOME(160, 240, 1) ", " SOME(6, 240, 2) " } }",
        166, &pack);
    assert_true(!pack->kept && pack->chunks > 2);
    assert_int_equal(pack->chunk_places, 2);
    assert_true(pack->groups >= 2);
    planned_free(&made);
}

static void many_constant_rows_of_bf16_are_one_number_of_f16(void **state)
{
    static const struct {
        const char *spec;
        int rows, parts;
        bool narrows;
    } of[] = {
        {"d = 240, dv = 64, terms = { term { " SOME(160, 240, 1) ", " SOME(6, 240, 2) " } }", 166, 1, true},
        {"d = 240, dv = 64, dtype = 'f16', terms = { term { " SOME(160, 240, 1) ", " SOME(6, 240, 2) " } }",
         166, 2, false},
        {"d = 240, dv = 64, terms = { term { " SOME(40, 240, 1) ", " SOME(6, 240, 2) " } }", 46, 2, false},
        {"d = 240, dv = 64, terms = { term { " SOME(160, 240, 1) ", trainable { name = 'w', rows = 6 } } }",
         166, 2, false}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        planned_head made;
        const fpa_pack_kernel *pack;
        plan_packing(&made, of[i].spec, of[i].rows, &pack);
        assert_int_equal(pack->parts, of[i].parts);
        assert_int_equal(pack->narrows, of[i].narrows);
        planned_free(&made);
    }
}

static void matrices_whose_chunks_come_by_turns_are_split_before(void **state)
{
    static const char *const specs[] = {
        "d = 240, dv = 64, dtype = 'f16', terms = { term { " SOME(160, 240, 1) ", " SOME(6, 240, 2) " } }",
        "d = 240, dv = 64, terms = { term { " SOME(40, 240, 1) ", " SOME(6, 240, 2) " } }"};
    for (int i = 0; i < 2; i++) {
        planned_head made;
        planned_make(&made, specs[i], "cuda:sm_90a");
        const struct fpa_cuda_geometry *g = &made.plan.cuda.geometry;
        const fpa_pack_kernel *pack = &made.plan.cuda.split_outer->pack;
        assert_int_equal(g->pack_operand, pack->kept ? 0 : pack->chunks * pack->chunk_bytes);
        assert_int_equal(g->pack_chunks, pack->kept ? 0 : pack->chunks);
        assert_int_equal(pack->kept, i);
        assert_int_equal(g->pack_per_head, 0);
        planned_free(&made);
    }
}

/* Of 8 columns a tile; 251 lean by 7 in some heads, for which two blocks of 16 tiles have 5. */
static void values_lean_where_the_largest_lean_has_columns(void **state)
{
    static const struct {
        const char *spec;
        int room;
    } of[] = {{"d = 48, dv = 57, terms = power { degree = 2 }", 7},
              {"d = 43, dv = 244, terms = power { degree = 2 }", 4},
              {"d = 48, dv = 251, terms = power { degree = 2 }", 0},
              {"d = 48, dv = 64, terms = power { degree = 2 }", 0}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        planned_head made;
        planned_make(&made, of[i].spec, "cuda:sm_90a");
        const fpa_split_outer *split = made.plan.cuda.split_outer;
        const fpa_call_size call = {.batch = 1, .length = 64, .query_heads = 2, .heads = 2};
        fpa_call_size resumed = call;
        resumed.state_in = true;
        assert_int_equal(split->value_room, of[i].room);
        assert_int_equal(made.plan.cuda.geometry.value_room, of[i].room);
        assert_int_equal(cuda_leans_values(&made.plan.cuda.geometry, &call, MECHANISM_SPLIT), of[i].room > 0);
        assert_false(cuda_leans_values(&made.plan.cuda.geometry, &resumed, MECHANISM_SPLIT));
        assert_false(cuda_leans_values(&made.plan.cuda.geometry, &call, MECHANISM_FUSED_CHUNK));
        planned_free(&made);
    }
}

/* 1365 features of 5 degrees: as pairs of rows in their order they take 62 tiles, of few tiles first 43, with ones as a twelfth row of the dot, so that 78 product
 * rows are all that features have, 33. The score is of the head's own dot, which vectors have; ones of z are a part of the values' product. */
static void powers_of_few_coordinates_fill_few_tiles(void **state)
{
    planned_head made;
    planned_make(&made,
                 "d = 11, dv = 16, scale = 1 / 8, gate = true, normalize = 'sum', terms = inhomogeneous { "
                 "degree = 4, constant = 1 }",
                 "cuda:sm_90a");
    const fpa_split_outer *split = made.plan.cuda.split_outer;
    assert_non_null(split);
    assert_int_equal(made.plan.features, 1365);
    assert_int_equal(split->product_count, 12 * 13 / 2);
    assert_true(split->outer.tiles <= 33);
    assert_int_equal(split->dots, 1);
    assert_int_equal(split->dot_steps, 1);
    assert_true(split->ones_behind);
    assert_int_equal(split->value_box, 16);
    planned_free(&made);
}

/* Of s2 s3 12 of 15 rows are features'; s7 has all of its rows in one block, though s1 has three of them, too: 16 tiles for 18. */
static void rows_that_dots_share_fill_few_tiles(void **state)
{
    planned_head made;
    planned_make(&made, products[HEADS - 1].body, "cuda:sm_90a");
    const fpa_split_outer *split = made.plan.cuda.suited[SPLIT_OUTER].plan;
    assert_non_null(split);
    assert_true(split->outer.tiles <= 16);
    planned_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_feature_is_a_row_of_one_half_times_a_row_of_the_other),
        cmocka_unit_test(the_kernel_is_the_heads),
        cmocka_unit_test(keys_carry_no_weights_where_products_of_states_are_wanted),
        cmocka_unit_test(heads_of_wide_dots_keep_their_rows),
        cmocka_unit_test(blocks_fetch_the_slabs_of_their_strips),
        cmocka_unit_test(copies_leave_in_turns_where_that_is_a_third_stage),
        cmocka_unit_test(matrices_of_packed_rows_stay_where_two_warpgroups_have_room),
        cmocka_unit_test(chunks_of_larger_matrices_come_by_turns),
        cmocka_unit_test(many_constant_rows_of_bf16_are_one_number_of_f16),
        cmocka_unit_test(matrices_whose_chunks_come_by_turns_are_split_before),
        cmocka_unit_test(values_lean_where_the_largest_lean_has_columns),
        cmocka_unit_test(powers_of_few_coordinates_fill_few_tiles),
        cmocka_unit_test(rows_that_dots_share_fill_few_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
