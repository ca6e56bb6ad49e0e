/* Joint diagonalisation. With R'R the sum of the Grams G_i and G_i = R' M_i R, the M_i add up to 1. So two of them
 * always commute, and more do if the Grams do. The eigenvectors V of a generic combination of commuting M_i
 * diagonalise each of them, so that G_i = T' D_i T with T = V'R: all forms are over the rows of one matrix T, and
 * equal monomials can be collected. */
#include <math.h>
#include <string.h>

#include "passes.h"

enum { JOINT_FORMS = 32, JOINT_RANK = 256 };

static const double negligible = 1e-14; /* weights in D_i below this, relative to the largest one, become 0 */

/* Forms that occur together in monomials, all over rows of the input or of constant matrices. */
typedef struct joint_set {
    int count;
    int forms[JOINT_FORMS];
    bool dense;                  /* at least one form has a constant matrix */
    fpa_dense rows[JOINT_FORMS]; /* W_i, scaled to a Gram of trace 1 */
    double trace[JOINT_FORMS];   /* trace of the Gram before scaling */
    fpa_dense factor;            /* R */
    int *pivots;                 /* of R */
    double *inner[JOINT_FORMS];  /* M_i, rank x rank */
    fpa_dense basis;             /* V', then T */
} joint_set;

static bool is_known(const fpa_simplifier *s, const fpa_branch *form)
{
    return form->source == FPA_INPUT || s->matrices[form->source].kind == FPA_MATRIX_CONSTANT;
}

/* parent[f]: an earlier form of the set of f, which monomials connect; following parents leads to the first form of
 * the set, which is its own parent. */
static int set_root(const int *parent, int f)
{
    while (parent[f] != f)
        f = parent[f];
    return f;
}

static int *connect_forms(fpa_simplifier *s, const fpa_expression *e)
{
    int *parent = arena_array(&s->scratch, (size_t)e->form_count, sizeof *parent);
    for (int f = 0; parent && f < e->form_count; f++)
        parent[f] = f;
    for (int i = 0; parent && i < e->polynomial.count; i++) {
        const int *factors = polynomial_factors(&e->polynomial, i);
        int first = -1;
        for (int j = 0; j < polynomial_monomial_degree(&e->polynomial, i); j++) {
            if (!is_known(s, &e->forms[factors[j]]))
                continue;
            int root = set_root(parent, factors[j]);
            if (first >= 0 && root != first)
                parent[root > first ? root : first] = root > first ? first : root;
            first = first >= 0 && first < root ? first : root;
        }
    }
    return parent;
}

/* The set of forms with this root; count 0: diagonalisation is not tried. */
static void gather_set(const fpa_simplifier *s, const fpa_expression *e, const int *parent, int root,
                       joint_set *set)
{
    int width = 0;
    *set = (joint_set){0};
    for (int f = root; f < e->form_count; f++) {
        if (set_root(parent, f) != root)
            continue;
        if (set->count == JOINT_FORMS) {
            set->count = 0;
            return;
        }
        set->forms[set->count++] = f;
        set->dense |= e->forms[f].source != FPA_INPUT;
        width += e->forms[f].width;
    }
    bool small = width <= JOINT_RANK || s->written->d <= JOINT_RANK;
    if (set->count < 2 || !set->dense || !small)
        set->count = 0;
}

static void scale_rows(joint_set *set, int i)
{
    fpa_dense *rows = &set->rows[i];
    size_t count = (size_t)rows->rows * (size_t)rows->cols;
    for (size_t c = 0; c < count; c++)
        set->trace[i] += rows->w[c] * rows->w[c];
    for (size_t c = 0; c < count; c++)
        rows->w[c] /= sqrt(set->trace[i]);
}

