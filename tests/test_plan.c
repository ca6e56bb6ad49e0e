/* plan: what the templates print covers the head exactly, and adds up to its kernel. */
#include "gen/backends.h"
#include "gen/gen.h"
#include "gen/plan/plan.h"
#include "claims.h"
#include "planned.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Heads that differ in what the plan does with them. */
static const char *const specs[] = {
    "return head { name = 'linear', d = 5, dv = 3, terms = linear {} }",
    "return head { name = 'power2', d = 64, dv = 64, terms = power { degree = 2 } }",
    "return head { name = 'power3', d = 20, dv = 24, terms = power { degree = 3 }, block = 4 }",
    "return head { name = 'wide', d = 64, dv = 16, terms = power { degree = 3 } }",
    "return head { name = 'spow', d = 12, dv = 7, terms = spow { d = 12, degree = 3 } }",
    "return head { name = 'constant', d = 4, dv = 4, terms = inhomogeneous { degree = 2, constant = 3 } }",
    "return head { name = 'picks', d = 9, dv = 130, terms = { term { select { 1, 3, 4, 9 }, select { 2, 8 },"
    " weight = ratio(-1, 3) }, term { diagonal { [2] = sqrt2, [5] = 3 } } } }",
    "return head { name = 'dense', d = 8, dv = 8, terms = { term { dense(orthogonal { rows = 3, d = 8, seed "
    "= 1 }),"
    " dense(orthogonal { rows = 5, d = 8, seed = 2 }), identity() } } }",
};

/* Call check for every spec and target. */
static void each(void (*check)(const planned_head *m))
{
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int t = 0; t < target_count(); t++) {
            planned_head m = {0};
            planned_spec(&m, specs[i], target_at(t)->name);
            check(&m);
            planned_free(&m);
        }
}

static void check_cover(const planned_head *m)
{
    const fpa_plan *plan = &m->plan;
    int64_t feature = 0;
    for (int i = 0; i < plan->piece_count; i++) {
        assert_int_equal(plan->pieces[i].feature, feature);
        assert_true(plan->pieces[i].width > 0);
        feature += plan->pieces[i].width;
    }
    assert_int_equal(feature, plan->features);
    assert_int_equal(plan->features, (int64_t)head_features(m->simple.head));
    if (plan->target->backend != BACKEND_C)
        return;
    feature = 0;
    int piece = 0;
    for (int i = 0; i < plan->c.tile_count; i++) {
        assert_int_equal(plan->c.tiles[i].feature, feature);
        assert_int_equal(plan->c.tiles[i].piece, piece);
        assert_in_range(plan->c.tiles[i].features, 1, plan->c.tile_features);
        feature += plan->c.tiles[i].features;
        piece += plan->c.tiles[i].piece_count;
    }
    assert_int_equal(feature, plan->features);
    assert_int_equal(piece, plan->piece_count);
    for (int s = 0; s < plan->c.slice_count; s++)
        assert_true(plan->c.slices[s] < plan->c.slices[s + 1]);
    assert_int_equal(plan->c.slices[plan->c.slice_count], plan->c.tile_count);
}

static void pieces_tiles_and_slices_cover_every_feature_once(void **state)
{
    each(check_cover);
}

