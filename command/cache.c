/* cache: shows where compiled kernels are stored, and removes them. */
#include "runtime/store/cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"
#include "command.h"
#include "json.h"
#include "options.h"

/* The output of `fpac cache`. */
typedef struct cache_report {
    const char *folder;
    int64_t entries, bytes, limit;
    int64_t removed; /* entries removed because of a new limit */
    bool cleared, limited;
} cache_report;

static fpa_status set_limit(fpa_cache *cache, const char *text, cache_report *found, fpa_error *error)
{
    int64_t bytes;
    if (!size_parse(text, &bytes))
        return fail(error, FPA_INVALID, "--limit", "%s is no size; write 512MiB, 2GiB or bytes", text);
    found->limited = true;
    return cache_set_limit(cache, bytes, &found->removed, error);
}

static const char *folder_source(void)
{
    return getenv("FPA_CACHE_DIR") ? "FPA_CACHE_DIR" : getenv("XDG_CACHE_HOME") ? "XDG_CACHE_HOME" : "HOME";
}

static fpa_status examine_cache(fpa_cache *cache, bool clear, const char *limit, cache_report *found,
                                fpa_error *error)
{
    if (!cache->folder)
        return fail(error, FPA_IO, "cache", "%s", cache->reason);
    found->folder = cache->folder;
    detail("the folder is that of %s", folder_source());
    found->cleared = clear;
    fpa_status status = limit ? set_limit(cache, limit, found, error) : FPA_OK;
    found->limit = cache->limit;
    detail("the limit of %" PRId64 " bytes is %s", cache->limit,
           getenv("FPA_CACHE_LIMIT") ? "that of FPA_CACHE_LIMIT"
                                     : "the folder's own, or 2 GiB where none was set");
    if (!status)
        status = cache_measure(cache, &found->entries, &found->bytes, error);
    if (status || !clear)
        return status;
    return cache_clear(cache, &found->entries, error);
}

static void print_report(const cache_report *found)
{
    char size[SIZE_TEXT], limit[SIZE_TEXT];
    if (found->limited && found->removed)
        printf("%s: removed %" PRId64 " %s beyond the limit\n", found->folder, found->removed,
               found->removed == 1 ? "entry" : "entries");
    printf("%s: %s%" PRId64 " %s, %s of at most %s\n", found->folder, found->cleared ? "removed " : "",
           found->entries, found->entries == 1 ? "entry" : "entries", size_text(size, (double)found->bytes),
           size_text(limit, (double)found->limit));
}

static void write_report(const cache_report *found)
{
    fpa_json json = {.out = stdout};
    json_object(&json, NULL);
    json_text(&json, "folder", found->folder);
    json_integer(&json, "entries", found->entries);
    json_integer(&json, "bytes", found->bytes);
    json_integer(&json, "limit", found->limit);
    json_bool(&json, "cleared", found->cleared);
    json_close(&json);
}

int command_cache(int count, char **arguments)
{
    bool clear = false, as_json = false;
    const char *limit = NULL;
    const fpa_option table[] = {
        {"--clear", OPTION_FLAG, &clear, NULL, "remove all entries; kernels in use keep working", 0, 0},
        {"--limit", OPTION_TEXT, &limit, "SIZE", "set the largest size: 512MiB, 2GiB (2GiB)", 0, 0},
        {"--json", OPTION_FLAG, &as_json, NULL, "print JSON", 0, 0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "cache [--clear] [--limit SIZE] [--json] [--verbose]",
        "Show the folder of compiled kernels, the number of entries, their size and the limit. Beyond the\n"
        "limit the least recently used entries are removed.",
        OPTION_TABLE(table),
        0,
        0,
        "The folder is $FPA_CACHE_DIR, else $XDG_CACHE_HOME/fpac, else ~/.cache/fpac. The limit is\n"
        "$FPA_CACHE_LIMIT, else the one that --limit stored in the folder, else 2GiB."};
    fpa_texts operands;
    fpa_options options = {.log = say_log};
    fpa_cache cache = {0};
    cache_report found = {0};
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    fpa_status status = cache_open(&options, &cache, &error);
    if (!status)
        status = examine_cache(&cache, clear, limit, &found, &error);
    if (status)
        code = report(&error);
    else if (as_json)
        write_report(&found), code = finish_output(EXIT_OK);
    else
        print_report(&found), code = finish_output(EXIT_OK);
    cache_close(&cache);
    return code;
}
