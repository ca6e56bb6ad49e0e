/* open: spec -> head -> source -> object -> module -> kernel, with the cache in between. */
#include "open.h"

#include "base/clock.h"
#include "base/plain_locale.h"
#include "layer.h"
#include "opening.h"
#include "gen/gen.h"
#include "runtime/builder.h"
#include "runtime/store/cache.h"
#include "runtime/store/lock.h"
#include "runtime/kernel.h"
#include "runtime/store/manifest.h"
#include "runtime/verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fpa_status choose_target(opening *o, fpa_error *error)
{
    const char *name = o->options && o->options->target ? o->options->target : "c";
    return backend_choose(o->options, name, &o->backend, &o->target, error);
}

/* Take the head out of the list: the kernel keeps it, as the formula that it stands for. */
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

/* The key covers all that decides the object's bytes and whether its verdict holds: what the emitted text
 * is a function of (head as written, target, generator), so that it need not be emitted to find the object;
 * the compiler; the device, because a verdict is its own; and the verifier. */
static fpa_status make_key(opening *o, fpa_error *error)
{
    char digest[DIGEST_TEXT];
    char *identity = NULL, *device = NULL;
    fpa_status status = head_digest(o->head, digest, error);
    if (!status)
        status = builder_of(o->target)->identity(o->options, o->target->name, &identity, error);
    if (!status)
        status = o->backend->device(o->options, &device, error);
    if (!status) {
        const char *const fields[] = {("fpac module 2 of " FPA_VERSION),
                                      digest,
                                      o->target->name,
                                      generator_digest,
                                      identity,
                                      device,
                                      verifier_digest,
                                      o->backward ? "gradients" : o->mechanism};
        cache_key(fields, sizeof fields / sizeof *fields - !(o->backward || o->mechanism), o->key);
    }
    free(identity);
    free(device);
    return status;
}

static fpa_status compile(opening *o, fpa_error *error)
{
    const double begin = clock_seconds();
    fpa_source source;
    log_line(o->options, "%s: compiling%s for %s", o->head->name, o->backward ? " gradients" : "",
             o->target->name);
    fpa_status status = o->backward
                            ? source_generate_backward(o->head, o->target->name, &source, error)
                            : source_generate_as(o->head, o->target->name, o->mechanism, &source, error);
    if (!status)
        status = builder_of(o->target)->compile(o->options, &source, &o->object, error);
    o->facts = source.facts;
    source_free(&source);
    if (status)
        return status;
    log_line(o->options, "%s: compiled for %s in %.2f s (%zu bytes)", o->head->name, o->target->name,
             clock_seconds() - begin, o->object.size);
    return o->backend->load(o->options, &o->object, o->facts.name, &o->module, error);
}

static void forget_object(opening *o)
{
    free(o->object.bytes);
    free(o->kept);
    o->object = (fpa_object){NULL, 0};
    o->kept = NULL;
    o->verdict = NULL;
    o->cached = false;
}

static fpa_status load_cached(opening *o, fpa_error *error)
{
    fpa_status status =
        facts_parse("the cached module", o->kept ? o->kept : "", &o->facts, &o->verdict, error);
    return status ? status : o->backend->load(o->options, &o->object, o->facts.name, &o->module, error);
}

/* Take the module from the cache, if it is there. A cached object that does not load (the folder is shared with a
 * machine that has other libraries, say) is no reason to fail: it is built again, and *broken. */
static fpa_status take_cached(opening *o, bool *broken, fpa_error *error)
{
    fpa_error reason;
    fpa_status status = cache_load(&o->cache, o->options, o->key, &o->cached, &o->object, &o->kept, error);
    *broken = false;
    if (status || !o->cached)
        return status;
    status = load_cached(o, &reason);
    if (status == FPA_OK)
        log_line(o->options, "%s: taken from the cache, %s/%.16s...", o->head->name, o->cache.folder, o->key);
    if (status == FPA_OK || status == FPA_NO_MEMORY)
        return status ? fail_memory(error) : FPA_OK;
    log_line(o->options, "%s: the cached module is built again: %s", o->head->name, reason.message);
    forget_object(o);
    *broken = true;
    return FPA_OK;
}

/* What many open at once is compiled once: the others wait, and look again. */
fpa_status opening_load(opening *o, fpa_error *error)
{
    bool broken;
    fpa_status status = take_cached(o, &broken, error);
    if (status || o->cached)
        return status;
    lock_take(&o->cache, o->options, o->key, o->head->name, &o->lock);
    if (!broken || o->lock.waited)
        status = take_cached(o, &broken, error);
    return status || o->cached ? status : compile(o, error);
}

