#include "product_rows.h"

#include <math.h>
#include <string.h>

#include "mechanism.h"
#include "outer.h"
#include "parts.h"
#include "product_halves.h"

enum {
    MOST_ROWS = 1024,       /* of a half, */
    MOST_ORDERED = 1 << 14, /* and with those of every order */
    A_ROW = 16, /* of a vector, in slots of 8 columns: packed, written, read twice, multiplied in scores */
    MOST_GRAM_OF_F16 = 64, /* product of the weights of a half */
};

/* ---- halves ---- */

static double largest_gram(const maker *m, int dot)
{
    double most = 1;
    for (int r = 0; r < m->plan->dots[dot].row_count; r++)
        most = fmax(most, fabs(m->gram[m->plan->dots[dot].rows[r]]));
    return most;
}

/* Rows (i, j) of a dot that a half has twice. */
static double count_pairs(const maker *m, int width)
{
    return m->both_orders ? (double)width * width : width * (width + 1) / 2.0;
}

/* Of the largest weight a power of two is left out where a number of 16 bits could overflow. */
static double scale_of(const maker *m, const half *h)
{
    double gram = 1, scale = 1;
    for (int i = 0; i < h->count; i++)
        gram *= largest_gram(m, h->dot[i]);
    while (m->plan->head->dtype == FPA_F16 && h->count > 1 && gram * scale > MOST_GRAM_OF_F16)
        scale /= 2;
    return scale;
}

static void insert_dot(const maker *m, half *h, int dot)
{
    int at = h->count++;
    for (; at > 0 && m->plan->dots[h->dot[at - 1]].row_count > m->plan->dots[dot].row_count; at--)
        h->dot[at] = h->dot[at - 1];
    h->dot[at] = dot;
}

static int count_times(const half *h, int at)
{
    int times = 0;
    for (int i = 0; i < h->count; i++)
        times += h->dot[i] == h->dot[at];
    return times;
}

/* False: it has too many rows, or a dot three times, whose weights would be rounded. */
static bool fill_half(const maker *m, const int *dots, int count, unsigned chosen, half *h)
{
    double rows = 1, all = 1;
    *h = (half){0};
    for (int i = 0; i < count; i++)
        if (chosen >> i & 1)
            insert_dot(m, h, dots[i]);
    for (int i = 0; i < h->count; i++) {
        const int times = count_times(h, i), width = m->plan->dots[h->dot[i]].row_count;
        if (times > 2)
            return false;
        if (i == 0 || h->dot[i] != h->dot[i - 1])
            rows *= times == 2 ? count_pairs(m, width) : width;
        all *= width;
    }
    h->rows = rows <= MOST_ROWS ? (int)rows : 0;
    h->scale = scale_of(m, h);
    return h->rows && all <= MOST_ORDERED;
}

static double half_cost(const maker *m, const half *a, const half *b)
{
    const double slots = (double)round_up(a->rows, OUTER_BLOCK) * round_up(b->rows, OUTER_BLOCK);
    return slots * m->columns / OUTER_BLOCK + A_ROW * (a->rows + b->rows);
}

static int number_half(maker *m, const half *h)
{
    for (int i = 0; i < m->half_count; i++)
        if (m->halves[i].count == h->count && !memcmp(m->halves[i].dot, h->dot, sizeof h->dot))
            return i;
    m->halves[m->half_count] = *h;
    return m->half_count++;
}

/* Dots of a monomial, as often as they are its factors; -1: more than MOST_DEGREE. */
static int list_dots(const fpa_score *score, int monomial, int *dots)
{
    int count = 0;
    for (int i = 0; i < score->dot_count; i++)
        for (int p = 0; p < score->monomials[monomial].power[i]; p++) {
            if (count == MOST_DEGREE)
                return -1;
            dots[count++] = i;
        }
    return count;
}

