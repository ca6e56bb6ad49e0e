/* lock: of those who open one head at once, one compiles it. The cache is right without it; it only saves work. */
#ifndef FPAC_RUNTIME_STORE_LOCK_H
#define FPAC_RUNTIME_STORE_LOCK_H

#include "cache.h"

typedef struct fpa_lock {
    char *
        path; /* a temporary file in the cache's folder, so that what sweeps the folder sweeps it too; NULL: none */
    int fd;
    bool waited; /* for another one, who may have stored the entry since it was looked for */
} fpa_lock;

/* Wait until nobody else, process or thread, builds the entry of that key, and hold it until lock_release. Of
 * those who wait for one that dies, one comes to hold it; those who wait for one that released it hold nothing:
 * what it built is in the cache, or cannot be built. Holding nothing is also what comes of a folder without locks
 * and of waiting in vain for ten minutes. what: the head's name, for the log. */
void lock_take(const fpa_cache *cache, const fpa_options *options, const char *key, const char *what,
               fpa_lock *lock);
void lock_release(fpa_lock *lock);

#endif
