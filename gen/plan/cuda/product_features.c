/* product_features: which pair of rows of a monomial's halves each feature is. A feature of a dot that halves have several times is several: x1 x2 x3 x4
 * is x1x2 times x3x4, x1x3 times x2x4 and x1x4 times x2x3. Those are taken that fill few tiles of 8 x 8: the tile that most features can be in gets all of
 * these, then the one that most of the others can be in, and so on. */
#include "base/round.h"
#include "mechanism.h"
#include "outer.h"
#include "product_halves.h"

enum { MOST_WAYS = 256 }; /* of a feature */

/* A row of each half of a monomial. */
typedef struct way {
    int monomial, at[2];
    int tile;
    double gram; /* of both rows */
} way;

typedef struct ways {
    int degree, count, placed; /* placed: the way that is taken, -1: none */
    double gram;               /* of the feature's factors */
    way *list;
} ways;

/* ---- all ways of a feature ---- */

typedef struct search {
    const maker *m;
    const int *first_tile; /* [monomials] */
    int monomial;
    int degree, row[MOST_DEGREE];
    int position[MOST_DEGREE]; /* in the dots of the first half, then of the second */
    bool taken[MOST_DEGREE];
    int count;
    way list[MOST_WAYS];
} search;

static const half *half_of(const maker *m, int monomial, int i)
{
    const int number = m->dealt[monomial].half[i];
    return number < 0 ? NULL : &m->halves[number];
}

static int half_rows(const maker *m, int monomial, int i)
{
    const half *h = half_of(m, monomial, i);
    return h ? h->rows : 1;
}

static int half_blocks(const maker *m, int monomial, int i)
{
    return divide_up(half_rows(m, monomial, i), OUTER_BLOCK);
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
    if (h->count > 1 && half_split(m, h, ordered, none, &weight))
        *gram *= weight;
    return h->number[ordered];
}

static bool is_listed(const search *s, const way *w)
{
    for (int i = 0; i < s->count; i++)
        if (s->list[i].monomial == w->monomial && s->list[i].at[0] == w->at[0] &&
            s->list[i].at[1] == w->at[1])
            return true;
    return false;
}

static void list_way(search *s)
{
    const maker *m = s->m;
    way w = {.monomial = s->monomial, .gram = 1};
    int n = 0;
    for (int i = 0; i < 2; i++) {
        const half *h = half_of(m, s->monomial, i);
        w.at[i] = h ? find_row(m, h, s->position + n, &w.gram) : 0;
        n += h ? h->count : 0;
        if (w.at[i] < 0)
            return;
    }
    w.tile = s->first_tile[s->monomial] + w.at[0] / OUTER_BLOCK * half_blocks(m, s->monomial, 1) +
             w.at[1] / OUTER_BLOCK;
    if (s->count < MOST_WAYS && !is_listed(s, &w))
        s->list[s->count++] = w;
}

