/* test_sequences_choice: how sequences of different lengths are walked by the split schedule, and which are whole. */
#include "split_choice.h"

#include "machine/cuda_chunk.h"

static int plan_heads(void **state)
{
    plan_squares();
    return 0;
}

/* ---- sequences in one batch ---- */

static fpa_candidate choose_packed(int64_t sequences, int64_t total, int64_t longest)
{
    static const int32_t somewhere;
    const fpa_gpu_room room = on_gpu(&square64);
    const struct fpa_launch launch = {.batch = sequences,
                                      .length = longest,
                                      .total = total,
                                      .query_heads = 16,
                                      .heads = 16,
                                      .cu_seqlens = &somewhere};
    const fpa_call_size size = call_size(FORM_CHUNKED, &launch);
    return choose_for(&square64, &room, &size);
}

static void equal_lengths_are_walked_as_a_batch_is(void **state)
{
    const fpa_gpu_room room = on_gpu(&square64);
    const fpa_call_size batch = {
        .form = FORM_CHUNKED, .batch = 16, .length = 4000, .query_heads = 16, .heads = 16};
    const fpa_candidate expected = choose_for(&square64, &room, &batch),
                        packed = choose_packed(16, 64000, 4000);
    assert_int_equal(packed.variant, expected.variant);
    assert_int_equal(packed.blocks, expected.blocks);
    assert_int_equal(packed.segments, expected.segments);
}

/* Where the longest is not known, all tokens are one sequence's. */
static void lengths_that_nobody_knows_are_walked_as_one(void **state)
{
    const fpa_gpu_room room = on_gpu(&square64);
    const fpa_candidate one = choose(&square64, &room, 16, 65536), many = choose_packed(16, 65536, 65536);
    assert_int_equal(many.variant, one.variant);
    assert_int_equal(many.blocks, one.blocks);
    assert_int_equal(many.segments, one.segments);
}

/* Each has the same heads of all sequences. Of equal lengths all blocks have as many walks, whose they are. */
static void blocks_that_walk_have_as_much_whatever_the_lengths(void **state)
{
    static const struct {
        int64_t sequences, longest;
    } mixes[] = {{34, 14868}, {11, 20761}}; /* of bench/bench_sequences.c */
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        const fpa_candidate best = choose_packed(mixes[i].sequences, 65536, mixes[i].longest);
        assert_true(is_overlapped(&best));
        print_message("%lld sequences: %lld blocks of %lld slices, %.0f us\n", (long long)mixes[i].sequences,
                      (long long)best.blocks, (long long)slices_of(&square64, &best),
                      1e6 * best.cost.seconds);
        assert_int_equal(16 % (best.blocks / slices_of(&square64, &best)), 0);
    }
    const fpa_candidate equal = choose_packed(16, 65536, 4096);
    assert_int_equal(equal.blocks, 22 * slices_of(&square64, &equal));
}

static double seconds_of_form(const struct fpa_cuda_geometry *geometry, fpa_form_index form, int64_t length)
{
    const fpa_gpu_room room = on_gpu(geometry);
    const fpa_call_size size = {
        .form = form, .batch = (1 << 20) / length, .length = length, .query_heads = 16, .heads = 16};
    return choose_for(geometry, &room, &size).cost.seconds;
}

/* A sequence is whole up to about the length from which on the chunked form takes less. */
static void sequences_are_whole_up_to_where_forms_cross(void **state)
{
    const struct fpa_cuda_geometry *const heads[] = {&square64, &square128};
    for (int i = 0; i < 2; i++) {
        const int64_t whole = cuda_whole_tokens(gpu_find("h200"), heads[i], heads[i]->chunk);
        print_message("whole up to %lld tokens\n", (long long)whole);
        assert_true(seconds_of_form(heads[i], FORM_PARALLEL, whole * 2 / 3) <
                    seconds_of_form(heads[i], FORM_CHUNKED, whole * 2 / 3));
        assert_true(seconds_of_form(heads[i], FORM_PARALLEL, whole * 3 / 2) >
                    seconds_of_form(heads[i], FORM_CHUNKED, whole * 3 / 2));
    }
}

static int64_t whole_tokens(const fpa_call_size *size)
{
    const fpa_gpu_room room = on_gpu(&square64);
    cuda_task task = cuda_task_of(&square64, &room, size);
    cuda_take_tail(&task);
    return task.whole;
}

static void where_states_are_asked_for_or_lengths_are_alike_none_is_whole(void **state)
{
    fpa_call_size size = {
        .form = FORM_CHUNKED, .batch = 4, .length = 16384, .sequences = 34, .query_heads = 16, .heads = 16};
    assert_true(whole_tokens(&size) > square64.chunk);
    size.state_out = true;
    assert_int_equal(whole_tokens(&size), 0);
    size.state_out = false, size.sequences = 4;
    assert_int_equal(whole_tokens(&size), 0);
    size.sequences = 0;
    assert_int_equal(whole_tokens(&size), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_lengths_are_walked_as_a_batch_is),
        cmocka_unit_test(lengths_that_nobody_knows_are_walked_as_one),
        cmocka_unit_test(blocks_that_walk_have_as_much_whatever_the_lengths),
        cmocka_unit_test(sequences_are_whole_up_to_where_forms_cross),
        cmocka_unit_test(where_states_are_asked_for_or_lengths_are_alike_none_is_whole),
    };
    return cmocka_run_group_tests_name("sequences choice", tests, plan_heads, NULL);
}
