#include "lift_features.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Entry (r, c) of a matrix as this token's key/value head has it. */
static double entry(const fpa_head *head, const lift_token *token, int m, int r, int c)
{
    const fpa_matrix *matrix = &head->matrices[m];
    const double *data = matrix->kind == FPA_MATRIX_CONSTANT ? matrix->data : token->weights[m];
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
        return r == c ? data[r] : 0;
    if (matrix->heads)
        data += (size_t)token->kv_head * (size_t)matrix->rows * (size_t)matrix->cols;
    return data[r * matrix->cols + c];
}

static double scaled(const fpa_head *head, const lift_token *token, int i)
{
    return (token->side == FPA_QUERY ? head->scale : 1) * token->x[i];
}

static double project(const fpa_head *head, const lift_token *token, int m, int r)
{
    const int width = head_width(head);
    double sum = head->matrices[m].cols > width ? entry(head, token, m, r, width) : 0;
    for (int i = 0; i < width; i++)
        sum += entry(head, token, m, r, i) * scaled(head, token, i);
    return sum;
}

/* The product of a part's factors, row r. */
static void multiply(const fpa_head *head, const lift_token *token, const fpa_lift_part *part, int r,
                     double *re, double *im)
{
    *re = 1;
    *im = 0;
    for (int f = 0; f < part->factor_count; f++) {
        const fpa_lift_factor *factor = &part->factors[f];
        const double a = factor->source == FPA_INPUT ? scaled(head, token, factor->row[r])
                                                     : project(head, token, factor->source, r);
        const double b = part->is_complex ? project(head, token, factor->imaginary, r) : 0;
        const double next = *re * a - *im * b;
        *im = *re * b + *im * a;
        *re = next;
    }
}

static double square_length(const fpa_head *head, const lift_token *token)
{
    double sum = 0;
    for (int i = 0; i < head_width(head); i++)
        sum += scaled(head, token, i) * scaled(head, token, i);
    return sum;
}

static double turn(const fpa_head *head, const lift_token *token, const fpa_lift_part *part, int r)
{
    const bool query = token->side == FPA_QUERY;
    double t = query && part->phase != FPA_NO_MATRIX ? entry(head, token, part->phase, r, 0) : 0;
    for (int n = 0; n < head->lift->positions; n++)
        t += entry(head, token, part->angle, r, n) * token->position[n];
    return t;
}

static void part_features(const fpa_head *head, const lift_token *token, const fpa_lift_part *part,
                          double *out)
{
    for (int r = 0; r < part->rows; r++) {
        double re, im, gain = part->gain[token->side];
        multiply(head, token, part, r, &re, &im);
        if (part->is_complex) {
            out[r] = gain * re;
            out[part->rows + r] = gain * im;
            continue;
        }
        out[r] = gain * lift_map(part->map[token->side],
                                 part->inner * re - part->square * square_length(head, token) - part->shift);
        if (part->angle == FPA_NO_MATRIX)
            continue;
        const double t = turn(head, token, part, r);
        if (token->side == FPA_QUERY && part->amplitude != FPA_NO_MATRIX)
            out[r] *= entry(head, token, part->amplitude, r, 0);
        out[part->rows + r] = out[r] * sin(t);
        out[r] *= cos(t);
    }
}

void lift_features(const fpa_head *head, const lift_token *token, double *coordinates)
{
    if (!head->lift)
        for (int i = 0; i < head->d; i++)
            coordinates[i] = scaled(head, token, i);
    for (int p = 0; head->lift && p < head->lift->part_count; p++) {
        part_features(head, token, &head->lift->parts[p], coordinates);
        coordinates += lift_coordinates(&head->lift->parts[p]);
    }
}

static double row_of(const fpa_head *head, const fpa_branch *branch, int w, const double *coordinates)
{
    const fpa_matrix *matrix = branch->source == FPA_INPUT ? NULL : &head->matrices[branch->source];
    double sum = matrix ? 0 : coordinates[branch->row[w]];
    for (int i = 0; matrix && i < head->d; i++)
        sum += matrix->data[branch->row[w] * head->d + i] * coordinates[i];
    return sum;
}

static double product_of(const fpa_head *head, const fpa_term *term, const double *q, const double *k)
{
    double product = term->weight.value;
    for (int l = 0; l < term->branch_count; l++) {
        const fpa_branch *branch = &term->branches[l];
        double dot = 0;
        for (int w = 0; w < branch->width; w++)
            dot += (branch->gram ? branch->gram[w].value : 1) * row_of(head, branch, w, q) *
                   row_of(head, branch, w, k);
        product *= dot;
    }
    return product;
}

double lift_kernel(const fpa_head *head, const lift_token *query, const lift_token *key)
{
    double *q = calloc((size_t)head->d, sizeof *q), *k = calloc((size_t)head->d, sizeof *k), sum = 0;
    assert(q && k);
    lift_features(head, query, q);
    lift_features(head, key, k);
    for (int t = 0; t < head->term_count; t++)
        sum += product_of(head, &head->terms[t], q, k);
    free(q);
    free(k);
    return sum;
}
