/* How many blocks of each kernel of gradients a multiprocessor runs at a time, by registers and shared
 * memory; and the kernels' entries in the geometry. */
#include "backward.h"

#include "parts.h"

/* Blocks of backward_state for 16-bit packed rows: those whose warps have registers for the sums of their
 * units and some 40 more. On GPUs before sm_90 three blocks of 28 or 32 tiles keep some sums in local memory;
 * so do heads with passes elsewhere, whose walks serve few calls (decision 0200). */
int backward_most_walks(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    /* most tiles of sums for four and for three blocks */
    enum { OF_FOUR = 16, OF_THREE = 24, OF_THREE_LATER = 32 };
    const int tiles = plan->cuda.rows->warp_units * back->columns.tiles;
    const int three = plan->target->warpgroups && !plan->passes.width ? OF_THREE_LATER : OF_THREE;
    return tiles <= OF_FOUR ? 4 : tiles <= three ? 3 : 2;
}

int backward_walks_room(const fpa_plan *plan, const fpa_cuda_backward_plan *back)
{
    return (plan->target->shared_memory + 1024) / (back->state.size + 1024);
}

/* Blocks of backward_state on a multiprocessor, which hide each other's waits. For 16-bit packed rows as many
 * as registers and shared memory allow; else `blocks`. */
int backward_state_blocks(const fpa_plan *plan, const fpa_cuda_backward_plan *back, int blocks)
{
    enum { GROUPS = 4 /* warpgroups a multiprocessor whose threads have registers for a slab's sums */ };
    const int most = backward_most_walks(plan, back), room = backward_walks_room(plan, back);
    const int groups = back->warpgroups ? GROUPS / back->walks : 0;
    if (back->warpgroups)
        return room < groups ? room : groups;
    if (back->coordinates || plan->cuda.rows->element == 4 || back->warps != CUDA_WARPS)
        return blocks;
    return room < most ? largest(room, blocks) : most;
}

void fill_backward_kernels(const fpa_plan *plan, const fpa_cuda_backward_plan *back,
                           struct fpa_cuda_geometry *g)
{
    const fpa_head *head = plan->head;
    const int threads = 32 * back->warps;
    const struct fpa_cuda_block plain = {threads, 0, 0};
    const struct fpa_cuda_block own = {back->warpgroups ? 2 * CUDA_THREADS : threads * back->shares,
                                       back->own.size, back->own_blocks};
    if (head->gate)
        g->kernel[CUDA_GATE_SCAN] = (struct fpa_cuda_block){CUDA_SCAN_THREADS, 0, 0},
        g->kernel[CUDA_BACKWARD_GATES] = plain;
    if (head->normalize != FPA_NORMALIZE_NONE && !g->backward_outputs)
        g->kernel[CUDA_BACKWARD_OUTPUTS] = plain;
    if (back->padded_vector || back->padded_value)
        g->kernel[CUDA_BACKWARD_PADS] = plain;
    if (back->entries)
        g->kernel[CUDA_BACKWARD_PARTS] = plain;
    if (g->weights)
        g->kernel[CUDA_BACKWARD_WEIGHTS] = plain;
    if (plan->passes.width)
        g->kernel[CUDA_BACKWARD_GATHER] = g->kernel[CUDA_BACKWARD_SCATTER] = plain;
    if (plan->passes.width && head->gate)
        g->kernel[CUDA_BACKWARD_PASS_GATES] = plain;
    if (plan->passes.features)
        g->kernel[CUDA_BACKWARD_FORM] = g->kernel[CUDA_BACKWARD_JOIN] =
            (struct fpa_cuda_block){threads, threads * (back->line_row_pitch + back->line_pitch), 0};
    g->kernel[CUDA_BACKWARD_STATE] = (struct fpa_cuda_block){
        g->backward_walks ? g->backward_walks * CUDA_THREADS : threads, back->state.size, back->state_blocks};
    g->kernel[CUDA_BACKWARD_SEGMENTS] = plain;
    g->kernel[CUDA_BACKWARD_QUERIES] = g->kernel[CUDA_BACKWARD_KEYS] = own;
    if (g->backward_walks)
        g->kernel[CUDA_BACKWARD_QUERIES].threads = g->backward_walks * CUDA_THREADS;
    if (plan->passes.formed)
        fill_backward_formed(back, g);
    if (plan->made.lifted)
        fill_backward_lifted(plan, back, g);
    else if (plan->made.width)
        fill_backward_made(plan, back, g);
}
