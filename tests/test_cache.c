#include "runtime/store/cache.h"
#include "claims.h"
#include "scratch.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_KEY "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

typedef struct fixture {
    char folder[64];
    fpa_options options;
    scratch_log log;
    fpa_cache cache;
} fixture;

static int make_fixture(void **state)
{
    static const char *const names[] = {"FPA_CACHE_DIR", "XDG_CACHE_HOME", "FPA_CACHE_LIMIT"};
    fixture *f = calloc(1, sizeof *f);
    fpa_error error;
    scratch_make(f->folder);
    for (int i = 0; i < 3; i++)
        unsetenv(names[i]);
    setenv("HOME", f->folder, 1);
    f->options = (fpa_options){.cache_dir = f->folder, .log = scratch_record, .log_user = &f->log};
    *state = f;
    return cache_open(&f->options, &f->cache, &error);
}

static int drop_fixture(void **state)
{
    fixture *f = *state;
    cache_close(&f->cache);
    scratch_remove(f->folder);
    free(f);
    return 0;
}

static fpa_status store(const fixture *f, const char *key, const char *bytes, const char *verdict)
{
    fpa_error error;
    const fpa_object object = {(unsigned char *)bytes, strlen(bytes)};
    return cache_store(&f->cache, key, &object, verdict, &error);
}

/* Load and compare; true when the entry is there with these contents. */
static bool holds(fixture *f, const char *key, const char *bytes, const char *verdict)
{
    fpa_error error;
    bool found;
    fpa_object object = {NULL, 0};
    char *got = NULL;
    assert_int_equal(cache_load(&f->cache, &f->options, key, &found, &object, &got, &error), FPA_OK);
    bool same = found && object.size == strlen(bytes) && memcmp(object.bytes, bytes, object.size) == 0 &&
                (verdict ? got && strcmp(got, verdict) == 0 : got == NULL);
    free(object.bytes);
    free(got);
    return same;
}

static bool is_found(fixture *f, const char *key)
{
    fpa_error error;
    bool found;
    fpa_object object = {NULL, 0};
    char *verdict = NULL;
    assert_int_equal(cache_load(&f->cache, &f->options, key, &found, &object, &verdict, &error), FPA_OK);
    free(object.bytes);
    free(verdict);
    return found;
}

static void what_is_stored_is_loaded_with_its_verdict(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *bytes, *verdict;
    } cases[] = {
        {"object", "passed"}, {"object", NULL}, {"", "only a verdict"}, {"", NULL}, {"a\n\nb\n\n", "x\n\ny"}};
    assert_false(is_found(f, KEY));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(store(f, KEY, cases[i].bytes, cases[i].verdict), FPA_OK);
        assert_true(holds(f, KEY, cases[i].bytes, cases[i].verdict));
    }
    assert_false(is_found(f, OTHER_KEY));
    assert_int_equal(scratch_count(f->folder, NULL), 1);
    assert_int_equal(f->log.lines, 0);
}

static void entry_path(const fixture *f, const char *key, char path[256])
{
    snprintf(path, 256, "%s/%.64s.fpa", f->folder, key);
}

