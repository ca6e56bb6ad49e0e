#include "bundle_choice.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fpa_status bundle_read_manifest(const char *folder, fpa_manifest *manifest, fpa_error *error)
{
    fpa_file file = {0};
    char *where = file_path(folder, MANIFEST_NAME);
    if (!where)
        return fail_memory(error);
    fpa_status status = file_read(where, &file, error);
    if (!status)
        status = manifest_parse(where, (const char *)file.bytes, file.size, manifest, error);
    free(file.bytes);
    free(where);
    return status;
}

fpa_status bundle_read_file(const char *folder, const fpa_bundle_file *listed, fpa_file *file,
                            fpa_error *error)
{
    char digest[DIGEST_TEXT], *path = file_path(folder, listed->name);
    *file = (fpa_file){0};
    if (!path)
        return fail_memory(error);
    fpa_status status = file_read(path, file, error);
    free(path);
    if (status)
        return status;
    manifest_digest(file->bytes, file->size, digest);
    if (strcmp(digest, listed->digest) == 0)
        return FPA_OK;
    free(file->bytes);
    file->bytes = NULL;
    return fail(
        error, FPA_LOAD, listed->name,
        "is not the file that the manifest of %.150s lists (its SHA-256 differs); write the bundle again",
        folder);
}

/* ---- targets ---- */

/* What the wanted target means on this machine. */
typedef struct machine {
    const char *wanted; /* "c", "cuda", "c:avx2" */
    const fpa_backend *backend;
    const fpa_target *target; /* the best target that this machine runs */
    bool backward;            /* gradients are wanted */
} machine;

static fpa_status ask_machine(const bundle_wish *wish, machine *here, fpa_error *error)
{
    const fpa_options *options = wish->options;
    *here = (machine){.wanted = options && options->target ? options->target : "c",
                      .backward = options && options->backward};
    return backend_choose(options, here->wanted, &here->backend, &here->target, error);
}

/* Whether an entry is of the head, has an object and, if these are wanted, gradients. *its: its target. */
static bool has_object(const fpa_bundle_entry *entry, const char *name, bool backward, const fpa_target **its)
{
    const manifest_file object = backward ? MANIFEST_BACKWARD_OBJECT : MANIFEST_OBJECT;
    *its = target_find(entry->facts.target);
    return *its && entry->files[MANIFEST_OBJECT].name[0] && entry->files[object].name[0] &&
           (!name || strcmp(entry->facts.name, name) == 0);
}

static bool runs(const machine *here, const fpa_target *its)
{
    const bool any = strcmp(here->wanted, here->backend->name) == 0;
    return any ? target_fits_beside(its, here->target) : its == here->target;
}

/* Lists the targets for which the head has objects: "c:avx2, cuda:sm_80". */
static void list_objects(const fpa_manifest *manifest, const char *name, char *text, size_t size)
{
    const fpa_target *its;
    size_t used = 0;
    snprintf(text, size, "none");
    for (int i = 0; i < manifest->count && used < size; i++)
        if (has_object(&manifest->entries[i], name, false, &its))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", its->name);
}

/* ---- a head ---- */

/* Adds a name to a list that contains each name once; returns the length of the text. */
static size_t add_name(char *text, size_t size, size_t used, const char *name)
{
    if (used >= size)
        return used;
    return used + (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", name);
}

/* Lists the names of the manifest's heads, each once, for messages. */
static void list_heads(const fpa_manifest *manifest, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < manifest->count; i++) {
        const char *name = manifest->entries[i].facts.name;
        bool listed = false;
        for (int j = 0; j < i && !listed; j++)
            listed = strcmp(manifest->entries[j].facts.name, name) == 0;
        if (!listed)
            used = add_name(text, size, used, name);
    }
}

static fpa_status check_name(const bundle_wish *wish, const char *name, fpa_error *error)
{
    char names[512];
    const fpa_manifest *m = wish->manifest;
    bool single = true;
    for (int i = 0; i < m->count; i++)
        single &= strcmp(m->entries[i].facts.name, m->entries[0].facts.name) == 0;
    list_heads(m, names, sizeof names);
    if (name && manifest_find_layer(m, name))
        return fail(error, FPA_INVALID, wish->folder,
                    "\"%.63s\" is a layer of heads: open it with fpa_open_bundle_layer, or one of: %s", name,
                    names);
    if (name ? !manifest_has_head(m, name) : !m->count)
        return fail(error, FPA_INVALID, wish->folder, "there is no head '%.63s' in this bundle, but: %s",
                    name ? name : "", *names ? names : "none at all");
    if (!name && !single)
        return fail(error, FPA_INVALID, wish->folder, "the bundle has several heads, so name one of: %s",
                    names);
    return FPA_OK;
}

static bool is_better(const fpa_target *its, const fpa_bundle_entry *entry)
{
    const fpa_target *other = entry ? target_find(entry->facts.target) : NULL;
    return !other || target_is_better(its, other);
}

