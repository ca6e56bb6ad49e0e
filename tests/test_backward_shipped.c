/* test_backward_shipped: gradients of shipped heads, generated, compiled and compared with the formula; of each that has
 * them for the best C target. `make test` takes some of each kind, `make test-all` all. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dear.h"
#include "runtime/api/open.h"
#include "scratch.h"
#include "shipped_heads.h"

#include <cmocka.h> /* last: it defines fail() */

/* A gate, matrices shared and diagonal, dots of several rows, narrow storage; maps, learned functions of the position, random features, a mask of keys. */
static const char *const some[] = {
    "gated_linear_d32", "trainable_shared", "trainable_diagonal", "mixed_sum_d16",    "linear_d64_bf16",
    "learned_map_d32",  "fourier_d32",      "favor_d32",          "masked_mixed_d16", "elu_encoder_d32"};

static void gradients_are_those_of_the_formula(void **state)
{
    char folder[64];
    static shipped_heads all;
    int running = 0, without = 0;

    (void)state;
    scratch_make(folder);
    shipped_load(&all);
    for (int i = 0; i < all.count; i++) {
        const fpa_options options = {.cache_dir = folder, .backward = 1};
        fpa_head *head = all.item[i].head;
        const bool has = !head->window;
        char name[HEAD_MAX_NAME + 1];
        fpa_kernel *kernel = NULL;
        fpa_error error = {0};

        snprintf(name, sizeof name, "%s", head->name);
        if (!dear_tests() && !is_one_of(some, sizeof some / sizeof *some, name))
            continue;
        all.item[i].head = NULL;
        running++;
        without += !has;
        const fpa_status status = open_parsed_head(head, &options, &kernel, &error);
        if (has ? status != FPA_OK : status != FPA_UNSUPPORTED)
            fail_msg("%s: %s: %s", name, error.where, error.message);
        fpa_close(kernel);
    }
    dear_report("heads", running, all.count);
    print_message("%d of them have no gradients yet, and say so\n", without);
    assert_true(running >= (int)(sizeof some / sizeof *some));
    shipped_free(&all);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_those_of_the_formula)};

    setenv("FPA_CFLAGS", "-Og", 0);
    return cmocka_run_group_tests_name("backward shipped", tests, NULL, NULL);
}
