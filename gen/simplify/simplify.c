/* Runs the passes in their order, and chooses the result. */
#include "simplify.h"

#include <math.h>

#include "passes.h"

/* Copies all fields of the head except matrices and terms. */
static bool copy_fields(const fpa_head *head, fpa_head *copy)
{
    arena memory = copy->memory;
    *copy = *head;
    copy->memory = memory;
    copy->matrix_count = copy->term_count = 0;
    copy->matrices = NULL;
    copy->terms = NULL;
    copy->name = head->name ? arena_string(&copy->memory, head->name) : NULL;
    copy->origin = head->origin ? arena_string(&copy->memory, head->origin) : NULL;
    return (copy->name || !head->name) && (copy->origin || !head->origin);
}

static bool start_simplifier(fpa_simplifier *s)
{
    const fpa_head *head = s->written;
    s->matrix_count = s->matrix_capacity = head->matrix_count;
    s->matrices = head->matrices;
    s->simple->head = head_new();
    if (!s->simple->head || !copy_fields(head, s->simple->head))
        return false;
    s->simple->written = head_features(head);
    return true;
}

/* --- the expressions: as written, and merged --- */

static bool has_constant_forms(const fpa_simplifier *s, const fpa_expression *e)
{
    for (int f = 0; f < e->form_count; f++)
        if (e->forms[f].source != FPA_INPUT && s->matrices[e->forms[f].source].kind == FPA_MATRIX_CONSTANT)
            return true;
    return false;
}

static bool reduce_if_constant(fpa_simplifier *s, fpa_expression *e)
{
    fpa_expression reduced;
    if (!has_constant_forms(s, e))
        return true;
    if (!matrix_reduce(s, e, &reduced))
        return false;
    *e = reduced;
    return true;
}

static fpa_status check_expressions(fpa_simplifier *s, const char *what, const fpa_expression *a,
                                    const fpa_expression *b)
{
    const size_t *offsets = symbol_offsets(&s->scratch, s->written->d, s->matrices, s->matrix_count);
    if (!offsets)
        return fail_memory(s->error);
    return identity_check(s, what, (fpa_sum){.expression = a, .offsets = offsets},
                          (fpa_sum){.expression = b, .offsets = offsets});
}

/* The head's terms in distinct linear forms, over matrices that are as small as possible. */
static fpa_status express_written(fpa_simplifier *s, fpa_expression *written)
{
    const fpa_head *head = s->written;
    if (!expression_of_terms(written, &s->scratch, head->terms, head->term_count))
        return fail_memory(s->error);
    const size_t *offsets = symbol_offsets(&s->scratch, head->d, s->matrices, s->matrix_count);
    if (!offsets)
        return fail_memory(s->error);
    fpa_status status =
        identity_check(s, "collecting equal branches", (fpa_sum){.head = head, .offsets = offsets},
                       (fpa_sum){.expression = written, .offsets = offsets});
    if (status != FPA_OK)
        return status;
    if (!reduce_if_constant(s, written))
        return fail_memory(s->error);
    if (!written->polynomial.count)
        return fail(s->error, FPA_INVALID, head->origin, "the kernel is zero: its terms cancel");
    return FPA_OK;
}

static bool note_merge(fpa_simplifier *s, int atoms, const fpa_expression *merged)
{
    return atoms <= merged->form_count ||
           simplify_note(s, "%d terms over %d sets of rows merged into %d linear form%s",
                         s->written->term_count, atoms, merged->form_count,
                         merged->form_count == 1 ? "" : "s");
}

/* One round over *merged: multiplies out over atoms and merges these. *fewer: there are fewer forms than atoms. */
static fpa_status merge_round(fpa_simplifier *s, fpa_expression *merged, bool *fewer)
{
    bool done;
    fpa_expression atoms, next;
    if (!atoms_expand(s, merged, &atoms, &done))
        return fail_memory(s->error);
    if (!done)
        return simplify_note(s, "left as written: expanded it has more than %d products", MAX_PRODUCTS)
                   ? FPA_OK
                   : fail_memory(s->error);
    if (!atoms.polynomial.count)
        return fail(s->error, FPA_INVALID, s->written->origin, "the kernel is zero: its terms cancel");
    if (!atoms_merge(s, &atoms, &next))
        return fail_memory(s->error);
    fpa_status status = check_expressions(s, "merging rows into linear forms", merged, &next);
    if (status != FPA_OK)
        return status;
    *fewer |= next.form_count < atoms.form_count;
    *merged = next;
    return note_merge(s, atoms.form_count, merged) ? FPA_OK : fail_memory(s->error);
}

