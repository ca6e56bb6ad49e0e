/* Constant matrices. The kernel depends on W'W only, so a form over rows of a constant matrix may use other rows
 * with the same Gram: rows of the input (if the Gram is diagonal), fewer rows (if the rank is lower), or the rows
 * of another form (if the Grams are equal up to scale). Each case checks the Gram of its result. */
#include <math.h>
#include <string.h>

#include "passes.h"

enum { PROBES = 2, MATRIX_NOTES = 8 };

typedef struct matrix_form {
    fpa_branch form;  /* the form that replaces the original one */
    fpa_number scale; /* factor of the replacement */
    /* a form over a constant matrix: its rows times the roots of the weights; else w is NULL */
    fpa_dense dense;
    double trace;         /* of the Gram */
    double probe[PROBES]; /* |W x|^2 / trace at fixed x: equal for Grams equal up to scale */
    double *gram;         /* computed when it is needed; NULL: not yet */
} matrix_form;

static bool matrix_note(fpa_simplifier *s, const char *what, int source, int from, int to, double residual)
{
    if (++s->matrix_notes > MATRIX_NOTES)
        return true;
    return simplify_note(s, "matrix %d: %d rows %s: %d (residual of the Gram matrix %.1e)", source + 1, from,
                         what, to, residual);
}

static const double *row_data(const fpa_simplifier *s, const fpa_branch *form, int w)
{
    const fpa_matrix *matrix = &s->matrices[form->source];
    return matrix->data + (size_t)form->row[w] * (size_t)matrix->cols;
}

static int nonzero_count(const double *row, int cols)
{
    int count = 0;
    for (int c = 0; c < cols; c++)
        count += row[c] != 0;
    return count;
}

static bool drop_zero_rows(fpa_simplifier *s, fpa_branch *form)
{
    fpa_branch kept = *form;
    kept.width = 0;
    kept.row = arena_array(&s->scratch, (size_t)form->width, sizeof *kept.row);
    kept.gram = form->gram ? arena_array(&s->scratch, (size_t)form->width, sizeof *kept.gram) : NULL;
    if (!kept.row || (form->gram && !kept.gram))
        return false;
    for (int w = 0; w < form->width; w++) {
        if (!nonzero_count(row_data(s, form, w), s->written->d))
            continue;
        if (kept.gram)
            kept.gram[kept.width] = form->gram[w];
        kept.row[kept.width++] = form->row[w];
    }
    *form = kept;
    return true;
}

/* The form sum over c of gram[c] s_c of the input's columns; gram has d entries, zeros included. */
static bool input_form(fpa_simplifier *s, fpa_number *gram, matrix_form *result)
{
    int d = s->written->d;
    fpa_branch branch = {.source = FPA_INPUT, .width = d, .gram = gram};
    branch.row = arena_array(&s->scratch, (size_t)d, sizeof *branch.row);
    if (!branch.row)
        return false;
    for (int c = 0; c < d; c++)
        branch.row[c] = c;
    return linear_normalize(&s->scratch, &branch, &result->form, &result->scale);
}

static fpa_number *new_grams(fpa_simplifier *s)
{
    fpa_number *gram = arena_array(&s->scratch, (size_t)s->written->d, sizeof *gram);
    for (int c = 0; gram && c < s->written->d; c++)
        gram[c] = number_int(0);
    return gram;
}

/* x^2 times the weight of row w, where x is its entry in column c. Entries that are roots were rounded when the
 * matrix was made: if the square does not fit 64 bits, it is replaced by the simplest rational within the rounding
 * error, if there is one. */
static fpa_number entry_square(fpa_simplifier *s, const fpa_branch *form, int w, int c, double *residual)
{
    arena *memory = &s->scratch;
    fpa_number entry = number_double(memory, row_data(s, form, w)[c]), ratio;
    fpa_number square = number_mul(memory, number_mul(memory, entry, entry), linear_gram(form, w));
    if (square.den || !gram_ratio(square.value, &ratio))
        return square;
    *residual = fmax(*residual, fabs(number_sub(memory, square, ratio).value) / square.value);
    return ratio;
}

/* A matrix whose rows have a single entry each: the form is the sum of x^2 s_c over entries x in columns c. */
static bool reduce_single_entries(fpa_simplifier *s, matrix_form *f, bool *done)
{
    fpa_branch form = f->form;
    double residual = 0;
    int d = s->written->d;
    for (int w = 0; w < form.width; w++)
        if (nonzero_count(row_data(s, &form, w), d) != 1)
            return true;
    fpa_number *gram = new_grams(s);
    if (!gram)
        return false;
    for (int w = 0; w < form.width; w++)
        for (int c = 0; c < d; c++)
            if (row_data(s, &form, w)[c] != 0)
                gram[c] = number_add(&s->scratch, gram[c], entry_square(s, &form, w, c, &residual));
    *done = true;
    return input_form(s, gram, f) &&
           matrix_note(s, "have one entry each, so that coordinates of the input replace them", form.source,
                       form.width, f->form.width, residual);
}

