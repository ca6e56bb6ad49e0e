/* reference_gradient_plain: gradients in float, pair by pair, rounded at every operation. */
typedef float real;

#include "gradient_walk.h"
#include "round.h"

static real narrow_row(const walk *w, real x)
{
    return round_float(w->problem->arithmetic, x);
}

static void lift_row(const walk *w, const fpa_lift_token *token, real *row)
{
    (void)w;
    lift_plain(token, row);
}

/* Half precision meets copies of states that are bf16, which have the range. */
static real narrow(const walk *w, real x)
{
    return round_float(w->problem->arithmetic == FPA_F32 ? FPA_F32 : FPA_BF16, x);
}

/* A running sum of what each token's query reads less what its key gives, begun anew behind every span. */
static real gate_of(const walk *w, int64_t t, real running[2])
{
    const bool last = t + 1 == w->problem->length;
    if (last)
        running[0] = 0;
    else if ((t + 1) % w->given->span == 0)
        running[0] = w->crossing[t + 1];
    running[0] += w->read[t] - w->written[t];
    return running[0];
}

fpa_status reference_gradient_plain(const fpa_problem *problem, const fpa_saved *backward,
                                    const fpa_gradients *gradient, fpa_error *error)
{
    return walk_all(problem, backward, gradient, false, error);
}
