/* open: spec -> head -> source -> object -> module -> kernel, with the cache in between. */
#include "open.h"

#include "base/plain_locale.h"
#include "gen/gen.h"
#include "layer.h"
#include "opening.h"
#include "runtime/builder.h"
#include "runtime/kernel.h"
#include "runtime/store/cache.h"

#include <string.h>

/* Takes the head out of the list: the kernel keeps it, as the definition of its formula. */
static fpa_status take_head(fpa_head_list *list, const char *name, const char *where, fpa_head **head,
                            fpa_error *error)
{
    const fpa_head *wanted;
    fpa_status status = head_list_find(list, name, where, &wanted, error);
    for (int i = 0; !status && i < list->count; i++)
        if (list->heads[i] == wanted) {
            *head = list->heads[i];
            list->heads[i] = NULL;
        }
    return status;
}

/* The steps of opening a head. */
fpa_status open_parsed_head_as(fpa_head *head, const char *mechanism, const fpa_options *options,
                               fpa_kernel **kernel, fpa_error *error)
{
    opening o = {.options = options, .mechanism = mechanism, .head = head};
    const bool gradients = options && options->backward;
    const locale_t before = locale_plain();
    *kernel = NULL;
    fpa_status status = opening_choose_target(&o, error);
    if (!status && gradients)
        status = source_check_backward(o.head, o.target->name, error);
    if (!status)
        status = opening_prepare(&o, error);
    if (!status)
        status = gradients ? open_with_gradients(&o, kernel, error) : opening_alone(&o, kernel, error);
    opening_finish(&o);
    locale_restore(before);
    return status;
}

fpa_status open_parsed_head(fpa_head *head, const fpa_options *options, fpa_kernel **kernel, fpa_error *error)
{
    return open_parsed_head_as(head, NULL, options, kernel, error);
}

static fpa_status remember(const fpa_head *head, const fpa_options *options, bool backward,
                           const fpa_facts *facts, const fpa_object *object, const char *verdict,
                           char **folder, fpa_error *error)
{
    opening o = {.backward = backward,
                 .options = options,
                 .head = (fpa_head *)(uintptr_t)head,
                 .facts = *facts,
                 .object = *object};
    const locale_t before = locale_plain();
    *folder = NULL;
    fpa_status status = opening_choose_target(&o, error);
    if (!status)
        status = opening_open_cache(&o, error);
    if (!status && o.cache.folder)
        status = opening_make_key(&o, error);
    if (!status && o.cache.folder) {
        opening_store(&o, verdict);
        *folder = strdup(o.cache.folder);
        status = *folder ? FPA_OK : fail_memory(error);
    }
    cache_close(&o.cache);
    locale_restore(before);
    return status;
}

fpa_status open_remember(const fpa_head *head, const fpa_options *options, const fpa_facts *facts,
                         const fpa_object *object, const char *verdict, char **folder, fpa_error *error)
{
    return remember(head, options, false, facts, object, verdict, folder, error);
}

fpa_status open_remember_backward(const fpa_head *head, const fpa_options *options, const fpa_facts *facts,
                                  const fpa_object *object, const char *verdict, char **folder,
                                  fpa_error *error)
{
    return remember(head, options, true, facts, object, verdict, folder, error);
}

static fpa_status open_head(fpa_head_list *list, const char *where, const char *name,
                            const fpa_options *options, fpa_kernel **kernel, fpa_error *error)
{
    fpa_head *head = NULL;
    fpa_status status = take_head(list, name, where, &head, error);
    return status ? status : open_parsed_head(head, options, kernel, error);
}

fpa_status fpa_open(const char *spec, const char *head, const fpa_options *options, fpa_kernel **kernel,
                    fpa_error *error)
{
    fpa_head_list list = {0};
    if (kernel)
        *kernel = NULL;
    if (!kernel || !spec)
        return fail(error, FPA_INVALID, kernel ? "spec" : "kernel", "is NULL");
    fpa_status status = spec_load_head(spec, head, &list, error);
    if (!status)
        status = open_head(&list, spec, head, options, kernel, error);
    head_list_free(&list);
    return status;
}

