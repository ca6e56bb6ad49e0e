/* reference_gradient: gradients in double, pair by pair, and the magnitudes to which their errors are relative. */
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

/* For magnitudes: half precision rounds numbers below the smallest normal one with the same absolute error as
 * that, but never by more than the whole number. */
static real narrow(const walk *w, real x)
{
    static const double smallest_normal = 0x1p-14;
    if (!w->absolute || w->problem->arithmetic != FPA_F16)
        return x;
    return x + fmin(smallest_normal, x / dtype_roundoff(FPA_F16));
}

/* The gradient of log-gate t: w->crossing[t]. The magnitude also includes rounding errors of a running sum, which
 * adds and subtracts the parts of all tokens up to the end of t's span. These errors are random, so they count as
 * the root of the sum of their squares (running[0]). The parallel form's sum continues from span to span in
 * double, which matters where a span contributes next to nothing (for example outputs that are 0 / 0): running[1]
 * is of all later tokens. With a mask of keys, spans may contribute nothing, so running[0] continues, too. */
static real gate_of(const walk *w, int64_t t, real running[2])
{
    static const double of_double = 0x1p-29; /* roundoff of a sum in double relative to one in float */
    const real part = w->read[t] + w->written[t];
    if (!w->absolute)
        return w->crossing[t];
    if ((t + 1) % w->given->span == 0 && !w->problem->key_mask)
        running[0] = 0;
    running[0] += part * part;
    running[1] += part * part;
    return w->crossing[t] + sqrt(running[0]) + of_double * sqrt(running[1]);
}

/* Computes magnitudes. They use the true o and den, which sums of magnitudes would not give. */
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
        plain.normalize = FPA_NORMALIZE_SUM; /* without eps its normaliser is the sum of scores itself */
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