/* Dot number n of the halves gets any factor that it has a row for. */
static void try_dot(search *s, int n)
{
    const half *low = half_of(s->m, s->monomial, 0);
    const int first = low ? low->count : 0;
    if (n == s->degree) {
        list_way(s);
        return;
    }
    const half *h = n < first ? low : half_of(s->m, s->monomial, 1);
    if (!h)
        return;
    const int dot = h->dot[n < first ? n : n - first];
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

/* Of feature number i of a piece; false: there is none. */
static bool list_ways(search *s, const fpa_piece *piece, int i, arena *memory, ways *found)
{
    const maker *m = s->m;
    s->degree = s->count = 0;
    *found = (ways){.placed = -1, .gram = 1};
    for (int l = 0; l <= piece->prefix_count; l++) {
        const int row = l < piece->prefix_count ? piece->prefix[l] : piece->base + i;
        if (row == m->plan->ones_row)
            continue;
        if (s->degree == MOST_DEGREE)
            return false;
        s->row[s->degree++] = row;
        found->gram *= m->gram[row];
    }
    found->degree = s->degree;
    while (m->padded && s->degree < m->dealt[0].degree)
        s->row[s->degree++] = m->plan->ones_row;
    for (s->monomial = 0; s->monomial < m->plan->score->monomial_count; s->monomial++)
        if (m->dealt[s->monomial].degree == s->degree)
            try_dot(s, 0);
    found->count = s->count;
    found->list = arena_copy(memory, s->list, s->count * sizeof *s->list);
    return s->count > 0;
}

/* ---- tiles ---- */

typedef struct tiling {
    int features, tiles;
    ways *of; /* [features] */
    /* [tiles] features without a place that can be there; 0 also once all of its places are looked at */
    int *wanted;
    int *first;     /* [tiles + 1] */
    int *member;    /* [first[tiles]] features that can be in a tile, once for each way */
    bool **is_full; /* [monomials][rows of both halves] pairs that are taken */
} tiling;

/* How often tile t is among the first `count` ways. */
static int count_tile(const ways *w, int count, int t)
{
    int times = 0;
    for (int i = 0; i < count; i++)
        times += w->list[i].tile == t;
    return times;
}

static void want(tiling *t, const ways *w, int change)
{
    for (int i = 0; i < w->count; i++)
        if (!count_tile(w, i, w->list[i].tile))
            t->wanted[w->list[i].tile] += change;
}

static void index_tiles(const maker *m, tiling *t, arena *memory)
{
    const int monomials = m->plan->score->monomial_count;
    t->wanted = arena_array(memory, t->tiles, sizeof *t->wanted);
    t->first = arena_array(memory, t->tiles + 2, sizeof *t->first);
    t->is_full = arena_array(memory, monomials, sizeof *t->is_full);
    for (int k = 0; k < monomials; k++)
        t->is_full[k] = arena_array(memory, (size_t)half_rows(m, k, 0) * half_rows(m, k, 1), sizeof(bool));
    for (int f = 0; f < t->features; f++) {
        want(t, &t->of[f], 1);
        for (int i = 0; i < t->of[f].count; i++)
            t->first[t->of[f].list[i].tile + 2]++;
    }
    for (int i = 0; i < t->tiles; i++)
        t->first[i + 2] += t->first[i + 1];
    t->member = arena_array(memory, t->first[t->tiles + 1], sizeof *t->member);
    for (int f = 0; f < t->features; f++)
        for (int i = 0; i < t->of[f].count; i++)
            t->member[t->first[t->of[f].list[i].tile + 1]++] = f;
}

/* The feature's place there, if it has none yet and one is free. */
static void place_there(const maker *m, tiling *t, ways *w, int tile)
{
    for (int i = 0; i < w->count && w->placed < 0; i++) {
        const way *at = &w->list[i];
        bool *full = &t->is_full[at->monomial][at->at[0] * half_rows(m, at->monomial, 1) + at->at[1]];
        if (at->tile != tile || *full)
            continue;
        *full = true;
        w->placed = i;
        want(t, w, -1);
    }
}

static int most_wanted(const tiling *t)
{
    int best = 0;
    for (int i = 1; i < t->tiles; i++)
        if (t->wanted[i] > t->wanted[best])
            best = i;
    return best;
}

/* False: some feature has no place. */
static bool fill_tiles(const maker *m, tiling *t)
{
    for (int best = most_wanted(t); t->wanted[best] > 0; best = most_wanted(t)) {
        for (int i = t->first[best]; i < t->first[best + 1]; i++)
            place_there(m, t, &t->of[t->member[i]], best);
        t->wanted[best] = -t->features; /* what wants it still finds no room */
    }
    for (int f = 0; f < t->features; f++)
        if (t->of[f].placed < 0)
            return false;
    return true;
}

/* ---- pieces ---- */

static fpa_piece piece_of(const maker *m, const fpa_piece *piece, int i, const ways *w, int *prefix)
{
    const way *at = &w->list[w->placed];
    const half *low = half_of(m, at->monomial, 0), *high = half_of(m, at->monomial, 1);
    if (low)
        *prefix = half_row(m, low, at->at[0]);
    return (fpa_piece){.feature = piece->feature + i,
                       .width = 1,
                       .prefix_count = low != NULL,
                       .prefix = prefix,
                       .base = high ? half_row(m, high, at->at[1]) : m->plan->ones_row,
                       .weight = piece->weight * w->gram / at->gram,
                       .degree = w->degree};
}

static void make_pieces(const maker *m, const tiling *t, arena *memory, fpa_product_rows *made)
{
    const fpa_plan *plan = m->plan;
    int *prefix = arena_array(memory, t->features, sizeof *prefix), count = 0;
    made->plan.pieces = arena_array(memory, t->features, sizeof *made->plan.pieces);
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++, count++)
            made->plan.pieces[count] = piece_of(m, &plan->pieces[p], i, &t->of[count], prefix + count);
    made->plan.piece_count = count;
}

/* False: some feature has no way. */
static bool list_all(const maker *m, tiling *t, arena *memory)
{
    const fpa_plan *plan = m->plan;
    const int monomials = plan->score->monomial_count;
    search *s = arena_alloc(memory, sizeof *s);
    int *first = arena_array(memory, monomials, sizeof *first), count = 0;
    t->features = (int)plan->features;
    t->of = arena_array(memory, t->features, sizeof *t->of);
    for (int k = 0; k < monomials; k++) {
        first[k] = t->tiles;
        t->tiles += half_blocks(m, k, 0) * half_blocks(m, k, 1);
    }
    s->m = m;
    s->first_tile = first;
    for (int p = 0; p < plan->piece_count; p++)
        for (int i = 0; i < plan->pieces[p].width; i++)
            if (!list_ways(s, &plan->pieces[p], i, memory, &t->of[count++]))
                return false;
    return true;
}

/* ---- what is filled ---- */

static void mark_row(const maker *m, int half_number, int row, arena *memory)
{
    half *h = half_number < 0 ? NULL : &m->halves[half_number];
    if (h && !h->used)
        h->used = arena_array(memory, h->rows, sizeof *h->used);
    if (h)
        h->used[row] = true;
}

static void count_filled(const maker *m, const tiling *t, arena *memory, filled *count)
{
    enum { PAIRS = OUTER_BLOCK / 2 };
    bool *seen = arena_array(memory, (size_t)t->tiles * PAIRS, sizeof *seen);
    *count = (filled){0};
    for (int f = 0; f < t->features; f++) {
        const way *w = &t->of[f].list[t->of[f].placed];
        seen[w->tile * PAIRS + w->at[0] % OUTER_BLOCK / 2] = true;
        for (int i = 0; i < 2; i++)
            mark_row(m, m->dealt[w->monomial].half[i], w->at[i], memory);
    }
    for (int tile = 0; tile < t->tiles; tile++) {
        const int before = count->quarters;
        for (int pair = 0; pair < PAIRS; pair++)
            count->quarters += seen[tile * PAIRS + pair];
        count->tiles += count->quarters > before;
    }
}

const char *place_features(const maker *m, arena *memory, fpa_product_rows *made, filled *count)
{
    arena *scratch = arena_scratch(memory);
    tiling t = {0};
    bool all = list_all(m, &t, scratch);
    if (all)
        index_tiles(m, &t, scratch);
    all = all && fill_tiles(m, &t);
    if (all) {
        make_pieces(m, &t, memory, made);
        count_filled(m, &t, memory, count);
    }
    arena_free(scratch);
    return all ? NULL : "its features are not products of rows of its dot products";
}
