/* bundle_choice: which entries of a bundle are opened: of a head, of a layer's heads, for the best target that runs here. */
#ifndef FPAC_RUNTIME_STORE_BUNDLE_CHOICE_H
#define FPAC_RUNTIME_STORE_BUNDLE_CHOICE_H

#include "base/file.h"
#include "manifest.h"
#include "runtime/backend.h"

/* What is asked of which bundle. */
typedef struct bundle_wish {
    const char *folder;
    const fpa_manifest *manifest;
    const fpa_options *options; /* target, device, backward; NULL: defaults */
} bundle_wish;

/* The manifest of a folder; manifest_free. */
fpa_status bundle_read_manifest(const char *folder, fpa_manifest *manifest, fpa_error *error);

/* A file that the manifest lists, whose digest is the one there; file->bytes: the caller's. */
fpa_status bundle_read_file(const char *folder, const fpa_bundle_file *listed, fpa_file *file,
                            fpa_error *error);

/* A head's entry; name NULL: the only head. */
fpa_status bundle_choose_entry(const bundle_wish *wish, const char *name, const fpa_bundle_entry **entry,
                               const fpa_backend **backend, fpa_error *error);

/* A layer, and the best target for which each of its heads has an entry; name NULL: the only layer. */
fpa_status bundle_choose_layer(const bundle_wish *wish, const char *name, const fpa_bundle_layer **layer,
                               const fpa_target **target, fpa_error *error);

#endif
