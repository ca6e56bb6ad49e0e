/* Every head of specs/ and specs/models/ through `fpac verify`: generated, compiled, compared with the formula; for
 * $FPA_TEST_TARGET (of specs/ alone), else the best C target. */
#include "program.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

enum { PATH = 512, MANY_SPECS = 128 };

typedef struct shipped_spec {
    char path[PATH];
} shipped_spec;

static void every_head_of_the_file_is_verified_in_every_form(void **state)
{
    const char *path = ((const shipped_spec *)*state)->path;
    const char *wanted = getenv("FPA_TEST_TARGET"), *target = wanted ? wanted : "c";
    program_result result = RUN("fpac", "verify", path, "--target", target);
    if (result.code)
        fail_msg("%s: exit code %d: %s%s", path, result.code, result.out, result.err);
    assert_non_null(strstr(result.out, "  verified\n"));
    program_free(&result);
}

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
    struct CMUnitTest tests[MANY_SPECS];
    int count = add_folder("specs", specs, 0);
    /* A target of CUDA takes no values wider than 256, which some published heads have. */
    if (!getenv("FPA_TEST_TARGET"))
        count = add_folder("specs/models", specs, count);
    if (count > MANY_SPECS) {
        fprintf(stderr, "test_shipped: specs/ or specs/models/ has none, or too many\n");
        return 1;
    }
    for (int i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){specs[i].path, every_head_of_the_file_is_verified_in_every_form, NULL,
                                       NULL, &specs[i]};
    return _cmocka_run_group_tests("shipped", tests, (size_t)count, NULL, NULL);
}
