#include "pairs.h"

#include <math.h>

#include "base/round.h"

enum { BLOCK = 8 };

/* The monomial that dot i is a factor of, once; -1: none, or several. */
static int monomial_of(const fpa_score *score, int dot)
{
    int found = -1;
    for (int m = 0; m < score->monomial_count; m++) {
        const int power = score->monomials[m].power[dot];
        if (power > 1 || (power && found >= 0))
            return -1;
        if (power)
            found = m;
    }
    return found;
}

bool score_has_pairs(const fpa_score *score)
{
    for (int i = 0; i < score->dot_count; i++)
        if (monomial_of(score, i) < 0)
            return false;
    for (int m = 0; m < score->monomial_count; m++) {
        int factors = 0;
        for (int i = 0; i < score->dot_count; i++)
            factors += score->monomials[m].power[i];
        if (factors != 2)
            return false;
    }
    return score->monomial_count > 0;
}

static bool lies_apart(const fpa_branch *dot)
{
    if (dot->source != FPA_INPUT || dot->gram || dot->row[0] % PAIR_STEP)
        return false;
    for (int w = 1; w < dot->width; w++)
        if (dot->row[w] != dot->row[0] + w)
            return false;
    return true;
}

bool pairs_lie_apart(const fpa_score *score, int d)
{
    int rows = 0;
    for (int i = 0; i < score->dot_count; i++) {
        const fpa_branch *dot = &score->dots[i];
        if (!lies_apart(dot))
            return false;
        rows += round_up(dot->width, PAIR_STEP);
        for (int other = 0; other < i; other++)
            if (dot->row[0] == score->dots[other].row[0])
                return false;
    }
    return rows == d;
}

const fpa_branch *pair_dot(const fpa_score *score, int monomial, int which)
{
    const fpa_branch *found[2] = {score->dots, score->dots};
    for (int i = 0, n = 0; i < score->dot_count && n < 2; i++)
        if (score->monomials[monomial].power[i])
            found[n++] = &score->dots[i];
    const int swapped = found[0]->row[0] > found[1]->row[0];
    return found[which ^ swapped];
}

int pair_rows(int width)
{
    return round_up(width, BLOCK);
}

int pair_blocks(const fpa_branch *dot)
{
    return pair_rows(dot->width) / BLOCK;
}

/* Of the monomial whose dots have most. */
static int most_blocks(const fpa_score *score)
{
    int most = 0;
    for (int m = 0; m < score->monomial_count; m++) {
        const int blocks = pair_blocks(pair_dot(score, m, 0)) + pair_blocks(pair_dot(score, m, 1));
        if (blocks > most)
            most = blocks;
    }
    return most;
}

/* ---- whether they suit ---- */

enum {
    /* blocks of a monomial's rows and steps of rows g, beside which two warpgroups have registers */
    MOST_SUMS = 33,
    MOST_VALUES = 256, /* of all blocks of columns */
    LEAST_TILES = 8,   /* as many as a square of 32 rows has */
    MOST_WIDTH = 512,  /* of a vector */
    MOST_ROWS =
        1024 /* that product rows are of: with a vector, and their gradients, of 32 tokens in a block's shared memory */
};

static int values_of(const fpa_head *head)
{
    return round_up(head->dv + (head->normalize != FPA_NORMALIZE_NONE), BLOCK);
}

static bool sums_fit(const fpa_head *head, int blocks)
{
    return blocks + divide_up(values_of(head), PAIR_STEP) <= MOST_SUMS;
}

static bool suits(const fpa_head *head)
{
    return values_of(head) <= MOST_VALUES && dtype_size(head->dtype) == 2;
}

bool pairs_suit(const fpa_simplified *simple)
{
    const fpa_score *score = &simple->score;
    int tiles = 0;
    if (!suits(simple->head) || !score_has_pairs(score))
        return false;
    for (int m = 0; m < score->monomial_count; m++)
        tiles += pair_blocks(pair_dot(score, m, 0)) * pair_blocks(pair_dot(score, m, 1));
    return tiles >= LEAST_TILES && sums_fit(simple->head, most_blocks(score));
}

/* ---- product rows ---- */

/* False: too many dots. */
static bool list_dots(const fpa_score *score, int monomial, fpa_halves *h)
{
    *h = (fpa_halves){.monomial = monomial, .several = -1};
    for (int i = 0; i < score->dot_count; i++)
        for (int n = 0; n < score->monomials[monomial].power[i]; n++) {
            if (h->degree == PAIR_DEGREE)
                return false;
            h->factor[h->degree++] = (fpa_summed){1, {i}};
        }
    return true;
}

