#include <stdio.h>

#include "gen/plan/facts.h"
#include "lift_rows.h"
#include "mechanism.h"
#include "parts.h"
#include "split_outer.h"

static void print_path(FILE *out, const fpa_plan *plan)
{
    if (plan->cuda.split_outer)
        fprintf(out, "path         warpgroups: wgmma, and a producer warpgroup that fetches operands\n");
    else if (plan->target->warpgroups)
        fprintf(out, "path         portable: %s\n", plan->cuda.portable_why);
}

/* What is chosen; of heads for warpgroups, why there is no pass in their registers or by clusters. */
static void print_mechanisms(FILE *out, const fpa_plan *plan)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    for (int m = 0; m < CUDA_MECHANISMS; m++) {
        const bool asked = (m == FUSED_PACKED && plan->target->warpgroups && !cuda->fused_coordinates &&
                            !cuda->fused_rows) ||
                           (m == CLUSTER_SCAN && cuda->fused_coordinates);
        if (cuda->chosen[m] && cuda_mechanisms[m].print)
            cuda_mechanisms[m].print(out, plan);
        else if (!cuda->chosen[m] && asked)
            fprintf(out, "%-12s no: %s\n", m == FUSED_PACKED ? "fused_chunk" : "cluster_scan",
                    cuda->suited[m].plan ? "another mechanism was requested" : cuda->suited[m].why);
    }
}

void plan_print_cuda(FILE *out, const fpa_plan *plan)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const fpa_head *head = plan->head;
    const fpa_split_outer *outer = cuda->split_outer;
    const char *type = dtype_name(plan->facts.arithmetic);
    fprintf(out, "target       %s: products in %s%s, sums in fp32\n", plan->target->name, type,
            cuda->rows->element == 2                ? " on tensor cores"
            : head->products == FPA_PRODUCTS_TF32X3 ? " on tensor cores, as three of tf32"
                                                    : ", without tensor cores");
    if (plan->forced >= 0 && !cuda->backward)
        fprintf(out, "mechanism    %s, as requested\n", cuda_mechanisms[plan->forced].name);
    if (!cuda->backward)
        print_path(out, plan);
    print_lift_rows(out, plan);
    if (!outer || !outer->outer.coordinates)
        fprintf(out, "rows         %d a token in shared memory: %d coordinates, %d projected, %d weighted\n",
                cuda->rows->row_count, head->d, plan->row_count - head->d - 1 - plan->weighted_count,
                plan->weighted_count);
    fprintf(out, "columns      %d block%s of %d tiles of 8%s\n", cuda->columns.blocks,
            cuda->columns.blocks == 1 ? "" : "s", cuda->columns.tiles,
            head->normalize ? " and one of the normaliser" : "");
    if (cuda->backward)
        print_cuda_backward(out, plan);
    else
        print_mechanisms(out, plan);
    fprintf(out, "chunk        %d tokens%s\n", plan->chunk,
            !head->chunk                 ? ""
            : head->chunk == plan->chunk ? " (as the spec says)"
                                         : " (as the spec says, rounded up to whole blocks)");
    plan_print_costs(out, plan);
    plan_print_score(out, plan);
}
