/* Product rows of passes (gen/plan/pairs.h), which backward_gather forms and whose gradients backward_scatter joins: from a block's tokens in shared memory,
 * a token a lane. */
#include "backward.h"

#include "base/round.h"

enum { WORD = 4, ELEMENT = 2 };

/* An odd number of words, so that lanes, a token each, meet in no bank. */
static int odd_pitch(int bytes)
{
    return WORD * (divide_up(bytes, WORD) | 1);
}

bool plan_backward_formed(fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    if (!back->passes.formed)
        return true;
    const fpa_simplified simple = {.head = (fpa_head *)(uintptr_t)plan->head, .score = *plan->score};
    const int d = plan->head->d, width = halves_width(&simple);
    back->pass_factors = halves_factors(&simple);
    back->pass_entries = width * back->pass_factors;
    back->pass_factor = arena_array(&plan->memory, back->pass_entries, sizeof *back->pass_factor);
    back->formed_row_pitch = odd_pitch(ELEMENT * d + (int)sizeof(uint32_t)); /* 1 and 0 behind them */
    back->formed_vector_pitch = odd_pitch(ELEMENT * width);
    back->formed_sum_pitch = odd_pitch((int)sizeof(float) * d);
    if (back->pass_factor)
        halves_list(&simple, back->pass_factor);
    return back->pass_factor != NULL;
}

void fill_backward_formed(const fpa_cuda_backward_plan *back, struct fpa_cuda_geometry *g)
{
    const int formed = FPA_CUDA_PASS_TOKENS * (back->formed_row_pitch + back->formed_vector_pitch);
    g->kernel[CUDA_BACKWARD_GATHER].bytes = formed;
    g->kernel[CUDA_BACKWARD_SCATTER].bytes = formed + FPA_CUDA_PASS_TOKENS * back->formed_sum_pitch;
}
