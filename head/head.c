/* head: creation, validation, figures and names of a head. Its canonical text is text.c. */
#include "head.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lift.h"

enum {
    MAX_CHUNK = 65536,
    MAX_BLOCK = 1024,
};

static const double max_features = 2147483648.0; /* 2^31: D of a head as written */

fpa_head *head_new(void)
{
    fpa_head *head = calloc(1, sizeof *head);
    if (!head)
        return NULL;
    head->causal = true;
    head->scale = 1;
    head->eps = 1e-6;
    head->normalize = FPA_NORMALIZE_NONE;
    head->dtype = FPA_F32;
    head->state_dtype = FPA_F32;
    head->products = FPA_PRODUCTS_PLAIN;
    return head;
}

void head_free(fpa_head *head)
{
    if (!head)
        return;
    arena_free(&head->memory);
    free(head);
}

static const char *place(const fpa_head *head)
{
    if (head->origin)
        return head->origin;
    return head->name ? head->name : "";
}

/* [A-Za-z_][A-Za-z0-9_]*, at most HEAD_MAX_NAME bytes; ASCII only, whatever the locale. */
static bool is_identifier(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char digits[] = "0123456789";
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length > HEAD_MAX_NAME || strchr(digits, name[0]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!strchr(letters, name[i]) && !strchr(digits, name[i]))
            return false;
    return true;
}

static fpa_status check_name(const fpa_head *head, const char *name, const char *what, fpa_error *error)
{
    if (!name || !*name)
        return fail(error, FPA_INVALID, place(head), "%s has no name", what);
    if (!is_identifier(name))
        return fail(error, FPA_INVALID, place(head),
                    "%s is named \"%.80s\", but a name is a letter or _ and then letters, digits or _, "
                    "at most %d",
                    what, name, HEAD_MAX_NAME);
    return FPA_OK;
}

static fpa_status check_range(const fpa_head *head, const char *field, int value, int low, int high,
                              fpa_error *error)
{
    if (value >= low && value <= high)
        return FPA_OK;
    return fail(error, FPA_INVALID, place(head), "%s = %d is not allowed (%s runs %d..%d)", field, value,
                field, low, high);
}

static fpa_status check_kinds(const fpa_head *head, fpa_error *error)
{
    if ((unsigned)head->normalize >= FPA_NORMALIZE_KINDS)
        return fail(error, FPA_INVALID, place(head), "normalize = %d is no kind of normalisation",
                    (int)head->normalize);
    if ((unsigned)head->dtype >= FPA_DTYPES || (unsigned)head->state_dtype >= FPA_DTYPES)
        return fail(error, FPA_INVALID, place(head),
                    "dtype = %d, state_dtype = %d: allowed are f32, bf16 and f16", (int)head->dtype,
                    (int)head->state_dtype);
    return FPA_OK;
}

static fpa_status check_products(const fpa_head *head, fpa_error *error)
{
    if ((unsigned)head->products >= FPA_PRODUCTS_KINDS)
        return fail(error, FPA_INVALID, place(head), "products = %d: allowed are plain and tf32x3",
                    (int)head->products);
    if (head->products != FPA_PRODUCTS_PLAIN && head->dtype != FPA_F32)
        return fail(error, FPA_INVALID, place(head),
                    "products = \"%s\" needs dtype = \"f32\": %s products are exact enough as they are",
                    products_name(head->products), dtype_name(head->dtype));
    return FPA_OK;
}

/* A key that leaves the window is added to the state, where later tokens see it. The state's sum and the window's
 * exponentials share one normaliser, hence one is needed. */
