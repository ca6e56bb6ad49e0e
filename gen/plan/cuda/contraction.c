/* contraction_of: before tiles are there. */
#include "contraction.h"

#include "gen/plan/plan.h"
#include "outer.h"
#include "mechanism.h"

/* Of a polynomial of one dot; 0: the kernel is none. */
static int degree_of(const fpa_score *score)
{
    int degree = 0;
    for (int m = 0; m < score->monomial_count && score->dot_count == 1; m++)
        if (score->monomials[m].power[0] > degree)
            degree = score->monomials[m].power[0];
    return degree;
}

/* Gradients of one that is no pass are wanted of a square alone: others' passes of values are heads of their own (gen/plan/passes.h). */
static bool is_degree_wanted(const fpa_plan *plan, int degree)
{
    return degree > 1 &&
           (plan->pass || (degree == 2 && !plan->head->gate && plan->score->monomial_count == 1));
}

fpa_contracted contraction_of(const fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    const int degree = degree_of(plan->score);
    const bool wanted = (plan->forced == SPLIT_OUTER || plan->forced < 0) && is_degree_wanted(plan, degree) &&
                        head->causal && head->normalize == FPA_NORMALIZE_NONE &&
                        dtype_size(head->dtype) == 2 && !plan->written->lift && !plan->written->window &&
                        head->dv % OUTER_BLOCK == 0 && contraction_fits(head, degree);
    const bool states = degree == 2 && !contraction_of_few(plan->score->monomial_count, head->dv, head->gate);
    return !wanted ? CONTRACTS_NOTHING : states ? CONTRACTS_STATES : CONTRACTS_PAIRS;
}