/* Computes W_i and R. *possible false: the numbers of a form are out of range. */
static bool factor_sum(fpa_simplifier *s, const fpa_expression *e, joint_set *set, bool *possible)
{
    size_t d = (size_t)s->written->d, used = 0;
    fpa_dense stack = {0, (int)d, NULL};
    for (int i = 0; i < set->count; i++) {
        if (!matrix_rows(s, &e->forms[set->forms[i]], &set->rows[i]))
            return false;
        *possible = set->rows[i].w != NULL;
        if (!*possible)
            return true;
        scale_rows(set, i);
        stack.rows += set->rows[i].rows;
    }
    stack.w = arena_array(&s->scratch, (size_t)stack.rows * d, sizeof *stack.w);
    set->pivots = arena_array(&s->scratch, d, sizeof *set->pivots);
    if (!stack.w || !set->pivots)
        return false;
    for (int i = 0; i < set->count; i++) {
        size_t count = (size_t)set->rows[i].rows * d;
        memcpy(stack.w + used, set->rows[i].w, count * sizeof *stack.w);
        used += count;
    }
    const double *gram = dense_gram(&s->scratch, &stack);
    return gram && gram_factor(&s->scratch, gram, (int)d, &set->factor, set->pivots);
}

/* Computes M = A'A, with W = A R solved by substitution along the pivots of R. */
static bool find_inner(fpa_simplifier *s, joint_set *set, int i)
{
    const fpa_dense *rows = &set->rows[i], *factor = &set->factor;
    size_t rank = (size_t)factor->rows, cols = (size_t)factor->cols;
    fpa_dense a = {rows->rows, factor->rows, NULL};
    a.w = arena_array(&s->scratch, (size_t)rows->rows * rank, sizeof *a.w);
    if (!a.w)
        return false;
    for (size_t r = 0; r < (size_t)rows->rows; r++)
        for (size_t k = 0; k < rank; k++) {
            size_t pivot = (size_t)set->pivots[k];
            double left = rows->w[r * cols + pivot];
            for (size_t j = 0; j < k; j++)
                left -= a.w[r * rank + j] * factor->w[j * cols + pivot];
            a.w[r * rank + k] = left / factor->w[k * cols + pivot];
        }
    set->inner[i] = dense_gram(&s->scratch, &a);
    return set->inner[i] != NULL;
}

/* The basis: eigenvectors of a fixed generic combination of the M_i, as rows. */
static bool find_basis(fpa_simplifier *s, joint_set *set)
{
    size_t rank = (size_t)set->factor.rows;
    double *sum = arena_array(&s->scratch, rank * rank, sizeof *sum);
    set->basis = (fpa_dense){(int)rank, (int)rank, arena_array(&s->scratch, rank * rank, sizeof(double))};
    if (!sum || !set->basis.w)
        return false;
    for (int i = 0; i < set->count; i++) {
        double share = 1 + (double)(hash_word(7, (uint64_t)i) >> 11) * 0x1p-53;
        for (size_t c = 0; c < rank * rank; c++)
            sum[c] += share * set->inner[i][c];
    }
    gram_eigenvectors(sum, (int)rank, set->basis.w);
    return true;
}

/* product = a b */
static bool multiply(arena *memory, const fpa_dense *a, const fpa_dense *b, fpa_dense *product)
{
    size_t rows = (size_t)a->rows, inner = (size_t)a->cols, cols = (size_t)b->cols;
    *product = (fpa_dense){a->rows, b->cols, arena_array(memory, rows * cols, sizeof(double))};
    if (!product->w)
        return false;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < inner; i++)
            for (size_t c = 0; c < cols; c++)
                product->w[r * cols + c] += a->w[r * inner + i] * b->w[i * cols + c];
    return true;
}

/* weights[r]: the diagonal D_i of V' M_i V, times the trace; negligible ones are 0. */
static bool find_weights(fpa_simplifier *s, const joint_set *set, int i, double *weights)
{
    size_t rank = (size_t)set->factor.rows;
    fpa_dense inner = {(int)rank, (int)rank, set->inner[i]}, turned;
    double largest = 0;
    if (!multiply(&s->scratch, &set->basis, &inner, &turned))
        return false;
    for (size_t r = 0; r < rank; r++) {
        weights[r] = 0;
        for (size_t c = 0; c < rank; c++)
            weights[r] += set->trace[i] * turned.w[r * rank + c] * set->basis.w[r * rank + c];
        largest = fmax(largest, weights[r]);
    }
    for (size_t r = 0; r < rank; r++)
        weights[r] = weights[r] > negligible * largest ? weights[r] : 0;
    return true;
}

