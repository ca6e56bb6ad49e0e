/* test_walk_choice: by which kernel, by how many blocks and in how many segments keys are walked, and whether
 * queries follow. */
#include "runtime/cuda/chunk_state_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cuda/launch_fused.h"

enum { MULTIPROCESSORS = 132, SEED = 20261122, RANDOM_TASKS = 20000 };

/* As fpac explain has them of specs/storage.lua: d = 64, and d = 128. */
static const struct fpa_cuda_geometry square64 = {.features = 2304,
                                                  .columns = 64,
                                                  .column_blocks = 1,
                                                  .copy_bytes = 2,
                                                  .chunk = 384,
                                                  .chunk_state_slices = 3,
                                                  .small_state_slices = 4,
                                                  .chunk_state_clocks = 451,
                                                  .small_state_clocks = 376,
                                                  .chunk_output_clocks = 1749,
                                                  .persistent = 1};
static const struct fpa_cuda_geometry square128 = {.features = 8704,
                                                   .columns = 128,
                                                   .column_blocks = 1,
                                                   .copy_bytes = 2,
                                                   .chunk = 768,
                                                   .chunk_state_slices = 23,
                                                   .chunk_state_clocks = 451,
                                                   .chunk_output_clocks = 12373,
                                                   .persistent = 1};

static struct fpa_cuda_module on_gpu(const struct fpa_cuda_geometry *geometry)
{
    return (struct fpa_cuda_module){.geometry = *geometry,
                                    .multiprocessors = MULTIPROCESSORS,
                                    .occupancy[CUDA_CHUNK_STATE] = 1,
                                    .occupancy[CUDA_CHUNK_STATE_SMALL] = geometry->small_state_slices > 0,
                                    .occupancy[CUDA_CHUNK_OUTPUT] = 1,
                                    .overlaps = true};
}

static chunk_state_choice choose(const struct fpa_cuda_module *cuda, int64_t heads, int64_t tokens)
{
    const int64_t chunks = divide_up(tokens, cuda->geometry.chunk);
    const chunk_state_task task = {heads, heads, chunks, chunks - 1};
    return chunk_state_choose(cuda, &task);
}

/* About half a GPU of blocks keeps up with the queries on the rest. */
static void many_heads_are_followed(void **state)
{
    static const struct {
        const struct fpa_cuda_geometry *geometry;
        int64_t heads, tokens;
    } calls[] = {{&square64, 16, 65536}, {&square64, 64, 16384},  {&square64, 256, 4096},
                 {&square64, 16, 4000},  {&square128, 16, 65536}, {&square128, 128, 8192}};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const struct fpa_cuda_module cuda = on_gpu(calls[i].geometry);
        const chunk_state_choice choice = choose(&cuda, calls[i].heads, calls[i].tokens);
        print_message("%3lld heads of %5lld tokens: %lld blocks\n", (long long)calls[i].heads,
                      (long long)calls[i].tokens, (long long)choice.blocks);
        assert_true(choice.overlapped);
        assert_int_equal(choice.segments, 1);
        assert_in_range(choice.blocks, MULTIPROCESSORS * 2 / 5, MULTIPROCESSORS * 3 / 4);
    }
}

static void few_heads_are_walked_in_segments(void **state)
{
    const struct fpa_cuda_module cuda = on_gpu(&square64);
    (void)state;
    for (int64_t heads = 1; heads <= 8; heads *= 2) {
        const chunk_state_choice choice = choose(&cuda, heads, 65536);
        assert_false(choice.overlapped);
        assert_true(choice.segments > 1);
        assert_int_equal(choice.blocks, heads * choice.slices * choice.segments);
    }
}

static void nobody_follows_where_launches_cannot_overlap_or_nobody_queries(void **state)
{
    struct fpa_cuda_module cuda = on_gpu(&square64);
    const chunk_state_task keys_only = {16, 0, 100, 100};
    (void)state;
    assert_false(chunk_state_choose(&cuda, &keys_only).overlapped);
    cuda.overlaps = false;
    assert_false(choose(&cuda, 16, 65536).overlapped);
    cuda.schedule = SCHEDULE_CROWDED;
    assert_false(choose(&cuda, 16, 65536).overlapped);
}

