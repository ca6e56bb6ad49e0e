/* The part of a plan that all back ends share: the rows of the packed input, the features as pieces, the dots of
 * the score. */
#include "features.h"

#include <math.h>
#include <stdlib.h>

enum {
    MAX_PIECES = 1 << 19,
    MAX_ROWS = 60000,  /* tables store the index of a packed row in 16 bits */
    RANGE_OF_F16 = 12, /* weights from 2^-12 to 2^12 */
};

bool f16_has(double weight)
{
    const double most = ldexp(1, RANGE_OF_F16);
    return fabs(weight) >= 1 / most && fabs(weight) <= most;
}

/* ---- rows ---- */

static int matrix_first_row(const fpa_plan *plan, int matrix)
{
    for (int i = 0; i < plan->projection_count; i++)
        if (plan->projections[i].matrix == matrix)
            return plan->projections[i].first_row;
    return -1;
}

/* The packed row of a row with a weight, which is added at its first use. */
static int weighted_row(fpa_plan *plan, int from, double gram)
{
    for (int i = 0; i < plan->weighted_count; i++)
        if (plan->weighted[i].from == from && plan->weighted[i].gram == gram)
            return plan->weighted[i].row;
    plan->weighted[plan->weighted_count++] = (fpa_weighted_row){plan->row_count, from, gram};
    return plan->row_count++;
}

/* The packed row of row w of a branch. */
static int branch_row(fpa_plan *plan, const fpa_branch *branch, int w)
{
    int row = branch->row[w];
    if (branch->source != FPA_INPUT)
        row += matrix_first_row(plan, branch->source);
    if (branch->gram && !number_is_one(branch->gram[w]))
        row = weighted_row(plan, row, branch->gram[w].value);
    return row;
}

static void use_source(fpa_plan *plan, const fpa_branch *branch)
{
    if (branch->source == FPA_INPUT || matrix_first_row(plan, branch->source) >= 0)
        return;
    plan->projections[plan->projection_count++] = (fpa_projection){branch->source, plan->row_count};
    plan->row_count += plan->head->matrices[branch->source].rows;
}

/* Call visit for every branch of the features, then of the score. */
static void each_branch(fpa_plan *plan, void (*visit)(fpa_plan *, const fpa_branch *))
{
    for (int t = 0; t < plan->head->term_count; t++)
        for (int b = 0; b < plan->head->terms[t].branch_count; b++)
            visit(plan, &plan->head->terms[t].branches[b]);
    for (int i = 0; i < plan->score->dot_count; i++)
        visit(plan, &plan->score->dots[i]);
}

static void count_weighted(fpa_plan *plan, const fpa_branch *branch)
{
    for (int w = 0; branch->gram && w < branch->width; w++)
        plan->weighted_count += !number_is_one(branch->gram[w]);
}

static bool same_branch(const fpa_branch *a, const fpa_branch *b)
{
    return a->source == b->source && a->width == b->width && a->row == b->row && a->gram == b->gram;
}

static void plan_rows(fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    plan->row_count = head->d;
    plan->ones_row = plan->row_count++;
    each_branch(plan, count_weighted);
    plan->weighted = arena_array(&plan->memory, plan->weighted_count, sizeof *plan->weighted);
    plan->projections = arena_array(&plan->memory, head->matrix_count, sizeof *plan->projections);
    plan->weighted_count = 0;
    each_branch(plan, use_source);
}

static int *branch_rows(fpa_plan *plan, const fpa_branch *branch)
{
    int *rows = arena_array(&plan->memory, branch->width, sizeof *rows);
    for (int w = 0; w < branch->width; w++)
        rows[w] = branch_row(plan, branch, w);
    return rows;
}

/* ---- pieces ---- */

static int run_length(const int *rows, int count)
{
    int length = 1;
    while (length < count && rows[length] == rows[0] + length)
        length++;
    return length;
}

/* The list of pieces, while it is made. */
typedef struct piece_list {
    fpa_plan *plan;
    fpa_piece_limit limit;
    int capacity; /* pieces for which plan->pieces has room */
} piece_list;

static fpa_status piece_add(piece_list *list, fpa_piece piece, fpa_error *error)
{
    fpa_plan *plan = list->plan;
    if (plan->piece_count == MAX_PIECES)
        return fail(error, FPA_UNSUPPORTED, plan->head->name,
                    "the kernel would need more than %d pieces of code for its %.0f features; use larger "
                    "blocks or fewer terms",
                    MAX_PIECES, (double)plan->features);
    if (plan->piece_count == list->capacity) {
        int grown = list->capacity ? 2 * list->capacity : 256;
        fpa_piece *pieces = realloc(plan->pieces, grown * sizeof *pieces);
        if (!pieces)
            return fail_memory(error);
        plan->pieces = pieces;
        list->capacity = grown;
    }
    plan->pieces[plan->piece_count++] = piece;
    return FPA_OK;
}

