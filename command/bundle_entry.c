#include "bundle_entry.h"
#include "base/output.h"
#include "runtime/cuda/build.h"
#include "runtime/verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Forward and backward kernels are separate modules, each with a source and files of its own. */
typedef enum direction { FORWARD, BACKWARD, DIRECTIONS } direction;

static const struct direction_files {
    manifest_file code, header, object, ptx;
    const char *infix; /* inserted into their file names */
} directions[DIRECTIONS] = {
    [FORWARD] = {MANIFEST_CODE, MANIFEST_HEADER, MANIFEST_OBJECT, MANIFEST_PTX, ""},
    [BACKWARD] = {MANIFEST_BACKWARD_CODE, MANIFEST_BACKWARD_HEADER, MANIFEST_BACKWARD_OBJECT,
                  MANIFEST_BACKWARD_PTX, ".backward"},
};

/* Endings of a back end's files. */
typedef struct kind_of_files {
    const char *code, *header, *object, *ptx; /* NULL: there is no such file */
    bool always_objects;                      /* objects are written whether they are wanted or not */
    mode_t object_mode;
} kind_of_files;

static const kind_of_files kinds[BACKENDS] = {
    [BACKEND_C] = {.code = "c", .header = "h", .object = "so", .object_mode = 0777},
    [BACKEND_CUDA] =
        {.code = "cu", .object = "cubin", .ptx = "ptx", .always_objects = true, .object_mode = 0666},
};

/* The entry that is written: a head for a target. */
typedef struct writing {
    const bundle *b;
    const fpa_head *head;
    const fpa_target *target;
    fpa_bundle_entry *entry;
} writing;

/* All data of a direction, made before its first file is written, so that nothing is written of what is refused. */
typedef struct made {
    fpa_source source;
    fpa_object object, ptx; /* no bytes: not wanted */
    fpa_module module;      /* backend NULL: it was not compiled, or does not run here */
} made;

/* ---- files ---- */

fpa_status bundle_file_write(const bundle *b, const char *name, const void *bytes, size_t size, mode_t mode,
                             fpa_error *error)
{
    const fpa_bytes part = {bytes, size};
    char *path = file_path(b->folder, name);
    if (!path)
        return fail_memory(error);
    fpa_status status = output_write(path, mode, &part, 1, error);
    free(path);
    return status;
}

void bundle_file_remove(const bundle *b, const char *name)
{
    char *path = file_path(b->folder, name);
    if (path)
        unlink(path);
    free(path);
}

/* Writes a file and records its digest. */
static fpa_status write_file(const writing *w, const void *bytes, size_t size, manifest_file which,
                             mode_t mode, fpa_error *error)
{
    fpa_bundle_file *file = &w->entry->files[which];
    fpa_status status = bundle_file_write(w->b, file->name, bytes, size, mode, error);
    if (!status)
        manifest_digest(bytes, size, file->digest);
    return status;
}

static fpa_status write_text(const writing *w, const char *text, manifest_file which, fpa_error *error)
{
    return write_file(w, text, strlen(text), which, 0666, error);
}

static bool is_wanted(const writing *w, manifest_file which)
{
    return w->entry->files[which].name[0];
}

static const char *isa_of(const fpa_target *target)
{
    const char *colon = strchr(target->name, ':');
    return colon ? colon + 1 : target->name;
}

/* Names a file; ending NULL: there is no such file. */
static void name_file(const writing *w, direction of, manifest_file which, bool with_isa, const char *ending)
{
    fpa_bundle_file *file = &w->entry->files[which];
    if (ending)
        snprintf(file->name, sizeof file->name, "%.63s%s%.12s%s.%s", w->head->name, with_isa ? "." : "",
                 with_isa ? isa_of(w->target) : "", directions[of].infix, ending);
}

static void name_files(const writing *w, direction of)
{
    const bundle *b = w->b;
    fpa_bundle_file *head = &w->entry->files[MANIFEST_HEAD];
    snprintf(head->name, sizeof head->name, "%.63s.head", w->head->name);
    const kind_of_files *kind = &kinds[w->target->backend];
    const struct direction_files *its = &directions[of];
    name_file(w, of, its->code, b->several, kind->code);
    name_file(w, of, its->header, b->several, kind->header);
    if (kind->always_objects || b->parts.objects)
        name_file(w, of, its->object, true, kind->object);
    if (b->parts.ptx)
        name_file(w, of, its->ptx, true, kind->ptx);
}

static fpa_status write_head(const writing *w, fpa_error *error)
{
    char *text = head_print(w->head);
    if (!text)
        return fail_memory(error);
    fpa_status status = write_text(w, text, MANIFEST_HEAD, error);
    free(text);
    return status;
}

/* ---- objects ---- */

/* *runs: whether this machine runs the target. It may write it for another machine nevertheless. */
static fpa_status ask_whether_it_runs(const writing *w, const fpa_backend *backend, bool *runs,
                                      fpa_error *error)
{
    const fpa_target *chosen;
    fpa_error reason = {0};
    fpa_status status = backend->choose(w->b->options, w->target->name, &chosen, &reason);
    *runs = status == FPA_OK;
    if (*runs)
        return FPA_OK;
    if (status != FPA_UNSUPPORTED && status != FPA_DEVICE)
        return fail(error, status, reason.where, "%s", reason.message);
    log_line(w->b->options, "%s: %s does not run here (%s: %s); it is verified where it is opened",
             w->head->name, w->target->name, reason.where, reason.message);
    return FPA_OK;
}

