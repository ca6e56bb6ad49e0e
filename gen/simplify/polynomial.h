/* polynomial: sparse polynomials with exact coefficients, and arithmetic modulo a prime.
 *
 * Variables are numbered from 0; their meaning (symbols, sums of symbols) is up to the caller. All memory comes
 * from the arena and is freed with it. */
#ifndef FPAC_GEN_SIMPLIFY_POLYNOMIAL_H
#define FPAC_GEN_SIMPLIFY_POLYNOMIAL_H

#include "base/arena.h"
#include "head/number.h"

enum { POLYNOMIAL_MAX_DEGREE = 16 };

typedef struct fpa_polynomial {
    arena *memory;
    int degree;          /* the most factors of a monomial, at least 1 */
    int count, capacity; /* monomials */
    int *factors;        /* [count][degree] variables in ascending order, repeated for powers; then -1 */
    fpa_number *weights; /* [count] */
    int *slots;          /* [slot_count] hash table of monomials: index + 1, 0 when free */
    size_t slot_count;   /* a power of two */
} fpa_polynomial;

/* Make the zero polynomial. False: no memory, here and in all functions below that return bool. */
bool polynomial_init(fpa_polynomial *p, arena *memory, int degree);

/* Add weight * prod of the variables factors[0..count), in any order; like monomials are summed. */
bool polynomial_add(fpa_polynomial *p, const int *factors, int count, fpa_number weight);

/* Drop zero monomials and sort the rest: by increasing degree, then lexicographically. */
bool polynomial_collect(fpa_polynomial *p);

/* Index of the monomial with these ascending factors, or -1. */
int polynomial_find(const fpa_polynomial *p, const int *factors, int count);

const int *polynomial_factors(const fpa_polynomial *p, int monomial);
int polynomial_monomial_degree(const fpa_polynomial *p, int monomial);

/* One step of a 64-bit hash: splitmix64's finaliser of state and word. */
uint64_t hash_word(uint64_t state, uint64_t word);
uint64_t hash_number(uint64_t state, fpa_number a);

/* Residues modulo the Mersenne prime 2^61 - 1. Two polynomials of degree n that agree at a
 * random point are different with probability at most n / 2^61 (Schwartz-Zippel). */
#define RESIDUE_PRIME ((UINT64_C(1) << 61) - 1)
uint64_t residue_add(uint64_t a, uint64_t b);
uint64_t residue_mul(uint64_t a, uint64_t b);
uint64_t residue_inverse(uint64_t a);  /* 0 for 0 */
uint64_t residue_number(fpa_number a); /* the prime must not divide the denominator */

#endif