static fpa_status check_window(const fpa_head *head, fpa_error *error)
{
    if (head->window == 0)
        return FPA_OK;
    if (!head->causal)
        return fail(error, FPA_INVALID, place(head),
                    "a window needs a causal head: remove window = %d, or set causal = true", head->window);
    if (head->normalize == FPA_NORMALIZE_NONE)
        return fail(
            error, FPA_INVALID, place(head),
            "a window needs a normaliser, which its exponentials share with the kernel: remove window = "
            "%d, or set normalize = \"sum\"",
            head->window);
    if (head->gate)
        return fail(error, FPA_INVALID, place(head),
                    "a head has a window or a gate, not both: remove window = %d, or the gate", head->window);
    return check_range(head, "window", head->window, 1, HEAD_MAX_WINDOW, error);
}

static fpa_status check_scalars(const fpa_head *head, int most, fpa_error *error)
{
    fpa_status status = check_range(head, "d", head->d, 1, most, error);
    if (status == FPA_OK)
        status = check_range(head, "dv", head->dv, 1, HEAD_MAX_WIDTH, error);
    if (status == FPA_OK)
        status = check_range(head, "chunk", head->chunk, 0, MAX_CHUNK, error);
    if (status == FPA_OK)
        status = check_range(head, "block", head->block, 0, MAX_BLOCK, error);
    if (status == FPA_OK)
        status = check_kinds(head, error);
    if (status == FPA_OK)
        status = check_products(head, error);
    if (status != FPA_OK)
        return status;
    if (!isfinite(head->scale))
        return fail(error, FPA_INVALID, place(head), "scale is %g, but it must be finite", head->scale);
    if (!isfinite(head->eps) || head->eps < 0)
        return fail(error, FPA_INVALID, place(head), "eps is %g, but it must be finite and not negative",
                    head->eps);
    if (head->gate && !head->causal)
        return fail(error, FPA_INVALID, place(head),
                    "a gate needs a causal head: remove the gate, or set causal = true");
    return check_window(head, error);
}

static fpa_status check_constant(const fpa_head *head, int index, fpa_error *error)
{
    const fpa_matrix *matrix = &head->matrices[index];
    if (!matrix->data)
        return fail(error, FPA_INVALID, place(head), "matrix %d is constant but has no values", index + 1);
    for (int r = 0; r < matrix->rows * (matrix->heads ? matrix->heads : 1); r++)
        for (int c = 0; c < matrix->cols; c++)
            if (!isfinite(matrix->data[(size_t)r * matrix->cols + c]))
                return fail(error, FPA_INVALID, place(head),
                            "row %d, column %d of matrix %d is %g, but weights must be finite", r + 1, c + 1,
                            index + 1, matrix->data[(size_t)r * matrix->cols + c]);
    return FPA_OK;
}

static fpa_status check_trainable(const fpa_head *head, int index, fpa_error *error)
{
    const fpa_matrix *matrix = &head->matrices[index];
    fpa_status status = check_name(head, matrix->name, "a trainable matrix", error);
    if (status != FPA_OK)
        return status;
    for (int other = 0; other < index; other++)
        if (head->matrices[other].name && strcmp(head->matrices[other].name, matrix->name) == 0)
            return fail(error, FPA_INVALID, place(head),
                        "two trainable matrices are named \"%s\": give each its own name, or use one twice",
                        matrix->name);
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL && matrix->rows != matrix->cols)
        return fail(error, FPA_INVALID, place(head), "the diagonal \"%s\" has %d rows, but d = %d",
                    matrix->name, matrix->rows, matrix->cols);
    return FPA_OK;
}

static fpa_status check_matrix(const fpa_head *head, int index, fpa_error *error)
{
    const fpa_matrix *matrix = &head->matrices[index];
    if (!head->lift && (matrix->cols != head->d || matrix->heads))
        return fail(error, FPA_INVALID, place(head), "matrix %d has %d columns, but d = %d", index + 1,
                    matrix->cols, head->d);
    if (matrix->rows < 1 || matrix->rows > HEAD_MAX_ROWS)
        return fail(error, FPA_INVALID, place(head), "matrix %d has %d rows (allowed are 1..%d)", index + 1,
                    matrix->rows, HEAD_MAX_ROWS);
    switch (matrix->kind) {
    case FPA_MATRIX_CONSTANT:
        return check_constant(head, index, error);
    case FPA_MATRIX_TRAINABLE:
    case FPA_MATRIX_TRAINABLE_DIAGONAL:
        return check_trainable(head, index, error);
    }
    return fail(error, FPA_INVALID, place(head), "matrix %d is of no known kind", index + 1);
}

