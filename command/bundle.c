#include "bundle.h"
#include "bundle_entry.h"
#include "base/file.h"
#include "runtime/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

/* ---- earlier contents of the folder ---- */

/* Reads the folder's earlier manifest; one that cannot be read is treated as missing, and replaced. */
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

static bool has_file(const fpa_bundle_entry *entry, const char *name)
{
    for (int i = 0; i < MANIFEST_FILES; i++)
        if (strcmp(entry->files[i].name, name) == 0)
            return true;
    return false;
}

static bool is_same_kernel(const fpa_bundle_entry *entry, const fpa_bundle_entry *other)
{
    return strcmp(entry->facts.name, other->facts.name) == 0 &&
           strcmp(entry->facts.target, other->facts.target) == 0;
}

/* Whether no file of an earlier entry has been overwritten by `written`. */
static bool is_untouched(const fpa_bundle_entry *entry, const fpa_bundle_entry *written)
{
    for (int i = 0; i < MANIFEST_FILES; i++)
        for (int j = 0; j < MANIFEST_FILES; j++)
            if (written->files[j].digest[0] && strcmp(entry->files[i].name, written->files[j].name) == 0 &&
                strcmp(entry->files[i].digest, written->files[j].digest) != 0)
                return false;
    return true;
}

/* The work of one call. */
typedef struct bundle_work {
    fpa_head *const *heads;
    int count, targets_count, failures;
    const fpa_target *const *targets;
    fpa_manifest written; /* entries that this call has written so far */
} bundle_work;

/* Whether an earlier entry is unchanged in the folder. withdrawn: an entry of this call of which some files were
 * written; NULL: none. */
static bool stays(const bundle *b, const bundle_work *work, const fpa_bundle_entry *before,
                  const fpa_bundle_entry *withdrawn)
{
    bool same =
        !names_layer(&b->parts, before->facts.name) && (!withdrawn || is_untouched(before, withdrawn));
    for (int i = 0; i < work->written.count && same; i++)
        same = !is_same_kernel(before, &work->written.entries[i]) &&
               is_untouched(before, &work->written.entries[i]);
    return same;
}

/* Lists this call's entries, then the earlier ones. */
static fpa_status list_entries(const bundle *b, const bundle_work *work, const fpa_manifest *old,
                               const fpa_bundle_entry *withdrawn, fpa_manifest *listed, fpa_error *error)
{
    const int written = work->written.count;
    listed->entries = malloc(((size_t)written + (size_t)old->count + 1) * sizeof *listed->entries);
    if (!listed->entries)
        return fail_memory(error);
    for (int i = 0; i < written; i++)
        listed->entries[listed->count++] = work->written.entries[i];
    for (int i = 0; i < old->count; i++)
        if (stays(b, work, &old->entries[i], withdrawn))
            listed->entries[listed->count++] = old->entries[i];
    return FPA_OK;
}

/* ---- layers ---- */

/* The digest of a head's text in the entries; NULL: no entry is of it. */
static const char *head_digest_of(const fpa_bundle_entry *entries, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(entries[i].facts.name, name) == 0)
            return entries[i].files[MANIFEST_HEAD].digest;
    return NULL;
}

/* The first head of a layer that the entries do not have, or have with another text than in `old` (NULL: any
 * text); NULL: there is none. */
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

/* The first head of a layer that this call has not written; NULL: it has written all. */
static const char *unwritten_head(const bundle_work *work, const fpa_bundle_layer *layer)
{
    return other_head(layer, work->written.entries, work->written.count, NULL);
}

/* Lists the layers of this call whose heads it has written, and the earlier ones. */
static fpa_status list_layers(const bundle *b, const bundle_work *work, const fpa_manifest *old,
                              fpa_manifest *listed, fpa_error *error)
{
    const bundle_parts *parts = &b->parts;
    listed->layers =
        calloc((size_t)parts->layer_count + (size_t)old->layer_count + 1, sizeof *listed->layers);
    if (!listed->layers)
        return fail_memory(error);
    for (int i = 0; i < parts->layer_count; i++)
        if (!unwritten_head(work, &parts->layers[i]))
            listed->layers[listed->layer_count++] = parts->layers[i];
    for (int i = 0; i < old->layer_count; i++) {
        const fpa_bundle_layer *layer = &old->layers[i];
        if (!manifest_find_layer(listed, layer->name) && !manifest_has_head(listed, layer->name) &&
            !other_head(layer, listed->entries, listed->count, old))
            listed->layers[listed->layer_count++] = *layer;
    }
    return FPA_OK;
}

static void warn_of_layers(const bundle *b, const bundle_work *work)
{
    for (int i = 0; i < b->parts.layer_count; i++) {
        const char *lacks = unwritten_head(work, &b->parts.layers[i]);
        if (lacks)
            log_line(b->options, "%s: warning: the layer is not listed, for its head %s is not written",
                     b->parts.layers[i].name, lacks);
    }
}

/* ---- entries ---- */

/* Checks that names differ: two heads of one name would overwrite each other's files. */
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

/* Whether an error, such as a full disk, concerns the other entries, too. */
static bool concerns_all(fpa_status status)
{
    return status == FPA_NO_MEMORY || status == FPA_IO;
}

