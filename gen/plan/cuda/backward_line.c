/* Features that passes have in place of q and k: the factors of each (gen/plan/feature_line.h). */
#include "backward.h"

#include "feature_rows.h"
#include "parts.h"

enum { NO_ROW = -1, ELEMENT = 2 };

/* The row of a factor; a weight for keys is multiplied into the feature's weight. */
static int resolve(const fpa_plan *plan, int row, double *weight)
{
    for (int w = 0; w < plan->weighted_count; w++)
        if (plan->weighted[w].row == row) {
            *weight *= plan->weighted[w].gram;
            return plan->weighted[w].from;
        }
    return row == plan->ones_row ? NO_ROW : row;
}

/* Fills in the factors and weight of feature i of a piece. */
static void describe(const fpa_plan *plan, const fpa_piece *piece, int i, fpa_cuda_backward_plan *back)
{
    const int feature = (int)piece->feature + i;
    int *factor = back->line_factor + feature * back->line_factors;
    int *first = factor + back->line_factors - 1 - piece->prefix_count;
    double weight = piece->weight;
    for (int *none = factor; none < first; none++)
        *none = NO_ROW;
    for (int l = 0; l < piece->prefix_count; l++)
        first[l] = resolve(plan, piece->prefix[l], &weight);
    first[piece->prefix_count] = resolve(plan, piece->base + i, &weight);
    back->line_weight[feature] = weight;
}

void plan_backward_line(fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    if (!back->passes.features)
        return;
    back->line_factors = feature_factors(plan);
    back->line_features = (int)plan->features;
    back->line_entries = back->line_features * back->line_factors;
    back->line_factor = arena_array(&plan->memory, (size_t)back->line_entries, sizeof *back->line_factor);
    back->line_weight = arena_array(&plan->memory, (size_t)back->line_features, sizeof *back->line_weight);
    back->line_row_pitch = cuda_odd_pitch(plan->head->d * ELEMENT);
    back->line_pitch = cuda_odd_pitch(back->passes.features * ELEMENT);
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++)
            describe(plan, &plan->pieces[p], i, back);
}
