/* test_cluster_scan: which heads have a pass by clusters, and which calls go that way. */
#include "machine/cuda_candidates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gen/plan/cuda/cluster_scan.h"
#include "head/form.h"
#include "machine/cuda_estimate.h"
#include "claims.h"
#include "planned.h"
#include "random_work.h"

enum { MULTIPROCESSORS = 132, SEED = 20261122, RANDOM_CALLS = 20000 };

/* ---- the plan ---- */

static const struct {
    const char *body, *target;
    const char *why; /* there is none; NULL: there is */
} heads[] = {
    {"d = 64, dv = 64, terms = linear {}", "cuda:sm_90a", NULL},
    {"d = 64, dv = 64, terms = linear {}, normalize = 'sum'", "cuda:sm_90a", NULL},
    {"d = 64, dv = 64, terms = linear {}, gate = true, normalize = 'max'", "cuda:sm_90a", NULL},
    {"d = 16, dv = 24, terms = linear {}, gate = true", "cuda:sm_90a", NULL},
    {"d = 64, dv = 128, terms = linear {}, dtype = 'f16'", "cuda:sm_90a", NULL},
    {"d = 64, dv = 64, terms = linear {}", "cuda:sm_90", "no coordinates"},
    {"d = 64, dv = 64, dtype = 'f32', terms = linear {}", "cuda:sm_90a", "no coordinates"},
    {"d = 16, dv = 64, terms = taylor { degree = 2 }", "cuda:sm_90a", "no coordinates"},
    {"d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 8 }", "cuda:sm_90a", "no coordinates"},
    {"d = 64, dv = 64, causal = false, terms = linear {}", "cuda:sm_90a", "not causal"},
    {"d = 64, dv = 40, terms = linear {}, normalize = 'sum'", "cuda:sm_90a", "blocks of 64 columns"},
    {"d = 64, dv = 80, terms = linear {}", "cuda:sm_90a", "blocks of 64 columns"},
    /* fused_rows takes less, and has wider blocks of columns */
    {"d = 64, dv = 128, terms = linear {}, dtype = 'f16', gate = true", "cuda:sm_90a",
     "blocks of 64 columns"},
    {"d = 128, dv = 128, terms = linear {}", "cuda:sm_90a", "blocks of 64 columns"},
    {"d = 128, dv = 128, terms = linear {}, gate = true", "cuda:sm_90a", "blocks of 64 columns"},
    {"d = 128, dv = 128, terms = linear {}, gate = true, normalize = 'sum'", "cuda:sm_90a",
     "blocks of 64 columns"},
    {"d = 64, dv = 64, terms = fourier { map = softplus }, positions = 1, normalize = 'sum'", "cuda:sm_90a",
     NULL},
    {"d = 64, dv = 64, terms = favor { d = 64, size = 128, seed = 1, gamma = 1 / 8 }, normalize = 'sum'",
     "cuda:sm_90a", NULL},
    {"d = 64, dv = 64, terms = linear { map = elu_plus_one }, normalize = 'sum'", "cuda:sm_90a", NULL},
    {"d = 128, dv = 64, terms = linear { map = relu }, gate = true", "cuda:sm_90a", NULL},
    {"d = 256, dv = 64, terms = linear {}", "cuda:sm_90a", "does not fit into the registers of a block"},
};

/* Why not, or "". */
static void plan_of(const char *body, const char *target, fpa_cluster_scan *cluster_scan, char *why,
                    int *shared_memory)
{
    planned_head made;
    planned_make(&made, body, target);
    const fpa_suited *suited = &made.plan.cuda.suited[CLUSTER_SCAN];
    assert_int_equal(made.plan.cuda.chosen[CLUSTER_SCAN], suited->plan != NULL);
    snprintf(why, WHY, "%s", suited->why);
    *cluster_scan = suited->plan ? *(const fpa_cluster_scan *)suited->plan : (fpa_cluster_scan){0};
    *shared_memory = made.plan.target->shared_memory;
    planned_free(&made);
}

