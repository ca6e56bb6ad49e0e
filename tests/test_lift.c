/* test_lift: coordinates that are made of q and k: their text, their rules, their maps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "head/lift.h"
#include "claims.h"

/* A Fourier part with its weights, a mapped projection, a complex product of two; a constant for masks. */
static const char written[] = "fpac head 1\n"
                              "name lifted\n"
                              "d 17\n"
                              "dv 3\n"
                              "block 0\n"
                              "chunk 0\n"
                              "causal 1\n"
                              "scale 0x1p-1\n"
                              "normalize none\n"
                              "eps 0x0p+0\n"
                              "gate 0\n"
                              "dtype f32\n"
                              "state_dtype f32\n"
                              "matrices 6\n"
                              "trainable a 4 2 per_head\n"
                              "trainable b 4 1 per_head\n"
                              "trainable w 4 4 shared\n"
                              "constant 2 4 heads 2\n"
                              "0x1p+0 0x0p+0 0x0p+0 0x0p+0\n"
                              "0x0p+0 0x1p+0 0x0p+0 0x0p+0\n"
                              "0x1p+0 0x0p+0 -0x1p+0 0x0p+0\n"
                              "0x0p+0 0x1p+0 0x0p+0 0x0p+0\n"
                              "constant 2 4\n"
                              "0x1p+0 0x0p+0 0x0p+0 0x1p+0\n"
                              "0x0p+0 0x1p+0 0x0p+0 0x0p+0\n"
                              "trainable_diagonal g 4 4 per_head\n"
                              "lift width 4 positions 2 key_mask 1 parts 4\n"
                              "part real 4 factors 2\n"
                              "map softplus exp\n"
                              "inner 0x1p+0 0x0p+0 0x0p+0\n"
                              "gain 0x1p+0 0x1p+0\n"
                              "position 1 2 0\n"
                              "factor input 1-4\n"
                              "factor matrix 6\n"
                              "part real 4 factors 1\n"
                              "map exp exp\n"
                              "inner 0x1p+0 0x1p-1 0x3p-2\n"
                              "gain 0x1p-1 0x1p-1\n"
                              "position 0 0 0\n"
                              "factor matrix 3\n"
                              "part complex 2 factors 2\n"
                              "map identity identity\n"
                              "inner 0x1p+0 0x0p+0 0x0p+0\n"
                              "gain 0x1p+0 0x1p+0\n"
                              "position 0 0 0\n"
                              "factor matrix 4 5\n"
                              "factor matrix 5 4\n"
                              "part real 1 factors 1\n"
                              "map one one\n"
                              "inner 0x1p+0 0x0p+0 0x0p+0\n"
                              "gain 0x1p+0 0x1p+0\n"
                              "position 0 0 0\n"
                              "factor input 1\n"
                              "terms 2\n"
                              "term 3 branches 2\n"
                              "branch coordinates input 1-8\n"
                              "branch coordinates input 9-12\n"
                              "term 1 branches 1\n"
                              "branch coordinates input 13-17\n"
                              "end\n";

static void a_lift_survives_its_text(void **state)
{
    fpa_head *head = NULL;
    fpa_error error = {0};
    assert_ok(head_parse(written, strlen(written), &head, &error), &error);
    char *text = head_print(head);
    assert_string_equal(text, written);
    assert_int_equal(head_width(head), 4);
    assert_int_equal(lift_heads(head), 2);
    assert_int_equal(lift_coordinates(&head->lift->parts[0]), 8);
    assert_int_equal(lift_coordinates(&head->lift->parts[1]), 4);
    assert_int_equal(lift_coordinates(&head->lift->parts[2]), 4);
    free(text);
    head_free(head);
}

/* Of a projection with a column behind the width's. */
static void a_factor_may_add_constants(void **state)
{
    fpa_head *head = NULL;
    fpa_error error = {0};
    char text[sizeof written + 128];
    const char *at = strstr(written, "trainable w 4 4");
    snprintf(text, sizeof text, "%.*strainable w 4 5%s", (int)(at - written), written,
             at + strlen("trainable w 4 4"));
    assert_ok(head_parse(text, strlen(text), &head, &error), &error);
    assert_true(lift_has_constants(head->lift, &head->matrices[2]));
    assert_false(lift_has_constants(head->lift, &head->matrices[3]));
    assert_false(lift_has_constants(head->lift, &head->matrices[5]));
    head_free(head);
}

