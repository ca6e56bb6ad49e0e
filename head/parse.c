/* head_parse: canonical text -> head (format: head_text.c). The text may come from a damaged file:
 * any bytes are read safely, and every message has the line. */
#include "lift_text.h"
#include "reader.h"

#include <stdlib.h>
#include <string.h>

static const char version_line[] = "fpac head 1";

static const char *normalize_word(int index)
{
    return normalize_name((fpa_normalize)index);
}

static const char *dtype_word(int index)
{
    return dtype_name((fpa_dtype)index);
}

static const char *products_word(int index)
{
    return products_name((fpa_products)index);
}

static const char *kind_word(int index)
{
    return branch_kind_name((fpa_branch_kind)index);
}

static fpa_status read_version(reader *in)
{
    fpa_status status = reader_next_line(in);
    size_t length = strlen(version_line);
    if (status == FPA_OK &&
        ((size_t)(in->stop - in->at) != length || memcmp(in->at, version_line, length) != 0))
        return reader_refuse(in, "this is no head of this version (expected \"%s\")", version_line);
    return status;
}

/* A field that a head may lack: "plain" is not written. */
static fpa_status read_products(reader *in)
{
    int products = FPA_PRODUCTS_PLAIN;
    fpa_status status;
    if (!reader_sees(in, "products "))
        return FPA_OK;
    status = reader_choice_field(in, "products", products_word, FPA_PRODUCTS_KINDS, &products);
    if (status == FPA_OK)
        in->head->products = (fpa_products)products;
    return status;
}

static fpa_status read_window(reader *in)
{
    return reader_sees(in, "window ") ? reader_field(in, "window", 0, HEAD_MAX_WINDOW, &in->head->window)
                                      : FPA_OK;
}

static fpa_status read_fields(reader *in)
{
    fpa_head *head = in->head;
    int normalize = 0, dtype = 0, state_dtype = 0;
    fpa_status status;
    if ((status = read_version(in)) != FPA_OK || (status = reader_begin(in, "name")) != FPA_OK ||
        (status = reader_name(in, "", &head->name)) != FPA_OK || (status = reader_finish(in)) != FPA_OK ||
        (status = reader_field(in, "d", 0, HEAD_MAX_COORDINATES, &head->d)) != FPA_OK ||
        (status = reader_field(in, "dv", 0, HEAD_MAX_WIDTH, &head->dv)) != FPA_OK ||
        (status = reader_field(in, "block", 0, 1 << 24, &head->block)) != FPA_OK ||
        (status = reader_field(in, "chunk", 0, 1 << 24, &head->chunk)) != FPA_OK ||
        (status = reader_flag(in, "causal", &head->causal)) != FPA_OK ||
        (status = reader_double_field(in, "scale", &head->scale)) != FPA_OK ||
        (status = reader_choice_field(in, "normalize", normalize_word, FPA_NORMALIZE_KINDS, &normalize)) !=
            FPA_OK ||
        (status = reader_double_field(in, "eps", &head->eps)) != FPA_OK ||
        (status = reader_flag(in, "gate", &head->gate)) != FPA_OK ||
        (status = reader_choice_field(in, "dtype", dtype_word, FPA_DTYPES, &dtype)) != FPA_OK ||
        (status = reader_choice_field(in, "state_dtype", dtype_word, FPA_DTYPES, &state_dtype)) != FPA_OK)
        return status;
    head->normalize = (fpa_normalize)normalize;
    head->dtype = (fpa_dtype)dtype;
    head->state_dtype = (fpa_dtype)state_dtype;
    status = read_products(in);
    return status == FPA_OK ? read_window(in) : status;
}

