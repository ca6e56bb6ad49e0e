/* From how many tokens on the chunked form is faster than the parallel one. */
#include "parts.h"

#include <math.h>

#include "machine/cuda_candidates.h"

/* A batch as trainers have it: so many tokens and heads in all. */
enum { HEADS = 16, TOKENS = 1 << 16, MOST_LENGTH = 1 << 22 };

static double seconds_of(const fpa_plan *plan, const fpa_gpu_room *room, fpa_form_index form, int64_t length)
{
    const fpa_call_size size = {.form = form,
                                .batch = length < TOKENS ? TOKENS / length : 1,
                                .length = length,
                                .query_heads = HEADS,
                                .heads = HEADS};
    fpa_candidate best;
    cuda_fastest(&plan->cuda.geometry, room, &size, &best);
    return best.cost.seconds;
}

/* By the form that a call takes. */
static double least_seconds(const fpa_plan *plan, const fpa_gpu_room *room, int64_t length)
{
    return fmin(seconds_of(plan, room, FORM_CHUNKED, length), seconds_of(plan, room, FORM_PARALLEL, length));
}

double cuda_typical_seconds(const fpa_plan *plan)
{
    const fpa_gpu_room room = gpu_room_of_target(&plan->cuda.geometry, plan->target);
    return sqrt(least_seconds(plan, &room, TOKENS) * least_seconds(plan, &room, TOKENS / 16));
}

int64_t cuda_crossover(const fpa_plan *plan)
{
    const fpa_gpu_room room = gpu_room_of_target(&plan->cuda.geometry, plan->target);
    int64_t slower = 0, faster = 64;
    while (faster < MOST_LENGTH &&
           seconds_of(plan, &room, FORM_CHUNKED, faster) >= seconds_of(plan, &room, FORM_PARALLEL, faster))
        slower = faster, faster *= 2;
    while (faster - slower > 64) {
        const int64_t middle = (slower + faster) / 2 / 64 * 64;
        if (seconds_of(plan, &room, FORM_CHUNKED, middle) < seconds_of(plan, &room, FORM_PARALLEL, middle))
            faster = middle;
        else
            slower = middle;
    }
    return faster;
}
