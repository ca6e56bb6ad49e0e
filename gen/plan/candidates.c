#include "candidates.h"

#include <stdlib.h>

#include "machine/cuda_candidates.h"

static int find_fastest(const fpa_candidate *list, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++)
        if (!list[i].refused && (best < 0 || list[i].cost.seconds < list[best].cost.seconds))
            best = i;
    return best;
}

fpa_status plan_candidates(const fpa_plan *plan, const fpa_call_size *size, fpa_candidate_list *list,
                           fpa_error *error)
{
    const struct fpa_cuda_geometry *geometry = &plan->cuda.geometry;
    *list = (fpa_candidate_list){0};
    if (plan->target->backend != BACKEND_CUDA)
        return fail(error, FPA_UNSUPPORTED, plan->target->name, "has one candidate a form, without a model");
    const fpa_gpu_room room = gpu_room_of_target(geometry, plan->target, &list->machine);
    list->count = cuda_candidates(geometry, &room, size, NULL, 0);
    list->list = calloc((size_t)list->count, sizeof *list->list);
    if (!list->list)
        return fail_memory(error);
    cuda_candidates(geometry, &room, size, list->list, list->count);
    list->fastest = find_fastest(list->list, list->count);
    return FPA_OK;
}

void candidate_list_free(fpa_candidate_list *list)
{
    free(list->list);
    *list = (fpa_candidate_list){0};
}
