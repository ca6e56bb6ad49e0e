/* opening: the steps of an open, from a parsed head to a kernel. Internal to open*.c; implemented in opening.c. */
#ifndef FPAC_RUNTIME_API_OPENING_H
#define FPAC_RUNTIME_API_OPENING_H

#include "abi/source.h"
#include "fpa.h"
#include "runtime/backend.h"
#include "runtime/store/cache.h"
#include "runtime/store/lock.h"
#include "runtime/verify/verify.h"

/* An opening, with the results of its steps so far. */
typedef struct opening {
    const fpa_options *options;
    bool backward;         /* the module of gradients is opened, for a kernel that exists */
    const fpa_pass *pass;  /* the pass of another head's gradients that this is; NULL: none */
    const char *mechanism; /* mechanism by which kernels are planned; NULL: the fastest */
    const fpa_target *target;
    const fpa_backend *backend;
    fpa_cache cache;
    fpa_head *head;  /* finally passed to the kernel */
    fpa_facts facts; /* facts of the object */
    char key[KEY_TEXT];
    fpa_lock lock; /* held while the object is built, verified and stored */
    bool cached;   /* object and verdict are from the cache */
    fpa_object object;
    char *kept;          /* of a cached object: the text of its facts, then the verdict */
    const char *verdict; /* NULL: a new object has none yet */
    fpa_module module;   /* finally passed to the kernel */
    /* for a new object: the problems that it, or its gradients, are compared with, and the verdicts */
    fpa_module_problems *problems;
    fpa_gradient_problems *gradient_problems;
    fpa_verdict found;
    char found_gradients[GRADIENT_TEXT];
} opening;

/* Choose target and back end by the options. */
fpa_status opening_choose_target(opening *o, fpa_error *error);

/* Open the cache; compute the entry's key. */
fpa_status opening_open_cache(opening *o, fpa_error *error);
fpa_status opening_make_key(opening *o, fpa_error *error);

/* opening_open_cache and opening_make_key. */
fpa_status opening_prepare(opening *o, fpa_error *error);

/* Look the object up in the cache. If it is not there, the entry's lock is held from now on, so that only one of
 * several simultaneous opens compiles it. */
fpa_status opening_find(opening *o, fpa_error *error);

/* Compile the object if it was not found, while the reference solves the problems for its verification. */
fpa_status opening_build(opening *o, fpa_error *error);

/* Compare the module with the formula, unless there is a verdict. forward: the head's own module, if this is the
 * module of gradients. The opening keeps the module. */
fpa_status opening_examine(opening *o, const fpa_module *forward, fpa_error *error);

/* Make the kernel, which takes head and module, also on failure; the module is verified unless there is a verdict. */
fpa_status opening_verify(opening *o, fpa_kernel **kernel, fpa_error *error);

/* Store the object in the cache, if it is not from there. */
void opening_store_new(const opening *o, const fpa_kernel *kernel);
void opening_store(const opening *o, const char *verdict);

/* Find, build, verify and store a module without gradients. */
fpa_status opening_alone(opening *o, fpa_kernel **kernel, fpa_error *error);

/* Free what has not been passed to a kernel, and release the lock. */
void opening_finish(opening *o);

/* The steps after opening_prepare() with options->backward. On failure there is no kernel. */
fpa_status open_with_gradients(opening *o, fpa_kernel **kernel, fpa_error *error);

#endif
