/* test_chunk_state_choice: by which kernel, by how many blocks and in how many segments keys are walked, and
 * whether queries are read beside the walk. */
#include "split_choice.h"

#include <stdio.h>
#include <string.h>

#include "base/round.h"
#include "machine/cuda_carry.h"
#include "random_work.h"

enum { SEED = 20261122, RANDOM_TASKS = 20000 };

/* A head that fused_packed computes. */
static struct fpa_cuda_geometry fused;

static int plan_heads(void **state)
{
    plan_squares();
    fused = planned_geometry("d = 16, dv = 64, terms = taylor { degree = 2 }", "cuda:sm_90a");
    assert_true(fused.fused_total > 0);
    return 0;
}

/* About half a GPU of blocks keeps up with the queries on the rest. */
static void many_heads_are_followed(void **state)
{
    static const struct {
        const struct fpa_cuda_geometry *geometry;
        int64_t heads, tokens;
    } calls[] = {{&square64, 16, 65536}, {&square64, 64, 16384},  {&square64, 256, 4096},
                 {&square64, 16, 4000},  {&square128, 16, 65536}, {&square128, 128, 8192}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const fpa_gpu_room room = on_gpu(calls[i].geometry);
        const fpa_candidate choice = choose(calls[i].geometry, &room, calls[i].heads, calls[i].tokens);
        print_message("%3lld heads of %5lld tokens: %lld blocks\n", (long long)calls[i].heads,
                      (long long)calls[i].tokens, (long long)choice.blocks);
        assert_true(is_overlapped(&choice));
        assert_int_equal(choice.segments, 1);
        assert_in_range(choice.blocks, MULTIPROCESSORS * 2 / 5, MULTIPROCESSORS * 3 / 4);
    }
}

static void few_heads_are_walked_in_segments(void **state)
{
    const fpa_gpu_room room = on_gpu(&square64);
    for (int64_t heads = 1; heads <= 8; heads *= 2) {
        const fpa_candidate choice = choose(&square64, &room, heads, 65536);
        assert_false(is_overlapped(&choice));
        assert_true(choice.segments > 1);
        assert_int_equal(choice.blocks, 0); /* one a walk */
    }
}

static void nobody_follows_where_launches_cannot_overlap_or_nobody_queries(void **state)
{
    fpa_gpu_room room = on_gpu(&square64);
    const fpa_call_size keys_only = {
        .form = FORM_CHUNKED, .batch = 1, .length = 38400, .heads = 16, .state_out = true};
    fpa_candidate choice = choose_for(&square64, &room, &keys_only);
    assert_false(is_overlapped(&choice));
    room.overlaps = false;
    choice = choose(&square64, &room, 16, 65536);
    assert_false(is_overlapped(&choice));
}

/* Verification has few heads, and wants blocks that take several walks. */
static void a_block_may_have_all_heads(void **state)
{
    enum { MANY = 200 };
    const fpa_gpu_room room = on_gpu(&square64);
    const fpa_call_size size = {
        .form = FORM_CHUNKED, .batch = 1, .length = 1000, .query_heads = 2, .heads = 2};
    fpa_candidate list[MANY];
    bool large = false, small = false;
    const int count = cuda_candidates(&square64, &room, &size, list, MANY);
    assert_in_range(count, 1, MANY);
    for (int i = 0; i < count; i++)
        if (!list[i].refused && is_overlapped(&list[i]) && list[i].blocks == slices_of(&square64, &list[i]))
            *(list[i].variant & SPLIT_SMALL ? &small : &large) = true;
    assert_true(large && small);
}

/* A block keeps its strips from one walk to the next: whole heads side by side. Who waits for blocks beside
 * it needs them to have begun: there is room for all. */
