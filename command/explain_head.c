#include "explain_head.h"

#include <stdio.h>

#include "explain_lift.h"
#include "plain_text.h"

static bool same_shape(const fpa_term *a, const fpa_term *b)
{
    if (a->branch_count != b->branch_count)
        return false;
    for (int i = 0; i < a->branch_count; i++) {
        const fpa_branch *left = &a->branches[i], *right = &b->branches[i];
        if (left->kind != right->kind || left->width != right->width)
            return false;
        if (left->kind == FPA_BRANCH_COORDINATES && left->row[0] != right->row[0])
            return false;
    }
    return true;
}

static void print_branches(const fpa_term *term)
{
    if (term->branch_count == 0)
        printf("the constant 1");
    for (int i = 0; i < term->branch_count; i++) {
        const fpa_branch *branch = &term->branches[i];
        const char *name = branch_kind_name(branch->kind), *between = i ? " x " : "";
        if (branch->kind == FPA_BRANCH_COORDINATES && branch->width > 1)
            printf("%s%s %d..%d", between, name, branch->row[0] + 1, branch->row[branch->width - 1] + 1);
        else if (branch->kind == FPA_BRANCH_COORDINATES)
            printf("%scoordinate %d", between, branch->row[0] + 1);
        else
            printf("%s%s %d", between, name, branch->width);
    }
}

/* Prints terms: "terms 3..10  select 8 x diagonal 40", with consecutive terms of equal shape on one line. */
static void print_terms(const fpa_head *head)
{
    enum { LINES = 12 };
    int line = 0, first = 0;
    for (; first < head->term_count && line < LINES; line++) {
        int last = first;
        while (last + 1 < head->term_count && same_shape(&head->terms[first], &head->terms[last + 1]))
            last++;
        char weight[NUMBER_TEXT], range[32];
        number_print(weight, head->terms[first].weight);
        snprintf(range, sizeof range, last > first ? "%d..%d" : "%d", first + 1, last + 1);
        printf("  %-10s ", range);
        print_branches(&head->terms[first]);
        if (last == first && !number_is_one(head->terms[first].weight))
            printf("   weight %s", weight);
        putchar('\n');
        first = last + 1;
    }
    if (first < head->term_count)
        printf("  and %d more\n", head->term_count - first);
}

static void print_matrices(const fpa_head *head)
{
    for (int i = 0; i < head->matrix_count; i++) {
        const fpa_matrix *matrix = &head->matrices[i];
        if (matrix->kind == FPA_MATRIX_TRAINABLE)
            printf("  weights %s: [%s%d, %d] given at run time\n", matrix->name,
                   matrix->per_head ? "heads, " : "", matrix->rows, matrix->cols);
        if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
            printf("  weights %s: [%s%d] given at run time\n", matrix->name,
                   matrix->per_head ? "heads, " : "", matrix->cols);
    }
}

void explain_head_print(const fpa_head *head)
{
    printf("head %s (", head->name);
    print_escaped(stdout, head->origin ? head->origin : "no file");
    puts(")");
    printf("  d = %d, dv = %d, degree %d, %s", head_width(head), head->dv, head_degree(head),
           head->causal ? "causal" : "not causal");
    if (head->scale != 1)
        printf(", scale %.9g", head->scale);
    printf(", normaliser %s", normalize_name(head->normalize));
    if (head->normalize == FPA_NORMALIZE_SUM || head->normalize == FPA_NORMALIZE_MAX)
        printf(" (eps %g)", head->eps);
    if (head->window)
        printf(", window %d", head->window);
    printf("%s, %s, state %s", head->gate ? ", gated" : "", dtype_name(head->dtype),
           dtype_name(head->state_dtype));
    if (head->products != FPA_PRODUCTS_PLAIN)
        printf(", products %s", products_name(head->products));
    printf("\n\n%d term%s as written\n", head->term_count, head->term_count == 1 ? "" : "s");
    print_terms(head);
    if (head->window)
        printf("  the newest %d key%s: exp(scale q.k) instead, of q and k as given\n", head->window,
               head->window == 1 ? "" : "s");
    print_matrices(head);
    explain_lift_print(head);
    for (int i = 0; i < head->note_count; i++) {
        fputs(i ? "  " : "\n  ", stdout);
        print_escaped(stdout, head->notes[i]);
        putchar('\n');
    }
}