static void heads_of_coordinates_are_scanned_and_others_say_why_not(void **state)
{
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        fpa_cluster_scan cluster_scan;
        char why[WHY];
        int memory;
        plan_of(heads[i].body, heads[i].target, &cluster_scan, why, &memory);
        if ((why[0] == '\0') != !heads[i].why || (heads[i].why && !strstr(why, heads[i].why)))
            fail_msg("%s: '%s'", heads[i].body, why);
    }
}

/* Slabs of boxes begin at multiples of 1024 bytes; of registers a multiprocessor has 512 for four threads, in
 * eights: of keys, two of queries or one that makes coordinates besides, and one that fetches. */
static void memory_and_registers_suffice(void **state)
{
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        fpa_cluster_scan cluster_scan;
        char why[WHY];
        int memory;
        if (heads[i].why)
            continue;
        plan_of(heads[i].body, heads[i].target, &cluster_scan, why, &memory);
        assert_in_range(cluster_scan.bytes, 1, memory);
        const int two = cluster_scan.query_registers +
                        (cluster_scan.makes ? cluster_scan.make_registers : cluster_scan.query_registers);
        assert_int_equal(cluster_scan.sequences, cluster_scan.sequence_bytes <= memory);
        assert_true(cluster_scan.at_spans >= cluster_scan.bytes && cluster_scan.at_spans % 16 == 0);
        assert_true(cluster_scan.sequence_key_registers + two + cluster_scan.sequence_fetch_registers <= 512);
        assert_int_equal(cluster_scan.at_ones % 1024, 0);
        assert_int_equal(cluster_scan.at_outputs % 1024, 0);
        assert_int_equal(cluster_scan.at_barriers % 8, 0);
        assert_true(cluster_scan.spans > 1 && cluster_scan.copies > 0);
        assert_true(cluster_scan.key_registers + two + cluster_scan.fetch_registers <= 512);
        assert_int_equal((cluster_scan.key_registers | cluster_scan.query_registers |
                          cluster_scan.make_registers | cluster_scan.fetch_registers |
                          cluster_scan.sequence_key_registers | cluster_scan.sequence_fetch_registers) %
                             8,
                         0);
    }
}

/* ---- the choice ---- */

static struct fpa_cuda_geometry linear64, gated64;

static int plan_heads(void **state)
{
    linear64 = planned_geometry("d = 64, dv = 64, terms = linear {}", "cuda:sm_90a");
    gated64 = planned_geometry("d = 64, dv = 64, terms = linear {}, gate = true", "cuda:sm_90a");
    return 0;
}

/* What an H200 has room for. */
static fpa_gpu_room h200(void)
{
    return (fpa_gpu_room){.gpu = gpu_find("h200"),
                          .multiprocessors = MULTIPROCESSORS,
                          .occupancy[CUDA_FUSED_CHUNK] = 2,
                          .cluster_counts = {0, 0, 66, 39, 30, 22, 17, 15, 15}};
}

static fpa_call_size call_of(int64_t sequences, int64_t length)
{
    return (fpa_call_size){
        .form = FORM_CHUNKED, .batch = 1, .length = length, .query_heads = sequences, .heads = sequences};
}

/* Blocks of each cluster; 0: the fastest has none. */
static int choose(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room, int64_t sequences,
                  int64_t length)
{
    const fpa_call_size size = call_of(sequences, length);
    fpa_candidate best;
    assert_true(cuda_fastest(geometry, room, &size, &best));
    return strcmp(best.mechanism, "cluster_scan") == 0 ? (int)best.segments : 0;
}

/* Measured there: docs/decisions/0015-cluster-scan.md. */
static void few_sequences_go_by_clusters(void **state)
{
    static const struct {
        int64_t sequences, length;
        int least, most; /* blocks of a cluster */
    } calls[] = {
        {64, 16384, 2, 3},  {128, 8192, 2, 2}, {32, 32768, 3, 3}, {16, 65536, 5, 6},
        {100, 16384, 2, 3}, {1, 65536, 0, 0},  {4, 65536, 0, 0},  {1024, 1024, 0, 2},
        {1280, 300, 0, 0},  {64, 100, 0, 0},   {64, 0, 0, 0},
    };
    const fpa_gpu_room room = h200();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const int blocks = choose(&linear64, &room, calls[i].sequences, calls[i].length);
        if (blocks < calls[i].least || blocks > calls[i].most)
            fail_msg("%lld sequences of %lld tokens: %d blocks a cluster", (long long)calls[i].sequences,
                     (long long)calls[i].length, blocks);
    }
}

