/* fpac new: a spec to begin with, that is true and is applied to the arrays beside it. */
#include "claims.h"
#include "command_place.h"
#include "dear.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What fpac new writes for a head called mine, and what is computed from it. */
typedef struct beginning {
    place here;
    char spec[PATH], q[PATH], k[PATH], v[PATH], o[PATH];
} beginning;

static void beginning_make(beginning *mine)
{
    scratch_make(mine->here.folder);
    place_file(&mine->here, "mine.lua", mine->spec);
    place_file(&mine->here, "mine.q.npy", mine->q);
    place_file(&mine->here, "mine.k.npy", mine->k);
    place_file(&mine->here, "mine.v.npy", mine->v);
    place_file(&mine->here, "mine.o.npy", mine->o);
}

static void a_new_head_is_verified_and_applied_to_its_arrays(void **state)
{
    beginning mine;
    beginning_make(&mine);
    expect(RUN("fpac", "new", "mine", "-o", mine.here.folder), 0, "mine.q.npy: [1, 256, 2, 64]", NULL);
    expect(RUN("fpac", "verify", mine.spec), 0, "verified", NULL);
    expect(RUN("fpac", "run", mine.spec, "--q", mine.q, "--k", mine.k, "--v", mine.v, "-o", mine.o), 0, NULL,
           NULL);
    assert_int_equal(access(mine.o, R_OK), 0);
    scratch_remove(mine.here.folder);
}

/* make test runs families with a gate, with matrices, with maps and with positions. */
static bool is_run(const char *family)
{
    static const char *const some[] = {"gated", "product", "elu", "fourier"};
    return dear_tests() || is_one_of(some, sizeof some / sizeof *some, family);
}

/* Every family's own line, as its spec has it: gates and weights are there. */
static void every_family_runs_by_the_line_in_its_spec(void **state)
{
    static const char *const families[] = {"linear",        "gated",   "power", "spow",   "taylor",
                                           "inhomogeneous", "product", "elu",   "fourier"};
    for (unsigned i = 0; i < sizeof families / sizeof *families; i++) {
        beginning mine;
        char command[PATH_MAX + 4 * PATH], real[PATH_MAX];
        beginning_make(&mine);
        expect(RUN("fpac", "new", "mine", "--family", families[i], "--sample", "-o", mine.here.folder), 0,
               NULL, NULL);
        char features[64];
        char *text = text_read(mine.spec, NULL), *line = text ? strstr(text, "fpac run") : NULL;
        assert_non_null(line);
        snprintf(features, sizeof features, "\"features\": %d,", atoi(strstr(text, ". D = ") + 6));
        expect(RUN("fpac", "explain", mine.spec, "--json"), 0, features, NULL);
        assert_non_null(realpath(getenv("FPAC") ? getenv("FPAC") : "build/fpac", real));
        snprintf(command, sizeof command, "cd '%s' && '%s'%.*s --check-finite", mine.here.folder, real,
                 (int)(strcspn(line, "\n") - strlen("fpac")), line + strlen("fpac"));
        if (is_run(families[i])) {
            expect(RUN("/bin/sh", "-c", command), 0, NULL, NULL);
            assert_int_equal(access(mine.o, R_OK), 0);
        }
        free(text);
        scratch_remove(mine.here.folder);
    }
}

static void a_spec_may_come_alone(void **state)
{
    beginning mine;
    beginning_make(&mine);
    expect(RUN("fpac", "new", "mine", "--no-sample", "-o", mine.here.folder), 0, NULL, NULL);
    assert_int_equal(scratch_count(mine.here.folder, NULL), 1);
    expect(RUN("fpac", "explain", mine.spec), 0, "D 2304 -> 2112", NULL);
    expect(RUN("fpac", "new", "b", "--sample", "--no-sample"), 2, NULL, "--no-sample: contradicts --sample");
    expect(RUN("fpac", "new", "b", "--family", "soup"), 2, NULL,
           "soup is no family; there are tspow, linear");
    expect(RUN("fpac", "new", "mine", "--family", "tspw"), 2, NULL,
           "did you mean tspow? (there are tspow, linear");
    scratch_remove(mine.here.folder);
}

static void new_makes_the_folder_and_overwrites_nothing(void **state)
{
    beginning mine;
    char folder[PATH + 8], spec[PATH + 24];
    beginning_make(&mine);
    snprintf(folder, sizeof folder, "%s/a/b", mine.here.folder);
    snprintf(spec, sizeof spec, "%s/mine.lua", folder);
    expect(RUN("fpac", "new", "mine", "-o", folder), 0, NULL, NULL);
    assert_int_equal(scratch_count(folder, NULL), 4);
    expect(RUN("fpac", "new", "other", "-o", folder), 0, NULL, NULL);
    assert_int_equal(scratch_count(folder, NULL), 8);

    text_write(mine.k, "mine");
    expect(RUN("fpac", "new", "mine", "-o", mine.here.folder), 1, NULL, "mine.k.npy: is there already");
    assert_int_equal(scratch_count(mine.here.folder, ".npy"), 1);
    assert_int_equal(access(mine.spec, F_OK), -1);
    char *text = text_read(mine.k, NULL);
    assert_string_equal(text, "mine");
    free(text);
    scratch_remove(mine.here.folder);
}

static void a_name_that_no_head_can_have_is_refused(void **state)
{
    static const char *const names[] = {"9th", "a-b", "a/b", "../a", "a.lua", "\xc3\xa4"};
    char long_name[80] = "", folder[64];
    scratch_make(folder);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        expect(RUN("fpac", "new", names[i], "-o", folder), 2, NULL, "is no name of a head");
    memset(long_name, 'a', 64);
    expect(RUN("fpac", "new", long_name, "-o", folder), 2, NULL, "is no name of a head");
    long_name[63] = 0;
    expect(RUN("fpac", "new", long_name, "-o", folder), 0, NULL, NULL);
    assert_int_equal(scratch_count(folder, NULL), 4);
    scratch_remove(folder);
}

int main(void)
{
    setenv("FPA_CFLAGS", "-Og", 0); /* large heads: without optimisation they run longer than they compile */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_head_is_verified_and_applied_to_its_arrays),
        cmocka_unit_test(every_family_runs_by_the_line_in_its_spec),
        cmocka_unit_test(a_spec_may_come_alone),
        cmocka_unit_test(new_makes_the_folder_and_overwrites_nothing),
        cmocka_unit_test(a_name_that_no_head_can_have_is_refused),
    };
    return cmocka_run_group_tests_name("command, new", tests, NULL, NULL);
}
