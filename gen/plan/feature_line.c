#include "feature_line.h"

#include "base/round.h"
#include "features.h"
#include "passes.h"

enum {
    PIECE = 8,
    MOST_FEATURES = 256, /* so that one block of a pass holds all sums of 128 columns */
    MOST_ROWS = 96       /* so that a thread can sum up the gradients of all rows in registers */
};

static bool has_range(const fpa_term *term)
{
    bool has = term->branch_count <= MOST_FACTORS_OF_F16 && f16_has(term->weight.value);
    for (int b = 0; b < term->branch_count; b++)
        for (int w = 0; w < term->branches[b].width; w++)
            has = has && f16_has(branch_gram(&term->branches[b], w));
    return has;
}

static bool leaves_range(const fpa_head *head)
{
    for (int t = 0; t < head->term_count; t++)
        if (!has_range(&head->terms[t]))
            return head->dtype == FPA_F16;
    return false;
}

bool feature_line_suits(const fpa_simplified *rows, const fpa_head *written, const fpa_target *target)
{
    const fpa_head *head = rows->head;
    return rows->made && head->scale == 1 && head_degree(head) > 1 && head_features(head) <= MOST_FEATURES &&
           head->d <= MOST_ROWS && !leaves_range(head) && passes_suit_lines(head, written, target);
}

static fpa_branch *make_branch(arena *memory, int width)
{
    fpa_branch *branch = arena_array(memory, 1, sizeof *branch);
    *branch = (fpa_branch){.kind = FPA_BRANCH_IDENTITY, .source = FPA_INPUT, .width = width};
    branch->row = arena_array(memory, (size_t)width, sizeof *branch->row);
    for (int w = 0; w < width; w++)
        branch->row[w] = w;
    return branch;
}

/* A score of one dot product, of all features. */
static fpa_score make_score(arena *memory, const fpa_branch *dot)
{
    int *power = arena_array(memory, 1, sizeof *power);
    const fpa_monomial monomial = {number_int(1), power};
    *power = 1;
    return (fpa_score){.dot_count = 1,
                       .dots = arena_copy(memory, dot, sizeof *dot),
                       .monomial_count = 1,
                       .monomials = arena_copy(memory, &monomial, sizeof monomial)};
}

const fpa_simplified *feature_line_make(const fpa_simplified *rows, arena *memory)
{
    const int width = (int)round_up((int)head_features(rows->head), PIECE);
    fpa_simplified *line = arena_copy(memory, rows, sizeof *rows);
    fpa_head *head = arena_copy(memory, rows->head, sizeof *rows->head);
    fpa_term *term = arena_array(memory, 1, sizeof *term);
    fpa_branch *branch = make_branch(memory, width);
    *term = (fpa_term){number_int(1), 1, branch};
    head->memory = (arena){0}; /* everything belongs to `memory` or to the other head */
    head->d = width;
    head->term_count = 1;
    head->terms = term;
    line->head = head;
    line->score = make_score(memory, branch);
    return line;
}