/* Seconds of the fastest candidate by clusters over those of the fastest without. */
static double share_of_clusters(const struct fpa_cuda_geometry *geometry, int64_t sequences, int64_t length)
{
    enum { MANY = 200 };
    const fpa_gpu_room room = h200();
    const fpa_call_size size = call_of(sequences, length);
    fpa_candidate list[MANY];
    double with = INFINITY, without = INFINITY;
    const int count = cuda_candidates(geometry, &room, &size, list, MANY);
    for (int i = 0; i < count; i++)
        if (!list[i].refused) {
            double *least = strcmp(list[i].mechanism, "cluster_scan") == 0 ? &with : &without;
            *least = fmin(*least, list[i].cost.seconds);
        }
    return with / without;
}

/* Clusters do less for each gate. */
static void gates_make_clusters_worth_more(void **state)
{
    for (int64_t sequences = 16; sequences <= 1024; sequences *= 4)
        assert_true(share_of_clusters(&gated64, sequences, 4096) <
                    share_of_clusters(&linear64, sequences, 4096));
}

/* Why the list refuses cluster_scan; NULL: it does not. */
static const char *refusal(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                           int64_t sequences, int64_t length)
{
    enum { MANY = 200 };
    const fpa_call_size size = call_of(sequences, length);
    fpa_candidate list[MANY];
    const int count = cuda_candidates(geometry, room, &size, list, MANY);
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].mechanism, "cluster_scan") == 0)
            return list[i].refused;
    fail_msg("cluster_scan is not in the list");
    return NULL;
}

static void without_the_kernel_or_room_for_clusters_there_is_no_cluster_scan(void **state)
{
    struct fpa_cuda_geometry without = linear64;
    fpa_gpu_room room = h200();
    without.kernel[CUDA_CLUSTER_SCAN].threads = 0;
    assert_null(refusal(&linear64, &room, 64, 16384));
    assert_int_equal(choose(&without, &room, 64, 16384), 0);
    assert_non_null(strstr(refusal(&without, &room, 64, 16384), "no such kernel"));
    assert_non_null(strstr(refusal(&linear64, &room, 64, 100), "too short"));
    assert_non_null(strstr(refusal(&linear64, &room, 70000, 16384), "65535"));
    memset(room.cluster_counts, 0, sizeof room.cluster_counts);
    assert_int_equal(choose(&linear64, &room, 64, 16384), 0);
    assert_non_null(strstr(refusal(&linear64, &room, 64, 16384), "do not fit on the GPU"));
}

/* ---- sequences of different lengths ---- */

/* So many, of which none is longer than `longest`, with `total` tokens of 16 heads. */
static fpa_call_size packed_call(int64_t sequences, int64_t total, int64_t longest)
{
    fpa_call_size size = call_of(16, longest);
    size.batch = (total + longest / 2) / longest;
    size.sequences = sequences;
    return size;
}

/* Blocks of each cluster; 0: the fastest has none. */
static int choose_packed(const struct fpa_cuda_geometry *geometry, int64_t sequences, int64_t total,
                         int64_t longest, double *seconds)
{
    const fpa_gpu_room room = h200();
    const fpa_call_size size = packed_call(sequences, total, longest);
    fpa_candidate best;
    assert_true(cuda_fastest(geometry, &room, &size, &best));
    *seconds = best.cost.seconds;
    return strcmp(best.mechanism, "cluster_scan") == 0 ? (int)best.segments : 0;
}

