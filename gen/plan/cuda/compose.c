/* cuda_compose: what emitted files have once, and their geometry, from the mechanisms that are chosen. */
#include "cluster_scan.h"
#include "decode.h"
#include "fused_packed.h"
#include "fused_pass.h"
#include "fused_rows.h"
#include "head/lift.h"
#include "lift_rows.h"
#include "parts.h"
#include "split_outer.h"
#include "split_panel.h"
#include "work.h"

const void *cuda_chosen(const fpa_cuda_plan *cuda, fpa_cuda_mechanism mechanism)
{
    return cuda->chosen[mechanism] ? cuda->suited[mechanism].plan : NULL;
}

static void name_chosen(fpa_cuda_plan *cuda)
{
    cuda->split_panel = cuda_chosen(cuda, SPLIT_PANEL);
    cuda->split_outer = cuda_chosen(cuda, SPLIT_OUTER);
    cuda->fused_panel = cuda_chosen(cuda, FUSED_PANEL);
    cuda->fused_coordinates = cuda_chosen(cuda, FUSED_COORDINATES);
    cuda->fused_packed = cuda_chosen(cuda, FUSED_PACKED);
    cuda->fused_rows = cuda_chosen(cuda, FUSED_ROWS);
    cuda->cluster_scan = cuda_chosen(cuda, CLUSTER_SCAN);
    cuda->decode = cuda_chosen(cuda, DECODE);
}

/* The portable chunk_state, which adds up totals of segments where a pass follows. */
static void describe_chunk_state(fpa_cuda_plan *cuda)
{
    const fpa_fused_pass *pass = cuda->fused_panel ? cuda->fused_panel : cuda->fused_coordinates;
    cuda->fused = pass || cuda->fused_packed || cuda->fused_rows;
    cuda->coordinates = pass && pass->coordinates;
    if (cuda->split_panel) {
        cuda->chunk_state = pass ? pass->chunk_state : cuda->split_panel->chunk_state;
        cuda->chunk_state_blocks = pass ? pass->chunk_state_blocks : cuda->split_panel->chunk_state_blocks;
    }
}

/* Where most features are alike, so are the roundings of a chain of sums over all of them, and add up. Products of
 * 16-bit numbers are rounded more anyway. */
static bool wants_grouped_sums(const fpa_plan *plan)
{
    enum { ALIKE = 4, LONGEST_CHAIN = 256 };
    return plan->cuda.rows->element == 4 && (double)plan->features > ALIKE * plan->minimum &&
           plan->features > LONGEST_CHAIN;
}

static const char *why_portable(const fpa_cuda_plan *cuda)
{
    if (cuda->split_outer)
        return NULL;
    return cuda->suited[SPLIT_OUTER].plan ? "kernels with wgmma would take longer"
                                          : cuda->suited[SPLIT_OUTER].why;
}

/* Rows are fetched in pieces of 16 bytes. */
static int padded_width(const fpa_plan *plan, int width)
{
    return dtype_size(plan->head->dtype) == 2 && width % 8 ? round_up(width, 8) : 0;
}

/* Coordinates of a lift are whole pieces as they are made. */
static int padded_vector(const fpa_plan *plan)
{
    return plan->written->lift ? 0 : padded_width(plan, plan->head->d);
}

/* Values of masked keys become zeros, so that all are written again. */
static int padded_value(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    if (lift && lift->key_mask)
        return round_up(plan->head->dv, 16 / (int)dtype_size(plan->head->dtype));
    return padded_width(plan, plan->head->dv);
}

static int carry_threads(const fpa_plan *plan, const struct fpa_cuda_geometry *g)
{
    const int wanted = round_up(divide_up(g->features * g->columns, CUDA_CARRIED), CUDA_SCAN_THREADS);
    if (!plan->cuda.split_outer || !plan->head->causal)
        return CUDA_SCAN_THREADS;
    return wanted < CUDA_CARRY_THREADS ? wanted : CUDA_CARRY_THREADS;
}

static void fill_geometry(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const bool normalized = plan->head->normalize != FPA_NORMALIZE_NONE;
    g->version = FPA_CUDA_VERSION;
    g->features = cuda->copy_rows;
    g->columns = cuda->columns.blocks * 8 * cuda->columns.all;
    g->column_blocks = cuda->columns.blocks;
    g->copy_bytes = cuda->rows->element;
    g->chunk = plan->chunk;
    g->state_elements = (int)(plan->features * (plan->head->dv + normalized));
    g->state_element = (int)dtype_size(plan->head->state_dtype);
    g->weights = head_run_time_matrices(plan->written);
    g->element = (int)dtype_size(plan->head->dtype);
    g->gate = plan->head->gate;
    g->unmasked = !plan->head->causal;
    g->window = plan->written->window;
    g->query_tokens = cuda->query_tokens;
    if (plan->head->gate)
        g->kernel[CUDA_GATE_SCAN] = (struct fpa_cuda_block){CUDA_SCAN_THREADS, 0, 0};
    if (cuda->pads)
        g->kernel[CUDA_PAD_ROWS] = (struct fpa_cuda_block){CUDA_PAD_THREADS, 0, 0};
    g->padded_vector = padded_vector(plan);
    g->padded_value = padded_value(plan);
    geometry_lift_rows(plan, g);
    g->kernel[CUDA_SEGMENT_SCAN] = (struct fpa_cuda_block){carry_threads(plan, g), 0, 0};
    g->segment_scan_elements = CUDA_CARRIED * g->kernel[CUDA_SEGMENT_SCAN].threads;
    work_scans(plan, g);
    for (int m = 0; m < CUDA_MECHANISMS; m++)
        if (cuda->chosen[m])
            cuda_mechanisms[m].geometry(plan, g);
}

/* Where rows of o end amid a piece of 16 bytes or lanes would store single columns; no block has few columns. */
static bool leaves_in_pieces(const fpa_head *head, const fpa_columns *columns)
{
    return (head->dv % 8 || columns->tiles % 4) && columns->tiles > 2 && columns->last >= 16;
}

void cuda_compose(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    name_chosen(cuda);
    describe_chunk_state(cuda);
    cuda->grouped_sums = wants_grouped_sums(plan);
    cuda->portable_why = why_portable(cuda);
    if (cuda->split_outer) {
        cuda->columns = cuda->split_outer->columns;
        cuda->query_tokens = cuda->split_outer->query_tokens;
        cuda->copy_rows = cuda->split_outer->outer.copy_rows;
        plan->chunk = cuda->split_outer->chunk;
    } else {
        cuda->columns = cuda->split_panel->columns;
        cuda->query_tokens = cuda->split_panel->query_tokens;
        cuda->copy_rows = cuda->rows->features;
        plan->chunk = cuda->split_panel->chunk;
    }
    cuda->weights = head_run_time_matrices(plan->head);
    cuda->pads = padded_vector(plan) || padded_value(plan);
    cuda->leaves_in_pieces = leaves_in_pieces(plan->head, &cuda->columns);
    cuda->lift = plan_cuda_lift(plan);
    plan->pair_queries = cuda->query_tokens;
    plan->chunk_states = plan->head->causal ? 2 : 0; /* without a mask one copy a sequence */
    fill_geometry(plan, &cuda->geometry);
}
