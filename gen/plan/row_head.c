#include "row_head.h"

#include "base/round.h"

enum { PIECE = 8 }; /* numbers of 16 bytes */

/* Rows of 64 tokens, and what they are made of or made to, lie in a block's shared memory. */
static int most_width(const fpa_target *target)
{
    enum { TOKENS = 64, OPERANDS = 2, ELEMENT = 2, ODD = 16 /* numbers that pitches may add */ };
    const int room = target->shared_memory / (TOKENS * OPERANDS * ELEMENT) - ODD;
    return room < ROW_HEAD_WIDEST ? room / PIECE * PIECE : ROW_HEAD_WIDEST;
}

static bool each_branch(const fpa_simplified *simple, bool (*visit)(void *, const fpa_branch *), void *user)
{
    const fpa_head *head = simple->head;
    for (int t = 0; t < head->term_count; t++)
        for (int b = 0; b < head->terms[t].branch_count; b++)
            if (!visit(user, &head->terms[t].branches[b]))
                return false;
    for (int i = 0; i < simple->score.dot_count; i++)
        if (!visit(user, &simple->score.dots[i]))
            return false;
    return true;
}

/* ---- where rows are ---- */

/* Of each coordinate and each matrix its first row; -1: none. */
typedef struct places {
    int *coordinate, *matrix;
} places;

static bool mark(void *user, const fpa_branch *branch)
{
    const places *at = user;
    if (branch->source != FPA_INPUT)
        at->matrix[branch->source] = 0;
    for (int w = 0; branch->source == FPA_INPUT && w < branch->width; w++)
        at->coordinate[branch->row[w]] = 0;
    return true;
}

static bool start(fpa_row_head *made, const fpa_head *head, places *at)
{
    at->coordinate = arena_array(&made->memory, head->d, sizeof *at->coordinate);
    at->matrix = arena_array(&made->memory, head->matrix_count, sizeof *at->matrix);
    made->coordinates = arena_array(&made->memory, head->d, sizeof *made->coordinates);
    made->projections = arena_array(&made->memory, head->matrix_count, sizeof *made->projections);
    if (!at->coordinate || !at->matrix || !made->coordinates || !made->projections)
        return false;
    for (int i = 0; i < head->d; i++)
        at->coordinate[i] = -1;
    for (int m = 0; m < head->matrix_count; m++)
        at->matrix[m] = -1;
    return true;
}

static void place(fpa_row_head *made, const fpa_head *head, int most, places *at)
{
    for (int i = 0; i < head->d; i++)
        if (at->coordinate[i] >= 0) {
            at->coordinate[i] = made->coordinate_count;
            made->coordinates[made->coordinate_count++] = i;
        }
    made->width = round_up(made->coordinate_count, PIECE);
    for (int m = 0; m < head->matrix_count && made->width <= most; m++)
        if (at->matrix[m] >= 0) {
            at->matrix[m] = made->width;
            made->projections[made->projection_count++] = (fpa_projection){m, made->width};
            made->width = round_up(made->width + head->matrices[m].rows, PIECE);
        }
}

/* ---- the head of rows ---- */

static bool set_branch(fpa_row_head *made, const places *at, const fpa_branch *from, fpa_branch *to)
{
    *to = *from;
    to->kind = FPA_BRANCH_SELECT;
    to->source = FPA_INPUT;
    to->row = arena_array(&made->memory, from->width, sizeof *to->row);
    for (int w = 0; to->row && w < from->width; w++)
        to->row[w] = from->source == FPA_INPUT ? at->coordinate[from->row[w]]
                                               : at->matrix[from->source] + from->row[w];
    return to->row != NULL;
}

/* Equal branches next to each other share their rows, and are known by that (features.c). */
static bool set_branches(fpa_row_head *made, const places *at, const fpa_branch *from, int count,
                         fpa_branch **to)
{
    bool done = (*to = arena_array(&made->memory, count, sizeof **to)) != NULL;
    for (int b = 0; b < count && done; b++) {
        const bool shared = b && from[b].source == from[b - 1].source && from[b].row == from[b - 1].row &&
                            from[b].width == from[b - 1].width;
        done = set_branch(made, at, &from[b], &(*to)[b]);
        if (done && shared)
            (*to)[b].row = (*to)[b - 1].row;
    }
    return done;
}

static fpa_head *make_head(fpa_row_head *made, const places *at, const fpa_head *from)
{
    fpa_head *head = arena_copy(&made->memory, from, sizeof *from);
    if (!head)
        return NULL;
    head->memory = (arena){0}; /* everything is in the row head's, or the other head's */
    head->d = made->width;
    head->scale = 1;
    head->terms = arena_copy(&made->memory, from->terms, (size_t)from->term_count * sizeof *from->terms);
    bool done = head->terms != NULL;
    for (int t = 0; t < head->term_count && done; t++)
        done = set_branches(made, at, from->terms[t].branches, from->terms[t].branch_count,
                            &head->terms[t].branches);
    return done ? head : NULL;
}

static bool make_simple(fpa_row_head *made, const places *at, const fpa_simplified *from)
{
    fpa_simplified *simple = arena_copy(&made->memory, from, sizeof *from);
    if (!simple)
        return false;
    simple->head = make_head(made, at, from->head);
    made->simple = simple;
    return simple->head &&
           set_branches(made, at, from->score.dots, from->score.dot_count, &simple->score.dots);
}

static bool suits(const fpa_head *head, const fpa_target *target)
{
    return target->backend == BACKEND_CUDA && !head->lift && dtype_size(head->dtype) == 2;
}

fpa_status row_head_make(const fpa_simplified *simple, const fpa_target *target, fpa_row_head *made,
                         fpa_error *error)
{
    places at;
    const int most = most_width(target);
    *made = (fpa_row_head){.scale = simple->head->scale};
    if (!suits(simple->head, target))
        return FPA_OK;
    bool done = start(made, simple->head, &at);
    if (done && each_branch(simple, mark, &at))
        place(made, simple->head, most, &at);
    const bool wanted = done && made->projection_count && made->width <= most;
    if (wanted)
        done = make_simple(made, &at, simple);
    if (!wanted || !done)
        row_head_free(made);
    return done ? FPA_OK : fail_memory(error);
}

void row_head_free(fpa_row_head *made)
{
    arena_free(&made->memory);
    *made = (fpa_row_head){0};
}
