/* head_parse: canonical text -> head (format: text.c). The text may come from a damaged file: any bytes are read
 * safely, and every message names the line. */
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

static void read_version(reader *in)
{
    const size_t length = strlen(version_line);
    reader_next_line(in);
    if (!in->status && ((size_t)(in->stop - in->at) != length || memcmp(in->at, version_line, length) != 0))
        reader_refuse(in, "this is not a head of this version (expected \"%s\")", version_line);
}

static void read_fields(reader *in)
{
    fpa_head *head = in->head;
    int normalize = 0, dtype = 0, state_dtype = 0, products = FPA_PRODUCTS_PLAIN;
    read_version(in);
    reader_begin(in, "name");
    reader_name(in, "", &head->name);
    reader_finish(in);
    reader_field(in, "d", 0, HEAD_MAX_COORDINATES, &head->d);
    reader_field(in, "dv", 0, HEAD_MAX_WIDTH, &head->dv);
    reader_field(in, "block", 0, 1 << 24, &head->block);
    reader_field(in, "chunk", 0, 1 << 24, &head->chunk);
    reader_flag(in, "causal", &head->causal);
    reader_double_field(in, "scale", &head->scale);
    reader_choice_field(in, "normalize", normalize_word, FPA_NORMALIZE_KINDS, &normalize);
    reader_double_field(in, "eps", &head->eps);
    reader_flag(in, "gate", &head->gate);
    reader_choice_field(in, "dtype", dtype_word, FPA_DTYPES, &dtype);
    reader_choice_field(in, "state_dtype", dtype_word, FPA_DTYPES, &state_dtype);
    if (reader_sees(in, "products ")) /* text.c does not print "plain" */
        reader_choice_field(in, "products", products_word, FPA_PRODUCTS_KINDS, &products);
    if (reader_sees(in, "window "))
        reader_field(in, "window", 0, HEAD_MAX_WINDOW, &head->window);
    head->normalize = (fpa_normalize)normalize;
    head->dtype = (fpa_dtype)dtype;
    head->state_dtype = (fpa_dtype)state_dtype;
    head->products = (fpa_products)products;
}

/* Read "rows cols" and the blank that has to follow. */
static void read_size(reader *in, fpa_matrix *matrix, const char *needed)
{
    reader_integer(in, "", 1, HEAD_MAX_ROWS, &matrix->rows);
    if (!reader_skip(in, ' '))
        reader_refuse(in, "%s", needed);
    reader_integer(in, "", 1, HEAD_MAX_WIDTH, &matrix->cols);
}

/* A shape is accepted only if the bytes that are left can contain its numbers, so that a damaged text cannot cause
 * a huge allocation. */
static void read_constant(reader *in, fpa_matrix *matrix)
{
    read_size(in, matrix, "a matrix needs rows and columns");
    if (reader_skip(in, ' ')) {
        reader_expect(in, "heads");
        reader_integer(in, "", 1, HEAD_MAX_ROWS, &matrix->heads);
    }
    reader_finish(in);
    if (in->status)
        return;
    matrix->per_head = matrix->heads > 0;
    const int lines = matrix->rows * (matrix->heads ? matrix->heads : 1);
    const size_t count = (size_t)lines * (size_t)matrix->cols;
    if (lines > HEAD_MAX_ROWS)
        reader_refuse(in, "a matrix has at most %d rows", HEAD_MAX_ROWS);
    if (count > (size_t)(in->end - in->next))
        reader_refuse(in, "the text ends before the %zu values of this matrix", count);
    matrix->data = reader_array(in, (int64_t)count, sizeof *matrix->data);
    for (int r = 0; r < lines && !in->status; r++) {
        reader_next_line(in);
        for (int c = 0; c < matrix->cols && !in->status; c++)
            reader_double(in, &matrix->data[(size_t)r * matrix->cols + c]);
        reader_finish(in);
    }
}

static void read_trainable(reader *in, fpa_matrix *matrix)
{
    static const char needed[] = "a trainable matrix needs name, rows, columns and sharing";
    char word[WORD_SIZE];
    reader_name(in, "", &matrix->name);
    if (!reader_skip(in, ' '))
        reader_refuse(in, needed);
    read_size(in, matrix, needed);
    if (!reader_skip(in, ' '))
        reader_refuse(in, needed);
    reader_word(in, "", word);
    matrix->per_head = strcmp(word, "per_head") == 0;
    if (!matrix->per_head && strcmp(word, "shared") != 0)
        reader_refuse(in, "\"%.40s\" is neither \"shared\" nor \"per_head\"", word);
    reader_finish(in);
}

