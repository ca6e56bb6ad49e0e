#include "cluster_scan.h"

#include "base/round.h"
#include "fused_pass.h"
#include "head/lift.h"
#include "lift_made.h"
#include "lift_rows.h"
#include "work.h"

enum {
    MOST_SUMS = 128, /* of the state and of o, that a thread can hold beside scores */
    SLAB = 64 * 128, /* bytes of 64 numbers of 64 tokens */
    GATE_BYTES = 128 * 10 + 64 * 2 +
                 16, /* a token: sum in two parts, and a factor; a factor a key of one half; the span's */
    STATE_BARRIERS = 2 * 4 * 8, /* bytes: one barrier for each piece of each warp's sums */
    CUT_BYTES = 32,             /* where the share of a cluster begins and ends */
    SPAN_BYTES = 16,            /* the description of a span */
    ONES_BYTES = 2048,          /* a slab of 16 tokens: the column of ones, then zeros */
};

/* Assigns addresses in shared memory: slabs come first, since they must begin at multiples of 1024 bytes. */
static void place(const fpa_cuda_inputs *in, fpa_cluster_scan *scan)
{
    const int columns = in->columns->all;
    const int slabs = lift_made_slabs(in->plan), queries = scan->product ? scan->given : slabs;
    const int half = (queries + slabs + 1) * SLAB, ones = in->columns->ones_slabs ? ONES_BYTES : 0;
    const int copy = in->rows->features * 16 * columns;
    scan->at_outputs = 2 * scan->spans * half;
    scan->at_matrix = scan->at_outputs + (scan->outputs_apart ? (scan->makes ? 1 : 2) * SLAB : 0);
    /* after all values: their operands add a distance */
    scan->at_ones = scan->at_matrix + scan->matrix_parts * slabs * SLAB;
    scan->at_copies = scan->at_ones + ones;
    scan->at_state = scan->at_copies + scan->copies * copy;
    scan->at_gates = scan->at_state + 2 * copy;
    scan->at_barriers = scan->at_gates + scan->spans * scan->gate_bytes;
    scan->at_mapped = scan->at_barriers + 32 * scan->spans + 16 * scan->copies + STATE_BARRIERS;
    scan->at_looked = scan->at_mapped + (scan->maps ? 16 * scan->spans : 0);
    scan->at_edges = scan->at_looked + 16 * scan->spans;
    scan->at_turns = scan->at_edges + 8 * scan->spans;
    /* read 16 bytes at a time */
    scan->at_turns = scan->turns ? (int)round_up(scan->at_turns, 16) : scan->at_turns;
    scan->at_positions = scan->at_turns + (scan->turns ? lift_turn_bytes(in->plan) : 0);
    scan->bytes =
        scan->at_positions +
        (scan->turns ? scan->spans * CLUSTER_SCAN_SPAN * in->plan->written->lift->positions * 4 : 0);
    scan->at_spans = (int)round_up(scan->bytes, 16);
    scan->at_cuts = scan->at_spans + 2 * scan->spans * SPAN_BYTES;
    scan->sequence_bytes = scan->at_cuts + CUT_BYTES;
}

static bool fits_with(const fpa_cuda_inputs *in, bool outputs_apart, fpa_cluster_scan *scan)
{
    scan->outputs_apart = outputs_apart;
    for (scan->copies = 2; scan->copies > 0; scan->copies--)
        for (scan->spans = 4; scan->spans > 1; scan->spans--) {
            place(in, scan);
            if (scan->bytes <= in->plan->target->shared_memory)
                return true;
        }
    return false;
}

/* First with buffers of their own for o: if o is stored from the buffers of queries, these are free only later. */
static bool fits(const fpa_cuda_inputs *in, fpa_cluster_scan *scan)
{
    return fits_with(in, true, scan) || fits_with(in, false, scan);
}

/* Whether the kernel fits if it makes coordinates in this way (LIFT_BEFORE: NAME_lift_rows does). */
static bool fits_as(const fpa_cuda_inputs *in, fpa_lift_made made, fpa_cluster_scan *scan)
{
    scan->maps = made != LIFT_BEFORE;
    scan->turns = made == LIFT_TURNS;
    scan->product = made == LIFT_PRODUCT;
    scan->makes = scan->maps && !scan->product;
    scan->given = scan->maps ? lift_given_slabs(in->plan) : lift_made_slabs(in->plan);
    scan->matrix_parts = scan->product ? lift_matrix_parts(in->plan) : 0;
    return fits(in, scan);
}

/* Registers a thread of the four warpgroups, 512 together: keys, queries twice, and the one that fetches and sums
 * log-gates. If the state is wide, its sums need many; else queries hold the dots of two halves at a time. */
static void share_registers(const fpa_cuda_inputs *in, fpa_cluster_scan *scan)
{
    const bool wide = in->rows->warp_units > 1, gate = in->plan->head->gate;
    const bool normalized = wide && in->plan->head->normalize != FPA_NORMALIZE_NONE;
    const bool product = scan->product; /* keys hold no state while they are added */
    scan->fetch_registers = product || gate ? 48 : normalized ? 40 : 32;
    scan->query_registers = normalized && !product ? 136 : !wide ? 160 : gate || product ? 144 : 152;
    scan->key_registers = 512 - 2 * scan->query_registers - scan->fetch_registers;
}

/* The same for one warpgroup of queries and one that makes coordinates. */
static void share_made_registers(const fpa_cuda_inputs *in, fpa_cluster_scan *scan)
{
    scan->fetch_registers = 56;
    scan->make_registers = scan->turns ? 128 : 96;
    scan->query_registers = in->rows->warp_units > 1 ? 152 : 160;
    scan->key_registers = 512 - scan->query_registers - scan->make_registers - scan->fetch_registers;
}

