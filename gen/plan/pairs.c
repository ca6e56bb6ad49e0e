#include "pairs.h"

#include <math.h>

#include "base/round.h"

enum { BLOCK = 8 };

/* The monomial in which a dot occurs, if that is one monomial and one factor; else -1. */
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

/* The most blocks of 8 rows that the two dots of a monomial have together. */
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
    /* blocks of a monomial's rows plus steps of 16 of rows g, for which two warpgroups have registers */
    MOST_SUMS = 33,
    MOST_VALUES = 256, /* columns of values, all blocks together */
    LEAST_TILES = 8,   /* tiles of 8 x 8 features; a square of 32 rows has so many */
    MOST_WIDTH = 512,  /* elements of a vector */
    /* rows d from which product rows are computed: 32 tokens of them, with the product rows and the gradients of both,
     * fit into a block's shared memory */
    MOST_ROWS = 1024
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

/* The factors of a monomial, one for each power of a dot. False: there are more than PAIR_DEGREE. */
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

/* The number of product rows of a half; a result above MOST_WIDTH only says that there are too many. */
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

/* Cost of a division into halves, in multiplications: of the tiles of features with all values, and A_ROW for each
 * product row, for the bytes that it is formed, read and joined with. */
static double cost_of(const fpa_head *head, const fpa_halves *h)
{
    enum { TILE = 64, A_ROW = 2000 };
    return (double)blocks_of(h, 0) * blocks_of(h, 1) * TILE * values_of(head) +
           A_ROW * (double)(h->rows[0] + h->rows[1]);
}

/* Divides the factors between the two halves in the cheapest way; false: no way fits. */
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

/* The dot whose power in `more` is greater than in `less`, by one, if there is exactly one such dot; else -1. */
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

/* Merges another monomial into h, if it has the same weight and differs in one factor, the same one in which all
 * merged monomials differ, and if the sum fits. That factor then is the sum of the monomials' dots. */
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

enum { MOST_MONOMIALS = MOST_WIDTH / (2 * PAIR_STEP) }; /* each has two steps of 16 rows at least */

/* Finds product number `product` of halves; *count is their number. False: some monomial fits nowhere. */
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

/* The factors of all product rows of a product: the operations that it takes to form and join them. */
static int count_factors(const fpa_halves *h)
{
    int count = 0;
    for (int l = 0; l < h->degree; l++)
        count += h->rows[is_of_half(h, l, 1)];
    return count;
}

/* The features of a token that kernels of cells process, counted once for each 64 values. */
static double features_of(const fpa_head *head)
{
    enum { VALUES = 64 };
    return head_features(head) * fmax(1, (double)values_of(head) / VALUES);
}

bool halves_suit(const fpa_simplified *simple)
{
    /* the fewest features per factor for which product rows replace kernels of cells. With the first kernels an H200
     * took 19.0 -> 13.0 ns for a head with 13 features per factor, 27.9 -> 18.0 with 8 and 9.5 -> 11.9 with 6, so
     * that the limit was 7 (docs/decisions/0102-several-dots-by-warpgroups.md); since then joining takes a third of
     * the time (0112-product-rows-by-tokens.md) */
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

/* Row number `number` of a factor that is a sum of dots, whose rows follow each other. */
static int row_of_sum(const fpa_score *score, const fpa_summed *factor, int number)
{
    int i = 0;
    while (number >= score->dots[factor->dot[i]].width)
        number -= score->dots[factor->dot[i++]].width;
    return score->dots[factor->dot[i]].row[number];
}

/* The factors of row r of a half: r counts through the rows of its dots, the last dot fastest. */
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
