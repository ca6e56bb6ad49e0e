/* cache: a content-addressed store of compiled modules (docs/command.md, "Cache").
 *
 * One file an entry, named by its key: a header with the SHA-256 of the rest; the verdict, with what the
 * caller keeps beside it; the object's bytes. Written to a temporary file in the same folder, fsynced,
 * renamed: readers see a whole entry or none, and two writers of one key both win. Losing the cache loses
 * only time.
 * runtime/store keeps what was compiled. Given: objects with their verdicts. Gives: them back, or nothing,
 * never a damaged one; and kernels from folders that were compiled ahead of time (bundle_open.c). */
#ifndef FPAC_RUNTIME_STORE_CACHE_H
#define FPAC_RUNTIME_STORE_CACHE_H

#include "runtime/backend.h"

typedef struct fpa_cache {
    char *folder; /* NULL: not persisted, and reason says why */
    char reason[256];
    int64_t limit; /* bytes of all: $FPA_CACHE_LIMIT, else what cache_set_limit wrote, else CACHE_LIMIT */
} fpa_cache;

enum { KEY_TEXT = 65 };
#define CACHE_LIMIT (INT64_C(2) << 30)

/* Find (and create, 0700) the cache's folder: options->cache_dir, $FPA_CACHE_DIR,
 * $XDG_CACHE_HOME/fpac, ~/.cache/fpac; never /tmp by itself. A folder that is not ours, is a
 * symlink, or is writable for others is refused: cache.folder is NULL then, and work goes on
 * without it. Only memory can fail. */
fpa_status cache_open(const fpa_options *options, fpa_cache *cache, fpa_error *error);
void cache_close(fpa_cache *cache);

/* SHA-256 over the length-prefixed fields, in hexadecimal. */
void cache_key(const char *const *fields, int count, char key[KEY_TEXT]);

/* Look an entry up. *found false: there is none (or it was damaged: unlinked, one log line).
 * object and *verdict (malloc'ed, NULL when none is stored) are set when found. */
fpa_status cache_load(const fpa_cache *cache, const fpa_options *options, const char *key, bool *found,
                      fpa_object *object, char **verdict, fpa_error *error);

/* Stores an entry. On failure (IO if the disk is full ...) nothing half-written remains. Then removes entries that
 * have not been loaded for longest, until the others are within the limit; the new one remains, whatever its size. */
fpa_status cache_store(const fpa_cache *cache, const char *key, const fpa_object *object, const char *verdict,
                       fpa_error *error);

/* Keep the limit in the folder, for every process that opens it from now on, and remove what is beyond it. */
fpa_status cache_set_limit(fpa_cache *cache, int64_t limit, int64_t *removed, fpa_error *error);

/* For `fpac cache`: number of entries and bytes; and removal of all of them, and of nothing that only looks so. */
fpa_status cache_measure(const fpa_cache *cache, int64_t *entries, int64_t *bytes, fpa_error *error);
fpa_status cache_clear(const fpa_cache *cache, int64_t *entries, fpa_error *error);

#endif
