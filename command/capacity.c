#include "capacity.h"

#include <math.h>
#include <stdlib.h>

#include "base/splitmix.h"

/* ---- polynomials in s = scale x.y, by formula ---- */

/* E (u.v)^n for two random unit vectors: (n - 1)!! / (d (d + 2) ... (d + n - 2)); 0 for odd n. */
static double direction_moment(int d, int n)
{
    double moment = 1;
    for (int i = 0; i < n; i += 2)
        moment *= (double)(i + 1) / (d + i);
    return n % 2 ? 0 : moment;
}

/* Whether k is a polynomial of x.y alone. */
static bool is_polynomial_of_input(const fpa_simplified *simple)
{
    const fpa_score *score = &simple->score;
    return score->dot_count == 1 && score->dots[0].source == FPA_INPUT &&
           score->dots[0].width == simple->head->d && !score->dots[0].gram;
}

/* The kernel's value for scale x.y = size. */
static double value_at(const fpa_score *score, double size)
{
    double sum = 0;
    for (int i = 0; i < score->monomial_count; i++)
        sum += score->monomials[i].weight.value * pow(size, score->monomials[i].power[0]);
    return sum;
}

static void measure_polynomial(const fpa_simplified *simple, double size, kernel_moments *m)
{
    const fpa_score *score = &simple->score;
    const int d = simple->head->d;
    double mean = 0, square = 0, own = value_at(score, size);
    for (int i = 0; i < score->monomial_count; i++) {
        const fpa_monomial *a = &score->monomials[i];
        mean += a->weight.value * pow(size, a->power[0]) * direction_moment(d, a->power[0]);
        for (int j = 0; j < score->monomial_count; j++) {
            const int n = a->power[0] + score->monomials[j].power[0];
            square +=
                a->weight.value * score->monomials[j].weight.value * pow(size, n) * direction_moment(d, n);
        }
    }
    m->groups = 1;
    m->group[0].own = own;
    m->group[0].mean = mean;
    m->group[0].square = square;
    for (int i = 1; i <= 64; i++)
        m->is_negative = m->is_negative || value_at(score, -size * i / 64) < -1e-9 * fabs(own);
}

/* ---- other heads, by pairs of keys ---- */

enum { KEYS = 256 };

/* Random keys, with the rows that the dots use. */
typedef struct key_set {
    const fpa_simplified *simple;
    double *keys;  /* [KEYS][d] */
    double **rows; /* for each matrix of the head: [KEYS][rows]; NULL: no dot uses it */
    double scale;
} key_set;

/* Draws a random direction. */
static void draw_direction(uint64_t *state, int width, double *vector)
{
    double square = 0;
    for (int i = 0; i < width; i++) {
        vector[i] = splitmix_normal(state);
        square += vector[i] * vector[i];
    }
    for (int i = 0; i < width; i++)
        vector[i] /= sqrt(square);
}

/* Makes a row orthogonal to those before it, as long as that is possible, and of length 1 (Gram-Schmidt). */
static void make_orthonormal(double *rows, int row, int width)
{
    double *own = rows + (size_t)row * (size_t)width, square = 0;
    for (int other = 0; other < row && row < width; other++) {
        const double *before = rows + (size_t)other * (size_t)width;
        double dot = 0;
        for (int i = 0; i < width; i++)
            dot += own[i] * before[i];
        for (int i = 0; i < width; i++)
            own[i] -= dot * before[i];
    }
    for (int i = 0; i < width; i++)
        square += own[i] * own[i];
    for (int i = 0; i < width; i++)
        own[i] /= sqrt(square);
}

/* The matrix's values; for one that is given at run time, random orthonormal rows, or the identity for a diagonal.
 * malloc'ed. */
static double *matrix_values(const fpa_matrix *matrix, int index)
{
    const int rows = matrix->rows, cols = matrix->cols;
    double *values = calloc((size_t)rows * (size_t)cols + 1, sizeof *values);
    uint64_t state = 1000 + (uint64_t)index;
    for (int r = 0; values && r < rows; r++) {
        double *row = values + (size_t)r * (size_t)cols;
        if (matrix->kind == FPA_MATRIX_TRAINABLE) {
            draw_direction(&state, cols, row);
            make_orthonormal(values, r, cols);
        } else if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL) {
            row[r] = 1;
        } else {
            for (int c = 0; c < cols; c++)
                row[c] = matrix->data[(size_t)r * (size_t)cols + (size_t)c];
        }
    }
    return values;
}

