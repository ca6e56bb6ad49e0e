/* test_command_lift: what `fpac explain` says of heads whose coordinates are made of q and k. */
#include "c_hurry.h"
#include "claims.h"
#include "program.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>

static const char spec[] =
    "return {\n"
    "  head { name = 'fourier', d = 4, positions = 2, key_mask = true, terms = { term {}, fourier { map = "
    "softplus } } },\n"
    "  head { name = 'mixed', d = 4, terms = term { select { 1, 2, 4 }:map { q = exp, k = relu },\n"
    "         coordinates { identity(), trainable { name = 'w', rows = 4, bias = true }, inner = -1, square "
    "= 0.5,\n"
    "                       shift = -2, gain_k = 3 } } },\n"
    "  head { name = 'sketch', d = 4, terms = tensorsketch { d = 4, degree = 2, size = 8, seed = 1, constant "
    "= 1,\n"
    "         heads = 2 } } }\n";

static const char *const pages[][10] = {
    {"d = 4, dv = 4, degree 1", "\n  1          coordinate 9\n", "\n  2          coordinates 1..8\n",
     "9 coordinates of a token, made of x: q times the scale, or k\n",
     "\n  1..8       u = softplus(x); u cos t, u sin t, t = a p (queries: + b), queries times c\n",
     "\n  9          1\n", "p          [batch, length, 2] positions given at run time\n",
     "key mask   [batch, length] given at run time", NULL},
    {"\n  1          coordinates 1..3 x coordinates 4..7\n",
     "\n  1..3       exp(x[1-2,4]) of queries, relu(x[1-2,4]) of keys\n",
     "\n  4..7       (-1 (x)(w (x,1)) - 0.5 |x|^2 + 2) of queries, 3 (-1 (x)(w (x,1)) - 0.5 |x|^2 + 2) of "
     "keys\n",
     NULL},
    {"\n  1..2       0.353553 (C1 (x,1))(C2 (x,1))\n",
     "\n  3..8       Re u, Im u, u = 0.5 ((C3 + i C4) (x,1))((C5 + i C6) (x,1))\n",
     "\n  C1..C2     2 x 5 constants, for each of 2 heads; the last column is added\n",
     "\n  tensorsketch: an estimate of (1 + q.k)^2 with variance at most (3^2 - 1)/8 = 1 times",
     "exact symmetric features are 15, more than these 8\n", NULL},
};

static const char *const members[] = {"\"d\": 4,",
                                      "\"lift\": {",
                                      "\"width\": 4,",
                                      "\"positions\": 2,",
                                      "\"key_mask\": true,",
                                      "\"complex\": true,",
                                      "\"map_k\": \"relu\",",
                                      "\"formula\": \"exp(x[1-2,4]) of queries, relu(x[1-2,4]) of keys\"",
                                      "\"tensorsketch: an estimate of (1 + q.k)^2"};

static void explain_has_the_formulas_of_a_lift(void **state)
{
    static const char *const names[] = {"fourier", "mixed", "sketch"};
    char folder[64], path[128];
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/mine.lua", folder);
    scratch_write(path, spec, strlen(spec));
    for (int h = 0; h < 3; h++) {
        program_result result = RUN("fpac", "explain", path, "--target", "c:avx2", "--head", names[h]);
        assert_int_equal(result.code, 0);
        for (const char *const *line = pages[h]; *line; line++)
            if (!strstr(result.out, *line))
                fail_msg("%s: not said: %s\n%s", names[h], *line, result.out);
        program_free(&result);
    }
    program_result result = RUN("fpac", "explain", path, "--target", "c:avx2", "--json");
    assert_int_equal(result.code, 0);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!strstr(result.out, members[i]))
            fail_msg("not in JSON: %s\n%s", members[i], result.out);
    program_free(&result);
    scratch_remove(folder);
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {cmocka_unit_test(explain_has_the_formulas_of_a_lift)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
