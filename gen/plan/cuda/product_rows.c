#include "product_rows.h"

#include <math.h>
#include <string.h>

#include "mechanism.h"
#include "outer.h"
#include "parts.h"

enum {
    MOST_DEGREE = 8,        /* of monomials: 2^7 ways to deal them out */
    MOST_ROWS = 1024,       /* of a half, */
    MOST_ORDERED = 1 << 14, /* and with those of every order */
    A_ROW = 16, /* of a vector, in slots of 8 columns: packed, written, read twice, multiplied in scores */
    MOST_GRAM_OF_F16 = 64, /* product of the weights of a half */
};

/* A product of dots. Of a dot that it has twice rows (i, j) and (j, i) are one, with weight 2. */
typedef struct half {
    int count, dot[MOST_DEGREE]; /* narrow ones first; equal ones follow each other */
    int rows, first;             /* plan's row of its first product row */
    double scale;                /* of keys, a power of two: f16 ends at 65,504 */
    int *number; /* row that a row of each dot makes, the last dot's next first; -1: another order has it */
} half;

/* The halves of a monomial, the one of fewer rows first; -1: it has none. */
typedef struct dealt {
    int half[2], degree;
    bool *taken; /* [rows][rows] by a feature */
} dealt;

typedef struct maker {
    const fpa_plan *plan;
    int columns;
    bool both_orders;
    half *halves;
    int half_count;
    dealt *dealt;  /* [monomials] */
    int *base;     /* [rows] that a row is times its weight */
    double *gram;  /* [rows] */
    int *position; /* [dots][rows] of the row of that base in the dot, -1: it has none */
} maker;

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

static bool describe_rows(maker *m, arena *memory)
{
    const fpa_plan *plan = m->plan;
    const int rows = plan->row_count, dots = plan->score->dot_count;
    m->base = arena_array(memory, rows, sizeof *m->base);
    m->gram = arena_array(memory, rows, sizeof *m->gram);
    m->position = arena_array(memory, (size_t)rows * dots, sizeof *m->position);
    if (!m->base || !m->gram || !m->position)
        return false;
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
    return true;
}

/* ---- product rows ---- */

/* Row number r of a half, in the numbers of the seen plan. */
static int half_row(const maker *m, const half *h, int r)
{
    return h->count == 1 ? m->plan->dots[h->dot[0]].rows[r] : h->first + r;
}

/* The rows of its dots that a row of a half is the product of, in any order; false: another order has it. weight: of that one. */
static bool split_row(const maker *m, const half *h, int ordered, int *position, double *weight)
{
    *weight = h->scale;
    for (int l = h->count - 1; l >= 0; l--) {
        const int width = m->plan->dots[h->dot[l]].row_count;
        position[l] = ordered % width;
        ordered /= width;
        if (l + 1 == h->count || h->dot[l] != h->dot[l + 1])
            continue;
        if (m->both_orders)
            continue;
        if (position[l] > position[l + 1])
            return false;
        *weight *= position[l] < position[l + 1] ? 2 : 1;
    }
    return true;
}

static int count_ordered(const maker *m, const half *h)
{
    int count = 1;
    for (int l = 0; l < h->count; l++)
        count *= m->plan->dots[h->dot[l]].row_count;
    return count;
}

static fpa_status fill_factors(const maker *m, half *h, arena *memory, fpa_product_rows *made,
                               fpa_error *error)
{
    const int ordered = count_ordered(m, h);
    int position[MOST_DEGREE] = {0}, next = 0;
    double weight;
    h->number = arena_array(memory, ordered, sizeof *h->number);
    if (!h->number)
        return fail_memory(error);
    for (int i = 0; i < ordered; i++) {
        h->number[i] = split_row(m, h, i, position, &weight) ? next++ : -1;
        if (h->number[i] < 0 || h->count == 1)
            continue;
        const int row = h->first - m->plan->row_count + h->number[i];
        made->weight[row] = weight;
        for (int l = 0; l < made->factors; l++)
            made->factor[row * made->factors + l] =
                l < h->count ? m->plan->dots[h->dot[l]].rows[position[l]] : m->plan->ones_row;
    }
    return FPA_OK;
}

