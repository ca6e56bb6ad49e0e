/* head_text: a head's canonical text and its digest. The parser is parse.c.
 *
 *   fpac head 1                         version
 *   name NAME                           then every field, one a line, in a fixed order
 *   ...
 *   products tf32x3                     only when it is not plain
 *   window 64                           only when there is one
 *   matrices 2
 *   constant 2 3                        rows and columns, then one line a row
 *   0x1p+0 0x0p+0 0x3p-1                value = integer * 2^exponent: exact, free of locale
 *   ...
 *   trainable NAME 3 64 shared
 *   lift width 64 ...                   only with a lift: lift_text.c
 *   terms 1
 *   term 2 branches 2                   weight
 *   branch select input 1-8,10          rows, 1-based
 *   branch diagonal input 1-64 gram 1*8,2*56
 *   branch dense matrix 1 1-2
 *   end
 *
 * Weights are spelled as number_write does: "2", "-1/2", "~0x1.8p-70".
 * Equal heads have equal bytes, and the parser takes these bytes only: after reading it
 * prints what it read and compares. */
#include "head.h"

#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "lift_text.h"
#include "words.h"

static const char version_line[] = "fpac head 1";
/* Indexed by fpa_matrix_kind; parse.c reads the same words. */
static const char *const matrix_words[] = {"constant", "trainable", "trainable_diagonal"};

static void print_fields(FILE *out, const fpa_head *head)
{
    fprintf(out, "%s\nname %s\nd %d\ndv %d\nblock %d\nchunk %d\ncausal %d\nscale ", version_line,
            head->name ? head->name : "?", head->d, head->dv, head->block, head->chunk, head->causal);
    text_double(out, head->scale);
    fprintf(out, "\nnormalize %s\neps ", normalize_name(head->normalize));
    text_double(out, head->eps);
    fprintf(out, "\ngate %d\ndtype %s\nstate_dtype %s\n", head->gate, dtype_name(head->dtype),
            dtype_name(head->state_dtype));
    /* not printed, so that heads older than this field keep their digests */
    if (head->products != FPA_PRODUCTS_PLAIN)
        fprintf(out, "products %s\n", products_name(head->products));
    if (head->window)
        fprintf(out, "window %d\n", head->window);
}

static void print_matrix(FILE *out, const fpa_matrix *matrix)
{
    if (matrix->kind != FPA_MATRIX_CONSTANT) {
        fprintf(out, "%s %s %d %d %s\n", matrix_words[matrix->kind], matrix->name ? matrix->name : "?",
                matrix->rows, matrix->cols, matrix->per_head ? "per_head" : "shared");
        return;
    }
    fprintf(out, "%s %d %d", matrix_words[matrix->kind], matrix->rows, matrix->cols);
    if (matrix->heads)
        fprintf(out, " heads %d", matrix->heads);
    fputc('\n', out);
    for (int r = 0; r < matrix->rows * (matrix->heads ? matrix->heads : 1); r++)
        for (int c = 0; c < matrix->cols; c++) {
            text_double(out, matrix->data[(size_t)r * matrix->cols + c]);
            fputc(c + 1 < matrix->cols ? ' ' : '\n', out);
        }
}

static bool has_gram(const fpa_branch *branch)
{
    for (int w = 0; branch->gram && w < branch->width; w++)
        if (!number_is_one(branch->gram[w]))
            return true;
    return false;
}

/* Prints runs of equal weights as "weight*count". False: no memory. */
static bool print_gram(FILE *out, const fpa_branch *branch)
{
    for (int w = 0, next; w < branch->width; w = next) {
        next = w + 1;
        while (next < branch->width && number_equal(branch->gram[next], branch->gram[w]))
            next++;
        if (w)
            fputc(',', out);
        if (!number_write(out, branch->gram[w]))
            return false;
        fprintf(out, "*%d", next - w);
    }
    return true;
}

static bool print_branch(FILE *out, const fpa_branch *branch)
{
    fprintf(out, "branch %s ", branch_kind_name(branch->kind));
    if (branch->source == FPA_INPUT)
        fputs("input ", out);
    else
        fprintf(out, "matrix %d ", branch->source + 1);
    text_rows(out, branch->row, branch->width);
    if (has_gram(branch)) {
        fputs(" gram ", out);
        if (!print_gram(out, branch))
            return false;
    }
    fputc('\n', out);
    return true;
}

static bool print_term(FILE *out, const fpa_term *term)
{
    bool printed;
    fputs("term ", out);
    printed = number_write(out, term->weight);
    fprintf(out, " branches %d\n", term->branch_count);
    for (int l = 0; l < term->branch_count && printed; l++)
        printed = print_branch(out, &term->branches[l]);
    return printed;
}

char *head_print(const fpa_head *head)
{
    text_buffer buffer;
    FILE *out = text_open(&buffer);
    bool failed = false;
    if (!out)
        return NULL;
    print_fields(out, head);
    fprintf(out, "matrices %d\n", head->matrix_count);
    for (int m = 0; m < head->matrix_count; m++)
        print_matrix(out, &head->matrices[m]);
    if (head->lift)
        lift_print(out, head->lift);
    fprintf(out, "terms %d\n", head->term_count);
    for (int t = 0; t < head->term_count && !failed; t++)
        failed = !print_term(out, &head->terms[t]);
    fputs("end\n", out);
    char *text = text_finish(&buffer);
    if (!failed)
        return text;
    free(text);
    return NULL;
}

fpa_status head_digest(const fpa_head *head, char digest[DIGEST_TEXT], fpa_error *error)
{
    char *text = head_print(head);
    if (!text)
        return fail_memory(error);
    SHA256Data((const uint8_t *)text, strlen(text), digest);
    free(text);
    return FPA_OK;
}
