#include "cache.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/private.h"
#include "base/round.h"
#include "base/size.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sha256.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* An entry is a header of five lines and an empty line, then the bytes of the verdict and of the object. The
 * header contains the key, so that a file with another entry's name is not used. */
#define ENTRY_HEADER "fpac-cache 1\nkey %s\nverdict %zu\nobject %zu\nsha256 %s\n\n"
#define ENTRY_SUFFIX ".fpa"
#define LIMIT_FILE "limit" /* file with the limit in bytes, as a line; written by cache_set_limit */

enum { HEADER_SIZE = 320, NAME_SIZE = KEY_TEXT + 8 };

static void refuse(fpa_cache *cache, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void refuse(fpa_cache *cache, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cache->reason, sizeof cache->reason, format, arguments);
    va_end(arguments);
    free(cache->folder);
    cache->folder = NULL;
}

/* Chooses the folder by options and environment. cache->folder NULL: there is none, and the reason is set. */
static fpa_status choose_folder(const fpa_options *options, fpa_cache *cache, fpa_error *error)
{
    const char *own = options && options->cache_dir ? options->cache_dir : getenv("FPA_CACHE_DIR");
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (options && options->cache_dir && !*options->cache_dir) {
        refuse(cache, "it is switched off by the options");
        return FPA_OK;
    }
    if (own && *own)
        cache->folder = strdup(own);
    else if (xdg && xdg[0] == '/') /* by the XDG specification a relative path is ignored */
        cache->folder = file_path(xdg, "fpac");
    else if (home && home[0] == '/')
        cache->folder = file_path(home, ".cache/fpac");
    else {
        refuse(cache, "none of FPA_CACHE_DIR, XDG_CACHE_HOME and HOME names a folder");
        return FPA_OK;
    }
    return cache->folder ? FPA_OK : fail_memory(error);
}

/* The limit in the folder's file; 0: none. */
static int64_t kept_limit(const char *folder)
{
    fpa_file file;
    int64_t bytes = 0;
    char *path = file_path(folder, LIMIT_FILE);
    if (path && !file_read(path, &file, NULL)) {
        char *text = (char *)file.bytes;
        text[strcspn(text, "\n")] = 0;
        if (!size_parse(text, &bytes))
            bytes = 0;
        free(file.bytes);
    }
    free(path);
    return bytes;
}

static void choose_limit(const fpa_options *options, fpa_cache *cache)
{
    const char *own = getenv("FPA_CACHE_LIMIT");
    cache->limit = 0;
    if (own && *own && !size_parse(own, &cache->limit))
        log_line(options, "cache: warning: FPA_CACHE_LIMIT is no size: %.60s; write 512MiB, 2GiB or bytes",
                 own);
    if (cache->limit <= 0)
        cache->limit = kept_limit(cache->folder);
    if (cache->limit <= 0)
        cache->limit = CACHE_LIMIT;
}

fpa_status cache_open(const fpa_options *options, fpa_cache *cache, fpa_error *error)
{
    memset(cache, 0, sizeof *cache);
    fpa_status status = choose_folder(options, cache, error);
    if (status || !cache->folder)
        return status;
    char reason[sizeof cache->reason];
    path_trim(cache->folder);
    if (!folder_create(cache->folder, 0700))
        refuse(cache, "%.160s cannot be made: %s", cache->folder, strerror(errno));
    else if (!folder_is_private(cache->folder, reason, sizeof reason))
        refuse(cache, "%s", reason);
    else
        choose_limit(options, cache);
    return FPA_OK;
}

void cache_close(fpa_cache *cache)
{
    free(cache->folder);
    cache->folder = NULL;
}

void cache_key(const char *const *fields, int count, char key[KEY_TEXT])
{
    SHA2_CTX sha;
    SHA256Init(&sha);
    for (int i = 0; i < count; i++) {
        /* the length comes first, so that ("ab", "c") and ("a", "bc") have different keys */
        uint64_t length = strlen(fields[i]);
        uint8_t prefix[8];
        for (int b = 0; b < 8; b++)
            prefix[b] = (uint8_t)(length >> (8 * b));
        SHA256Update(&sha, prefix, sizeof prefix);
        SHA256Update(&sha, (const uint8_t *)fields[i], length);
    }
    SHA256End(&sha, key);
}

