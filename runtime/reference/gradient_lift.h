/* gradient_lift: computes gradients of the vector x and of the lift's matrices from gradients of coordinates, by the formulas of
 * head/lift.h. A part of gradient_walk.h, with its `real`.
 *
 * For u = gain map(a), a = inner y - square |x|^2 - shift, y a product of factors:
 *   da = gain map'(a) du,  dy = inner da,  dx = -2 square x da + ...; for each factor, dy times the product of the others.
 * For a pair (A u cos t, A u sin t) with gradients (c, s), t = angle p + phase:
 *   du = A (c cos t + s sin t),  dA = u (c cos t + s sin t),  dt = A u (s cos t - c sin t). */

/* A real or complex number, and the magnitude to which its rounding error is relative. */
typedef struct lifted {
    real re, im, size;
} lifted;

/* Data of a vector that all its coordinates share. */
typedef struct lifting {
    const walk *walk;
    fpa_lift_token token;
    real x[HEAD_MAX_WIDTH + 1], dx[HEAD_MAX_WIDTH + 1]; /* x, then 1, which is multiplied by constants */
    real norm, d_norm;
} lifting;

static lifted lifted_row(const lifting *l, int matrix, int r)
{
    const fpa_matrix *shape = &l->walk->problem->head->matrices[matrix];
    const double *row = lift_entries(&l->token, matrix);
    real sum = 0, squares = 0;
    if (shape->kind == FPA_MATRIX_TRAINABLE_DIAGONAL) {
        sum = (real)row[r] * l->x[r];
        return (lifted){sum, 0, (real)fabs((double)sum)};
    }
    row += (int64_t)r * shape->cols;
    for (int c = 0; c < shape->cols; c++) {
        const real product = (real)row[c] * l->x[c];
        sum += product;
        squares += product * product;
    }
    return (lifted){sum, 0, (real)fmax(fabs((double)sum), sqrt((double)squares))};
}

static lifted lifted_factor(const lifting *l, const fpa_lift_factor *factor, int r)
{
    if (factor->source == FPA_INPUT) {
        const real x = l->x[factor->row[r]];
        return (lifted){x, 0, (real)fabs((double)x)};
    }
    lifted y = lifted_row(l, factor->source, r);
    if (factor->imaginary != FPA_NO_MATRIX) {
        const lifted imaginary = lifted_row(l, factor->imaginary, r);
        y.im = imaginary.re;
        y.size = (real)hypot((double)y.size, (double)imaginary.size);
    }
    return y;
}

static lifted times(lifted a, lifted b)
{
    return (lifted){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re, a.size * b.size};
}

/* Adds the gradient of row r's product to the gradients of the vector and of the matrix. */
static void pass_row(lifting *l, int matrix, int r, real gradient)
{
    const walk *w = l->walk;
    const fpa_matrix *shape = &w->problem->head->matrices[matrix];
    const bool diagonal = shape->kind == FPA_MATRIX_TRAINABLE_DIAGONAL;
    const int64_t at = diagonal ? 0 : (int64_t)r * shape->cols;
    const double *row = lift_entries(&l->token, matrix) + at;
    double *to = w->to.weights ? w->to.weights[matrix] : NULL;
    if (to)
        to += at + (shape->per_head ? l->token.head * (diagonal ? 1 : shape->rows) * shape->cols : 0);
    for (int c = diagonal ? r : 0; c < (diagonal ? r + 1 : shape->cols); c++) {
        l->dx[c] += size_of(w, (real)row[c]) * gradient;
        if (to)
            to[c] = (double)((real)to[c] + size_of(w, l->x[c]) * gradient);
    }
}

static void pass_factor(lifting *l, const fpa_lift_factor *factor, int r, real re, real im)
{
    if (factor->source == FPA_INPUT)
        l->dx[factor->row[r]] += re;
    else
        pass_row(l, factor->source, r, re);
    if (factor->imaginary != FPA_NO_MATRIX)
        pass_row(l, factor->imaginary, r, im);
}

/* Passes the gradient of a product to its factors: multiplied by the conjugate of the product of the others. */
static void pass_product(lifting *l, const fpa_lift_part *part, const lifted *factors, int r, real re,
                         real im)
{
    for (int f = 0; f < part->factor_count; f++) {
        lifted others = {1, 0, 1};
        for (int o = 0; o < part->factor_count; o++)
            if (o != f)
                others = times(others, factors[o]);
        if (l->walk->absolute)
            pass_factor(l, &part->factors[f], r, others.size * (re + im), others.size * (re + im));
        else
            pass_factor(l, &part->factors[f], r, others.re * re + others.im * im,
                        others.re * im - others.im * re);
    }
}

/* map'(a). For magnitudes also the effect of an error of a on it, and near a kink the slope on its other side. */
static real slope_of(const lifting *l, fpa_map map, real a, real size)
{
    const double y = (double)a;
    if (!l->walk->absolute)
        return (real)lift_map_slope(map, y);
    return (real)(lift_slope_near(map, y, (double)size) + lift_map_bend(map, y) * (double)size);
}