static fpa_status project_keys(key_set *set, int index, fpa_error *error)
{
    const fpa_matrix *matrix = &set->simple->head->matrices[index];
    const size_t rows = (size_t)matrix->rows, cols = (size_t)matrix->cols;
    double *values = matrix_values(matrix, index);
    double *out = set->rows[index] = calloc(KEYS * rows + 1, sizeof *out);
    if (!values || !out) {
        free(values);
        return fail_memory(error);
    }
    for (size_t i = 0; i < KEYS; i++)
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < cols; c++)
                out[i * rows + r] += values[r * cols + c] * set->keys[i * cols + c];
    free(values);
    return FPA_OK;
}

static fpa_status make_keys(key_set *set, fpa_error *error)
{
    const fpa_head *head = set->simple->head;
    const fpa_score *score = &set->simple->score;
    const size_t d = (size_t)head->d;
    uint64_t state = 1;
    set->keys = calloc(KEYS * d, sizeof *set->keys);
    set->rows = calloc((size_t)head->matrix_count + 1, sizeof *set->rows);
    if (!set->keys || !set->rows)
        return fail_memory(error);
    for (size_t i = 0; i < KEYS; i++) {
        draw_direction(&state, head->d, set->keys + i * d);
        for (size_t c = 0; c < d; c++)
            set->keys[i * d + c] *= sqrt((double)d);
    }
    fpa_status status = FPA_OK;
    for (int i = 0; i < score->dot_count && !status; i++) {
        const int source = score->dots[i].source;
        if (source != FPA_INPUT && !set->rows[source])
            status = project_keys(set, source, error);
    }
    return status;
}

static void free_keys(key_set *set)
{
    for (int i = 0; set->rows && i < set->simple->head->matrix_count; i++)
        free(set->rows[i]);
    free(set->rows);
    free(set->keys);
}

static double dot_of(const key_set *set, const fpa_branch *dot, size_t a, size_t b)
{
    const bool is_input = dot->source == FPA_INPUT;
    const double *from = is_input ? set->keys : set->rows[dot->source];
    const size_t width =
        (size_t)(is_input ? set->simple->head->d : set->simple->head->matrices[dot->source].rows);
    double sum = 0;
    for (int w = 0; w < dot->width; w++) {
        const size_t row = (size_t)dot->row[w];
        sum += branch_gram(dot, w) * from[a * width + row] * from[b * width + row];
    }
    return set->scale * sum;
}

/* k(scale x_a, x_b); dots: room for all dot products. */
static double kernel_of(const key_set *set, size_t a, size_t b, double *dots)
{
    const fpa_score *score = &set->simple->score;
    double sum = 0;
    for (int i = 0; i < score->dot_count; i++)
        dots[i] = dot_of(set, &score->dots[i], a, b);
    for (int i = 0; i < score->monomial_count; i++) {
        const fpa_monomial *monomial = &score->monomials[i];
        double product = monomial->weight.value;
        for (int j = 0; j < score->dot_count; j++)
            for (int n = 0; n < monomial->power[j]; n++)
                product *= dots[j];
        sum += product;
    }
    return sum;
}

/* Figures of one key: s, and the moments of k with all others. */
typedef struct key_figures {
    double own, mean, square;
} key_figures;

static int compare_own(const void *left, const void *right)
{
    const key_figures *a = left, *b = right;
    return (a->own > b->own) - (a->own < b->own);
}

static void measure_pairs(const key_set *set, double *dots, key_figures *keys, kernel_moments *m)
{
    for (size_t a = 0; a < KEYS; a++) {
        keys[a].own = kernel_of(set, a, a, dots);
        for (size_t b = 0; b < a; b++) {
            const double other = kernel_of(set, a, b, dots);
            keys[a].mean += other / (KEYS - 1);
            keys[b].mean += other / (KEYS - 1);
            keys[a].square += other * other / (KEYS - 1);
            keys[b].square += other * other / (KEYS - 1);
            m->is_negative = m->is_negative || other < -1e-9 * fabs(keys[a].own);
        }
    }
    qsort(keys, KEYS, sizeof *keys, compare_own);
    m->groups = KEY_GROUPS;
    for (int i = 0; i < KEYS; i++) {
        const int at = i / (KEYS / KEY_GROUPS);
        m->group[at].own += keys[i].own * KEY_GROUPS / KEYS;
        m->group[at].mean += keys[i].mean * KEY_GROUPS / KEYS;
        m->group[at].square += keys[i].square * KEY_GROUPS / KEYS;
    }
}

