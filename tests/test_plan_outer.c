/* plan_outer: tiles hold every feature once, with its factors; strips hold every tile once. */
#include "outer_made.h"

#include <math.h>

static void make(const char *body, int warpgroup_tiles, int parts, struct made *m)
{
    make_head(body, m);
    make_outer(warpgroup_tiles, parts, &m->head.plan.memory, m);
}

static void tiles_and_strips_of_heads_of_every_family_are_as_many_as_known(void **state)
{
    for (size_t i = 0; i < sizeof suited / sizeof *suited; i++) {
        struct made m;
        make(suited[i].body, WARPGROUP_TILES, 1, &m);
        const fpa_outer_plan *outer = &m.outer;
        if (!outer->used || m.head.plan.features != suited[i].features || outer->tiles != suited[i].tiles ||
            outer->strip_length != suited[i].suffixes || outer->strips != suited[i].strips ||
            outer->coordinates != suited[i].coordinates || outer->folded != suited[i].folded)
            fail_msg("%s: %s%lld features, %d tiles, %d strips of %d, %d folded, natural %d", suited[i].body,
                     outer->why, (long long)m.head.plan.features, outer->tiles, outer->strips,
                     outer->strip_length, outer->folded, outer->coordinates);
        planned_free(&m.head);
    }
}

static void heads_that_tiles_do_not_suit_say_why(void **state)
{
    for (size_t i = 0; i < sizeof unsuited / sizeof *unsuited; i++) {
        struct made m;
        make(unsuited[i].body, WARPGROUP_TILES, 1, &m);
        if (m.outer.used || !strstr(m.outer.why, unsuited[i].why))
            fail_msg("%s: used %d, '%s'", unsuited[i].body, m.outer.used, m.outer.why);
        planned_free(&m.head);
    }
}

/* Degree-2 heads over whole blocks of 8: every tile has a strip without a hole, when their number allows. */
static void flips_leave_strips_of_36_tiles_without_padding(void **state)
{
    static const int suffixes[] = {0, 1, 2, 3, 4, 4, 3};
    for (int tiles = 1; tiles <= WARPGROUP_TILES; tiles++) {
        struct made m;
        make("d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 8 }", tiles, 1, &m);
        assert_int_equal(m.outer.strip_length, suffixes[tiles]);
        assert_int_equal(m.outer.strips * m.outer.strip_length, 36);
        for (int i = 0; i < 36; i++)
            assert_true(m.outer.strip_tile[i] >= 0);
        planned_free(&m.head);
    }
}

static void coordinates_behind_packed_rows_are_whole_pieces_of_a_run(void **state)
{
    for (size_t i = 0; i < sizeof of_given_rows / sizeof *of_given_rows; i++) {
        struct made m;
        make(of_given_rows[i].body, WARPGROUP_TILES, 1, &m);
        assert_true(m.outer.used);
        assert_int_equal(m.outer.given_rows, of_given_rows[i].rows);
        assert_int_equal(m.outer.given_first, of_given_rows[i].first);
        assert_int_equal(m.outer.given_slab, of_given_rows[i].slab);
        for (int r = 0; r < m.outer.given_rows; r++)
            assert_int_equal(m.outer.source[OUTER_TILE * m.outer.given_slab + r], m.outer.given_first + r);
        planned_free(&m.head);
    }
}

/* ---- features ---- */

static double piece_product(const fpa_piece *piece, int i, const double *row)
{
    double product = piece->weight * row[piece->base + i];
    for (int l = 0; l < piece->prefix_count; l++)
        product *= row[piece->prefix[l]];
    return product;
}

static int piece_degree(const fpa_plan *plan, const fpa_piece *piece, int i)
{
    int degree = piece->base + i == plan->ones_row ? 0 : 1;
    for (int l = 0; l < piece->prefix_count; l++)
        degree += piece->prefix[l] == plan->ones_row ? 0 : 1;
    return degree;
}

