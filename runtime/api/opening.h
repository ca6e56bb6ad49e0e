/* opening: the steps of an open, from a head that is parsed to a kernel. Internal to open*.c; opening.c has them. */
#ifndef FPAC_RUNTIME_API_OPENING_H
#define FPAC_RUNTIME_API_OPENING_H

#include "abi/source.h"
#include "fpa.h"
#include "runtime/backend.h"
#include "runtime/store/cache.h"
#include "runtime/store/lock.h"
#include "runtime/verify/verify.h"

/* What one opening has made so far. */
typedef struct opening {
    const fpa_options *options;
    bool backward;         /* the module of gradients is opened, for a kernel that is there */
    const fpa_pass *pass;  /* of another head's gradients; NULL: it is none */
    const char *mechanism; /* that kernels are planned by; NULL: what is fastest */
    const fpa_target *target;
    const fpa_backend *backend;
    fpa_cache cache;
    fpa_head *head;  /* given to the kernel in the end */
    fpa_facts facts; /* of the object */
    char key[KEY_TEXT];
    fpa_lock lock; /* held while the object is built, verified and stored */
    bool cached;   /* object and verdict are from the cache */
    fpa_object object;
    char *kept;          /* with a cached object: its facts, then the verdict */
    const char *verdict; /* NULL: of a new object there is none yet */
    fpa_module module;   /* given to the kernel in the end */
    /* of a new object: what it, or its gradients, are compared with, and verdicts */
    fpa_module_problems *problems;
    fpa_gradient_problems *gradient_problems;
    fpa_verdict found;
    char found_gradients[GRADIENT_TEXT];
} opening;

/* By the options. */
fpa_status opening_choose_target(opening *o, fpa_error *error);

/* The cache; and the key there. */
fpa_status opening_open_cache(opening *o, fpa_error *error);
fpa_status opening_make_key(opening *o, fpa_error *error);

/* Both. */
fpa_status opening_prepare(opening *o, fpa_error *error);

/* From the cache; where it is not there the lock is held from now on, so that who opens several at once finds them in one order. */
fpa_status opening_find(opening *o, fpa_error *error);

/* What was not found is compiled, while its problems are posed. */
fpa_status opening_build(opening *o, fpa_error *error);

/* Unless there is a verdict: the module beside the formula. forward: of gradients, the head's own. The module stays the opening's. */
fpa_status opening_examine(opening *o, const fpa_module *forward, fpa_error *error);

/* The kernel, to which head and module are given, also on failure: verified, unless there is a verdict. */
fpa_status opening_verify(opening *o, fpa_kernel **kernel, fpa_error *error);

/* Into the cache, what was not from there. */
void opening_store_new(const opening *o, const fpa_kernel *kernel);
void opening_store(const opening *o, const char *verdict);

/* Loaded, verified, stored. */
fpa_status opening_alone(opening *o, fpa_kernel **kernel, fpa_error *error);

/* Frees what was given to nobody. */
void opening_finish(opening *o);

/* From opening_prepare() on, with options->backward. On failure there is no kernel. */
fpa_status open_with_gradients(opening *o, fpa_kernel **kernel, fpa_error *error);

#endif