/* The number of rows that a branch can select from: those of the identity, or of its matrix. */
static int source_rows(const fpa_head *head, const fpa_branch *branch)
{
    return branch->source == FPA_INPUT ? head->d : head->matrices[branch->source].rows;
}

static fpa_status check_rows(const fpa_head *head, const fpa_branch *branch, int l, int t, fpa_error *error)
{
    unsigned char seen[HEAD_MAX_ROWS / 8];
    int rows = source_rows(head, branch);
    const char *limit = branch->source == FPA_INPUT ? "d" : "the matrix's rows";
    memset(seen, 0, (size_t)rows / 8 + (rows % 8 != 0));
    for (int w = 0; w < branch->width; w++) {
        int row = branch->row[w];
        if (row < 0 || row >= rows)
            return fail(error, FPA_INVALID, place(head),
                        "branch %d of term %d selects index %lld, but %s = %d (indices run 1..%d)", l, t,
                        (long long)row + 1, limit, rows, rows);
        if (seen[row / 8] & (1u << row % 8))
            return fail(error, FPA_INVALID, place(head),
                        "branch %d of term %d selects index %d twice, but each index may occur once", l, t,
                        row + 1);
        seen[row / 8] |= (unsigned char)(1u << row % 8);
    }
    return FPA_OK;
}

/* Whether a number is outside of the range of doubles; then `text` is the number for the message. */
static bool beyond_doubles(fpa_number number, char text[NUMBER_TEXT])
{
    const bool beyond = number.wide && (number.value == 0 || isinf(number.value));
    if (beyond)
        number_print(text, number);
    return beyond;
}

static fpa_status check_gram(const fpa_head *head, const fpa_branch *branch, int l, int t, fpa_error *error)
{
    if (!branch->gram)
        return FPA_OK;
    for (int w = 0; w < branch->width; w++) {
        double value = branch->gram[w].value;
        char text[NUMBER_TEXT];
        if (beyond_doubles(branch->gram[w], text))
            return fail(
                error, FPA_INVALID, place(head),
                "the kernel weight of row %d of branch %d of term %d is %s, out of the range of doubles",
                w + 1, l, t, text);
        if (!isfinite(value) || value < 0)
            return fail(
                error, FPA_INVALID, place(head),
                "the kernel weight of row %d of branch %d of term %d is %g, but it must be finite and "
                "not negative",
                w + 1, l, t, value);
    }
    return FPA_OK;
}

static fpa_status check_branch(const fpa_head *head, const fpa_branch *branch, int l, int t, fpa_error *error)
{
    fpa_status status;
    if ((unsigned)branch->kind >= FPA_BRANCH_KINDS)
        return fail(error, FPA_INVALID, place(head), "branch %d of term %d is of no known kind", l, t);
    if (branch->source < FPA_INPUT || branch->source >= head->matrix_count)
        return fail(error, FPA_INVALID, place(head),
                    "branch %d of term %d takes rows of matrix %lld, but the head has %d matrices", l, t,
                    (long long)branch->source + 1, head->matrix_count);
    if (head->lift && branch->source != FPA_INPUT)
        return fail(error, FPA_INVALID, place(head),
                    "branch %d of term %d takes rows of a matrix, but in a head with a lift branches can "
                    "take its coordinates only",
                    l, t);
    if (branch->width < 1 || !branch->row)
        return fail(error, FPA_INVALID, place(head),
                    "branch %d of term %d has width %d, but a branch has at least one row", l, t,
                    branch->width);
    status = check_rows(head, branch, l, t, error);
    return status == FPA_OK ? check_gram(head, branch, l, t, error) : status;
}

