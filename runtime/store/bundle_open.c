/* bundle_open: a bundle's folder -> kernel. It uses neither the generator nor a compiler, so that a program that
 * only opens bundles links neither. */
#include "bundle_choice.h"
#include "cache.h"
#include "base/file.h"
#include "base/plain_locale.h"
#include "runtime/kernel.h"
#include "runtime/verify/verify.h"

#include <stdlib.h>
#include <string.h>

/* The forward pass and, if they are wanted, the gradients, each a module of its own. */
enum { FORWARD, BACKWARD, PARTS };

typedef struct stored {
    const fpa_facts *facts;        /* facts, in the manifest */
    const fpa_bundle_file *listed; /* the file of its object */
    const char *what;              /* name of the part, in the key of its verdict */
    fpa_object object;
    char key[KEY_TEXT]; /* key of the verdict */
    char *verdict;      /* an earlier verdict of this machine; NULL: none */
} stored;

typedef struct opening {
    const fpa_options *options;
    const char *folder;
    fpa_manifest manifest;
    const fpa_bundle_entry *entry; /* the chosen entry */
    const fpa_backend *backend;
    fpa_head *head;  /* finally passed to the kernel */
    fpa_cache cache; /* of verdicts: its entries have empty objects */
    stored part[PARTS];
} opening;

static bool wants_gradients(const opening *o)
{
    return o->options && o->options->backward;
}

static void find_parts(opening *o)
{
    const fpa_bundle_entry *entry = o->entry;
    o->part[FORWARD].facts = &entry->facts;
    o->part[FORWARD].listed = &entry->files[MANIFEST_OBJECT];
    o->part[FORWARD].what = "fpac bundle verdict 2 of " FPA_VERSION;
    if (!wants_gradients(o))
        return;
    o->part[BACKWARD].facts = &entry->backward_facts;
    o->part[BACKWARD].listed = &entry->files[MANIFEST_BACKWARD_OBJECT];
    o->part[BACKWARD].what = "fpac bundle gradients 1 of " FPA_VERSION;
}

/* Whether the facts are those of this head: tensors are checked against them. */
static bool fits(const fpa_head *head, const fpa_facts *facts)
{
    int64_t elements;
    if (strcmp(head->name, facts->name) != 0 || facts->features < 1 ||
        __builtin_mul_overflow(facts->features, head->dv + (head->normalize != FPA_NORMALIZE_NONE),
                               &elements))
        return false;
    return elements == facts->state_elements;
}

static fpa_status read_head(opening *o, fpa_error *error)
{
    fpa_file file;
    const fpa_bundle_file *listed = &o->entry->files[MANIFEST_HEAD];
    fpa_status status = bundle_read_file(o->folder, listed, &file, error);
    if (!status)
        status = head_parse((const char *)file.bytes, file.size, &o->head, error);
    free(file.bytes);
    if (!status && !(fits(o->head, &o->entry->facts) &&
                     (!o->entry->backward || fits(o->head, &o->entry->backward_facts))))
        return fail(error, FPA_LOAD, listed->name, "does not belong to the entry %s of the manifest",
                    o->entry->facts.name);
    return status;
}

/* Reads all objects before any of them is loaded. */
static fpa_status read_objects(opening *o, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (stored *part = o->part; part < o->part + PARTS && part->facts && !status; part++) {
        fpa_file file;
        status = bundle_read_file(o->folder, part->listed, &file, error);
        if (!status)
            part->object = (fpa_object){file.bytes, file.size};
    }
    return status;
}

/* Finds an earlier verdict: it holds for these bytes, this head, these facts and this device, by this verifier. */
static fpa_status find_verdict(opening *o, stored *part, const char *device, fpa_error *error)
{
    char *facts = facts_print(part->facts);
    fpa_object nothing = {NULL, 0};
    bool found;
    if (!facts)
        return fail_memory(error);
    const char *const fields[] = {
        part->what, part->listed->digest, o->entry->files[MANIFEST_HEAD].digest, facts,
        device,     verifier_digest};
    cache_key(fields, sizeof fields / sizeof *fields, part->key);
    free(facts);
    fpa_status status = cache_load(&o->cache, o->options, part->key, &found, &nothing, &part->verdict, error);
    free(nothing.bytes);
    return status;
}