/* Both are given away, also when the verification fails. */
fpa_status opening_verify(opening *o, fpa_kernel **kernel, fpa_error *error)
{
    fpa_head *head = o->head;
    fpa_module module = o->module;
    o->head = NULL;
    o->module = (fpa_module){0};
    return verify_kernel(head, &o->facts, &module, o->verdict, o->cached, kernel, error);
}

/* Only what passed is stored. A cache that cannot be written costs time, not the kernel. */
void opening_store(const opening *o, const char *verdict)
{
    fpa_error reason;
    char *facts, *kept = NULL;
    const char *name = o->facts.name;
    facts = facts_print(&o->facts);
    if (!facts || asprintf(&kept, "%s%s", facts, verdict) < 0) {
        kept = NULL;
        log_line(o->options, "cache: %s is not stored: out of memory", name);
    } else if (cache_store(&o->cache, o->key, &o->object, kept, &reason)) {
        log_line(o->options, "cache: %s %s", reason.where, reason.message);
    } else if (o->cache.folder) {
        log_line(o->options, "%s: kept in the cache, %s/%.16s...", name, o->cache.folder, o->key);
    }
    free(facts);
    free(kept);
}

void opening_store_new(const opening *o, const fpa_kernel *kernel)
{
    const fpa_description *description = fpa_describe(kernel);
    if (o->cached)
        return;
    log_line(o->options, "%s: verified: %s", description->name, description->verdict);
    opening_store(o, description->verdict);
}

static fpa_status open_cache(opening *o, fpa_error *error)
{
    fpa_status status = cache_open(o->options, &o->cache, error);
    bool wanted = !(o->options && o->options->cache_dir && !*o->options->cache_dir);
    if (!status && !o->cache.folder && wanted)
        log_line(o->options, "cache: not used: %s", o->cache.reason);
    return status;
}

void opening_finish(opening *o)
{
    if (o->module.backend)
        o->backend->unload(&o->module);
    head_free(o->head);
    forget_object(o);
    lock_release(&o->lock);
    cache_close(&o->cache);
}

fpa_status opening_prepare(opening *o, fpa_error *error)
{
    fpa_status status = open_cache(o, error);
    return status ? status : make_key(o, error);
}

static fpa_status open_alone(opening *o, fpa_kernel **kernel, fpa_error *error)
{
    fpa_status status = opening_load(o, error);
    if (!status)
        status = opening_verify(o, kernel, error);
    if (!status)
        opening_store_new(o, *kernel);
    return status;
}

/* The pipeline. */
fpa_status open_parsed_head_as(fpa_head *head, const char *mechanism, const fpa_options *options,
                               fpa_kernel **kernel, fpa_error *error)
{
    opening o = {.options = options, .mechanism = mechanism, .head = head};
    const bool gradients = options && options->backward;
    const locale_t before = locale_plain();
    *kernel = NULL;
    fpa_status status = choose_target(&o, error);
    if (!status && gradients)
        status = source_check_backward(o.head, o.target->name, error);
    if (!status)
        status = opening_prepare(&o, error);
    if (!status)
        status = gradients ? open_with_gradients(&o, kernel, error) : open_alone(&o, kernel, error);
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
    fpa_status status = choose_target(&o, error);
    if (!status)
        status = open_cache(&o, error);
    if (!status && o.cache.folder)
        status = make_key(&o, error);
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
    fpa_status status = spec_load(spec, &list, error);
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
    fpa_status status = spec_load_text(name, ".", text, strlen(text), &list, error);
    if (!status)
        status = open_head(&list, name, head, options, kernel, error);
    head_list_free(&list);
    return status;
}

/* ---- layers ---- */

/* A head that stays in the list: its canonical text is all of it. */
static fpa_status copy_head(const fpa_head *head, fpa_head **copy, fpa_error *error)
{
    char *text = head_print(head);
    if (!text)
        return fail_memory(error);
    fpa_status status = head_parse(text, strlen(text), copy, error);
    free(text);
    return status;
}

static fpa_status open_part(const fpa_head_list *list, int head, const fpa_options *options,
                            fpa_kernel **kernel, fpa_error *error)
{
    fpa_head *copy = NULL;
    fpa_status status = copy_head(list->heads[head], &copy, error);
    return status ? status : open_parsed_head(copy, options, kernel, error);
}

/* Each head's kernel once, whatever parts it is of. */
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