/* The way that makes the least of slots and rows; false: there is none. */
static bool deal_out(maker *m, int monomial)
{
    int dots[MOST_DEGREE];
    const int count = list_dots(m->plan->score, monomial, dots);
    half a, b, best[2] = {{0}};
    double least = INFINITY;
    m->dealt[monomial] = (dealt){.half = {-1, -1}, .degree = count};
    if (count == 1) {
        if (!fill_half(m, dots, 1, 1, &best[0]))
            return false;
        m->dealt[monomial].half[1] = number_half(m, &best[0]);
    }
    if (count < 2)
        return count >= 0;
    for (unsigned chosen = 1; chosen + 1 < 1u << count; chosen += 2) {
        if (!fill_half(m, dots, count, chosen, &a) || !fill_half(m, dots, count, ~chosen, &b) ||
            half_cost(m, &a, &b) >= least)
            continue;
        least = half_cost(m, &a, &b);
        best[a.rows > b.rows] = a, best[a.rows <= b.rows] = b;
    }
    for (int i = 0; i < 2 && least < INFINITY; i++)
        m->dealt[monomial].half[i] = number_half(m, &best[i]);
    return least < INFINITY;
}

/* ---- tables of the given plan ---- */

static void describe_rows(maker *m, arena *memory)
{
    const fpa_plan *plan = m->plan;
    const int rows = plan->row_count, dots = plan->score->dot_count;
    m->base = arena_array(memory, rows, sizeof *m->base);
    m->gram = arena_array(memory, rows, sizeof *m->gram);
    m->position = arena_array(memory, (size_t)rows * dots, sizeof *m->position);
    for (int i = 0; i < rows; i++)
        m->base[i] = i, m->gram[i] = 1;
    for (int i = 0; i < plan->weighted_count; i++) {
        const fpa_weighted_row *w = &plan->weighted[i];
        m->base[w->row] = w->from, m->gram[w->row] = w->gram;
    }
    memset(m->position, -1, (size_t)rows * dots * sizeof *m->position);
    for (int i = 0; i < dots; i++)
        for (int r = 0; r < plan->dots[i].row_count; r++)
            m->position[i * rows + m->base[plan->dots[i].rows[r]]] = r;
}

/* ---- product rows ---- */

static int count_ordered(const maker *m, const half *h)
{
    int count = 1;
    for (int l = 0; l < h->count; l++)
        count *= m->plan->dots[h->dot[l]].row_count;
    return count;
}

/* Which order of rows comes as number n. Rows (i, j) of a square come by their distance around the circle, then by the first one: products of 8 of
 * distance a with 8 of distance b are others than those of other distances, so that blocks of few tiles have all features. */
static int nth_order(const maker *m, const half *h, int n)
{
    if (m->both_orders || h->count != 2 || h->dot[0] != h->dot[1])
        return n;
    const int width = m->plan->dots[h->dot[0]].row_count, i = n % width, j = (i + n / width) % width;
    return i < j ? i * width + j : j * width + i;
}

static void describe_row(const maker *m, const half *h, int number, const int *position, double weight,
                         fpa_product_rows *made)
{
    const int row = h->first - m->plan->row_count + number;
    made->weight[row] = weight;
    for (int l = 0; l < made->factors; l++)
        made->factor[row * made->factors + l] =
            l < h->count ? m->plan->dots[h->dot[l]].rows[position[l]] : m->plan->ones_row;
}

static void fill_factors(const maker *m, half *h, arena *memory, fpa_product_rows *made)
{
    const int ordered = count_ordered(m, h);
    int position[MOST_DEGREE] = {0}, next = 0;
    double weight;
    h->number = arena_array(memory, ordered, sizeof *h->number);
    for (int i = 0; i < ordered; i++)
        h->number[i] = -1;
    for (int n = 0; n < 2 * ordered; n++) {
        const int i = nth_order(m, h, n % ordered);
        const bool late = h->late && h->late[i];
        if (h->number[i] >= 0 || late != (n >= ordered) || !half_split(m, h, i, position, &weight))
            continue;
        h->number[i] = next++;
        if (h->count > 1)
            describe_row(m, h, h->number[i], position, weight, made);
    }
}

static void make_rows(const maker *m, arena *memory, fpa_product_rows *made)
{
    for (int i = 0; i < m->half_count; i++) {
        half *h = &m->halves[i];
        if (h->count < 2)
            continue;
        h->first = m->plan->row_count + made->count;
        made->count += h->rows;
        made->factors = largest(made->factors, h->count);
    }
    made->plan.row_count += made->count;
    made->factor = arena_array(memory, (size_t)made->count * made->factors, sizeof *made->factor);
    made->weight = arena_array(memory, made->count, sizeof *made->weight);
    for (int i = 0; i < m->half_count; i++)
        fill_factors(m, &m->halves[i], memory, made);
}

