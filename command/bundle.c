#include "bundle.h"
#include "bundle_entry.h"
#include "base/file.h"
#include "runtime/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    *old = (fpa_manifest){0, NULL};
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

/* Behind the entries of this call, those that were there; failed: what this call began and did not finish. */
static fpa_status keep_others(const fpa_manifest *old, const fpa_manifest *failed, fpa_manifest *manifest,
                              fpa_error *error)
{
    const int written = manifest->count;
    fpa_bundle_entry *entries =
        realloc(manifest->entries, ((size_t)written + (size_t)old->count + 1) * sizeof *entries);
    if (!entries)
        return fail_memory(error);
    manifest->entries = entries;
    for (int i = 0; i < old->count; i++) {
        bool kept = true;
        for (int j = 0; j < written && kept; j++)
            kept = is_untouched(&old->entries[i], &entries[j]);
        for (int j = 0; j < failed->count && kept; j++)
            kept = is_untouched(&old->entries[i], &failed->entries[j]);
        if (kept)
            entries[manifest->count++] = old->entries[i];
    }
    return FPA_OK;
}

/* Two of one name would overwrite each other's files. */
static fpa_status check_names(fpa_head *const *heads, int count, fpa_error *error)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(heads[i]->name, heads[j]->name) == 0)
                return fail(error, FPA_INVALID, heads[i]->origin,
                            "there are two heads named %s; a bundle needs "
                            "different names",
                            heads[i]->name);
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
    fpa_status status = keep_others(&work->old, &work->failed, &work->manifest, &reason);
    if (!status)
        status = write_manifest(b, &work->manifest, &reason);
    return status ? fail(error, status, reason.where, "%s", reason.message) : first;
}

fpa_status bundle_write(fpa_head *const *heads, int count, const char *folder, const char *const *targets,
                        int targets_count, bundle_parts parts, const fpa_options *options, fpa_error *error)
{
    const bundle b = {folder, options, targets_count > 1, parts};
    const fpa_target **found = calloc((size_t)targets_count + 1, sizeof *found);
    bundle_work work = {.heads = heads, .count = count, .targets_count = targets_count, .targets = found};
    fpa_status status = found ? allocate_work(&work, error) : fail_memory(error);
    if (!status)
        status = find_targets(targets, targets_count, found, error);
    if (!status)
        status = check_names(heads, count, error);
    if (!status && !folder_create(folder, 0777))
        status = fail(error, FPA_IO, folder, "cannot be made: %s", strerror(errno));
    if (!status)
        status = read_old(&b, &work.old, error);
    if (!status)
        status = write_all(&b, &work, error);
    manifest_free(&work.manifest);
    manifest_free(&work.failed);
    manifest_free(&work.old);
    free(found);
    return status;
}
