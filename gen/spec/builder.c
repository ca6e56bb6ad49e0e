/* Memory and matrices of a head under construction. */
#include "builder.h"

#include <math.h>
#include <string.h>

#include "script.h"

void builder_hold(builder *b, int64_t bytes)
{
    script_hold(b->L, bytes);
    *b->held += bytes;
}

void *builder_take(builder *b, size_t count, size_t size)
{
    builder_hold(b, (int64_t)(count * size)); /* cannot overflow: counts are those of Lua values */
    script_charge(b->L, (int64_t)count);
    void *memory = arena_array(&b->head->memory, count, size);
    if (!memory)
        script_no_memory(b->L);
    return memory;
}

static int add_matrix(builder *b, fpa_matrix matrix)
{
    fpa_head *head = b->head;
    if (head->matrix_count == HEAD_MAX_MATRICES)
        script_refuse(b->L, 0, "the head '%s' has more than %d matrices", head->name, HEAD_MAX_MATRICES);
    if (head->matrix_count == b->matrix_capacity) {
        int capacity = b->matrix_capacity ? 2 * b->matrix_capacity : 8;
        fpa_matrix *more = builder_take(b, (size_t)capacity, sizeof *more);
        if (head->matrix_count)
            memcpy(more, head->matrices, (size_t)head->matrix_count * sizeof *more);
        head->matrices = more;
        b->matrix_capacity = capacity;
    }
    head->matrices[head->matrix_count] = matrix;
    return head->matrix_count++;
}

/* A diagonal's entries as rows of a matrix. */
static double *diagonal_rows(builder *b, const spec_branch *branch)
{
    double *data = builder_take(b, (size_t)branch->width * (size_t)b->width, sizeof *data);
    for (int w = 0; w < branch->width; w++)
        data[(size_t)w * (size_t)b->width + (size_t)branch->row[w]] = branch->data[w];
    return data;
}

/* ---- matrices that are not drawn yet ---- */

static spec_undrawn *find_undrawn(const builder *b, int matrix)
{
    for (int i = 0; i < b->undrawn_count; i++)
        if (b->undrawn[i].matrix == matrix)
            return &b->undrawn[i];
    return NULL;
}

/* Draws a matrix now, because its numbers are compared with another one's. */
static void draw_now(builder *b, spec_undrawn *undrawn)
{
    spec_draw(&undrawn->drawing, b->head->matrices[undrawn->matrix].data);
    *undrawn = b->undrawn[--b->undrawn_count];
}

static void add_undrawn(builder *b, int matrix, const spec_drawing *drawing)
{
    if (b->undrawn_count == b->undrawn_capacity) {
        const int capacity = b->undrawn_capacity ? 2 * b->undrawn_capacity : 8;
        spec_undrawn *more = builder_take(b, (size_t)capacity, sizeof *more);
        if (b->undrawn_count)
            memcpy(more, b->undrawn, (size_t)b->undrawn_count * sizeof *more);
        b->undrawn = more;
        b->undrawn_capacity = capacity;
    }
    b->undrawn[b->undrawn_count++] = (spec_undrawn){matrix, *drawing};
}

/* The numbers of a dense branch, drawn into memory of the head; NULL: they are in the branch already. */
static double *drawn_rows(builder *b, const spec_branch *branch)
{
    if (!branch->drawing.rows)
        return NULL;
    double *data = builder_take(b, (size_t)branch->width * (size_t)branch->listed, sizeof *data);
    spec_draw(&branch->drawing, data);
    return data;
}

/* ---- constant ones ---- */

static bool is_alike(builder *b, int m, const fpa_matrix *matrix)
{
    const fpa_matrix *other = &b->head->matrices[m];
    return other->kind == FPA_MATRIX_CONSTANT && other->rows == matrix->rows && other->cols == matrix->cols &&
           other->heads == matrix->heads;
}

/* The index of a constant matrix, which is shared with an equal one. made: the branch's numbers, if they are
 * already in memory of the head; NULL: they are copied from the branch. */
static int share_constant(builder *b, const spec_branch *branch, double *made)
{
    fpa_matrix matrix = {.kind = FPA_MATRIX_CONSTANT,
                         .rows = branch->width,
                         .cols = branch->kind == FPA_BRANCH_DIAGONAL ? b->width : branch->listed,
                         .per_head = branch->heads > 0,
                         .heads = branch->heads};
    const size_t count =
        (size_t)(matrix.heads ? matrix.heads : 1) * (size_t)matrix.rows * (size_t)matrix.cols;
    const double *data = made ? made : branch->data;
    for (int m = 0; m < b->head->matrix_count; m++) {
        if (!is_alike(b, m, &matrix))
            continue;
        if (find_undrawn(b, m))
            draw_now(b, find_undrawn(b, m));
        if (memcmp(b->head->matrices[m].data, data, count * sizeof *data) == 0)
            return m;
    }
    matrix.data = made ? made : builder_take(b, count, sizeof *matrix.data);
    if (!made)
        memcpy(matrix.data, data, count * sizeof *matrix.data);
    return add_matrix(b, matrix);
}