/* A kernel in one form cannot be simplified further. Else rounds follow: merged forms may combine rows of a
 * constant matrix whose Gram is simple only as a whole (blocks of an orthogonal matrix). */
static fpa_status express_merged(fpa_simplifier *s, const fpa_expression *written, fpa_expression *merged,
                                 bool *fewer)
{
    int notes = -1;
    *merged = *written;
    for (int round = 0; round < 3 && merged->form_count > 1 && notes != s->matrix_notes; round++) {
        notes = s->matrix_notes;
        fpa_status status = merge_round(s, merged, fewer);
        if (status != FPA_OK)
            return status;
        if (!reduce_if_constant(s, merged))
            return fail_memory(s->error);
    }
    return FPA_OK;
}

/* The fewest features of an expression or of its expansion over atoms, if that has not too many terms. */
static bool fewest_features(fpa_simplifier *s, const fpa_expression *e, double *fewest)
{
    fpa_expression atoms;
    bool done;
    fpa_feature_count count = features_count(e, 1);
    *fewest = count.features;
    if (!atoms_expand(s, e, &atoms, &done))
        return false;
    count = features_count(&atoms, 1);
    if (done && count.features < *fewest && count.terms <= HEAD_MAX_TERMS)
        *fewest = count.features;
    return true;
}

/* Transforms dense branches to a basis in which all are diagonal, if that reduces D by at least a fifth: features
 * are then products of single rows, which are slower than blocks. */
static bool diagonalize_if_smaller(fpa_simplifier *s, fpa_expression *written)
{
    fpa_expression joint;
    fpa_joint result;
    double before, after;
    if (written->form_count < 2 || !has_constant_forms(s, written))
        return true;
    if (!joint_diagonalize(s, written, &joint, &result))
        return false;
    if (!result.forms)
        return true;
    if (!fewest_features(s, written, &before) || !fewest_features(s, &joint, &after))
        return false;
    if (after > 0.8 * before)
        return true;
    *written = joint;
    return simplify_note(
        s, "%d branches are diagonalised together over %d rows (residual of the Gram matrices %.1e)",
        result.forms, result.rows, result.residual);
}

/* --- the choice between them --- */

static bool terms_fit(const fpa_expression *e, int block)
{
    return features_count(e, block).terms <= HEAD_MAX_TERMS;
}

/* Whether multiplying out results in fewer features, whatever the blocks are. */
static bool is_smaller(const fpa_expression *a, int a_block, const fpa_expression *b, int b_block)
{
    return features_count(a, 1).features < features_count(b, 1).features &&
           features_count(a, a_block).features < features_count(b, b_block).features;
}

/* Chooses the merged expression if merging found structure or reduces D, and there are not too many terms; else
 * the written one. */
static fpa_status choose_features(fpa_simplifier *s, const fpa_expression *written,
                                  const fpa_expression *merged, bool fewer, const fpa_expression **chosen,
                                  int *block)
{
    int written_block = features_block(written, s->written->block);
    int merged_block = features_block(merged, s->written->block);
    bool better = fewer || is_smaller(merged, merged_block, written, written_block);
    bool merged_fits = terms_fit(merged, merged_block), written_fits = terms_fit(written, written_block);
    bool take = merged_fits && (better || !written_fits);
    *chosen = take ? merged : written;
    *block = take ? merged_block : written_block;
    if (merged_fits || written_fits)
        return FPA_OK;
    return fail(s->error, FPA_UNSUPPORTED, s->written->origin,
                "block = %d makes %.0f terms of symmetric features, more than %d: take a larger block",
                merged_block, features_count(merged, merged_block).terms, HEAD_MAX_TERMS);
}

static bool choose_score(fpa_simplifier *s, const fpa_expression *written, const fpa_expression *merged,
                         const fpa_expression *features, const fpa_expression **chosen)
{
    double written_cost, merged_cost;
    if (!score_cost(&s->scratch, written, &written_cost) || !score_cost(&s->scratch, merged, &merged_cost))
        return false;
    bool take = merged_cost < written_cost || (merged_cost == written_cost && features == merged);
    *chosen = take ? merged : written;
    return true;
}

