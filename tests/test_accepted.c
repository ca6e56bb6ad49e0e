/* Legitimate heads open, however far sums, ranks or half precision are stretched; and what half precision cannot
 * hold is refused by its name. */
#include "runtime/api/fpa.h"
#include "claims.h"
#include "dear.h"
#include "far_heads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fpa_status open_with(const char *fields, const fpa_options *options, fpa_kernel **kernel,
                            fpa_error *error)
{
    char text[1024];
    snprintf(text, sizeof text, "return head { name = 'legitimate', %s }", fields);
    return fpa_open_text("legitimate.lua", text, NULL, options, kernel, error);
}

static fpa_status open_fields(const char *fields, fpa_kernel **kernel, fpa_error *error)
{
    return open_with(fields, NULL, kernel, error);
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

/* Their gradients are sums that a chain of float32 would round too often. */
static void legitimate_heads_have_gradients(void **state)
{
    static const char *const heads[] = {
        /* pairs near a normaliser of zero, which a running sum of 261 tokens must forget */
        "d = 8, dv = 2, normalize = 'one_plus_sum', gate = true, chunk = 2, terms = tensorsketch { size = 3, "
        "index_hash = { { 0, 0, 2, 1, 1, 2, 0, 0 } }, bit_hash = { { -1, 1, -1, -1, 1, 1, -1, -1 } }, d = 8, "
        "degree = 1, gamma = 0.5 }",
        /* 15,625 features: sums over tiles, of rows and of values */
        "d = 5, dv = 8, terms = tspow { d = 5, degree = 6, block = 5 }",
    };
    const size_t count = dear_tests() ? COUNT_OF(heads) : 1;
    const fpa_options options = {.backward = 1};
    for (size_t i = 0; i < count; i++) {
        fpa_kernel *kernel = NULL;
        fpa_error error = {0};
        if (open_with(heads[i], &options, &kernel, &error))
            fail_msg("%s: %s", heads[i], error.message);
        fpa_close(kernel);
    }
}

/* Large queries, that trials of windows have, are exponents of a map here: features with which a state of nothing is
 * read are beyond float32. */
static void a_window_beside_a_map_opens(void **state)
{
    fpa_kernel *kernel = NULL;
    fpa_error error = {0};
    if (open_fields(
            "d = 16, dv = 1, normalize = 'one_plus_sum', window = 1, terms = power { degree = 2, map = exp }",
            &kernel, &error))
        fail_msg("%s", error.message);
    fpa_close(kernel);
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
        cmocka_unit_test(legitimate_heads_have_gradients),
        cmocka_unit_test(a_window_beside_a_map_opens),
        cmocka_unit_test(a_state_beyond_half_precision_is_refused_by_that_name),
    };
    return cmocka_run_group_tests(tests, compile_fast, NULL);
}
