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

/* Rounds a factor of a product. In half precision it is bf16, the type of copies of states, which has the range
 * for sums. */
static real narrow(const walk *w, real x)
{
    return round_float(w->problem->arithmetic == FPA_F32 ? FPA_F32 : FPA_BF16, x);
}

static void add_roundings(const walk *w, int64_t t, int64_t j, real seen, real gradient)
{
    const double whole = (double)seen * (double)gradient;
    const double read = (double)narrow(w, seen) * (double)gradient - whole;
    const double written = (double)seen * (double)narrow(w, gradient) - whole;
    const int64_t span = w->given->span;
    w->whole[t] += whole;
    w->whole[j] -= whole;
    w->rounding[t] += read * read;
    w->rounding[j] += written * written;
    for (int64_t u = (j / span + 1) * span; u <= t; u += span)
        w->crossing_rounding[u] += read * read + written * written;
}

/* The gradient of log-gate t: a running sum of each token's contribution as a query less that as a key, begun anew
 * after every span. */
static real gate_of(const walk *w, int64_t t, real running[2])
{
    if (begins_anew(w, t))
        running[0] = w->crossing[t + 1];
    running[0] += w->read[t] - w->written[t];
    return running[0];
}

fpa_status reference_gradient_plain(const fpa_problem *problem, const fpa_saved *backward,
                                    const fpa_gradients *gradient, fpa_error *error)
{
    return walk_all(problem, backward, gradient, false, error);
}
