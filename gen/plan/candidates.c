#include "candidates.h"

#include <stdio.h>
#include <stdlib.h>

#include "gen/backends.h"
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

static int list_cuda(const fpa_plan *plan, const fpa_call_size *size, fpa_machine machine, fpa_candidate *out,
                     int most, fpa_candidate_list *list)
{
    const struct fpa_cuda_geometry *geometry = &plan->cuda.geometry;
    list->room = gpu_room_of(geometry, plan->target, machine.gpu ? machine.gpu : gpu_of_target(plan->target));
    list->machine = list->room.gpu->name;
    return cuda_candidates(geometry, &list->room, size, out, most);
}

static int list_c(const fpa_plan *plan, const fpa_call_size *size, fpa_machine machine, fpa_candidate *out,
                  int most, fpa_candidate_list *list)
{
    const int threads = machine.threads;
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

typedef int list_candidates(const fpa_plan *plan, const fpa_call_size *size, fpa_machine machine,
                            fpa_candidate *out, int most, fpa_candidate_list *list);

fpa_status plan_candidates(const fpa_plan *plan, const fpa_call_size *size, fpa_machine machine,
                           fpa_candidate_list *list, fpa_error *error)
{
    static list_candidates *const lists[BACKENDS] = {[BACKEND_C] = list_c, [BACKEND_CUDA] = list_cuda};
    list_candidates *own = lists[plan->target->backend];
    *list = (fpa_candidate_list){0};
    const int count = own(plan, size, machine, NULL, 0, list);
    list->list = calloc((size_t)count, sizeof *list->list);
    if (!list->list)
        return fail_memory(error);
    list->count = own(plan, size, machine, list->list, count, list);
    list->fastest = find_fastest(list->list, list->count);
    return FPA_OK;
}

void candidate_list_free(fpa_candidate_list *list)
{
    free(list->list);
    *list = (fpa_candidate_list){0};
}

/* The plan with that mechanism, and the fastest of its candidates. */
static void try_mechanism(const fpa_plan *plan, const fpa_simplified *simple, const fpa_head *written,
                          const fpa_call_size *size, fpa_machine machine, fpa_alternative *alternative)
{
    fpa_plan other;
    fpa_candidate_list list = {0};
    fpa_error error;
    fpa_status status = plan_choose_as(simple, written, plan->target, alternative->mechanism, &other, &error);
    if (!status) {
        status = plan_candidates(&other, size, machine, &list, &error);
        if (!status && list.fastest >= 0)
            alternative->fastest = list.list[list.fastest];
        plan_free(&other);
    }
    if (status)
        snprintf(alternative->why, sizeof alternative->why, "%s", error.message);
    candidate_list_free(&list);
}

bool plan_alternative(const fpa_plan *plan, const fpa_simplified *simple, const fpa_head *written,
                      const fpa_call_size *size, fpa_machine machine, int *next, fpa_alternative *alternative)
{
    const fpa_generator *generator = generator_of(plan->target);
    while (generator->mechanism && generator->mechanism(*next)) {
        const int i = (*next)++;
        if (!generator->is_left(plan, i, size->form))
            continue;
        *alternative = (fpa_alternative){.mechanism = generator->mechanism(i),
                                         .fastest.refused = "it computes another form"};
        try_mechanism(plan, simple, written, size, machine, alternative);
        return true;
    }
    return false;
}
