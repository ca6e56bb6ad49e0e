/* plan_fused_packed_slots: the order of features in fused_packed. Sixteen features that differ in one factor
 * only, whose rows are consecutive, are a unit: each other factor is one row, and units of the same rows
 * fetch them once. Products of sixteen rows with each other are units whose last factor is these rows, in
 * order. */
#include <string.h>

#include "fused_packed.h"
#include "parts.h"

enum {
    HALF = CUDA_UNIT / 2,
    SQUARE = HALF + 1 /* units of all products of a unit's rows, of neighbours twice */
};

/* ---- products of a run of rows with each other ---- */

/* The first of the 16 rows of a run (coordinates, or rows of one matrix) that contains a packed row; -1: a
 * weighted row. */
static int run_base(const fpa_plan *plan, int row)
{
    if (row < plan->head->d)
        return row / CUDA_UNIT * CUDA_UNIT;
    for (int i = 0; i < plan->projection_count; i++) {
        const int first = plan->projections[i].first_row;
        if (row >= first && row < first + plan->head->matrices[plan->projections[i].matrix].rows)
            return first + (row - first) / CUDA_UNIT * CUDA_UNIT;
    }
    return -1;
}

/* Slot of the product of rows a and b of a run, of which *owner has the slot's number: unit n = a ^ b for
 * n < 2, else n / 2 + 1, where of a and b the one with the bit below owns odd n, the other one even n. (outer_fold
 * does so with 8 rows.) So the other rows of n + 8 are those of n, from 2 on, with halves of 8 rows exchanged, and
 * those of 8 and 9 are halves of 0's and 1's: queries have them once the first ones are fetched. */
static int square_slot(int a, int b, int *owner)
{
    const int apart = a ^ b, bit = apart & 4 ? 4 : apart & 2 ? 2 : 8;
    *owner = apart < 2 || !(b & bit) == !(apart & 1) ? b : a;
    return CUDA_UNIT * (apart < 2 ? apart : apart / 2 + 1) + *owner;
}

/* Lists by slots the features of one run that are products of two of its rows and have no slot yet; -1: none. */
static void gather_square(const fpa_plan *plan, int base, const bool *placed, int *feature, bool *swapped)
{
    for (int i = 0; i < SQUARE * CUDA_UNIT; i++)
        feature[i] = -1;
    for (int p = 0; p < plan->piece_count; p++) {
        const fpa_piece *piece = &plan->pieces[p];
        if (piece->prefix_count != 1 || run_base(plan, piece->prefix[0]) != base)
            continue;
        for (int i = 0; i < piece->width; i++) {
            const int a = piece->prefix[0] - base, b = piece->base + i - base;
            if (run_base(plan, piece->base + i) != base || placed[piece->feature + i])
                continue;
            int owner, slot = square_slot(a, b, &owner);
            if (feature[slot] < 0) {
                feature[slot] = (int)piece->feature + i;
                swapped[slot] = owner != b;
            }
        }
    }
}

/* Gives slots to whole units of products of the run at `base`, first those whose halves the next ones have
 * exchanged; returns how many slots they fill. */
static int place_square(const fpa_plan *plan, int base, bool *placed, int first, fpa_fused_packed *fused)
{
    static const int order[SQUARE] = {2, 3, 4, 6, 7, 8, 0, 1, 5};
    int feature[SQUARE * CUDA_UNIT], next = first;
    bool swapped[SQUARE * CUDA_UNIT];
    gather_square(plan, base, placed, feature, swapped);
    for (int n = 0; n < SQUARE; n++) {
        const int u = order[n];
        bool whole = true;
        for (int i = u * CUDA_UNIT; i < (u + 1) * CUDA_UNIT; i++)
            whole &= feature[i] >= 0;
        for (int i = u * CUDA_UNIT; whole && i < (u + 1) * CUDA_UNIT; i++, next++) {
            fused->slot_feature[next] = feature[i];
            fused->slot_swapped[next] = swapped[i];
            placed[feature[i]] = true;
        }
    }
    return next - first;
}

/* The same for all runs that contain the first factor of a product of two rows. */
static int place_squares(const fpa_plan *plan, bool *placed, fpa_fused_packed *fused)
{
    int used = 0;
    for (int p = 0; p < plan->piece_count; p++) {
        const fpa_piece *piece = &plan->pieces[p];
        const int base = piece->prefix_count == 1 ? run_base(plan, piece->prefix[0]) : -1;
        if (base >= 0 && !placed[piece->feature])
            used += place_square(plan, base, placed, used, fused);
    }
    return used;
}

/* ---- runs ---- */

/* Up to 8 consecutive features of a piece; more: the run that continues it, with the same other factors. */
typedef struct run {
    const fpa_piece *piece;
    int feature, width;
    int base; /* row of the first feature's last factor */
    struct run *more;
    bool joined, placed;
} run;

/* The largest possible number of runs: any features in between may have slots already. */
static int count_runs(const fpa_plan *plan)
{
    int count = 0;
    for (int i = 0; i < plan->piece_count; i++)
        count += plan->pieces[i].width;
    return count;
}