/* The mixes of bench/bench_sequences.c; predicted: docs/decisions/0048-clusters-for-different-lengths.md. */
static void sequences_of_different_lengths_go_by_clusters(void **state)
{
    static const struct {
        int64_t sequences, longest;
    } mixes[] = {{1, 65536}, {223, 2042}, {34, 14868}, {11, 20761}};
    struct fpa_cuda_geometry without = linear64;
    double seconds, other;
    without.kernel[CUDA_SEQUENCE_SCAN].threads = 0;
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        assert_in_range(choose_packed(&linear64, mixes[i].sequences, 65536, mixes[i].longest, &seconds), 2,
                        MOST_CLUSTER);
        assert_int_equal(choose_packed(&without, mixes[i].sequences, 65536, mixes[i].longest, &other), 0);
        assert_true(seconds < other);
    }
    /* a span each, of which a cluster would walk thousands */
    assert_int_equal(choose_packed(&linear64, 16384, 65536, 8, &seconds), 0);
}

/* The fastest of a call whose sequences lie as one batch entry's, or do not. */
static fpa_candidate fastest_of(int64_t batch, int64_t heads_each, int64_t length, bool joined)
{
    const fpa_gpu_room room = h200();
    fpa_call_size size = call_of(heads_each, length);
    fpa_candidate best;
    size.batch = batch;
    size.joined = joined;
    assert_true(cuda_fastest(&linear64, &room, &size, &best));
    return best;
}

/* Of 8 blocks, for which there is room 15 times; where sequences are many more than clusters each has one. */
static void a_few_more_sequences_than_clusters_share_them(void **state)
{
    fpa_candidate best = fastest_of(1, 16, 65536, true);
    assert_int_equal(best.variant, SCAN_SHARED);
    assert_int_equal(best.segments, 8);
    assert_int_equal(best.blocks, 15 * 8);
    best = fastest_of(2, 16, 32768, true);
    assert_int_equal(best.variant, SCAN_SHARED);
    assert_int_equal(best.blocks, 30 * 4);
    const fpa_gpu_room room = h200();
    const fpa_call_size one = packed_call(1, 65536, 65536); /* nor is a packed one another call */
    assert_true(cuda_fastest(&linear64, &room, &one, &best));
    assert_string_equal(best.mechanism, "cluster_scan");
    assert_int_equal(best.segments, 8);
    assert_int_equal(fastest_of(1, 16, 65536, false).variant, 0);
    assert_int_equal(fastest_of(1, 16, (int64_t)1 << 29, true).variant, SCAN_SHARED);
    assert_int_equal(fastest_of(1, 16, ((int64_t)1 << 30) + 1, true).variant, 0);
}

/* Of one length, packed or not; where lengths differ, that would leave clusters idle. */
static void many_sequences_of_one_length_go_whole_to_clusters_that_stay(void **state)
{
    const fpa_gpu_room room = h200();
    const fpa_call_size equal = packed_call(16, 65536, 4096), mixed = packed_call(34, 65536, 14868);
    fpa_candidate packed, other;
    const fpa_candidate plain = fastest_of(16, 16, 4096, true);
    assert_true(cuda_fastest(&linear64, &room, &equal, &packed));
    assert_int_equal(plain.variant, SCAN_WHOLE);
    assert_int_equal(packed.variant, SCAN_WHOLE);
    assert_int_equal(plain.segments, packed.segments);
    assert_int_equal(plain.blocks, 64 * 2); /* 4 sequences each, where there is room for 66 */
    assert_int_equal(packed.blocks, plain.blocks);
    assert_true(cuda_fastest(&linear64, &room, &mixed, &other));
    assert_int_equal(other.variant, 0);
    assert_int_equal(fastest_of(16, 16, 4096, false).variant, SCAN_WHOLE); /* wherever tokens lie */
}

static void places_of_all_heads_are_counted_in_32_bits(void **state)
{
    enum { MANY = 200 };
    const fpa_gpu_room room = h200();
    const fpa_call_size size = packed_call(1, (int64_t)1 << 30, (int64_t)1 << 30);
    fpa_call_size more = size;
    fpa_candidate list[MANY];
    more.query_heads = more.heads = 1 << 10;
    for (int i = cuda_candidates(&linear64, &room, &more, list, MANY) - 1; i >= 0; i--)
        assert_true(strcmp(list[i].mechanism, "cluster_scan") != 0 || strstr(list[i].refused, "32-bit"));
    assert_true(cuda_fastest_cluster_scan(&linear64, &room, &size, list));
}

