/* plan_fused_packed_queries: how queries of fused_packed form features. A factor of a unit's sixteen features
 * is a *fragment* of sixteen packed rows: one row, consecutive rows, two halves of 8 rows of other fragments,
 * or arbitrary rows, which are looked up in a table. Units are ordered such that those whose fragments have
 * been fetched come first; fragments are fetched a group of units before its products, into few registers
 * (places). */
#include <string.h>

#include "fused_packed.h"
#include "parts.h"

enum { HALF = CUDA_UNIT / 2 };

typedef struct planner {
    const fpa_cuda_rows *rows;
    const fpa_fused_packed *fused;
    fpa_fused_queries *queries;
    int together;  /* units of a group */
    int *place_of; /* [fragments] -1: none */
    int *holds;    /* [places] -1: nothing */
    bool *ordered; /* [units] */
} planner;

/* ---- fragments ---- */

static int factor_row(const planner *p, int l, int slot)
{
    const fpa_cuda_rows *rows = p->rows;
    const int feature = p->fused->slot_feature[slot], last = rows->factors - 1;
    const int factor = p->fused->slot_swapped[slot] && l >= last - 1 ? 2 * last - 1 - l : l;
    return rows->factor_row[factor * rows->features + feature] - p->fused->row_base;
}

/* The first slot of a unit that has a feature; -1: none has. */
static int first_slot(const planner *p, int unit)
{
    for (int s = unit * CUDA_UNIT; s < (unit + 1) * CUDA_UNIT; s++)
        if (p->fused->slot_feature[s] >= 0)
            return s;
    return -1;
}

/* The rows of factor l of a unit. Slots without a feature get the rows of one that has: the copy of the state
 * is zero there. */
static void find_rows(const planner *p, int unit, int l, int row[CUDA_UNIT])
{
    const int some = first_slot(p, unit);
    for (int i = 0; i < CUDA_UNIT; i++) {
        const int slot = unit * CUDA_UNIT + i;
        row[i] = factor_row(p, l, p->fused->slot_feature[slot] >= 0 ? slot : some);
    }
}

static int find_fragment(const fpa_fused_queries *q, const int row[CUDA_UNIT])
{
    for (int j = 0; j < q->fragments; j++)
        if (memcmp(q->fragment[j].row, row, sizeof q->fragment[j].row) == 0)
            return j;
    return -1;
}

/* Finds the first fragment one of whose halves has these 8 rows; false: none has. */
static bool find_half(const fpa_fused_queries *q, const int row[HALF], int *fragment, int *half)
{
    for (int j = 0; j < q->fragments; j++)
        for (int h = 0; h < 2; h++)
            if (!q->fragment[j].one && !q->fragment[j].halves &&
                memcmp(q->fragment[j].row + h * HALF, row, HALF * sizeof *row) == 0) {
                *fragment = j, *half = h;
                return true;
            }
    return false;
}

static bool find_halves(const fpa_fused_queries *q, fpa_fused_fragment *f)
{
    return find_half(q, f->row, &f->low, &f->low_half) &&
           find_half(q, f->row + HALF, &f->high, &f->high_half);
}

static bool goes_by(const int row[CUDA_UNIT], int step)
{
    for (int i = 0; i < CUDA_UNIT; i++)
        if (row[i] != row[0] + i * step)
            return false;
    return true;
}

/* Adds a fragment unless it exists; returns its number. */
static int add_fragment(fpa_fused_queries *q, const fpa_fused_fragment *rows)
{
    const int there = find_fragment(q, rows->row);
    if (there >= 0)
        return there;
    fpa_fused_fragment f = *rows;
    f.one = goes_by(f.row, 0);
    f.run = goes_by(f.row, 1);
    f.halves = !f.one && !f.run && find_halves(q, &f);
    f.first = f.row[0];
    if (!f.one && !f.run && !f.halves) {
        memcpy(q->looked_up_row + q->looked_up * CUDA_UNIT, f.row, sizeof f.row);
        f.first = q->looked_up++;
    }
    q->fragment[q->fragments] = f;
    return q->fragments++;
}

/* ---- the order of units ---- */

static bool is_all_there(const planner *p, int unit)
{
    for (int l = 0; l < p->rows->factors; l++) {
        fpa_fused_fragment f;
        find_rows(p, unit, l, f.row);
        if (find_fragment(p->queries, f.row) < 0 && !find_halves(p->queries, &f))
            return false;
    }
    return true;
}

static void add_unit(planner *p, int unit)
{
    fpa_fused_queries *q = p->queries;
    p->ordered[unit] = true;
    q->unit[q->units++] = unit;
    for (int l = 0; l < p->rows->factors; l++) {
        fpa_fused_fragment f = {0};
        find_rows(p, unit, l, f.row);
        q->factor[q->factors++].fragment = add_fragment(q, &f);
    }
}

/* Orders units that have features: after each one, those all of whose rows have been fetched. */
static void order_units(planner *p)
{
    const int units = p->fused->slots / CUDA_UNIT;
    for (int u = 0; u < units; u++) {
        if (first_slot(p, u) < 0 || p->ordered[u])
            continue;
        add_unit(p, u);
        for (int later = u + 1; later < units; later++)
            if (first_slot(p, later) >= 0 && !p->ordered[later] && is_all_there(p, later))
                add_unit(p, later);
    }
}

