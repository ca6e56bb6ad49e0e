/* linear: linear forms and expressions (passes.h): normalising, collecting, replacing forms. */
#include <stdlib.h>
#include <string.h>

#include "passes.h"

/* Forms are rescaled to integer weights only if these are at most SMALL_INTEGER: integers of 1e15 with a scale of
 * 1e-16 are exact, but their powers leave the range of single precision. */
enum { SMALL_INTEGER = 1 << 20 };

fpa_number linear_gram(const fpa_branch *form, int w)
{
    return form->gram ? form->gram[w] : number_int(1);
}

typedef struct linear_row {
    int row;
    fpa_number gram;
} linear_row;

static int compare_rows(const void *left, const void *right)
{
    const linear_row *a = left, *b = right;
    return (a->row > b->row) - (a->row < b->row);
}

static bool rows_ascend(const fpa_branch *branch)
{
    for (int w = 1; w < branch->width; w++)
        if (branch->row[w - 1] >= branch->row[w])
            return false;
    return true;
}

/* The rows with non-zero weights, ascending; a branch without weights whose rows ascend shares its array. */
static bool sort_rows(arena *memory, const fpa_branch *branch, fpa_branch *form)
{
    *form = *branch;
    if (!branch->gram && rows_ascend(branch))
        return true;
    size_t width = (size_t)branch->width;
    linear_row *rows = arena_array(memory, width, sizeof *rows);
    form->row = arena_array(memory, width, sizeof *form->row);
    form->gram = arena_array(memory, width, sizeof *form->gram);
    if (!rows || !form->row || !form->gram)
        return false;
    form->width = 0;
    for (int w = 0; w < branch->width; w++) {
        fpa_number gram = linear_gram(branch, w);
        if (!number_is_zero(gram))
            rows[form->width++] = (linear_row){branch->row[w], gram};
    }
    qsort(rows, (size_t)form->width, sizeof *rows, compare_rows);
    for (int w = 0; w < form->width; w++) {
        form->row[w] = rows[w].row;
        form->gram[w] = rows[w].gram;
    }
    return true;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The greatest rational of which all weights, which are at most 1, are integer multiples; zero: one of the integers
 * would not be small. */
static fpa_number common_measure(const fpa_branch *form)
{
    int64_t top = 0, bottom = 1;
    for (int w = 0; w < form->width; w++) {
        fpa_number gram = form->gram[w];
        if (!gram.den || gram.den > SMALL_INTEGER)
            return number_int(0);
        int64_t step = gram.den / gcd(gram.den, bottom);
        if (step > SMALL_INTEGER / bottom)
            return number_int(0);
        top = gcd(gram.num, top);
        bottom *= step;
    }
    return number_ratio(top, bottom);
}

static fpa_number largest_gram(arena *memory, const fpa_branch *form)
{
    fpa_number largest = form->gram[0];
    for (int w = 1; w < form->width; w++)
        if (number_compare(memory, form->gram[w], largest) > 0)
            largest = form->gram[w];
    return largest;
}

static bool grams_uniform(const fpa_branch *form)
{
    for (int w = 1; w < form->width; w++)
        if (!number_equal(form->gram[w], form->gram[0]))
            return false;
    return true;
}

/* Divides all weights by the divisor, and multiplies *scale by it. */
static void divide_grams(arena *memory, fpa_branch *form, fpa_number divisor, fpa_number *scale)
{
    for (int w = 0; w < form->width; w++)
        form->gram[w] = number_div(memory, form->gram[w], divisor);
    *scale = number_mul(memory, *scale, divisor);
}

bool linear_normalize(arena *memory, const fpa_branch *branch, fpa_branch *form, fpa_number *scale)
{
    *scale = number_int(1);
    if (!sort_rows(memory, branch, form))
        return false;
    if (!form->gram || !form->width)
        return true;
    if (grams_uniform(form)) {
        *scale = form->gram[0];
        form->gram = NULL;
        return true;
    }
    divide_grams(memory, form, largest_gram(memory, form), scale);
    fpa_number measure = common_measure(form);
    if (!number_is_zero(measure))
        divide_grams(memory, form, measure, scale);
    return true;
}

static uint64_t linear_hash(const fpa_branch *form)
{
    uint64_t hash = hash_word((uint64_t)(int64_t)form->source, form->gram != NULL);
    for (int w = 0; w < form->width; w++) {
        hash = hash_word(hash, (uint64_t)form->row[w]);
        if (form->gram)
            hash = hash_number(hash, form->gram[w]);
    }
    return hash;
}

static bool linear_equal(const fpa_branch *a, const fpa_branch *b)
{
    if (a->source != b->source || a->width != b->width || !a->gram != !b->gram)
        return false;
    for (int w = 0; w < a->width; w++)
        if (a->row[w] != b->row[w] || (a->gram && !number_equal(a->gram[w], b->gram[w])))
            return false;
    return true;
}

bool expression_init(fpa_expression *e, arena *memory, int degree)
{
    *e = (fpa_expression){.form_capacity = 4, .slot_count = 8};
    e->forms = arena_array(memory, (size_t)e->form_capacity, sizeof *e->forms);
    e->slots = arena_array(memory, e->slot_count, sizeof *e->slots);
    return e->forms && e->slots && polynomial_init(&e->polynomial, memory, degree);
}

static size_t find_slot(const fpa_expression *e, const fpa_branch *form)
{
    size_t slot = linear_hash(form) & (e->slot_count - 1);
    while (e->slots[slot] && !linear_equal(&e->forms[e->slots[slot] - 1], form))
        slot = (slot + 1) & (e->slot_count - 1);
    return slot;
}

static bool grow_forms(fpa_expression *e)
{
    arena *memory = e->polynomial.memory;
    size_t capacity = 2 * (size_t)e->form_capacity, slot_count = 2 * e->slot_count;
    fpa_branch *forms = arena_array(memory, capacity, sizeof *forms);
    int *slots = arena_array(memory, slot_count, sizeof *slots);
    if (!forms || !slots || capacity > INT32_MAX)
        return false;
    memcpy(forms, e->forms, (size_t)e->form_count * sizeof *forms);
    e->forms = forms;
    e->form_capacity = (int)capacity;
    e->slots = slots;
    e->slot_count = slot_count;
    for (int f = 0; f < e->form_count; f++)
        e->slots[find_slot(e, &forms[f])] = f + 1;
    return true;
}

int expression_intern(fpa_expression *e, const fpa_branch *form)
{
    size_t slot = find_slot(e, form);
    if (e->slots[slot])
        return e->slots[slot] - 1;
    if (e->form_count == e->form_capacity) {
        if (!grow_forms(e))
            return -1;
        slot = find_slot(e, form);
    }
    e->forms[e->form_count++] = *form;
    e->slots[slot] = e->form_count;
    return e->form_count - 1;
}

static bool add_term(fpa_expression *e, const fpa_term *term)
{
    int factors[POLYNOMIAL_MAX_DEGREE];
    fpa_number weight = term->weight, scale;
    for (int b = 0; b < term->branch_count; b++) {
        fpa_branch form;
        if (!linear_normalize(e->polynomial.memory, &term->branches[b], &form, &scale))
            return false;
        if (!form.width)
            return true;
        factors[b] = expression_intern(e, &form);
        if (factors[b] < 0)
            return false;
        weight = number_mul(e->polynomial.memory, weight, scale);
    }
    return polynomial_add(&e->polynomial, factors, term->branch_count, weight);
}

static int terms_degree(const fpa_term *terms, int count)
{
    int degree = 0;
    for (int t = 0; t < count; t++)
        if (terms[t].branch_count > degree)
            degree = terms[t].branch_count;
    return degree;
}

bool expression_of_terms(fpa_expression *e, arena *memory, const fpa_term *terms, int count)
{
    if (!expression_init(e, memory, terms_degree(terms, count)))
        return false;
    for (int t = 0; t < count; t++)
        if (!add_term(e, &terms[t]))
            return false;
    return polynomial_collect(&e->polynomial);
}

bool expression_map(const fpa_expression *e, arena *memory, const fpa_branch *forms, const fpa_number *scales,
                    fpa_expression *mapped)
{
    if (!expression_init(mapped, memory, e->polynomial.degree))
        return false;
    for (int i = 0; i < e->polynomial.count; i++) {
        const int *factors = polynomial_factors(&e->polynomial, i);
        int count = polynomial_monomial_degree(&e->polynomial, i);
        fpa_number weight = e->polynomial.weights[i];
        int images[POLYNOMIAL_MAX_DEGREE];
        bool zero = false;
        for (int j = 0; j < count; j++) {
            zero |= forms[factors[j]].width == 0;
            images[j] = zero ? 0 : expression_intern(mapped, &forms[factors[j]]);
            if (images[j] < 0)
                return false;
            weight = number_mul(memory, weight, scales[factors[j]]);
        }
        if (!zero && !polynomial_add(&mapped->polynomial, images, count, weight))
            return false;
    }
    return polynomial_collect(&mapped->polynomial);
}

size_t *symbol_offsets(arena *memory, int d, const fpa_matrix *matrices, int count)
{
    size_t *offsets = arena_array(memory, (size_t)count + 2, sizeof *offsets);
    if (!offsets)
        return NULL;
    offsets[1] = (size_t)d;
    for (int m = 0; m < count; m++)
        offsets[m + 2] = offsets[m + 1] + (size_t)matrices[m].rows;
    return offsets;
}