/* Also where another mechanism is the fastest, and candidates before it are many. */
static void the_fastest_of_clusters_is_found_among_all(void **state)
{
    enum { MANY = 4096 };
    static fpa_candidate list[MANY];
    const fpa_gpu_room room = h200();
    int late = 0;
    for (int64_t length = 100; length <= 1 << 20; length *= 3)
        for (int64_t sequences = 1; sequences <= 70000; sequences *= 5) {
            const fpa_call_size size = call_of(sequences, length);
            const int count = cuda_candidates(&linear64, &room, &size, list, MANY);
            double least = INFINITY;
            fpa_candidate best;
            assert_true(count <= MANY);
            for (int i = 0; i < count; i++)
                if (!list[i].refused && strcmp(list[i].mechanism, "cluster_scan") == 0) {
                    least = fmin(least, list[i].cost.seconds);
                    late += i >= 64;
                }
            assert_true(cuda_fastest_cluster_scan(&linear64, &room, &size, &best) == isfinite(least));
            if (isfinite(least)) {
                assert_string_equal(best.mechanism, "cluster_scan");
                assert_true(best.cost.seconds == least);
            }
        }
    assert_true(late > 0);
}

/* Where boxes cannot be described fused_chunk is launched as it would be by itself, and nobody looks again how. */
static void a_choice_says_what_is_launched_instead(void **state)
{
    const fpa_gpu_room room = h200();
    int several = 0;
    for (int64_t length = 1000; length <= 1 << 20; length *= 2) {
        const fpa_call_size size = call_of(16, length);
        const cuda_task task = cuda_task_of(&gated64, &room, &size);
        fpa_candidate best;
        assert_true(cuda_fastest(&gated64, &room, &size, &best));
        if (strcmp(best.mechanism, "cluster_scan") != 0)
            continue;
        assert_int_equal(best.fused_segments, cuda_fused_segments(&task));
        several += best.fused_segments > 1;
    }
    assert_true(several > 0);
}

/* The grid is [walks][blocks]: 65,535 rows at most; no block is without a span. */
static void every_choice_can_be_launched(void **state)
{
    uint64_t seed = SEED;
    print_message("seed %d\n", SEED);
    for (int i = 0; i < RANDOM_CALLS; i++) {
        fpa_gpu_room room = h200();
        room.occupancy[CUDA_FUSED_CHUNK] = 1 + (int)(next_random(&seed) % 2);
        room.multiprocessors = 1 + (int)(next_random(&seed) % 200);
        for (int n = 2; n <= MOST_CLUSTER; n++)
            room.cluster_counts[n] = (int)(next_random(&seed) % (unsigned)(room.multiprocessors / n + 1));
        const int64_t sequences = 1 + (int64_t)(next_random(&seed) % (i % 2 ? 200 : 200000));
        const int64_t length = 1 + (int64_t)(next_random(&seed) % 100000);
        const int blocks = choose(&linear64, &room, sequences, length);
        if (blocks == 0)
            continue;
        assert_in_range(blocks, 2, MOST_CLUSTER);
        assert_true(room.cluster_counts[blocks] > 0 && sequences <= 65535);
        assert_true((blocks - 1) * 128 < length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_of_coordinates_are_scanned_and_others_say_why_not),
        cmocka_unit_test(memory_and_registers_suffice),
        cmocka_unit_test(few_sequences_go_by_clusters),
        cmocka_unit_test(the_fastest_of_clusters_is_found_among_all),
        cmocka_unit_test(gates_make_clusters_worth_more),
        cmocka_unit_test(without_the_kernel_or_room_for_clusters_there_is_no_cluster_scan),
        cmocka_unit_test(sequences_of_different_lengths_go_by_clusters),
        cmocka_unit_test(a_few_more_sequences_than_clusters_share_them),
        cmocka_unit_test(many_sequences_of_one_length_go_whole_to_clusters_that_stay),
        cmocka_unit_test(places_of_all_heads_are_counted_in_32_bits),
        cmocka_unit_test(a_choice_says_what_is_launched_instead),
        cmocka_unit_test(every_choice_can_be_launched),
    };
    return cmocka_run_group_tests(tests, plan_heads, NULL);
}
