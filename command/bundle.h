/* bundle: heads compiled ahead of time, as a folder that fpa_open_bundle (fpa.h) reads.
 *
 *     manifest.fpa        what there is (manifest.h)
 *     NAME.head           the head as written, canonical text
 *     NAME.c, NAME.h      the emitted code; for several targets NAME.avx2.c, NAME.avx2.h, ...,
 *                         with the same symbols: a program links one of them
 *     NAME.avx2.so        the shared library, when objects are asked for
 *     NAME.cu             the emitted CUDA code; for several targets NAME.sm_90.cu, ...
 *     NAME.sm_90.cubin    compiled for that GPU
 *     NAME.sm_90.ptx      its instructions, for people, when they are asked for
 *     NAME.backward.c     with gradients: the same of their kernels, which are a module of their own; NAME.backward.h,
 *                         NAME.avx2.backward.so, NAME.backward.cu, NAME.sm_90.backward.cubin ... */
#ifndef FPAC_COMMAND_BUNDLE_H
#define FPAC_COMMAND_BUNDLE_H

#include <stdbool.h>

#include "gen/gen.h"
#include "runtime/api/fpa.h"

/* What is written beside the emitted code of forward kernels. */
typedef struct bundle_parts {
    bool objects;  /* compiled; of CUDA targets always */
    bool ptx;      /* of CUDA targets: instructions as text */
    bool backward; /* gradients */
    const struct fpa_bundle_layer
        *layers; /* [layer_count] (manifest.h): of these heads, named in the manifest */
    int layer_count;
} bundle_parts;

/* Generate every head for every target ("c": the best here) into folder, which is made when it is missing. With objects,
 * and always for CUDA targets, each is compiled, and verified where its target runs here: of a kernel that is refused no
 * file is written. Every file appears whole or not at all, and a manifest after every entry, so that a call that a full
 * disk or a signal ends leaves a bundle of what it finished. It lists this call's entries, then those that the folder's
 * manifest listed before, or that another call has written meanwhile, but for the ones whose files this call wrote anew.
 * A head that a target cannot serve (where gradients are wanted: has none of), that does not compile or is refused is not
 * listed, and does not stop the others: the first one's error is returned in the end, of the rest the log has a warning
 * each. So does a layer of which a head was not written, which is not listed; a layer that was listed before stays where
 * its heads are the same. */
fpa_status bundle_write(fpa_head *const *heads, int count, const char *folder, const char *const *targets,
                        int targets_count, bundle_parts parts, const fpa_options *options, fpa_error *error);

#endif
