#include "bundle.h"
#include "bundle_entry.h"
#include "base/file.h"
#include "runtime/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fpa_status write_manifest(const bundle *b, const fpa_manifest *manifest, fpa_error *error)
{
    char *text = manifest_print(manifest);
    if (!text)
        return fail_memory(error);
    fpa_status status = bundle_file_write(b, MANIFEST_NAME, text, strlen(text), 0666, error);
    free(text);
    return status;
}

/* ---- what the folder had before ---- */

/* A manifest that cannot be read is replaced: it is what its reader asks for. */
static fpa_status read_old(const bundle *b, fpa_manifest *old, fpa_error *error)
{
    fpa_file file;
    fpa_error reason;
    char *path = file_path(b->folder, MANIFEST_NAME);
    *old = (fpa_manifest){0};
    if (!path)
        return fail_memory(error);
    fpa_status status = file_read(path, &file, &reason);
    if (!status)
        status = manifest_parse(path, (const char *)file.bytes, file.size, old, &reason);
    if (status == FPA_NO_MEMORY)
        fail_memory(error);
    else if (status && !file.missing)
        log_line(b->options, "%s: warning: the heads that it listed are not kept: %s", reason.where,
                 reason.message);
    free(file.bytes);
    free(path);
    return status == FPA_NO_MEMORY ? status : FPA_OK;
}

static bool names_layer(const bundle_parts *parts, const char *name)
{
    for (int i = 0; i < parts->layer_count; i++)
        if (strcmp(parts->layers[i].name, name) == 0)
            return true;
    return false;
}

/* An entry stays when nothing of it was written anew with other bytes. */
static bool is_untouched(const fpa_bundle_entry *entry, const fpa_bundle_entry *written)
{
    if (strcmp(entry->facts.name, written->facts.name) == 0 &&
        strcmp(entry->facts.target, written->facts.target) == 0)
        return false;
    for (int i = 0; i < MANIFEST_FILES; i++)
        for (int j = 0; j < MANIFEST_FILES; j++)
            if (entry->files[i].name[0] && strcmp(entry->files[i].name, written->files[j].name) == 0 &&
                strcmp(entry->files[i].digest, written->files[j].digest) != 0)
                return false;
    return true;
}

/* Behind the entries of this call, those that were there, but of heads that are named as a layer now; failed: what this
 * call began and did not finish. */
static fpa_status keep_others(const bundle *b, const fpa_manifest *old, const fpa_manifest *failed,
                              fpa_manifest *manifest, fpa_error *error)
{
    const int written = manifest->count;
    fpa_bundle_entry *entries =
        realloc(manifest->entries, ((size_t)written + (size_t)old->count + 1) * sizeof *entries);
    if (!entries)
        return fail_memory(error);
    manifest->entries = entries;
    for (int i = 0; i < old->count; i++) {
        bool kept = !names_layer(&b->parts, old->entries[i].facts.name);
        for (int j = 0; j < written && kept; j++)
            kept = is_untouched(&old->entries[i], &entries[j]);
        for (int j = 0; j < failed->count && kept; j++)
            kept = is_untouched(&old->entries[i], &failed->entries[j]);
        if (kept)
            entries[manifest->count++] = old->entries[i];
    }
    return FPA_OK;
}

/* ---- layers ---- */

/* A head as some entry has it: the digest of its text; NULL: no entry is of it. */
static const char *head_digest_of(const fpa_bundle_entry *entries, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(entries[i].facts.name, name) == 0)
            return entries[i].files[MANIFEST_HEAD].digest;
    return NULL;
}

/* The head of a part that the entries lack, or that they have otherwise than `old`'s (NULL: as it may be). */
static const char *other_head(const fpa_bundle_layer *layer, const fpa_bundle_entry *entries, int count,
                              const fpa_manifest *old)
{
    for (int p = 0; p < layer->part_count; p++) {
        const char *name = layer->parts[p].head, *now = head_digest_of(entries, count, name);
        if (!now || (old && strcmp(now, head_digest_of(old->entries, old->count, name)) != 0))
            return name;
    }
    return NULL;
}

/* Those of this call, whose heads are among its first `written` entries, and those of before. */
static fpa_status list_layers(const bundle *b, const fpa_manifest *old, int written, fpa_manifest *manifest,
                              fpa_error *error)
{
    const bundle_parts *parts = &b->parts;
    manifest->layers =
        calloc((size_t)parts->layer_count + (size_t)old->layer_count + 1, sizeof *manifest->layers);
    if (!manifest->layers)
        return fail_memory(error);
    for (int i = 0; i < parts->layer_count; i++) {
        const char *lacks = other_head(&parts->layers[i], manifest->entries, written, NULL);
        if (!lacks)
            manifest->layers[manifest->layer_count++] = parts->layers[i];
        else
            log_line(b->options, "%s: warning: the layer is not listed, for its head %s is not written",
                     parts->layers[i].name, lacks);
    }
    for (int i = 0; i < old->layer_count; i++) {
        const fpa_bundle_layer *layer = &old->layers[i];
        if (!manifest_find_layer(manifest, layer->name) && !manifest_has_head(manifest, layer->name) &&
            !other_head(layer, manifest->entries, manifest->count, old))
            manifest->layers[manifest->layer_count++] = *layer;
    }
    return FPA_OK;
}

