/* Selects the search for a head's symmetry: by coordinates, or by dense matrices. */
#include "symmetry_search.h"

static bool has_rows_of(const fpa_symmetry_search *s, fpa_matrix_kind kind)
{
    for (int i = 0; i < s->score->dot_count; i++) {
        const int source = s->score->dots[i].source;
        if (source != FPA_INPUT && s->head->matrices[source].kind == kind)
            return true;
    }
    return false;
}

/* Lists the factors with powers above 0 of each monomial, since most powers of a large score are 0. */
static bool list_factors(fpa_symmetry_search *s)
{
    const fpa_score *score = s->score;
    size_t count = 0;
    for (int m = 0; m < score->monomial_count; m++)
        for (int i = 0; i < score->dot_count; i++)
            count += score->monomials[m].power[i] > 0;
    s->factors = arena_array(&s->scratch, count, sizeof *s->factors);
    s->first = arena_array(&s->scratch, (size_t)score->monomial_count + 1, sizeof *s->first);
    if (!s->factors || !s->first)
        return false;
    for (int m = 0; m < score->monomial_count; m++) {
        s->first[m + 1] = s->first[m];
        for (int i = 0; i < score->dot_count; i++)
            if (score->monomials[m].power[i])
                s->factors[s->first[m + 1]++] = (fpa_factor){i, score->monomials[m].power[i]};
    }
    return true;
}

static bool search(fpa_symmetry_search *s, const fpa_head *written)
{
    const bool dense = has_rows_of(s, FPA_MATRIX_CONSTANT);
    const bool weighted = has_rows_of(s, FPA_MATRIX_TRAINABLE_DIAGONAL);
    if (written->lift) {
        s->found->kind = SYMMETRY_BEHIND_MAPS;
        return true;
    }
    if (has_rows_of(s, FPA_MATRIX_TRAINABLE) || (dense && weighted)) {
        s->found->kind = SYMMETRY_AT_RUN_TIME;
        return true;
    }
    if (dense && (s->head->d > SYMMETRY_MOST || s->score->dot_count > SYMMETRY_MOST)) {
        s->found->kind = SYMMETRY_TOO_LARGE;
        return true;
    }
    s->found->kind = weighted ? SYMMETRY_AT_LEAST : SYMMETRY_EXACT;
    return list_factors(s) && (dense ? symmetry_of_dense(s) : symmetry_of_coordinates(s));
}

fpa_status symmetry_find(const fpa_head *written, const fpa_simplified *simple, fpa_symmetry *symmetry,
                         fpa_error *error)
{
    fpa_symmetry_search s = {.head = simple->head, .score = &simple->score, .found = symmetry};
    *symmetry = (fpa_symmetry){.d = simple->head->d};
    const bool done = search(&s, written);
    arena_free(&s.scratch);
    if (done)
        return FPA_OK;
    symmetry_free(symmetry);
    return fail_memory(error);
}

void symmetry_free(fpa_symmetry *symmetry)
{
    arena_free(&symmetry->memory);
    *symmetry = (fpa_symmetry){0};
}

int symmetry_dimension(const fpa_symmetry *symmetry)
{
    int sum = 0;
    for (int i = 0; i < symmetry->part_count; i++)
        sum += symmetry->parts[i].dimension;
    return sum;
}
