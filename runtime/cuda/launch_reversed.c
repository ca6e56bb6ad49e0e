/* launch_reversed: forward passes in reverse order of tokens, by NAME_cluster_scan or NAME_fused_chunk. */
#include "launch_reversed.h"

#include "head/form.h"
#include "launch.h"
#include "launch_maps.h"
#include "machine/cuda_candidates.h"
#include "machine/cuda_mechanism.h"
#include "sizes.h"

/* Finds a candidate: clusters, which need no workspace, if the copy engine can fetch and store all operands; otherwise NAME_fused_chunk,
 * which takes any operands. */
static bool find(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, bool *clusters,
                 fpa_candidate *found)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    fpa_call_size size = call_size(FORM_CHUNKED, launch);
    size.joined = false; /* NAME_sequence_scan has no reverse order */
    *clusters = g->cluster_reverses && cuda->driver->cuTensorMapEncodeTiled && cuda_describes(launch) &&
                cuda_fastest_cluster_scan(g, &cuda->room, &size, found);
    if (*clusters)
        return true;
    return g->fused_reverses && cuda_fastest_fused(g, &cuda->room, &size, found);
}

bool cuda_reverses_any(const fpa_module *module, const struct fpa_launch *sizes)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const fpa_call_size size = call_size(FORM_CHUNKED, sizes);
    fpa_candidate found;
    return cuda->geometry.fused_reverses && cuda_fastest_fused(&cuda->geometry, &cuda->room, &size, &found);
}

bool cuda_reverses(const fpa_module *module, const struct fpa_launch *launch)
{
    fpa_candidate found;
    bool clusters;
    return find(module->handle, launch, &clusters, &found);
}

bool cuda_turns(const fpa_module *module, int form, const struct fpa_launch *sizes)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const fpa_call_size size = call_size(form, sizes);
    fpa_candidate found;
    return cuda->geometry.contraction_turns && cuda_fastest(&cuda->geometry, &cuda->room, &size, &found) &&
           cuda_mechanism_of(&found) == MECHANISM_SPLIT;
}

size_t cuda_reversed_workspace(const fpa_module *module, const struct fpa_launch *launch)
{
    fpa_candidate found;
    cuda_sizes s = {.bytes = 0};
    bool clusters;
    if (find(module->handle, launch, &clusters, &found) && !clusters)
        find_sizes(module->handle, launch, FORM_CHUNKED, &found, NULL, &s);
    return s.bytes;
}

void cuda_forward_reversed(cuda_queue *behind, const fpa_module *module, const struct fpa_launch *launch,
                           const cuda_dots *dots)
{
    cuda_queue q = cuda_behind(behind, module, launch);
    fpa_candidate found;
    cuda_sizes s;
    bool clusters;
    if (q.status)
        return;
    if (!find(q.cuda, launch, &clusters, &found)) {
        behind->status =
            fail(q.error, FPA_INVALID, q.cuda->name,
                 "no kernel supports this call in reverse order of tokens, as its gradients need");
        return;
    }
    find_sizes(q.cuda, launch, FORM_CHUNKED, &found, clusters ? NULL : launch->workspace, &s);
    if (!clusters)
        cuda_check_workspace(&q, s.bytes);
    if (dots)
        cuda_set_dots(dots, &s);
    s.call.reversed = 1;
    cuda_launch_all(&q, &s);
    behind->status = q.status;
}