static fpa_status check_term(const fpa_head *head, int index, int64_t *listed, fpa_error *error)
{
    const fpa_term *term = &head->terms[index];
    fpa_status status = FPA_OK;
    char text[NUMBER_TEXT];
    if (beyond_doubles(term->weight, text))
        return fail(error, FPA_INVALID, place(head),
                    "the weight of term %d is %s, out of the range of doubles", index + 1, text);
    if (!isfinite(term->weight.value))
        return fail(error, FPA_INVALID, place(head), "the weight of term %d is %g, but it must be finite",
                    index + 1, term->weight.value);
    if (term->branch_count < 0 || term->branch_count > HEAD_MAX_BRANCHES)
        return fail(error, FPA_INVALID, place(head), "term %d has %d branches (allowed are 0..%d)", index + 1,
                    term->branch_count, HEAD_MAX_BRANCHES);
    for (int l = 0; l < term->branch_count && status == FPA_OK; l++) {
        status = check_branch(head, &term->branches[l], l + 1, index + 1, error);
        *listed += term->branches[l].width;
    }
    return status;
}

static bool row_is_zero(const fpa_head *head, const fpa_branch *branch, int w)
{
    const fpa_matrix *matrix;
    if (branch->gram && branch->gram[w].value == 0)
        return true;
    if (branch->source == FPA_INPUT)
        return false;
    matrix = &head->matrices[branch->source];
    if (matrix->kind != FPA_MATRIX_CONSTANT)
        return false;
    for (int c = 0; c < matrix->cols; c++)
        if (matrix->data[(size_t)branch->row[w] * matrix->cols + c] != 0)
            return false;
    return true;
}

static bool term_is_zero(const fpa_head *head, const fpa_term *term)
{
    if (term->weight.value == 0 || (head->scale == 0 && term->branch_count && !head->lift))
        return true; /* coordinates need not be 0 where q is 0 */
    for (int l = 0; l < term->branch_count; l++) {
        bool zero = true;
        for (int w = 0; w < term->branches[l].width && zero; w++)
            zero = row_is_zero(head, &term->branches[l], w);
        if (zero)
            return true;
    }
    return false;
}

static fpa_status check_kernel(const fpa_head *head, fpa_error *error)
{
    double features = head_features(head);
    int zero = 0;
    if (features > max_features)
        return fail(error, FPA_INVALID, place(head),
                    "the head has %.0f features as written, more than %.0f: use fewer or narrower "
                    "branches, or for a power spow {} or tspow {}, which are written with fewer",
                    features, max_features);
    while (zero < head->term_count && term_is_zero(head, &head->terms[zero]))
        zero++;
    if (zero == head->term_count)
        return fail(
            error, FPA_INVALID, place(head),
            "the kernel is zero: every term has weight 0, a branch of zeros, or branches and the scale 0");
    return FPA_OK;
}

static fpa_status check_terms(const fpa_head *head, fpa_error *error)
{
    int64_t listed = 0;
    fpa_status status = FPA_OK;
    if (head->term_count < 1 || head->term_count > HEAD_MAX_TERMS || !head->terms)
        return fail(error, FPA_INVALID, place(head), "the head has %d terms (allowed are 1..%d)",
                    head->term_count, HEAD_MAX_TERMS);
    for (int t = 0; t < head->term_count && status == FPA_OK; t++) {
        status = check_term(head, t, &listed, error);
        if (status == FPA_OK && listed > HEAD_MAX_LISTED)
            status = fail(error, FPA_INVALID, place(head),
                          "the branches of the first %d terms list %lld rows, more than %d", t + 1,
                          (long long)listed, HEAD_MAX_LISTED);
    }
    return status == FPA_OK ? check_kernel(head, error) : status;
}

