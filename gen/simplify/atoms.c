/* Atoms: the coarsest partition of the symbols such that every linear form of the kernel has one coefficient on
 * each set. The kernel then is a polynomial in the sums over these sets, forms that share no symbol, so that equal
 * monomials of different terms are recognised. */
#include <string.h>

#include "passes.h"

typedef struct atom_part {
    int atom;
    fpa_number gram;
} atom_part;

typedef struct atom_table {
    const fpa_expression *e;
    size_t *offsets; /* symbol of a source's row 0 */
    /* [symbols] equal for symbols with equal coefficients in all forms; 0: in no form */
    uint64_t *signatures;
    int *atom_of; /* [symbols] */
    int count;
    fpa_branch *atoms; /* [count] */
    int *part_start;   /* [forms + 1] */
    atom_part *parts;  /* each form as a sum of gram * atom */
} atom_table;

static size_t symbol_of(const atom_table *t, const fpa_branch *form, int w)
{
    return t->offsets[form->source + 1] + (size_t)form->row[w];
}

/* Which forms occur in monomials; others belonged to monomials that have cancelled. */
static bool *used_forms(arena *memory, const fpa_expression *e)
{
    bool *used = arena_array(memory, (size_t)e->form_count, sizeof *used);
    for (int i = 0; used && i < e->polynomial.count; i++)
        for (int j = 0; j < polynomial_monomial_degree(&e->polynomial, i); j++)
            used[polynomial_factors(&e->polynomial, i)[j]] = true;
    return used;
}

/* A symbol's signature is a hash of its coefficients in all forms and of its source. */
static size_t sign_symbols(atom_table *t, const bool *used)
{
    size_t total = 0;
    for (int f = 0; f < t->e->form_count; f++) {
        const fpa_branch *form = &t->e->forms[f];
        for (int w = 0; used[f] && w < form->width; w++, total++) {
            uint64_t *signature = &t->signatures[symbol_of(t, form, w)];
            uint64_t start = *signature ? *signature : hash_word(1, (uint64_t)(int64_t)form->source);
            *signature = hash_number(hash_word(start, (uint64_t)f), linear_gram(form, w)) | 1;
        }
    }
    return total;
}

/* Numbers the signatures in the order of their first symbols: sets atom_of and count. */
static bool number_atoms(arena *memory, atom_table *t, size_t symbols, size_t listed)
{
    size_t slot_count = 16;
    while (slot_count < 2 * listed)
        slot_count *= 2;
    uint64_t *keys = arena_array(memory, slot_count, sizeof *keys);
    int *ids = arena_array(memory, slot_count, sizeof *ids);
    if (!keys || !ids)
        return false;
    for (size_t i = 0; i < symbols; i++) {
        if (!t->signatures[i])
            continue;
        size_t slot = (t->signatures[i] >> 1) & (slot_count - 1);
        while (keys[slot] && keys[slot] != t->signatures[i])
            slot = (slot + 1) & (slot_count - 1);
        if (!keys[slot]) {
            keys[slot] = t->signatures[i];
            ids[slot] = t->count++;
        }
        t->atom_of[i] = ids[slot];
    }
    return true;
}

static bool fill_atoms(arena *memory, atom_table *t, int sources)
{
    t->atoms = arena_array(memory, (size_t)t->count, sizeof *t->atoms);
    if (!t->atoms)
        return false;
    for (size_t i = 0; i < t->offsets[sources]; i++)
        if (t->signatures[i])
            t->atoms[t->atom_of[i]].width++;
    for (int a = 0; a < t->count; a++) {
        t->atoms[a].row = arena_array(memory, (size_t)t->atoms[a].width, sizeof(int));
        if (!t->atoms[a].row)
            return false;
        t->atoms[a].width = 0;
    }
    for (int source = FPA_INPUT; source < sources - 1; source++)
        for (size_t i = t->offsets[source + 1]; i < t->offsets[source + 2]; i++)
            if (t->signatures[i]) {
                fpa_branch *atom = &t->atoms[t->atom_of[i]];
                atom->source = source;
                atom->row[atom->width++] = (int)(i - t->offsets[source + 1]);
            }
    return true;
}

/* Appends the parts of form f to t->parts. *sound false: the form is not constant on an atom, because two
 * signatures are equal by chance. That practically never happens, and the kernel then stays as it is. */