enum { MANY_PIECES = 32, LEAST_PIECE = 1 << 17 }; /* least bytes of a piece */

/* The digest of a large object is that of the digests of its pieces, so that threads compute them at the same
 * time: one core digests about 200 MB a second, and objects have megabytes. */
typedef struct pieces {
    const unsigned char *bytes;
    size_t size, piece;
    char digest[MANY_PIECES][KEY_TEXT];
} pieces;

static void digest_piece(int index, void *user)
{
    pieces *p = user;
    const size_t at = (size_t)index * p->piece, left = p->size - at;
    SHA256Data(p->bytes + at, left < p->piece ? left : p->piece, p->digest[index]);
}

static void digest_payload(const char *verdict, size_t verdict_size, const unsigned char *object,
                           size_t object_size, char digest[KEY_TEXT])
{
    pieces p = {.bytes = object, .size = object_size, .piece = object_size / MANY_PIECES + 1};
    SHA2_CTX sha;
    if (p.piece < LEAST_PIECE)
        p.piece = LEAST_PIECE;
    const int count = (int)divide_up(object_size, p.piece);
    parallel_run(count, digest_piece, &p);
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)verdict, verdict_size);
    for (int i = 0; i < count; i++)
        SHA256Update(&sha, (const uint8_t *)p.digest[i], KEY_TEXT);
    SHA256End(&sha, digest);
}

static void entry_name(const char *key, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%.64s" ENTRY_SUFFIX, key);
}

typedef struct entry {
    size_t header, verdict, object; /* bytes of each part, in the order of the file */
} entry;

/* Reads the sizes, then prints the header with these sizes and compares: no other spelling is accepted. */
static bool entry_parse(const fpa_file *file, const char *key, entry *e)
{
    char header[HEADER_SIZE], digest[KEY_TEXT];
    const char *text = (const char *)file->bytes;
    if (sscanf(text, "fpac-cache 1\nkey %*64s\nverdict %12zu\nobject %12zu\n", &e->verdict, &e->object) != 2)
        return false;
    const char *end = strstr(text, "\n\n");
    if (!end || end + 2 - text >= HEADER_SIZE)
        return false;
    e->header = (size_t)(end + 2 - text);
    if (e->header + e->verdict + e->object != file->size)
        return false;
    const char *payload = text + e->header;
    digest_payload(payload, e->verdict, (const unsigned char *)payload + e->verdict, e->object, digest);
    int length = snprintf(header, sizeof header, ENTRY_HEADER, key, e->verdict, e->object, digest);
    return (size_t)length == e->header && memcmp(header, text, e->header) == 0;
}

/* Passes the file's buffer on as the object, shifted to its start, since large objects should not be copied. */
static fpa_status entry_take(fpa_file *file, const entry *e, fpa_object *object, char **verdict,
                             fpa_error *error)
{
    *verdict = NULL;
    if (e->verdict) {
        *verdict = strndup((const char *)file->bytes + e->header, e->verdict);
        if (!*verdict)
            return fail_memory(error);
    }
    memmove(file->bytes, file->bytes + e->header + e->verdict, e->object);
    object->bytes = file->bytes;
    object->size = e->object;
    file->bytes = NULL;
    return FPA_OK;
}

fpa_status cache_load(const fpa_cache *cache, const fpa_options *options, const char *key, bool *found,
                      fpa_object *object, char **verdict, fpa_error *error)
{
    char name[NAME_SIZE];
    fpa_file file;
    fpa_error reason;
    entry e;
    *found = false;
    if (!cache->folder)
        return FPA_OK;
    entry_name(key, name);
    char *path = file_path(cache->folder, name);
    if (!path)
        return fail_memory(error);
    fpa_status status = file_read(path, &file, &reason);
    if (status == FPA_NO_MEMORY) {
        fail_memory(error);
    } else if (status) {
        if (!file.missing)
            log_line(options, "cache: %s %s", path, reason.message);
        status = FPA_OK; /* a missing entry is no error */
    } else if (entry_parse(&file, key, &e)) {
        utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW); /* the time of the last use, for trim */
        status = entry_take(&file, &e, object, verdict, error);
        *found = status == FPA_OK;
    } else {
        log_line(options, "cache: %s is damaged; it is removed and built again", path);
        unlink(path);
    }
    free(file.bytes);
    free(path);
    return status;
}