bool matrix_rows(fpa_simplifier *s, const fpa_branch *form, fpa_dense *dense)
{
    const double least = 1e-100, most = 1e100;
    size_t d = (size_t)s->written->d;
    bool in_range = true;
    *dense =
        (fpa_dense){form->width, (int)d, arena_array(&s->scratch, (size_t)form->width * d, sizeof(double))};
    if (!dense->w)
        return false;
    for (int w = 0; w < form->width; w++) {
        double root = sqrt(linear_gram(form, w).value);
        for (size_t c = 0; c < d; c++) {
            double entry = form->source == FPA_INPUT ? c == (size_t)form->row[w] : row_data(s, form, w)[c];
            dense->w[(size_t)w * d + c] = entry *= root;
            in_range &= entry == 0 || (fabs(entry) > least && fabs(entry) < most);
        }
    }
    if (!in_range)
        dense->w = NULL;
    return true;
}

static int used_columns(const fpa_dense *dense)
{
    int used = 0;
    for (int c = 0; c < dense->cols; c++)
        for (int r = 0; r < dense->rows; r++)
            if (dense->w[(size_t)r * (size_t)dense->cols + (size_t)c] != 0) {
                used++;
                break;
            }
    return used;
}

static bool gram_once(fpa_simplifier *s, matrix_form *f)
{
    if (!f->gram)
        f->gram = dense_gram(&s->scratch, &f->dense);
    return f->gram != NULL;
}

/* Orthogonal columns, such as those of an orthogonal matrix: W'W is diagonal. */
static bool reduce_diagonal(fpa_simplifier *s, matrix_form *f, bool *done)
{
    int d = s->written->d, source = f->form.source, width = f->form.width;
    if (used_columns(&f->dense) > f->dense.rows || !columns_orthogonal(&f->dense))
        return true; /* there cannot be more orthogonal columns than rows */
    if (!gram_once(s, f))
        return false;
    double residual = gram_off_diagonal(f->gram, d);
    if (residual > GRAM_TOLERANCE)
        return true;
    fpa_number *gram = new_grams(s);
    if (!gram)
        return false;
    for (int c = 0; c < d; c++)
        gram[c] = gram_number(&s->scratch, f->gram[(size_t)c * (size_t)d + (size_t)c]);
    *done = true;
    return input_form(s, gram, f) &&
           matrix_note(s, "have a diagonal Gram matrix, so that coordinates of the input replace them",
                       source, width, f->form.width, residual);
}

/* WW' of the rows normalised to length 1, so that small rows count like others. */
static double *unit_products(fpa_simplifier *s, const fpa_dense *dense)
{
    const size_t rows = (size_t)dense->rows;
    double *products = dense_products(&s->scratch, dense),
           *length = arena_array(&s->scratch, rows, sizeof *length);
    if (!products || !length)
        return NULL;
    for (size_t i = 0; i < rows; i++)
        length[i] = sqrt(products[i * rows + i]);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < rows; j++)
            products[i * rows + j] /= length[i] * length[j];
    return products;
}

/* *independent: a quick test has shown that the rows are linearly independent, so that the rank cannot be reduced. */
static bool rows_independent(fpa_simplifier *s, const fpa_dense *dense, bool *independent)
{
    *independent = false;
    if (dense->rows > dense->cols)
        return true;
    const double *products = unit_products(s, dense);
    return products && products_regular(&s->scratch, products, dense->rows, independent);
}

bool matrix_add(fpa_simplifier *s, const fpa_dense *dense)
{
    if (s->matrix_count == s->matrix_capacity) {
        int capacity = 2 * s->matrix_capacity + 4;
        fpa_matrix *matrices = arena_array(&s->scratch, (size_t)capacity, sizeof *matrices);
        if (!matrices)
            return false;
        if (s->matrix_count)
            memcpy(matrices, s->matrices, (size_t)s->matrix_count * sizeof *matrices);
        s->matrices = matrices;
        s->matrix_capacity = capacity;
    }
    s->matrices[s->matrix_count++] =
        (fpa_matrix){.kind = FPA_MATRIX_CONSTANT, .rows = dense->rows, .cols = dense->cols, .data = dense->w};
    return true;
}

static bool all_rows(fpa_simplifier *s, int source, int rows, fpa_branch *form)
{
    *form = (fpa_branch){.source = source, .width = rows};
    form->row = arena_array(&s->scratch, (size_t)rows, sizeof *form->row);
    for (int r = 0; form->row && r < rows; r++)
        form->row[r] = r;
    return form->row != NULL;
}

/* Words for a note; a projector has W'W = W. */
static const char *rank_words(const matrix_form *f)
{
    size_t count = (size_t)f->dense.cols * (size_t)f->dense.cols;
    bool projector =
        f->dense.rows == f->dense.cols && gram_residual(f->gram, f->dense.w, 1, count) <= GRAM_TOLERANCE;
    return projector ? "form a projector, so that as many orthonormal rows as its rank replace them"
                     : "have a lower rank, so that as many rows as that replace them";
}

