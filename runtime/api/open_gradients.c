/* open_gradients: opens a kernel with its gradients. Independent steps run at the same time: the head's own
 * module, the module of gradients and those of passes are compiled, while the reference computes the formula's
 * gradients; then the gradients are verified. */
#include "opening.h"

#include <pthread.h>

#include "base/parallel.h"
#include "gen/gen.h"
#include "open.h"
#include "runtime/kernel.h"
#include "runtime/log.h"
#include "runtime/verify/verify.h"

/* The caller's log, which one thread at a time may call. */
typedef struct shared_log {
    pthread_mutex_t lock;
    void (*log)(void *user, const char *line);
    void *user;
} shared_log;

static void log_alone(void *user, const char *line)
{
    shared_log *shared = user;
    pthread_mutex_lock(&shared->lock);
    shared->log(shared->user, line);
    pthread_mutex_unlock(&shared->lock);
}

/* The options, with `shared` in place of their log. */
static fpa_options share_log(const fpa_options *options, shared_log *shared)
{
    fpa_options its = options ? *options : (fpa_options){0};
    *shared = (shared_log){PTHREAD_MUTEX_INITIALIZER, its.log, its.log_user};
    if (its.log) {
        its.log = log_alone;
        its.log_user = shared;
    }
    return its;
}

enum { OPENS_BACKWARD = PASSES, OPENS_FORWARD, OPENINGS };

static const fpa_pass kinds[PASSES] = {PASS_ROWS, PASS_VALUES};

/* The openings of a head's passes, and those of its own module and of its gradients if these are opened, too. */
typedef struct opening_parts {
    const char *target;
    const fpa_options *options;
    fpa_options of_passes;
    fpa_passes heads; /* NULL once an opening owns them */
    opening passes[PASSES];
    fpa_kernel *kernels[PASSES];
    opening *forward, *backward;
    fpa_status status[OPENINGS];
    fpa_error error[OPENINGS];
} opening_parts;

static opening *part_at(opening_parts *p, int index)
{
    if (index == OPENS_FORWARD)
        return p->forward;
    if (index == OPENS_BACKWARD)
        return p->backward;
    return p->passes[index].head ? &p->passes[index] : NULL;
}

static fpa_status make_passes(opening_parts *p, const fpa_head *head, fpa_error *error)
{
    fpa_status status = source_passes(head, p->target, &p->heads, error);
    p->of_passes = *p->options;
    p->of_passes.target = p->target;
    p->of_passes.backward = 0;
    for (int i = 0; i < PASSES && !status; i++) {
        p->passes[i] = (opening){.options = &p->of_passes, .pass = &kinds[i], .head = p->heads.head[i]};
        p->heads.head[i] = NULL;
        if (p->passes[i].head)
            status = opening_choose_target(&p->passes[i], error);
        if (!status && p->passes[i].head)
            status = opening_prepare(&p->passes[i], error);
    }
    return status;
}

/* Builds module `index`. If it needs no other module it is verified at once, while others are compiled; on the
 * CPU, where modules would compete with compilers for the cores, after all have been compiled. */
static void build_at(int index, void *user)
{
    opening_parts *p = user;
    opening *o = part_at(p, index);
    fpa_status status = o ? opening_build(o, &p->error[index]) : FPA_OK;
    if (!status && o && index != OPENS_BACKWARD && o->backend->memory)
        status = opening_examine(o, NULL, &p->error[index]);
    p->status[index] = status;
}

/* Verifies module `index`. A module of gradients uses those of passes and the head's own, which are verified at
 * the same time. */
static void examine_at(int index, void *user)
{
    opening_parts *p = user;
    opening *o = part_at(p, index);
    p->status[index] =
        o ? opening_examine(o, p->forward ? &p->forward->module : NULL, &p->error[index]) : FPA_OK;
}

/* The error to report if several modules failed: that of the head's own module, else of the gradients, else of a
 * pass, so that it does not depend on which failed first. */
static fpa_status why_failed(const opening_parts *p, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int i = OPENINGS - 1; i >= 0 && !status; i--) {
        status = p->status[i];
        if (status && error)
            *error = p->error[i];
    }
    return status;
}

/* Verifies all modules. Modules of the CPU use all cores, so they are verified one after the other. */
static fpa_status examine_parts(opening_parts *p, fpa_error *error)
{
    const opening *any =
        p->forward ? p->forward : part_at(p, p->passes[PASS_ROWS].head ? PASS_ROWS : PASS_VALUES);
    if (any && any->backend->memory)
        parallel_run(OPENINGS, examine_at, p);
    else
        for (int i = OPENINGS - 1; i >= 0 && (i == OPENINGS - 1 || !p->status[i + 1]); i--)
            examine_at(i, p);
    return why_failed(p, error);
}