/* The most features of a piece that starts at this feature. */
static int piece_room(fpa_piece_limit limit, int64_t feature)
{
    return limit.aligned ? limit.most - (int)(feature % limit.most) : limit.most;
}

static fpa_status add_run(piece_list *list, fpa_piece piece, fpa_error *error)
{
    for (int left = piece.width; left > 0;) {
        int room = piece_room(list->limit, piece.feature);
        piece.width = left < room ? left : room;
        fpa_status status = piece_add(list, piece, error);
        if (status)
            return status;
        left -= piece.width;
        piece.feature += piece.width;
        piece.base += piece.width;
    }
    return FPA_OK;
}

static fpa_status add_runs(piece_list *list, fpa_piece piece, const int *last, int width, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int w = 0; !status && w < width; w += piece.width) {
        piece.base = last[w];
        piece.width = run_length(last + w, width - w);
        status = add_run(list, piece, error);
        piece.feature += piece.width;
    }
    return status;
}

/* Advances an index over the rows of the first n branches, the last branch fastest; false: it was the last one. */
static bool next_index(int *index, const fpa_term *term, int n)
{
    for (int b = n - 1; b >= 0; b--) {
        if (++index[b] < term->branches[b].width)
            return true;
        index[b] = 0;
    }
    return false;
}

/* The packed rows of each branch of a term; equal consecutive branches share an array. */
static void term_rows(fpa_plan *plan, const fpa_term *term, int *rows[HEAD_MAX_BRANCHES])
{
    for (int b = 0; b < term->branch_count; b++) {
        const bool shared = b && same_branch(&term->branches[b], &term->branches[b - 1]);
        rows[b] = shared ? rows[b - 1] : branch_rows(plan, &term->branches[b]);
    }
}

/* Adds the features of a term: for each combination of rows of all branches but the last, the rows of the last one
 * in order. */
static fpa_status add_term(piece_list *list, const fpa_term *term, int64_t *feature, fpa_error *error)
{
    fpa_plan *plan = list->plan;
    const int n = term->branch_count, shared = n > 1 ? n - 1 : 0, width = n ? term->branches[n - 1].width : 1;
    int *rows[HEAD_MAX_BRANCHES], index[HEAD_MAX_BRANCHES] = {0};
    term_rows(plan, term, rows);
    do {
        int *prefix = arena_array(&plan->memory, shared, sizeof *prefix);
        for (int b = 0; b < shared; b++)
            prefix[b] = rows[b][index[b]];
        const fpa_piece piece = {.feature = *feature,
                                 .prefix_count = shared,
                                 .prefix = prefix,
                                 .weight = term->weight.value,
                                 .degree = n};
        fpa_status status = add_runs(list, piece, n ? rows[n - 1] : &plan->ones_row, width, error);
        if (status)
            return status;
        *feature += width;
    } while (next_index(index, term, shared));
    return FPA_OK;
}

static fpa_status plan_pieces(fpa_plan *plan, fpa_piece_limit limit, fpa_error *error)
{
    piece_list list = {plan, limit, 0};
    int64_t feature = 0;
    fpa_status status = FPA_OK;
    for (int t = 0; t < plan->head->term_count && !status; t++)
        status = add_term(&list, &plan->head->terms[t], &feature, error);
    for (int i = 0; i < plan->piece_count; i++)
        plan->weighs = plan->weighs || plan->pieces[i].weight != 1;
    return status;
}

/* ---- dots ---- */

static void plan_dots(fpa_plan *plan)
{
    const fpa_score *score = plan->score;
    plan->dots = arena_array(&plan->memory, score->dot_count, sizeof *plan->dots);
    for (int i = 0; i < score->dot_count; i++)
        plan->dots[i] = (fpa_dot){score->dots[i].width, branch_rows(plan, &score->dots[i])};
}

fpa_status plan_features(fpa_plan *plan, fpa_piece_limit limit, fpa_error *error)
{
    plan_rows(plan);
    const fpa_status status = plan_pieces(plan, limit, error);
    if (status)
        return status;
    plan_dots(plan);
    if (plan->row_count > MAX_ROWS)
        return fail(error, FPA_UNSUPPORTED, plan->head->origin,
                    "head '%s' needs %d rows a token, the limit is %d", plan->head->name, plan->row_count,
                    MAX_ROWS);
    return FPA_OK;
}
