#include "layer.h"
#include "forward.h"
#include "head/layer.h"
#include "tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)LAYER_MAX_PARTS == (int)MOST_PARTS, "a layer's parts are the back end's");

/* Checks that all kernels have one target and one device. */
static fpa_status check_places(const char *name, const fpa_kernel *const *kernels, int count,
                               fpa_error *error)
{
    const fpa_description *first = &kernels[0]->description;
    for (int i = 1; i < count; i++) {
        const fpa_description *about = &kernels[i]->description;
        if (strcmp(about->target, first->target) != 0)
            return fail(error, FPA_INVALID, name, "part %d of the layer is %s for %s, but %s is for %s",
                        i + 1, about->name, about->target, first->name, first->target);
        if (about->device != first->device)
            return fail(error, FPA_INVALID, name,
                        "part %d of the layer is %s on device %d, but %s is on device %d", i + 1, about->name,
                        about->device, first->name, first->device);
    }
    return FPA_OK;
}

static fpa_status check_heads(const char *name, const fpa_kernel *const *kernels, const int *heads, int count,
                              fpa_error *error)
{
    const fpa_head *all[LAYER_MAX_PARTS];
    if (count < 1 || count > LAYER_MAX_PARTS)
        return fail(error, FPA_INVALID, name, "the layer has %d parts, but 1 to %d are needed", count,
                    LAYER_MAX_PARTS);
    for (int i = 0; i < count; i++) {
        if (!kernels[i])
            return fail(error, FPA_INVALID, name, "kernel %d is NULL", i);
        all[i] = kernels[i]->head;
    }
    fpa_status status = layer_validate(name, all, heads, count, error);
    return status ? status : check_places(name, kernels, count, error);
}

static void add_part(fpa_layer *layer, int number, int heads)
{
    fpa_layer_description *d = &layer->description;
    const fpa_description *about = &layer->kernels[number]->description;
    layer->parts[number] = (fpa_layer_part){.head = about,
                                            .first = d->heads,
                                            .heads = heads,
                                            .state_offset = d->state_elements,
                                            .first_weight = d->weight_count};
    d->heads += heads;
    d->state_elements += heads * about->state_elements;
    d->weight_count += about->weight_count;
    d->gate = d->gate || about->gate;
    d->normalized = d->normalized || about->normalized;
    d->key_mask = d->key_mask || about->key_mask;
    d->positions = about->positions ? about->positions : d->positions;
    d->window = about->window > d->window ? about->window : d->window;
    d->backward = d->backward && about->backward_verdict;
}

static void describe(fpa_layer *layer, const int *heads, int count)
{
    const fpa_description *first = &layer->kernels[0]->description;
    layer->description = (fpa_layer_description){.name = layer->name,
                                                 .target = first->target,
                                                 .dtype = first->dtype,
                                                 .state_dtype = first->state_dtype,
                                                 .device = first->device,
                                                 .d = first->d,
                                                 .dv = first->dv,
                                                 .backward = 1,
                                                 .part_count = count,
                                                 .parts = layer->parts};
    for (int i = 0; i < count; i++)
        add_part(layer, i, heads[i]);
}

/* The number of parts before part `number` that have its head, for names of weights. */
static int count_like(const fpa_layer *layer, int number)
{
    int count = 0;
    for (int i = 0; i < number; i++)
        count += strcmp(layer->parts[i].head->name, layer->parts[number].head->name) == 0;
    return count;
}

static fpa_status name_weights(fpa_layer *layer, fpa_error *error)
{
    fpa_layer_description *d = &layer->description;
    layer->weight_names = calloc((size_t)d->weight_count + 1, sizeof *layer->weight_names);
    if (!layer->weight_names)
        return fail_memory(error);
    for (int i = 0, at = 0; i < d->part_count; i++) {
        const fpa_description *head = layer->parts[i].head;
        char again[16] = "";
        const int before = count_like(layer, i);
        if (before)
            snprintf(again, sizeof again, "@%d", before + 1);
        for (int w = 0; w < head->weight_count; w++, at++)
            if (asprintf(&layer->weight_names[at], "%s%s.%s", head->name, again, head->weight_names[w]) < 0) {
                layer->weight_names[at] = NULL;
                return fail_memory(error);
            }
    }
    d->weight_names = (const char *const *)layer->weight_names;
    return FPA_OK;
}