static fpa_status load_parts(opening_parts *p, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int i = OPENINGS - 1; i >= 0 && !status; i--)
        status = part_at(p, i) ? opening_find(part_at(p, i), error) : FPA_OK;
    if (status)
        return status;
    parallel_run(OPENINGS, build_at, p);
    return why_failed(p, error);
}

/* Makes kernels of the verified passes. */
static fpa_status keep_passes(opening_parts *p, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int i = 0; i < PASSES && !status; i++) {
        if (!p->passes[i].head)
            continue;
        status = opening_verify(&p->passes[i], &p->kernels[i], error);
        if (!status)
            opening_store_new(&p->passes[i], p->kernels[i]);
    }
    return status;
}

static void close_parts(opening_parts *p)
{
    for (int i = 0; i < PASSES; i++) {
        head_free(p->heads.head[i]);
        opening_finish(&p->passes[i]);
        fpa_close(p->kernels[i]);
    }
}

/* Sets the modules of passes for the module of gradients: from openings, later from kernels. forward: the head's
 * own module. */
static void set_passes(const opening_parts *p, const fpa_module *forward, const fpa_module *modules[PASSES])
{
    for (int i = 0; i < PASSES; i++)
        modules[i] = p->kernels[i]       ? &p->kernels[i]->module
                     : p->passes[i].head ? &p->passes[i].module
                     : p->heads.own[i]   ? forward
                                         : NULL;
}

/* Passes the kernels of passes to the kernel that will close them. */
static void give_passes(opening_parts *p, fpa_kernel *kernels[PASSES])
{
    for (int i = 0; i < PASSES; i++) {
        kernels[i] = p->kernels[i];
        p->kernels[i] = NULL;
    }
}

fpa_status open_passes(const fpa_head *head, const char *target, const fpa_options *options,
                       const fpa_module *forward, fpa_kernel *kernels[PASSES],
                       const fpa_module *modules[PASSES], fpa_error *error)
{
    shared_log log;
    const fpa_options its = share_log(options, &log);
    opening_parts parts = {.target = target, .options = &its};
    fpa_status status = make_passes(&parts, head, error);
    if (!status)
        status = load_parts(&parts, error);
    if (!status)
        status = examine_parts(&parts, error);
    if (!status)
        status = keep_passes(&parts, error);
    if (!status) {
        set_passes(&parts, forward, modules);
        give_passes(&parts, kernels);
    }
    close_parts(&parts);
    return status;
}

static void store_gradients(const opening *o, const fpa_kernel *kernel)
{
    const char *verdict = fpa_describe(kernel)->backward_verdict;
    if (o->cached)
        return;
    log_line(o->options, "%s: verified: %s", o->facts.name, verdict);
    opening_store(o, verdict);
}

/* Adds the verified module of gradients to a kernel. On failure there is no kernel. */
static fpa_status add_backward(opening *o, opening_parts *parts, fpa_kernel **kernel, fpa_error *error)
{
    fpa_module module = o->module;
    o->module = (fpa_module){0};
    set_passes(parts, &(*kernel)->module, module.passes);
    give_passes(parts, (*kernel)->passes);
    fpa_status status = verify_add_backward(*kernel, &o->facts, &module, o->verdict, error);
    if (!status)
        store_gradients(o, *kernel);
    if (status) {
        fpa_close(*kernel);
        *kernel = NULL;
    }
    return status;
}

/* Makes kernels of the loaded modules; all are verified before the first kernel is made. */
static fpa_status make_kernels(opening *first, opening *second, opening_parts *parts, fpa_kernel **kernel,
                               fpa_error *error)
{
    set_passes(parts, &first->module, second->module.passes);
    fpa_status status = examine_parts(parts, error);
    if (!status)
        status = keep_passes(parts, error);
    if (!status)
        status = opening_verify(first, kernel, error);
    if (status)
        return status;
    opening_store_new(first, *kernel);
    return add_backward(second, parts, kernel, error);
}

/* The steps of opening a head with its gradients. */
fpa_status open_with_gradients(opening *first, fpa_kernel **kernel, fpa_error *error)
{
    shared_log log;
    const fpa_options its = share_log(first->options, &log), *options = first->options;
    opening second = {.options = &its,
                      .backward = true,
                      .target = first->target,
                      .backend = first->backend,
                      .head = first->head};
    opening_parts parts = {
        .target = first->target->name, .options = &its, .forward = first, .backward = &second};
    first->options = &its;
    fpa_status status = opening_prepare(&second, error);
    if (!status)
        status = make_passes(&parts, first->head, error);
    if (!status)
        status = load_parts(&parts, error);
    if (!status)
        status = make_kernels(first, &second, &parts, kernel, error);
    close_parts(&parts);
    second.head = NULL; /* the kernel owns the head now */
    opening_finish(&second);
    first->options = options;
    return status;
}
