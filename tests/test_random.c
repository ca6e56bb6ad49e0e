/* Random heads from a fixed seed, emitted, compiled and verified against the formula. */
#include "runtime/builder.h"
#include "runtime/verify/verify.h"
#include "gen/gen.h"
#include "c_hurry.h"
#include "dear.h"
#include "random_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 20260211, HEADS = 16, FIXED = 8 /* of make test */ };

/* pairs: a head whose products are of pairs of bf16 on a target that has them */
static fpa_status verify_random(uint64_t seed, const char *target, bool pairs, fpa_error *error)
{
    random_limits limits = random_all;
    fpa_source source = {0};
    fpa_object object = {0};
    fpa_module module = {0};
    fpa_verdict verdict;
    limits.half = seed % 4 == 0;
    limits.lift = seed % 4 != 0; /* exponentials pass the range of f16 */
    fpa_head *head = random_head(seed, &limits);
    assert_non_null(head);
    if (pairs) {
        head->dtype = FPA_BF16;
        head->dv = 16 * (1 + (int)(seed % 5));
    }
    fpa_status status = source_generate(head, target, &source, error);
    if (!status && pairs)
        assert_int_equal(source.facts.arithmetic, FPA_BF16);
    if (!status)
        status = builder_c.compile(NULL, &source, &object, error);
    if (!status)
        status = backend_c.load(NULL, &object, head->name, &module, error);
    if (!status)
        status = verify_module(head, &source.facts, &module, &verdict, error);
    if (status) {
        char *text = head_print(head);
        print_message("seed %llu, %s:\n%s\n", (unsigned long long)seed, target, text ? text : "");
        free(text);
    }
    if (module.handle)
        backend_c.unload(&module);
    free(object.bytes);
    source_free(&source);
    head_free(head);
    return status;
}

/* The targets of this machine take turns. */
static void random_heads_agree_with_the_formula_at_every_vector_width(void **state)
{
    (void)state;
    print_message("random heads: seeds %d..%d\n", SEED, SEED + HEADS - 1);
    c_hurry();
    const int heads = dear_tests() ? HEADS : FIXED;
    dear_report("heads", heads, HEADS);
    for (int i = 0; i < heads; i++) {
        const fpa_target *target;
        for (int t = i; !target_runs(target = target_at(t % target_count())); t++)
            ;
        fpa_error error = {0};
        if (verify_random(SEED + (uint64_t)i, target->name, false, &error))
            fail_msg("seed %d for %s: %s: %s", SEED + i, target->name, error.where, error.message);
    }
}

static void random_heads_of_bf16_agree_with_the_formula_in_pairs(void **state)
{
    const fpa_target *target = target_find("c:avx512bf16");
    (void)state;
    if (!target_runs(target)) {
        print_message("this machine has no AVX512_BF16\n");
        skip();
    }
    c_hurry();
    for (uint64_t seed = SEED + 100; seed < SEED + 100 + (dear_tests() ? HEADS : FIXED); seed++) {
        fpa_error error = {0};
        if (verify_random(seed, target->name, true, &error))
            fail_msg("seed %llu: %s: %s", (unsigned long long)seed, error.where, error.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_heads_agree_with_the_formula_at_every_vector_width),
        cmocka_unit_test(random_heads_of_bf16_agree_with_the_formula_in_pairs),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