static int tile_group(const fpa_outer_plan *outer, int tile)
{
    int i = 0;
    while (outer->strip_tile[i] != tile)
        i++;
    return outer->strip_group[i / outer->strip_length];
}

static double slot_product(const fpa_outer_plan *outer, int tile, int slot, const double *vector)
{
    const int *prefix = outer->prefix + (tile_group(outer, tile) * 8 + slot / 8) * outer->prefix_factors;
    if (outer->rows) /* 64 of them from the suffix on */
        return outer->weight[tile * 64 + slot] * vector[8 * outer->tile_suffix[tile] + slot];
    const int suffix = outer->tile_quarter[tile * OUTER_QUARTERS + slot / 16];
    double product = outer->weight[tile * 64 + slot] * vector[8 * suffix + slot % 8];
    for (int l = 0; l < outer->prefix_factors; l++)
        product *= vector[prefix[l]];
    return product;
}

static void check_slot(const struct made *m, int tile, int slot, const double *value, const int *degree,
                       const double *vector, int *seen)
{
    const int feature = m->outer.feature[tile * 64 + slot];
    const double product = slot_product(&m->outer, tile, slot, vector);
    if (feature < 0) {
        assert_int_equal(feature, -1);
        assert_true(m->outer.weight[tile * 64 + slot] == 0);
        return;
    }
    assert_in_range(feature, 0, m->head.plan.features - 1);
    assert_int_equal(seen[feature]++, 0);
    assert_true(fabs(product - value[feature]) <= 1e-12 * fabs(value[feature]));
    assert_int_equal(m->outer.degree[tile * 64 + slot], degree[feature]);
}

static void check_features(const struct made *m)
{
    const fpa_plan *plan = &m->head.plan;
    double *vector, *value = calloc(plan->features, sizeof *value);
    int *degree = calloc(plan->features, sizeof *degree), *seen = calloc(plan->features, sizeof *seen);
    assert_true(value && degree && seen);
    srand(20260301); /* fixed: the same rows every time */
    double *row = random_rows(m, &vector);
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++) {
            value[plan->pieces[p].feature + i] = piece_product(&plan->pieces[p], i, row);
            degree[plan->pieces[p].feature + i] = piece_degree(plan, &plan->pieces[p], i);
        }
    for (int t = 0; t < m->outer.tiles; t++)
        for (int slot = 0; slot < 64; slot++)
            check_slot(m, t, slot, value, degree, vector, seen);
    for (int64_t f = 0; f < plan->features; f++)
        assert_int_equal(seen[f], 1);
    free(row);
    free(vector);
    free(value);
    free(degree);
    free(seen);
}

static void tiles_hold_every_feature_once_with_its_factors_weight_and_degree(void **state)
{
    each(check_features);
}

/* Two terms may have equal factors: their features fill slots of different tiles. */
static void features_of_equal_factors_have_tiles_of_their_own(void **state)
{
    struct made m, twice;
    make("d = 16, dv = 16, terms = tspow { d = 16, degree = 2, block = 8 }", WARPGROUP_TILES, 1, &m);
    twice = m;
    twice.head.plan.memory = (arena){0};
    twice.head.plan.features *= 2;
    twice.head.plan.piece_count *= 2;
    twice.head.plan.pieces = calloc(twice.head.plan.piece_count, sizeof *twice.head.plan.pieces);
    assert_non_null(twice.head.plan.pieces);
    for (int p = 0; p < twice.head.plan.piece_count; p++) {
        twice.head.plan.pieces[p] = m.head.plan.pieces[p % m.head.plan.piece_count];
        twice.head.plan.pieces[p].feature += p < m.head.plan.piece_count ? 0 : m.head.plan.features;
        twice.head.plan.pieces[p].weight += p < m.head.plan.piece_count ? 0 : 1;
    }
    plan_outer(&twice.head.plan, 2, WARPGROUP_TILES, 1, &twice.head.plan.memory, &twice.outer);
    assert_true(twice.outer.used);
    assert_int_equal(twice.outer.tiles, 2 * m.outer.tiles);
    check_features(&twice);
    plan_free(&twice.head.plan);
    planned_free(&m.head);
}