static void every_choice_can_be_launched(void **state)
{
    uint64_t seed = SEED;
    print_message("seed %d\n", SEED);
    for (int i = 0; i < RANDOM_TASKS; i++) {
        struct fpa_cuda_geometry g = i % 2 ? square64 : square128;
        g.chunk_state_slices = 1 + (int)(next_random(&seed) % 200);
        g.small_state_slices =
            next_random(&seed) % 2 ? g.chunk_state_slices + 1 + (int)(next_random(&seed) % 9) : 0;
        g.column_blocks = 1 + (int)(next_random(&seed) % 3);
        g.kernel[CUDA_CHUNK_STATE_SMALL].threads = g.small_state_slices ? 512 : 0;
        random_work(&seed, 1, &g);
        fpa_gpu_room room = on_gpu(&g);
        room.multiprocessors = 1 + (int)(next_random(&seed) % 200);
        const int64_t heads = 1 + (int64_t)(next_random(&seed) % 1000),
                      group = 1 + (int64_t)(next_random(&seed) % 8);
        const int64_t chunks = 1 + (int64_t)(next_random(&seed) % 500);
        const fpa_call_size size = {.form = FORM_CHUNKED,
                                    .batch = 1,
                                    .length = chunks * g.chunk,
                                    .query_heads = heads * group,
                                    .heads = heads,
                                    .state_out = true};
        const fpa_candidate choice = choose_for(&g, &room, &size);
        const int64_t head = slices_of(&g, &choice) * g.column_blocks;
        assert_in_range(choice.segments, 1, is_overlapped(&choice) ? 1 : chunks);
        assert_int_equal(choice.segments, cuda_divide(chunks, choice.segments).segments);
        if (!is_overlapped(&choice)) {
            assert_int_equal(choice.blocks, 0);
            continue;
        }
        assert_true(choice.blocks >= head && choice.blocks % head == 0);
        assert_true(choice.blocks <= heads * head && choice.blocks <= room.multiprocessors);
    }
}

/* Keys of one stage are waited for where copies are read, among whose tiles the others lie. */
static void only_calls_that_read_copies_wait_for_keys(void **state)
{
    struct fpa_cuda_geometry waiting = square128;
    waiting.awaited_keys = 1 << 20;
    for (int form = 0; form < 2; form++) {
        const fpa_call_size size = {.form = form ? FORM_CHUNKED : FORM_PARALLEL,
                                    .batch = 1,
                                    .length = 16 * square128.chunk,
                                    .query_heads = 16,
                                    .heads = 16};
        const fpa_gpu_room room = on_gpu(&square128);
        const double late = choose_for(&waiting, &room, &size).cost.seconds,
                     cost = choose_for(&square128, &room, &size).cost.seconds;
        assert_true(form ? late > 2 * cost : late == cost);
    }
}

/* ---- one pass ---- */

static cuda_division divide(int multiprocessors, int64_t walks, int64_t queries, int64_t chunks)
{
    const fpa_gpu_room room = {.gpu = gpu_find("h200"),
                               .multiprocessors = multiprocessors,
                               .occupancy[CUDA_FUSED_CHUNK] = 1}; /* and none for clusters */
    const fpa_call_size size = {.form = FORM_CHUNKED,
                                .batch = 1,
                                .length = chunks * fused.chunk,
                                .query_heads = walks * queries,
                                .heads = walks};
    const cuda_task task = cuda_task_of(&fused, &room, &size);
    fpa_candidate best;
    assert_true(cuda_fastest_fused(&fused, &room, &size, &best));
    assert_string_equal(best.mechanism, "fused_chunk");
    const cuda_division division = cuda_divide_fused(&task, best.segments);
    assert_int_equal(division.segments, best.segments); /* as many as it says */
    return division;
}

/* Two segments fill a GPU: the first goes on while the totals of its keys are added up for the second. */
static void a_first_segment_is_longer_where_it_would_wait(void **state)
{
    const cuda_division two = divide(MULTIPROCESSORS, 64, 1, 64);
    assert_int_equal(two.segments, 2);
    print_message("the first of two has %lld of 64 chunks\n", (long long)two.first_chunks);
    assert_in_range(two.first_chunks, 33, 63);
    assert_true(two.first_chunks > two.segment_chunks);
}

