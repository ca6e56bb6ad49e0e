#include "example_head.h"
#include "claims.h"

fpa_head *example_head(void)
{
    fpa_head *head = head_new();
    assert_non_null(head);
    head->name = arena_string(&head->memory, "example");
    head->origin = arena_string(&head->memory, "specs/mine.lua:7");
    head->d = 4;
    head->dv = 3;
    head->matrix_count = 2;
    head->matrices = arena_array(&head->memory, 2, sizeof *head->matrices);
    head->matrices[0] = (fpa_matrix){.kind = FPA_MATRIX_CONSTANT, .rows = 2, .cols = 4};
    head->matrices[0].data = arena_array(&head->memory, 8, sizeof(double));
    head->matrices[0].data[0] = 1.5;
    head->matrices[0].data[7] = -0.1;
    head->matrices[1] = (fpa_matrix){.kind = FPA_MATRIX_TRAINABLE, .rows = 5, .cols = 4, .per_head = true};
    head->matrices[1].name = arena_string(&head->memory, "w");
    head->term_count = 2;
    head->terms = arena_array(&head->memory, 2, sizeof *head->terms);
    for (int t = 0; t < 2; t++) {
        head->terms[t].weight = number_ratio(3 - 4 * t, 1 + t);
        head->terms[t].branch_count = 2;
        head->terms[t].branches = arena_array(&head->memory, 2, sizeof(fpa_branch));
        for (int l = 0; l < 2; l++) {
            fpa_branch *branch = &head->terms[t].branches[l];
            branch->kind = FPA_BRANCH_SELECT;
            branch->source = FPA_INPUT;
            branch->width = 2 + l;
            branch->row = arena_array(&head->memory, 4, sizeof(int));
            for (int w = 0; w < branch->width; w++)
                branch->row[w] = w + t;
        }
    }
    head->terms[0].branches[1].kind = FPA_BRANCH_DIAGONAL;
    head->terms[0].branches[1].gram = arena_array(&head->memory, 4, sizeof(fpa_number));
    for (int w = 0; w < 3; w++)
        head->terms[0].branches[1].gram[w] = number_int(w ? 2 : 1);
    head->terms[1].branches[0].kind = FPA_BRANCH_TRAINABLE;
    head->terms[1].branches[0].source = 1;
    head->terms[1].branches[1].kind = FPA_BRANCH_DENSE;
    head->terms[1].branches[1].source = 0;
    head->terms[1].branches[1].width = 2;
    head->terms[1].branches[1].row[0] = 0;
    head->terms[1].branches[1].row[1] = 1;
    return head;
}
