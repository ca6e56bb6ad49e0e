/* backend: source -> object -> module, and launches of a module. One table row a back end.
 *
 * A module is loaded code that nobody has checked yet; only verify.c calls it before it
 * becomes a kernel. */
#ifndef FPAC_RUNTIME_BACKEND_H
#define FPAC_RUNTIME_BACKEND_H

#include "../gen/gen.h"
#include "fpa.h"

/* Bytes of a compiled module, as the cache and bundles keep them. malloc'ed. */
typedef struct fpa_object {
    unsigned char *bytes;
    size_t size;
} fpa_object;

typedef struct fpa_module {
    const struct fpa_backend *backend;
    void *handle; /* the back end's own */
    size_t (*workspace)(int form, const struct fpa_launch *launch);
    int (*forward)(int form, const struct fpa_launch *launch); /* 0; 1: workspace too small */
} fpa_module;

typedef struct fpa_backend {
    const char *name; /* "c"; targets are "c" or "c:<isa>" */
    /* What, besides source and target, decides the bytes: compiler path, version, options.
     * malloc'ed text, one field a line; part of the cache's key. */
    fpa_status (*identity)(const fpa_options *options, const char *target, char **identity, fpa_error *error);
    fpa_status (*compile)(const fpa_options *options, const fpa_source *source, fpa_object *object,
                          fpa_error *error);
    fpa_status (*load)(const fpa_object *object, const char *name, fpa_module *module, fpa_error *error);
    void (*unload)(fpa_module *module);
    /* The device that a verdict holds for: CPU model and features. malloc'ed text. */
    fpa_status (*device)(char **device, fpa_error *error);
} fpa_backend;

/* The back end of a target ("c", "c:avx2"), or NULL. */
const fpa_backend *backend_find(const char *target);
extern const fpa_backend backend_c;

/* The back end and the target that a name ("c", "c:avx2") stands for; UNSUPPORTED lists the names
 * there are. */
fpa_status backend_target(const char *name, const fpa_backend **backend, const fpa_target **target,
                          fpa_error *error);

/* Call the options' log, if there is one. */
void log_line(const fpa_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