/* ---- the score ---- */

static bool is_half(const maker *m, int dot)
{
    for (int i = 0; i < m->half_count; i++)
        if (m->halves[i].count == 1 && m->halves[i].dot[0] == dot)
            return true;
    return false;
}

/* Whether the score is computed from the head's own dot products: if vectors contain all their rows in any case,
 * since these are fewer and shorter than product rows. If only one half has product rows, since those follow the
 * rows of the dot products, and the rows of each half must begin a block. */
static bool keeps_score(const maker *m)
{
    int halves = 0;
    for (int i = 0; i < m->half_count; i++)
        halves += m->halves[i].count > 1;
    for (int i = 0; i < m->plan->score->dot_count; i++)
        if (!is_half(m, i))
            return false;
    return halves == 1;
}

static void keep_score(const maker *m, arena *memory, fpa_product_rows *made)
{
    const fpa_score *score = m->given->score;
    made->score.dot_count = score->dot_count;
    made->score.monomial_count = score->monomial_count;
    made->score.monomials = score->monomials;
    made->dot_degree = arena_array(memory, score->dot_count, sizeof *made->dot_degree);
    for (int i = 0; i < score->dot_count; i++)
        made->dot_degree[i] = 1;
}

static void make_dots(const maker *m, arena *memory, fpa_product_rows *made)
{
    made->score.dot_count = m->half_count;
    made->plan.dots = arena_array(memory, m->half_count, sizeof *made->plan.dots);
    made->dot_degree = arena_array(memory, m->half_count, sizeof *made->dot_degree);
    for (int i = 0; i < m->half_count; i++) {
        const half *h = &m->halves[i];
        int *rows = arena_array(memory, h->rows, sizeof *rows);
        for (int r = 0; r < h->rows; r++)
            rows[r] = half_row(m, h, r);
        made->plan.dots[i] = (fpa_dot){h->rows, rows};
        made->dot_degree[i] = h->count;
    }
}

static void make_monomials(const maker *m, arena *memory, fpa_product_rows *made)
{
    const fpa_score *score = m->plan->score;
    made->score.monomial_count = score->monomial_count;
    made->score.monomials = arena_array(memory, score->monomial_count, sizeof *made->score.monomials);
    for (int i = 0; i < score->monomial_count; i++) {
        int *power = arena_array(memory, m->half_count, sizeof *power);
        for (int j = 0; j < 2; j++)
            if (m->dealt[i].half[j] >= 0)
                power[m->dealt[i].half[j]]++;
        fpa_number weight = score->monomials[i].weight;
        for (int j = 0; j < 2; j++)
            if (m->dealt[i].half[j] >= 0)
                weight = number_mul(memory, weight,
                                    number_double(memory, 1 / m->halves[m->dealt[i].half[j]].scale));
        made->score.monomials[i] = (fpa_monomial){weight, power};
    }
}

static void make_score(const maker *m, arena *memory, fpa_product_rows *made)
{
    if (m->padded || keeps_score(m)) {
        keep_score(m, memory, made);
        return;
    }
    make_dots(m, memory, made);
    make_monomials(m, memory, made);
}

/* ---- the plan ---- */

static bool has_products(const maker *m)
{
    bool several = false;
    for (int i = 0; i < m->half_count; i++)
        several |= m->halves[i].count > 1;
    return several;
}

/* NULL: they are there. */
static const char *make_halves(maker *m, arena *memory)
{
    const int monomials = m->plan->score->monomial_count;
    m->halves = arena_array(memory, 2 * (size_t)monomials, sizeof *m->halves);
    m->dealt = arena_array(memory, monomials, sizeof *m->dealt);
    describe_rows(m, memory);
    for (int i = 0; i < monomials; i++)
        if (!deal_out(m, i))
            return "one half of its dot products has too many product rows";
    return has_products(m) ? NULL : "it has no products of three dots";
}

/* ---- rows that no feature has ---- */

