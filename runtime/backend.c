#include "backend.h"

#include <stdio.h>
#include <string.h>

static const fpa_backend *const backends[] = {&backend_c, &backend_cuda};

/* The back end of a target's name; "sm_80" is short for "cuda:sm_80". */
const fpa_backend *backend_find(const char *target)
{
    const fpa_target *known = target_find(target);
    const char *name = known ? known->name : target;
    size_t length = strcspn(name, ":");
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strlen(backends[i]->name) == length && strncmp(backends[i]->name, name, length) == 0)
            return backends[i];
    return NULL;
}

/* Lists targets, of one back end or of all (NULL): "c:sse2, c:avx2, ...". */
static void list_targets(const fpa_backend *backend, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < target_count() && used < size; i++)
        if (!backend || backend_find(target_at(i)->name) == backend)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", target_at(i)->name);
}

/* A back end's own name stands for the target that suits this machine; for a GPU only the driver knows it. */
static fpa_status choose_here(const fpa_backend *backend, const fpa_target **target, fpa_error *error)
{
    char names[256];
    fpa_error reason = {0};
    fpa_status status = backend->choose(NULL, backend->name, target, &reason);
    list_targets(backend, names, sizeof names);
    if (status == FPA_OK)
        return FPA_OK;
    return fail(error, status, backend->name, "stands for this machine's best, and %s: %s; or name one of %s",
                reason.where, reason.message, names);
}

fpa_status backend_target(const char *name, const fpa_backend **backend, const fpa_target **target,
                          fpa_error *error)
{
    char names[256];
    *backend = backend_find(name);
    *target = *backend ? target_find(name) : NULL;
    if (*target)
        return FPA_OK;
    if (*backend && strcmp((*backend)->name, name) == 0)
        return choose_here(*backend, target, error);
    list_targets(NULL, names, sizeof names);
    return fail(error, FPA_UNSUPPORTED, name,
                "is no target; there are c (the best one here), cuda (the GPU's), %s", names);
}

fpa_status backend_choose(const fpa_options *options, const char *name, const fpa_backend **backend,
                          const fpa_target **target, fpa_error *error)
{
    *backend = backend_find(name);
    if (*backend && (target_find(name) || strcmp((*backend)->name, name) == 0))
        return (*backend)->choose(options, name, target, error);
    return backend_target(name, backend, target, error); /* whose error lists the targets */
}
