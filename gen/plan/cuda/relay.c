#include "relay.h"

#include <stdio.h>

#include "gen/plan/plan.h"

enum {
    MOST_SUMS = 128, /* of the state and of o, that a thread can hold beside scores */
    SLAB = 64 * 128, /* bytes of 64 numbers of 64 tokens */
    GATE_BYTES =
        128 * 10 + 64 * 2 + 16, /* two parts of a sum and a factor a token; a factor a key of a half */
};

/* Places one behind the other, of slabs first: they begin at multiples of 1024. */
static void place(const fpa_plan *plan, fpa_relay_plan *relay)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const int half = (2 * ((plan->head->d + 63) / 64) + 1) * SLAB, ones = cuda->all_tiles > 8 ? 2048 : 0;
    const int copy = cuda->features * 16 * cuda->all_tiles;
    relay->at_ones = 2 * relay->stretches * half;
    relay->at_outputs = relay->at_ones + ones;
    relay->at_copies = relay->at_outputs + (relay->outputs_apart ? 2 * SLAB : 0);
    relay->at_state = relay->at_copies + relay->copies * copy;
    relay->at_gates = relay->at_state + 2 * copy;
    relay->at_barriers = relay->at_gates + relay->stretches * relay->gate_bytes;
    relay->bytes = relay->at_barriers + 32 * relay->stretches + 16 * relay->copies + 4 * 8;
}

static bool fits_with(const fpa_plan *plan, bool outputs_apart, fpa_relay_plan *relay)
{
    relay->outputs_apart = outputs_apart;
    for (relay->copies = 2; relay->copies > 0; relay->copies--)
        for (relay->stretches = 4; relay->stretches > 1; relay->stretches--) {
            place(plan, relay);
            if (relay->bytes <= plan->target->shared_memory)
                return true;
        }
    return false;
}

/* Places of queries from which o leaves are free later. */
static bool fits(const fpa_plan *plan, fpa_relay_plan *relay)
{
    return fits_with(plan, true, relay) || fits_with(plan, false, relay);
}

/* Of 512 for a thread of each warpgroup: of keys, two of queries, and one that fetches, and adds gates up.
 * Sums of a wide state are many; else queries have dots of two halves at a time. */
static void share_registers(const fpa_plan *plan, fpa_relay_plan *relay)
{
    const bool wide = plan->cuda.warp_units > 1, gate = plan->head->gate;
    const bool normalized = wide && plan->head->normalize != FPA_NORMALIZE_NONE;
    relay->fetch_registers = gate || normalized ? 40 : 32;
    relay->query_registers = normalized ? 136 : !wide ? 160 : gate ? 144 : 152;
    relay->key_registers = 512 - 2 * relay->query_registers - relay->fetch_registers;
}

static const char *refuse(const fpa_plan *plan, fpa_relay_plan *relay)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    if (!cuda->flow_hopper || !cuda->natural)
        return "its features are no coordinates";
    if (cuda->column_tiles < 8 && (cuda->column_blocks > 1 || plan->head->normalize))
        return "o leaves, and ones of a normaliser lie, by 64 columns";
    if (4 * (cuda->warp_units + 1) * cuda->all_tiles > MOST_SUMS)
        return "its state has too many numbers";
    relay->gate_bytes = plan->head->gate ? GATE_BYTES : 0;
    return fits(plan, relay) ? NULL : "stretches of 128 tokens do not fit into shared memory";
}

void plan_relay(fpa_plan *plan)
{
    fpa_relay_plan *relay = &plan->relay;
    const char *why = refuse(plan, relay);
    relay->used = !why;
    snprintf(relay->why, sizeof relay->why, "%s", why ? why : "");
    if (relay->used)
        share_registers(plan, relay);
}
