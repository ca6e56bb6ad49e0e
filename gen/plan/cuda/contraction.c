/* contraction_is_wanted: before tiles are there. */
#include "contraction.h"

#include "gen/plan/plan.h"
#include "outer.h"
#include "mechanism.h"

static bool is_square(const fpa_score *score)
{
    return score->dot_count == 1 && score->monomial_count == 1 && score->monomials[0].power[0] == 2;
}

/* A polynomial of degree 2 in one dot. */
static bool is_quadratic(const fpa_score *score)
{
    int degree = 0;
    for (int m = 0; m < score->monomial_count && score->dot_count == 1; m++)
        if (score->monomials[m].power[0] > degree)
            degree = score->monomials[m].power[0];
    return degree == 2;
}

/* The head is its own pass of values, unless it has a gate or is a sum of powers (gen/plan/passes.h). */
bool contraction_is_wanted(const fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    return (plan->forced == SPLIT_OUTER || plan->forced < 0) &&
           (plan->pass ? is_quadratic(plan->score) : !head->gate && is_square(plan->score)) && head->causal &&
           head->normalize == FPA_NORMALIZE_NONE && dtype_size(head->dtype) == 2 && !plan->written->lift &&
           !plan->written->window && head->dv % OUTER_BLOCK == 0 && contraction_fits(head);
}