/* Cuts the features of a piece that have no slot yet into runs. */
static int cut_piece(const fpa_piece *piece, const bool *placed, run *runs)
{
    int count = 0;
    for (int i = 0; i < piece->width; i++) {
        run *last = count ? &runs[count - 1] : NULL;
        if (placed[piece->feature + i])
            continue;
        if (i % HALF && last && last->base + last->width == piece->base + i)
            last->width++;
        else
            runs[count++] = (run){
                .piece = piece, .feature = (int)piece->feature + i, .width = 1, .base = piece->base + i};
    }
    return count;
}

/* Whether run b continues run a. */
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

/* Extends run `tail` by free runs that continue it, up to a whole unit. */
static void extend(run *runs, int count, run *tail)
{
    int width = tail->width;
    tail->joined = true;
    for (int i = 0; i < count; i++) {
        run *next = &runs[i];
        if (next->joined || width + next->width > CUDA_UNIT || !continues(tail, next))
            continue;
        tail->more = next;
        next->joined = next->placed = true; /* it is placed with the first one */
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

/* Places run `first` and later ones of the same width and rows. */
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

/* ---- warps ---- */

static bool has_factors_in_front(const fpa_plan *plan, int64_t feature)
{
    for (int p = 0; p < plan->piece_count; p++)
        if (feature >= plan->pieces[p].feature && feature < plan->pieces[p].feature + plan->pieces[p].width)
            return plan->pieces[p].prefix_count > 0;
    return false;
}

/* Whether all features of slots from `first` on are single rows or 1, so that their last factor can be the row of
 * ones. */
static bool are_rows(const fpa_plan *plan, const fpa_fused_packed *fused, int first)
{
    for (int i = first; i < fused->slots; i++)
        if (fused->slot_feature[i] >= 0 && has_factors_in_front(plan, fused->slot_feature[i]))
            return false;
    return true;
}

/* Copies the slots of unit `from` of an earlier order to unit `to`. */
static void move_unit(const int *feature, const int *swapped, int from, int to, fpa_fused_packed *fused)
{
    memcpy(fused->slot_feature + to * CUDA_UNIT, feature + from * CUDA_UNIT, CUDA_UNIT * sizeof *feature);
    for (int i = 0; i < CUDA_UNIT; i++)
        fused->slot_swapped[to * CUDA_UNIT + i] = swapped ? swapped[from * CUDA_UNIT + i] : 1;
}

/* Moves units: those of squares to the first `warps` warps of each tile, the others to the other warps, but
 * not of the second tile if `free`. */
static void move_units(const int *feature, const int *swapped, int squares, int others, int warps, bool free,
                       fpa_fused_packed *fused)
{
    for (int i = 0; i < fused->slots; i++)
        fused->slot_feature[i] = -1;
    for (int u = 0; u < squares; u++)
        move_unit(feature, swapped, u, u / warps * 4 + u % warps, fused);
    for (int u = 0; u < others; u++) {
        const int tile = u / (4 - warps);
        move_unit(feature, NULL, squares + u, (tile + (free && tile)) * 4 + warps + u % (4 - warps), fused);
    }
}

/* A warp of keys whose tiles have only squares, or only single rows, has the same last factor in all its tiles,
 * and fetches it once. The other rows of a square in the second tile are those in the first one with halves
 * exchanged; if nothing else is in that tile, this holds for all warps. */
static void part_warps(const fpa_plan *plan, const fpa_cuda_rows *rows, arena *memory, int used,
                       fpa_fused_packed *fused)
{
    const int squares = used / CUDA_UNIT, tiles = fused->key_tiles, warps = squares / tiles;
    const int others = (int)(plan->features - used + CUDA_UNIT - 1) / CUDA_UNIT;
    if (fused->key_groups > 1 || rows->factors != 2 || warps < 1 || warps > 3 || squares % tiles ||
        others > tiles * (4 - warps) || !are_rows(plan, fused, used))
        return;
    int *feature = arena_array(memory, 2 * fused->slots, sizeof *feature);
    memcpy(feature, fused->slot_feature, fused->slots * sizeof *feature);
    memcpy(feature + fused->slots, fused->slot_swapped, fused->slots * sizeof *feature);
    move_units(feature, feature + fused->slots, squares, others, warps, others <= (tiles - 1) * (4 - warps),
               fused);
}

static void place_features(const fpa_plan *plan, const fpa_cuda_rows *rows, arena *memory,
                           fpa_fused_packed *fused)
{
    bool *placed = arena_array(memory, (size_t)plan->features, sizeof *placed);
    run *runs = arena_array(memory, count_runs(plan), sizeof *runs);
    int count = 0;
    const int used = place_squares(plan, placed, fused);
    for (int i = 0; i < plan->piece_count; i++)
        count += cut_piece(&plan->pieces[i], placed, runs + count);
    join_runs(runs, count);
    place_runs(runs, count, fused->slot_feature + used);
    part_warps(plan, rows, memory, used, fused);
}

void plan_fused_packed_slots(const fpa_plan *plan, const fpa_cuda_rows *rows, arena *memory,
                             fpa_fused_packed *fused)
{
    arena *scratch = arena_scratch(memory);
    fused->slots = 64 * fused->key_groups * fused->key_tiles;
    fused->slot_feature = arena_array(memory, fused->slots, sizeof *fused->slot_feature);
    fused->slot_swapped = arena_array(memory, fused->slots, sizeof *fused->slot_swapped);
    for (int i = 0; i < fused->slots; i++)
        fused->slot_feature[i] = -1;
    place_features(plan, rows, scratch, fused);
    arena_free(scratch);
}