static void segments_of_a_few_sequences_are_alike(void **state)
{
    const cuda_division many = divide(MULTIPROCESSORS, 16, 1, 256);
    assert_in_range(many.segments, 3, MOST_SEGMENTS);
    assert_int_equal(many.first_chunks, many.segment_chunks);
}

/* All places are taken while totals are made, and behind them: 7 totals beside a first segment, then 8 segments. */
static void first_segments_that_go_ahead_are_shorter(void **state)
{
    const fpa_gpu_room room = {
        .gpu = gpu_find("h200"), .multiprocessors = MULTIPROCESSORS, .occupancy[CUDA_FUSED_CHUNK] = 1};
    const fpa_call_size size = {
        .form = FORM_CHUNKED, .batch = 1, .length = 342 * fused.chunk, .query_heads = 16, .heads = 16};
    const cuda_task task = cuda_task_of(&fused, &room, &size);
    fpa_candidate best;
    assert_true(cuda_fastest(&fused, &room, &size, &best));
    assert_int_equal(best.variant, FUSED_AHEAD);
    assert_int_equal(best.segments, 1 + MULTIPROCESSORS / 16);
    const cuda_division division = cuda_divide_ahead(&task, best.segments);
    assert_in_range(division.first_chunks, 1, division.segment_chunks - 1);
    assert_int_equal(division.first_chunks + (best.segments - 1) * division.segment_chunks, task.chunks);
}

static void segments_behind_first_ones_cover_every_sequence(void **state)
{
    uint64_t seed = SEED;
    for (int i = 0; i < RANDOM_TASKS; i++) {
        const int64_t chunks = FUSED_AHEAD_LEAST + (int64_t)(next_random(&seed) % 500);
        const int64_t most = chunks < MOST_SEGMENTS ? chunks : MOST_SEGMENTS;
        const int64_t segments =
            FUSED_AHEAD_LEAST + (int64_t)(next_random(&seed) % (uint64_t)(most - FUSED_AHEAD_LEAST + 1));
        const fpa_gpu_room room = {.gpu = gpu_find("h200"), .multiprocessors = MULTIPROCESSORS};
        const fpa_call_size size = {
            .form = FORM_CHUNKED, .batch = 1, .length = chunks * fused.chunk, .query_heads = 1, .heads = 1};
        const cuda_task task = cuda_task_of(&fused, &room, &size);
        const cuda_division division = cuda_divide_ahead(&task, segments);
        assert_int_equal(division.segments, segments);
        assert_true(division.first_chunks >= 1 && division.segment_chunks >= 1);
        assert_int_equal(division.first_chunks + (segments - 1) * division.segment_chunks, chunks);
    }
}

static void sequences_that_fill_the_gpu_are_walked_in_one_piece(void **state)
{
    assert_int_equal(divide(MULTIPROCESSORS, 8 * MULTIPROCESSORS, 1, 16).segments, 1);
}

static void segments_cover_every_sequence(void **state)
{
    uint64_t seed = SEED;
    for (int i = 0; i < RANDOM_TASKS; i++) {
        const int64_t walks = 1 + (int64_t)(next_random(&seed) % 300),
                      group = 1 + (int64_t)(next_random(&seed) % 4);
        const int64_t chunks = 1 + (int64_t)(next_random(&seed) % 500);
        const cuda_division call = divide(1 + (int)(next_random(&seed) % 200), walks, group, chunks);
        assert_in_range(call.segments, 1, MOST_SEGMENTS);
        assert_true(call.first_chunks >= 1 && call.segment_chunks >= 1);
        assert_true(call.first_chunks + (call.segments - 1) * call.segment_chunks >= chunks);
        assert_true(call.segments == 1 ||
                    call.first_chunks + (call.segments - 2) * call.segment_chunks < chunks);
    }
}

