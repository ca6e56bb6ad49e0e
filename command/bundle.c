#include "runtime/cuda/build.h"
#include "bundle.h"
#include "base/output.h"
#include "runtime/store/manifest.h"
#include "runtime/verify/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bundle {
    const char *folder;
    const fpa_options *options;
    bool several; /* targets: their names go into the files' names */
    bool with_objects, with_ptx;
} bundle;

static const char *isa_of(const fpa_target *target)
{
    const char *colon = strchr(target->name, ':');
    return colon ? colon + 1 : target->name;
}

static fpa_status write_in_folder(const bundle *b, const char *name, const void *bytes, size_t size,
                                  mode_t mode, fpa_error *error)
{
    const fpa_bytes part = {bytes, size};
    char *path = file_path(b->folder, name);
    if (!path)
        return fail_memory(error);
    fpa_status status = output_write(path, mode, &part, 1, error);
    free(path);
    return status;
}

/* Write one file and note its name and digest. */
static fpa_status write_file(const bundle *b, const void *bytes, size_t size, fpa_bundle_file *file,
                             mode_t mode, fpa_error *error)
{
    manifest_digest(bytes, size, file->digest);
    return write_in_folder(b, file->name, bytes, size, mode, error);
}

static fpa_status write_text(const bundle *b, const char *text, fpa_bundle_file *file, fpa_error *error)
{
    return write_file(b, text, strlen(text), file, 0666, error);
}

/* What a back end's files are called. */
typedef struct kind_of_files {
    const char *code, *header, *object, *ptx; /* NULL: it has none */
    bool always_objects;                      /* whether they are asked for or not */
    mode_t object_mode;
} kind_of_files;

static const kind_of_files kinds[BACKENDS] = {
    [BACKEND_C] = {.code = "c", .header = "h", .object = "so", .object_mode = 0777},
    [BACKEND_CUDA] =
        {.code = "cu", .object = "cubin", .ptx = "ptx", .always_objects = true, .object_mode = 0666},
};

static void name_files(const bundle *b, const char *name, const fpa_target *target, fpa_bundle_entry *entry)
{
    const char *isa = isa_of(target), *dot = b->several ? "." : "", *infix = b->several ? isa : "";
    const kind_of_files *kind = &kinds[target->backend];
    fpa_bundle_file *files = entry->files;
    size_t size = sizeof files->name;
    snprintf(files[MANIFEST_HEAD].name, size, "%.63s.head", name);
    snprintf(files[MANIFEST_CODE].name, size, "%.63s%s%.16s.%s", name, dot, infix, kind->code);
    if (kind->header)
        snprintf(files[MANIFEST_HEADER].name, size, "%.63s%s%.16s.%s", name, dot, infix, kind->header);
    if (kind->always_objects || b->with_objects)
        snprintf(files[MANIFEST_OBJECT].name, size, "%.63s.%.16s.%s", name, isa, kind->object);
    if (kind->ptx && b->with_ptx)
        snprintf(files[MANIFEST_PTX].name, size, "%.63s.%.16s.%s", name, isa, kind->ptx);
}

static fpa_status write_head(const bundle *b, const fpa_head *head, fpa_bundle_entry *entry, fpa_error *error)
{
    char *text = head_print(head);
    if (!text)
        return fail_memory(error);
    fpa_status status = write_text(b, text, &entry->files[MANIFEST_HEAD], error);
    free(text);
    return status;
}

static fpa_status verify_object(const bundle *b, const fpa_backend *backend, const fpa_head *head,
                                const fpa_facts *facts, const fpa_object *object, fpa_error *error)
{
    fpa_module module;
    fpa_verdict verdict;
    fpa_status status = backend->load(b->options, object, facts->name, &module, error);
    if (status)
        return status;
    status = verify_module(head, facts, &module, &verdict, error);
    backend->unload(&module);
    if (!status)
        log_line(b->options, "%s: verified: %s", head->name, verdict.text);
    return status;
}

