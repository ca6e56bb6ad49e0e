/* lock: if several threads or processes open the same head at the same time, one of them compiles it and the
 * others wait for its cache entry. The lock only saves work; without it the cache is correct, too. */
#ifndef FPAC_RUNTIME_STORE_LOCK_H
#define FPAC_RUNTIME_STORE_LOCK_H

#include "cache.h"

typedef struct fpa_lock {
    /* a temporary file in the cache's folder, so that cleaning the folder removes it, too; NULL: none */
    char *path;
    int fd;
    bool waited; /* another holder had the lock first, and may have stored the entry since it was looked up */
} fpa_lock;

/* Wait until no other process or thread compiles the entry of that key. Then the caller either holds the lock,
 * until lock_release, or continues without it (path NULL): because the holder released it (the entry is in the cache,
 * or cannot be compiled), because the folder supports no locks, or because ten minutes have passed. If a holder
 * dies, one of the waiting callers gets the lock. what: the head's name, for the log. */
void lock_take(const fpa_cache *cache, const fpa_options *options, const char *key, const char *what,
               fpa_lock *lock);
void lock_release(fpa_lock *lock);

#endif