/* A shape is believed only as far as the bytes that are left could fill it. */
static fpa_status read_constant(reader *in, fpa_matrix *matrix)
{
    size_t count;
    fpa_status status = FPA_OK;
    if ((status = reader_integer(in, "", 1, HEAD_MAX_ROWS, &matrix->rows)) != FPA_OK ||
        !reader_skip(in, ' ') ||
        (status = reader_integer(in, "", 1, HEAD_MAX_WIDTH, &matrix->cols)) != FPA_OK)
        return status == FPA_OK ? reader_refuse(in, "a matrix needs rows and columns") : status;
    if (reader_skip(in, ' ') &&
        ((status = reader_expect(in, "heads")) != FPA_OK ||
         (status = reader_integer(in, "", 1, HEAD_MAX_ROWS, &matrix->heads)) != FPA_OK))
        return status;
    if ((status = reader_finish(in)) != FPA_OK)
        return status;
    matrix->per_head = matrix->heads > 0;
    const int lines = matrix->rows * (matrix->heads ? matrix->heads : 1);
    if (lines > HEAD_MAX_ROWS)
        return reader_refuse(in, "a matrix has at most %d rows", HEAD_MAX_ROWS);
    count = (size_t)lines * (size_t)matrix->cols;
    if (count > (size_t)(in->end - in->next))
        return reader_refuse(in, "the text ends before the %zu values of this matrix", count);
    matrix->data = arena_array(&in->head->memory, count, sizeof *matrix->data);
    if (!matrix->data)
        return fail_memory(in->error);
    for (int r = 0; r < lines && status == FPA_OK; r++) {
        status = reader_next_line(in);
        for (int c = 0; c < matrix->cols && status == FPA_OK; c++)
            status = reader_double(in, &matrix->data[(size_t)r * matrix->cols + c]);
        if (status == FPA_OK)
            status = reader_finish(in);
    }
    return status;
}

static fpa_status read_trainable(reader *in, fpa_matrix *matrix)
{
    char word[WORD_SIZE];
    fpa_status status = reader_name(in, "", &matrix->name);
    if (status != FPA_OK || !reader_skip(in, ' ') ||
        (status = reader_integer(in, "", 1, HEAD_MAX_ROWS, &matrix->rows)) != FPA_OK ||
        !reader_skip(in, ' ') ||
        (status = reader_integer(in, "", 1, HEAD_MAX_WIDTH, &matrix->cols)) != FPA_OK ||
        !reader_skip(in, ' '))
        return status == FPA_OK
                   ? reader_refuse(in, "a trainable matrix needs name, rows, columns and sharing")
                   : status;
    reader_word(in, "", word);
    matrix->per_head = strcmp(word, "per_head") == 0;
    if (!matrix->per_head && strcmp(word, "shared") != 0)
        return reader_refuse(in, "\"%.40s\" is neither \"shared\" nor \"per_head\"", word);
    return reader_finish(in);
}

static const char *matrix_word(int index)
{
    static const char *const words[] = {"constant", "trainable", "trainable_diagonal"};

    return words[index];
}

static fpa_status read_matrix(reader *in, fpa_matrix *matrix)
{
    int kind = 0;
    fpa_status status = reader_next_line(in);
    if (status == FPA_OK)
        status = reader_choice(in, matrix_word, 3, &kind);
    if (status != FPA_OK)
        return status;
    matrix->kind = (fpa_matrix_kind)kind;
    return kind == FPA_MATRIX_CONSTANT ? read_constant(in, matrix) : read_trainable(in, matrix);
}

static fpa_status read_matrices(reader *in)
{
    fpa_head *head = in->head;
    int count = 0;
    fpa_status status = reader_field(in, "matrices", 0, HEAD_MAX_MATRICES, &count);
    if (status != FPA_OK)
        return status;
    head->matrices = arena_array(&head->memory, (size_t)count, sizeof *head->matrices);
    if (!head->matrices)
        return fail_memory(in->error);
    head->matrix_count = count;
    for (int m = 0; m < count && status == FPA_OK; m++)
        status = read_matrix(in, &head->matrices[m]);
    return status;
}

static fpa_status read_gram(reader *in, fpa_branch *branch)
{
    int filled = 0;
    branch->gram = arena_array(&in->head->memory, (size_t)branch->width, sizeof *branch->gram);
    if (!branch->gram)
        return fail_memory(in->error);
    do {
        fpa_number weight;
        int count = 0;
        fpa_status status = reader_number(in, ",*", &weight);
        if (status != FPA_OK)
            return status;
        if (!reader_skip(in, '*'))
            return reader_refuse(in, "a kernel weight needs its count");
        if ((status = reader_integer(in, ",*", 1, branch->width - filled, &count)) != FPA_OK)
            return status;
        while (count-- > 0)
            branch->gram[filled++] = weight;
    } while (reader_skip(in, ','));
    return filled == branch->width
               ? FPA_OK
               : reader_refuse(in, "%d kernel weights for %d rows", filled, branch->width);
}