/* Verification and the emulation have few heads, and want blocks that take several walks. */
static void in_a_crowd_a_block_has_all_heads(void **state)
{
    struct fpa_cuda_module cuda = on_gpu(&square64);
    (void)state;
    cuda.schedule = SCHEDULE_CROWDED;
    const chunk_state_choice choice = choose(&cuda, 2, 1000);
    assert_true(choice.overlapped && !choice.second);
    assert_int_equal(choice.blocks, square64.chunk_state_slices);
    assert_int_equal(choice.segments, 1);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* A block keeps its strips from one walk to the next: whole heads side by side. Who waits for blocks beside
 * it needs them to have begun: there is room for all. */
static void every_choice_can_be_launched(void **state)
{
    uint64_t seed = SEED;
    (void)state;
    print_message("seed %d\n", SEED);
    for (int i = 0; i < RANDOM_TASKS; i++) {
        struct fpa_cuda_geometry g = i % 2 ? square64 : square128;
        g.chunk_state_slices = 1 + (int)(next_random(&seed) % 200);
        g.small_state_slices =
            next_random(&seed) % 2 ? g.chunk_state_slices + 1 + (int)(next_random(&seed) % 9) : 0;
        g.column_blocks = 1 + (int)(next_random(&seed) % 3);
        struct fpa_cuda_module cuda = on_gpu(&g);
        cuda.multiprocessors = 1 + (int)(next_random(&seed) % 200);
        const int64_t heads = 1 + (int64_t)(next_random(&seed) % 1000),
                      group = 1 + (int64_t)(next_random(&seed) % 8);
        const int64_t chunks = 1 + (int64_t)(next_random(&seed) % 500);
        const chunk_state_task task = {heads, heads * group, chunks, chunks};
        const chunk_state_choice choice = chunk_state_choose(&cuda, &task);
        const int64_t head = (int64_t)choice.slices * g.column_blocks;
        assert_int_equal(choice.slices, choice.second ? g.small_state_slices : g.chunk_state_slices);
        assert_in_range(choice.segments, 1, choice.overlapped ? 1 : chunks);
        assert_true(choice.blocks >= head && choice.blocks % head == 0);
        assert_true(choice.blocks <= heads * head * choice.segments);
        if (choice.overlapped)
            assert_true(choice.blocks <= cuda.multiprocessors);
        else
            assert_int_equal(choice.blocks, heads * head * choice.segments);
    }
}

/* ---- one pass ---- */

static struct fpa_cuda_call divide(int64_t multiprocessors, int64_t walks, int64_t queries, int64_t chunks)
{
    const struct fpa_cuda_module cuda = {.multiprocessors = (int)multiprocessors,
                                         .occupancy[CUDA_FUSED_CHUNK] = 1};
    struct fpa_cuda_call call = {.chunks = chunks};
    fused_divide(&cuda, walks * queries, walks, &call);
    return call;
}

/* Two segments fill a GPU: the first goes on while the totals of its keys are added up for the second. */
static void a_first_segment_is_longer_where_it_would_wait(void **state)
{
    const struct fpa_cuda_call two = divide(MULTIPROCESSORS, 64, 1, 64);
    const struct fpa_cuda_call eight = divide(MULTIPROCESSORS, 16, 1, 256);
    (void)state;
    assert_int_equal(two.segments, 2);
    assert_in_range(two.first_chunks, 36, 44);
    assert_int_equal(eight.segments, 8);
    assert_int_equal(eight.first_chunks, eight.segment_chunks);
    assert_int_equal(divide(MULTIPROCESSORS, 256, 1, 16).segments, 1);
}

static void segments_cover_every_sequence(void **state)
{
    uint64_t seed = SEED;
    (void)state;
    for (int i = 0; i < RANDOM_TASKS; i++) {
        const int64_t walks = 1 + (int64_t)(next_random(&seed) % 300),
                      group = 1 + (int64_t)(next_random(&seed) % 4);
        const int64_t chunks = 1 + (int64_t)(next_random(&seed) % 500);
        const struct fpa_cuda_call call =
            divide(1 + (int64_t)(next_random(&seed) % 200), walks, group, chunks);
        assert_in_range(call.segments, 1, MOST_SEGMENTS);
        assert_true(call.first_chunks >= 1 && call.segment_chunks >= 1);
        assert_true(call.first_chunks + (call.segments - 1) * call.segment_chunks >= chunks);
        assert_true(call.segments == 1 ||
                    call.first_chunks + (call.segments - 2) * call.segment_chunks < chunks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_heads_are_followed),
        cmocka_unit_test(few_heads_are_walked_in_segments),
        cmocka_unit_test(nobody_follows_where_launches_cannot_overlap_or_nobody_queries),
        cmocka_unit_test(in_a_crowd_a_block_has_all_heads),
        cmocka_unit_test(every_choice_can_be_launched),
        cmocka_unit_test(a_first_segment_is_longer_where_it_would_wait),
        cmocka_unit_test(segments_cover_every_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
