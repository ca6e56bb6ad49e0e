#include "polynomial.h"

#include <stdlib.h>
#include <string.h>

uint64_t hash_word(uint64_t state, uint64_t word)
{
    uint64_t z = (state ^ word) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t hash_number(uint64_t state, fpa_number a)
{
    uint64_t den, num = number_residue(a, RESIDUE_PRIME, &den);
    return hash_word(hash_word(state, num), den);
}

/* Sort a few variables in place. */
static void factors_sort(int *factors, int count)
{
    for (int i = 1; i < count; i++) {
        int factor = factors[i], j = i;
        for (; j > 0 && factors[j - 1] > factor; j--)
            factors[j] = factors[j - 1];
        factors[j] = factor;
    }
}

bool polynomial_init(fpa_polynomial *p, arena *memory, int degree)
{
    *p =
        (fpa_polynomial){.memory = memory, .degree = degree > 0 ? degree : 1, .capacity = 4, .slot_count = 8};
    p->factors = arena_array(memory, (size_t)p->capacity * (size_t)p->degree, sizeof *p->factors);
    p->weights = arena_array(memory, (size_t)p->capacity, sizeof *p->weights);
    p->slots = arena_array(memory, p->slot_count, sizeof *p->slots);
    return p->factors && p->weights && p->slots;
}

const int *polynomial_factors(const fpa_polynomial *p, int monomial)
{
    return p->factors + (size_t)monomial * (size_t)p->degree;
}

int polynomial_monomial_degree(const fpa_polynomial *p, int monomial)
{
    const int *factors = polynomial_factors(p, monomial);
    int degree = 0;
    while (degree < p->degree && factors[degree] >= 0)
        degree++;
    return degree;
}

static uint64_t hash_factors(const int *factors, int degree)
{
    uint64_t hash = 0;
    for (int i = 0; i < degree; i++)
        hash = hash_word(hash, (uint64_t)(int64_t)factors[i]);
    return hash;
}

/* The slot that holds these padded factors, or the free one where they belong. */
static size_t find_slot(const fpa_polynomial *p, const int *factors)
{
    size_t bytes = (size_t)p->degree * sizeof *factors;
    size_t slot = hash_factors(factors, p->degree) & (p->slot_count - 1);
    while (p->slots[slot] && memcmp(polynomial_factors(p, p->slots[slot] - 1), factors, bytes) != 0)
        slot = (slot + 1) & (p->slot_count - 1);
    return slot;
}

static void fill_slots(fpa_polynomial *p)
{
    memset(p->slots, 0, p->slot_count * sizeof *p->slots);
    for (int i = 0; i < p->count; i++)
        p->slots[find_slot(p, polynomial_factors(p, i))] = i + 1;
}

static bool polynomial_grow(fpa_polynomial *p)
{
    if (p->capacity > INT32_MAX / 2)
        return false;
    fpa_polynomial larger = *p;
    larger.capacity *= 2;
    larger.slot_count *= 2;
    larger.factors = arena_array(p->memory, (size_t)larger.capacity * (size_t)p->degree, sizeof *p->factors);
    larger.weights = arena_array(p->memory, (size_t)larger.capacity, sizeof *p->weights);
    larger.slots = arena_array(p->memory, larger.slot_count, sizeof *p->slots);
    if (!larger.factors || !larger.weights || !larger.slots)
        return false;
    memcpy(larger.factors, p->factors, (size_t)p->count * (size_t)p->degree * sizeof *p->factors);
    memcpy(larger.weights, p->weights, (size_t)p->count * sizeof *p->weights);
    *p = larger;
    fill_slots(p);
    return true;
}

static void pad_factors(const fpa_polynomial *p, const int *factors, int count, int *padded)
{
    for (int i = 0; i < p->degree; i++)
        padded[i] = i < count ? factors[i] : -1;
    factors_sort(padded, count);
}

bool polynomial_add(fpa_polynomial *p, const int *factors, int count, fpa_number weight)
{
    int padded[POLYNOMIAL_MAX_DEGREE];
    pad_factors(p, factors, count, padded);
    size_t slot = find_slot(p, padded);
    if (p->slots[slot]) {
        fpa_number *sum = &p->weights[p->slots[slot] - 1];
        *sum = number_add(p->memory, *sum, weight);
        return true;
    }
    if (p->count == p->capacity) {
        if (!polynomial_grow(p))
            return false;
        slot = find_slot(p, padded);
    }
    memcpy(p->factors + (size_t)p->count * (size_t)p->degree, padded, (size_t)p->degree * sizeof *padded);
    p->weights[p->count++] = weight;
    p->slots[slot] = p->count;
    return true;
}

int polynomial_find(const fpa_polynomial *p, const int *factors, int count)
{
    int padded[POLYNOMIAL_MAX_DEGREE] = {0};
    if (count > p->degree)
        return -1;
    pad_factors(p, factors, count, padded);
    return p->slots[find_slot(p, padded)] - 1;
}

typedef struct sort_key {
    const int *factors;
    int count; /* number of factors */
    fpa_number weight;
} sort_key;

static int compare_keys(const void *left, const void *right)
{
    const sort_key *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (int i = 0; i < a->count; i++)
        if (a->factors[i] != b->factors[i])
            return a->factors[i] < b->factors[i] ? -1 : 1;
    return 0;
}

bool polynomial_collect(fpa_polynomial *p)
{
    size_t degree = (size_t)p->degree;
    sort_key *keys = arena_array(p->memory, (size_t)p->count, sizeof *keys);
    int *factors = arena_array(p->memory, (size_t)p->capacity * degree, sizeof *factors);
    int kept = 0;
    if (!keys || !factors)
        return false;
    for (int i = 0; i < p->count; i++)
        if (!number_is_zero(p->weights[i]))
            keys[kept++] =
                (sort_key){polynomial_factors(p, i), polynomial_monomial_degree(p, i), p->weights[i]};
    qsort(keys, (size_t)kept, sizeof *keys, compare_keys);
    for (int i = 0; i < kept; i++) {
        memcpy(factors + (size_t)i * degree, keys[i].factors, degree * sizeof *factors);
        p->weights[i] = keys[i].weight;
    }
    p->factors = factors;
    p->count = kept;
    fill_slots(p);
    return true;
}

uint64_t residue_add(uint64_t a, uint64_t b)
{
    uint64_t sum = a + b;
    return sum >= RESIDUE_PRIME ? sum - RESIDUE_PRIME : sum;
}

uint64_t residue_mul(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return residue_add((uint64_t)(product & RESIDUE_PRIME), (uint64_t)(product >> 61));
}

/* Fermat: a^(p-2). */
uint64_t residue_inverse(uint64_t a)
{
    uint64_t result = 1;
    for (uint64_t exponent = RESIDUE_PRIME - 2; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = residue_mul(result, a);
        a = residue_mul(a, a);
    }
    return a ? result : 0;
}

uint64_t residue_number(fpa_number a)
{
    uint64_t den, num = number_residue(a, RESIDUE_PRIME, &den);
    return den == 1 ? num : residue_mul(num, residue_inverse(den));
}
