/* open_gradients: a kernel with its gradients. What does not need each other is compiled beside each other: the kernel's own module,
 * that of gradients, and kernels whose forward passes are gradients, which are verified there, too. */
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

/* The passes of a head; a kernel's own module and that of its gradients, if they are opened, too. */
typedef struct opening_parts {
    const char *target;
    const fpa_options *options;
    fpa_head *heads[PASSES]; /* NULL when they are a kernel's, or when there are none */
    fpa_kernel *passes[PASSES];
    opening *forward, *backward;
    fpa_status status[OPENINGS];
    fpa_error error[OPENINGS];
} opening_parts;

static fpa_status open_pass(opening_parts *p, int pass, fpa_error *error)
{
    fpa_options its = *p->options;
    opening o = {.options = &its,
                 .mechanism = source_pass_mechanism(p->heads[pass], (fpa_pass)pass),
                 .head = p->heads[pass]};
    p->heads[pass] = NULL;
    its.target = p->target;
    its.backward = 0;
    fpa_status status = opening_choose_target(&o, error);
    if (!status)
        status = opening_prepare(&o, error);
    if (!status)
        status = opening_alone(&o, &p->passes[pass], error);
    opening_finish(&o);
    return status;
}

static void open_at(int index, void *user)
{
    opening_parts *p = user;
    fpa_error *error = &p->error[index];
    p->status[index] = index == OPENS_FORWARD    ? opening_load(p->forward, error)
                       : index == OPENS_BACKWARD ? opening_load(p->backward, error)
                       : p->heads[index]         ? open_pass(p, index, error)
                                                 : FPA_OK;
}

/* Of several that failed the head's own module tells why, else its gradients', else a pass: not whoever was first. */
static fpa_status open_parts(opening_parts *p, int count, fpa_error *error)
{
    fpa_status status = FPA_OK;
    parallel_run(count, open_at, p);
    for (int i = count - 1; i >= 0 && !status; i--) {
        status = p->status[i];
        if (status && error)
            *error = p->error[i];
    }
    return status;
}

static void close_parts(opening_parts *p)
{
    for (int i = 0; i < PASSES; i++) {
        head_free(p->heads[i]);
        fpa_close(p->passes[i]);
    }
}

/* Passes to the kernel that closes them, and their modules to the module of gradients. */
static void give_passes(opening_parts *p, bool any, const fpa_module *forward, fpa_kernel *kernels[PASSES],
                        const fpa_module *modules[PASSES])
{
    for (int i = 0; i < PASSES; i++) {
        kernels[i] = p->passes[i];
        modules[i] = kernels[i] ? &kernels[i]->module : any ? forward : NULL;
        p->passes[i] = NULL;
    }
}

fpa_status open_passes(const fpa_head *head, const char *target, const fpa_options *options,
                       const fpa_module *forward, fpa_kernel *kernels[PASSES],
                       const fpa_module *modules[PASSES], fpa_error *error)
{
    shared_log log;
    const fpa_options its = share_log(options, &log);
    opening_parts parts = {.target = target, .options = &its};
    fpa_status status = source_passes(head, target, parts.heads, error);
    const bool any = !status && parts.heads[PASS_ROWS];
    if (!status)
        status = open_parts(&parts, PASSES, error);
    if (status)
        close_parts(&parts);
    give_passes(&parts, any && !status, forward, kernels, modules);
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

/* The second module of a kernel, which has been loaded. On failure there is no kernel. */
static fpa_status add_backward(opening *o, opening_parts *parts, bool any, fpa_kernel **kernel,
                               fpa_error *error)
{
    fpa_module module = o->module;
    o->module = (fpa_module){0};
    give_passes(parts, any, &(*kernel)->module, (*kernel)->passes, module.passes);
    fpa_status status = verify_add_backward(*kernel, &o->facts, &module, o->verdict, error);
    if (!status)
        store_gradients(o, *kernel);
    if (status) {
        fpa_close(*kernel);
        *kernel = NULL;
    }
    return status;
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
        status = source_passes(first->head, first->target->name, parts.heads, error);
    const bool any = !status && parts.heads[PASS_ROWS];
    if (!status)
        status = open_parts(&parts, OPENINGS, error);
    if (!status)
        status = opening_verify(first, kernel, error);
    if (!status)
        opening_store_new(first, *kernel);
    if (!status)
        status = add_backward(&second, &parts, any, kernel, error);
    close_parts(&parts);
    second.head = NULL; /* the kernel's */
    opening_finish(&second);
    first->options = options;
    return status;
}
