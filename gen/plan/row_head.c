#include "row_head.h"

#include "base/round.h"
#include "pairs.h"

#include <limits.h>

/* elements of 2 bytes in 16 bytes; also the rows whose gradients kernels sum up together */
enum { PIECE = 8 };

/* The most elements of a vector of rows: those of 64 tokens, with the q or k from which they are computed, fit
 * into a block's shared memory. If the steps of matrices leave less room, blocks have fewer tokens
 * (backward_made.c). */
static int most_width(const fpa_target *target)
{
    enum {
        TOKENS = 64,
        OPERANDS = 2,
        ELEMENT = 2,
        ODD = 16 /* elements by which a pitch may exceed the width */
    };
    const int room = target->shared_memory / (TOKENS * OPERANDS * ELEMENT) - ODD;
    return room < ROW_HEAD_MOST ? room / PIECE * PIECE : ROW_HEAD_MOST;
}

static void each_branch(const fpa_simplified *simple, void (*visit)(void *, const fpa_branch *), void *user)
{
    const fpa_head *head = simple->head;
    for (int t = 0; t < head->term_count; t++)
        for (int b = 0; b < head->terms[t].branch_count; b++)
            visit(user, &head->terms[t].branches[b]);
    for (int i = 0; i < simple->score.dot_count; i++)
        visit(user, &simple->score.dots[i]);
}

/* ---- where rows are ---- */

/* Where rows are in a vector, -1: nowhere. matrix: the first row of each matrix. dot: the first row of each dot of
 * coordinates that has rows of its own. rest: the row of each other coordinate. */
typedef struct places {
    const fpa_score *score;
    arena *memory;
    int step; /* matrices and dots of coordinates begin at multiples of it */
    int *matrix, *dot, *rest;
} places;

static void mark(void *user, const fpa_branch *branch)
{
    const places *at = user;
    if (branch->source != FPA_INPUT)
        at->matrix[branch->source] = 0;
    for (int w = 0; branch->source == FPA_INPUT && w < branch->width; w++)
        at->rest[branch->row[w]] = 0;
}

static int *array_of_none(arena *memory, int count)
{
    int *array = arena_array(memory, count, sizeof *array);
    for (int i = 0; i < count; i++)
        array[i] = -1;
    return array;
}

static int count_coordinates(const places *at)
{
    const fpa_score *score = at->score;
    int rows = at->step;
    for (int i = 0; i < score->dot_count; i++)
        rows += score->dots[i].source == FPA_INPUT ? round_up(score->dots[i].width, at->step) : 0;
    return rows;
}

static places start(fpa_row_head *made, const fpa_simplified *simple, arena *memory)
{
    const fpa_head *head = simple->head;
    places at = {
        .score = &simple->score, .memory = memory, .step = pairs_suit(simple) ? (int)PAIR_STEP : (int)PIECE};
    const int rows = count_coordinates(&at) + round_up(head->d, at.step);
    at.matrix = array_of_none(memory, head->matrix_count);
    at.dot = array_of_none(memory, simple->score.dot_count);
    at.rest = array_of_none(memory, head->d);
    made->coordinates = array_of_none(memory, rows);
    made->weights = arena_array(memory, rows, sizeof *made->weights);
    made->projections = arena_array(memory, head->matrix_count, sizeof *made->projections);
    return at;
}

static void add_coordinate(fpa_row_head *made, int coordinate, double weight)
{
    made->weighs = made->weighs || weight != 1;
    made->weights[made->coordinate_count] = weight;
    made->coordinates[made->coordinate_count++] = coordinate;
}

/* Adds zeros up to a multiple of `step`. */
static void end_piece(fpa_row_head *made, int step)
{
    while (made->coordinate_count % step)
        made->weights[made->coordinate_count++] = 1;
}

/* The rows of a dot of coordinates are contiguous, with their weights, like the rows of a matrix. */
static void place_dots(fpa_row_head *made, places *at)
{
    for (int i = 0; i < at->score->dot_count; i++) {
        const fpa_branch *dot = &at->score->dots[i];
        if (dot->source != FPA_INPUT)
            continue;
        at->dot[i] = made->coordinate_count;
        for (int w = 0; w < dot->width; w++)
            add_coordinate(made, dot->row[w], dot->gram ? dot->gram[w].value : 1);
        end_piece(made, at->step);
    }
}

static fpa_number gram_of(const fpa_branch *branch, int w)
{
    return branch->gram ? branch->gram[w] : number_int(1);
}

/* The index of a coordinate among the rows of a dot, with weight `gram` if that is given; -1: there is none. */
static int find_row(const fpa_branch *dot, int coordinate, const fpa_number *gram)
{
    for (int w = 0; w < dot->width; w++)
        if (dot->row[w] == coordinate && (!gram || number_equal(gram_of(dot, w), *gram)))
            return w;
    return -1;
}