/* Compiles a source. A CUDA file becomes one cubin with all kernels, which other tools can read, too. */
static fpa_status compile(const writing *w, const fpa_source *source, fpa_object *object, fpa_error *error)
{
    const fpa_builder *builder = builder_of(w->target);
    nvrtc_report report;
    if (builder != &builder_cuda)
        return builder->compile(w->b->options, source, object, error);
    fpa_status status = cuda_compile(w->b->options, source, false, object, &report, error);
    nvrtc_report_free(&report);
    return status;
}

/* Verifies an object. forward: NULL for a forward pass; for gradients the module of the forward pass, which
 * computes states. */
static fpa_status verify_object(const writing *w, const fpa_backend *backend, const fpa_module *forward,
                                made *m, fpa_error *error)
{
    const fpa_facts *facts = &m->source.facts;
    char gradients[GRADIENT_TEXT];
    fpa_verdict verdict;
    fpa_status status = backend->load(w->b->options, &m->object, facts->name, &m->module, error);
    if (status)
        return status;
    status = forward ? verify_backward(w->head, facts, &m->module, forward, gradients, error)
                     : verify_module(w->head, facts, &m->module, &verdict, error);
    if (!status)
        log_line(w->b->options, "%s: verified: %s", w->head->name, forward ? gradients : verdict.text);
    return status;
}

/* Makes an object; gradients run where the forward pass does. */
static fpa_status make_object(const writing *w, const fpa_module *forward, made *m, fpa_error *error)
{
    const fpa_backend *backend = backend_find(w->target->name);
    bool runs = forward && forward->backend;
    fpa_status status = compile(w, &m->source, &m->object, error);
    if (!status && !forward)
        status = ask_whether_it_runs(w, backend, &runs, error);
    if (!status && runs)
        status = verify_object(w, backend, forward, m, error);
    return status;
}

static fpa_status make_ptx(const writing *w, made *m, fpa_error *error)
{
    nvrtc_report report;
    fpa_status status = cuda_compile(w->b->options, &m->source, true, &m->ptx, &report, error);
    nvrtc_report_free(&report);
    return status;
}

/* ---- an entry ---- */

static fpa_status generate(const writing *w, direction of, fpa_source *source, fpa_error *error)
{
    return of == FORWARD ? source_generate(w->head, w->target->name, source, error)
                         : source_generate_backward(w->head, w->target->name, source, error);
}

/* forward: as in verify_object. */
static fpa_status make_direction(const writing *w, direction of, const fpa_module *forward, made *m,
                                 fpa_error *error)
{
    const struct direction_files *its = &directions[of];
    fpa_status status = generate(w, of, &m->source, error);
    if (status)
        return status;
    *(of == FORWARD ? &w->entry->facts : &w->entry->backward_facts) = m->source.facts;
    name_files(w, of);
    if (is_wanted(w, its->object))
        status = make_object(w, forward, m, error);
    if (!status && is_wanted(w, its->ptx))
        status = make_ptx(w, m, error);
    return status;
}

static fpa_status write_direction(const writing *w, direction of, const made *m, fpa_error *error)
{
    const struct direction_files *its = &directions[of];
    fpa_status status = write_text(w, m->source.code, its->code, error);
    if (!status && is_wanted(w, its->header))
        status = write_text(w, m->source.header, its->header, error);
    if (!status && is_wanted(w, its->object))
        status = write_file(w, m->object.bytes, m->object.size, its->object,
                            kinds[w->target->backend].object_mode, error);
    if (!status && is_wanted(w, its->ptx))
        status = write_file(w, m->ptx.bytes, m->ptx.size, its->ptx, 0666, error);
    return status;
}

static void free_made(made *m)
{
    if (m->module.backend)
        m->module.backend->unload(&m->module);
    free(m->object.bytes);
    free(m->ptx.bytes);
    source_free(&m->source);
}

fpa_status bundle_entry_write(const bundle *b, const fpa_head *head, const fpa_target *target,
                              fpa_bundle_entry *entry, fpa_error *error)
{
    const writing w = {b, head, target, entry};
    const bool gradients = b->parts.backward;
    made forward = {0}, backward = {0};
    fpa_status status = FPA_OK;
    entry->backward = gradients;
    if (gradients)
        status = source_check_backward(head, target->name, error);
    if (!status)
        status = make_direction(&w, FORWARD, NULL, &forward, error);
    if (!status && gradients)
        status = make_direction(&w, BACKWARD, &forward.module, &backward, error);
    if (!status)
        status = write_direction(&w, FORWARD, &forward, error);
    if (!status && gradients)
        status = write_direction(&w, BACKWARD, &backward, error);
    /* written last, since other targets share it, and a full disk fails with the longer files before */
    if (!status)
        status = write_head(&w, error);
    free_made(&backward);
    free_made(&forward);
    return status;
}
