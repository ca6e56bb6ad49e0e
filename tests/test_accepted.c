/* Legitimate heads open, however far sums, ranks or half precision are stretched; and what half precision cannot
 * hold is refused by its name. */
#include "runtime/api/fpa.h"
#include "claims.h"
#include "far_heads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fpa_status open_fields(const char *fields, fpa_kernel **kernel, fpa_error *error)
{
    char text[1024];
    snprintf(text, sizeof text, "return head { name = 'legitimate', %s }", fields);
    return fpa_open_text("legitimate.lua", text, NULL, NULL, kernel, error);
}

static void legitimate_heads_open(void **state)
{
    for (size_t i = 0; i < COUNT_OF(stretched_heads); i++) {
        fpa_kernel *kernel = NULL;
        fpa_error error = {0};
        if (open_fields(stretched_heads[i], &kernel, &error))
            fail_msg("%s: %s", stretched_heads[i], error.message);
        fpa_close(kernel);
    }
}

static void a_state_beyond_half_precision_is_refused_by_that_name(void **state)
{
    fpa_kernel *kernel = NULL;
    fpa_error error = {0};
    assert_int_equal(open_fields(large_state_head, &kernel, &error), FPA_REFUSED);
    assert_non_null(strstr(error.message, "state_dtype f16 ends at 65504"));
}

static int compile_fast(void **state)
{
    return setenv("FPA_CFLAGS", "-Og", 0); /* compile time is what these tests cost */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legitimate_heads_open),
        cmocka_unit_test(a_state_beyond_half_precision_is_refused_by_that_name),
    };
    return cmocka_run_group_tests(tests, compile_fast, NULL);
}
