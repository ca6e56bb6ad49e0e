/* Merging atoms into linear forms. If dP/dB = beta dP/dA as polynomials, then P depends on A and B only through A
 * + beta B, and setting B to 0 gives the polynomial in that form. So TSPOW, whose atoms are blocks, and SPOW,
 * whose atoms are coordinates, both become powers of one form.
 *
 * Candidates have the same ratio of the derivatives at two random points modulo a prime, which does not depend on
 * beta; each is then proved coefficient by coefficient. */
#include <stdlib.h>
#include <string.h>

#include "passes.h"

enum { POINTS = 2 };

typedef struct merge_candidate {
    int source; /* source of the atom: a form has rows of one source only */
    uint64_t key;
    int atom;
} merge_candidate;

typedef struct merge_table {
    arena *memory;
    const fpa_expression *e;
    uint64_t (*derivatives)[POINTS]; /* [atoms] modulo RESIDUE_PRIME at each point */
    int *start, *monomials;          /* monomials[start[a] .. start[a+1]) contain atom a */
    int *class_of;                   /* [atoms] the first atom of the form that it is merged into */
    fpa_number *beta;                /* [atoms] its weight in that form */
} merge_table;

/* Adds weight * d(prod of factors)/dv to the derivative by each variable v that occurs. */
static void add_derivatives(merge_table *t, int monomial, int point)
{
    const fpa_polynomial *p = &t->e->polynomial;
    const int *factors = polynomial_factors(p, monomial);
    int count = polynomial_monomial_degree(p, monomial);
    uint64_t after[POLYNOMIAL_MAX_DEGREE + 1] = {0};
    uint64_t before = residue_number(p->weights[monomial]);
    uint64_t x[POLYNOMIAL_MAX_DEGREE];
    after[count] = 1;
    for (int j = count - 1; j >= 0; j--) {
        x[j] = hash_word((uint64_t)point + 1, (uint64_t)factors[j]) % RESIDUE_PRIME;
        after[j] = residue_mul(after[j + 1], x[j]);
    }
    for (int j = 0; j < count; j++) {
        uint64_t *sum = &t->derivatives[factors[j]][point];
        *sum = residue_add(*sum, residue_mul(before, after[j + 1]));
        before = residue_mul(before, x[j]);
    }
}

static int compare_candidates(const void *left, const void *right)
{
    const merge_candidate *a = left, *b = right;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->atom > b->atom) - (a->atom < b->atom);
}

/* The atoms, sorted so that atoms with the same key, which may be merged, are consecutive. */
static merge_candidate *find_candidates(merge_table *t)
{
    int atoms = t->e->form_count;
    merge_candidate *candidates = arena_array(t->memory, (size_t)atoms, sizeof *candidates);
    t->derivatives = arena_array(t->memory, (size_t)atoms, sizeof *t->derivatives);
    if (!candidates || !t->derivatives)
        return NULL;
    for (int i = 0; i < t->e->polynomial.count; i++)
        for (int point = 0; point < POINTS; point++)
            add_derivatives(t, i, point);
    for (int a = 0; a < atoms; a++) {
        const uint64_t *values = t->derivatives[a];
        uint64_t key = residue_mul(values[0], residue_inverse(values[1]));
        candidates[a] = (merge_candidate){t->e->forms[a].source, key, a};
    }
    qsort(candidates, (size_t)atoms, sizeof *candidates, compare_candidates);
    return candidates;
}

static bool index_monomials(merge_table *t)
{
    const fpa_polynomial *p = &t->e->polynomial;
    int atoms = t->e->form_count;
    size_t room = (size_t)p->count * (size_t)p->degree;
    int *fill = arena_array(t->memory, (size_t)atoms, sizeof *fill);
    t->start = arena_array(t->memory, (size_t)atoms + 1, sizeof *t->start);
    t->monomials = arena_array(t->memory, room, sizeof *t->monomials);
    if (!fill || !t->start || !t->monomials)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < p->count; i++) {
            const int *factors = polynomial_factors(p, i);
            for (int j = 0; j < p->degree && factors[j] >= 0; j++)
                if (j && factors[j] == factors[j - 1])
                    continue;
                else if (pass)
                    t->monomials[fill[factors[j]]++] = i;
                else
                    t->start[factors[j] + 1]++;
        }
        for (int a = 0; !pass && a < atoms; a++) {
            t->start[a + 1] += t->start[a];
            fill[a] = t->start[a];
        }
    }
    return true;
}

/* The derivative of one monomial by an atom: the factors without one occurrence of the atom; returns the weight
 * times the atom's power. */
static fpa_number derive_monomial(const merge_table *t, int monomial, int atom, int *factors)
{
    const fpa_polynomial *p = &t->e->polynomial;
    const int *all = polynomial_factors(p, monomial);
    int power = 0, count = 0;
    for (int j = 0; j < p->degree && all[j] >= 0; j++)
        if (all[j] != atom || power++)
            factors[count++] = all[j];
    return number_mul(t->memory, p->weights[monomial], number_int(power));
}

static bool derive_polynomial(const merge_table *t, int atom, fpa_polynomial *derivative)
{
    int factors[POLYNOMIAL_MAX_DEGREE];
    if (!polynomial_init(derivative, t->memory, t->e->polynomial.degree))
        return false;
    for (int m = t->start[atom]; m < t->start[atom + 1]; m++) {
        int monomial = t->monomials[m];
        fpa_number weight = derive_monomial(t, monomial, atom, factors);
        int count = polynomial_monomial_degree(&t->e->polynomial, monomial) - 1;
        if (!polynomial_add(derivative, factors, count, weight))
            return false;
    }
    return true;
}

