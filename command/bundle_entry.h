/* bundle_entry: one head for one target in a bundle's folder: its files, compiled, and verified where they run. */
#ifndef FPAC_COMMAND_BUNDLE_ENTRY_H
#define FPAC_COMMAND_BUNDLE_ENTRY_H

#include <sys/stat.h>

#include "bundle.h"
#include "machine/target.h"
#include "runtime/store/manifest.h"

typedef struct bundle {
    const char *folder;
    const fpa_options *options;
    bool several; /* targets: their names go into the files' names */
    bundle_parts parts;
} bundle;

/* Write a file into the folder, whole or not at all. */
fpa_status bundle_file_write(const bundle *b, const char *name, const void *bytes, size_t size, mode_t mode,
                             fpa_error *error);

/* Where it can be. */
void bundle_file_remove(const bundle *b, const char *name);

/* All is made before the first file is written. Of what was written, also when a write failed, *entry has the digest. */
fpa_status bundle_entry_write(const bundle *b, const fpa_head *head, const fpa_target *target,
                              fpa_bundle_entry *entry, fpa_error *error);

#endif
