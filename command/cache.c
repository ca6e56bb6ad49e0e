/* cache: where compiled kernels are kept; empty it. */
#include "runtime/store/cache.h"

#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "json.h"
#include "options.h"

/* What `fpac cache` tells. */
typedef struct cache_report {
    const char *folder;
    int64_t entries, bytes;
    bool cleared;
} cache_report;

static fpa_status examine_cache(const fpa_cache *cache, bool clear, cache_report *found, fpa_error *error)
{
    if (!cache->folder)
        return fail(error, FPA_IO, "cache", "%s", cache->reason);
    found->folder = cache->folder;
    found->cleared = clear;
    fpa_status status = cache_measure(cache, &found->entries, &found->bytes, error);
    if (status || !clear)
        return status;
    return cache_clear(cache, &found->entries, error);
}

static void print_report(const cache_report *found)
{
    char size[SIZE_TEXT];
    printf("%s: %s%" PRId64 " %s, %s\n", found->folder, found->cleared ? "removed " : "", found->entries,
           found->entries == 1 ? "entry" : "entries", size_text(size, (double)found->bytes));
}

static void write_report(const cache_report *found)
{
    fpa_json json = {.out = stdout};
    json_object(&json, NULL);
    json_text(&json, "folder", found->folder);
    json_integer(&json, "entries", found->entries);
    json_integer(&json, "bytes", found->bytes);
    json_bool(&json, "cleared", found->cleared);
    json_close(&json);
}

int command_cache(int count, char **arguments)
{
    bool clear = false, as_json = false;
    const fpa_option table[] = {
        {"--clear", OPTION_FLAG, &clear, NULL, "remove every entry; kernels in use are not harmed", 0, 0},
        {"--json", OPTION_FLAG, &as_json, NULL, "for a program to read", 0, 0},
    };
    const fpa_syntax syntax = {
        "cache [--clear] [--json]",
        "Show the folder of compiled kernels, the number of entries and their size.",
        OPTION_TABLE(table),
        0,
        0,
        "The folder is $FPA_CACHE_DIR, else $XDG_CACHE_HOME/fpac, else ~/.cache/fpac."};
    fpa_texts operands;
    fpa_options options = {0};
    fpa_cache cache = {0};
    cache_report found = {0};
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    fpa_status status = cache_open(&options, &cache, &error);
    if (!status)
        status = examine_cache(&cache, clear, &found, &error);
    if (status)
        code = report(&error);
    else if (as_json)
        write_report(&found), code = finish_output(EXIT_OK);
    else
        print_report(&found), code = finish_output(EXIT_OK);
    cache_close(&cache);
    return code;
}
