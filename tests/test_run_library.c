/* libfpa-run opens bundles: nothing of what makes a kernel is in it, no generator, no Lua, no C compiler's
 * process, no NVRTC. What is in it is what nm prints of its archive, hidden symbols and open ones too. */
#include "c_hurry.h"
#include "claims.h"
#include "program.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PATH = 4096 };

/* Sources that make kernels: the generator and the builders. */
static const char *const making[] = {
    "gen/*.c",
    "gen/*/*.c",
    "gen/*/*/*.c",
    "runtime/builder.c",
    "runtime/api/open.c",
    "runtime/api/open_gradients.c",
    "runtime/api/opening.c",
    "runtime/c/build.c",
    "runtime/c/compiler.c",
    "runtime/c/process.c",
    "runtime/cuda/build.c",
    "runtime/cuda/nvrtc.c",
    "runtime/cuda/nvrtc_library.c",
    "runtime/cuda/programs.c",
};

/* What they call of others, and what the build makes of the generator's texts. */
static const char *const called[] = {"lua_",  "luaL_",         "luaopen_",
                                     "clone", "fpa_embedded_", "generator_digest"};

/* The folder of the build, in which this program is tests/test_run_library. */
static void find_build(char build[MOST_PATH])
{
    const ssize_t length = readlink("/proc/self/exe", build, MOST_PATH - 1);
    assert_true(length > 0);
    build[length] = '\0';
    for (int i = 0; i < 2; i++)
        *strrchr(build, '/') = '\0';
}

/* The first words of the lines that a program says, a blank before and behind each, so that one is searched as " name ". */
static char *first_words(program_result *result)
{
    assert_int_equal(result->code, 0);
    char *names = malloc(2 * strlen(result->out) + 2), *to = names;
    assert_non_null(names);
    *to++ = ' ';
    for (const char *line = result->out; *line;
         line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != 0)) {
        const size_t length = strcspn(line, " \n");
        memcpy(to, line, length);
        to += length;
        *to++ = ' ';
    }
    *to = '\0';
    program_free(result);
    return names;
}

/* All that nm tells of a file. */
static char *symbols_of(const char *file)
{
    program_result result = RUN("/usr/bin/env", "nm", "-P", file);
    return first_words(&result);
}

/* What objects define for others, and their names with a colon; one nm for all, which loads its plugin longer than it reads. */
static char *symbols_defined(char *const *objects, size_t count)
{
    static const char *const nm[] = {"/usr/bin/env", "nm", "-P", "-g", "--defined-only"};
    enum { WORDS = sizeof nm / sizeof *nm };
    const char *arguments[WORDS + count + 1];
    memcpy(arguments, nm, sizeof nm);
    memcpy(arguments + WORDS, objects, count * sizeof *objects);
    arguments[WORDS + count] = NULL;
    program_result result = program_run(arguments);
    return first_words(&result);
}

static bool has(const char *symbols, const char *name, bool whole)
{
    char wanted[256];
    snprintf(wanted, sizeof wanted, whole ? " %s " : " %s", name);
    return strstr(symbols, wanted) != NULL;
}

typedef struct found {
    int defined, called, sources;
} found;

/* How many of the names that objects define are in the library. */
static int count_defined(const char *library, char *const *objects, size_t number, bool tell)
{
    int count = 0;
    char *rest = NULL, *names = symbols_defined(objects, number);
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        if (!has(library, name, true))
            continue;
        count++;
        if (tell)
            print_error("%s of %s ... is in the library\n", name, *objects);
    }
    free(names);
    return count;
}

static void count_pattern(const char *build, const char *library, const char *pattern, bool tell, found *f)
{
    glob_t files;
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    char *objects[files.gl_pathc];
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *source = files.gl_pathv[i];
        assert_true(asprintf(&objects[i], "%s/obj/%.*s.o", build, (int)strlen(source) - 2, source) > 0);
    }
    f->defined += count_defined(library, objects, files.gl_pathc, tell);
    f->sources += (int)files.gl_pathc;
    for (size_t i = 0; i < files.gl_pathc; i++)
        free(objects[i]);
    globfree(&files);
}

/* What of the makers is in a library of this build. */
static found count_makers(const char *name, bool tell)
{
    char build[MOST_PATH], path[MOST_PATH + 64];
    found f = {0};
    find_build(build);
    snprintf(path, sizeof path, "%s/%s", build, name);
    char *library = symbols_of(path);
    assert_true(has(library, "fpa_open_bundle", true));
    for (size_t i = 0; i < sizeof making / sizeof *making; i++)
        count_pattern(build, library, making[i], tell, &f);
    for (size_t i = 0; i < sizeof called / sizeof *called; i++) {
        const bool there = has(library, called[i], false);
        if (there && tell)
            print_error("%s... is in the library\n", called[i]);
        f.called += there;
    }
    free(library);
    return f;
}

static void the_library_that_opens_bundles_makes_no_kernel(void **state)
{
    const found f = count_makers("libfpa-run.a", true);
    assert_int_equal(f.defined, 0);
    assert_int_equal(f.called, 0);
}

/* The check must be able to fail: the whole library has all of it. */
static void the_whole_library_makes_kernels(void **state)
{
    const found f = count_makers("libfpa.a", false);
    assert_true(f.sources > 50);
    assert_true(f.defined > f.sources);
    assert_int_equal(f.called, sizeof called / sizeof *called);
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_that_opens_bundles_makes_no_kernel),
        cmocka_unit_test(the_whole_library_makes_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
