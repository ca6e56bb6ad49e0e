/* Random heads from a fixed seed, emitted, compiled and verified against the formula. */
#include "runtime/builder.h"
#include "runtime/verify/verify.h"
#include "gen/gen.h"
#include "c_hurry.h"
#include "claims.h"
#include "dear.h"
#include "random_head.h"

#include <stdlib.h>
#include <string.h>

enum { SEED = 20260211, HEADS = 16, LONG_TERM = 3 /* branches: features are products of more than two */ };

/* What heads differ in, as bits. */
static uint64_t classes_of(const fpa_head *head, int target)
{
    enum { GATE, OPEN, SUM, LIFT, MATRIX, LEARNED, LONG, TYPES, NORMALIZERS = 12, WIDTHS = 20, TARGETS = 32 };
    uint64_t bits[] = {head->gate, !head->causal, head->term_count > 1, head->lift != NULL, 0, 0, 0};
    for (int i = 0; i < head->matrix_count; i++)
        bits[head->matrices[i].data ? MATRIX : LEARNED] = 1;
    for (int i = 0; i < head->term_count; i++)
        bits[LONG] |= head->terms[i].branch_count >= LONG_TERM;
    uint64_t classes = UINT64_C(1) << (TYPES + (int)head->dtype) |
                       UINT64_C(1) << (NORMALIZERS + (int)head->normalize) |
                       UINT64_C(1) << (WIDTHS + head->dv / 16) | UINT64_C(1) << (TARGETS + target);
    for (int i = GATE; i <= LONG; i++)
        classes |= bits[i] << i;
    return classes;
}

/* make test: a head of the list that has a class which none before it had. */
static bool is_wanted(const fpa_head *head, int target, uint64_t *seen)
{
    const uint64_t classes = classes_of(head, target), before = *seen;
    *seen |= classes;
    return dear_tests() || *seen != before;
}

/* pairs: a head whose products are of pairs of bf16 on a target that has them */
static fpa_head *make_head(uint64_t seed, bool pairs)
{
    random_limits limits = random_all;
    limits.half = seed % 4 == 0;
    limits.lift = seed % 4 != 0; /* exponentials pass the range of f16 */
    fpa_head *head = random_head(seed, &limits);
    assert_non_null(head);
    if (pairs) {
        head->dtype = FPA_BF16;
        head->dv = 16 * (1 + (int)(seed % 5));
    }
    return head;
}

/* seed: for the message */
static void verify_random(const fpa_head *head, const char *target, bool pairs, uint64_t seed)
{
    fpa_source source = {0};
    fpa_object object = {0};
    fpa_module module = {0};
    fpa_verdict verdict;
    fpa_error error = {0};
    fpa_status status = source_generate(head, target, &source, &error);
    if (!status && pairs)
        assert_int_equal(source.facts.arithmetic, FPA_BF16);
    if (!status)
        status = builder_c.compile(NULL, &source, &object, &error);
    if (!status)
        status = backend_c.load(NULL, &object, head->name, &module, &error);
    if (!status)
        status = verify_module(head, &source.facts, &module, &verdict, &error);
    if (status) {
        char *text = head_print(head);
        print_message("%s\n", text ? text : "");
        free(text);
        fail_msg("seed %llu for %s: %s: %s", (unsigned long long)seed, target, error.where, error.message);
    }
    backend_c.unload(&module);
    free(object.bytes);
    source_free(&source);
}

/* Those of HEADS seeds that are wanted; the targets of this machine take turns, unless there is one for all. */
static void verify_heads(uint64_t first, const fpa_target *only)
{
    uint64_t seen = 0;
    int running = 0;
    print_message("random heads: seeds %llu..%llu\n", (unsigned long long)first,
                  (unsigned long long)first + HEADS - 1);
    c_hurry();
    for (int i = 0; i < HEADS; i++) {
        int t = i;
        while (only ? target_at(t % target_count()) != only : !target_runs(target_at(t % target_count())))
            t++;
        const fpa_target *target = target_at(t % target_count());
        fpa_head *head = make_head(first + (uint64_t)i, only != NULL);
        if (is_wanted(head, t % target_count(), &seen)) {
            verify_random(head, target->name, only != NULL, first + (uint64_t)i);
            running++;
        }
        head_free(head);
    }
    dear_report("heads, each with something that none before it has,", running, HEADS);
}

/* The targets of this machine take turns. */
static void random_heads_agree_with_the_formula_at_every_vector_width(void **state)
{
    verify_heads(SEED, NULL);
}

static void random_heads_of_bf16_agree_with_the_formula_in_pairs(void **state)
{
    const fpa_target *target = target_find("c:avx512bf16");
    if (!target_runs(target)) {
        print_message("this machine has no AVX512_BF16\n");
        skip();
    }
    verify_heads(SEED + 100, target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_heads_agree_with_the_formula_at_every_vector_width),
        cmocka_unit_test(random_heads_of_bf16_agree_with_the_formula_in_pairs),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