static void slices_are_equal_shares_of_two_four_and_eight_threads(void **state)
{
    static const struct {
        const char *terms;
        int d, slices;
    } cases[] = {
        {"linear {}", 64, 1},
        {"power { degree = 2 }", 16, 1}, /* 144 features */
        {"power { degree = 2 }", 28, 2}, /* 420 */
        {"power { degree = 2 }", 48, 4}, /* 1200 */
        {"power { degree = 2 }", 64, 8}, /* 2112 in 44 tiles */
        {"power { degree = 3 }", 64, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char spec[128];
        planned_head m = {0};
        snprintf(spec, sizeof spec, "return head { name = 'shared', d = %d, dv = 64, terms = %s }",
                 cases[i].d, cases[i].terms);
        planned_spec(&m, spec, "c:avx512");
        const fpa_plan *plan = &m.plan;
        assert_int_equal(plan->c.slice_count, cases[i].slices);
        for (int team = 2; team <= plan->c.slice_count; team *= 2)
            for (int rank = 0; rank < team; rank++) {
                const int share = plan->c.slice_count / team, first = rank * share;
                const int tiles = plan->c.slices[first + share] - plan->c.slices[first];
                assert_in_range(tiles, plan->c.tile_count / team, (plan->c.tile_count + team - 1) / team);
            }
        planned_free(&m);
    }
}

/* Pack x as the emitted code does. */
static void pack(const fpa_plan *plan, const double *x, bool key, double *row)
{
    const fpa_head *head = plan->head;
    for (int i = 0; i < head->d; i++)
        row[i] = x[i];
    row[plan->ones_row] = 1;
    for (int p = 0; p < plan->projection_count; p++) {
        const fpa_matrix *w = &head->matrices[plan->projections[p].matrix];
        for (int r = 0; r < w->rows; r++) {
            double sum = 0;
            for (int i = 0; i < w->cols; i++)
                sum += w->data[r * w->cols + i] * x[i];
            row[plan->projections[p].first_row + r] = sum;
        }
    }
    for (int i = 0; i < plan->weighted_count; i++)
        row[plan->weighted[i].row] = row[plan->weighted[i].from] * (key ? plan->weighted[i].gram : 1);
}

static double by_features(const fpa_plan *plan, const double *q, const double *k)
{
    double sum = 0;
    for (int i = 0; i < plan->piece_count; i++) {
        const fpa_piece *piece = &plan->pieces[i];
        double shared = piece->weight;
        for (int f = 0; f < piece->prefix_count; f++)
            shared *= q[piece->prefix[f]] * k[piece->prefix[f]];
        for (int f = 0; f < piece->width; f++)
            sum += shared * q[piece->base + f] * k[piece->base + f];
    }
    return sum;
}

static double by_score(const fpa_plan *plan, const double *q, const double *k)
{
    double sum = 0;
    for (int m = 0; m < plan->score->monomial_count; m++) {
        double product = plan->score->monomials[m].weight.value;
        for (int i = 0; i < plan->score->dot_count; i++) {
            double dot = 0;
            for (int r = 0; r < plan->dots[i].row_count; r++)
                dot += q[plan->dots[i].rows[r]] * k[plan->dots[i].rows[r]];
            product *= pow(dot, plan->score->monomials[m].power[i]);
        }
        sum += product;
    }
    return sum;
}

static double as_written(const fpa_head *head, const double *q, const double *k)
{
    double sum = 0;
    for (int t = 0; t < head->term_count; t++) {
        double product = head->terms[t].weight.value;
        for (int b = 0; b < head->terms[t].branch_count; b++) {
            const fpa_branch *branch = &head->terms[t].branches[b];
            double dot = 0;
            for (int w = 0; w < branch->width; w++) {
                double wq = 0, wk = 0;
                for (int i = 0; i < head->d; i++) {
                    double entry = branch->source == FPA_INPUT
                                       ? i == branch->row[w]
                                       : head->matrices[branch->source].data[branch->row[w] * head->d + i];
                    wq += entry * q[i];
                    wk += entry * k[i];
                }
                dot += (branch->gram ? branch->gram[w].value : 1) * wq * wk;
            }
            product *= dot;
        }
        sum += product;
    }
    return sum;
}

static void check_kernel(const planned_head *m)
{
    const fpa_head *written = m->list.heads[0];
    const int d = written->d, rows = m->plan.row_count;
    double *q = calloc(2 * (d + rows), sizeof *q), *k = q + d, *qrow = k + d, *krow = qrow + rows;
    assert_non_null(q);
    srand(20260101); /* fixed: the same inputs every time */
    for (int i = 0; i < 2 * d; i++)
        q[i] = rand() / (double)RAND_MAX + 0.1;
    pack(&m->plan, q, false, qrow);
    pack(&m->plan, k, true, krow);
    double expected = as_written(written, q, k), tolerance = 1e-11 * (fabs(expected) + 1);
    assert_true(fabs(by_features(&m->plan, qrow, krow) - expected) <= tolerance);
    assert_true(fabs(by_score(&m->plan, qrow, krow) - expected) <= tolerance);
    free(q);
}

static void features_and_score_add_up_to_the_head_as_written(void **state)
{
    each(check_kernel);
}

static void a_chunk_in_the_spec_is_kept_and_else_chosen_by_cost(void **state)
{
    planned_head m = {0};
    planned_spec(&m, "return head { name = 'c', d = 16, dv = 16, chunk = 100, terms = linear {} }", "c:avx2");
    assert_int_equal(m.plan.chunk, 100);
    planned_free(&m);
    int last = 0;
    for (int degree = 1; degree <= 3; degree++) {
        char spec[128];
        snprintf(spec, sizeof spec,
                 "return head { name = 'c', d = 32, dv = 32, terms = power { degree = %d } }", degree);
        planned_spec(&m, spec, "c:avx2");
        assert_true(m.plan.chunk >= last); /* a larger state is visited less often */
        last = m.plan.chunk;
        planned_free(&m);
    }
    assert_true(last > 48);
}

/* With its factors, and a product where that is an instruction of its own, a register tile has registers enough, and no step of it waits
 * for loads or for sums. */
static void check_register_tile(const fpa_plan *plan, fpa_register_tile tile, int columns)
{
    const fpa_cpu *cpu = cpu_of_target(plan->target);
    const int sums = tile.rows * tile.vectors, width = plan->target->vector;
    assert_true(sums + tile.vectors + 1 + (cpu->product_instructions > 1) <= cpu->registers);
    assert_int_equal(plan->c.tokens % tile.rows, 0);
    assert_true(tile.vectors <= (columns + width - 1) / width + 3); /* the last ones may be narrower */
    if (columns >= 2 * width && columns % (2 * width) == 0)
        assert_true(tile.rows + tile.vectors <= cpu->loads * sums / cpu->multiply_adds &&
                    cpu->latency <= sums / cpu->multiply_adds);
}

static void check_register_tiles(const planned_head *m)
{
    if (m->plan.target->backend != BACKEND_C)
        return;
    check_register_tile(&m->plan, m->plan.c.values, m->plan.head->dv);
    check_register_tile(&m->plan, m->plan.c.scores, m->plan.c.tokens);
}

static void register_tiles_have_room_and_keep_the_multiply_adds_busy(void **state)
{
    planned_head m = {0};
    each(check_register_tiles);
    planned_spec(&m, specs[1], "c:avx512");
    assert_int_equal(m.plan.c.values.rows, 6);
    assert_int_equal(m.plan.c.values.vectors, 4);
    planned_free(&m);
}

static void heads_of_bf16_multiply_pairs_where_the_target_has_them(void **state)
{
    static const char *const targets[] = {"c:avx512bf16", "c:avx512", "c:avx2"};
    static const char *const types[] = {"bf16", "f16", "f32"};
    for (int t = 0; t < 3; t++)
        for (int d = 0; d < 3; d++) {
            char spec[160];
            planned_head m = {0};
            snprintf(
                spec, sizeof spec,
                "return head { name = 'p', d = 32, dv = 32, dtype = '%s', terms = power { degree = 2 } }",
                types[d]);
            planned_spec(&m, spec, targets[t]);
            assert_int_equal(m.plan.c.pairs, t == 0 && d == 0);
            assert_int_equal(m.plan.facts.arithmetic, t == 0 && d == 0 ? FPA_BF16 : FPA_F32);
            planned_free(&m);
        }
}

static void each_target_has_a_generator_of_its_name(void **state)
{
    for (int t = 0; t < target_count(); t++) {
        const fpa_target *target = target_at(t);
        const fpa_generator *generator = generator_of(target);
        const size_t length = strlen(generator->name);
        assert_int_equal(strncmp(target->name, generator->name, length), 0);
        assert_int_equal(target->name[length], ':');
        assert_true(generator->plan && generator->print && generator->push && generator->code);
    }
}

static void an_absurd_state_is_refused_with_its_figures(void **state)
{
    static const char spec[] =
        "return head { name = 'huge', d = 512, dv = 512, terms = power { degree = 3 } }";
    planned_head m = {0};
    fpa_error error = {0};
    assert_int_equal(spec_load_text("huge.lua", NULL, spec, sizeof spec - 1, &m.list, &error), FPA_OK);
    assert_int_equal(simplify(m.list.heads[0], &m.simple, &error), FPA_OK);
    assert_int_equal(plan_choose(&m.simple, m.list.heads[0], target_at(0), &m.plan, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "GiB"));
    assert_non_null(strstr(error.message, "huge"));
    simplified_free(&m.simple);
    head_list_free(&m.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_tiles_and_slices_cover_every_feature_once),
        cmocka_unit_test(slices_are_equal_shares_of_two_four_and_eight_threads),
        cmocka_unit_test(features_and_score_add_up_to_the_head_as_written),
        cmocka_unit_test(a_chunk_in_the_spec_is_kept_and_else_chosen_by_cost),
        cmocka_unit_test(register_tiles_have_room_and_keep_the_multiply_adds_busy),
        cmocka_unit_test(heads_of_bf16_multiply_pairs_where_the_target_has_them),
        cmocka_unit_test(each_target_has_a_generator_of_its_name),
        cmocka_unit_test(an_absurd_state_is_refused_with_its_figures),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
