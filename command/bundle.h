/* bundle: heads compiled ahead of time, as a folder that fpa_open_bundle (fpa.h) reads.
 *
 *     manifest.fpa        the list of its contents (manifest.h)
 *     NAME.head           the head as written, canonical text
 *     NAME.c, NAME.h      the emitted code; for several targets NAME.avx2.c, NAME.avx2.h, ...,
 *                         with the same symbols: a program links one of them
 *     NAME.avx2.so        the shared library, if objects are wanted
 *     NAME.cu             the emitted CUDA code; for several targets NAME.sm_90.cu, ...
 *     NAME.sm_90.cubin    compiled for that GPU
 *     NAME.sm_90.ptx      its instructions, for people, if wanted
 *     NAME.backward.c     with gradients: the same files for their own module: NAME.backward.h,
 *                         NAME.avx2.backward.so, NAME.backward.cu, NAME.sm_90.backward.cubin ... */
#ifndef FPAC_COMMAND_BUNDLE_H
#define FPAC_COMMAND_BUNDLE_H

#include <stdbool.h>

#include "gen/gen.h"
#include "runtime/api/fpa.h"

/* What is written in addition to the emitted code of forward kernels. */
typedef struct bundle_parts {
    bool objects;                          /* compiled objects; for CUDA targets always */
    bool ptx;                              /* CUDA targets: instructions as text */
    bool backward;                         /* gradients */
    const struct fpa_bundle_layer *layers; /* [layer_count] layers of these heads, which the manifest lists */
    int layer_count;
} bundle_parts;

/* Generate every head for every target ("c": the best one here) into a folder, which is created if missing. With
 * objects, and always for CUDA targets, each is compiled, and verified if its target runs here; no file of a
 * refused kernel is written. Every file appears whole or not at all, and the manifest is rewritten after every
 * entry, so that a call that ends by a full disk or a signal leaves a bundle of the finished entries. The manifest
 * lists this call's entries, then those that it listed before or that another call has written meanwhile, except
 * the ones whose files this call has overwritten.
 * A head that a target cannot serve (or whose gradients it cannot, if these are wanted), that does not compile or
 * is refused is not listed, and does not stop the others: the first error is returned in the end, and the log has
 * a warning for each of the others. The same holds for a layer with a head that was not written. A layer that was
 * listed before remains if its heads are unchanged. */
fpa_status bundle_write(fpa_head *const *heads, int count, const char *folder, const char *const *targets,
                        int targets_count, bundle_parts parts, const fpa_options *options, fpa_error *error);

#endif
