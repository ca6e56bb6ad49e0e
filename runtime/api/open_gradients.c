/* open_gradients: a kernel with its gradients. What does not need each other is done beside each other: the kernel's own module, that of
 * gradients, and those whose forward passes are gradients are compiled, while the formula's gradients are evaluated; then the gradients are verified. */
#include "opening.h"

#include <pthread.h>

#include "base/parallel.h"
#include "gen/gen.h"
#include "open.h"
#include "runtime/kernel.h"
#include "runtime/log.h"
#include "runtime/verify/verify.h"

/* A program's log, which one thread calls at a time. */
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

/* The options, with `shared` in the place of their log. */
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

/* The passes of a head; a kernel's own module and that of its gradients, if they are opened, too. */
typedef struct opening_parts {
    const char *target;
    const fpa_options *options;
    fpa_options of_passes;
    fpa_passes heads; /* NULL when they are an opening's */
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

/* What takes no other module is verified as soon as it is there, while others are compiled; on the CPU, where compilers and modules would share
 * the threads, behind all of them. */
static void build_at(int index, void *user)
{
    opening_parts *p = user;
    opening *o = part_at(p, index);
    fpa_status status = o ? opening_build(o, &p->error[index]) : FPA_OK;
    if (!status && o && index != OPENS_BACKWARD && o->backend->memory)
        status = opening_examine(o, NULL, &p->error[index]);
    p->status[index] = status;
}

/* Modules of gradients take those of passes and the head's own, which are verified at the same time. */
static void examine_at(int index, void *user)
{
    opening_parts *p = user;
    opening *o = part_at(p, index);
    p->status[index] =
        o ? opening_examine(o, p->forward ? &p->forward->module : NULL, &p->error[index]) : FPA_OK;
}

/* Of several that failed the head's own module tells why, else its gradients', else a pass: not whoever was first. */
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

/* Modules of the CPU have all its threads each, and are asked one after the other. */
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

/* Kernels of passes, which are verified. */
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

/* Modules of passes for the module of gradients, from openings, later from kernels; forward: the head's own. */
static void set_passes(const opening_parts *p, const fpa_module *forward, const fpa_module *modules[PASSES])
{
    for (int i = 0; i < PASSES; i++)
        modules[i] = p->kernels[i]       ? &p->kernels[i]->module
                     : p->passes[i].head ? &p->passes[i].module
                     : p->heads.own[i]   ? forward
                                         : NULL;
}

/* Kernels of passes to the kernel that closes them. */
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

/* The second module of a kernel, which has been verified. On failure there is no kernel. */
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

/* Kernels of modules that are loaded: all are verified before any is one. */
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

/* The pipeline of a head with gradients. */
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
    second.head = NULL; /* the kernel's */
    opening_finish(&second);
    first->options = options;
    return status;
}