static const char *matrix_word(int index)
{
    static const char *const words[] = {"constant", "trainable", "trainable_diagonal"};

    return words[index];
}

static void read_matrices(reader *in)
{
    fpa_head *head = in->head;
    int count = 0;
    reader_field(in, "matrices", 0, HEAD_MAX_MATRICES, &count);
    head->matrices = reader_array(in, count, sizeof *head->matrices);
    head->matrix_count = head->matrices ? count : 0;
    for (int m = 0; m < head->matrix_count && !in->status; m++) {
        int kind = FPA_MATRIX_CONSTANT;
        reader_next_line(in);
        reader_choice(in, matrix_word, 3, &kind);
        head->matrices[m].kind = (fpa_matrix_kind)kind;
        if (kind == FPA_MATRIX_CONSTANT)
            read_constant(in, &head->matrices[m]);
        else
            read_trainable(in, &head->matrices[m]);
    }
}

static void read_gram(reader *in, fpa_branch *branch)
{
    int filled = 0;
    branch->gram = reader_array(in, branch->width, sizeof *branch->gram);
    do {
        fpa_number weight;
        int count = 0;
        reader_number(in, ",*", &weight);
        if (!reader_skip(in, '*'))
            reader_refuse(in, "a kernel weight needs its count");
        reader_integer(in, ",*", 1, branch->width - filled, &count);
        while (!in->status && count-- > 0)
            branch->gram[filled++] = weight;
    } while (!in->status && reader_skip(in, ','));
    if (filled != branch->width)
        reader_refuse(in, "%d kernel weights for %d rows", filled, branch->width);
}

static void read_branch(reader *in, fpa_branch *branch)
{
    int kind = 0, matrix = 0;
    char word[WORD_SIZE];
    reader_begin(in, "branch");
    reader_choice(in, kind_word, FPA_BRANCH_KINDS, &kind);
    reader_word(in, "", word);
    reader_skip(in, ' ');
    if (strcmp(word, "matrix") == 0) {
        reader_integer(in, "", 1, HEAD_MAX_MATRICES, &matrix);
        reader_skip(in, ' ');
    } else if (strcmp(word, "input") != 0) {
        reader_refuse(in, "\"%.40s\" is neither \"input\" nor \"matrix\"", word);
    }
    branch->kind = (fpa_branch_kind)kind;
    branch->source = matrix ? matrix - 1 : FPA_INPUT;
    reader_rows(in, &branch->row, &branch->width);
    if (reader_skip(in, ' ')) {
        reader_expect(in, "gram");
        read_gram(in, branch);
    }
    reader_finish(in);
}

static void read_term(reader *in, fpa_term *term)
{
    int count = 0;
    reader_begin(in, "term");
    reader_number(in, "", &term->weight);
    reader_skip(in, ' ');
    reader_expect(in, "branches");
    reader_integer(in, "", 0, HEAD_MAX_BRANCHES, &count);
    reader_finish(in);
    term->branches = reader_array(in, count, sizeof *term->branches);
    term->branch_count = term->branches ? count : 0;
    for (int l = 0; l < term->branch_count && !in->status; l++)
        read_branch(in, &term->branches[l]);
}

static void read_terms(reader *in)
{
    fpa_head *head = in->head;
    int count = 0;
    reader_field(in, "terms", 0, HEAD_MAX_TERMS, &count);
    head->terms = reader_array(in, count, sizeof *head->terms);
    head->term_count = head->terms ? count : 0;
    for (int t = 0; t < head->term_count && !in->status; t++)
        read_term(in, &head->terms[t]);
}

/* The text must be exactly what head_print prints for the head that was read. */
static fpa_status check_canonical(reader *in, const char *text, size_t size)
{
    char *printed = head_print(in->head);
    size_t same = 0;
    if (!printed)
        return fail_memory(in->error);
    const size_t length = strlen(printed);
    while (same < size && same < length && text[same] == printed[same])
        same++;
    if (same != size || same != length) {
        in->line = 1;
        for (size_t i = 0; i < same; i++)
            in->line += text[i] == '\n';
        reader_refuse(in, "this line is not written in the canonical way");
    }
    free(printed);
    return in->status;
}

fpa_status head_parse(const char *text, size_t size, fpa_head **head, fpa_error *error)
{
    reader in = {.next = text, .end = text + size, .error = error, .head = head_new()};
    if (!in.head)
        return fail_memory(error);
    read_fields(&in);
    read_matrices(&in);
    lift_read(&in);
    read_terms(&in);
    reader_begin(&in, "end");
    reader_finish(&in);
    fpa_status status = in.status ? in.status : head_validate(in.head, error);
    if (status == FPA_OK)
        status = check_canonical(&in, text, size);
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
