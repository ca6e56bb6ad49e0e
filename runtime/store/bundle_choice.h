/* bundle_choice: which entries of a bundle are opened: for a head, or for the heads of a layer, those for the best
 * target that runs here. */
#ifndef FPAC_RUNTIME_STORE_BUNDLE_CHOICE_H
#define FPAC_RUNTIME_STORE_BUNDLE_CHOICE_H

#include "base/file.h"
#include "manifest.h"
#include "runtime/backend.h"

/* What a caller wants from a bundle. */
typedef struct bundle_wish {
    const char *folder;
    const fpa_manifest *manifest;
    const fpa_options *options; /* target, device, backward; NULL: defaults */
} bundle_wish;

/* Read the manifest of a folder. The caller frees it (manifest_free). */
fpa_status bundle_read_manifest(const char *folder, fpa_manifest *manifest, fpa_error *error);

/* Read a file that the manifest lists, and compare its digest with the listed one. The caller frees file->bytes. */
fpa_status bundle_read_file(const char *folder, const fpa_bundle_file *listed, fpa_file *file,
                            fpa_error *error);

/* Choose the entry of a head; name NULL: the only head. */
fpa_status bundle_choose_entry(const bundle_wish *wish, const char *name, const fpa_bundle_entry **entry,
                               const fpa_backend **backend, fpa_error *error);

/* Choose a layer, and the best target for which each of its heads has an entry; name NULL: the only layer. */
fpa_status bundle_choose_layer(const bundle_wish *wish, const char *name, const fpa_bundle_layer **layer,
                               const fpa_target **target, fpa_error *error);

#endif