static bool is_of_half(const fpa_halves *h, int l, int half)
{
    return (h->first >> l & 1) == (half == 0);
}

static int summed_rows(const fpa_score *score, const fpa_summed *factor)
{
    int rows = score->dots[factor->dot[0]].width;
    for (int i = 1; i < factor->count; i++)
        rows += score->dots[factor->dot[i]].width;
    return rows;
}

/* More than MOST_WIDTH: too many. */
static int count_rows(const fpa_score *score, const fpa_halves *h, int half)
{
    int rows = 1;
    for (int l = 0; l < h->degree && rows <= MOST_WIDTH; l++)
        rows *= is_of_half(h, l, half) ? summed_rows(score, &h->factor[l]) : 1;
    return rows;
}

static int blocks_of(const fpa_halves *h, int half)
{
    return pair_rows(h->rows[half]) / BLOCK;
}

/* Multiplications of tiles, of states alone; a row costs as many as it takes bytes of a vector, formed, read and joined again. */
static double cost_of(const fpa_head *head, const fpa_halves *h)
{
    enum { TILE = 64, A_ROW = 2000 };
    return (double)blocks_of(h, 0) * blocks_of(h, 1) * TILE * values_of(head) +
           A_ROW * (double)(h->rows[0] + h->rows[1]);
}

/* The cheapest way to deal out its factors; false: none fits. */
static bool deal(const fpa_simplified *simple, fpa_halves *best)
{
    fpa_halves h = *best;
    double least = INFINITY;
    for (unsigned first = 0; first < 1u << h.degree; first++) {
        h.first = first;
        for (int half = 0; half < 2; half++)
            h.rows[half] = count_rows(&simple->score, &h, half);
        if (h.rows[0] > MOST_WIDTH || h.rows[1] > MOST_WIDTH ||
            !sums_fit(simple->head, blocks_of(&h, 0) + blocks_of(&h, 1)))
            continue;
        const double cost = cost_of(simple->head, &h);
        if (cost < least)
            *best = h;
        least = fmin(cost, least);
    }
    return least < INFINITY;
}

/* ---- monomials that differ in one factor ---- */

/* A dot that `more` has oftener than `less`; -1: none, or not just one once. */
static int find_difference(const fpa_score *score, const fpa_monomial *more, const fpa_monomial *less)
{
    int found = -1, count = 0;
    for (int i = 0; i < score->dot_count; i++)
        if (more->power[i] > less->power[i]) {
            found = i;
            count += more->power[i] - less->power[i];
        }
    return count == 1 ? found : -1;
}

static int factor_of(const fpa_halves *h, int dot)
{
    for (int l = 0; l < h->degree; l++)
        if (h->factor[l].dot[0] == dot)
            return l;
    return -1;
}

/* Takes another monomial in, if it differs in the factor that all of them differ in, and the sum fits. */
static bool take_in(const fpa_simplified *simple, int monomial, fpa_halves *h)
{
    const fpa_score *score = &simple->score;
    const fpa_monomial *own = &score->monomials[h->monomial], *other = &score->monomials[monomial];
    const int dot = find_difference(score, own, other), new = find_difference(score, other, own);
    const int l = dot < 0 || new < 0 ? -1 : factor_of(h, dot);
    fpa_halves both = *h;
    if (l < 0 || (h->several >= 0 && h->several != l) || h->factor[l].count == PAIR_SUMMED ||
        !number_equal(own->weight, other->weight))
        return false;
    both.several = l;
    both.factor[l].dot[both.factor[l].count++] = new;
    const bool fits = deal(simple, &both);
    if (fits)
        *h = both;
    return fits;
}

enum { MOST_MONOMIALS = MOST_WIDTH / (2 * PAIR_STEP) }; /* each has two steps, at least */

/* The product of that number; *count: how many there are. False: some monomial fits nowhere. */
static bool find_product(const fpa_simplified *simple, int product, fpa_halves *found, int *count)
{
    const int monomials = simple->score.monomial_count;
    bool taken[MOST_MONOMIALS] = {false};
    if (monomials > MOST_MONOMIALS)
        return false;
    *count = 0;
    for (int m = 0; m < monomials; m++) {
        fpa_halves h;
        if (taken[m])
            continue;
        if (!list_dots(&simple->score, m, &h) || !deal(simple, &h))
            return false;
        for (int other = m + 1; other < monomials; other++)
            if (!taken[other])
                taken[other] = take_in(simple, other, &h);
        if (*count == product)
            *found = h;
        ++*count;
    }
    return true;
}