/* ---- strips ---- */

static void check_strip(const fpa_outer_plan *outer, int strip, int *seen)
{
    const int *tile = outer->strip_tile + strip * outer->strip_length, g = outer->strip_group[strip];
    assert_in_range(g, 0, outer->groups - 1);
    assert_true(tile[0] >= 0); /* no strip is padding only */
    for (int i = 0; i < outer->strip_length; i++) {
        if (tile[i] == -1)
            continue;
        assert_int_equal(seen[tile[i]]++, 0);
        if (i == 0 && tile[i] >= outer->tiles - outer->folded)
            continue;
        assert_true(i == 0 || tile[i] == tile[i - 1] + 1 ||
                    (strip < outer->own_strips && (i == 1 || tile[i] == tile[i - 1] + 2)));
        assert_in_range(tile[i], outer->group_first[g], outer->group_first[g + 1] - 1);
    }
}

static void check_strips(const struct made *m)
{
    const fpa_outer_plan *outer = &m->outer;
    int *seen = calloc(outer->tiles, sizeof *seen);
    assert_non_null(seen);
    assert_int_equal(outer->group_first[0], 0);
    assert_int_equal(outer->group_first[outer->groups], outer->tiles - outer->folded);
    for (int g = 0; g < outer->groups; g++) {
        assert_true(outer->group_first[g] <= outer->group_first[g + 1]);
        for (int t = outer->group_first[g] + 1; t < outer->group_first[g + 1]; t++)
            assert_true(outer->tile_suffix[t - 1] < outer->tile_suffix[t]);
    }
    for (int s = 0; s < outer->strips; s++)
        check_strip(outer, s, seen);
    for (int t = 0; t < outer->tiles; t++)
        assert_int_equal(seen[t], 1);
    free(seen);
}

static void every_tile_lies_in_one_strip_of_its_own_group(void **state)
{
    each(check_strips);
}

/* The last of 25 rows has a block of its own: 325 prefixes times it, or 24 more prefixes. */
static void rows_of_a_block_of_few_are_factors_of_prefixes(void **state)
{
    static const int tiles[] = {105, 72};
    for (int turned = 0; turned < 2; turned++) {
        struct made m;
        make("d = 25, dv = 96, terms = power { degree = 3 }", WARPGROUP_TILES, turned ? 1 | OUTER_TURNED : 1,
             &m);
        assert_int_equal(m.outer.tiles, tiles[turned]);
        planned_free(&m.head);
    }
}

static void groups_of_few_prefixes_fill_their_tiles(void **state)
{
    for (size_t i = 0; i < sizeof of_few_prefixes / sizeof *of_few_prefixes; i++)
        for (int j = 0; j < 4; j++) {
            struct made m;
            make(of_few_prefixes[i].body, WARPGROUP_TILES, made_parts[j], &m);
            if (m.outer.tiles != of_few_prefixes[i].tiles[j])
                fail_msg("%s: %d tiles of up to %d suffix blocks", of_few_prefixes[i].body, m.outer.tiles,
                         1 << j);
            assert_int_equal(m.outer.parted, m.outer.tiles < of_few_prefixes[i].tiles[0]);
            planned_free(&m.head);
        }
}

/* ---- folded tiles ---- */

