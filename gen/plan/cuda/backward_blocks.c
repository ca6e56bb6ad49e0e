/* Blocks of the kernels of gradients that a multiprocessor has at a time, by registers and shared memory. */
#include "backward.h"

#include "parts.h"

/* Blocks of a walk on a multiprocessor: what a warp waits for others do meanwhile. Of packed rows of 16 bits they are as many as have
 * registers for the sums of a warp's units and some 40 more, and shared memory; elsewhere `blocks`. On GPUs of before sm_90 three blocks
 * of 32 tiles would keep a tenth of their sums in local memory. */
int backward_state_blocks(const fpa_plan *plan, const fpa_cuda_backward_plan *back, int blocks)
{
    enum { OF_FOUR = 16, OF_THREE = 28, OF_THREE_LATER = 32 }; /* tiles of sums */
    enum { OF_COORDINATES = 2 };
    const int tiles = plan->cuda.rows->warp_units * back->columns.tiles;
    const int three = plan->target->warpgroups ? OF_THREE_LATER : OF_THREE;
    const int most = tiles <= OF_FOUR ? 4 : tiles <= three ? 3 : 2;
    const int room = (plan->target->shared_memory + 1024) / (back->state.size + 1024);
    if (back->warpgroups)
        return OF_COORDINATES;
    if (back->coordinates || plan->cuda.rows->element == 4 || back->warps != CUDA_WARPS)
        return blocks;
    return room < most ? largest(room, blocks) : most;
}
