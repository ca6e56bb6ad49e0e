/* Legitimate heads open, however far sums, ranks or half precision are stretched; and what half precision cannot
 * hold is refused by its name. */
#include "runtime/api/fpa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static fpa_status open_fields(const char *fields, fpa_kernel **kernel, fpa_error *error)
{
    char text[1024];
    snprintf(text, sizeof text, "return head { name = 'legitimate', %s }", fields);
    return fpa_open_text("legitimate.lua", text, NULL, NULL, kernel, error);
}

static void legitimate_heads_open(void **state)
{
    static const char *const heads[] = {
        /* 15625 features: the parallel form reads a state by tiles and slices */
        "d = 5, dv = 8, terms = tspow { d = 5, degree = 6, block = 5 }",
        /* one feature of another size than the others, in the recurrent form */
        "d = 8, dv = 8, terms = { tspow { d = 8, degree = 5, block = 4 }, term {} }",
        /* outputs beyond f16 among those that the formula was not evaluated for */
        "d = 8, dv = 15, dtype = 'f16', chunk = 512, terms = inhomogeneous { degree = 5, constant = -1, "
        "weight = -2 }",
        /* a small row is a row */
        "d = 4, dv = 4, terms = { term { dense { { 1, 1, 0, 0 }, { 0, 0, 3e-7, 3e-7 } } } }",
        "d = 4, dv = 4, terms = { term { dense { { 1, 1, 0, 0 }, { 2, 2, 0, 0 }, { 0, 0, 3e-7, 3e-7 } } } }",
    };
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        fpa_kernel *kernel = NULL;
        fpa_error error = {0};
        if (open_fields(heads[i], &kernel, &error))
            fail_msg("%s: %s", heads[i], error.message);
        fpa_close(kernel);
    }
}

static void a_state_beyond_half_precision_is_refused_by_that_name(void **state)
{
    fpa_kernel *kernel = NULL;
    fpa_error error = {0};
    (void)state;
    assert_int_equal(
        open_fields("d = 8, dv = 6, state_dtype = 'f16', terms = power { degree = 2, weight = 10000 }",
                    &kernel, &error),
        FPA_REFUSED);
    assert_non_null(strstr(error.message, "state_dtype f16 ends at 65504"));
}

static int compile_fast(void **state)
{
    (void)state;
    return setenv("FPA_CFLAGS", "-O1", 0); /* compile time is what these tests cost */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legitimate_heads_open),
        cmocka_unit_test(a_state_beyond_half_precision_is_refused_by_that_name),
    };
    return cmocka_run_group_tests(tests, compile_fast, NULL);
}
