/* passes_contracted: which passes of values have contractions, by their sizes and kernels. */
#include "passes_contracted.h"

#include "base/round.h"
#include "passes.h"

enum { PIECE = 8 }; /* elements of 2 bytes in 16 bytes */

int passes_degree(const fpa_score *score)
{
    int degree = 0;
    for (int m = 0; m < score->monomial_count && score->dot_count == 1; m++)
        if (score->monomials[m].power[0] > degree)
            degree = score->monomials[m].power[0];
    return degree;
}

/* A thread holds the sums of d gradients and rows g, an operand, in registers, in addition to a tile. */
bool contraction_sums_fit(int d, int values, bool gate)
{
    enum { LEAST = 32, MOST = 104, BLOCK = 8, STEP = 16, WORDS = 4 };
    return (gate || d >= LEAST) && WORDS * (divide_up(d, BLOCK) + divide_up(values, STEP)) <= MOST;
}

/* If only pairs are contracted, rows g stay in shared memory. */
bool contraction_pairs_fit(int d)
{
    enum { MOST = 192 };
    return d <= MOST;
}

int contraction_held_registers(int d, int values, bool sums)
{
    enum { DOTS = 64, OPERAND = 16, OTHERS = 40, WORDS = 4, STEP = 16 };
    const int rows = divide_up(d, STEP) + divide_up(values, STEP);
    return DOTS + OPERAND + OTHERS +
           WORDS * (divide_up(d, PIECE) + (sums ? divide_up(values, PIECE) : 0) + rows);
}

bool contraction_fits(const fpa_head *values, int degree)
{
    return degree > 2 ? contraction_pairs_fit(values->d)
                      : contraction_sums_fit(values->d, values->dv, values->gate);
}

/* Whether all terms are products of two different dots (pairs.h). */
static bool has_pairs(const fpa_head *values)
{
    for (int t = 0; t < values->term_count; t++) {
        const fpa_term *term = &values->terms[t];
        if (term->branch_count != 2 || term->branches[0].row[0] == term->branches[1].row[0])
            return false;
    }
    return values->term_count > 0;
}

/* The highest power, if the terms are powers of one dot. */
static int highest_power(const fpa_head *values)
{
    int degree = 0;
    for (int t = 0; t < values->term_count; t++)
        if (values->terms[t].branch_count > degree)
            degree = values->terms[t].branch_count;
    return degree;
}

bool passes_contract(const fpa_head *values)
{
    const int degree = highest_power(values);
    return values->dv % PIECE == 0 && (has_pairs(values) || (degree > 1 && contraction_fits(values, degree)));
}

bool contraction_of_few(int powers, int values, bool gate)
{
    enum { FEW = 32 };
    return !gate && powers > 1 && values <= FEW;
}

bool contracts_chunks(const fpa_head *values)
{
    return has_pairs(values) ||
           (highest_power(values) == 2 && !contraction_of_few(values->term_count, values->dv, values->gate));
}