/* ---- places ---- */

/* Lists what is fetched for a factor: one fragment, or the two whose halves it is. */
static int list_fetched(const planner *p, int factor, int fragment[2])
{
    const fpa_fused_queries *q = p->queries;
    const int j = q->factor[factor].fragment;
    const fpa_fused_fragment *f = &q->fragment[j];
    fragment[0] = f->halves ? f->low : j;
    fragment[1] = f->high;
    return f->halves ? 2 : 1;
}

static bool is_listed(const int *list, int count, int item)
{
    for (int i = 0; i < count; i++)
        if (list[i] == item)
            return true;
    return false;
}

/* The number of factors of the first n units of the order. */
static int factors_before(const planner *p, int n)
{
    return (n < p->queries->units ? n : p->queries->units) * p->rows->factors;
}

/* Adds the fragments of group g that are not in the list. */
static int list_group(const planner *p, int g, int *list, int count)
{
    const int end = factors_before(p, (g + 1) * p->together);
    for (int i = factors_before(p, g * p->together); i < end; i++) {
        int fetched[2];
        const int several = list_fetched(p, i, fetched);
        for (int n = 0; n < several; n++)
            if (!is_listed(list, count, fetched[n]))
                list[count++] = fetched[n];
    }
    return count;
}

/* The number of places: two consecutive groups need their fragments at once. */
static int count_places(const planner *p, int *list)
{
    int most = 0;
    for (int g = 0; g < p->queries->groups; g++)
        most = largest(most, list_group(p, g + 1, list, list_group(p, g, list, 0)));
    return most;
}

/* The first unit of the order, from `from` on, that needs a fragment. */
static int next_use(const planner *p, int fragment, int from)
{
    for (int i = factors_before(p, from); i < p->queries->factors; i++) {
        int fetched[2];
        if (is_listed(fetched, list_fetched(p, i, fetched), fragment))
            return i / p->rows->factors;
    }
    return p->queries->units;
}

/* Chooses a place for a fragment of group g: a free one, or the one whose fragment is needed latest by units
 * from group g - 1 on. */
static int find_place(const planner *p, int g)
{
    const int from = largest(g - 1, 0) * p->together;
    int best = 0, latest = -1;
    for (int i = 0; i < p->queries->places; i++) {
        if (p->holds[i] < 0)
            return i;
        const int use = next_use(p, p->holds[i], from);
        if (use > latest)
            best = i, latest = use;
    }
    return best;
}

static void fetch_group(planner *p, int g, int *list)
{
    fpa_fused_queries *q = p->queries;
    const int count = list_group(p, g, list, 0);
    for (int i = 0; i < count; i++) {
        if (p->place_of[list[i]] >= 0)
            continue;
        const int place = find_place(p, g);
        if (p->holds[place] >= 0)
            p->place_of[p->holds[place]] = -1;
        p->holds[place] = list[i];
        p->place_of[list[i]] = place;
        q->fetch[q->fetches++] = (fpa_fused_fetch){g, list[i], place};
    }
}

static void read_group(const planner *p, int g)
{
    const int end = factors_before(p, (g + 1) * p->together);
    for (int i = factors_before(p, g * p->together); i < end; i++) {
        int fetched[2];
        const int count = list_fetched(p, i, fetched);
        p->queries->factor[i].place = p->place_of[fetched[0]];
        p->queries->factor[i].high_place = p->place_of[fetched[count - 1]];
    }
}

/* Assigns places to fragments, group by group; list: has room for all fragments. */
static void place_fragments(planner *p, int *list)
{
    fpa_fused_queries *q = p->queries;
    q->groups = (int)divide_up(q->units, p->together);
    q->places = count_places(p, list);
    fetch_group(p, 0, list);
    for (int g = 0; g < q->groups; g++) {
        fetch_group(p, g + 1, list);
        read_group(p, g);
    }
}

/* ---- all of it ---- */

static void take_room(arena *memory, int factors, fpa_fused_queries *q)
{
    q->unit = arena_array(memory, FUSED_MOST_UNITS, sizeof *q->unit);
    q->factor = arena_array(memory, factors, sizeof *q->factor);
    q->fragment = arena_array(memory, factors, sizeof *q->fragment);
    q->looked_up_row = arena_array(memory, factors * CUDA_UNIT, sizeof *q->looked_up_row);
    q->fetch = arena_array(memory, 2 * factors, sizeof *q->fetch);
}

void plan_fused_packed_queries(const fpa_cuda_rows *rows, arena *memory, fpa_fused_packed *fused)
{
    const int factors = FUSED_MOST_UNITS * rows->factors, none = -1;
    arena *scratch = arena_scratch(memory);
    planner p = {
        .rows = rows, .fused = fused, .queries = &fused->queries, .together = fused->walk.query_together};
    int *list = arena_array(scratch, factors, sizeof *list);
    p.place_of = arena_array(scratch, factors, sizeof *p.place_of);
    p.holds = arena_array(scratch, factors, sizeof *p.holds);
    p.ordered = arena_array(scratch, fused->slots / CUDA_UNIT, sizeof *p.ordered);
    take_room(memory, factors, p.queries);
    for (int i = 0; i < factors; i++)
        p.place_of[i] = p.holds[i] = none;
    order_units(&p);
    place_fragments(&p, list);
    arena_free(scratch);
}