/* Two of one name would overwrite each other's files. */
static fpa_status check_names(fpa_head *const *heads, int count, const bundle_parts *parts, fpa_error *error)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(heads[i]->name, heads[j]->name) == 0)
                return fail(error, FPA_INVALID, heads[i]->origin,
                            "there are two heads named %s; a bundle needs "
                            "different names",
                            heads[i]->name);
    for (int i = 0; i < count; i++)
        if (names_layer(parts, heads[i]->name))
            return fail(error, FPA_INVALID, heads[i]->origin,
                        "a head and a layer are named %s; a bundle needs different names", heads[i]->name);
    for (int i = 1; i < parts->layer_count; i++)
        if (names_layer(&(bundle_parts){.layers = parts->layers, .layer_count = i}, parts->layers[i].name))
            return fail(error, FPA_INVALID, parts->layers[i].name,
                        "is the name of two layers; a bundle needs different names");
    return FPA_OK;
}

static fpa_status find_targets(const char *const *names, int count, const fpa_target **targets,
                               fpa_error *error)
{
    for (int i = 0; i < count; i++) {
        const fpa_backend *backend;
        fpa_status status = backend_target(names[i], &backend, &targets[i], error);
        if (status)
            return status;
        for (int j = 0; j < i; j++)
            if (targets[i] == targets[j])
                return fail(error, FPA_INVALID, targets[i]->name, "is given twice");
    }
    return FPA_OK;
}

/* Of a full disk, say, the others would suffer too. */
static bool concerns_all(fpa_status status)
{
    return status == FPA_NO_MEMORY || status == FPA_IO;
}

/* What one call writes. */
typedef struct bundle_work {
    fpa_head *const *heads;
    int count, targets_count;
    const fpa_target *const *targets;
    fpa_manifest manifest, failed, old;
} bundle_work;

/* The first failure is *first. */
static void keep_failure(const bundle *b, bundle_work *work, const fpa_bundle_entry *entry,
                         const fpa_error *failure, fpa_error *first)
{
    if (work->failed.count++ == 0)
        *first = *failure;
    else
        log_line(b->options, "%s: warning: %s", failure->where, failure->message);
    work->failed.entries[work->failed.count - 1] = *entry;
}

/* Each that can be; the status is that of the first that cannot. */
static fpa_status write_entries(const bundle *b, bundle_work *work, fpa_error *first)
{
    fpa_error failure;
    for (int h = 0; h < work->count; h++)
        for (int t = 0; t < work->targets_count; t++) {
            fpa_bundle_entry entry = {0};
            log_line(b->options, "%d of %d: generating and compiling %s for %s",
                     h * work->targets_count + t + 1, work->count * work->targets_count, work->heads[h]->name,
                     work->targets[t]->name);
            fpa_status status = bundle_entry_write(b, work->heads[h], work->targets[t], &entry, &failure);
            if (!status)
                work->manifest.entries[work->manifest.count++] = entry;
            else
                keep_failure(b, work, &entry, &failure, first);
            if (concerns_all(status))
                return status;
        }
    return work->failed.count ? first->code : FPA_OK;
}

static fpa_status allocate_work(bundle_work *work, fpa_error *error)
{
    const size_t most = (size_t)work->count * (size_t)work->targets_count + 1;
    work->manifest.entries = calloc(most, sizeof *work->manifest.entries);
    work->failed.entries = calloc(most, sizeof *work->failed.entries);
    return work->manifest.entries && work->failed.entries ? FPA_OK : fail_memory(error);
}

/* Entries, then the manifest; where nothing could be written the folder keeps what it says. */
static fpa_status write_all(const bundle *b, bundle_work *work, fpa_error *error)
{
    fpa_error reason;
    fpa_status first = write_entries(b, work, error);
    if (concerns_all(first) || (first && work->manifest.count == 0))
        return first;
    const int written = work->manifest.count;
    fpa_status status = keep_others(b, &work->old, &work->failed, &work->manifest, &reason);
    if (!status)
        status = list_layers(b, &work->old, written, &work->manifest, &reason);
    if (!status)
        status = write_manifest(b, &work->manifest, &reason);
    return status ? fail(error, status, reason.where, "%s", reason.message) : first;
}

fpa_status bundle_write(fpa_head *const *heads, int count, const char *folder, const char *const *targets,
                        int targets_count, bundle_parts parts, const fpa_options *options, fpa_error *error)
{
    const bundle b = {folder, options, targets_count > 1, parts};
    const bool was_there = access(folder, F_OK) == 0;
    const fpa_target **found = calloc((size_t)targets_count + 1, sizeof *found);
    bundle_work work = {.heads = heads, .count = count, .targets_count = targets_count, .targets = found};
    fpa_status status = found ? allocate_work(&work, error) : fail_memory(error);
    if (!status)
        status = find_targets(targets, targets_count, found, error);
    if (!status)
        status = check_names(heads, count, &b.parts, error);
    if (!status && !folder_create(folder, 0777))
        status = fail(error, FPA_IO, folder, "cannot be made: %s", strerror(errno));
    if (!status)
        status = read_old(&b, &work.old, error);
    if (!status)
        status = write_all(&b, &work, error);
    if (status && !was_there)
        rmdir(folder); /* if nothing could be written into it */
    manifest_free(&work.manifest);
    manifest_free(&work.failed);
    manifest_free(&work.old);
    free(found);
    return status;
}
