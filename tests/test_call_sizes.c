/* test_call_sizes: which heads' queries blocks of NAME_chunk_output take in turn. */
#include "runtime/cuda/sizes.h"

#include <string.h>

#include "base/round.h"
#include "head/form.h"
#include "machine/cuda_mechanism.h"
#include "claims.h"
#include "planned.h"

enum { MULTIPROCESSORS = 132 };

static struct fpa_cuda_module module;

static int plan_head(void **state)
{
    module.geometry =
        planned_geometry("d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 8 }", "cuda:sm_90a");
    module.room = (fpa_gpu_room){.gpu = gpu_find("h200"),
                                 .multiprocessors = MULTIPROCESSORS,
                                 .occupancy[CUDA_CHUNK_STATE] = 1,
                                 .occupancy[CUDA_CHUNK_OUTPUT] = 1,
                                 .overlaps = true};
    return 0;
}

static int64_t beside(int form, int64_t length, int64_t batch, int64_t query_heads, int64_t heads,
                      fpa_candidate candidate)
{
    const struct fpa_launch launch = {
        .batch = batch, .length = length, .query_heads = query_heads, .heads = heads};
    cuda_sizes s;
    candidate.mechanism = "split";
    find_sizes(&module, &launch, form, &candidate, NULL, &s);
    return s.call.beside;
}

static int64_t parallel_beside(int64_t length, int64_t batch, int64_t query_heads)
{
    return beside(FORM_PARALLEL, length, batch, query_heads, 1, (fpa_candidate){.segments = 1});
}

/* In the parallel form items of as many heads as fill the GPU twice, one head fewer would not. */
static void heads_beside_each_other_fill_the_gpu_twice(void **state)
{
    for (int64_t length = 1; length < 200000; length = 3 * length + 7) {
        const int64_t items = divide_up(length, module.geometry.query_tokens) * module.geometry.column_blocks;
        const int64_t heads = parallel_beside(length, 1000, 1);
        assert_true(heads * items >= 2 * MULTIPROCESSORS);
        assert_true((heads - 1) * items < 2 * MULTIPROCESSORS);
    }
    assert_int_equal(parallel_beside(module.geometry.query_tokens, 1000, 1),
                     divide_up(2 * MULTIPROCESSORS, module.geometry.column_blocks));
}

static void there_are_no_more_than_the_calls_and_one_of_long_sequences(void **state)
{
    assert_int_equal(parallel_beside(64, 3, 5), 15);
    assert_int_equal(parallel_beside(1 << 20, 16, 16), 1);
}

/* Kernels divide by it, but blocks that there are none of do not come so far. */
static void an_empty_call_divides_by_nothing(void **state)
{
    assert_int_equal(parallel_beside(0, 2, 1), 2);
    assert_int_equal(parallel_beside(64, 0, 1), 0);
}

/* Beside a walk: the query heads of the keys that are walked at a time; behind one those of a sequence. */
static void beside_a_walk_they_are_those_that_are_walked(void **state)
{
    const int64_t slices = module.geometry.chunk_state_slices * module.geometry.column_blocks;
    const fpa_candidate walk = {.segments = 1, .blocks = 22 * slices, .variant = SPLIT_OVERLAPPED};
    const fpa_candidate behind = {.segments = 1};
    assert_int_equal(beside(FORM_CHUNKED, 4096, 16, 16, 16, walk), 22);
    assert_int_equal(beside(FORM_CHUNKED, 4096, 16, 16, 4, walk), 22 * 4);
    assert_int_equal(beside(FORM_CHUNKED, 4096, 16, 16, 4, behind), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_beside_each_other_fill_the_gpu_twice),
        cmocka_unit_test(there_are_no_more_than_the_calls_and_one_of_long_sequences),
        cmocka_unit_test(an_empty_call_divides_by_nothing),
        cmocka_unit_test(beside_a_walk_they_are_those_that_are_walked),
    };
    return cmocka_run_group_tests_name("call sizes", tests, plan_head, NULL);
}