/* A dot that contains a coordinate, and the coordinate's index there (*row); -1: none. */
static int find_dot(const places *at, int coordinate, const fpa_number *gram, int *row)
{
    for (int i = 0; i < at->score->dot_count; i++)
        if (at->dot[i] >= 0 && (*row = find_row(&at->score->dots[i], coordinate, gram)) >= 0)
            return i;
    return -1;
}

/* Adds the coordinates that branches use and no dot contains, in their order. */
static void place_rest(fpa_row_head *made, int d, places *at)
{
    int row;
    for (int i = 0; i < d; i++) {
        const bool wanted = at->rest[i] >= 0 && find_dot(at, i, NULL, &row) < 0;
        at->rest[i] = wanted ? made->coordinate_count : -1;
        if (wanted)
            add_coordinate(made, i, 1);
    }
    end_piece(made, at->step);
}

static void place_matrices(fpa_row_head *made, const fpa_head *head, places *at)
{
    made->width = made->coordinate_count;
    for (int m = 0; m < head->matrix_count && made->width <= ROW_HEAD_MOST; m++)
        if (at->matrix[m] >= 0) {
            at->matrix[m] = made->width;
            made->projections[made->projection_count++] = (fpa_projection){m, made->width};
            made->width = round_up(made->width + head->matrices[m].rows, at->step);
        }
}

/* ---- the head of rows ---- */

static bool covers(const fpa_branch *dot, const fpa_branch *branch)
{
    for (int w = 0; w < branch->width; w++) {
        const fpa_number gram = gram_of(branch, w);
        if (find_row(dot, branch->row[w], &gram) < 0)
            return false;
    }
    return true;
}

/* The shortest dot of coordinates that contains all rows of a branch with the same weights; -1: none. */
static int find_cover(const places *at, const fpa_branch *branch)
{
    const fpa_branch *dots = at->score->dots;
    int best = -1;
    for (int i = 0; i < at->score->dot_count; i++)
        if (at->dot[i] >= 0 && (best < 0 || dots[i].width < dots[best].width) && covers(&dots[i], branch))
            best = i;
    return best;
}

/* The made row for row w of a branch of coordinates: in dot `cover` or, if that is -1, in any dot. *left: the
 * factor of its weight that the made row does not include. */
static int coordinate_row(const places *at, const fpa_branch *branch, int w, int cover, fpa_number *left)
{
    const int coordinate = branch->row[w];
    const fpa_number gram = gram_of(branch, w);
    int row, dot;
    *left = number_int(1);
    if (cover >= 0)
        return at->dot[cover] + find_row(&at->score->dots[cover], coordinate, &gram);
    if ((dot = find_dot(at, coordinate, &gram, &row)) >= 0)
        return at->dot[dot] + row;
    dot = find_dot(at, coordinate, NULL, &row);
    *left = dot < 0 ? gram : number_div(at->memory, gram, gram_of(&at->score->dots[dot], row));
    return dot < 0 ? at->rest[coordinate] : at->dot[dot] + row;
}

static void set_coordinates(const places *at, const fpa_branch *from, fpa_branch *to)
{
    const int cover = find_cover(at, from);
    bool weighs = false;
    to->gram = arena_array(at->memory, from->width, sizeof *to->gram);
    for (int w = 0; w < from->width; w++) {
        to->row[w] = coordinate_row(at, from, w, cover, &to->gram[w]);
        weighs = weighs || !number_is_one(to->gram[w]);
    }
    if (!weighs)
        to->gram = NULL;
}

static void set_branch(const places *at, const fpa_branch *from, fpa_branch *to)
{
    *to = *from;
    to->kind = FPA_BRANCH_SELECT;
    to->source = FPA_INPUT;
    to->row = arena_array(at->memory, from->width, sizeof *to->row);
    if (from->source == FPA_INPUT)
        set_coordinates(at, from, to);
    else
        for (int w = 0; w < from->width; w++)
            to->row[w] = at->matrix[from->source] + from->row[w];
}

/* Equal consecutive branches share their array of rows, by which features.c recognises them. */
static fpa_branch *set_branches(const places *at, const fpa_branch *from, int count)
{
    fpa_branch *to = arena_array(at->memory, count, sizeof *to);
    for (int b = 0; b < count; b++) {
        const bool shared = b && from[b].source == from[b - 1].source && from[b].row == from[b - 1].row &&
                            from[b].width == from[b - 1].width && from[b].gram == from[b - 1].gram;
        if (shared)
            to[b] = to[b - 1];
        else
            set_branch(at, &from[b], &to[b]);
    }
    return to;
}

