/* libfpa-run opens bundles: nothing of what makes a kernel is in it, no generator, no Lua, no C compiler's
 * process, no NVRTC. What is in it is what nm prints of its archive, hidden symbols and open ones too. */
#include "c_hurry.h"
#include "program.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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

/* What an object defines for others, or all that nm tells of a file; a blank before and behind each name, so
 * that one is searched as " name ". */
static char *symbols_of(const char *file, bool defined)
{
    program_result result = defined ? RUN("/usr/bin/env", "nm", "-P", "-g", "--defined-only", file)
                                    : RUN("/usr/bin/env", "nm", "-P", file);
    assert_int_equal(result.code, 0);
    char *names = malloc(2 * strlen(result.out) + 2), *to = names;
    assert_non_null(names);
    *to++ = ' ';
    for (const char *line = result.out; *line; line += strcspn(line, "\n") + 1) {
        const size_t length = strcspn(line, " \n");
        memcpy(to, line, length);
        to += length;
        *to++ = ' ';
    }
    *to = '\0';
    program_free(&result);
    return names;
}

static bool has(const char *symbols, const char *name, bool whole)
{
    char wanted[256];
    snprintf(wanted, sizeof wanted, whole ? " %s " : " %s", name);
    return strstr(symbols, wanted) != NULL;
}

/* How many of the names that an object defines are in the library. */
static int count_defined(const char *library, const char *object, bool tell)
{
    int count = 0;
    char *rest = NULL, *names = symbols_of(object, true);
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        if (!has(library, name, true))
            continue;
        count++;
        if (tell)
            print_error("%s of %s is in the library\n", name, object);
    }
    free(names);
    return count;
}

typedef struct found {
    int defined, called, sources;
} found;

static void count_pattern(const char *build, const char *library, const char *pattern, bool tell, found *f)
{
    glob_t files;
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char object[2 * MOST_PATH];
        const char *source = files.gl_pathv[i];
        snprintf(object, sizeof object, "%s/obj/%.*s.o", build, (int)strlen(source) - 2, source);
        f->defined += count_defined(library, object, tell);
        f->sources++;
    }
    globfree(&files);
}

/* What of the makers is in a library of this build. */
static found count_makers(const char *name, bool tell)
{
    char build[MOST_PATH], path[MOST_PATH + 64];
    found f = {0};
    find_build(build);
    snprintf(path, sizeof path, "%s/%s", build, name);
    char *library = symbols_of(path, false);
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
    (void)state;
    const found f = count_makers("libfpa-run.a", true);
    assert_int_equal(f.defined, 0);
    assert_int_equal(f.called, 0);
}

/* The check must be able to fail: the whole library has all of it. */
static void the_whole_library_makes_kernels(void **state)
{
    (void)state;
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
