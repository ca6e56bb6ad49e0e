#include "feature_rows.h"

#include <math.h>

#include "gen/plan/features.h"
#include "mechanism.h"
#include "parts.h"

enum {
    MOST_FEATURES = 256 /* of which a block of the pass has all sums, for 128 columns */
};

static int fewest_factors(const fpa_plan *plan)
{
    int fewest = plan->pieces[0].degree;
    for (int p = 1; p < plan->piece_count; p++)
        fewest = plan->pieces[p].degree < fewest ? plan->pieces[p].degree : fewest;
    return fewest;
}

int feature_factors(const fpa_plan *plan)
{
    int most = 1;
    for (int p = 0; p < plan->piece_count; p++)
        most = largest(most, plan->pieces[p].prefix_count + 1);
    return most;
}

static bool leaves_range(const fpa_plan *plan)
{
    for (int p = 0; p < plan->piece_count; p++) {
        const int more = plan->pieces[p].degree - fewest_factors(plan);
        if (!f16_has(plan->pieces[p].weight) || !f16_has(pow(plan->head->scale, more)))
            return true;
    }
    return feature_factors(plan) > MOST_FACTORS_OF_F16;
}

/* The first ones, in order, weighted or not: they lie there already. */
static bool are_coordinates(const fpa_plan *plan)
{
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++) {
            int row = plan->pieces[p].base + i;
            for (int w = 0; w < plan->weighted_count; w++)
                if (plan->weighted[w].row == plan->pieces[p].base + i)
                    row = plan->weighted[w].from;
            if (plan->pieces[p].prefix_count || row != plan->pieces[p].feature + i || row >= plan->head->d)
                return false;
        }
    return true;
}

static const char *refusal(const fpa_plan *plan)
{
    if (plan->pass || plan->backward)
        return "kernels of gradients read its states";
    if (plan->written->lift)
        return "its coordinates are computed by lift_rows";
    if (are_coordinates(plan))
        return "its features are its first coordinates";
    if (plan->features > MOST_FEATURES)
        return "it has more than 256 features";
    if (plan->head->dtype == FPA_F16 && leaves_range(plan))
        return "its features may be too small or too large for f16";
    return NULL;
}

/* Feature number i of a piece, which has so many factors more than others. */
static void describe_feature(const fpa_plan *plan, const fpa_piece *piece, int i, int more,
                             fpa_product_rows *made)
{
    const int row = (int)piece->feature + i;
    made->weight[row] = piece->weight;
    made->query_weight[row] = pow(plan->head->scale, more);
    for (int l = 0; l < made->factors; l++)
        made->factor[row * made->factors + l] = l < piece->prefix_count    ? piece->prefix[l]
                                                : l == piece->prefix_count ? piece->base + i
                                                                           : plan->ones_row;
}

static void allocate(const fpa_plan *plan, arena *memory, fpa_product_rows *made)
{
    const int count = (int)plan->features;
    made->count = count;
    made->factors = feature_factors(plan);
    made->factor = arena_array(memory, (size_t)count * made->factors, sizeof *made->factor);
    made->weight = arena_array(memory, count, sizeof *made->weight);
    made->query_weight = arena_array(memory, count, sizeof *made->query_weight);
    made->dot_degree = arena_array(memory, 1, sizeof *made->dot_degree);
}

/* One dot of all rows, and one piece of all features. */
static void describe_head(const fpa_plan *plan, int degree, arena *memory, fpa_product_rows *made)
{
    const int count = made->count, first = plan->row_count;
    int *rows = arena_array(memory, count, sizeof *rows);
    int *power = arena_array(memory, 1, sizeof *power);
    made->plan.dots = arena_array(memory, 1, sizeof *made->plan.dots);
    made->plan.pieces = arena_array(memory, 1, sizeof *made->plan.pieces);
    made->score.monomials = arena_array(memory, 1, sizeof *made->score.monomials);
    for (int i = 0; i < count; i++)
        rows[i] = first + i;
    *power = 1;
    *made->dot_degree = degree;
    made->score.dot_count = made->score.monomial_count = 1;
    *made->score.monomials = (fpa_monomial){number_int(1), power};
    *made->plan.dots = (fpa_dot){count, rows};
    *made->plan.pieces = (fpa_piece){.width = count, .base = first, .weight = 1, .degree = degree};
    made->plan.piece_count = 1;
    made->plan.row_count += count;
}

const char *plan_feature_rows(const fpa_plan *plan, arena *memory, fpa_product_rows *made)
{
    *made = (fpa_product_rows){.plan = *plan};
    made->plan.score = &made->score;
    if (refusal(plan))
        return refusal(plan);
    const int degree = fewest_factors(plan);
    allocate(plan, memory, made);
    describe_head(plan, degree, memory, made);
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++)
            describe_feature(plan, &plan->pieces[p], i, plan->pieces[p].degree - degree, made);
    return NULL;
}