/* ---- heads whose queries are taken together ---- */

static int64_t beside(int query_tokens, int64_t chunk, int64_t length, int64_t batch, int64_t heads)
{
    const struct fpa_cuda_geometry g = {.chunk = chunk, .query_tokens = query_tokens, .column_blocks = 2};
    const fpa_gpu_room room = {.gpu = gpu_find("h200"), .multiprocessors = MULTIPROCESSORS};
    const fpa_call_size size = {
        .form = FORM_CHUNKED, .batch = batch, .length = length, .query_heads = heads, .heads = heads};
    const cuda_task task = cuda_task_of(&g, &room, &size);
    return cuda_heads_beside(&task);
}

static void heads_of_a_sequence_are_read_together(void **state)
{
    assert_int_equal(beside(384, 384, 65536, 4, 16), 16); /* no other sequence's */
    assert_int_equal(beside(64, 768, 65536, 1, 16), MULTIPROCESSORS / (768 / 64 * 2));
    assert_int_equal(beside(64, 64 * MULTIPROCESSORS, 65536, 1, 16), 1);
    assert_int_equal(beside(64, 4096, 4096, 16, 16), 3); /* one chunk: twice a GPU's blocks */
    assert_int_equal(beside(64, 64, 64, 2, 16), 32);
}

/* ---- states that are handed over, copies that are kept ---- */

static double seconds_with(bool states, int64_t tokens)
{
    const fpa_gpu_room room = on_gpu(&square64);
    const fpa_call_size size = {.form = FORM_CHUNKED,
                                .batch = 16,
                                .length = tokens,
                                .query_heads = 16,
                                .heads = 16,
                                .state_in = states,
                                .state_out = states};
    return choose_for(&square64, &room, &size).cost.seconds;
}

/* Of short pieces more than of long ones: 1.48 times as long was measured on an H100 (docs/decisions/0060-what-pieces-cost.md). */
static void states_that_come_and_go_take_time(void **state)
{
    const double of_short = seconds_with(true, 2048) / seconds_with(false, 2048),
                 of_long = seconds_with(true, 8192) / seconds_with(false, 8192);
    print_message("pieces of 2,048 tokens %.3f, of 8,192 %.3f times as long as without states\n", of_short,
                  of_long);
    assert_true(of_short > of_long && of_long > 1 && of_short > 1.4 && of_short < 1.6);
}

/* They walk longer than queries wait, so that more blocks walk. */
static void more_blocks_walk_where_states_come_and_go(void **state)
{
    const fpa_gpu_room room = on_gpu(&square64);
    fpa_call_size size = {.form = FORM_CHUNKED, .batch = 16, .length = 2048, .query_heads = 16, .heads = 16};
    const fpa_candidate without = choose_for(&square64, &room, &size);
    size.state_in = size.state_out = true;
    const fpa_candidate with = choose_for(&square64, &room, &size);
    assert_true(is_overlapped(&without) && is_overlapped(&with));
    assert_true(with.blocks > without.blocks && with.blocks <= MULTIPROCESSORS * 2 / 3);
}

static void kept_copies_are_of_longer_chunks_where_tokens_are_many(void **state)
{
    const fpa_gpu_room room = on_gpu(&square64);
    fpa_call_size size = {
        .form = FORM_CHUNKED, .batch = 1, .length = 1 << 19, .heads = 16, .state_out = true};
    fpa_candidate walk;
    int64_t chunk;
    assert_true(cuda_fastest_walk(&square64, &room, &size, &walk, &chunk));
    assert_true(chunk > square64.chunk && chunk % square64.chunk == 0);
    assert_false(walk.variant & SPLIT_OVERLAPPED);
    size.length = square64.chunk;
    assert_true(cuda_fastest_walk(&square64, &room, &size, &walk, &chunk));
    assert_int_equal(chunk, square64.chunk);
}

