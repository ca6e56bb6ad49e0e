/* fused_panel: see fused_pass.h. */
#include "fused_pass.h"
#include "parts.h"
#include "work.h"

/* Shared memory for coordinates as stored: two stages of vectors, values and the copy of the state. o is
 * stored by way of the warp's own queries, or, if it is wider, of a buffer of its own. */
static fpa_cuda_memory place_coordinates(const fpa_cuda_inputs *in, const fpa_split_panel *split)
{
    fpa_cuda_memory fused = {0};
    const int raw = split->panel * split->raw_pitch, gate = in->plan->head->gate ? 1 : 0;
    fused.raw = split->output_pitch <= split->raw_pitch ? 0 : split->panel * split->output_pitch;
    fused.values = fused.raw + 4 * raw;
    fused.tiles = fused.values + 2 * split->panel * split->value_pitch;
    fused.gates = fused.tiles + 2 * in->rows->features * split->tile_pitch;
    fused.size = fused.gates + gate * split->panel * 16;
    return fused;
}

/* Shared memory for packed rows: a panel and raw vectors of each side; o is stored by way of the panel of
 * queries. */
static fpa_cuda_memory place_panels(const fpa_cuda_inputs *in, const fpa_split_panel *split)
{
    fpa_cuda_memory fused = {0};
    const int panel = in->rows->row_count * split->key_pitch, gate = in->plan->head->gate ? 1 : 0;
    fused.keys = largest(panel, split->panel * split->output_pitch);
    fused.raw = fused.keys + panel;
    fused.values = fused.raw + 2 * split->panel * split->raw_pitch;
    fused.tiles = fused.values + 2 * split->panel * split->value_pitch;
    fused.gates = fused.tiles + in->rows->features * split->tile_pitch;
    fused.size = fused.gates + gate * split->panel * 16;
    return fused;
}

bool fused_panel_suits(const fpa_cuda_inputs *in, const fpa_split_panel *split)
{
    if (!split->query_tokens || !in->plan->head->causal || fused_split_refusal(in, split))
        return false;
    const fpa_fused_pass pass = {.memory = place_panels(in, split)};
    return fused_fits(in->plan, &pass);
}

/* Panels of rows first; coordinates as stored in memory need more shared memory. */
const char *plan_fused_panel(const fpa_cuda_inputs *in, void *plan)
{
    fpa_fused_pass *pass = plan;
    const fpa_split_panel *split = in->suited[SPLIT_PANEL].plan;
    if (!in->plan->head->causal)
        return "it is not causal";
    if (fused_pass_refusal(in))
        return fused_pass_refusal(in);
    pass->memory = place_panels(in, split);
    if (!fused_fits(in->plan, pass))
        return "its state and panels of queries and keys do not fit into shared memory";
    pass->chunk_state = split->chunk_state;
    if (in->rows->coordinates) {
        fpa_fused_pass direct = {.coordinates = true, .memory = place_coordinates(in, split)};
        direct.chunk_state = place_coordinate_keys(in->plan, split);
        if (fused_fits(in->plan, &direct))
            *pass = direct;
    }
    const int units = in->rows->warp_units, columns = split->columns.all;
    pass->chunk_state_blocks = cuda_occupancy(in->plan, units * columns, pass->chunk_state.size);
    pass->blocks = cuda_occupancy(in->plan, (units + 1) * columns, pass->memory.size);
    pass->blocks = pass->blocks > 3 ? 3 : pass->blocks;
    return NULL;
}

void geometry_fused_panel(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    g->kernel[CUDA_FUSED_CHUNK] = (struct fpa_cuda_block){CUDA_THREADS, plan->cuda.fused_panel->memory.size,
                                                          plan->cuda.fused_panel->blocks};
    work_fused_panel(plan, g);
}
