/* opening: the steps of opening a head, which every open uses. */
#include "opening.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "gen/gen.h"
#include "runtime/builder.h"
#include "runtime/kernel.h"
#include "runtime/log.h"
#include "runtime/store/manifest.h"
#include "runtime/verify/verify.h"

#include <stdlib.h>
#include <string.h>

fpa_status opening_choose_target(opening *o, fpa_error *error)
{
    const char *name = o->options && o->options->target ? o->options->target : "c";
    return backend_choose(o->options, name, &o->backend, &o->target, error);
}

/* The cache's key covers all that determines the object's bytes and whether its verdict holds: the head as
 * written, the target and the generator, which determine the emitted text, so that it need not be emitted to find
 * the object; the compiler; the device, because a verdict holds for one; and the verifier. */
fpa_status opening_make_key(opening *o, fpa_error *error)
{
    static const char *const passes[PASSES] = {"a pass of rows", "a pass of values"};
    const char *what = o->backward ? "gradients" : o->pass ? passes[*o->pass] : o->mechanism;
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
                                      what};
        cache_key(fields, sizeof fields / sizeof *fields - !what, o->key);
    }
    free(identity);
    free(device);
    return status;
}

static fpa_status generate(opening *o, fpa_source *source, fpa_error *error)
{
    if (o->backward)
        return source_generate_backward(o->head, o->target->name, source, error);
    if (o->pass)
        return source_generate_pass(o->head, o->target->name, *o->pass, source, error);
    return source_generate_as(o->head, o->target->name, o->mechanism, source, error);
}

/* Two jobs that only need the source: compiling, and evaluating the formula, which takes most of a verification's
 * time. */
typedef struct compiling {
    opening *o;
    fpa_source source;
    fpa_status status[2];
    fpa_error error[2];
    double seconds[2];
} compiling;

static void compile_or_pose(int index, void *user)
{
    compiling *c = user;
    opening *o = c->o;
    fpa_error *error = &c->error[index];
    const double begin = clock_seconds();
    if (!index)
        c->status[index] = builder_of(o->target)->compile(o->options, &c->source, &o->object, error);
    else if (o->backward)
        c->status[index] = gradient_problems_pose(o->head, &o->facts, 0, &o->gradient_problems, error);
    else
        c->status[index] = module_problems_pose(o->head, &o->facts, &o->problems, error);
    c->seconds[index] = clock_seconds() - begin;
}

/* Loads the module. The log has the seconds of each step, since the step that takes longest differs from head to
 * head. */
static fpa_status load(opening *o, fpa_error *error)
{
    const double begin = clock_seconds();
    const fpa_status status = o->backend->load(o->options, &o->object, o->facts.name, &o->module, error);
    log_line(o->options, "%s: loaded in %.3f s", o->head->name, clock_seconds() - begin);
    return status;
}

static fpa_status compile(opening *o, fpa_error *error)
{
    const double begin = clock_seconds();
    compiling c = {.o = o};
    log_line(o->options, "%s: compiling%s for %s", o->head->name, o->backward ? " gradients" : "",
             o->target->name);
    fpa_status status = generate(o, &c.source, error);
    const double generated = clock_seconds() - begin;
    o->facts = c.source.facts;
    if (!status)
        parallel_run(2, compile_or_pose, &c);
    source_free(&c.source);
    for (int i = 0; i < 2 && !status; i++) {
        status = c.status[i];
        if (status && error)
            *error = c.error[i];
    }
    if (status)
        return status;
    log_line(o->options,
             "%s: compiled for %s in %.2f s (%zu bytes): text %.2f, compilers %.2f, reference at the same "
             "time %.2f",
             o->head->name, o->target->name, clock_seconds() - begin, o->object.size, generated, c.seconds[0],
             c.seconds[1]);
    return load(o, error);
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

/* Takes the module from the cache, if it is there. A cached object that does not load (for example because the
 * folder is shared with a machine that has other libraries) is no error: *broken is set, and it is built again. */
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

/* Looks the module up. If several threads or processes open a head at once, one compiles it; the others wait and
 * look it up again. */
fpa_status opening_find(opening *o, fpa_error *error)
{
    bool broken;
    fpa_status status = take_cached(o, &broken, error);
    if (status || o->cached)
        return status;
    lock_take(&o->cache, o->options, o->key, o->head->name, &o->lock);
    if (!broken || o->lock.waited)
        status = take_cached(o, &broken, error);
    return status;
}

fpa_status opening_build(opening *o, fpa_error *error)
{
    return o->cached ? FPA_OK : compile(o, error);
}

static void forget_problems(opening *o)
{
    module_problems_free(o->problems); /* freed before the modules are moved */
    gradient_problems_free(o->gradient_problems);
    o->problems = NULL;
    o->gradient_problems = NULL;
}

fpa_status opening_examine(opening *o, const fpa_module *forward, fpa_error *error)
{
    const double begin = clock_seconds();
    fpa_status status;
    if (o->verdict)
        return FPA_OK;
    status = o->backward
                 ? verify_gradients_of(o->gradient_problems, &o->module, forward, o->found_gradients, error)
                 : verify_module_of(o->problems, &o->module, &o->found, error);
    forget_problems(o);
    log_line(o->options, "%s: %s examined in %.2f s", o->facts.name, o->backward ? "gradients" : "outputs",
             clock_seconds() - begin);
    if (!status)
        o->verdict = o->backward ? o->found_gradients : o->found.text;
    return status;
}

/* The kernel takes head and module, also if the verification fails. */
fpa_status opening_verify(opening *o, fpa_kernel **kernel, fpa_error *error)
{
    fpa_head *head = o->head;
    fpa_module module = o->module;
    o->head = NULL;
    o->module = (fpa_module){0};
    fpa_status status = verify_kernel(head, &o->facts, &module, o->verdict, o->cached, kernel, error);
    if (!status && o->verdict == o->found.text)
        (*kernel)->verdict = o->found; /* with its figures, which the cache does not keep */
    return status;
}

/* Stores an object that passed. That the cache cannot be written costs time only, and is no error. */
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
        log_line(o->options, "cache: warning: %s %s", reason.where, reason.message);
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

fpa_status opening_open_cache(opening *o, fpa_error *error)
{
    fpa_status status = cache_open(o->options, &o->cache, error);
    bool wanted = !(o->options && o->options->cache_dir && !*o->options->cache_dir);
    if (!status && !o->cache.folder && wanted)
        log_line(o->options, "cache: warning: not used, so that every open compiles: %s", o->cache.reason);
    return status;
}

void opening_finish(opening *o)
{
    forget_problems(o);
    if (o->module.backend)
        o->backend->unload(&o->module);
    head_free(o->head);
    forget_object(o);
    lock_release(&o->lock);
    cache_close(&o->cache);
}

fpa_status opening_prepare(opening *o, fpa_error *error)
{
    fpa_status status = opening_open_cache(o, error);
    return status ? status : opening_make_key(o, error);
}

fpa_status opening_alone(opening *o, fpa_kernel **kernel, fpa_error *error)
{
    fpa_status status = opening_find(o, error);
    if (!status)
        status = opening_build(o, error);
    if (!status)
        status = opening_examine(o, NULL, error);
    if (!status)
        status = opening_verify(o, kernel, error);
    if (!status)
        opening_store_new(o, *kernel);
    return status;
}