typedef bool entry_filter(int folder, const char *name, const struct stat *facts);

/* The first bytes of a regular file of this user, as a string; empty: there are none. */
static void read_start(int folder, const char *name, const struct stat *facts, char text[HEADER_SIZE])
{
    ssize_t got = -1;
    int fd = S_ISREG(facts->st_mode) && facts->st_uid == geteuid()
                 ? openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
                 : -1;
    if (fd >= 0) {
        got = read(fd, text, HEADER_SIZE - 1);
        close(fd);
    }
    text[got > 0 ? got : 0] = 0;
}

/* Whether a file is an entry: it begins with its own name and has the size that it states, as only fpac writes
 * them. */
static bool is_entry(int folder, const char *name, const struct stat *facts)
{
    char text[HEADER_SIZE], start[HEADER_SIZE];
    long long verdict, object;
    if (strlen(name) != 64 + strlen(ENTRY_SUFFIX) || strcmp(name + 64, ENTRY_SUFFIX) != 0)
        return false;
    read_start(folder, name, facts, text);
    if (sscanf(text, "fpac-cache 1\nkey %*64s\nverdict %12lld\nobject %12lld\n", &verdict, &object) != 2)
        return false;
    snprintf(start, sizeof start, "fpac-cache 1\nkey %.64s\n", name);
    const char *end = strstr(text, "\n\n");
    return strncmp(text, start, strlen(start)) == 0 && end &&
           end + 2 - text + verdict + object == (long long)facts->st_size;
}

/* Whether a temporary file was left behind by a process that was killed: no writer takes an hour. */
static bool is_abandoned(int folder, const char *name, const struct stat *facts)
{
    (void)folder;
    return S_ISREG(facts->st_mode) && facts->st_uid == geteuid() && file_is_temporary(name) &&
           time(NULL) - facts->st_mtime > 3600;
}

/* Whether a file is a writer's temporary file: as far as it is written, it begins as an entry does. */
static bool is_begun(int folder, const char *name, const struct stat *facts)
{
    static const char first[] = "fpac-cache 1\nkey ";
    char text[HEADER_SIZE];
    if (!file_is_temporary(name) || !S_ISREG(facts->st_mode))
        return false;
    read_start(folder, name, facts, text);
    size_t length = strlen(text);
    return facts->st_uid == geteuid() &&
           strncmp(text, first, length < strlen(first) ? length : strlen(first)) == 0;
}

