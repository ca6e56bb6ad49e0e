/* plan_flow_slots: the order in which the one-pass kernel has features. Sixteen that differ in one factor only,
 * by consecutive rows, are a unit: its other factors are one row each, and units of the same rows fetch them once. */
#include "plan_cuda_parts.h"

enum { HALF = CUDA_UNIT / 2 };

/* Consecutive features of a piece. */
typedef struct run {
    int feature, width;
    int base; /* row of the last factor of the first one */
    bool placed;
} run;

static int count_runs(const fpa_plan *plan)
{
    int count = 0;
    for (int i = 0; i < plan->piece_count; i++)
        count += plan->pieces[i].width / CUDA_UNIT + 2;
    return count;
}

/* Whole units, then a half of one, then the rest. */
static int cut_piece(const fpa_piece *piece, run *runs)
{
    int count = 0, width;
    for (int first = 0; first < piece->width; first += width) {
        const int left = piece->width - first;
        width = left >= CUDA_UNIT ? CUDA_UNIT : left >= HALF ? HALF : left;
        runs[count++] = (run){(int)piece->feature + first, width, piece->base + first, false};
    }
    return count;
}

/* Runs of one width class from number `first` on that have its rows. */
static int place_alike(run *runs, int count, int first, int *slots)
{
    int used = 0;
    for (int i = first; i < count; i++) {
        if (runs[i].placed || runs[i].width != runs[first].width || runs[i].base != runs[first].base)
            continue;
        for (int f = 0; f < runs[i].width; f++)
            slots[used++] = runs[i].feature + f;
        runs[i].placed = true;
    }
    return used;
}

static void place_runs(run *runs, int count, int *slots)
{
    static const int least[] = {CUDA_UNIT, HALF, 1};
    for (size_t class = 0; class < sizeof least / sizeof *least; class++)
        for (int i = 0; i < count; i++)
            if (!runs[i].placed && runs[i].width >= least[class])
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
    place_runs(runs, count, flow->slot_feature);
    arena_free(&memory);
    return FPA_OK;
}