static fpa_status open_together(fpa_layer *layer, fpa_error *error)
{
    const fpa_module *modules[LAYER_MAX_PARTS];
    const int count = layer->description.part_count;
    layer->backend = layer->kernels[0]->module.backend;
    for (int i = 0; i < count; i++)
        modules[i] = &layer->kernels[i]->module;
    if (!layer->backend->together)
        return fail(error, FPA_UNSUPPORTED, layer->name, "layers are not implemented for %s yet",
                    layer->description.target);
    return layer->backend->together->open(modules, count, &layer->handle, error);
}

/* Frees a layer without the kernels that it owns. */
static void free_layer(fpa_layer *layer)
{
    if (layer->handle)
        layer->backend->together->close(layer->handle);
    for (int i = 0; layer->weight_names && i < layer->description.weight_count; i++)
        free(layer->weight_names[i]);
    free(layer->weight_names);
    free(layer->name);
    free(layer->kernels);
    free(layer->owned);
    free(layer->parts);
    free(layer);
}

static fpa_layer *allocate(const char *name, int count, int owned_count)
{
    fpa_layer *layer = calloc(1, sizeof *layer);
    if (!layer)
        return NULL;
    layer->name = strdup(name);
    layer->kernels = calloc((size_t)count, sizeof *layer->kernels);
    layer->parts = calloc((size_t)count, sizeof *layer->parts);
    layer->owned = calloc((size_t)owned_count + 1, sizeof *layer->owned);
    if (layer->name && layer->kernels && layer->parts && layer->owned)
        return layer;
    free_layer(layer);
    return NULL;
}

fpa_status layer_join(const char *name, const fpa_kernel *const *kernels, const int *heads, int count,
                      fpa_kernel *const *owned, int owned_count, fpa_layer **joined, fpa_error *error)
{
    fpa_status status = check_heads(name, kernels, heads, count, error);
    if (status)
        return status;
    fpa_layer *layer = allocate(name, count, owned_count);
    if (!layer)
        return fail_memory(error);
    memcpy(layer->kernels, kernels, (size_t)count * sizeof(const fpa_kernel *));
    describe(layer, heads, count);
    status = name_weights(layer, error);
    if (!status)
        status = open_together(layer, error);
    if (status) {
        free_layer(layer);
        return status;
    }
    memcpy(layer->owned, owned, (size_t)owned_count * sizeof(fpa_kernel *));
    layer->owned_count = owned_count;
    *joined = layer;
    return FPA_OK;
}

fpa_status fpa_join_layer(const char *name, const fpa_kernel *const *kernels, const int *heads, int count,
                          fpa_layer **joined, fpa_error *error)
{
    fpa_kernel *none[1] = {NULL};
    if (joined)
        *joined = NULL;
    if (!joined || !name || !kernels || !heads)
        return fail(error, FPA_INVALID,
                    !joined    ? "joined"
                    : !name    ? "name"
                    : !kernels ? "kernels"
                               : "heads",
                    "is NULL");
    return layer_join(name, kernels, heads, count, none, 0, joined, error);
}

const fpa_layer_description *fpa_describe_layer(const fpa_layer *layer)
{
    return layer ? &layer->description : NULL;
}

void fpa_close_layer(fpa_layer *layer)
{
    if (!layer)
        return;
    fpa_kernel **owned = layer->owned;
    const int count = layer->owned_count;
    layer->owned = NULL;
    free_layer(layer);
    for (int i = 0; i < count; i++)
        fpa_close(owned[i]);
    free(owned);
}