/* Whether dP/d(atom) = *beta * derivative with one *beta > 0, in exact arithmetic. */
static bool prove_multiple(const merge_table *t, int atom, const fpa_polynomial *derivative, fpa_number *beta)
{
    int factors[POLYNOMIAL_MAX_DEGREE];
    *beta = number_int(0);
    if (t->start[atom + 1] - t->start[atom] != derivative->count)
        return false;
    for (int m = t->start[atom]; m < t->start[atom + 1]; m++) {
        int monomial = t->monomials[m];
        fpa_number weight = derive_monomial(t, monomial, atom, factors);
        int count = polynomial_monomial_degree(&t->e->polynomial, monomial) - 1;
        int found = polynomial_find(derivative, factors, count);
        if (found < 0)
            return false;
        fpa_number ratio = number_div(t->memory, weight, derivative->weights[found]);
        if (m == t->start[atom])
            *beta = ratio;
        if (!number_equal(ratio, *beta))
            return false;
    }
    return number_sign(*beta) > 0;
}

/* Merges those candidates of one key whose derivatives are multiples of the first one's into the first one's
 * class. */
static bool merge_run(merge_table *t, const merge_candidate *run, int count)
{
    fpa_polynomial derivative;
    if (count < 2)
        return true;
    if (!derive_polynomial(t, run[0].atom, &derivative))
        return false;
    for (int i = 1; i < count; i++) {
        fpa_number beta;
        if (!prove_multiple(t, run[i].atom, &derivative, &beta))
            continue;
        t->class_of[run[i].atom] = run[0].atom;
        t->beta[run[i].atom] = beta;
    }
    return true;
}

static bool find_classes(merge_table *t)
{
    int atoms = t->e->form_count;
    t->class_of = arena_array(t->memory, (size_t)atoms, sizeof *t->class_of);
    t->beta = arena_array(t->memory, (size_t)atoms, sizeof *t->beta);
    if (!t->class_of || !t->beta || !index_monomials(t))
        return false;
    for (int a = 0; a < atoms; a++) {
        t->class_of[a] = a;
        t->beta[a] = number_int(1);
    }
    if (atoms < 2)
        return true;
    const merge_candidate *candidates = find_candidates(t);
    if (!candidates)
        return false;
    for (int first = 0, next; first < atoms; first = next) {
        for (next = first + 1; next < atoms; next++)
            if (candidates[next].source != candidates[first].source ||
                candidates[next].key != candidates[first].key)
                break;
        if (!merge_run(t, candidates + first, next - first))
            return false;
    }
    return true;
}

/* widths[c]: the number of rows of all atoms in the class of atom c. */
static int *class_widths(const merge_table *t)
{
    int *widths = arena_array(t->memory, (size_t)t->e->form_count, sizeof *widths);
    for (int a = 0; widths && a < t->e->form_count; a++)
        widths[t->class_of[a]] += t->e->forms[a].width;
    return widths;
}

/* forms[c] = sum over the class of atom c of beta * atom. */
static bool sum_classes(const merge_table *t, fpa_branch *forms, fpa_number *scales)
{
    int atoms = t->e->form_count;
    int *widths = class_widths(t);
    if (!widths)
        return false;
    for (int a = 0; a < atoms; a++) {
        const fpa_branch *atom = &t->e->forms[a];
        fpa_branch *sum = &forms[t->class_of[a]];
        size_t width = (size_t)widths[t->class_of[a]];
        if (!sum->row) {
            *sum = (fpa_branch){.source = atom->source};
            sum->row = arena_array(t->memory, width, sizeof *sum->row);
            sum->gram = arena_array(t->memory, width, sizeof *sum->gram);
            if (!sum->row || !sum->gram)
                return false;
        }
        for (int w = 0; w < atom->width; w++) {
            sum->gram[sum->width] = t->beta[a];
            sum->row[sum->width++] = atom->row[w];
        }
    }
    for (int a = 0; a < atoms; a++) {
        fpa_branch sum = forms[a];
        if (t->class_of[a] == a && !linear_normalize(t->memory, &sum, &forms[a], &scales[a]))
            return false;
    }
    return true;
}

/* The polynomial with every atom that is not the first of its class set to 0. */
static bool restrict_polynomial(const merge_table *t, fpa_polynomial *restricted)
{
    const fpa_polynomial *p = &t->e->polynomial;
    if (!polynomial_init(restricted, t->memory, p->degree))
        return false;
    for (int i = 0; i < p->count; i++) {
        const int *factors = polynomial_factors(p, i);
        int count = polynomial_monomial_degree(p, i);
        bool kept = true;
        for (int j = 0; j < count; j++)
            kept &= t->class_of[factors[j]] == factors[j];
        if (kept && !polynomial_add(restricted, factors, count, p->weights[i]))
            return false;
    }
    return true;
}

bool atoms_merge(fpa_simplifier *s, const fpa_expression *atoms, fpa_expression *merged)
{
    merge_table t = {.memory = &s->scratch, .e = atoms};
    size_t count = (size_t)atoms->form_count;
    fpa_branch *forms = arena_array(t.memory, count, sizeof *forms);
    fpa_number *scales = arena_array(t.memory, count, sizeof *scales);
    fpa_expression restricted = *atoms;
    if (!forms || !scales || !find_classes(&t) || !sum_classes(&t, forms, scales))
        return false;
    return restrict_polynomial(&t, &restricted.polynomial) &&
           expression_map(&restricted, t.memory, forms, scales, merged);
}
