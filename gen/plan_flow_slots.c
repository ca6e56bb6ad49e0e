/* plan_flow_slots: the order in which the one-pass kernel has features. Sixteen that differ in one factor
 * only, by consecutive rows, are a unit: its other factors are one row each, and units of the same rows fetch
 * them once. */
#include "plan_cuda_parts.h"

enum { HALF = CUDA_UNIT / 2 };

/* Up to 8 consecutive features of a piece; `more`: what continues it, with the same other factors. */
typedef struct run {
    const fpa_piece *piece;
    int feature, width;
    int base; /* row of the last factor of the first one */
    struct run *more;
    bool joined, placed;
} run;

static int count_runs(const fpa_plan *plan)
{
    int count = 0;
    for (int i = 0; i < plan->piece_count; i++)
        count += (plan->pieces[i].width + HALF - 1) / HALF;
    return count;
}

static int cut_piece(const fpa_piece *piece, run *runs)
{
    int count = 0;
    for (int first = 0; first < piece->width; first += HALF) {
        const int left = piece->width - first;
        runs[count++] = (run){.piece = piece,
                              .feature = (int)piece->feature + first,
                              .width = left < HALF ? left : HALF,
                              .base = piece->base + first};
    }
    return count;
}

/* Whether b goes on where a ends. */
static bool continues(const run *a, const run *b)
{
    const fpa_piece *x = a->piece, *y = b->piece;
    if (b->base != a->base + a->width || x->prefix_count != y->prefix_count)
        return false;
    for (int l = 0; l < x->prefix_count; l++)
        if (x->prefix[l] != y->prefix[l])
            return false;
    return true;
}

static bool begins(const run *runs, int count, const run *a)
{
    for (int i = 0; i < count; i++)
        if (!runs[i].joined && continues(&runs[i], a))
            return false;
    return true;
}

/* Of those that are free, `tail` takes what continues it, up to a whole unit. */
static void extend(run *runs, int count, run *tail)
{
    int width = tail->width;
    tail->joined = true;
    for (int i = 0; i < count; i++) {
        run *next = &runs[i];
        if (next->joined || width + next->width > CUDA_UNIT || !continues(tail, next))
            continue;
        tail->more = next;
        next->joined = next->placed = true; /* with the first one */
        width += next->width;
        tail = next;
        i = -1;
    }
}

static void join_runs(run *runs, int count)
{
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < count; i++)
            if (!runs[i].joined && begins(runs, count, &runs[i])) {
                extend(runs, count, &runs[i]);
                again = true;
            }
    }
}

static int run_width(const run *a)
{
    return a ? a->width + run_width(a->more) : 0;
}

static int place_run(run *a, int *slots)
{
    const int width = run_width(a);
    a->placed = true;
    for (; a; a = a->more)
        for (int f = 0; f < a->width; f++)
            *slots++ = a->feature + f;
    return width;
}

/* Runs as wide as number `first`, from it on, that have its rows. */
static int place_alike(run *runs, int count, int first, int *slots)
{
    int used = 0;
    for (int i = first; i < count; i++)
        if (!runs[i].placed && run_width(&runs[i]) == run_width(&runs[first]) &&
            runs[i].base == runs[first].base)
            used += place_run(&runs[i], slots + used);
    return used;
}

static void place_runs(run *runs, int count, int *slots)
{
    static const int least[] = {CUDA_UNIT, HALF, 1};
    for (size_t class = 0; class < sizeof least / sizeof *least; class ++)
        for (int i = 0; i < count; i++)
            if (!runs[i].placed && run_width(&runs[i]) >= least[class])
                slots += place_alike(runs, count, i, slots);
}

fpa_status plan_flow_slots(fpa_plan *plan, fpa_error *error)
{
    fpa_flow_plan *flow = &plan->flow;
    arena memory = {0};
    int count = 0;
    flow->slots = 64 * flow->key_groups * flow->key_tiles;
    flow->slot_feature = arena_array(&plan->memory, flow->slots, sizeof *flow->slot_feature);
    run *runs = arena_array(&memory, count_runs(plan), sizeof *runs);
    if (!flow->slot_feature || !runs) {
        arena_free(&memory);
        return fail_memory(error);
    }
    for (int i = 0; i < flow->slots; i++)
        flow->slot_feature[i] = -1;
    for (int i = 0; i < plan->piece_count; i++)
        count += cut_piece(&plan->pieces[i], runs + count);
    join_runs(runs, count);
    place_runs(runs, count, flow->slot_feature);
    arena_free(&memory);
    return FPA_OK;
}
