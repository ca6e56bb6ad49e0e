/* cache: a store of compiled modules, addressed by the content of their key (docs/command.md, "Cache").
 *
 * Each entry is a file named by its key: a header with the SHA-256 of the rest; the verdict, with data that the
 * caller stores beside it; the object's bytes. It is written to a temporary file in the same folder, fsynced and
 * renamed: readers see a whole entry or none, and of two writers of one key both succeed. Losing the cache only
 * costs time.
 * runtime/store keeps compiled code. Given: objects with their verdicts. Gives: the same later, or nothing, but
 * never a damaged object; and kernels from folders that were compiled ahead of time (bundle_open.c). */
#ifndef FPAC_RUNTIME_STORE_CACHE_H
#define FPAC_RUNTIME_STORE_CACHE_H

#include "runtime/backend.h"

typedef struct fpa_cache {
    char *folder; /* NULL: nothing is stored, and reason says why */
    char reason[256];
    /* the most bytes of all entries: $FPA_CACHE_LIMIT, else the number that cache_set_limit wrote, else
     * CACHE_LIMIT */
    int64_t limit;
} fpa_cache;

enum { KEY_TEXT = 65 };
#define CACHE_LIMIT (INT64_C(2) << 30)

/* Find the cache's folder, and create it with mode 0700: options->cache_dir, $FPA_CACHE_DIR, $XDG_CACHE_HOME/fpac,
 * ~/.cache/fpac; never /tmp by itself. A folder that belongs to another user, is a symbolic link or can be written
 * by others is refused: cache->folder is then NULL, and work continues without a cache. NO_MEMORY is the only
 * error. */
fpa_status cache_open(const fpa_options *options, fpa_cache *cache, fpa_error *error);
void cache_close(fpa_cache *cache);

/* The key: SHA-256 over the length-prefixed fields, in hexadecimal. */
void cache_key(const char *const *fields, int count, char key[KEY_TEXT]);

/* Look an entry up. *found false: there is none (a damaged one is removed, with a line in the log). If it is
 * found, object and *verdict (malloc'ed; NULL: none was stored) are set. */
fpa_status cache_load(const fpa_cache *cache, const fpa_options *options, const char *key, bool *found,
                      fpa_object *object, char **verdict, fpa_error *error);

/* Store an entry. On failure (IO: the disk is full ...) nothing incomplete remains. Then the entries that have not
 * been loaded for longest are removed until the others are within the limit; the new one is kept, whatever its
 * size. */
fpa_status cache_store(const fpa_cache *cache, const char *key, const fpa_object *object, const char *verdict,
                       fpa_error *error);

/* Store the limit in the folder, for every process that opens it from now on, and remove entries beyond it;
 * *removed: how many. */
fpa_status cache_set_limit(fpa_cache *cache, int64_t limit, int64_t *removed, fpa_error *error);

/* For `fpac cache`: count entries and their bytes; remove all entries, but no other files. */
fpa_status cache_measure(const fpa_cache *cache, int64_t *entries, int64_t *bytes, fpa_error *error);
fpa_status cache_clear(const fpa_cache *cache, int64_t *entries, fpa_error *error);

#endif