int builder_constant(builder *b, const spec_branch *branch)
{
    return share_constant(
        b, branch, branch->kind == FPA_BRANCH_DIAGONAL ? diagonal_rows(b, branch) : drawn_rows(b, branch));
}

/* Matrices that are drawn later are regarded as equal if rows, d and seed are equal. Until they are drawn, each
 * row contains a 1, so that no check takes it for a row of zeros. */
int builder_constant_later(builder *b, const spec_branch *branch)
{
    const spec_drawing *drawing = &branch->drawing;
    fpa_matrix matrix = {.kind = FPA_MATRIX_CONSTANT, .rows = branch->width, .cols = branch->listed};
    if (!drawing->rows)
        return builder_constant(b, branch);
    for (int m = 0; m < b->head->matrix_count; m++) {
        const spec_undrawn *other = find_undrawn(b, m);
        if (is_alike(b, m, &matrix) && !other)
            return builder_constant(b, branch);
        if (other && is_alike(b, m, &matrix) && other->drawing.seed == drawing->seed)
            return m;
    }
    matrix.data = builder_take(b, (size_t)matrix.rows * (size_t)matrix.cols, sizeof *matrix.data);
    for (int r = 0; r < matrix.rows; r++)
        matrix.data[(size_t)r * (size_t)matrix.cols] = 1;
    add_undrawn(b, b->head->matrix_count, drawing);
    return add_matrix(b, matrix);
}

int builder_constant_rounded(builder *b, const spec_branch *branch)
{
    const size_t count =
        (size_t)(branch->heads ? branch->heads : 1) * (size_t)branch->width * (size_t)branch->listed;
    double *rounded = builder_take(b, count, sizeof *rounded);
    const double *drawn = drawn_rows(b, branch), *exact = drawn ? drawn : branch->data;
    for (size_t i = 0; i < count; i++) {
        rounded[i] = (double)(float)exact[i];
        if (!isfinite(rounded[i]))
            script_refuse(b->L, branch->line, "an angle is %f, beyond the range of float32", exact[i]);
    }
    return share_constant(b, branch, rounded);
}

int builder_trainable(builder *b, const spec_branch *branch, int rows, int columns)
{
    const bool diagonal = branch->kind == FPA_BRANCH_TRAINABLE_DIAGONAL;
    fpa_matrix matrix = {.kind = diagonal ? FPA_MATRIX_TRAINABLE_DIAGONAL : FPA_MATRIX_TRAINABLE,
                         .rows = rows,
                         .cols = columns,
                         .per_head = !branch->shared};
    if (!rows)
        script_refuse(b->L, branch->line, "trainable needs rows, an integer of 1..%d", HEAD_MAX_ROWS);
    for (int m = 0; m < b->head->matrix_count; m++) {
        const fpa_matrix *other = &b->head->matrices[m];
        if (!other->name || strcmp(other->name, branch->name) != 0)
            continue;
        if (other->kind == matrix.kind && other->per_head == matrix.per_head && other->rows == matrix.rows &&
            other->cols != matrix.cols)
            script_refuse(b->L, branch->line,
                          "trainable '%s' is used twice, but once with %d columns and once with %d",
                          branch->name, other->cols, matrix.cols);
        if (other->kind != matrix.kind || other->rows != matrix.rows || other->per_head != matrix.per_head)
            script_refuse(b->L, branch->line,
                          "trainable '%s' is used twice, but with different rows, diagonal or shared",
                          branch->name);
        return m;
    }
    matrix.name = builder_take(b, strlen(branch->name) + 1, 1);
    memcpy(matrix.name, branch->name, strlen(branch->name) + 1);
    return add_matrix(b, matrix);
}

void builder_check_indices(builder *b, const spec_branch *branch, place at)
{
    for (int w = 0; w < branch->width; w++)
        if (branch->row[w] >= b->width)
            script_refuse(b->L, branch->line,
                          "branch %d of term %d selects index %d, but d = %d (indices run 1..%d)", at.l, at.t,
                          branch->row[w] + 1, b->width, b->width);
}

void builder_copy_grams(builder *b, const spec_branch *branch, fpa_branch *out)
{
    const size_t width = (size_t)branch->width;
    if (!branch->gram)
        return;
    builder_hold(b, (int64_t)(width * sizeof *out->gram));
    out->gram = numbers_copy(&b->head->memory, branch->gram, width);
    if (!out->gram)
        script_no_memory(b->L);
}
