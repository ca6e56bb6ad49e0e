/* bundle_layer: opens a layer of a bundle's folder, with a kernel for each of its heads. It uses neither the
 * generator nor a compiler. */
#include "layer.h"
#include "runtime/store/bundle_choice.h"

#include <string.h>

/* The kernels of a layer's parts; equal heads share a kernel, which is in `owned` once. */
typedef struct parts {
    fpa_kernel *kernel[LAYER_MAX_PARTS], *owned[LAYER_MAX_PARTS];
    int heads[LAYER_MAX_PARTS];
    int owned_count;
} parts;

static fpa_kernel *opened_before(const parts *p, const fpa_bundle_layer *layer, int part)
{
    for (int i = 0; i < part; i++)
        if (strcmp(layer->parts[i].head, layer->parts[part].head) == 0)
            return p->kernel[i];
    return NULL;
}

static fpa_status open_parts(const char *folder, const fpa_bundle_layer *layer, const fpa_options *options,
                             parts *p, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int i = 0; i < layer->part_count && !status; i++) {
        p->heads[i] = layer->parts[i].heads;
        p->kernel[i] = opened_before(p, layer, i);
        if (p->kernel[i])
            continue;
        status = fpa_open_bundle(folder, layer->parts[i].head, options, &p->kernel[i], error);
        if (!status)
            p->owned[p->owned_count++] = p->kernel[i];
    }
    return status;
}

static fpa_status open_chosen(const char *folder, const fpa_bundle_layer *layer, const fpa_target *target,
                              const fpa_options *options, fpa_layer **opened, fpa_error *error)
{
    fpa_options its = options ? *options : (fpa_options){0};
    parts p = {0};
    its.target = target->name; /* the same target for all heads */
    fpa_status status = open_parts(folder, layer, &its, &p, error);
    if (!status)
        status = layer_join(layer->name, (const fpa_kernel *const *)p.kernel, p.heads, layer->part_count,
                            p.owned, p.owned_count, opened, error);
    for (int i = 0; i < p.owned_count && status; i++)
        fpa_close(p.owned[i]);
    return status;
}

fpa_status fpa_open_bundle_layer(const char *folder, const char *layer, const fpa_options *options,
                                 fpa_layer **opened, fpa_error *error)
{
    fpa_manifest manifest = {0};
    const bundle_wish wish = {folder, &manifest, options};
    const fpa_bundle_layer *found;
    const fpa_target *target;
    if (opened)
        *opened = NULL;
    if (!opened || !folder)
        return fail(error, FPA_INVALID, opened ? "folder" : "opened", "is NULL");
    fpa_status status = bundle_read_manifest(folder, &manifest, error);
    if (!status)
        status = bundle_choose_layer(&wish, layer, &found, &target, error);
    if (!status)
        status = open_chosen(folder, found, target, options, opened, error);
    manifest_free(&manifest);
    return status;
}