/* Adds to entry `at` of the gradient of a matrix, for the token's head. */
static void add_entry(const lifting *l, int matrix, int64_t at, real gradient)
{
    const walk *w = l->walk;
    const fpa_matrix *shape = &w->problem->head->matrices[matrix];
    double *to = w->to.weights ? w->to.weights[matrix] : NULL;
    if (!to)
        return;
    to += at + (shape->per_head ? l->token.head * shape->rows * shape->cols : 0);
    *to = (double)((real)*to + gradient);
}

/* Returns the gradient of u from those of its two coordinates, c and s; adds those of angle, phase and amplitude. */
static real pass_turn(lifting *l, const fpa_lift_part *part, lifted u, int r, real c, real s)
{
    const bool query = l->token.side == FPA_QUERY, absolute = l->walk->absolute;
    const int numbers = l->walk->problem->head->lift->positions;
    const double t = lift_phase(&l->token, part, r);
    const real a = size_of(l->walk, (real)lift_amplitude(&l->token, part, r));
    const real cosine = absolute ? 1 : (real)cos(t), sine = absolute ? 1 : (real)sin(t);
    const real along = cosine * c + sine * s, around = absolute ? c + s : cosine * s - sine * c;
    const real size = absolute ? u.size : u.re;
    for (int p = 0; p < numbers; p++)
        add_entry(l, part->angle, (int64_t)r * numbers + p,
                  a * size * around * size_of(l->walk, (real)l->token.position[p]));
    if (query && part->phase != FPA_NO_MATRIX)
        add_entry(l, part->phase, r, a * size * around);
    if (query && part->amplitude != FPA_NO_MATRIX)
        add_entry(l, part->amplitude, r, size * along);
    return a * along;
}

/* The gradient of a coordinate, which the plain computation rounds to the type of its arithmetic, since kernels of
 * 16-bit heads store it in that type between two kernels (docs/numerics.md). */
static real arrived(const lifting *l, real d)
{
    return narrow_row(l->walk, d);
}

/* Processes row r of a real part. d: gradients of the part's coordinates; if it has positions, the second
 * coordinates of all rows follow the first ones. */
static void pass_mapped(lifting *l, const fpa_lift_part *part, const lifted *factors, lifted y, int r,
                        const real *d)
{
    const walk *w = l->walk;
    const fpa_side side = l->token.side;
    const real inner = (real)part->inner, square = (real)part->square;
    const real a = inner * y.re - square * l->norm - (real)part->shift;
    const real size =
        (real)(fabs(part->inner) * (double)y.size + fabs(part->square) * (double)l->norm + fabs(part->shift));
    const real gain = (real)part->gain[side], slope = slope_of(l, part->map[side], a, size);
    const real value = gain * (real)lift_map(part->map[side], (double)a);
    const lifted u = {value, 0, (real)fmax(fabs((double)value), fabs((double)(gain * slope * size)))};
    const real c = arrived(l, d[r]);
    const real du =
        part->angle == FPA_NO_MATRIX ? c : pass_turn(l, part, u, r, c, arrived(l, d[part->rows + r]));
    const real da = size_of(w, gain) * slope * du;
    l->d_norm += size_of(w, -square) * da;
    pass_product(l, part, factors, r, size_of(w, inner) * da, 0);
}

static void pass_part(lifting *l, const fpa_lift_part *part, const real *du)
{
    const real gain = size_of(l->walk, (real)part->gain[l->token.side]);
    for (int r = 0; r < part->rows; r++) {
        lifted factors[HEAD_MAX_BRANCHES], y = {1, 0, 1};
        for (int f = 0; f < part->factor_count; f++) {
            factors[f] = lifted_factor(l, &part->factors[f], r);
            y = times(y, factors[f]);
        }
        if (part->is_complex)
            pass_product(l, part, factors, r, gain * arrived(l, du[r]),
                         gain * arrived(l, du[part->rows + r]));
        else
            pass_mapped(l, part, factors, y, r, du);
    }
}

/* du: [d], gradients of the coordinates. dx: [width], gradient of the vector as given; NULL: not wanted. */
static void lift_back(const walk *w, const fpa_lift_token *token, const real *du, double *dx)
{
    const fpa_head *head = w->problem->head;
    const fpa_lift *lift = head->lift;
    const real scale = (real)(token->side == FPA_QUERY ? head->scale : 1);
    lifting l = {.walk = w, .token = *token};
    for (int c = 0; c < lift->width; c++) {
        l.x[c] = scale * (real)token->x[c];
        l.norm += l.x[c] * l.x[c];
    }
    l.x[lift->width] = 1;
    for (int i = 0, at = 0; i < lift->part_count; at += lift_coordinates(&lift->parts[i++]))
        pass_part(&l, &lift->parts[i], du + at);
    for (int c = 0; dx && c < lift->width; c++)
        dx[c] = (double)(size_of(w, scale) * (l.dx[c] + 2 * size_of(w, l.x[c]) * l.d_norm));
}
