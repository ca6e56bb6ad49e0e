/* bundle_fixture: a folder with a bundle of small heads, for tests. */
#ifndef FPAC_TESTS_BUNDLE_FIXTURE_H
#define FPAC_TESTS_BUNDLE_FIXTURE_H

#include <stdlib.h>
#include <unistd.h>

#include "command/bundle.h"
#include "runtime/store/manifest.h"
#include "claims.h"
#include "scratch.h"
#include "toy.h"

typedef struct fixture {
    char folder[64], bundle[96], cache[96];
    fpa_options options;
    scratch_log log;
    fpa_head_list heads; /* toy and second */
} fixture;

static inline int make_fixture(void **state)
{
    static const char text[] = "return {\n" TOY_HEAD("toy") ",\n" TOY_HEAD("second") "}\n";
    fixture *f = calloc(1, sizeof *f);
    fpa_error error;
    scratch_make(f->folder);
    snprintf(f->bundle, sizeof f->bundle, "%s/new/bundle", f->folder);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->folder);
    f->options = (fpa_options){.cache_dir = f->cache, .log = scratch_record, .log_user = &f->log};
    *state = f;
    return spec_load_text("text.lua", NULL, text, sizeof text - 1, &f->heads, &error);
}

static inline int drop_fixture(void **state)
{
    fixture *f = *state;
    head_list_free(&f->heads);
    scratch_remove(f->folder);
    free(f);
    return 0;
}

static inline fpa_status write_bundle(fixture *f, int heads, const char *const *targets, int targets_count,
                                      bool objects, fpa_error *error)
{
    return bundle_write(f->heads.heads, heads, f->bundle, targets, targets_count,
                        (bundle_parts){.objects = objects}, &f->options, error);
}

/* Bundles that claims begin with, each written once in a process. */
typedef struct kept_bundles {
    char folder[64], key[8][128];
    int count;
    pid_t owner;
} kept_bundles;

static inline kept_bundles *bundles_kept(void)
{
    static kept_bundles kept;
    return &kept;
}

static inline void forget_bundles(void)
{
    if (bundles_kept()->owner == getpid()) /* a child ends earlier */
        scratch_remove(bundles_kept()->folder);
}

static inline void copy_files(const char *from, const char *to)
{
    char command[512];
    snprintf(command, sizeof command, "mkdir -p '%s' && cp -p '%s'/* '%s'", to, from, to);
    assert_int_equal(system(command), 0);
}

/* The first heads, as bundle_write writes them. */
static inline void write_once(fixture *f, int heads, const char *const *targets, int targets_count,
                              bundle_parts parts)
{
    kept_bundles *kept = bundles_kept();
    char key[sizeof kept->key[0]], folder[96];
    fpa_error error = {0};
    int at = 0;
    int used = snprintf(key, sizeof key, "%d %d %s", heads, parts.backward,
                        f->options.compiler ? f->options.compiler : "cc");
    for (int i = 0; i < targets_count; i++)
        used += snprintf(key + used, sizeof key - (size_t)used, " %s", targets[i]);
    while (at < kept->count && strcmp(kept->key[at], key) != 0)
        at++;
    assert_true(at < 8);
    if (!kept->owner) {
        scratch_make(kept->folder);
        kept->owner = getpid();
        atexit(forget_bundles);
    }
    snprintf(folder, sizeof folder, "%s/%d", kept->folder, at);
    if (at < kept->count) {
        copy_files(folder, f->bundle);
        return;
    }
    assert_ok(
        bundle_write(f->heads.heads, heads, f->bundle, targets, targets_count, parts, &f->options, &error),
        &error);
    copy_files(f->bundle, folder);
    snprintf(kept->key[kept->count++], sizeof key, "%s", key);
}

/* The first heads, with gradients. */
static inline void write_gradients(fixture *f, int heads, const char *const *targets, int targets_count)
{
    write_once(f, heads, targets, targets_count, (bundle_parts){.objects = true, .backward = true});
}

/* The first heads, for the best target, with objects. */
static inline void write_best(fixture *f, int heads)
{
    static const char *const best[] = {"c"};
    write_once(f, heads, best, 1, (bundle_parts){.objects = true});
}

static inline fpa_kernel *open_bundle(fixture *f, const char *head)
{
    fpa_error error = {0};
    fpa_kernel *kernel = NULL;
    assert_ok(fpa_open_bundle(f->bundle, head, &f->options, &kernel, &error), &error);
    return kernel;
}

static inline void expect_refused(fixture *f, const char *head, fpa_status code, const char *where,
                                  const char *message)
{
    fpa_error error = {0};
    fpa_kernel *kernel = (fpa_kernel *)f; /* a failure has to overwrite it */
    fpa_status status = fpa_open_bundle(f->bundle, head, &f->options, &kernel, &error);
    if (status != code || kernel || !strstr(error.where, where) || !strstr(error.message, message))
        fail_msg("status %d: %s: %s", (int)status, error.where, error.message);
}

static inline bool has_file(const fixture *f, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->bundle, name);
    return access(path, R_OK) == 0;
}

static inline char *read_manifest(const fixture *f, size_t *size)
{
    char path[256];
    fpa_file file;
    fpa_error error;
    snprintf(path, sizeof path, "%s/%s", f->bundle, MANIFEST_NAME);
    assert_int_equal(file_read(path, &file, &error), FPA_OK);
    *size = file.size;
    return (char *)file.bytes;
}

/* The digest of what stands before it, in the last line of a manifest that a test changed. */
static inline void sign_manifest(char *text)
{
    char digest[DIGEST_TEXT];
    char *last = strstr(text, "\nsha256 ");
    assert_non_null(last);
    for (char *next; (next = strstr(last + 1, "\nsha256 "));)
        last = next;
    last += strlen("\n");
    manifest_digest(text, (size_t)(last - text), digest);
    memcpy(last + strlen("sha256 "), digest, DIGEST_TEXT - 1);
}

static inline void write_manifest(const fixture *f, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->bundle, MANIFEST_NAME);
    scratch_write(path, text, strlen(text));
}

#endif