/* Dots of coordinates refer to their own rows, in their order. */
static fpa_branch *set_dots(const places *at)
{
    const int count = at->score->dot_count;
    fpa_branch *dots = set_branches(at, at->score->dots, count);
    for (int i = 0; i < count; i++) {
        if (at->dot[i] < 0)
            continue;
        dots[i].row = arena_array(at->memory, dots[i].width, sizeof *dots[i].row);
        for (int w = 0; w < dots[i].width; w++)
            dots[i].row[w] = at->dot[i] + w;
    }
    return dots;
}

static fpa_head *make_head(const places *at, const fpa_head *from, int width)
{
    fpa_head *head = arena_copy(at->memory, from, sizeof *from);
    head->memory = (arena){0}; /* everything belongs to the row head or to the other head */
    head->d = width;
    head->scale = 1;
    head->terms = arena_copy(at->memory, from->terms, (size_t)from->term_count * sizeof *from->terms);
    for (int t = 0; t < head->term_count; t++)
        head->terms[t].branches = set_branches(at, from->terms[t].branches, from->terms[t].branch_count);
    return head;
}

static fpa_simplified *make_simple(const places *at, const fpa_simplified *from, int width)
{
    fpa_simplified *simple = arena_copy(at->memory, from, sizeof *from);
    simple->head = make_head(at, from->head, width);
    simple->made = true;
    simple->score.dots = set_dots(at);
    return simple;
}

static bool suits(const fpa_head *head, const fpa_target *target)
{
    return target->backend == BACKEND_CUDA && !head->lift && dtype_size(head->dtype) == 2;
}

/* of_dots: each dot of coordinates has rows of its own; else dots share the rows of coordinates, and weights stay
 * in the branches. Width 0: there is nothing to make. */
static fpa_row_head make(const fpa_simplified *simple, int most, bool of_dots, bool plain, arena *memory)
{
    fpa_row_head made = {.scale = simple->head->scale};
    places at = start(&made, simple, memory);
    each_branch(simple, mark, &at);
    if (of_dots)
        place_dots(&made, &at);
    place_rest(&made, simple->head->d, &at);
    place_matrices(&made, simple->head, &at);
    if (!(plain || made.projection_count || made.weighs) || made.width > most)
        return (fpa_row_head){0};
    made.simple = make_simple(&at, simple, made.width);
    return made;
}

/* ---- how many rows kernels have of a token ---- */

typedef struct weighted_rows {
    int count, room;
    struct {
        int row;
        double gram;
    } * found; /* [room] */
} weighted_rows;

static void count_room(void *user, const fpa_branch *branch)
{
    weighted_rows *rows = user;
    rows->room += branch->gram ? branch->width : 0;
}

static void add_weighted(void *user, const fpa_branch *branch)
{
    weighted_rows *rows = user;
    for (int w = 0; branch->gram && w < branch->width; w++) {
        const double gram = branch->gram[w].value;
        int i = 0;
        while (i < rows->count && (rows->found[i].row != branch->row[w] || rows->found[i].gram != gram))
            i++;
        if (i < rows->count || number_is_one(branch->gram[w]))
            continue;
        rows->found[i].row = branch->row[w];
        rows->found[i].gram = gram;
        rows->count++;
    }
}

/* The number of rows that kernels have of a token: made rows, and those that branches multiply by a weight. */
static int count_rows(const fpa_row_head *made, arena *memory)
{
    weighted_rows rows = {0};
    each_branch(made->simple, count_room, &rows);
    rows.found = arena_array(memory, rows.room, sizeof *rows.found);
    each_branch(made->simple, add_weighted, &rows);
    return made->width + rows.count;
}

/* Separate rows for each dot save rows with weights, but each dot begins at a multiple of 8, which costs more if
 * dots are short. The variant with fewer rows is chosen; but passes of pairs or product rows need dots without
 * weights (pairs.h). */
static fpa_row_head choose(const fpa_simplified *simple, int most, bool plain, arena *memory)
{
    const fpa_row_head own = make(simple, most, true, plain, memory);
    const fpa_row_head shared = make(simple, most, false, plain, memory);
    if (!shared.width || (own.width && (pairs_suit(own.simple) || halves_suit(own.simple))))
        return own;
    return own.width && count_rows(&own, memory) <= count_rows(&shared, memory) ? own : shared;
}

void row_head_make(const fpa_simplified *simple, const fpa_target *target, bool plain, fpa_row_head *made)
{
    fpa_row_head best = {0};
    if (suits(simple->head, target))
        best = choose(simple, most_width(target), plain, &made->memory);
    best.memory = made->memory;
    *made = best;
}

void row_head_free(fpa_row_head *made)
{
    arena_free(&made->memory);
    *made = (fpa_row_head){0};
}