/* A machine that cannot run a target may still write it: for one that can. */
static fpa_status ask_whether_it_runs(const bundle *b, const fpa_backend *backend, const fpa_head *head,
                                      const fpa_target *target, bool *runs, fpa_error *error)
{
    const fpa_target *chosen;
    fpa_error reason = {0};
    fpa_status status = backend->choose(b->options, target->name, &chosen, &reason);
    *runs = status == FPA_OK;
    if (*runs)
        return FPA_OK;
    if (status != FPA_UNSUPPORTED && status != FPA_DEVICE)
        return fail(error, status, reason.where, "%s", reason.message);
    log_line(b->options, "%s: %s does not run here (%s: %s); it is verified where it is opened", head->name,
             target->name, reason.where, reason.message);
    return FPA_OK;
}

/* A file has one cubin with all kernels, which other tools read too. */
static fpa_status compile(const bundle *b, const fpa_target *target, const fpa_source *source,
                          fpa_object *object, fpa_error *error)
{
    const fpa_builder *builder = builder_of(target);
    nvrtc_report report;
    if (builder != &builder_cuda)
        return builder->compile(b->options, source, object, error);
    fpa_status status = cuda_compile(b->options, source, false, object, &report, error);
    nvrtc_report_free(&report);
    return status;
}

static fpa_status write_object(const bundle *b, const fpa_head *head, const fpa_source *source,
                               const fpa_target *target, fpa_bundle_entry *entry, fpa_error *error)
{
    const fpa_backend *backend = backend_find(target->name);
    fpa_object object = {NULL, 0};
    bool runs = false;
    fpa_status status = compile(b, target, source, &object, error);
    if (!status)
        status = ask_whether_it_runs(b, backend, head, target, &runs, error);
    if (!status && runs)
        status = verify_object(b, backend, head, &source->facts, &object, error);
    if (!status)
        status = write_file(b, object.bytes, object.size, &entry->files[MANIFEST_OBJECT],
                            kinds[target->backend].object_mode, error);
    free(object.bytes);
    return status;
}

static fpa_status write_ptx(const bundle *b, const fpa_source *source, fpa_bundle_entry *entry,
                            fpa_error *error)
{
    nvrtc_report report;
    fpa_object text = {NULL, 0};
    fpa_status status = cuda_compile(b->options, source, true, &text, &report, error);
    if (!status)
        status = write_file(b, text.bytes, text.size, &entry->files[MANIFEST_PTX], 0666, error);
    free(text.bytes);
    nvrtc_report_free(&report);
    return status;
}

static bool is_wanted(const fpa_bundle_entry *entry, manifest_file kind)
{
    return entry->files[kind].name[0];
}

static fpa_status write_entry(const bundle *b, const fpa_head *head, const fpa_target *target,
                              fpa_bundle_entry *entry, fpa_error *error)
{
    fpa_source source;
    fpa_status status = source_generate(head, target->name, &source, error);
    if (!status) {
        entry->facts = source.facts;
        name_files(b, head->name, target, entry);
        status = write_head(b, head, entry, error);
    }
    if (!status)
        status = write_text(b, source.code, &entry->files[MANIFEST_CODE], error);
    if (!status && is_wanted(entry, MANIFEST_HEADER))
        status = write_text(b, source.header, &entry->files[MANIFEST_HEADER], error);
    if (!status && is_wanted(entry, MANIFEST_OBJECT))
        status = write_object(b, head, &source, target, entry, error);
    if (!status && is_wanted(entry, MANIFEST_PTX))
        status = write_ptx(b, &source, entry, error);
    source_free(&source);
    return status;
}

static fpa_status write_manifest(const bundle *b, const fpa_manifest *manifest, fpa_error *error)
{
    char *text = manifest_print(manifest);
    if (!text)
        return fail_memory(error);
    fpa_status status = write_in_folder(b, MANIFEST_NAME, text, strlen(text), 0666, error);
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
            fpa_status status = write_entry(b, work->heads[h], work->targets[t], &entry, &failure);
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
                        int targets_count, bool with_objects, bool with_ptx, const fpa_options *options,
                        fpa_error *error)
{
    const bundle b = {folder, options, targets_count > 1, with_objects, with_ptx};
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
