/* Expressions and simplified heads as text for people. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "passes.h"

/* --- kernel_text: a text of fixed size --- */

typedef struct text_room {
    char *text;
    size_t used; /* may exceed KERNEL_TEXT: the text is then cut */
} text_room;

__attribute__((format(printf, 2, 3))) static void put(text_room *room, const char *format, ...)
{
    va_list arguments;
    size_t at = room->used < KERNEL_TEXT ? room->used : KERNEL_TEXT - 1;
    va_start(arguments, format);
    int length = vsnprintf(room->text + at, KERNEL_TEXT - at, format, arguments);
    va_end(arguments);
    room->used += length > 0 ? (size_t)length : 0;
}

static void put_form(text_room *room, const fpa_head *head, const fpa_expression *e, int form)
{
    const fpa_branch *f = &e->forms[form];
    if (f->source == FPA_INPUT && f->width == head->d && !f->gram)
        put(room, "(q.k)");
    else
        put(room, "s%d", form + 1);
}

static void put_weight(text_room *room, fpa_number weight, bool first, bool constant)
{
    char text[NUMBER_TEXT];
    bool negative = number_sign(weight) < 0;
    number_print(text, weight);
    if (!first || negative)
        put(room, "%s", first ? "-" : negative ? " - " : " + ");
    char *minus = negative ? strchr(text, '-') : NULL;
    if (minus)
        memmove(minus, minus + 1, strlen(minus));
    if (strcmp(text, "1") != 0 || constant)
        put(room, "%s%s", text, constant ? "" : " ");
}

void kernel_text(char text[KERNEL_TEXT], const fpa_head *head, const fpa_expression *e)
{
    const fpa_polynomial *p = &e->polynomial;
    text_room room = {text, 0};
    put(&room, "k = ");
    for (int i = p->count - 1; i >= 0 && room.used < KERNEL_TEXT; i--) {
        const int *factors = polynomial_factors(p, i);
        int degree = polynomial_monomial_degree(p, i);
        put_weight(&room, p->weights[i], i == p->count - 1, degree == 0);
        for (int j = 0, power; j < degree; j += power) {
            for (power = 1; j + power < degree && factors[j + power] == factors[j];)
                power++;
            put(&room, "%s", j ? " " : "");
            put_form(&room, head, e, factors[j]);
            if (power > 1)
                put(&room, "^%d", power);
        }
    }
    if (room.used >= KERNEL_TEXT)
        snprintf(text + KERNEL_TEXT - 5, 5, " ...");
}

/* --- simplified_print --- */

static void print_source(FILE *out, const fpa_head *head, int source)
{
    if (source == FPA_INPUT)
        fputs("input", out);
    else if (head->matrices[source].name)
        fputs(head->matrices[source].name, out);
    else
        fprintf(out, "matrix%d", source + 1);
}

/* "input[1..8, 9..64 x 2]": runs of rows with one weight, counted from 1. */
static void print_branch(FILE *out, const fpa_head *head, const fpa_branch *branch)
{
    char text[NUMBER_TEXT];
    print_source(out, head, branch->source);
    for (int w = 0, run; w < branch->width; w += run) {
        fpa_number gram = linear_gram(branch, w);
        for (run = 1; w + run < branch->width && branch->row[w + run] == branch->row[w] + run &&
                      number_equal(linear_gram(branch, w + run), gram);)
            run++;
        fprintf(out, "%s%d", w ? ", " : "[", branch->row[w] + 1);
        if (run > 1)
            fprintf(out, "..%d", branch->row[w] + run);
        number_print(text, gram);
        if (!number_is_one(gram))
            fprintf(out, " x %s", text);
    }
    fputc(']', out);
}

static void print_terms(FILE *out, const fpa_head *head)
{
    char weight[NUMBER_TEXT];
    for (int t = 0; t < head->term_count; t++) {
        number_print(weight, head->terms[t].weight);
        fprintf(out, "term %d: %s", t + 1, weight);
        for (int b = 0; b < head->terms[t].branch_count; b++) {
            fputs(" * ", out);
            print_branch(out, head, &head->terms[t].branches[b]);
        }
        fputc('\n', out);
    }
}

static void print_score(FILE *out, const fpa_head *head, const fpa_score *score)
{
    char weight[NUMBER_TEXT];
    for (int f = 0; f < score->dot_count; f++) {
        fprintf(out, "dot s%d: ", f + 1);
        print_branch(out, head, &score->dots[f]);
        fputc('\n', out);
    }
    for (int i = 0; i < score->monomial_count; i++) {
        number_print(weight, score->monomials[i].weight);
        fprintf(out, "monomial %d: %s", i + 1, weight);
        for (int f = 0; f < score->dot_count; f++) {
            int power = score->monomials[i].power[f];
            if (power == 1)
                fprintf(out, " * s%d", f + 1);
            else if (power)
                fprintf(out, " * s%d^%d", f + 1, power);
        }
        fputc('\n', out);
    }
}

char *simplified_print(const fpa_simplified *simple)
{
    text_buffer buffer;
    FILE *out = text_open(&buffer);
    if (!out)
        return NULL;
    fprintf(out, "simplified %s: D %.0f -> %.0f, block %d\n", simple->head->name, simple->written,
            head_features(simple->head), simple->head->block);
    print_terms(out, simple->head);
    print_score(out, simple->head, &simple->score);
    for (int i = 0; i < simple->note_count; i++)
        fprintf(out, "note: %s\n", simple->notes[i]);
    for (int i = 0; i < simple->warning_count; i++)
        fprintf(out, "warning: %s\n", simple->warnings[i]);
    return text_finish(&buffer);
}
