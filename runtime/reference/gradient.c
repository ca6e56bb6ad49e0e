/* reference_gradient: gradients in double, pair by pair. */
typedef double real;

#include "gradient_walk.h"

static real narrow_row(const walk *w, real x)
{
    (void)w;
    return x;
}

static void lift_row(const walk *w, const fpa_lift_token *token, real *row)
{
    if (w->absolute)
        lift_exact(token, w->lifted, row);
    else
        lift_exact(token, row, w->lifted);
}

static void add_roundings(const walk *w, int64_t t, int64_t j, real seen, real gradient)
{
    (void)w, (void)t, (void)j, (void)seen, (void)gradient;
}

/* Of magnitudes: half precision rounds what is below its normal numbers as if it were one of them, but never more than the whole. */
static real narrow(const walk *w, real x)
{
    static const double smallest_normal = 0x1p-14;
    if (!w->absolute || w->problem->arithmetic != FPA_F16)
        return x;
    return x + fmin(smallest_normal, x / dtype_roundoff(FPA_F16));
}

/* Of magnitudes: with it, what rounding leaves of the parts of other tokens that a running sum adds and takes off up to
 * the end of the token's span. Their errors are random: the root of their squares. The parallel form's sum goes on from span to span in double, which
 * shows where a span has next to nothing (of outputs that are 0 / 0, say): running[1] is of all tokens behind. Of heads with a mask
 * of keys, whose spans may have nothing, magnitudes go on, too. */
static real gate_of(const walk *w, int64_t t, real running[2])
{
    static const double of_double = 0x1p-29; /* what a sum in double leaves, beside one in float */
    const real part = w->read[t] + w->written[t];
    if (!w->absolute)
        return w->crossing[t];
    if ((t + 1) % w->given->span == 0 && !w->problem->key_mask)
        running[0] = 0;
    running[0] += part * part;
    running[1] += part * part;
    return w->crossing[t] + sqrt(running[0]) + of_double * sqrt(running[1]);
}

/* Magnitudes are relative to o and den as they are, which sums without signs would not give. */
static fpa_status measure(const fpa_problem *problem, fpa_saved given, const fpa_gradients *magnitude,
                          fpa_error *error)
{
    const size_t outputs = (size_t)(problem->batch * problem->length * problem->query_heads);
    double *o = NULL, *den = NULL;
    fpa_problem bare = *problem;
    fpa_head plain = *problem->head;
    fpa_status status = FPA_OK;
    if (!given.o && problem->head->normalize != FPA_NORMALIZE_NONE) {
        o = calloc(outputs * (size_t)problem->head->dv + 1, sizeof *o);
        den = calloc(outputs + 1, sizeof *den);
        status = o && den ? reference_forward(problem, o, NULL, error) : fail_memory(error);
        plain.normalize = FPA_NORMALIZE_SUM; /* whose normaliser is the sum itself without an eps */
        plain.eps = 0;
        bare.head = &plain;
        if (status == FPA_OK)
            status = reference_normalizer(&bare, den, NULL, error);
        given.o = o;
        given.den = den;
    }
    if (status == FPA_OK)
        status = walk_all(problem, &given, magnitude, true, error);
    free(o);
    free(den);
    return status;
}

fpa_status reference_gradient(const fpa_problem *problem, const fpa_saved *backward,
                              const fpa_gradients *gradient, const fpa_gradients *magnitude, fpa_error *error)
{
    fpa_status status = walk_all(problem, backward, gradient, false, error);
    return status == FPA_OK && magnitude ? measure(problem, *backward, magnitude, error) : status;
}