/* In sequence_scan, the warpgroup that fetches also finds each span's sequence, and needs more registers. */
static void share_sequence_registers(const fpa_cuda_inputs *in, fpa_cluster_scan *scan)
{
    const bool wide = in->rows->warp_units > 1;
    scan->sequence_fetch_registers = scan->maps || !wide ? 56 : 40;
    scan->sequence_key_registers =
        scan->makes ? scan->key_registers : 512 - 2 * scan->query_registers - scan->sequence_fetch_registers;
}

const char *plan_cluster_scan(const fpa_cuda_inputs *in, void *plan)
{
    fpa_cluster_scan *scan = plan;
    const fpa_head *head = in->plan->head;
    const fpa_columns *columns = in->columns;
    if (!in->suited[FUSED_COORDINATES].plan)
        return "its features are no coordinates";
    if (!head->causal)
        return "it is not causal";
    if (columns->tiles > 8 || (columns->tiles < 8 && (columns->blocks > 1 || head->normalize)))
        return "its values cannot be divided into blocks of 64 columns";
    if (4 * (in->rows->warp_units + 1) * columns->all > MOST_SUMS)
        return "its state does not fit into the registers of a block";
    scan->gate_bytes = head->gate ? GATE_BYTES : 0;
    if (!fits_as(in, lift_made(in->plan), scan) && !fits_as(in, LIFT_BEFORE, scan))
        return "spans of 128 tokens do not fit into shared memory";
    scan->reverses = !head->gate && !head->normalize && !scan->maps;
    scan->sequences = scan->sequence_bytes <= in->plan->target->shared_memory &&
                      !(scan->maps && lift_made_by_head(in->plan));
    if (scan->makes)
        share_made_registers(in, scan);
    else
        share_registers(in, scan);
    share_sequence_registers(in, scan);
    return NULL;
}

/* ---- plan, geometry and fields ---- */

/* Whether blocks keep data of one head for all of their lines (its matrix), so that they cannot go from one head to
 * the next. */
static bool scan_keeps_by_head(const fpa_plan *plan)
{
    return plan->cuda.cluster_scan->maps && lift_made_by_head(plan);
}

void print_cluster_scan(FILE *out, const fpa_plan *plan)
{
    const fpa_cluster_scan *scan = plan->cuda.cluster_scan;
    fprintf(out,
            "cluster_scan chunked, for few sequences: the blocks of a cluster process %d tokens each in turn "
            "and pass on the state; buffers for %d spans; %.1f KiB of shared memory%s\n",
            CLUSTER_SCAN_SPAN, scan->spans, scan->bytes / 1024.0,
            scan->maps ? "; computes coordinates itself, without lift_rows" : "");
    if (scan->sequences)
        fprintf(out,
                "sequence_scan chunked, for sequences of different lengths, or more sequences than clusters "
                "that fit on the GPU: persistent clusters share all spans; %.1f KiB of shared memory\n",
                scan->sequence_bytes / 1024.0);
    else if (scan_keeps_by_head(plan))
        fprintf(out, "sequence_scan no: its clusters process one head after the other, but each head has its "
                     "own matrix\n");
    else
        fprintf(out, "sequence_scan no: it needs %d bytes of shared memory a block, more than the GPU has\n",
                scan->sequence_bytes);
}

void geometry_cluster_scan(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    g->kernel[CUDA_CLUSTER_SCAN] =
        (struct fpa_cuda_block){CLUSTER_SCAN_THREADS, plan->cuda.cluster_scan->bytes, 1};
    if (plan->cuda.cluster_scan->sequences)
        g->kernel[CUDA_SEQUENCE_SCAN] =
            (struct fpa_cuda_block){CLUSTER_SCAN_THREADS, plan->cuda.cluster_scan->sequence_bytes, 1};
    g->sequence_state = plan->cuda.rows->warp_units * 4 * 16 * 8 * plan->cuda.columns.all;
    g->fused_vector = plan->cuda.cluster_scan->maps ? plan->written->lift->width : plan->head->d;
    g->fused_value = plan->head->dv;
    g->cluster_stays = !scan_keeps_by_head(plan);
    g->cluster_reverses = plan->cuda.cluster_scan->reverses;
    g->cluster_maps = plan->cuda.cluster_scan->maps;
    work_cluster_scan(plan, g);
}

#define SCAN(member) FIELD(fpa_cluster_scan, member)
const fpa_field cluster_scan_fields[] = {FIELD_CONSTANT("threads", CLUSTER_SCAN_THREADS),
                                         FIELD_CONSTANT("span", CLUSTER_SCAN_SPAN),
                                         SCAN(spans),
                                         SCAN(copies),
                                         SCAN(outputs_apart),
                                         SCAN(sequences),
                                         SCAN(maps),
                                         SCAN(turns),
                                         SCAN(product),
                                         SCAN(makes),
                                         SCAN(given),
                                         SCAN(matrix_parts),
                                         SCAN(reverses),
                                         SCAN(key_registers),
                                         SCAN(query_registers),
                                         SCAN(make_registers),
                                         SCAN(fetch_registers),
                                         SCAN(gate_bytes),
                                         SCAN(at_ones),
                                         SCAN(at_outputs),
                                         SCAN(at_copies),
                                         SCAN(at_state),
                                         SCAN(at_gates),
                                         SCAN(at_barriers),
                                         SCAN(at_mapped),
                                         SCAN(at_looked),
                                         SCAN(at_edges),
                                         SCAN(at_matrix),
                                         SCAN(at_turns),
                                         SCAN(at_positions),
                                         SCAN(bytes),
                                         SCAN(at_spans),
                                         SCAN(at_cuts),
                                         SCAN(sequence_key_registers),
                                         SCAN(sequence_fetch_registers),
                                         FIELDS_END};