/* A copy's parts fill an eighth of the GPU, and are through before the queries are. */
static void kept_copies_are_carried_beside_the_queries(void **state)
{
    const fpa_call_size size = {.form = FORM_CHUNKED,
                                .batch = 1,
                                .length = 1 << 19,
                                .query_heads = 16,
                                .heads = 16,
                                .state_in = true};
    fpa_gpu_room room = on_gpu(&square64);
    cuda_task task = cuda_task_of(&square64, &room, &size);
    cuda_take_chunk(&task, 3 * (int64_t)square64.chunk);
    const cuda_split_common apart = cuda_split_common_of(&task);
    const cuda_carry carry = cuda_carry_beside(&task, 2);
    const int64_t copy = (int64_t)square64.features * square64.columns;
    assert_int_equal(carry.parts, divide_up(copy, square64.segment_scan_elements));
    assert_true(carry.blocks > 0 && carry.blocks % carry.parts == 0 && 2 * carry.blocks <= MULTIPROCESSORS);
    print_message("%lld blocks beside; %.0f us, apart %.0f and %.0f\n", (long long)carry.blocks,
                  1e6 * carry.cost.seconds, 1e6 * apart.copies.seconds, 1e6 * apart.output.seconds);
    assert_true(carry.cost.seconds < apart.copies.seconds + apart.output.seconds);
    room.overlaps = false;
    task = cuda_task_of(&square64, &room, &size);
    assert_int_equal(cuda_carry_beside(&task, 2).blocks, 0);
    room = on_gpu(&square64);
    room.multiprocessors = (int)carry.parts; /* none would be left for queries */
    task = cuda_task_of(&square64, &room, &size);
    assert_int_equal(cuda_carry_beside(&task, 2).blocks, 0);
}

/* No sequence, or none of any token: nothing is divided by what is not there. */
static void an_empty_call_carries_nothing(void **state)
{
    const fpa_gpu_room room = on_gpu(&square64);
    for (int empty = 0; empty < 2; empty++) {
        const fpa_call_size size = {.form = FORM_CHUNKED,
                                    .batch = empty,
                                    .length = empty ? 0 : 4096,
                                    .query_heads = 16,
                                    .heads = 16,
                                    .state_in = true,
                                    .state_out = true};
        cuda_task task = cuda_task_of(&square64, &room, &size);
        assert_int_equal(cuda_carry_beside(&task, 1).blocks, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_heads_are_followed),
        cmocka_unit_test(few_heads_are_walked_in_segments),
        cmocka_unit_test(nobody_follows_where_launches_cannot_overlap_or_nobody_queries),
        cmocka_unit_test(a_block_may_have_all_heads),
        cmocka_unit_test(every_choice_can_be_launched),
        cmocka_unit_test(only_calls_that_read_copies_wait_for_keys),
        cmocka_unit_test(a_first_segment_is_longer_where_it_would_wait),
        cmocka_unit_test(segments_of_a_few_sequences_are_alike),
        cmocka_unit_test(sequences_that_fill_the_gpu_are_walked_in_one_piece),
        cmocka_unit_test(segments_cover_every_sequence),
        cmocka_unit_test(first_segments_that_go_ahead_are_shorter),
        cmocka_unit_test(segments_behind_first_ones_cover_every_sequence),
        cmocka_unit_test(heads_of_a_sequence_are_read_together),
        cmocka_unit_test(states_that_come_and_go_take_time),
        cmocka_unit_test(more_blocks_walk_where_states_come_and_go),
        cmocka_unit_test(kept_copies_are_of_longer_chunks_where_tokens_are_many),
        cmocka_unit_test(kept_copies_are_carried_beside_the_queries),
        cmocka_unit_test(an_empty_call_carries_nothing),
    };
    return cmocka_run_group_tests(tests, plan_heads, NULL);
}