static fpa_status find_verdicts(opening *o, fpa_error *error)
{
    char *device = NULL;
    fpa_status status = o->backend->device(o->options, &device, error);
    if (!status)
        status = cache_open(o->options, &o->cache, error);
    for (stored *part = o->part; part < o->part + PARTS && part->facts && !status; part++)
        status = find_verdict(o, part, device, error);
    free(device);
    return status;
}

/* Loads a module; the verification then owns it. */
static fpa_status load(const opening *o, const stored *part, fpa_module *module, fpa_error *error)
{
    return o->backend->load(o->options, &part->object, part->facts->name, module, error);
}

static void store(const opening *o, const stored *part, const char *verdict)
{
    fpa_error reason;
    const fpa_object nothing = {(unsigned char *)"", 0};
    if (part->verdict)
        return;
    log_line(o->options, "%s: verified: %s", part->facts->name, verdict);
    if (cache_store(&o->cache, part->key, &nothing, verdict, &reason))
        log_line(o->options, "cache: %s %s", reason.where, reason.message);
}

/* Verifies the kernel, which takes the head, also on failure. */
static fpa_status verify(opening *o, fpa_kernel **kernel, fpa_error *error)
{
    const stored *part = &o->part[FORWARD];
    fpa_head *head = o->head;
    fpa_module module;
    fpa_status status = load(o, part, &module, error);
    if (status)
        return status;
    o->head = NULL;
    status = verify_kernel(head, part->facts, &module, part->verdict, true, kernel, error);
    if (!status)
        store(o, part, fpa_describe(*kernel)->verdict);
    return status;
}

/* Adds the module of gradients. On failure there is no kernel. */
static fpa_status add_backward(opening *o, fpa_kernel **kernel, fpa_error *error)
{
    const stored *part = &o->part[BACKWARD];
    fpa_module module;
    fpa_status status = load(o, part, &module, error);
    if (!status)
        status = verify_add_backward(*kernel, part->facts, &module, part->verdict, error);
    if (!status) {
        store(o, part, fpa_describe(*kernel)->backward_verdict);
        return FPA_OK;
    }
    fpa_close(*kernel);
    *kernel = NULL;
    return status;
}

static void finish(opening *o)
{
    head_free(o->head);
    for (int i = 0; i < PARTS; i++) {
        free(o->part[i].object.bytes);
        free(o->part[i].verdict);
    }
    cache_close(&o->cache);
    manifest_free(&o->manifest);
}

fpa_status fpa_open_bundle(const char *folder, const char *head, const fpa_options *options,
                           fpa_kernel **kernel, fpa_error *error)
{
    opening o = {.options = options, .folder = folder};
    if (kernel)
        *kernel = NULL;
    if (!kernel || !folder)
        return fail(error, FPA_INVALID, kernel ? "folder" : "kernel", "is NULL");
    const locale_t before = locale_plain();
    const bundle_wish wish = {folder, &o.manifest, options};
    fpa_status status = bundle_read_manifest(folder, &o.manifest, error);
    if (!status)
        status = bundle_choose_entry(&wish, head, &o.entry, &o.backend, error);
    if (!status) {
        find_parts(&o);
        status = read_head(&o, error);
    }
    if (!status)
        status = read_objects(&o, error);
    if (!status)
        status = find_verdicts(&o, error);
    if (!status)
        status = verify(&o, kernel, error);
    if (!status && wants_gradients(&o))
        status = add_backward(&o, kernel, error);
    finish(&o);
    locale_restore(before);
    return status;
}