static fpa_status measure_sampled(const fpa_simplified *simple, double scale, kernel_moments *m,
                                  fpa_error *error)
{
    key_set set = {.simple = simple, .scale = scale};
    double *dots = calloc((size_t)simple->score.dot_count + 1, sizeof *dots);
    key_figures *keys = calloc(KEYS, sizeof *keys);
    fpa_status status = dots && keys ? make_keys(&set, error) : fail_memory(error);
    if (!status)
        measure_pairs(&set, dots, keys, m);
    free(dots);
    free(keys);
    free_keys(&set);
    return status;
}

/* The means of own, mean and square over the groups. */
static double mean_own(const kernel_moments *m)
{
    double sum = 0;
    for (int i = 0; i < m->groups; i++)
        sum += m->group[i].own / m->groups;
    return sum;
}

double capacity_features(const kernel_moments *m)
{
    double square = 0;
    for (int i = 0; i < m->groups; i++)
        square += m->group[i].square / m->groups;
    return mean_own(m) * mean_own(m) / square;
}

fpa_status kernel_measure(const fpa_simplified *simple, double scale, kernel_moments *moments,
                          fpa_error *error)
{
    fpa_status status = FPA_OK;
    *moments = (kernel_moments){0};
    if (is_polynomial_of_input(simple))
        measure_polynomial(simple, scale * simple->head->d, moments);
    else
        status = measure_sampled(simple, scale, moments, error);
    if (status)
        return status;
    const double own = mean_own(moments), worth = capacity_features(moments);
    if (!(own > 0) || !isfinite(worth))
        return fail(error, FPA_UNSUPPORTED, simple->head->name,
                    "k(x, x) is %g on average: no value can be recalled", own);
    return FPA_OK;
}

/* ---- pairs ---- */

/* log of the probability that the product of a random unit code with a direction is below x / sqrt(dv): Student's
 * t with dv - 1 degrees of freedom, converted to a normal number. */
static double log_below(double x, int dv)
{
    const double freedom = dv > 1 ? dv - 1 : 1, square = x * x / dv;
    if (square >= 1)
        return x > 0 ? 0 : -INFINITY;
    const double normal =
        copysign(sqrt(-freedom * log1p(-square)) * (8 * freedom + 1) / (8 * freedom + 3), x);
    return log1p(-0.5 * erfc(normal / sqrt(2)));
}

static double group_share(double own, double mean, double square, int dv, double pairs)
{
    enum { HALF = 48, STEPS_A_UNIT = 8 }; /* integrates over z from -6 to 6 */
    const double noise = pairs * square, across = noise * (1 - 1.0 / dv);
    double share = 0;
    for (int i = -HALF; i <= HALF; i++) {
        const double z = (double)i / STEPS_A_UNIT, along = own + sqrt(noise / dv) * z;
        const double b = sqrt(fmax(square - mean * mean, 0) + (along * along + across) / dv);
        const double log_right = (pairs - 1) * log_below((along - mean) / b, dv);
        share += exp(log_right - z * z / 2) / (STEPS_A_UNIT * sqrt(2 * M_PI));
    }
    return fmin(share, 1);
}

double capacity_share(const kernel_moments *m, int dv, double pairs)
{
    double share = 0;
    for (int i = 0; i < m->groups; i++)
        share += group_share(m->group[i].own, m->group[i].mean, m->group[i].square, dv, pairs) / m->groups;
    return share;
}

double capacity_pairs(const kernel_moments *m, int dv, double share)
{
    const double most = 1e15;
    double low = 1, high = 2;
    while (high < most && capacity_share(m, dv, high) >= share) {
        low = high;
        high *= 2;
    }
    while (high - low > fmax(1, 1e-4 * low)) {
        const double middle = floor((low + high) / 2);
        if (capacity_share(m, dv, middle) >= share)
            low = middle;
        else
            high = middle;
    }
    return low;
}