static fpa_status read_branch(reader *in, fpa_branch *branch)
{
    int kind = 0, matrix = 0;
    char word[WORD_SIZE];
    fpa_status status;
    if ((status = reader_begin(in, "branch")) != FPA_OK ||
        (status = reader_choice(in, kind_word, FPA_BRANCH_KINDS, &kind)) != FPA_OK)
        return status;
    reader_word(in, "", word);
    reader_skip(in, ' ');
    if (strcmp(word, "matrix") == 0) {
        if ((status = reader_integer(in, "", 1, HEAD_MAX_MATRICES, &matrix)) != FPA_OK)
            return status;
        reader_skip(in, ' ');
    } else if (strcmp(word, "input") != 0) {
        return reader_refuse(in, "\"%.40s\" is neither \"input\" nor \"matrix\"", word);
    }
    branch->kind = (fpa_branch_kind)kind;
    branch->source = matrix ? matrix - 1 : FPA_INPUT;
    status = reader_rows(in, &branch->row, &branch->width);
    if (status == FPA_OK && reader_skip(in, ' ') && (status = reader_expect(in, "gram")) == FPA_OK)
        status = read_gram(in, branch);
    return status == FPA_OK ? reader_finish(in) : status;
}

static fpa_status read_term(reader *in, fpa_term *term)
{
    fpa_status status;
    int count = 0;
    if ((status = reader_begin(in, "term")) != FPA_OK ||
        (status = reader_number(in, "", &term->weight)) != FPA_OK)
        return status;
    reader_skip(in, ' ');
    if ((status = reader_expect(in, "branches")) != FPA_OK ||
        (status = reader_integer(in, "", 0, HEAD_MAX_BRANCHES, &count)) != FPA_OK ||
        (status = reader_finish(in)) != FPA_OK)
        return status;
    term->branches = arena_array(&in->head->memory, (size_t)count, sizeof *term->branches);
    if (!term->branches)
        return fail_memory(in->error);
    term->branch_count = count;
    for (int l = 0; l < count && status == FPA_OK; l++)
        status = read_branch(in, &term->branches[l]);
    return status;
}

static fpa_status read_terms(reader *in)
{
    fpa_head *head = in->head;
    int count = 0;
    fpa_status status = reader_field(in, "terms", 0, HEAD_MAX_TERMS, &count);
    if (status != FPA_OK)
        return status;
    head->terms = arena_array(&head->memory, (size_t)count, sizeof *head->terms);
    if (!head->terms)
        return fail_memory(in->error);
    head->term_count = count;
    for (int t = 0; t < count && status == FPA_OK; t++)
        status = read_term(in, &head->terms[t]);
    return status;
}

/* The text must be what head_print writes of the head that was read from it. */
static fpa_status check_canonical(reader *in, const char *text, size_t size)
{
    char *printed = head_print(in->head);
    size_t length, same = 0;
    fpa_status status = FPA_OK;
    if (!printed)
        return fail_memory(in->error);
    length = strlen(printed);
    while (same < size && same < length && text[same] == printed[same])
        same++;
    if (same != size || same != length) {
        in->line = 1;
        for (size_t i = 0; i < same; i++)
            in->line += text[i] == '\n';
        status = reader_refuse(in, "this line is not written in the canonical way");
    }
    free(printed);
    return status;
}

fpa_status head_parse(const char *text, size_t size, fpa_head **head, fpa_error *error)
{
    reader in = {.next = text, .end = text + size, .error = error, .head = head_new()};
    fpa_status status;
    if (!in.head)
        return fail_memory(error);
    if ((status = read_fields(&in)) != FPA_OK || (status = read_matrices(&in)) != FPA_OK ||
        (status = lift_read(&in)) != FPA_OK || (status = read_terms(&in)) != FPA_OK ||
        (status = reader_begin(&in, "end")) != FPA_OK || (status = reader_finish(&in)) != FPA_OK)
        goto out;
    status = head_validate(in.head, error);
    if (status == FPA_OK)
        status = check_canonical(&in, text, size);
out:
    if (status == FPA_OK)
        *head = in.head;
    else
        head_free(in.head);
    return status;
}

fpa_status head_copy(const fpa_head *head, fpa_head **copy, fpa_error *error)
{
    char *text = head_print(head);
    if (!text)
        return fail_memory(error);
    const fpa_status status = head_parse(text, strlen(text), copy, error);
    free(text);
    return status;
}
