#include "launch_reversed.h"

#include "head/form.h"
#include "launch.h"
#include "launch_maps.h"
#include "machine/cuda_candidates.h"
#include "machine/cuda_mechanism.h"
#include "sizes.h"

/* By clusters, which need no workspace, where the copy engine fetches and writes all operands; NAME_fused_chunk takes any. */
static bool find(const struct fpa_cuda_module *cuda, const struct fpa_launch *launch, bool *clusters,
                 fpa_candidate *found)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    fpa_call_size size = call_size(FORM_CHUNKED, launch);
    size.joined = false; /* NAME_sequence_scan takes no tokens from the last one on */
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

fpa_status cuda_forward_reversed(const fpa_module *module, const struct fpa_launch *launch,
                                 const cuda_dots *dots, void *stream, fpa_error *error)
{
    const struct fpa_cuda_module *cuda = module->handle;
    fpa_candidate found;
    cuda_sizes s;
    bool clusters;
    if (!find(cuda, launch, &clusters, &found))
        return fail(error, FPA_INVALID, cuda->name, "no kernel carries this call out from the last token on");
    find_sizes(cuda, launch, FORM_CHUNKED, &found, clusters ? NULL : launch->workspace, &s);
    if (!clusters && launch->workspace_size < s.bytes)
        return fail(error, FPA_INVALID, "workspace", "has %zu bytes, but this call needs %zu",
                    launch->workspace_size, s.bytes);
    if (dots)
        cuda_set_dots(dots, &s);
    s.call.reversed = 1;
    return cuda_launch_all(cuda, launch, &s, stream, error);
}