/* The entry for the named target; else, of the entries that run here, the one with the widest vectors and pairs of
 * bf16, or the one for the newest GPU, with warpgroups if possible. NULL: there is none. */
static const fpa_bundle_entry *best_entry(const fpa_manifest *manifest, const char *name, const machine *here,
                                          bool backward)
{
    const fpa_bundle_entry *best = NULL;
    const fpa_target *its;
    for (int i = 0; i < manifest->count; i++) {
        const fpa_bundle_entry *entry = &manifest->entries[i];
        if (has_object(entry, name, backward, &its) && runs(here, its) && is_better(its, best))
            best = entry;
    }
    return best;
}

static fpa_status refuse_target(const bundle_wish *wish, const char *name, const machine *here,
                                fpa_error *error)
{
    char objects[256];
    list_objects(wish->manifest, name, objects, sizeof objects);
    return fail(error, FPA_UNSUPPORTED, wish->folder,
                "the bundle has no object of this head for the target %s that runs here; it has: %s; write "
                "one with fpac gen --object --target %s",
                here->wanted, objects, here->target->name);
}

static fpa_status refuse_backward(const bundle_wish *wish, const fpa_bundle_entry *entry, fpa_error *error)
{
    return fail(error, FPA_UNSUPPORTED, wish->folder,
                "%s was written without gradients for %s; write it with fpac gen --backward --object "
                "--target %s",
                entry->facts.name, entry->facts.target, entry->facts.target);
}

fpa_status bundle_choose_entry(const bundle_wish *wish, const char *name, const fpa_bundle_entry **entry,
                               const fpa_backend **backend, fpa_error *error)
{
    machine here;
    fpa_status status = check_name(wish, name, error);
    if (!status)
        status = ask_machine(wish, &here, error);
    if (status)
        return status;
    *backend = here.backend;
    *entry = best_entry(wish->manifest, name, &here, here.backward);
    if (*entry)
        return FPA_OK;
    const fpa_bundle_entry *without = best_entry(wish->manifest, name, &here, false);
    return without ? refuse_backward(wish, without, error) : refuse_target(wish, name, &here, error);
}

/* ---- a layer ---- */

static fpa_status find_layer(const bundle_wish *wish, const char *name, const fpa_bundle_layer **layer,
                             fpa_error *error)
{
    char names[512] = "";
    const fpa_manifest *m = wish->manifest;
    size_t used = 0;
    *layer = name ? manifest_find_layer(m, name) : m->layer_count == 1 ? &m->layers[0] : NULL;
    if (*layer)
        return FPA_OK;
    for (int i = 0; i < m->layer_count; i++)
        used = add_name(names, sizeof names, used, m->layers[i].name);
    if (!m->layer_count)
        return fail(error, FPA_INVALID, wish->folder,
                    "there is no layer in this bundle; its heads are opened "
                    "with fpa_open_bundle");
    if (name)
        return fail(error, FPA_INVALID, wish->folder, "there is no layer '%.63s' in this bundle, but: %s",
                    name, names);
    return fail(error, FPA_INVALID, wish->folder, "the bundle has several layers, so name one of: %s", names);
}

/* The first head of the layer without an object for the target; NULL: each has one. */
static const char *lacking(const fpa_manifest *manifest, const fpa_bundle_layer *layer,
                           const fpa_target *target, bool backward)
{
    const fpa_target *its;
    for (int p = 0; p < layer->part_count; p++) {
        bool found = false;
        for (int i = 0; i < manifest->count && !found; i++)
            found = has_object(&manifest->entries[i], layer->parts[p].head, backward, &its) && its == target;
        if (!found)
            return layer->parts[p].head;
    }
    return NULL;
}

static fpa_status refuse_layer(const bundle_wish *wish, const fpa_bundle_layer *layer, const machine *here,
                               fpa_error *error)
{
    const char *head = lacking(wish->manifest, layer, here->target, here->backward);
    char objects[256];
    list_objects(wish->manifest, head, objects, sizeof objects);
    return fail(
        error, FPA_UNSUPPORTED, wish->folder,
        "the heads of layer %s have no objects%s for one target that runs here; %s has: %s; write them with "
        "fpac gen --head %s --object%s --target %s",
        layer->name, here->backward ? " with gradients" : "", head, objects, layer->name,
        here->backward ? " --backward" : "", here->target->name);
}

fpa_status bundle_choose_layer(const bundle_wish *wish, const char *name, const fpa_bundle_layer **layer,
                               const fpa_target **target, fpa_error *error)
{
    machine here;
    fpa_status status = find_layer(wish, name, layer, error);
    if (!status)
        status = ask_machine(wish, &here, error);
    if (status)
        return status;
    *target = NULL;
    for (int i = 0; i < wish->manifest->count; i++) {
        const fpa_target *its = target_find(wish->manifest->entries[i].facts.target);
        if (its && runs(&here, its) && !lacking(wish->manifest, *layer, its, here.backward) &&
            (!*target || target_is_better(its, *target)))
            *target = its;
    }
    return *target ? FPA_OK : refuse_layer(wish, *layer, &here, error);
}
