/* Gradients on a GPU: of shipped heads, generated, compiled, and compared with the formula there, long gated sequences
 * too; as they are written and in bf16. `make test` takes some of each kind, `make test-all` all. */
#include "claims.h"
#include "dear.h"
#include "gpu_problem.h"
#include "runtime/api/open.h"
#include "scratch.h"
#include "shipped_heads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const some[] = {"gated_linear_d32", "trainable_shared", "trainable_diagonal",
                                   "mixed_sum_d16",    "linear_d64_bf16",  "tspow2_d64_b8",
                                   "taylor2_d16"};

static test_gpu gpu;
static bool ready; /* there is one */

static int find_gpu(void **state)
{
    ready = gpu_open(&gpu, 0);
    return 0;
}

static int leave_gpu(void **state)
{
    gpu_close(&gpu);
    return 0;
}

static bool is_chosen(const fpa_head *head)
{
    return source_check_backward(head, "cuda:sm_80", NULL) == FPA_OK &&
           (dear_tests() || is_one_of(some, sizeof some / sizeof *some, head->name));
}

/* head: given away. */
static bool open_gradients(fpa_head *head, const char *folder)
{
    const char *target = getenv("FPA_TEST_TARGET");
    const fpa_options options = {.target = target ? target : "cuda", .cache_dir = folder, .backward = 1};
    fpa_kernel *kernel = NULL;
    fpa_error error = {0};
    char name[HEAD_MAX_NAME + 16];
    snprintf(name, sizeof name, "%s, %s", head->name, dtype_name(head->dtype));
    const fpa_status status = open_parsed_head(head, &options, &kernel, &error);
    print_message("%s: %s\n", name, status ? error.message : fpa_describe(kernel)->backward_verdict);
    fpa_close(kernel);
    return status == FPA_OK;
}

static void gradients_are_those_of_the_formula(void **state)
{
    static shipped_heads all;
    char folder[64];
    int running = 0, wrong = 0;
    if (!ready)
        skip();
    scratch_make(folder);
    for (int narrow = 0; narrow < 2; narrow++) {
        shipped_load(&all);
        for (int i = 0; i < all.count; i++) {
            fpa_head *head = all.item[i].head;
            if (!is_chosen(head))
                continue;
            if (narrow) {
                head->dtype = FPA_BF16;
                head->products = FPA_PRODUCTS_PLAIN;
            }
            all.item[i].head = NULL;
            running++;
            wrong += !open_gradients(head, folder);
        }
        shipped_free(&all);
    }
    scratch_remove(folder);
    assert_true(running > 0);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_those_of_the_formula)};
    return cmocka_run_group_tests_name("cuda backward", tests, find_gpu, leave_gpu);
}