static fpa_status make_rows(const maker *m, arena *memory, fpa_product_rows *made, fpa_error *error)
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
    if (!made->factor || !made->weight)
        return fail_memory(error);
    fpa_status status = FPA_OK;
    for (int i = 0; i < m->half_count && !status; i++)
        status = fill_factors(m, &m->halves[i], memory, made, error);
    return status;
}

/* ---- the score ---- */

static fpa_status make_dots(const maker *m, arena *memory, fpa_product_rows *made, fpa_error *error)
{
    made->score.dot_count = m->half_count;
    made->plan.dots = arena_array(memory, m->half_count, sizeof *made->plan.dots);
    made->dot_degree = arena_array(memory, m->half_count, sizeof *made->dot_degree);
    if (!made->plan.dots || !made->dot_degree)
        return fail_memory(error);
    for (int i = 0; i < m->half_count; i++) {
        const half *h = &m->halves[i];
        int *rows = arena_array(memory, h->rows, sizeof *rows);
        if (!rows)
            return fail_memory(error);
        for (int r = 0; r < h->rows; r++)
            rows[r] = half_row(m, h, r);
        made->plan.dots[i] = (fpa_dot){h->rows, rows};
        made->dot_degree[i] = h->count;
    }
    return FPA_OK;
}

static fpa_status make_monomials(const maker *m, arena *memory, fpa_product_rows *made, fpa_error *error)
{
    const fpa_score *score = m->plan->score;
    made->score.monomial_count = score->monomial_count;
    made->score.monomials = arena_array(memory, score->monomial_count, sizeof *made->score.monomials);
    for (int i = 0; made->score.monomials && i < score->monomial_count; i++) {
        int *power = arena_array(memory, m->half_count, sizeof *power);
        if (!power)
            return fail_memory(error);
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
    return made->score.monomials ? FPA_OK : fail_memory(error);
}

/* ---- features ---- */

/* A feature's factors, and of all ways to have them in a monomial's halves the first one that no other feature has. */
typedef struct search {
    const maker *m;
    const dealt *dealt;
    int degree, row[MOST_DEGREE];
    int position[MOST_DEGREE]; /* in the dots of the first half, then of the second */
    bool taken[MOST_DEGREE], found;
    int best[2];
    double gram; /* of the rows of the best */
} search;

static int pair_of(const maker *m, const dealt *of, const int *at)
{
    return at[0] * (of->half[1] < 0 ? 1 : m->halves[of->half[1]].rows) + at[1];
}

/* Row of a half that rows of its dots make, -1: another order has it. Its weights are multiplied into *gram. */
static int find_row(const maker *m, const half *h, const int *position, double *gram)
{
    int ordered = 0, none[MOST_DEGREE];
    double weight;
    for (int l = 0; l < h->count; l++) {
        const fpa_dot *dot = &m->plan->dots[h->dot[l]];
        ordered = ordered * dot->row_count + position[l];
        *gram *= m->gram[dot->rows[position[l]]];
    }
    if (h->count > 1 && split_row(m, h, ordered, none, &weight))
        *gram *= weight;
    return h->number[ordered];
}

static void keep_first(search *s)
{
    int at[2] = {0}, n = 0;
    double gram = 1;
    for (int i = 0; i < 2; i++) {
        if (s->dealt->half[i] < 0)
            continue;
        const half *h = &s->m->halves[s->dealt->half[i]];
        at[i] = find_row(s->m, h, s->position + n, &gram);
        if (at[i] < 0)
            return;
        n += h->count;
    }
    if (s->dealt->taken[pair_of(s->m, s->dealt, at)])
        return;
    if (s->found && (at[0] > s->best[0] || (at[0] == s->best[0] && at[1] >= s->best[1])))
        return;
    s->found = true;
    s->best[0] = at[0], s->best[1] = at[1];
    s->gram = gram;
}

/* Dot number n of the halves gets any factor that it has a row for. */
static void try_dot(search *s, int n)
{
    const int first = s->dealt->half[0] < 0 ? 0 : s->m->halves[s->dealt->half[0]].count;
    if (n == s->degree) {
        keep_first(s);
        return;
    }
    const half *h = &s->m->halves[s->dealt->half[n >= first]];
    const int dot = h->dot[n >= first ? n - first : n];
    for (int i = 0; i < s->degree; i++) {
        const int position = s->m->position[dot * s->m->plan->row_count + s->m->base[s->row[i]]];
        if (s->taken[i] || position < 0)
            continue;
        s->taken[i] = true;
        s->position[n] = position;
        try_dot(s, n + 1);
        s->taken[i] = false;
    }
}

/* The piece of a feature of these factors; false: no monomial's halves have it. */
static bool place_feature(const maker *m, const fpa_piece *piece, int i, int *prefix, fpa_piece *placed)
{
    search s = {.m = m};
    double gram = 1;
    for (int l = 0; l <= piece->prefix_count; l++) {
        const int row = l < piece->prefix_count ? piece->prefix[l] : piece->base + i;
        if (row == m->plan->ones_row)
            continue;
        if (s.degree == MOST_DEGREE)
            return false;
        s.row[s.degree++] = row;
        gram *= m->gram[row];
    }
    for (int k = 0; k < m->plan->score->monomial_count && !s.found; k++) {
        s.dealt = &m->dealt[k];
        if (s.dealt->degree == s.degree)
            try_dot(&s, 0);
    }
    if (!s.found)
        return false;
    const int *of = s.dealt->half;
    s.dealt->taken[pair_of(m, s.dealt, s.best)] = true;
    *placed = (fpa_piece){.feature = piece->feature + i,
                          .width = 1,
                          .prefix_count = of[0] >= 0,
                          .prefix = prefix,
                          .base = of[1] < 0 ? m->plan->ones_row : half_row(m, &m->halves[of[1]], s.best[1]),
                          .weight = piece->weight * gram / s.gram,
                          .degree = s.degree};
    if (of[0] >= 0)
        *prefix = half_row(m, &m->halves[of[0]], s.best[0]);
    return true;
}

static fpa_status make_pieces(const maker *m, arena *memory, fpa_product_rows *made, char *why,
                              fpa_error *error)
{
    const fpa_plan *plan = m->plan;
    const size_t features = (size_t)plan->features;
    int *prefix = arena_array(memory, features, sizeof *prefix), count = 0;
    made->plan.pieces = arena_array(memory, features, sizeof *made->plan.pieces);
    if (!prefix || !made->plan.pieces)
        return fail_memory(error);
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++, count++)
            if (!place_feature(m, &plan->pieces[p], i, prefix + count, &made->plan.pieces[count]))
                return unsuited(why, "its features are no products of rows of its dots");
    made->plan.piece_count = count;
    return FPA_OK;
}