/* Of s2 s3 whose rows share coordinates one of (i, j) and (j, i) is no feature's row. False: all are some feature's. */
static bool find_late(maker *m, arena *memory)
{
    bool any = false;
    for (int i = 0; i < m->half_count; i++) {
        half *h = &m->halves[i];
        const int ordered = h->count > 1 && h->used ? count_ordered(m, h) : 0;
        h->late = ordered ? arena_array(memory, ordered, sizeof *h->late) : NULL;
        for (int n = 0; n < ordered; n++) {
            h->late[n] = h->number[n] >= 0 && !h->used[h->number[n]];
            any |= h->late[n];
        }
        h->used = NULL;
    }
    return any;
}

static const char *make_in_order(maker *m, arena *memory, fpa_product_rows *made, filled *count)
{
    *made = (fpa_product_rows){.plan = *m->given};
    made->plan.score = &made->score;
    make_rows(m, memory, made);
    make_score(m, memory, made);
    return place_features(m, memory, made, count);
}

/* The same with rows that no feature has behind all others of a half, where what is left fills fewer quarters of tiles. */
static void make_late(maker *m, const filled *count, arena *memory, fpa_product_rows *made)
{
    filled fewer;
    fpa_product_rows other;
    if (!find_late(m, memory) || make_in_order(m, memory, &other, &fewer) || fewer.tiles > count->tiles ||
        fewer.quarters >= count->quarters)
        return;
    *made = other;
    made->plan.score = &made->score;
}

static const char *make_of(maker *m, arena *memory, fpa_product_rows *made, filled *count)
{
    *made = (fpa_product_rows){.plan = *m->given};
    const char *why = make_halves(m, memory);
    if (!why)
        why = make_in_order(m, memory, made, count);
    if (!why)
        make_late(m, count, memory, made);
    return why;
}

/* ---- ones as a row of the dot ---- */

/* Treats a polynomial of degree four in one dot product s as a form in (s, 1): the features of all degrees are
 * then products of two rows x_i x_j, x_i or 1. False: the head is no such polynomial. */
static bool pad_plan(const fpa_plan *plan, arena *memory, fpa_plan *padded, fpa_score *score)
{
    enum { TWO_HALVES_ALIKE = 4 };
    int most = 0;
    for (int i = 0; i < plan->score->monomial_count && plan->score->dot_count == 1; i++)
        most = largest(most, plan->score->monomials[i].power[0]);
    if (most != TWO_HALVES_ALIKE || plan->score->monomial_count == 1 || plan->ones_row < 0)
        return false;
    const int width = plan->dots[0].row_count;
    int *rows = arena_array(memory, width + 1, sizeof *rows), *power = arena_array(memory, 1, sizeof *power);
    fpa_dot *dot = arena_array(memory, 1, sizeof *dot);
    fpa_monomial *monomial = arena_array(memory, 1, sizeof *monomial);
    memcpy(rows, plan->dots[0].rows, width * sizeof *rows);
    rows[width] = plan->ones_row;
    *dot = (fpa_dot){width + 1, rows};
    *power = most;
    *monomial = (fpa_monomial){number_double(memory, 1), power};
    *score = *plan->score;
    score->monomial_count = 1;
    score->monomials = monomial;
    *padded = *plan;
    padded->dots = dot;
    padded->score = score;
    return true;
}

/* The same of the dot with ones, where that fills fewer tiles. */
static void make_padded(const maker *m, const filled *count, arena *memory, fpa_product_rows *made)
{
    fpa_plan padded;
    fpa_score score;
    fpa_product_rows other;
    filled fewer;
    maker own = {.given = m->given,
                 .plan = &padded,
                 .padded = true,
                 .columns = m->columns,
                 .both_orders = m->both_orders};
    if (!pad_plan(m->given, memory, &padded, &score) || make_of(&own, memory, &other, &fewer) ||
        fewer.tiles >= count->tiles)
        return;
    *made = other;
    made->plan.score = &made->score;
}

const char *plan_product_rows(const fpa_plan *plan, int columns, bool both_orders, arena *memory,
                              fpa_product_rows *made)
{
    maker m = {.given = plan, .plan = plan, .columns = columns, .both_orders = both_orders};
    filled count;
    const char *why = make_of(&m, memory, made, &count);
    if (!why)
        make_padded(&m, &count, memory, made);
    return why;
}