fpa_status fpa_open_text(const char *name, const char *text, const char *head, const fpa_options *options,
                         fpa_kernel **kernel, fpa_error *error)
{
    fpa_head_list list = {0};
    if (kernel)
        *kernel = NULL;
    if (!kernel || !name || !text)
        return fail(error, FPA_INVALID, !kernel ? "kernel" : name ? "text" : "name", "is NULL");
    fpa_status status = spec_load_text_head(name, ".", text, strlen(text), head, &list, error);
    if (!status)
        status = open_head(&list, name, head, options, kernel, error);
    head_list_free(&list);
    return status;
}

/* ---- layers ---- */

static fpa_status open_part(const fpa_head_list *list, int head, const fpa_options *options,
                            fpa_kernel **kernel, fpa_error *error)
{
    fpa_head *copy = NULL;
    fpa_status status = head_copy(list->heads[head], &copy, error);
    return status ? status : open_parsed_head(copy, options, kernel, error);
}

/* Opens each head once, whatever number of parts it has. */
fpa_status open_layer_of(const fpa_head_list *list, const fpa_layer_spec *layer, const fpa_options *options,
                         fpa_layer **opened, fpa_error *error)
{
    fpa_kernel *kernels[LAYER_MAX_PARTS], *owned[LAYER_MAX_PARTS];
    int heads[LAYER_MAX_PARTS], owned_count = 0;
    fpa_status status = FPA_OK;
    for (int i = 0; i < layer->part_count && !status; i++) {
        kernels[i] = NULL;
        heads[i] = layer->parts[i].count;
        for (int j = 0; j < i; j++)
            if (layer->parts[j].head == layer->parts[i].head)
                kernels[i] = kernels[j];
        if (kernels[i])
            continue;
        status = open_part(list, layer->parts[i].head, options, &kernels[i], error);
        if (!status)
            owned[owned_count++] = kernels[i];
    }
    if (!status)
        status = layer_join(layer->name, (const fpa_kernel *const *)kernels, heads, layer->part_count, owned,
                            owned_count, opened, error);
    for (int i = 0; i < owned_count && status; i++)
        fpa_close(owned[i]);
    return status;
}

static fpa_status open_named_layer(const fpa_head_list *list, const char *where, const char *name,
                                   const fpa_options *options, fpa_layer **opened, fpa_error *error)
{
    const fpa_layer_spec *layer = layer_find(list, name);
    if (layer)
        return open_layer_of(list, layer, options, opened, error);
    if (name)
        return fail(error, FPA_INVALID, where, "there is no layer \"%.80s\"", name);
    return fail(error, FPA_INVALID, where,
                list->layer_count ? "there are %d layers, so name one" : "there is no layer here",
                list->layer_count);
}

fpa_status fpa_open_layer(const char *spec, const char *layer, const fpa_options *options, fpa_layer **opened,
                          fpa_error *error)
{
    fpa_head_list list = {0};
    if (opened)
        *opened = NULL;
    if (!opened || !spec)
        return fail(error, FPA_INVALID, opened ? "spec" : "opened", "is NULL");
    fpa_status status = spec_load(spec, &list, error);
    if (!status)
        status = open_named_layer(&list, spec, layer, options, opened, error);
    head_list_free(&list);
    return status;
}

fpa_status fpa_open_layer_text(const char *name, const char *text, const char *layer,
                               const fpa_options *options, fpa_layer **opened, fpa_error *error)
{
    fpa_head_list list = {0};
    if (opened)
        *opened = NULL;
    if (!opened || !name || !text)
        return fail(error, FPA_INVALID, !opened ? "opened" : name ? "text" : "name", "is NULL");
    fpa_status status = spec_load_text(name, ".", text, strlen(text), &list, error);
    if (!status)
        status = open_named_layer(&list, name, layer, options, opened, error);
    head_list_free(&list);
    return status;
}