/* Removes the files of an entry that is not listed, except those that listed entries have, too, such as NAME.head. */
static void remove_files(const bundle *b, const fpa_manifest *listed, const fpa_bundle_entry *entry)
{
    for (int i = 0; i < MANIFEST_FILES; i++) {
        bool kept = !entry->files[i].digest[0];
        for (int j = 0; j < listed->count && !kept; j++)
            kept = has_file(&listed->entries[j], entry->files[i].name);
        if (!kept)
            bundle_file_remove(b, entry->files[i].name);
    }
}

/* Writes the manifest of the present contents; without entries it is removed. */
static fpa_status list(const bundle *b, const bundle_work *work, const fpa_manifest *old,
                       const fpa_bundle_entry *withdrawn, fpa_error *error)
{
    fpa_manifest listed = {0};
    fpa_status status = list_entries(b, work, old, withdrawn, &listed, error);
    if (!status)
        status = list_layers(b, work, old, &listed, error);
    if (!status && withdrawn)
        remove_files(b, &listed, withdrawn);
    if (!status && listed.count)
        status = write_manifest(b, &listed, error);
    else if (!status)
        bundle_file_remove(b, MANIFEST_NAME);
    manifest_free(&listed);
    return status;
}

/* Writes the manifest, including what other calls may have written into the folder meanwhile; these wait for the
 * lock. */
static fpa_status save(const bundle *b, const bundle_work *work, const fpa_bundle_entry *withdrawn,
                       fpa_error *error)
{
    fpa_manifest old = {0};
    const int folder = open(b->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0)
        flock(folder, LOCK_EX); /* ignored if the file system has no locks */
    fpa_status status = read_old(b, &old, error);
    if (!status)
        status = list(b, work, &old, withdrawn, error);
    manifest_free(&old);
    if (folder >= 0)
        close(folder);
    return status;
}

static bool is_begun(const fpa_bundle_entry *entry)
{
    for (int i = 0; i < MANIFEST_FILES; i++)
        if (entry->files[i].digest[0])
            return true;
    return false;
}

/* Writes an entry's files, then a manifest with it, so that whenever the process ends, by a full disk or a signal,
 * the folder is a bundle of the finished entries. */
static fpa_status write_entry(const bundle *b, bundle_work *work, const fpa_head *head,
                              const fpa_target *target, fpa_error *error)
{
    fpa_error ignored;
    fpa_bundle_entry entry = {0};
    fpa_status status = bundle_entry_write(b, head, target, &entry, error);
    if (!is_begun(&entry))
        return status;
    if (!status) {
        work->written.entries[work->written.count++] = entry;
        status = save(b, work, NULL, error);
        if (!status)
            return FPA_OK;
        work->written.count--;
    }
    save(b, work, &entry, &ignored);
    return status;
}

/* Reports a failure: the first one is stored in *first, later ones are warnings. */
static void tell_failure(const bundle *b, bundle_work *work, const fpa_error *failure, fpa_error *first)
{
    if (work->failures++ == 0)
        *first = *failure;
    else
        log_line(b->options, "%s: warning: %s", failure->where, failure->message);
}

/* Writes every entry that can be written; returns the status of the first one that cannot. */
static fpa_status write_entries(const bundle *b, bundle_work *work, fpa_error *first)
{
    fpa_error failure;
    for (int h = 0; h < work->count; h++)
        for (int t = 0; t < work->targets_count; t++) {
            log_line(b->options, "%d of %d: generating and compiling %s for %s",
                     h * work->targets_count + t + 1, work->count * work->targets_count, work->heads[h]->name,
                     work->targets[t]->name);
            fpa_status status = write_entry(b, work, work->heads[h], work->targets[t], &failure);
            if (status)
                tell_failure(b, work, &failure, first);
            if (concerns_all(status))
                return first->code;
        }
    warn_of_layers(b, work);
    return work->failures ? first->code : FPA_OK;
}

fpa_status bundle_write(fpa_head *const *heads, int count, const char *folder, const char *const *targets,
                        int targets_count, bundle_parts parts, const fpa_options *options, fpa_error *error)
{
    const bundle b = {folder, options, targets_count > 1, parts};
    const bool was_there = access(folder, F_OK) == 0;
    const fpa_target **found = calloc((size_t)targets_count + 1, sizeof *found);
    bundle_work work = {.heads = heads, .count = count, .targets_count = targets_count, .targets = found};
    work.written.entries = calloc((size_t)count * (size_t)targets_count + 1, sizeof *work.written.entries);
    fpa_status status = found && work.written.entries ? FPA_OK : fail_memory(error);
    if (!status)
        status = find_targets(targets, targets_count, found, error);
    if (!status)
        status = check_names(heads, count, &b.parts, error);
    if (!status && !folder_create(folder, 0777))
        status = fail(error, FPA_IO, folder, "cannot be made: %s", strerror(errno));
    if (!status)
        status = write_entries(&b, &work, error);
    if (status && !was_there)
        rmdir(folder); /* succeeds only if the folder is empty */
    manifest_free(&work.written);
    free(found);
    return status;
}
