#include "fused_pass.h"

#include "parts.h"

enum { FUSED_STATIC = 256 }; /* bytes of static shared memory of the kernel of gated heads */

const char *fused_pass_refusal(const fpa_cuda_inputs *in)
{
    return fused_split_refusal(in, in->suited[SPLIT_PANEL].plan);
}

const char *fused_split_refusal(const fpa_cuda_inputs *in, const fpa_split_panel *split)
{
    if (in->plan->written->window)
        return "it has a window";
    if (split && split->packs.used)
        return "its rows are packed by a kernel of their own, for several blocks";
    if (!split || in->rows->slices > 1 || split->panel != 16 * CUDA_WARPS)
        return "its state does not fit into the registers of a block, or its panels of tokens are too short";
    return NULL;
}

bool fused_fits(const fpa_plan *plan, const fpa_fused_pass *pass)
{
    return pass->memory.size + FUSED_STATIC <= plan->target->shared_memory;
}

/* Coordinates have two stages, as values do, so a panel needs one barrier. */
fpa_cuda_memory place_coordinate_keys(const fpa_plan *plan, const fpa_split_panel *split)
{
    fpa_cuda_memory state = split->chunk_state;
    state.raw = 0;
    state.values = 2 * split->panel * split->raw_pitch;
    state.gates = state.values + 2 * split->panel * split->value_pitch;
    state.size = state.gates + (plan->head->gate ? split->panel * 16 : 0);
    return state;
}

const fpa_field fused_pass_fields[] = {FIELD_AS(fpa_fused_pass, "fused_stages", stages),
                                       FIELD_AS(fpa_fused_pass, "fused_copies", copies),
                                       FIELD_AS(fpa_fused_pass, "fused_blocks", blocks),
                                       FIELD_AS(fpa_fused_pass, "fused_maps", maps),
                                       FIELD_AS(fpa_fused_pass, "fused_lifts", lifts),
                                       FIELD_AS(fpa_fused_pass, "fused_turns", turns),
                                       FIELD_AS(fpa_fused_pass, "fused_own", own),
                                       FIELD_AS(fpa_fused_pass, "fused_lifters", lifters),
                                       FIELD_AS(fpa_fused_pass, "fused_places", places),
                                       FIELD_AS(fpa_fused_pass, "fused_given", given),
                                       FIELD_AS(fpa_fused_pass, "fused_positions", positions),
                                       FIELD_AS(fpa_fused_pass, "fused_matrices", matrices),
                                       FIELD_AS(fpa_fused_pass, "fused_walker_registers", walker_registers),
                                       FIELD_AS(fpa_fused_pass, "fused_lifter_registers", lifter_registers),
                                       FIELD_PART(fpa_fused_pass, "fused_memory", memory, cuda_memory_fields),
                                       FIELDS_END};