/* |T' D T - G_i| / |G_i| for the weights D. */
static bool find_residual(fpa_simplifier *s, const joint_set *set, int i, const fpa_dense *t,
                          const double *weights, double *residual)
{
    size_t rows = (size_t)t->rows, cols = (size_t)t->cols;
    fpa_dense scaled = {t->rows, t->cols, arena_array(&s->scratch, rows * cols, sizeof(double))};
    if (!scaled.w)
        return false;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            scaled.w[r * cols + c] = sqrt(weights[r]) * t->w[r * cols + c];
    const double *gram = dense_gram(&s->scratch, &set->rows[i]), *again = dense_gram(&s->scratch, &scaled);
    if (!gram || !again)
        return false;
    *residual = gram_residual(gram, again, 1 / set->trace[i], cols * cols);
    return true;
}

static bool weighted_form(fpa_simplifier *s, int source, int rows, const double *weights, fpa_branch *form,
                          fpa_number *scale)
{
    fpa_branch sum = {.source = source, .width = rows};
    sum.row = arena_array(&s->scratch, (size_t)rows, sizeof *sum.row);
    sum.gram = arena_array(&s->scratch, (size_t)rows, sizeof *sum.gram);
    if (!sum.row || !sum.gram)
        return false;
    for (int r = 0; r < rows; r++) {
        sum.row[r] = r;
        sum.gram[r] = gram_number(&s->scratch, weights[r]);
    }
    return linear_normalize(&s->scratch, &sum, form, scale);
}

/* Replaces the set's forms by forms over T, if these reproduce their Grams. */
static bool replace_set(fpa_simplifier *s, joint_set *set, fpa_branch *images, fpa_number *scales,
                        fpa_joint *result)
{
    fpa_dense t;
    double largest = 0;
    size_t rank = (size_t)set->factor.rows;
    double *weights = arena_array(&s->scratch, (size_t)set->count * rank, sizeof *weights);
    if (!weights || !multiply(&s->scratch, &set->basis, &set->factor, &t))
        return false;
    for (int i = 0; i < set->count; i++) {
        double residual, *own = weights + (size_t)i * rank;
        if (!find_weights(s, set, i, own) || !find_residual(s, set, i, &t, own, &residual))
            return false;
        largest = fmax(largest, residual);
        if (largest > GRAM_TOLERANCE)
            return true;
    }
    for (int i = 0; i < set->count; i++) {
        int f = set->forms[i];
        if (!weighted_form(s, s->matrix_count, t.rows, weights + (size_t)i * rank, &images[f], &scales[f]))
            return false;
    }
    result->forms += set->count;
    result->rows += t.rows;
    result->residual = fmax(result->residual, largest);
    return matrix_add(s, &t);
}

static bool try_set(fpa_simplifier *s, const fpa_expression *e, joint_set *set, fpa_branch *images,
                    fpa_number *scales, fpa_joint *result)
{
    bool possible = true;
    if (!factor_sum(s, e, set, &possible))
        return false;
    if (!possible)
        return true;
    for (int i = 0; i < set->count; i++)
        if (!find_inner(s, set, i))
            return false;
    return find_basis(s, set) && replace_set(s, set, images, scales, result);
}

bool joint_diagonalize(fpa_simplifier *s, const fpa_expression *e, fpa_expression *joint, fpa_joint *result)
{
    size_t count = (size_t)e->form_count;
    const int *parent = connect_forms(s, e);
    fpa_branch *images = arena_array(&s->scratch, count, sizeof *images);
    fpa_number *scales = arena_array(&s->scratch, count, sizeof *scales);
    joint_set *set = arena_alloc(&s->scratch, sizeof *set);
    *result = (fpa_joint){0, 0, 0};
    if (!parent || !images || !scales || !set)
        return false;
    for (size_t f = 0; f < count; f++) {
        images[f] = e->forms[f];
        scales[f] = number_int(1);
    }
    for (int f = 0; f < e->form_count; f++) {
        if (parent[f] != f || !is_known(s, &e->forms[f]))
            continue;
        gather_set(s, e, parent, f, set);
        if (set->count && !try_set(s, e, set, images, scales, result))
            return false;
    }
    return !result->forms || expression_map(e, &s->scratch, images, scales, joint);
}