/* ---- the plan ---- */

static bool has_products(const maker *m)
{
    bool several = false;
    for (int i = 0; i < m->half_count; i++)
        several |= m->halves[i].count > 1;
    return several;
}

static fpa_status make_halves(maker *m, arena *memory, char *why, fpa_error *error)
{
    const int monomials = m->plan->score->monomial_count;
    m->halves = arena_array(memory, 2 * (size_t)monomials, sizeof *m->halves);
    m->dealt = arena_array(memory, monomials, sizeof *m->dealt);
    if (!m->halves || !m->dealt || !describe_rows(m, memory))
        return fail_memory(error);
    for (int i = 0; i < monomials; i++)
        if (!deal_out(m, i))
            return unsuited(why, "a half of its dots has too many rows");
    for (int i = 0; i < monomials; i++) {
        size_t pairs = 1;
        for (int j = 0; j < 2; j++)
            pairs *= m->dealt[i].half[j] < 0 ? 1 : m->halves[m->dealt[i].half[j]].rows;
        if (!(m->dealt[i].taken = arena_array(memory, pairs, sizeof *m->dealt[i].taken)))
            return fail_memory(error);
    }
    return has_products(m) ? FPA_OK : unsuited(why, "it has no products of three dots");
}

fpa_status plan_product_rows(const fpa_plan *plan, int columns, bool both_orders, arena *memory,
                             fpa_product_rows *made, char *why, fpa_error *error)
{
    maker m = {.plan = plan, .columns = columns, .both_orders = both_orders};
    *made = (fpa_product_rows){.plan = *plan};
    made->plan.score = &made->score;
    fpa_status status = make_halves(&m, memory, why, error);
    if (status || *why)
        return status;
    if ((status = make_rows(&m, memory, made, error)) || (status = make_dots(&m, memory, made, error)) ||
        (status = make_monomials(&m, memory, made, error)))
        return status;
    return make_pieces(&m, memory, made, why, error);
}
