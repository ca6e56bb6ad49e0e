/* contraction_of: whether a head has NAME_chunk_contraction, from the head alone, since tiles depend on it. */
#include "contraction.h"

#include "gen/plan/plan.h"
#include "outer.h"
#include "mechanism.h"

/* Whether a kernel of that degree is contracted: any degree in a pass of gradients; in a head's own module only an
 * ungated square, since the passes of other heads are heads of their own (gen/plan/passes.h). */
static bool is_degree_wanted(const fpa_plan *plan, int degree)
{
    return degree > 1 &&
           (plan->pass || (degree == 2 && !plan->head->gate && plan->score->monomial_count == 1));
}

fpa_contracted contraction_of(const fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    const int degree = passes_degree(plan->score);
    const bool wanted = (plan->forced == SPLIT_OUTER || plan->forced < 0) && is_degree_wanted(plan, degree) &&
                        head->causal && head->normalize == FPA_NORMALIZE_NONE &&
                        dtype_size(head->dtype) == 2 && !plan->written->lift && !plan->written->window &&
                        head->dv % OUTER_BLOCK == 0 && contraction_fits(head, degree);
    const bool states = degree == 2 && !contraction_of_few(plan->score->monomial_count, head->dv, head->gate);
    return !wanted ? CONTRACTS_NOTHING : states ? CONTRACTS_STATES : CONTRACTS_PAIRS;
}
