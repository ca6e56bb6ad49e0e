/* Simplification of random heads: the kernel stays the same polynomial. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "heads.h"
#include "simplify_checked.h"

static fpa_number random_weight(fpa_head *head)
{
    const fpa_number weights[] = {number_int(1),
                                  number_int(2),
                                  number_ratio(1, 3),
                                  number_double(&head->memory, 0.1),
                                  number_double(&head->memory, 1e-9),
                                  number_int(7),
                                  number_double(&head->memory, 1.7)};
    return weights[random_below(7)];
}

static void add_random_matrix(fpa_head *head)
{
    static const char *const names[] = {"a", "b", "c", "e", "f"};
    int rows = 1 + random_below(6), d = head->d, at = head->matrix_count;
    double a[6 * 2], b[2 * 8], w[6 * 8];
    switch (random_below(6)) {
    case 0: /* two rows' combinations */
        random_rows(a, rows, 2);
        random_rows(b, 2, d);
        multiply(a, b, rows, 2, d, w);
        break;
    case 1: /* a multiple of the one before */
        if (at && head->matrices[at - 1].data) {
            rows = head->matrices[at - 1].rows;
            for (int i = 0; i < rows * d; i++)
                w[i] = 3 * head->matrices[at - 1].data[i];
            break;
        }   /* fall through */
    case 2: /* few entries */
        for (int i = 0; i < rows * d; i++)
            w[i] = random_below(4) ? 0 : 1 + random_below(3);
        break;
    case 3:
        add_matrix(head, FPA_MATRIX_TRAINABLE, names[at], rows, NULL);
        return;
    case 4:
        add_matrix(head, FPA_MATRIX_TRAINABLE_DIAGONAL, names[at], d, NULL);
        return;
    default:
        random_rows(w, rows, d);
    }
    add_matrix(head, FPA_MATRIX_CONSTANT, NULL, rows, w);
}

static fpa_branch random_branch(fpa_head *head)
{
    int source = random_below(head->matrix_count + 2) - 2 < 0 ? FPA_INPUT : random_below(head->matrix_count);
    int rows = source == FPA_INPUT ? head->d : head->matrices[source].rows;
    int from = random_below(rows), to = from + 1 + random_below(rows - from);
    fpa_number gram[8];
    for (int w = 0; w < to - from; w++)
        gram[w] = random_below(5) ? random_weight(head) : number_int(0);
    fpa_branch branch = rows_of(head, source, from, to, random_below(3) ? NULL : gram);
    int swap = random_below(branch.width), row = branch.row[0];
    branch.row[0] = branch.row[swap];
    branch.row[swap] = row;
    return branch;
}

static fpa_head *random_head(void)
{
    fpa_head *head = new_head(2 + random_below(7));
    fpa_branch pool[4], branches[4];
    head->block = random_below(4);
    for (int m = random_below(5); m > 0; m--)
        add_random_matrix(head);
    int kinds = 1 + random_below(4);
    for (int b = 0; b < kinds; b++)
        pool[b] = random_branch(head);
    for (int terms = 1 + random_below(6); terms > 0; terms--) {
        int count = random_below(5);
        for (int b = 0; b < count; b++)
            branches[b] = pool[random_below(kinds)];
        fpa_number weight = random_weight(head);
        add_term(head, random_below(4) ? weight : number_sub(&head->memory, number_int(0), weight), branches,
                 count);
    }
    return head;
}

/* But for those whose branches are all zero or whose terms cancel. Simplified again the result is no
 * larger, but in rare heads with blocks, whose pieces of squares merge into forms with larger blocks. */
static void random_heads_keep_their_kernel(void **state)
{
    int checked = 0, smaller = 0, grown = 0;
    for (int i = 0; i < 400; i++) {
        fpa_head *head = random_head();
        fpa_error error;
        fpa_simplified first = {0};
        if (head_validate(head, &error) == FPA_OK && simplify(head, &first, &error) != FPA_INVALID) {
            fpa_simplified simple = simplify_checked(head);
            smaller += head_features(simple.head) < simple.written;
            checked++;
            fpa_simplified again = simplify_checked(simple.head);
            if (simple.head->block < 2)
                assert_true(head_features(again.head) <= head_features(simple.head));
            grown += head_features(again.head) > head_features(simple.head);
            simplified_free(&again);
            simplified_free(&simple);
        }
        simplified_free(&first);
        head_free(head);
    }
    assert_true(checked > 200 && smaller > 100 && grown < 5);
}

int main(void)
{
    printf("random seed %" PRIu64 "\n", random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_heads_keep_their_kernel),
    };
    return cmocka_run_group_tests_name("simplify random", tests, NULL, NULL);
}