static void rows_of_a_folded_tile_have_each_pair_of_a_block_once(void **state)
{
    int pairs[8][8] = {0}, rows[OUTER_FOLDED] = {0};
    for (int slot = 0; slot < OUTER_TILE; slot++) {
        const int c = slot / 8, r = slot % 8, row = outer_fold(slot);
        if (row < 0) {
            assert_true(outer_fold(8 * r + c) >= 0);
            continue;
        }
        assert_in_range(row, 0, OUTER_FOLDED - 1);
        assert_int_equal(rows[row]++, 0);
        assert_true(row % 8 == c || row % 8 == r);
        pairs[c < r ? c : r][c < r ? r : c]++;
    }
    for (int c = 0; c < 8; c++)
        for (int r = c; r < 8; r++)
            assert_int_equal(pairs[c][r], (c ^ r) == 1 ? 2 : 1);
}

/* A block's rows times themselves; no feature where copies have no row. */
static void check_folded(const struct made *m)
{
    const fpa_outer_plan *outer = &m->outer;
    for (int t = outer->tiles - outer->folded; t < outer->tiles; t++) {
        const int *prefix = outer->prefix + tile_group(outer, t) * 8;
        assert_int_equal(outer->prefix_factors, 1);
        for (int c = 0; c < 8; c++)
            assert_int_equal(prefix[c], 8 * outer->tile_suffix[t] + c);
        for (int slot = 0; slot < OUTER_TILE; slot++)
            assert_true(outer_fold(slot) >= 0 || outer->feature[OUTER_TILE * t + slot] == -1);
    }
    assert_int_equal(outer->copy_rows,
                     OUTER_TILE * (outer->tiles - outer->folded) + OUTER_FOLDED * outer->folded);
}

static void folded_tiles_have_no_feature_without_a_row(void **state)
{
    each(check_folded);
}

/* ---- the same again ---- */

static void check_again(const struct made *m)
{
    const fpa_outer_plan *a = &m->outer;
    const int columns = m->head.plan.cuda.columns.all;
    fpa_outer_plan b, c;
    arena memory = {0};
    plan_outer(&m->head.plan, columns, WARPGROUP_TILES, m->parts, &memory, &b);
    plan_outer(&m->head.plan, columns, WARPGROUP_TILES, m->parts, &memory, &c);
    assert_int_equal(a->tiles, b.tiles);
    assert_int_equal(b.groups, c.groups);
    assert_int_equal(b.strips, c.strips);
    const size_t prefixes = (size_t)b.groups * 8 * b.prefix_factors;
    assert_memory_equal(b.prefix, c.prefix, prefixes * sizeof *b.prefix);
    assert_memory_equal(b.feature, c.feature, b.tiles * 64 * sizeof *b.feature);
    assert_memory_equal(b.tile_suffix, c.tile_suffix, b.tiles * sizeof *b.tile_suffix);
    assert_memory_equal(b.strip_tile, c.strip_tile, b.strips * b.strip_length * sizeof *b.strip_tile);
    arena_free(&memory);
}

static void the_same_plan_gives_the_same_tables(void **state)
{
    each(check_again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_and_strips_of_heads_of_every_family_are_as_many_as_known),
        cmocka_unit_test(heads_that_tiles_do_not_suit_say_why),
        cmocka_unit_test(coordinates_behind_packed_rows_are_whole_pieces_of_a_run),
        cmocka_unit_test(flips_leave_strips_of_36_tiles_without_padding),
        cmocka_unit_test(tiles_hold_every_feature_once_with_its_factors_weight_and_degree),
        cmocka_unit_test(features_of_equal_factors_have_tiles_of_their_own),
        cmocka_unit_test(every_tile_lies_in_one_strip_of_its_own_group),
        cmocka_unit_test(groups_of_few_prefixes_fill_their_tiles),
        cmocka_unit_test(rows_of_a_block_of_few_are_factors_of_prefixes),
        cmocka_unit_test(rows_of_a_folded_tile_have_each_pair_of_a_block_once),
        cmocka_unit_test(folded_tiles_have_no_feature_without_a_row),
        cmocka_unit_test(the_same_plan_gives_the_same_tables),
    };
    return cmocka_run_group_tests_name("plan_outer", tests, NULL, NULL);
}
