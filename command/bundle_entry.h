/* bundle_entry: one head for one target in a bundle's folder: its files, compiled, and verified if they run here. */
#ifndef FPAC_COMMAND_BUNDLE_ENTRY_H
#define FPAC_COMMAND_BUNDLE_ENTRY_H

#include <sys/stat.h>

#include "bundle.h"
#include "machine/target.h"
#include "runtime/store/manifest.h"

typedef struct bundle {
    const char *folder;
    const fpa_options *options;
    bool several; /* there are several targets: file names contain the target's name */
    bundle_parts parts;
} bundle;

/* Write a file into the folder; it appears whole or not at all. */
fpa_status bundle_file_write(const bundle *b, const char *name, const void *bytes, size_t size, mode_t mode,
                             fpa_error *error);

/* Remove a file, if possible. */
void bundle_file_remove(const bundle *b, const char *name);

/* Write an entry; everything is made before the first file is written. *entry has the digests of the files that
 * were written, also if a write failed. */
fpa_status bundle_entry_write(const bundle *b, const fpa_head *head, const fpa_target *target,
                              fpa_bundle_entry *entry, fpa_error *error);

#endif
