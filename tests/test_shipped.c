/* Every head of specs/ through `fpac verify`: generated, compiled, compared with the formula; for
 * $FPA_TEST_TARGET, else the best C target. */
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

static void every_head_of_the_file_is_verified_in_every_form(void **state)
{
    char path[PATH];
    snprintf(path, sizeof path, "specs/%s", (const char *)*state);
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

int main(void)
{
    struct CMUnitTest tests[MANY_SPECS];
    struct dirent **names;
    int count = scandir("specs", &names, is_spec, alphasort);
    if (count < 1 || count > MANY_SPECS) {
        fprintf(stderr, "test_shipped: specs/ has %d specs\n", count);
        return 1;
    }
    for (int i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){names[i]->d_name, every_head_of_the_file_is_verified_in_every_form,
                                       NULL, NULL, names[i]->d_name};
    int failed = _cmocka_run_group_tests("shipped", tests, (size_t)count, NULL, NULL);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return failed;
}