/* --- the result, in the memory of its head --- */

/* A copy of e whose forms belong to the head. */
static bool copy_forms(const fpa_expression *e, fpa_head *head, fpa_expression *copy)
{
    *copy = *e;
    copy->forms = arena_array(&head->memory, (size_t)e->form_count, sizeof *copy->forms);
    for (int f = 0; copy->forms && f < e->form_count; f++) {
        const fpa_branch *form = &e->forms[f];
        fpa_branch *own = &copy->forms[f];
        size_t width = (size_t)form->width;
        *own = *form;
        own->row = arena_copy(&head->memory, form->row, width * sizeof *form->row);
        if (form->gram)
            own->gram = numbers_copy(&head->memory, form->gram, width);
        if (!own->row || (form->gram && !own->gram))
            return false;
        own->kind = features_branch_kind(head, own);
    }
    return copy->forms != NULL;
}

static fpa_status build_head(fpa_simplifier *s, const fpa_expression *features, int block,
                             const fpa_expression *score)
{
    fpa_head *head = s->simple->head;
    fpa_expression own;
    head->matrices = s->matrices; /* until keep_matrices */
    if (!copy_forms(features, head, &own) || !features_build(&own, block, head))
        return fail_memory(s->error);
    if (!copy_forms(score, head, &own))
        return fail_memory(s->error);
    return score_build(s, &own, &head->memory, &s->simple->score);
}

static void mark_sources(const fpa_simplified *simple, bool *used)
{
    for (int t = 0; t < simple->head->term_count; t++)
        for (int b = 0; b < simple->head->terms[t].branch_count; b++)
            used[simple->head->terms[t].branches[b].source + 1] = true;
    for (int f = 0; f < simple->score.dot_count; f++)
        used[simple->score.dots[f].source + 1] = true;
}

static bool copy_matrix(arena *memory, const fpa_matrix *matrix, fpa_matrix *copy)
{
    *copy = *matrix;
    if (matrix->name)
        copy->name = arena_string(memory, matrix->name);
    if (matrix->data)
        copy->data = arena_copy(memory, matrix->data,
                                (size_t)matrix->rows * (size_t)matrix->cols * sizeof *matrix->data);
    return (copy->name || !matrix->name) && (copy->data || !matrix->data);
}

/* Keeps all run-time matrices in their order, and the constants that are used; *origin[m]: index in s->matrices of
 * the head's matrix m. */
static bool keep_matrices(fpa_simplifier *s, int **origin)
{
    fpa_head *head = s->simple->head;
    size_t count = (size_t)s->matrix_count;
    bool *used = arena_array(&s->scratch, count + 1, sizeof *used);
    int *place = arena_array(&s->scratch, count + 1, sizeof *place);
    *origin = arena_array(&s->scratch, count, sizeof **origin);
    head->matrices = arena_array(&head->memory, count, sizeof *head->matrices);
    if (!used || !place || !*origin || !head->matrices)
        return false;
    mark_sources(s->simple, used);
    place[0] = FPA_INPUT;
    for (int m = 0; m < s->matrix_count; m++) {
        if (!used[m + 1] && s->matrices[m].kind == FPA_MATRIX_CONSTANT)
            continue;
        if (!copy_matrix(&head->memory, &s->matrices[m], &head->matrices[head->matrix_count]))
            return false;
        (*origin)[head->matrix_count] = m;
        place[m + 1] = head->matrix_count++;
    }
    for (int t = 0; t < head->term_count; t++)
        for (int b = 0; b < head->terms[t].branch_count; b++)
            head->terms[t].branches[b].source = place[head->terms[t].branches[b].source + 1];
    for (int f = 0; f < s->simple->score.dot_count; f++)
        s->simple->score.dots[f].source = place[s->simple->score.dots[f].source + 1];
    return true;
}