/* Counts the files that pass the filter and, if unlink_them is set, removes them. */
static fpa_status visit(const fpa_cache *cache, entry_filter *filter, bool unlink_them, int64_t *entries,
                        int64_t *bytes, fpa_error *error)
{
    *entries = *bytes = 0;
    if (!cache->folder)
        return FPA_OK;
    DIR *folder = opendir(cache->folder);
    if (!folder)
        return fail(error, FPA_IO, cache->folder, "cannot be listed: %s", strerror(errno));
    for (struct dirent *item = readdir(folder); item; item = readdir(folder)) {
        struct stat facts;
        if (fstatat(dirfd(folder), item->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
            !filter(dirfd(folder), item->d_name, &facts))
            continue;
        if (unlink_them && unlinkat(dirfd(folder), item->d_name, 0) != 0)
            continue; /* another process has removed it */
        ++*entries;
        *bytes += facts.st_size;
    }
    closedir(folder);
    return FPA_OK;
}

/* ---- the limit ---- */

typedef struct used_entry {
    char name[NAME_SIZE];
    struct timespec used; /* when it was last loaded or stored */
    int64_t bytes;
} used_entry;

typedef struct used_list {
    int count, room;
    used_entry *entries; /* malloc'ed */
    int64_t bytes;
} used_list;

static void list_entry(used_list *list, const char *name, const struct stat *facts)
{
    if (list->count == list->room) {
        const int room = 2 * list->room + 64;
        used_entry *entries = realloc(list->entries, (size_t)room * sizeof *entries);
        if (!entries)
            return; /* no memory: the entry is kept this time */
        list->entries = entries;
        list->room = room;
    }
    used_entry *next = &list->entries[list->count++];
    *next = (used_entry){.used = facts->st_mtim, .bytes = facts->st_size};
    snprintf(next->name, sizeof next->name, "%.*s", NAME_SIZE - 1, name);
    list->bytes += next->bytes;
}

static int compare_use(const void *left, const void *right)
{
    const used_entry *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec)
        return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Removes the entries that have not been used for longest, except `kept` (NULL: none). Several processes may do so
 * at once: an entry that another one has removed counts as removed, and a process that has read an entry has its
 * own copy of the bytes. */
static fpa_status trim(const fpa_cache *cache, const char *kept, int64_t *removed, fpa_error *error)
{
    used_list list = {0};
    *removed = 0;
    DIR *folder = opendir(cache->folder);
    if (!folder)
        return fail(error, FPA_IO, cache->folder, "cannot be listed: %s", strerror(errno));
    for (struct dirent *item = readdir(folder); item; item = readdir(folder)) {
        struct stat facts;
        if (fstatat(dirfd(folder), item->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            is_entry(dirfd(folder), item->d_name, &facts))
            list_entry(&list, item->d_name, &facts);
    }
    if (list.entries && list.bytes > cache->limit)
        qsort(list.entries, (size_t)list.count, sizeof *list.entries, compare_use);
    for (int i = 0; i < list.count && list.bytes > cache->limit; i++) {
        const used_entry *oldest = &list.entries[i];
        if (kept && !strcmp(oldest->name, kept))
            continue;
        const bool gone = unlinkat(dirfd(folder), oldest->name, 0) == 0;
        if (gone || errno == ENOENT)
            list.bytes -= oldest->bytes;
        *removed += gone;
    }
    closedir(folder);
    free(list.entries);
    return FPA_OK;
}

fpa_status cache_set_limit(fpa_cache *cache, int64_t limit, int64_t *removed, fpa_error *error)
{
    char text[32];
    *removed = 0;
    if (!cache->folder)
        return FPA_OK;
    const int length = snprintf(text, sizeof text, "%" PRId64 "\n", limit);
    const fpa_bytes part = {text, (size_t)length};
    fpa_status status = file_write(cache->folder, LIMIT_FILE, 0600, &part, 1, error);
    if (status)
        return status;
    cache->limit = limit;
    return trim(cache, NULL, removed, error);
}

/* ---- storing ---- */

fpa_status cache_store(const fpa_cache *cache, const char *key, const fpa_object *object, const char *verdict,
                       fpa_error *error)
{
    char name[NAME_SIZE], digest[KEY_TEXT], header[HEADER_SIZE];
    int64_t entries, bytes;
    if (!cache->folder)
        return FPA_OK;
    size_t verdict_size = verdict ? strlen(verdict) : 0;
    digest_payload(verdict, verdict_size, object->bytes, object->size, digest);
    int length = snprintf(header, sizeof header, ENTRY_HEADER, key, verdict_size, object->size, digest);
    const fpa_bytes parts[] = {
        {header, (size_t)length},
        {verdict, verdict_size},
        {object->bytes, object->size},
    };
    entry_name(key, name);
    fpa_status status = file_write(cache->folder, name, 0600, parts, 3, error);
    if (status == FPA_OK) { /* failures are ignored: a later call removes what remains */
        visit(cache, is_abandoned, true, &entries, &bytes, NULL);
        trim(cache, name, &entries, NULL);
    }
    return status;
}

fpa_status cache_measure(const fpa_cache *cache, int64_t *entries, int64_t *bytes, fpa_error *error)
{
    return visit(cache, is_entry, false, entries, bytes, error);
}

fpa_status cache_clear(const fpa_cache *cache, int64_t *entries, fpa_error *error)
{
    int64_t bytes;
    fpa_status status = visit(cache, is_begun, true, entries, &bytes, error);
    return status ? status : visit(cache, is_entry, true, entries, &bytes, error);
}
