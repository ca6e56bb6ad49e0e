#include "candidates.h"

#include <stdlib.h>

#include "gen/plan/c/work.h"
#include "machine/cuda_candidates.h"

static int find_fastest(const fpa_candidate *list, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++)
        if (!list[i].refused && (best < 0 || list[i].cost.seconds < list[best].cost.seconds))
            best = i;
    return best;
}

static int list_cuda(const fpa_plan *plan, const fpa_call_size *size, int threads, fpa_candidate *out,
                     int most, fpa_candidate_list *list)
{
    (void)threads;
    const struct fpa_cuda_geometry *geometry = &plan->cuda.geometry;
    list->room = gpu_room_of_target(geometry, plan->target, &list->machine);
    return cuda_candidates(geometry, &list->room, size, out, most);
}

static int list_c(const fpa_plan *plan, const fpa_call_size *size, int threads, fpa_candidate *out, int most,
                  fpa_candidate_list *list)
{
    const fpa_cpu *cpu = cpu_here(plan->target);
    list->machine = cpu->name;
    if (most < FORMS)
        return FORMS;
    const int count = plan_candidates_c(plan, size, out, most);
    for (int i = 0; i < count && threads > 1; i++)
        if (!out[i].refused)
            out[i].cost = work_cost(plan, plan->chunk, cpu, size, threads);
    return count;
}

typedef int list_candidates(const fpa_plan *plan, const fpa_call_size *size, int threads, fpa_candidate *out,
                            int most, fpa_candidate_list *list);

fpa_status plan_candidates(const fpa_plan *plan, const fpa_call_size *size, int threads,
                           fpa_candidate_list *list, fpa_error *error)
{
    static list_candidates *const lists[BACKENDS] = {[BACKEND_C] = list_c, [BACKEND_CUDA] = list_cuda};
    list_candidates *own = lists[plan->target->backend];
    *list = (fpa_candidate_list){0};
    const int count = own(plan, size, threads, NULL, 0, list);
    list->list = calloc((size_t)count, sizeof *list->list);
    if (!list->list)
        return fail_memory(error);
    list->count = own(plan, size, threads, list->list, count, list);
    list->fastest = find_fastest(list->list, list->count);
    return FPA_OK;
}

void candidate_list_free(fpa_candidate_list *list)
{
    free(list->list);
    *list = (fpa_candidate_list){0};
}
