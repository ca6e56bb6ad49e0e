#include "pairs.h"

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
    const fpa_branch *found[2] = {0};
    for (int i = 0, n = 0; i < score->dot_count && n < 2; i++)
        if (score->monomials[monomial].power[i])
            found[n++] = &score->dots[i];
    const int swapped = found[0]->row[0] > found[1]->row[0];
    return found[which ^ swapped];
}

int pair_blocks(const fpa_branch *dot)
{
    return divide_up(dot->width, BLOCK);
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

/* Beside the sums of a monomial's rows, and rows g, two warpgroups have registers; tiles enough are as many as a square of 32 rows has. */
bool pairs_suit(const fpa_simplified *simple)
{
    enum { MOST = 32, MOST_VALUES = 128, LEAST_TILES = 8 };
    const fpa_head *head = simple->head;
    const fpa_score *score = &simple->score;
    const bool divided = head->normalize != FPA_NORMALIZE_NONE;
    const int values = round_up(head->dv + divided, BLOCK);
    int tiles = 0;
    if (head->gate || (divided && head->dtype != FPA_BF16) || !score_has_pairs(score))
        return false;
    for (int m = 0; m < score->monomial_count; m++)
        tiles += pair_blocks(pair_dot(score, m, 0)) * pair_blocks(pair_dot(score, m, 1));
    return tiles >= LEAST_TILES && values <= MOST_VALUES &&
           pairs_most_blocks(score) + divide_up(values, PAIR_STEP) <= MOST;
}