/* Write a damaged entry: refused, removed, and said once. */
static void expect_refused(fixture *f, const char *path, const void *bytes, size_t size)
{
    f->log = (scratch_log){0};
    scratch_write(path, bytes, size);
    assert_false(is_found(f, KEY));
    assert_int_equal(f->log.lines, 1);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void every_damaged_byte_and_every_missing_end_is_noticed(void **state)
{
    fixture *f = *state;
    fpa_error error;
    fpa_file file;
    char path[256];
    entry_path(f, KEY, path);
    assert_int_equal(store(f, KEY, "the object's bytes", "passed"), FPA_OK);
    assert_int_equal(file_read(path, &file, &error), FPA_OK);
    for (size_t i = 0; i < file.size; i++) {
        file.bytes[i] ^= 0x10;
        expect_refused(f, path, file.bytes, file.size);
        file.bytes[i] ^= 0x10;
        expect_refused(f, path, file.bytes, i);
    }
    scratch_write(path, file.bytes, file.size);
    assert_true(holds(f, KEY, "the object's bytes", "passed"));
    free(file.bytes);
}

/* Keys that differ in their first digit. */
static void key_of(char digit, char key[KEY_TEXT])
{
    memcpy(key, KEY, KEY_TEXT);
    key[0] = digit;
}

/* As if the entry had been stored or loaded so many seconds ago. */
static void age(const fixture *f, const char *key, int seconds)
{
    char path[256];
    const time_t then = time(NULL) - seconds;
    entry_path(f, key, path);
    assert_int_equal(utime(path, &(struct utimbuf){then, then}), 0);
}

static void beyond_the_limit_the_least_recently_used_go(void **state)
{
    fixture *f = *state;
    char key[4][KEY_TEXT], bytes[1001];
    int64_t entries, size, removed;
    fpa_error error;
    memset(bytes, 'x', 1000);
    bytes[1000] = 0;
    for (int i = 0; i < 4; i++)
        key_of((char)('0' + i), key[i]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(store(f, key[i], bytes, "passed"), FPA_OK);
        age(f, key[i], 300 - 100 * i);
    }
    assert_true(is_found(f, key[0])); /* used now: the second is the oldest */
    assert_int_equal(cache_measure(&f->cache, &entries, &size, &error), FPA_OK);
    assert_int_equal(entries, 3);
    f->cache.limit = size + 100;
    assert_int_equal(store(f, key[3], bytes, "passed"), FPA_OK);
    assert_false(is_found(f, key[1]));
    assert_true(is_found(f, key[0]) && is_found(f, key[2]) && is_found(f, key[3]));

    f->cache.limit = 1; /* the new one stays, whatever its size */
    assert_int_equal(store(f, key[1], bytes, "passed"), FPA_OK);
    assert_int_equal(cache_measure(&f->cache, &entries, &size, &error), FPA_OK);
    assert_int_equal(entries, 1);
    assert_true(is_found(f, key[1]));
    assert_int_equal(cache_set_limit(&f->cache, 1, &removed, &error), FPA_OK);
    assert_int_equal(removed, 1);
    assert_false(is_found(f, key[1]));
}

static int64_t limit_of(fixture *f)
{
    fpa_error error;
    cache_close(&f->cache);
    assert_int_equal(cache_open(&f->options, &f->cache, &error), FPA_OK);
    return f->cache.limit;
}

static void the_limit_is_the_variables_or_the_folders_or_2_gib(void **state)
{
    fixture *f = *state;
    fpa_error error;
    int64_t removed;
    assert_true(limit_of(f) == CACHE_LIMIT);
    assert_int_equal(cache_set_limit(&f->cache, 5000, &removed, &error), FPA_OK);
    assert_true(limit_of(f) == 5000);
    setenv("FPA_CACHE_LIMIT", "1.5MiB", 1);
    assert_true(limit_of(f) == 3 << 19);
    setenv("FPA_CACHE_LIMIT", "much", 1);
    assert_true(limit_of(f) == 5000);
    assert_non_null(strstr(f->log.text, "FPA_CACHE_LIMIT is no size: much"));
    unsetenv("FPA_CACHE_LIMIT");
}

/* Ten processes store at once into a cache that has room for a few: each ends well, and what is left is whole. */
static void many_may_store_beyond_the_limit_at_once(void **state)
{
    enum { PROCESSES = 10, STORES = 20 };
    fixture *f = *state;
    pid_t child[PROCESSES];
    int64_t entries, size;
    fpa_error error;
    f->cache.limit = 2000;
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            bool well = true;
            for (int n = 0; n < STORES; n++) {
                char key[KEY_TEXT];
                key_of("0123456789abcdef"[(i + n) % 16], key);
                well = well && store(f, key, "the bytes of an object", "passed") == FPA_OK;
            }
            _exit(well ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 1;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    f->log = (scratch_log){0};
    for (int i = 0; i < 16; i++) {
        char key[KEY_TEXT];
        key_of("0123456789abcdef"[i], key);
        if (is_found(f, key))
            assert_true(holds(f, key, "the bytes of an object", "passed"));
    }
    assert_int_equal(f->log.lines, 0);
    assert_int_equal(store(f, KEY, "the bytes of an object", "passed"), FPA_OK);
    assert_int_equal(cache_measure(&f->cache, &entries, &size, &error), FPA_OK);
    assert_true(entries >= 1 && size <= 2000);
}

static void an_entry_under_another_name_serves_nobody(void **state)
{
    fixture *f = *state;
    char path[256], other[256];
    entry_path(f, KEY, path);
    entry_path(f, OTHER_KEY, other);
    assert_int_equal(store(f, OTHER_KEY, "object", "passed"), FPA_OK);
    assert_int_equal(rename(other, path), 0);
    assert_false(is_found(f, KEY));
}

static void the_key_depends_on_every_field_and_on_where_fields_end(void **state)
{
    static const char *const fields[][3] = {
        {"ab", "c", ""}, {"a", "bc", ""}, {"abc", "", ""}, {"", "abc", ""}, {"ab", "", "c"}, {"ab", "d", ""},
    };
    enum { COUNT = sizeof fields / sizeof *fields };
    char keys[COUNT][KEY_TEXT];
    for (int i = 0; i < COUNT; i++) {
        cache_key(fields[i], 3, keys[i]);
        assert_int_equal(strspn(keys[i], "0123456789abcdef"), 64);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(keys[i], keys[j]);
    }
}

static void the_folder_follows_options_then_the_environment(void **state)
{
    fixture *f = *state;
    fpa_error error;
    fpa_cache cache;
    char option[128], own[128], xdg[128], wanted[128];
    snprintf(option, sizeof option, "%s/option/deep/", f->folder);
    snprintf(own, sizeof own, "%s/own", f->folder);
    snprintf(xdg, sizeof xdg, "%s/xdg", f->folder);
    for (int step = 0; step < 4; step++) {
        const fpa_options options = {.cache_dir = step == 0 ? option : NULL};
        setenv("FPA_CACHE_DIR", step <= 1 ? own : "", 1);
        setenv("XDG_CACHE_HOME", step <= 2 ? xdg : "relative/is/ignored", 1);
        static const char *const names[] = {"option/deep", "own", "xdg/fpac", ".cache/fpac"};
        snprintf(wanted, sizeof wanted, "%s/%s", f->folder, names[step]);
        assert_int_equal(cache_open(&options, &cache, &error), FPA_OK);
        assert_string_equal(cache.folder, wanted);
        struct stat facts;
        assert_int_equal(stat(wanted, &facts), 0);
        assert_int_equal(facts.st_mode & 0777, 0700);
        cache_close(&cache);
    }
}

static void without_any_folder_nothing_is_persisted(void **state)
{
    fixture *f = *state;
    fpa_error error;
    const fpa_options unwanted = {.cache_dir = ""};
    const fpa_options *const options[] = {&unwanted, NULL};
    unsetenv("HOME");
    for (int i = 0; i < 2; i++) {
        fixture none = {.options = f->options};
        int64_t entries, bytes;
        assert_int_equal(cache_open(options[i], &none.cache, &error), FPA_OK);
        assert_null(none.cache.folder);
        assert_true(strlen(none.cache.reason) > 0);
        assert_int_equal(store(&none, KEY, "object", "passed"), FPA_OK);
        assert_false(is_found(&none, KEY));
        assert_int_equal(cache_measure(&none.cache, &entries, &bytes, &error), FPA_OK);
        assert_int_equal(entries, 0);
        cache_close(&none.cache);
    }
}

static void expect_folder_refused(const char *folder, const char *reason)
{
    fpa_error error;
    fpa_cache cache;
    const fpa_options options = {.cache_dir = folder};
    assert_int_equal(cache_open(&options, &cache, &error), FPA_OK);
    assert_null(cache.folder);
    assert_non_null(strstr(cache.reason, reason));
    cache_close(&cache);
}

static void a_folder_that_others_could_write_is_refused(void **state)
{
    fixture *f = *state;
    char path[128], link[128], slash[140], inner[148];
    snprintf(path, sizeof path, "%s/folder", f->folder);
    snprintf(link, sizeof link, "%s/link", f->folder);
    snprintf(slash, sizeof slash, "%s/", link);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(symlink(path, link), 0);
    expect_folder_refused(link, "symlink");
    expect_folder_refused(slash, "symlink");
    static const char *const ends[] = {"/.", "/./", "//.//./"};
    for (int i = 0; i < 3; i++) {
        snprintf(slash, sizeof slash, "%s%s", link, ends[i]);
        expect_folder_refused(slash, "symlink");
    }
    snprintf(inner, sizeof inner, "%s/inner", path);
    assert_int_equal(mkdir(inner, 0700), 0);
    snprintf(inner, sizeof inner, "%s/inner/..", link);
    expect_folder_refused(inner, "ends with ..: give the folder's own path");
    assert_int_equal(chmod(path, 0770), 0);
    expect_folder_refused(path, "written by others");
    assert_int_equal(chmod(path, 0702), 0);
    expect_folder_refused(path, "written by others");
    if (geteuid() == 0) {
        assert_int_equal(chmod(path, 0700), 0);
        assert_int_equal(chown(path, 54321, 54321), 0);
        expect_folder_refused(path, "another user");
    }
}

static void a_file_in_the_folders_place_is_refused(void **state)
{
    fixture *f = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/file", f->folder);
    scratch_write(path, "x", 1);
    expect_folder_refused(path, "not a folder");
}

static void a_store_that_fails_leaves_nothing_behind(void **state)
{
    fixture *f = *state;
    struct rlimit before, small;
    char bytes[4096];
    memset(bytes, 'x', sizeof bytes - 1);
    bytes[sizeof bytes - 1] = 0;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    fpa_status status = store(f, KEY, bytes, "passed");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, FPA_IO);
    assert_int_equal(scratch_count(f->folder, NULL), 0);
    assert_int_equal(store(f, KEY, bytes, "passed"), FPA_OK);
}

static void what_a_killed_writer_left_is_swept_later(void **state)
{
    fixture *f = *state;
    char old[128], young[128];
    const struct utimbuf hours_ago = {time(NULL) - 7200, time(NULL) - 7200};
    snprintf(old, sizeof old, "%s/" FILE_TEMPORARY "0123456789abcdef", f->folder);
    snprintf(young, sizeof young, "%s/" FILE_TEMPORARY "fedcba9876543210", f->folder);
    scratch_write(old, "half", 4);
    scratch_write(young, "half", 4);
    assert_int_equal(utime(old, &hours_ago), 0);
    assert_int_equal(store(f, KEY, "object", NULL), FPA_OK);
    assert_int_not_equal(access(old, F_OK), 0);
    assert_int_equal(access(young, F_OK), 0);
}

static void clear_removes_entries_and_nothing_else(void **state)
{
    fixture *f = *state;
    fpa_error error;
    /* names like ours with another's content, and the other way round */
    static const char *const names[] = {
        "notes.fpa", "a123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.fpa",
        "b123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.fpa", ".fpac-notes",
        ".fpac-00000000000000aa"};
    static const char entry[] = "fpac-cache 1\nkey " OTHER_KEY "\nverdict 0\nobject 0\nsha256 x\n\n";
    const char *const texts[] = {entry, "mine", entry, entry, "my notes"};
    char foreign[5][160], begun[160];
    int64_t entries, bytes;
    for (int i = 0; i < 5; i++) {
        snprintf(foreign[i], sizeof foreign[i], "%s/%s", f->folder, names[i]);
        scratch_write(foreign[i], texts[i], strlen(texts[i]));
    }
    snprintf(begun, sizeof begun, "%s/.fpac-00000000000000bb", f->folder);
    scratch_write(begun, entry, 30);
    assert_int_equal(store(f, KEY, "object", "passed"), FPA_OK);
    assert_int_equal(store(f, OTHER_KEY, "object", NULL), FPA_OK);
    assert_int_equal(cache_measure(&f->cache, &entries, &bytes, &error), FPA_OK);
    assert_int_equal(entries, 2);
    assert_true(bytes > 200);
    assert_int_equal(cache_clear(&f->cache, &entries, &error), FPA_OK);
    assert_int_equal(entries, 2);
    assert_int_equal(scratch_count(f->folder, NULL), 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(access(foreign[i], F_OK), 0);
}

/* Writers of one key and readers of it at once: a reader sees a whole entry or none. */
static int hammer(fixture *f, int writer)
{
    enum { SIZE = 100000, ROUNDS = 40 };
    char *bytes = malloc(SIZE + 1);
    int broken = 0;
    memset(bytes, 'a', SIZE);
    bytes[SIZE] = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (writer)
            broken += store(f, KEY, bytes, "passed") != FPA_OK;
        else
            broken += is_found(f, KEY) && !holds(f, KEY, bytes, "passed");
    }
    free(bytes);
    return broken + f->log.lines;
}

static void processes_share_one_key_without_a_lock(void **state)
{
    enum { PROCESSES = 6 };
    fixture *f = *state;
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(hammer(f, i % 2) != 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(scratch_count(f->folder, NULL), 1);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(what_is_stored_is_loaded_with_its_verdict),
        CLAIM(every_damaged_byte_and_every_missing_end_is_noticed),
        CLAIM(beyond_the_limit_the_least_recently_used_go),
        CLAIM(the_limit_is_the_variables_or_the_folders_or_2_gib),
        CLAIM(many_may_store_beyond_the_limit_at_once),
        CLAIM(an_entry_under_another_name_serves_nobody),
        CLAIM(the_key_depends_on_every_field_and_on_where_fields_end),
        CLAIM(the_folder_follows_options_then_the_environment),
        CLAIM(without_any_folder_nothing_is_persisted),
        CLAIM(a_folder_that_others_could_write_is_refused),
        CLAIM(a_file_in_the_folders_place_is_refused),
        CLAIM(a_store_that_fails_leaves_nothing_behind),
        CLAIM(what_a_killed_writer_left_is_swept_later),
        CLAIM(clear_removes_entries_and_nothing_else),
        CLAIM(processes_share_one_key_without_a_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
