/* Heads of specs/ and specs/models/ through `fpac verify`: generated, compiled, compared with the formula; for
 * $FPA_TEST_TARGET (of specs/ alone), else the best C target.
 *
 * make test: of the heads that no target is named for, some that have every function, type, normaliser and other trait
 * which any has, in brief codes; make test-all: every head of every file. */
#include "claims.h"
#include "dear.h"
#include "gen/gen.h"
#include "program.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 512, MANY_SPECS = 128, MANY_HEADS = 512 };

typedef struct shipped_spec {
    char path[PATH];
} shipped_spec;

/* A head of one of the files, and what make test would compile of it. */
typedef struct candidate {
    const shipped_spec *spec;
    char name[HEAD_MAX_NAME + 1], title[PATH + HEAD_MAX_NAME + 4];
    size_t size;           /* of its code, and what verifying it takes in such bytes */
    function_set features; /* functions, by name without numbers, and traits */
} candidate;

/* ---- the tests ---- */

static void expect_verified(program_result result, const char *what)
{
    if (result.code)
        fail_msg("%s: exit code %d: %s%s", what, result.code, result.out, result.err);
    assert_non_null(strstr(result.out, "  verified\n"));
    program_free(&result);
}

static void every_head_of_the_file_is_verified_in_every_form(void **state)
{
    const char *path = ((const shipped_spec *)*state)->path;
    const char *wanted = getenv("FPA_TEST_TARGET"), *target = wanted ? wanted : "c";
    expect_verified(RUN("fpac", "verify", path, "--target", target), path);
}

static void the_head_is_verified_in_every_form(void **state)
{
    static int before;
    const candidate *c = *state;
    if (before++ == 1) /* one as users have it; of the others compiling is what they take */
        setenv("FPA_CFLAGS", "-Og", 0);
    expect_verified(RUN("fpac", "verify", c->spec->path, "--head", c->name, "--target", "c"), c->title);
}

/* ---- the fixed part ---- */

static void add_feature(function_set *set, const char *format, const char *name, int value)
{
    char line[256];
    snprintf(line, sizeof line, format, name, value);
    function_set_add(set, line, "");
}

static void add_traits(function_set *set, const fpa_head *head)
{
    add_feature(set, "%s_%d(", "type", head->dtype);
    add_feature(set, "%s_%d(", "state", head->state_dtype);
    add_feature(set, "%s_%d(", "normalize", head->normalize);
    add_feature(set, "%s_%d(", "gate", head->gate);
    add_feature(set, "%s_%d(", "causal", head->causal);
    add_feature(set, "%s_%d(", "window", head->window > 0);
    add_feature(set, "%s_%d(", "mapped", head->lift != NULL);
}

static int add_candidates(const shipped_spec *spec, candidate *list, int count)
{
    fpa_head_list heads;
    fpa_error error;
    if (spec_load(spec->path, &heads, &error))
        return fprintf(stderr, "%s: %s\n", error.where, error.message), MANY_HEADS + 1;
    for (int i = 0; i < heads.count && count < MANY_HEADS; i++) {
        candidate *c = &list[count++];
        fpa_source source;
        *c = (candidate){.spec = spec};
        snprintf(c->name, sizeof c->name, "%s", heads.heads[i]->name);
        snprintf(c->title, sizeof c->title, "%s, %s", spec->path, c->name);
        if (source_generate(heads.heads[i], target_best()->name, &source, &error))
            return fprintf(stderr, "%s: %s\n", error.where, error.message), MANY_HEADS + 1;
        c->size = strlen(source.code) + (size_t)source.facts.features * (size_t)heads.heads[i]->dv / 2;
        function_set_add_plain(&c->features, source.code, c->name);
        add_traits(&c->features, heads.heads[i]);
        source_free(&source);
    }
    head_list_free(&heads);
    return count;
}

/* How many names of `some` the set lacks. */
static size_t count_new(const function_set *seen, const function_set *some)
{
    size_t count = 0;
    for (size_t i = 0; i < some->count; i++)
        count += !is_one_of((const char *const *)seen->names, seen->count, some->names[i]);
    return count;
}

/* The head with most that is new for its size, which is what compiling and verifying it takes; -1: none has anything new. */
static int best_of(const candidate *list, int count, const function_set *seen)
{
    enum { BRIEF = 50000 }; /* bytes: what any head takes */
    double most = 0;
    int best = -1;
    for (int i = 0; i < count; i++) {
        const double worth = (double)count_new(seen, &list[i].features) / (double)(BRIEF + list[i].size);
        if (worth > most) {
            most = worth;
            best = i;
        }
    }
    return best;
}

/* Tests of some that have all that any has; how many. */
static int choose(candidate *list, int count, struct CMUnitTest *tests)
{
    function_set seen = {0};
    int chosen = 0;
    for (int i; (i = best_of(list, count, &seen)) >= 0; chosen++) {
        for (size_t n = 0; n < list[i].features.count; n++)
            add_feature(&seen, "%s(", list[i].features.names[n], 0);
        tests[chosen] =
            (struct CMUnitTest){list[i].title, the_head_is_verified_in_every_form, NULL, NULL, &list[i]};
    }
    print_message("%zu functions and traits\n", seen.count);
    for (int i = 0; i < count; i++)
        function_set_free(&list[i].features);
    function_set_free(&seen);
    dear_report("heads", chosen, count);
    return chosen;
}

static int make_fixed(const shipped_spec *specs, int count, struct CMUnitTest *tests)
{
    static candidate list[MANY_HEADS];
    int heads = 0;
    for (int i = 0; i < count && heads <= MANY_HEADS; i++)
        heads = add_candidates(&specs[i], list, heads);
    return heads > MANY_HEADS ? -1 : choose(list, heads, tests);
}

/* ---- files ---- */

static int is_spec(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && !strcmp(entry->d_name + length - 4, ".lua");
}

static int add_folder(const char *folder, shipped_spec *specs, int count)
{
    struct dirent **names;
    const int found = scandir(folder, &names, is_spec, alphasort);
    for (int i = 0; i < found; i++) {
        if (count + i < MANY_SPECS)
            snprintf(specs[count + i].path, PATH, "%s/%s", folder, names[i]->d_name);
        free(names[i]);
    }
    if (found >= 0)
        free(names);
    return found < 1 ? MANY_SPECS + 1 : count + found;
}

int main(void)
{
    static shipped_spec specs[MANY_SPECS];
    static struct CMUnitTest tests[MANY_HEADS];
    const bool cuda = getenv("FPA_TEST_TARGET") != NULL;
    int count = add_folder("specs", specs, 0);
    /* A target of CUDA takes no values wider than 256, which some published heads have. */
    if (!cuda)
        count = add_folder("specs/models", specs, count);
    if (count > MANY_SPECS) {
        fprintf(stderr, "test_shipped: specs/ or specs/models/ has none, or too many\n");
        return 1;
    }
    if (!cuda && !dear_tests())
        count = make_fixed(specs, count, tests);
    else
        for (int i = 0; i < count; i++)
            tests[i] = (struct CMUnitTest){specs[i].path, every_head_of_the_file_is_verified_in_every_form,
                                           NULL, NULL, &specs[i]};
    return count < 0 ? 1 : _cmocka_run_group_tests("shipped", tests, (size_t)count, NULL, NULL);
}
