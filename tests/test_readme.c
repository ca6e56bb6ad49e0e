/* What the documents say can be typed: the files they name exist, their specs load, the README's lines run.
 */
#include "c_hurry.h"
#include "claims.h"
#include "gen/gen.h"
#include "program.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const documents[] = {"examples/prefill_decode.c", "examples/bundle.c", "examples/recall.c",
                                        "examples/gradient_descent.c", "examples/hla.c"};
static const char *const folders[] = {"specs/", "examples/", "tests/parity/", "tools/", "gen/", "runtime/"};

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

static void every_file_that_an_example_names_exists(void **state)
{
    int count = 0;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        char *text = text_read(documents[i], NULL);
        assert_non_null(text);
        for (size_t f = 0; f < sizeof folders / sizeof *folders; f++)
            count += check_paths(documents[i], text, folders[f]);
        free(text);
    }
    assert_true(count > 0);
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

static int load_each(const char *path, const char *text, const char *open, const char *close)
{
    int count = 0;
    for (char *spec; (spec = between(&text, open, close)); count++) {
        fpa_head_list list = {.count = 0};
        fpa_error error = {0};
        if (spec_load_text(path, NULL, spec, strlen(spec), &list, &error))
            fail_msg("%s: %s\n%s", error.where, error.message, spec);
        head_list_free(&list);
        free(spec);
    }
    return count;
}

/* The specs in a document's blocks; how many there are. */
static int load_specs_of(const char *path)
{
    char *text = text_read(path, NULL);
    assert_non_null(text);
    int count = load_each(path, text, "```lua\n", "```");
    free(text);
    return count;
}

static void every_spec_in_the_documents_loads(void **state)
{
    int count = load_specs_of("README.md");
    DIR *list = opendir("docs");
    assert_non_null(list);
    for (struct dirent *item; (item = readdir(list));) {
        char path[sizeof item->d_name + 8];
        size_t length = strlen(item->d_name);
        snprintf(path, sizeof path, "docs/%s", item->d_name);
        if (length > 3 && !strcmp(item->d_name + length - 3, ".md"))
            count += load_specs_of(path);
    }
    closedir(list);
    assert_true(count >= 3);
}

static const char *command_path(void)
{
    return getenv("FPAC") ? getenv("FPAC") : "build/fpac";
}

static void what_the_documents_name_is_there(void **state)
{
    program_result result = RUN("tools/docs-check.sh", command_path());
    if (result.code)
        fail_msg("make docs-check: %s%s", result.out, result.err);
    program_free(&result);
}

static void every_kind_of_mistake_in_a_document_is_found(void **state)
{
    static const char broken[] = "# A page\n\n[a](missing.md) [b](#nowhere) [fine](#a-page)\n"
                                 "`fpac explane` `fpac list --bad` `make nothing` `specs/none.lua`\n"
                                 "```sh\nbuild/fpac run --qq x && build/fpac bench specs/x*.lua\n```\n";
    static const char *const mistakes[] = {
        ":3: links to missing.md", ":3: links to #nowhere",  ":4: fpac explane: ",
        ":4: fpac list --bad: ",   ":4: make nothing: ",     ":4: names specs/none.lua",
        ":6: fpac run --qq: ",     ":6: names specs/x*.lua", "docs-check: 8 mistakes"};
    char folder[64], path[128];
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/broken.md", folder);
    text_write(path, broken);
    program_result result = RUN("tools/docs-check.sh", command_path(), path);
    assert_int_equal(result.code, 1);
    for (unsigned i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        if (!strstr(result.out, mistakes[i]))
            fail_msg("'%s' is not told: %s", mistakes[i], result.out);
    program_free(&result);
    scratch_remove(folder);
}

static void a_tutorial_that_fails_or_prints_something_else_is_found(void **state)
{
    static const char broken[] =
        "<!-- docs-check: run -->\n# A page\n\n<!-- docs-check: file a.txt -->\n```lua\none\ntwo\n```\n"
        "```sh\ncat a.txt; echo three; fpac --version\n```\n"
        "```text\n...\nthree\nfpac ...\n```\n"
        "```text\none\nthree\n...\n```\n"
        "```text\none\ntw...ee\n...\n```\n"
        "```text\none\ntwo\n```\n"
        "```sh\ngrep four a.txt\n```\n```sh\necho never\n```\n";
    static const char *const mistakes[] = {
        "page.md:17: this is not what is printed", "page.md:22: this is not", "page.md:27: this is not",
        "page.md:31: a command fails", "docs-run: 4 mistakes in 1 documents"};
    char folder[64], path[128];
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/page.md", folder);
    text_write(path, broken);
    program_result result = RUN("tools/docs-run.sh", command_path(), path);
    assert_int_equal(result.code, 1);
    for (unsigned i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        if (!strstr(result.out, mistakes[i]))
            fail_msg("'%s' is not told: %s", mistakes[i], result.out);
    assert_null(strstr(result.out, "page.md:12:"));
    program_free(&result);
    scratch_remove(folder);
}

/* One line of a block, in a folder where build/fpac is the command under test. */
static void run_line(const char *folder, const char *line)
{
    char text[1024];
    snprintf(text, sizeof text, "cd '%s' && %s", folder, line);
    program_result result = RUN("/bin/sh", "-c", text);
    if (result.code)
        fail_msg("%s: exit code %d: %s", line, result.code, result.err);
    program_free(&result);
}

static void the_lines_of_the_readme_run_as_they_stand(void **state)
{
    char folder[64], place[128], command[PATH_MAX], *text = text_read("README.md", NULL);
    int count = 0;
    assert_non_null(text);
    assert_non_null(realpath(command_path(), command));
    scratch_make(folder);
    snprintf(place, sizeof place, "%s/build", folder);
    assert_int_equal(mkdir(place, 0700), 0);
    snprintf(place, sizeof place, "%s/build/fpac", folder);
    assert_int_equal(symlink(command, place), 0);
    const char *at = text;
    for (char *block; (block = between(&at, "```sh\n", "```")); free(block))
        for (char *rest = block, *line; (line = strsep(&rest, "\n"));)
            if (*line) {
                run_line(folder, line);
                count++;
            }
    assert_true(count >= 5);
    snprintf(place, sizeof place, "%s/mine.o.npy", folder);
    assert_int_equal(access(place, R_OK), 0);
    scratch_remove(folder);
    free(text);
}

static void the_readme_has_at_most_150_lines(void **state)
{
    char *text = text_read("README.md", NULL);
    int lines = 0;
    assert_non_null(text);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_in_range(lines, 50, 150);
    free(text);
}

int main(void)
{
    c_hurry_a_little();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_that_an_example_names_exists),
        cmocka_unit_test(every_spec_in_the_documents_loads),
        cmocka_unit_test(what_the_documents_name_is_there),
        cmocka_unit_test(every_kind_of_mistake_in_a_document_is_found),
        cmocka_unit_test(a_tutorial_that_fails_or_prints_something_else_is_found),
        cmocka_unit_test(the_lines_of_the_readme_run_as_they_stand),
        cmocka_unit_test(the_readme_has_at_most_150_lines),
    };
    return cmocka_run_group_tests_name("readme", tests, NULL, NULL);
}
