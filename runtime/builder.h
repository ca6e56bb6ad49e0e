/* builder: source -> object. One table row for each back end.
 *
 * Compiling is separate from loading (backend.h), so that a program that only opens bundles links no builder, no
 * compiler and no generator. c/build.c and cuda/build.c each have a row of the table. */
#ifndef FPAC_RUNTIME_BUILDER_H
#define FPAC_RUNTIME_BUILDER_H

#include "abi/source.h"
#include "backend.h"

typedef struct fpa_builder {
    /* All that determines the compiled bytes besides source and target: compiler path, version, options. malloc'ed
     * text, one field a line; part of the cache's key. */
    fpa_status (*identity)(const fpa_options *options, const char *target, char **identity, fpa_error *error);
    fpa_status (*compile)(const fpa_options *options, const fpa_source *source, fpa_object *object,
                          fpa_error *error);
} fpa_builder;

extern const fpa_builder builder_c, builder_cuda;

/* The builder of a target; each target has one. */
const fpa_builder *builder_of(const fpa_target *target);

#endif
