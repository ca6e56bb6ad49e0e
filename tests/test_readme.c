/* What the documents say can be typed: the files they name exist, their specs load. */
#include "gen/spec/spec.h"
#include "gen/gen.h"
#include "program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

static const char *const documents[] = {
    "README.md",         "CONTRIBUTING.md",   "SECURITY.md",        "examples/prefill_decode.c",
    "examples/bundle.c", "examples/recall.c", "generated/README.md"};
static const char *const folders[] = {"specs/", "examples/", "bench/results/", "tests/parity/",
                                      "tools/", "gen/",      "runtime/"};

/* A file of a sample message, or a name that the reader fills in. */
static bool is_example(const char *path)
{
    return !strcmp(path, "specs/mine.lua") || strstr(path, "DATE") || strstr(path, "NAME");
}

/* Every path below `folder` in text is a file; returns how many there are. */
static int check_paths(const char *document, const char *text, const char *folder)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, folder)); at += strlen(folder)) {
        size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-");
        while (length && at[length - 1] == '.')
            length--;
        char *path = strndup(at, length);
        assert_non_null(path);
        bool inside = at > text && strchr("/-_", at[-1]); /* part of a longer path, as build/examples/ */
        if (!inside && !is_example(path) && access(path, F_OK))
            fail_msg("%s names %s, which does not exist", document, path);
        count += !inside;
        free(path);
    }
    return count;
}

static void every_file_that_a_document_names_exists(void **state)
{
    int count = 0;
    (void)state;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        char *text = text_read(documents[i], NULL);
        assert_non_null(text);
        for (size_t f = 0; f < sizeof folders / sizeof *folders; f++)
            count += check_paths(documents[i], text, folders[f]);
        free(text);
    }
    assert_true(count > 20);
}

/* The text between two markers, from *at on, which moves behind it; NULL: there is none. */
static char *between(const char **at, const char *open, const char *close)
{
    const char *begin = strstr(*at, open), *end = begin ? strstr(begin + strlen(open), close) : NULL;
    if (!end)
        return NULL;
    *at = end + strlen(close);
    begin += strlen(open);
    return strndup(begin, (size_t)(end - begin));
}

static int load_each(const char *text, const char *open, const char *close)
{
    int count = 0;
    for (char *spec; (spec = between(&text, open, close)); count++) {
        fpa_head_list list = {0, NULL};
        fpa_error error = {0};
        if (spec_load_text("README.md", NULL, spec, strlen(spec), &list, &error))
            fail_msg("%s: %s\n%s", error.where, error.message, spec);
        head_list_free(&list);
        free(spec);
    }
    return count;
}

static void every_spec_in_the_readme_loads(void **state)
{
    char *text = text_read("README.md", NULL);
    (void)state;
    assert_non_null(text);
    assert_int_equal(load_each(text, "```lua\n", "```") + load_each(text, "<<'LUA'\n", "LUA\n"), 2);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_that_a_document_names_exists),
        cmocka_unit_test(every_spec_in_the_readme_loads),
    };
    return cmocka_run_group_tests_name("readme", tests, NULL, NULL);
}