static void split_form(atom_table *t, int f, int *seen, int *place, bool *sound)
{
    const fpa_branch *form = &t->e->forms[f];
    int end = t->part_start[f];
    for (int w = 0; w < form->width; w++) {
        int atom = t->atom_of[symbol_of(t, form, w)];
        fpa_number gram = linear_gram(form, w);
        if (!seen[atom]++) {
            place[atom] = end;
            t->parts[end++] = (atom_part){atom, gram};
        }
        *sound &= number_equal(t->parts[place[atom]].gram, gram);
    }
    for (int p = t->part_start[f]; p < end; p++) {
        *sound &= seen[t->parts[p].atom] == t->atoms[t->parts[p].atom].width;
        seen[t->parts[p].atom] = 0;
    }
    t->part_start[f + 1] = end;
}

static bool split_forms(arena *memory, atom_table *t, const bool *used, size_t listed, bool *sound)
{
    int *seen = arena_array(memory, (size_t)t->count, sizeof *seen);
    int *place = arena_array(memory, (size_t)t->count, sizeof *place);
    t->parts = arena_array(memory, listed, sizeof *t->parts);
    t->part_start = arena_array(memory, (size_t)t->e->form_count + 1, sizeof *t->part_start);
    if (!seen || !place || !t->parts || !t->part_start)
        return false;
    for (int f = 0; f < t->e->form_count; f++)
        if (used[f])
            split_form(t, f, seen, place, sound);
        else
            t->part_start[f + 1] = t->part_start[f];
    return true;
}

static bool find_atoms(fpa_simplifier *s, atom_table *t, bool *sound)
{
    arena *memory = &s->scratch;
    bool *used = used_forms(memory, t->e);
    t->offsets = symbol_offsets(memory, s->written->d, s->matrices, s->matrix_count);
    if (!used || !t->offsets)
        return false;
    size_t symbols = t->offsets[s->matrix_count + 1];
    t->signatures = arena_array(memory, symbols, sizeof *t->signatures);
    t->atom_of = arena_array(memory, symbols, sizeof *t->atom_of);
    if (!t->signatures || !t->atom_of)
        return false;
    size_t listed = sign_symbols(t, used);
    return number_atoms(memory, t, symbols, listed) && fill_atoms(memory, t, s->matrix_count + 1) &&
           split_forms(memory, t, used, listed, sound);
}

static double count_products(const atom_table *t)
{
    const fpa_polynomial *p = &t->e->polynomial;
    double total = 0;
    for (int i = 0; i < p->count; i++) {
        double products = 1;
        for (int j = 0; j < polynomial_monomial_degree(p, i); j++) {
            int f = polynomial_factors(p, i)[j];
            products *= t->part_start[f + 1] - t->part_start[f];
        }
        total += products;
    }
    return total;
}

/* Multiplies out the forms factors[level] and later; earlier factors have been replaced by the atoms in `atoms`. */
static bool expand_monomial(const atom_table *t, const int *factors, int count, int level, int *atoms,
                            fpa_number weight, fpa_polynomial *sum)
{
    if (level == count)
        return polynomial_add(sum, atoms, count, weight);
    int f = factors[level];
    for (int p = t->part_start[f]; p < t->part_start[f + 1]; p++) {
        atoms[level] = t->parts[p].atom;
        fpa_number product = number_mul(sum->memory, weight, t->parts[p].gram);
        if (!expand_monomial(t, factors, count, level + 1, atoms, product, sum))
            return false;
    }
    return true;
}

bool atoms_expand(fpa_simplifier *s, const fpa_expression *e, fpa_expression *atoms, bool *done)
{
    const fpa_polynomial *p = &e->polynomial;
    atom_table t = {.e = e};
    *done = true;
    if (!find_atoms(s, &t, done) || !expression_init(atoms, &s->scratch, p->degree))
        return false;
    *done = *done && count_products(&t) <= MAX_PRODUCTS;
    if (!*done)
        return true;
    for (int a = 0; a < t.count; a++)
        if (expression_intern(atoms, &t.atoms[a]) != a)
            return false;
    for (int i = 0; i < p->count; i++) {
        int images[POLYNOMIAL_MAX_DEGREE];
        if (!expand_monomial(&t, polynomial_factors(p, i), polynomial_monomial_degree(p, i), 0, images,
                             p->weights[i], &atoms->polynomial))
            return false;
    }
    return polynomial_collect(&atoms->polynomial);
}