static void a_lift_obeys_its_rules(void **state)
{
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"\nd 17\n", "\nd 16\n", "the lift makes 17 coordinates, but branches take 16"},
        {"position 1 2 0", "position 0 2 0", "part 1 has a phase or an amplitude, but no angle"},
        {"position 1 2 0", "position 3 2 0", "the angle of part 1 is 4 x 4, but 4 x 2 is needed"},
        {"positions 2 ", "positions 0 ", "part 1 has an angle, but the head has no positions"},
        {"factor input 1-4", "factor input 1-3,5", "part 1 reads coordinate 5, but q and k have 4"},
        {"factor input 1-4", "factor input 1-3", "this factor has 3 rows, but its part has 4"},
        {"factor matrix 6", "factor matrix 7", "is matrix 7, but the head has 6 matrices"},
        {"constant 2 4\n0x1p+0 0x0p+0 0x0p+0 0x1p+0\n0x0p+0 0x1p+0 0x0p+0 0x0p+0\n",
         "constant 2 5\n0x1p+0 0x0p+0 0x0p+0 0x1p+0 0x1p+1\n0x0p+0 0x1p+0 0x0p+0 0x0p+0 0x0p+0\n",
         "a factor of part 3 has constants in one of its two matrices only"},
        {"trainable w 4 4", "trainable w 4 6", "the projection of part 2 is 4 x 6, but 4 x 4 is needed"},
        {"map identity identity\n", "map relu identity\n", "part 3 is complex: it has no map"},
        {"map exp exp", "map exp sine", "\"sine\" is not a word that belongs here"},
        {"branch coordinates input 9-12", "branch dense matrix 3 1-4", "takes rows of a matrix"},
        {"lift width 4", "lift width 5", "4 x 4, but 4 x 5 is needed"},
        {"lift width 4 positions 2 key_mask 1 parts 4", "lift width 4 positions 2 key_mask 2 parts 4",
         "\"2\" is not an integer in 0..1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fpa_head *head = NULL;
        fpa_error error = {0};
        char text[sizeof written + 128];
        const char *at = strstr(written, cases[i].from), *message = cases[i].message;
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - written), written, cases[i].to,
                 at + strlen(cases[i].from));
        assert_int_not_equal(head_parse(text, strlen(text), &head, &error), FPA_OK);
        if (!strstr(error.message, message))
            fail_msg("case %zu: %s: %s", i, error.where, error.message);
    }
}

/* Of a map's values by its difference quotients; the kink of relu is left out. */
static void slopes_are_those_of_the_maps(void **state)
{
    const double step = 1e-6;
    for (int map = 0; map < FPA_MAPS; map++)
        for (double y = -30.25; y < 5; y += 0.5) {
            const double quotient =
                (lift_map((fpa_map)map, y + step) - lift_map((fpa_map)map, y - step)) / (2 * step);
            if (fabs(quotient - lift_map_slope((fpa_map)map, y)) > 1e-6 * (1 + fabs(quotient)))
                fail_msg("%s at %g: %g is not %g", map_name((fpa_map)map), y, lift_map_slope((fpa_map)map, y),
                         quotient);
        }
    assert_true(lift_map(FPA_MAP_ELU_PLUS_ONE, 2) == 3 && lift_map(FPA_MAP_ELU_PLUS_ONE, -1) == exp(-1));
    assert_true(fabs(lift_map(FPA_MAP_SOFTPLUS, 1) - log(1 + exp(1))) < 1e-15);
    assert_true(lift_map(FPA_MAP_SOFTPLUS, 1000) == 1000 && lift_map(FPA_MAP_SOFTPLUS, -1000) == 0);
    assert_true(lift_map(FPA_MAP_SILU, 0) == 0 && lift_map(FPA_MAP_ONE, 7) == 1 &&
                lift_map(FPA_MAP_RELU, -7) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lift_survives_its_text),
        cmocka_unit_test(a_factor_may_add_constants),
        cmocka_unit_test(a_lift_obeys_its_rules),
        cmocka_unit_test(slopes_are_those_of_the_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
