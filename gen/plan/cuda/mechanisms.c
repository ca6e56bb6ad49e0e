/* The table of mechanisms, and the choice among them. */
#include "mechanism.h"

#include "cluster_scan.h"
#include "decode.h"
#include "fused_packed.h"
#include "fused_pass.h"
#include "split_outer.h"
#include "split_panel.h"

/* A row may read the plans of rows above it. */
const fpa_mechanism cuda_mechanisms[CUDA_MECHANISMS] = {
    [SPLIT_PANEL] = {"split_panel", ROLE_SPLIT, sizeof(fpa_split_panel), plan_split_panel, print_split_panel,
                     geometry_split_panel, NULL, split_panel_fields},
    [FUSED_PANEL] = {"fused_panel", ROLE_FUSED, sizeof(fpa_fused_pass), plan_fused_panel, NULL,
                     geometry_fused_panel, NULL, fused_pass_fields},
    [FUSED_COORDINATES] = {"fused_coordinates", ROLE_FUSED, sizeof(fpa_fused_pass), plan_fused_coordinates,
                           print_fused_coordinates, geometry_fused_coordinates, NULL, fused_pass_fields},
    [SPLIT_OUTER] = {"split_outer", ROLE_SPLIT, sizeof(fpa_split_outer), plan_split_outer, print_split_outer,
                     geometry_split_outer, "outer", split_outer_fields},
    [FUSED_PACKED] = {"fused_packed", ROLE_FUSED, sizeof(fpa_fused_packed), plan_fused_packed,
                      print_fused_packed, geometry_fused_packed, "fused_packed", fused_packed_fields},
    [CLUSTER_SCAN] = {"cluster_scan", ROLE_CLUSTER, sizeof(fpa_cluster_scan), plan_cluster_scan,
                      print_cluster_scan, geometry_cluster_scan, "cluster_scan", cluster_scan_fields},
    [DECODE] = {"decode", ROLE_DECODE, sizeof(fpa_decode), plan_decode, NULL, geometry_decode, NULL,
                decode_fields},
};

/* ---- the choice ---- */

enum { NONE = -1 };

static bool has_role(int mechanism, fpa_role role)
{
    return mechanism != NONE && cuda_mechanisms[mechanism].role == role;
}

/* Outer tiles where they suit, unless the state is small enough for one pass by the portable kernels, which
 * have other columns. */
static fpa_cuda_mechanism choose_split(const fpa_cuda_plan *cuda, int forced)
{
    if (has_role(forced, ROLE_SPLIT))
        return (fpa_cuda_mechanism)forced;
    return cuda->suited[SPLIT_OUTER].plan && !cuda->suited[FUSED_PANEL].plan ? SPLIT_OUTER : SPLIT_PANEL;
}

/* Coordinates as they lie take less than packed rows for warpgroups, and these less than portable kernels. A
 * split that is forced has the chunked form. */
static int choose_fused(const fpa_cuda_plan *cuda, int forced)
{
    static const fpa_cuda_mechanism best[] = {FUSED_COORDINATES, FUSED_PACKED, FUSED_PANEL};
    if (has_role(forced, ROLE_FUSED))
        return forced;
    for (int i = 0; i < 3 && !has_role(forced, ROLE_SPLIT); i++)
        if (cuda->suited[best[i]].plan)
            return best[i];
    return NONE;
}

/* Beside a pass on coordinates, unless another mechanism shall have the chunked form alone. */
static bool takes_clusters(const fpa_cuda_plan *cuda, int forced)
{
    return cuda->suited[CLUSTER_SCAN].plan && !has_role(forced, ROLE_SPLIT) && !has_role(forced, ROLE_FUSED);
}

/* ---- plans ---- */

static fpa_status plan_rows(const fpa_cuda_inputs *in, int first, int end, fpa_suited *suited,
                            fpa_error *error)
{
    for (int m = first; m < end; m++) {
        void *own = arena_alloc(in->memory, cuda_mechanisms[m].size);
        if (!own)
            return fail_memory(error);
        fpa_status status = cuda_mechanisms[m].plan(in, own, suited[m].why, error);
        if (status)
            return status;
        suited[m].plan = suited[m].why[0] ? NULL : own;
    }
    return FPA_OK;
}

fpa_status plan_mechanisms(fpa_plan *plan, int forced, fpa_error *error)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    const fpa_head *head = plan->head;
    fpa_cuda_inputs in = {.plan = plan, .rows = cuda->rows, .suited = cuda->suited, .memory = &plan->memory};
    fpa_status status = plan_rows(&in, 0, FUSED_PACKED, cuda->suited, error);
    if (status)
        return status;
    const fpa_cuda_mechanism split = choose_split(cuda, forced);
    const fpa_split_panel *panel = cuda->suited[SPLIT_PANEL].plan;
    const fpa_split_outer *outer = cuda->suited[SPLIT_OUTER].plan;
    if (!panel) /* the last resort */
        return fail(error, FPA_UNSUPPORTED, head->origin, "head '%s' %s", head->name,
                    cuda->suited[SPLIT_PANEL].why);
    if (split == SPLIT_OUTER && outer)
        in.columns = &outer->columns;
    else
        in.columns = &panel->columns;
    if ((status = plan_rows(&in, FUSED_PACKED, CUDA_MECHANISMS, cuda->suited, error)))
        return status;
    if (forced != NONE && !cuda->suited[forced].plan)
        return fail(error, FPA_UNSUPPORTED, head->origin, "%s does not suit head '%s': %s",
                    cuda_mechanisms[forced].name, head->name, cuda->suited[forced].why);
    const int fused = choose_fused(cuda, forced);
    cuda->chosen[split] = true;
    if (fused != NONE)
        cuda->chosen[fused] = true;
    cuda->chosen[CLUSTER_SCAN] = takes_clusters(cuda, forced);
    cuda->chosen[DECODE] = cuda->suited[DECODE].plan;
    return FPA_OK;
}