static bool has_plain_dots(const fpa_score *score)
{
    for (int i = 0; i < score->dot_count; i++)
        if (score->dots[i].source != FPA_INPUT || score->dots[i].gram)
            return false;
    return score->dot_count > 1;
}

static int width_of(const fpa_halves *h)
{
    return round_up(h->rows[0], PAIR_STEP) + round_up(h->rows[1], PAIR_STEP);
}

/* Factors of all product rows of a product: what forming and joining them takes. */
static int count_factors(const fpa_halves *h)
{
    int count = 0;
    for (int l = 0; l < h->degree; l++)
        count += h->rows[is_of_half(h, l, 1)];
    return count;
}

/* What kernels of cells have of a token; of more than 64 values as many more. */
static double features_of(const fpa_head *head)
{
    enum { VALUES = 64 };
    return head_features(head) * fmax(1, (double)values_of(head) / VALUES);
}

bool halves_suit(const fpa_simplified *simple)
{
    /* features that kernels of cells carry out meanwhile, at least: an H200 took 19.0 -> 13.0 ns where there are 13 for each factor, 27.9 -> 18.0 for 8 and
     * 9.5 -> 11.9 for 6 (docs/decisions/0102-several-dots-by-warpgroups.md) */
    enum { FEATURES_A_FACTOR = 4 };
    int tiles = 0, width = 0, factors = 0, count = 1;
    if (!suits(simple->head) || !has_plain_dots(&simple->score) || simple->head->scale != 1 ||
        simple->head->d > MOST_ROWS)
        return false;
    for (int p = 0; p < count; p++) {
        fpa_halves h = {0};
        if (!find_product(simple, p, &h, &count))
            return false;
        tiles += blocks_of(&h, 0) * blocks_of(&h, 1);
        width += width_of(&h);
        factors += count_factors(&h);
    }
    return tiles >= LEAST_TILES && width <= MOST_WIDTH &&
           features_of(simple->head) >= FEATURES_A_FACTOR * (double)factors;
}

int halves_count(const fpa_simplified *simple)
{
    fpa_halves first;
    int count = 0;
    find_product(simple, 0, &first, &count);
    return count;
}

fpa_halves halves_of(const fpa_simplified *simple, int product)
{
    fpa_halves h = {0};
    int position = 0, count;
    for (int p = 0; p <= product; p++) {
        position += p ? width_of(&h) : 0;
        find_product(simple, p, &h, &count);
    }
    h.position[0] = position;
    h.position[1] = position + round_up(h.rows[0], PAIR_STEP);
    return h;
}

int halves_width(const fpa_simplified *simple)
{
    const fpa_halves last = halves_of(simple, halves_count(simple) - 1);
    return last.position[0] + width_of(&last);
}

int halves_factors(const fpa_simplified *simple)
{
    const int products = halves_count(simple);
    int most = 1;
    for (int p = 0; p < products; p++) {
        const fpa_halves h = halves_of(simple, p);
        int count[2] = {0};
        for (int l = 0; l < h.degree; l++)
            count[is_of_half(&h, l, 1)]++;
        most = count[0] > most ? count[0] : most;
        most = count[1] > most ? count[1] : most;
    }
    return most;
}

/* The row of that number of a sum's dots. */
static int row_of_sum(const fpa_score *score, const fpa_summed *factor, int number)
{
    int i = 0;
    while (number >= score->dots[factor->dot[i]].width)
        number -= score->dots[factor->dot[i++]].width;
    return score->dots[factor->dot[i]].row[number];
}

/* The factors of a half's row number r: of the last dot the next row comes first. */
static void list_factors(const fpa_score *score, const fpa_halves *h, int half, int r, int *factor)
{
    for (int l = h->degree - 1; l >= 0; l--) {
        const int rows = summed_rows(score, &h->factor[l]);
        if (!is_of_half(h, l, half))
            continue;
        *factor++ = row_of_sum(score, &h->factor[l], r % rows);
        r /= rows;
    }
}

void halves_list(const fpa_simplified *simple, int *factor)
{
    const int width = halves_width(simple), factors = halves_factors(simple), products = halves_count(simple);
    for (int i = 0; i < width * factors; i++)
        factor[i] = i % factors ? PAIR_ONE : PAIR_ZERO;
    for (int p = 0; p < products; p++) {
        const fpa_halves h = halves_of(simple, p);
        for (int half = 0; half < 2; half++)
            for (int r = 0; r < h.rows[half]; r++) {
                int *own = factor + (h.position[half] + r) * factors;
                *own = PAIR_ONE;
                list_factors(&simple->score, &h, half, r, own);
            }
    }
}