/* most: the largest d allowed. */
static fpa_status validate(const fpa_head *head, int most, fpa_error *error)
{
    fpa_status status = check_name(head, head->name, "the head", error);
    if (status == FPA_OK)
        status = check_scalars(head, most, error);
    if (status == FPA_OK && (head->matrix_count < 0 || head->matrix_count > HEAD_MAX_MATRICES))
        status = fail(error, FPA_INVALID, place(head), "the head has %d matrices (allowed are 0..%d)",
                      head->matrix_count, HEAD_MAX_MATRICES);
    for (int m = 0; status == FPA_OK && m < head->matrix_count; m++)
        status = check_matrix(head, m, error);
    if (status == FPA_OK && head->lift)
        status = lift_validate(head, error);
    return status == FPA_OK ? check_terms(head, error) : status;
}

fpa_status head_validate(const fpa_head *head, fpa_error *error)
{
    return validate(head, head->lift ? HEAD_MAX_COORDINATES : HEAD_MAX_WIDTH, error);
}

fpa_status head_validate_polynomial(const fpa_head *head, fpa_error *error)
{
    return validate(head, HEAD_MAX_COORDINATES, error);
}

int head_width(const fpa_head *head)
{
    return head->lift ? head->lift->width : head->d;
}

int head_run_time_matrices(const fpa_head *head)
{
    int count = 0;
    for (int m = 0; m < head->matrix_count; m++)
        count += head->matrices[m].kind != FPA_MATRIX_CONSTANT;
    return count;
}

int head_degree(const fpa_head *head)
{
    int degree = 0;
    for (int t = 0; t < head->term_count; t++)
        if (head->terms[t].branch_count > degree)
            degree = head->terms[t].branch_count;
    return degree;
}

double term_features(const fpa_term *term)
{
    double features = 1;
    for (int l = 0; l < term->branch_count; l++)
        features *= term->branches[l].width;
    return features;
}

double head_features(const fpa_head *head)
{
    double sum = 0;
    for (int t = 0; t < head->term_count; t++)
        sum += term_features(&head->terms[t]);
    return sum;
}

static bool degree_occurs(const fpa_head *head, int degree)
{
    for (int t = 0; t < head->term_count; t++)
        if (head->terms[t].branch_count == degree)
            return true;
    return false;
}

/* Each partial product is a binomial coefficient, so that divisions are exact. */
double monomial_count(int d, int n)
{
    double count = 1;
    for (int i = 1; i <= n; i++)
        count = count * (d + i - 1) / i;
    return count;
}

double head_features_bound(const fpa_head *head)
{
    double features = 0;
    for (int n = 0; n <= head_degree(head); n++)
        if (degree_occurs(head, n))
            features += monomial_count(head->d, n);
    return features;
}

double head_features_tpow(const fpa_head *head)
{
    double features = 0;
    for (int n = 0; n <= head_degree(head); n++)
        if (degree_occurs(head, n))
            features += pow(head->d, n);
    return features;
}

const char *normalize_name(fpa_normalize kind)
{
    static const char *const names[FPA_NORMALIZE_KINDS] = {"none", "sum", "max", "one_plus_sum"};

    return (unsigned)kind < FPA_NORMALIZE_KINDS ? names[kind] : "?";
}

const char *products_name(fpa_products products)
{
    static const char *const names[FPA_PRODUCTS_KINDS] = {"plain", "tf32x3"};

    return (unsigned)products < FPA_PRODUCTS_KINDS ? names[products] : "?";
}

const char *branch_kind_name(fpa_branch_kind kind)
{
    static const char *const names[FPA_BRANCH_KINDS] = {
        "identity", "select", "diagonal", "dense", "trainable", "trainable_diagonal", "coordinates"};

    return (unsigned)kind < FPA_BRANCH_KINDS ? names[kind] : "?";
}
