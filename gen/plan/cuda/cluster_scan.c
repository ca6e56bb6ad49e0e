#include "cluster_scan.h"

#include <stdio.h>

#include "gen/plan/plan.h"

enum {
    MOST_SUMS = 128, /* of the state and of o, that a thread can hold beside scores */
    SLAB = 64 * 128, /* bytes of 64 numbers of 64 tokens */
    GATE_BYTES =
        128 * 10 + 64 * 2 + 16, /* two parts of a sum and a factor a token; a factor a key of a half */
};

/* Places one behind the other, of slabs first: they begin at multiples of 1024. */
static void place(const fpa_plan *plan, fpa_cluster_scan_plan *cluster_scan)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const int half = (2 * ((plan->head->d + 63) / 64) + 1) * SLAB, ones = cuda->all_tiles > 8 ? 2048 : 0;
    const int copy = cuda->features * 16 * cuda->all_tiles;
    cluster_scan->at_ones = 2 * cluster_scan->spans * half;
    cluster_scan->at_outputs = cluster_scan->at_ones + ones;
    cluster_scan->at_copies = cluster_scan->at_outputs + (cluster_scan->outputs_apart ? 2 * SLAB : 0);
    cluster_scan->at_state = cluster_scan->at_copies + cluster_scan->copies * copy;
    cluster_scan->at_gates = cluster_scan->at_state + 2 * copy;
    cluster_scan->at_barriers = cluster_scan->at_gates + cluster_scan->spans * cluster_scan->gate_bytes;
    cluster_scan->bytes =
        cluster_scan->at_barriers + 32 * cluster_scan->spans + 16 * cluster_scan->copies + 4 * 8;
}

static bool fits_with(const fpa_plan *plan, bool outputs_apart, fpa_cluster_scan_plan *cluster_scan)
{
    cluster_scan->outputs_apart = outputs_apart;
    for (cluster_scan->copies = 2; cluster_scan->copies > 0; cluster_scan->copies--)
        for (cluster_scan->spans = 4; cluster_scan->spans > 1; cluster_scan->spans--) {
            place(plan, cluster_scan);
            if (cluster_scan->bytes <= plan->target->shared_memory)
                return true;
        }
    return false;
}

/* Places of queries from which o leaves are free later. */
static bool fits(const fpa_plan *plan, fpa_cluster_scan_plan *cluster_scan)
{
    return fits_with(plan, true, cluster_scan) || fits_with(plan, false, cluster_scan);
}

/* Of 512 for a thread of each warpgroup: of keys, two of queries, and one that fetches, and adds gates up.
 * Sums of a wide state are many; else queries have dots of two halves at a time. */
static void share_registers(const fpa_plan *plan, fpa_cluster_scan_plan *cluster_scan)
{
    const bool wide = plan->cuda.warp_units > 1, gate = plan->head->gate;
    const bool normalized = wide && plan->head->normalize != FPA_NORMALIZE_NONE;
    cluster_scan->fetch_registers = gate || normalized ? 40 : 32;
    cluster_scan->query_registers = normalized ? 136 : !wide ? 160 : gate ? 144 : 152;
    cluster_scan->key_registers = 512 - 2 * cluster_scan->query_registers - cluster_scan->fetch_registers;
}

static const char *refuse(const fpa_plan *plan, fpa_cluster_scan_plan *cluster_scan)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    if (!cuda->fused_coordinates || !cuda->coordinates)
        return "its features are no coordinates";
    if (cuda->column_tiles < 8 && (cuda->column_blocks > 1 || plan->head->normalize))
        return "o leaves, and ones of a normaliser lie, by 64 columns";
    if (4 * (cuda->warp_units + 1) * cuda->all_tiles > MOST_SUMS)
        return "its state has too many numbers";
    cluster_scan->gate_bytes = plan->head->gate ? GATE_BYTES : 0;
    return fits(plan, cluster_scan) ? NULL : "stretches of 128 tokens do not fit into shared memory";
}

void plan_cluster_scan(fpa_plan *plan)
{
    fpa_cluster_scan_plan *cluster_scan = &plan->cluster_scan;
    const char *why = refuse(plan, cluster_scan);
    cluster_scan->used = !why;
    snprintf(cluster_scan->why, sizeof cluster_scan->why, "%s", why ? why : "");
    if (cluster_scan->used)
        share_registers(plan, cluster_scan);
}