/* Replaces a matrix W whose rank is lower than its number of rows by R with R'R = W'W. */
static bool reduce_rank(fpa_simplifier *s, matrix_form *f)
{
    int source = f->form.source, width = f->form.width;
    bool independent;
    fpa_dense factor;
    if (!rows_independent(s, &f->dense, &independent))
        return false;
    if (independent)
        return true;
    if (!gram_once(s, f) || !gram_factor(&s->scratch, f->gram, f->dense.cols, &factor, NULL))
        return false;
    const double *again = dense_gram(&s->scratch, &factor);
    if (!again)
        return false;
    double residual = gram_residual(f->gram, again, 1, (size_t)factor.cols * (size_t)factor.cols);
    if (factor.rows >= width || residual > GRAM_TOLERANCE ||
        gram_scaled_residual(f->gram, again, factor.cols) > SCALED_TOLERANCE)
        return true;
    const char *words = rank_words(f);
    f->dense = factor;
    return all_rows(s, s->matrix_count, factor.rows, &f->form) && matrix_add(s, &factor) &&
           matrix_note(s, words, source, width, factor.rows, residual);
}

/* Computes the trace, and |W x|^2 relative to it at fixed points x. */
static void measure(matrix_form *f)
{
    size_t cols = (size_t)f->dense.cols;
    for (int r = 0; r < f->dense.rows; r++) {
        double dot[PROBES] = {0};
        for (size_t c = 0; c < cols; c++) {
            double entry = f->dense.w[(size_t)r * cols + c];
            f->trace += entry * entry;
            for (int p = 0; p < PROBES; p++)
                dot[p] += entry * ((double)(hash_word((uint64_t)p, c) >> 11) * 0x1p-53 - 0.5);
        }
        for (int p = 0; p < PROBES; p++)
            f->probe[p] += dot[p] * dot[p];
    }
    for (int p = 0; p < PROBES; p++)
        f->probe[p] /= f->trace;
}

static bool reduce_form(fpa_simplifier *s, const fpa_branch *form, matrix_form *f)
{
    bool done = false;
    *f = (matrix_form){.form = *form, .scale = number_int(1)};
    if (form->source == FPA_INPUT || s->matrices[form->source].kind != FPA_MATRIX_CONSTANT)
        return true;
    if (!drop_zero_rows(s, &f->form))
        return false;
    if (!f->form.width)
        return true;
    if (!reduce_single_entries(s, f, &done) || (!done && !matrix_rows(s, &f->form, &f->dense)))
        return false;
    if (done || !f->dense.w)
        return true;
    if (!reduce_diagonal(s, f, &done) || (!done && !reduce_rank(s, f)))
        return false;
    if (done)
        f->dense.w = NULL;
    else
        measure(f);
    return true;
}

static bool probes_agree(const matrix_form *a, const matrix_form *b)
{
    for (int p = 0; p < PROBES; p++)
        if (fabs(a->probe[p] - b->probe[p]) > 1e-9)
            return false;
    return a->dense.rows == b->dense.rows;
}

/* Replaces f by a multiple of the earlier form g, if the Gram of f is that multiple of g's. */
static bool align_pair(fpa_simplifier *s, matrix_form *f, matrix_form *g, bool *done)
{
    size_t count = (size_t)f->dense.cols * (size_t)f->dense.cols;
    if (!probes_agree(f, g))
        return true;
    if (!gram_once(s, f) || !gram_once(s, g))
        return false;
    fpa_number scale = gram_number(&s->scratch, f->trace / g->trace);
    double residual = gram_residual(f->gram, g->gram, scale.value, count);
    if (residual > GRAM_TOLERANCE)
        return true;
    int source = f->form.source, width = f->form.width;
    *done = true;
    f->form = g->form;
    f->scale = scale;
    f->dense.w = NULL;
    if (++s->matrix_notes > MATRIX_NOTES)
        return true;
    char text[NUMBER_TEXT];
    number_print(text, scale);
    return simplify_note(s,
                         "matrix %d: %d rows have %s x the Gram matrix of matrix %d (residual %.1e), so that "
                         "its rows replace them",
                         source + 1, width, text, g->form.source + 1, residual);
}

static bool align_forms(fpa_simplifier *s, matrix_form *forms, int count)
{
    for (int i = 1; i < count; i++) {
        bool done = !forms[i].dense.w;
        for (int j = 0; j < i && !done; j++)
            if (forms[j].dense.w && !align_pair(s, &forms[i], &forms[j], &done))
                return false;
    }
    return true;
}

bool matrix_reduce(fpa_simplifier *s, const fpa_expression *e, fpa_expression *reduced)
{
    size_t count = (size_t)e->form_count;
    matrix_form *forms = arena_array(&s->scratch, count, sizeof *forms);
    fpa_branch *images = arena_array(&s->scratch, count, sizeof *images);
    fpa_number *scales = arena_array(&s->scratch, count, sizeof *scales);
    if (!forms || !images || !scales)
        return false;
    for (size_t f = 0; f < count; f++)
        if (!reduce_form(s, &e->forms[f], &forms[f]))
            return false;
    if (!align_forms(s, forms, e->form_count))
        return false;
    for (size_t f = 0; f < count; f++) {
        images[f] = forms[f].form;
        scales[f] = forms[f].scale;
    }
    return expression_map(e, &s->scratch, images, scales, reduced);
}
