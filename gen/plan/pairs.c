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

int pairs_most_blocks(const fpa_score *score)
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
    MOST_SUMS =
        33, /* blocks of a monomial's rows and steps of rows g, beside which two warpgroups have registers */
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
    return tiles >= LEAST_TILES && sums_fit(simple->head, pairs_most_blocks(score));
}

/* ---- product rows ---- */

/* False: too many dots. */
static bool list_dots(const fpa_score *score, int monomial, fpa_halves *h)
{
    h->degree = 0;
    for (int i = 0; i < score->dot_count; i++)
        for (int n = 0; n < score->monomials[monomial].power[i]; n++) {
            if (h->degree == PAIR_DEGREE)
                return false;
            h->dot[h->degree++] = i;
        }
    return true;
}

static bool is_of_half(const fpa_halves *h, int l, int half)
{
    return (h->first >> l & 1) == (half == 0);
}

/* More than MOST_WIDTH: too many. */
static int count_rows(const fpa_score *score, const fpa_halves *h, int half)
{
    int rows = 1;
    for (int l = 0; l < h->degree && rows <= MOST_WIDTH; l++)
        rows *= is_of_half(h, l, half) ? score->dots[h->dot[l]].width : 1;
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

/* The cheapest way to deal out a monomial's dots; false: none fits. */
static bool deal(const fpa_simplified *simple, int monomial, fpa_halves *best)
{
    fpa_halves h = {0};
    double least = INFINITY;
    if (!list_dots(&simple->score, monomial, &h))
        return false;
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

/* Factors of all product rows of a monomial: what forming and joining them takes. */
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
    const fpa_score *score = &simple->score;
    int tiles = 0, width = 0, factors = 0;
    if (!suits(simple->head) || !has_plain_dots(score) || simple->head->scale != 1 ||
        simple->head->d > MOST_ROWS)
        return false;
    for (int m = 0; m < score->monomial_count; m++) {
        fpa_halves h;
        if (!deal(simple, m, &h))
            return false;
        tiles += blocks_of(&h, 0) * blocks_of(&h, 1);
        width += width_of(&h);
        factors += count_factors(&h);
    }
    return tiles >= LEAST_TILES && width <= MOST_WIDTH &&
           features_of(simple->head) >= FEATURES_A_FACTOR * (double)factors;
}

fpa_halves halves_of(const fpa_simplified *simple, int monomial)
{
    fpa_halves h = {0};
    int position = 0;
    for (int m = 0; m <= monomial; m++) {
        position += m ? width_of(&h) : 0;
        deal(simple, m, &h);
    }
    h.position[0] = position;
    h.position[1] = position + round_up(h.rows[0], PAIR_STEP);
    return h;
}

int halves_width(const fpa_simplified *simple)
{
    const fpa_halves last = halves_of(simple, simple->score.monomial_count - 1);
    return last.position[0] + width_of(&last);
}

int halves_factors(const fpa_simplified *simple)
{
    int most = 1;
    for (int m = 0; m < simple->score.monomial_count; m++) {
        const fpa_halves h = halves_of(simple, m);
        int count[2] = {0};
        for (int l = 0; l < h.degree; l++)
            count[is_of_half(&h, l, 1)]++;
        most = count[0] > most ? count[0] : most;
        most = count[1] > most ? count[1] : most;
    }
    return most;
}

/* The factors of a half's row number r: of the last dot the next row comes first. */
static void list_factors(const fpa_score *score, const fpa_halves *h, int half, int r, int *factor)
{
    for (int l = h->degree - 1; l >= 0; l--) {
        const fpa_branch *dot = &score->dots[h->dot[l]];
        if (!is_of_half(h, l, half))
            continue;
        *factor++ = dot->row[r % dot->width];
        r /= dot->width;
    }
}

void halves_list(const fpa_simplified *simple, int *factor)
{
    const int width = halves_width(simple), factors = halves_factors(simple);
    for (int i = 0; i < width * factors; i++)
        factor[i] = i % factors ? PAIR_ONE : PAIR_ZERO;
    for (int m = 0; m < simple->score.monomial_count; m++) {
        const fpa_halves h = halves_of(simple, m);
        for (int half = 0; half < 2; half++)
            for (int r = 0; r < h.rows[half]; r++) {
                int *own = factor + (h.position[half] + r) * factors;
                *own = PAIR_ONE;
                list_factors(&simple->score, &h, half, r, own);
            }
    }
}