/* Checks the finished features and score against the expressions from which they were made. */
static fpa_status check_result(fpa_simplifier *s, const int *origin, const fpa_expression *features,
                               const fpa_expression *score)
{
    const fpa_head *head = s->simple->head;
    const size_t *offsets = symbol_offsets(&s->scratch, head->d, s->matrices, s->matrix_count);
    size_t *own = arena_array(&s->scratch, (size_t)head->matrix_count + 1, sizeof *own);
    if (!offsets || !own)
        return fail_memory(s->error);
    for (int m = 0; m < head->matrix_count; m++)
        own[m + 1] = offsets[origin[m] + 1];
    fpa_status status = identity_check(s, "the features", (fpa_sum){.head = head, .offsets = own},
                                       (fpa_sum){.expression = features, .offsets = offsets});
    if (status == FPA_OK)
        status = identity_check(s, "the score", (fpa_sum){.score = &s->simple->score, .offsets = own},
                                (fpa_sum){.expression = score, .offsets = offsets});
    return status == FPA_OK ? head_validate_polynomial(head, s->error) : status;
}

/* --- notes on the result --- */

static bool note_result(fpa_simplifier *s, const fpa_expression *kernel)
{
    const fpa_score *score = &s->simple->score;
    char text[KERNEL_TEXT];
    double count = head_features(s->simple->head), rows = 0;
    for (int f = 0; f < score->dot_count; f++)
        rows += score->dots[f].width;
    if (!simplify_note(s, "D %.0f -> %.0f (%d terms, block %d; exact minimum %.0f)", s->simple->written,
                       count, s->simple->head->term_count, s->simple->head->block, s->simple->minimum))
        return false;
    kernel_text(text, s->written, kernel);
    return simplify_note(s, "score: %d dot%s of %.0f rows in all, %d monomial%s: %s", score->dot_count,
                         score->dot_count == 1 ? "" : "s", rows, score->monomial_count,
                         score->monomial_count == 1 ? "" : "s", text);
}

static void set_minimum(fpa_simplifier *s, const fpa_expression *written, const fpa_expression *merged)
{
    double fewest = fmin(features_count(written, 1).features, features_count(merged, 1).features);
    s->simple->minimum = fmin(fewest, head_features_bound(s->written));
}

static fpa_status run_passes(fpa_simplifier *s)
{
    fpa_expression written, merged;
    const fpa_expression *features, *score;
    bool fewer = false;
    int block, *origin;
    if (!start_simplifier(s) || !range_fold(s))
        return fail_memory(s->error);
    fpa_status status = express_written(s, &written);
    if (status == FPA_OK && !diagonalize_if_smaller(s, &written))
        status = fail_memory(s->error);
    if (status == FPA_OK)
        status = express_merged(s, &written, &merged, &fewer);
    if (status == FPA_OK)
        status = choose_features(s, &written, &merged, fewer, &features, &block);
    if (status == FPA_OK)
        status = range_check(s, features);
    if (status != FPA_OK)
        return status;
    if (!choose_score(s, &written, &merged, features, &score))
        return fail_memory(s->error);
    status = build_head(s, features, block, score);
    if (status == FPA_OK && !keep_matrices(s, &origin))
        status = fail_memory(s->error);
    if (status == FPA_OK)
        status = check_result(s, origin, features, score);
    set_minimum(s, &written, &merged);
    if (status == FPA_OK && (!note_result(s, score) || !warn_result(s, features_count(features, 1).features)))
        status = fail_memory(s->error);
    return status;
}

/* The head without its lift: a polynomial of the coordinates, which kernels do not scale or project again. */
static fpa_head polynomial_of(const fpa_head *head)
{
    fpa_head polynomial = *head;
    if (head->lift) {
        polynomial.lift = NULL;
        polynomial.matrices = NULL;
        polynomial.matrix_count = 0;
        polynomial.scale = 1;
    }
    return polynomial;
}

fpa_status simplify(const fpa_head *head, fpa_simplified *simple, fpa_error *error)
{
    const fpa_head polynomial = polynomial_of(head);
    fpa_simplifier s = {.written = &polynomial, .simple = simple, .error = error};
    *simple = (fpa_simplified){0};
    fpa_status status = run_passes(&s);
    arena_free(&s.scratch);
    if (status != FPA_OK)
        simplified_free(simple);
    return status;
}

void simplified_free(fpa_simplified *simple)
{
    head_free(simple->head);
    *simple = (fpa_simplified){0};
}
