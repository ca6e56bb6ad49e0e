/* Candidates of CUDA modules: the list, the fastest of it, and the kernels that a forced one launches. */
#include "machine/cuda_candidates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "head/form.h"
#include "claims.h"
#include "random_work.h"
#include "runtime/cuda/launch.h"

enum { SEED = 20261123, RANDOM_MODULES = 4000, MANY = 600 };

/* ---- modules ---- */

static int64_t below(uint64_t *seed, int64_t end)
{
    return (int64_t)(next_random(seed) % (uint64_t)end);
}

static const struct fpa_cuda_block small_block = {256, 1024, 0};

static void add_chunked(uint64_t *seed, struct fpa_cuda_geometry *g)
{
    const int kind = (int)below(seed, 4);
    g->kernel[CUDA_CHUNK_STATE] = g->kernel[CUDA_CHUNK_OUTPUT] = g->kernel[CUDA_SEGMENT_SCAN] = small_block;
    g->chunk_state_slices = 1 + (int)below(seed, 40);
    g->persistent = kind < 2; /* on warpgroups */
    random_work(seed, g->persistent, g);
    if (kind == 1) {
        g->kernel[CUDA_CHUNK_STATE_SMALL] = small_block;
        g->small_state_slices = g->chunk_state_slices + 1;
    }
    if (kind == 3) {
        g->kernel[CUDA_FUSED_CHUNK] = small_block;
        g->fused_totals = 1;
        g->fused_total = below(seed, 2) ? 4096 : 0;
    }
    if (g->fused_total)
        g->kernel[CUDA_CLUSTER_SCAN] = small_block;
    g->unmasked = kind != 3 && !below(seed, 4);
}

static struct fpa_cuda_geometry random_geometry(uint64_t *seed)
{
    struct fpa_cuda_geometry g = {.features = 16 * (int)(1 + below(seed, 300)),
                                  .columns = 8 * (int)(1 + below(seed, 17)),
                                  .column_blocks = 1 + (int)below(seed, 2),
                                  .copy_bytes = 2,
                                  .query_tokens = 64,
                                  .chunk = 64 * (int)(1 + below(seed, 8)),
                                  .state_element = 4,
                                  .segment_scan_elements = 2048,
                                  .decode_features = 16,
                                  .decode_cluster = 8,
                                  .decode_resident_row = 256,
                                  .decode_resident_most = 226 << 10};
    add_chunked(seed, &g);
    g.state_elements = g.features * g.columns;
    g.kernel[CUDA_DECODE] = g.kernel[CUDA_DECODE_RECENT] = g.kernel[CUDA_SPLIT_REDUCTION] = small_block;
    if (below(seed, 2))
        g.kernel[CUDA_DECODE_RESIDENT] = small_block;
    return g;
}

static fpa_call_size random_size(uint64_t *seed)
{
    fpa_call_size size = {.form = (int)below(seed, FORMS),
                          .batch = below(seed, 20) ? 1 + below(seed, 4) : 0,
                          .length = below(seed, 3) ? 1 + below(seed, 40000) : below(seed, 2),
                          .heads = below(seed, 20) ? 1 + below(seed, 40) : 0,
                          .state_in = below(seed, 2),
                          .state_out = below(seed, 2)};
    size.query_heads = size.heads * below(seed, 3);
    if (size.form == FORM_RECURRENT && size.length == 1 && below(seed, 2)) {
        size.recent = 1 + below(seed, 100);
        size.state_out = false;
    }
    return size;
}

static fpa_gpu_room room_for(const struct fpa_cuda_geometry *g)
{
    return gpu_room_of_target(g, target_find("cuda:sm_90a"));
}

/* ---- the list ---- */

static bool is_of(const fpa_candidate *candidate, cuda_mechanism mechanism)
{
    return cuda_mechanism_of(candidate) == mechanism;
}

static void expect_candidate(const fpa_candidate *candidate, const struct fpa_cuda_geometry *g,
                             const fpa_call_size *size)
{
    assert_true(cuda_mechanism_of(candidate) < MECHANISMS);
    if (candidate->refused) {
        assert_true(strlen(candidate->refused) > 10);
        return;
    }
    assert_null(cuda_refusal(g, size, candidate));
    assert_non_null(candidate->cost.limit);
    assert_true(isfinite(candidate->cost.seconds) && candidate->cost.seconds >= 0);
    assert_true(candidate->segments >= 1 && candidate->blocks >= 0);
}

/* Of those that suit no two carry the call out in the same way. */
static void expect_different(const fpa_candidate *list, int count)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i && !list[i].refused; j++)
            assert_false(!list[j].refused && strcmp(list[i].mechanism, list[j].mechanism) == 0 &&
                         list[i].variant == list[j].variant && list[i].segments == list[j].segments &&
                         list[i].blocks == list[j].blocks);
}

static void every_mechanism_is_listed_or_says_why_not(void **state)
{
    uint64_t seed = SEED;
    int suited[MECHANISMS] = {0}, refused[MECHANISMS] = {0};
    for (int n = 0; n < RANDOM_MODULES; n++) {
        const struct fpa_cuda_geometry g = random_geometry(&seed);
        const fpa_gpu_room room = room_for(&g);
        const fpa_call_size size = random_size(&seed);
        fpa_candidate list[MANY];
        const int count = cuda_candidates(&g, &room, &size, list, MANY);
        assert_in_range(count, MECHANISMS, MANY);
        for (int m = 0; m < MECHANISMS; m++) {
            int found = 0;
            for (int i = 0; i < count; i++)
                if (is_of(&list[i], (cuda_mechanism)m)) {
                    found++;
                    (*(list[i].refused ? &refused[m] : &suited[m]))++;
                }
            assert_true(found > 0);
        }
        for (int i = 0; i < count; i++)
            expect_candidate(&list[i], &g, &size);
        expect_different(list, count);
    }
    for (int m = 0; m < MECHANISMS; m++) {
        print_message("%-16s suits %d times, is refused %d times\n", cuda_mechanism_names[m], suited[m],
                      refused[m]);
        assert_true(suited[m] > 0 && refused[m] > 0);
    }
}

/* Queries wait for all keys: nothing overlaps, and every chunk but an empty one is walked. No pair is scored. */
static void without_a_mask_all_keys_are_walked_first(void **state)
{
    uint64_t seed = SEED;
    int chunked = 0;
    for (int n = 0; n < RANDOM_MODULES; n++) {
        struct fpa_cuda_geometry g = random_geometry(&seed);
        const fpa_gpu_room room = room_for(&g);
        fpa_call_size size = random_size(&seed);
        fpa_candidate list[MANY];
        size.form = FORM_CHUNKED;
        if (!g.unmasked || size.length <= g.chunk || !size.batch || !size.query_heads)
            continue;
        const int count = cuda_candidates(&g, &room, &size, list, MANY);
        for (int i = 0; i < count; i++)
            assert_true(list[i].refused ||
                        (is_of(&list[i], MECHANISM_SPLIT) && !(list[i].variant & SPLIT_OVERLAPPED)));
        const fpa_candidate overlapped = {.mechanism = "split", .segments = 1, .variant = SPLIT_OVERLAPPED};
        assert_non_null(cuda_refusal(&g, &size, &overlapped));
        g.work[CUDA_CHUNK_OUTPUT].keys.products *= 1000;
        fpa_candidate before = {0}, after;
        assert_true(cuda_fastest(&g, &room, &size, &after));
        for (int i = 0; i < count; i++)
            if (!list[i].refused && (!before.mechanism || list[i].cost.seconds < before.cost.seconds))
                before = list[i];
        assert_true(after.cost.seconds == before.cost.seconds);
        chunked++;
    }
    assert_true(chunked > 100);
}

static const fpa_candidate *least_of(const fpa_candidate *list, int count)
{
    const fpa_candidate *least = NULL;
    for (int i = 0; i < count; i++)
        if (!list[i].refused && (!least || list[i].cost.seconds < least->cost.seconds))
            least = &list[i];
    return least;
}

static void the_fastest_is_the_least_of_the_list(void **state)
{
    uint64_t seed = SEED;
    for (int n = 0; n < RANDOM_MODULES; n++) {
        const struct fpa_cuda_geometry g = random_geometry(&seed);
        const fpa_gpu_room room = room_for(&g);
        const fpa_call_size size = random_size(&seed);
        fpa_candidate list[MANY], best;
        const fpa_candidate *least = least_of(list, cuda_candidates(&g, &room, &size, list, MANY));
        assert_true(cuda_fastest(&g, &room, &size, &best));
        assert_non_null(least);
        assert_string_equal(best.mechanism, least->mechanism);
        assert_true(best.cost.seconds == least->cost.seconds && best.variant == least->variant);
        assert_int_equal(best.segments, least->segments);
        assert_int_equal(best.blocks, least->blocks);
    }
}

/* A list that is cut short has as many in all, and the first of them are the same. */
static void a_short_list_says_how_many_there_are(void **state)
{
    uint64_t seed = SEED;
    for (int n = 0; n < 100; n++) {
        const struct fpa_cuda_geometry g = random_geometry(&seed);
        const fpa_gpu_room room = room_for(&g);
        const fpa_call_size size = random_size(&seed);
        fpa_candidate all[MANY], some[MANY];
        const int count = cuda_candidates(&g, &room, &size, all, MANY), most = (int)below(&seed, count);
        memset(some, 0xff, sizeof some);
        assert_int_equal(cuda_candidates(&g, &room, &size, some, most), count);
        for (int i = 0; i < most; i++)
            assert_int_equal(some[i].segments, all[i].segments);
        for (const char *at = (const char *)&some[most]; at < (const char *)&some[MANY]; at++)
            assert_int_equal(*at, -1);
    }
}

/* ---- launches ---- */

static struct launched {
    int kernels, kernel[8];
    unsigned blocks[8], cluster[8];
} launched;

static void note(CUfunction function, unsigned blocks, unsigned cluster)
{
    assert_true(launched.kernels < 8);
    launched.kernel[launched.kernels] = (int)(uintptr_t)function - 1;
    launched.blocks[launched.kernels] = blocks;
    launched.cluster[launched.kernels++] = cluster;
}

static CUresult launch(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                       unsigned bz, unsigned bytes, CUstream stream, void **parameters, void **extra)
{
    (void)bx, (void)by, (void)bz, (void)bytes, (void)stream, (void)parameters, (void)extra;
    note(function, x * y * z, 1);
    return CUDA_SUCCESS;
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    unsigned cluster = 1;
    (void)parameters, (void)extra;
    for (unsigned i = 0; i < config->attribute_count; i++)
        if (config->attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            cluster = config->attributes[i].value.cluster.x;
    note(function, config->grid_x * config->grid_y, cluster);
    return CUDA_SUCCESS;
}

static CUresult current_context(CUcontext *context)
{
    *context = NULL;
    return CUDA_SUCCESS;
}

static CUresult set_memory(CUdeviceptr at, unsigned char byte, size_t size, CUstream stream)
{
    (void)at, (void)byte, (void)size, (void)stream;
    return CUDA_SUCCESS;
}

static CUresult encode(void *map, int type, unsigned rank, void *base, const unsigned long long *sizes,
                       const unsigned long long *strides, const unsigned *box, const unsigned *steps,
                       int interleave, int swizzle, int promotion, int fill)
{
    (void)map, (void)type, (void)rank, (void)base, (void)sizes, (void)strides, (void)box, (void)steps;
    (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    return CUDA_SUCCESS;
}

static const fpa_driver driver = {.cuCtxGetCurrent = current_context,
                                  .cuLaunchKernel = launch,
                                  .cuLaunchKernelEx = launch_ex,
                                  .cuMemsetD8Async = set_memory,
                                  .cuTensorMapEncodeTiled = encode};

static struct fpa_cuda_module module_of(const struct fpa_cuda_geometry *g)
{
    struct fpa_cuda_module cuda = {.driver = &driver, .geometry = *g, .room = room_for(g), .name = "toy"};
    for (int i = 0; i < FPA_CUDA_KERNELS; i++)
        if (g->kernel[i].threads)
            cuda.kernel[i] = (CUfunction)(uintptr_t)(i + 1);
    return cuda;
}

/* Operands that the copy engine can fetch; no kernel runs. */
static struct fpa_launch launch_of(const fpa_call_size *size)
{
    static char operand[64] __attribute__((aligned(64)));
    struct fpa_launch a = {.batch = size->batch,
                           .length = size->length,
                           .query_heads = size->query_heads,
                           .heads = size->heads,
                           .recent = size->recent,
                           .q = operand,
                           .k = operand,
                           .v = operand,
                           .o = operand};
    for (int i = 0; i < 3; i++)
        a.q_stride[i] = a.k_stride[i] = a.v_stride[i] = a.o_stride[i] = 64;
    a.state_in = size->state_in ? operand : NULL;
    a.state_out = size->state_out ? operand : NULL;
    a.workspace = operand;
    return a;
}

static bool was_launched(cuda_kernel kernel)
{
    for (int i = 0; i < launched.kernels; i++)
        if (launched.kernel[i] == (int)kernel)
            return true;
    return false;
}

static int64_t blocks_of(cuda_kernel kernel)
{
    for (int i = launched.kernels - 1; i >= 0; i--)
        if (launched.kernel[i] == (int)kernel)
            return launched.blocks[i];
    return 0;
}

static void force(const struct fpa_cuda_module *cuda, const fpa_call_size *size,
                  const fpa_candidate *candidate)
{
    const fpa_module module = {.handle = (void *)cuda};
    struct fpa_launch a = launch_of(size);
    fpa_error error = {0};
    a.workspace_size = cuda_workspace(&module, size->form, &a, candidate);
    memset(&launched, 0, sizeof launched);
    assert_ok(cuda_forward(&module, size->form, &a, candidate, NULL, &error), &error);
    if (a.workspace_size > 0) { /* just as much is needed */
        a.workspace_size--;
        assert_int_equal(cuda_forward(&module, size->form, &a, candidate, NULL, &error), FPA_INVALID);
    }
}

/* Its kernels, in as many blocks as it says. */
static void expect_launched(const struct fpa_cuda_geometry *g, const fpa_call_size *size,
                            const fpa_candidate *c)
{
    const int64_t keys = size->batch * size->heads, queries = size->batch * size->query_heads;
    const cuda_kernel walk = c->variant & SPLIT_SMALL ? CUDA_CHUNK_STATE_SMALL : CUDA_CHUNK_STATE;
    const int slices = c->variant & SPLIT_SMALL ? g->small_state_slices : g->chunk_state_slices;
    static const cuda_kernel decodes[MECHANISMS] = {[MECHANISM_DECODE] = CUDA_DECODE,
                                                    [MECHANISM_DECODE_RESIDENT] = CUDA_DECODE_RESIDENT,
                                                    [MECHANISM_DECODE_RECENT] = CUDA_DECODE_RECENT};
    switch (cuda_mechanism_of(c)) {
    case MECHANISM_SPLIT:
        assert_int_equal(blocks_of(walk),
                         c->blocks ? c->blocks : keys * c->segments * slices * g->column_blocks);
        assert_true(was_launched(CUDA_CHUNK_OUTPUT));
        assert_true(was_launched(CUDA_SEGMENT_SCAN) || c->segments == 1);
        break;
    case MECHANISM_FUSED_CHUNK:
        assert_int_equal(blocks_of(CUDA_FUSED_CHUNK),
                         queries * (c->segments - (c->variant & FUSED_AHEAD)) * g->column_blocks);
        assert_int_equal(launched.kernels, c->segments > 1 ? 2 : 1);
        break;
    case MECHANISM_CLUSTER_SCAN:
        assert_int_equal(launched.kernel[0], CUDA_CLUSTER_SCAN);
        assert_int_equal(launched.cluster[0], c->segments);
        assert_int_equal(launched.blocks[0], queries * c->segments * g->column_blocks);
        break;
    default:
        assert_int_equal(launched.kernel[0], decodes[cuda_mechanism_of(c)]);
        assert_int_equal(launched.blocks[0], keys * c->segments);
        assert_int_equal(was_launched(CUDA_SPLIT_REDUCTION), c->segments > 1 && launched.cluster[0] == 1);
    }
}

static void a_forced_candidate_launches_its_kernels(void **state)
{
    uint64_t seed = SEED;
    int forced = 0;
    for (int n = 0; n < 500; n++) {
        const struct fpa_cuda_geometry g = random_geometry(&seed);
        const struct fpa_cuda_module cuda = module_of(&g);
        fpa_call_size size = random_size(&seed);
        fpa_candidate list[MANY];
        if (size.batch * size.query_heads == 0 || size.length == 0)
            continue;
        size.state_in = true; /* so that keys are walked */
        size.state_out = size.form == FORM_PARALLEL;
        const int count = cuda_candidates(&g, &cuda.room, &size, list, MANY);
        for (int i = 0; i < count; i++)
            if (!list[i].refused) {
                force(&cuda, &size, &list[i]);
                expect_launched(&g, &size, &list[i]);
                forced++;
            }
    }
    print_message("%d candidates\n", forced);
    assert_true(forced > 3000);
}

static void what_does_not_suit_cannot_be_forced(void **state)
{
    uint64_t seed = SEED;
    const struct fpa_cuda_geometry g = random_geometry(&seed);
    const struct fpa_cuda_module cuda = module_of(&g);
    const fpa_module module = {.handle = (void *)&cuda};
    const fpa_call_size size = {
        .form = FORM_CHUNKED, .batch = 1, .length = 100, .query_heads = 1, .heads = 1};
    struct fpa_launch a = launch_of(&size);
    const fpa_candidate wrong[] = {{.mechanism = "decode", .segments = 1},
                                   {.mechanism = "no such", .segments = 1},
                                   {.mechanism = "split", .segments = 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fpa_error error = {0};
        a.workspace_size = cuda_workspace(&module, size.form, &a, &wrong[i]);
        assert_int_equal(cuda_forward(&module, size.form, &a, &wrong[i], NULL, &error), FPA_INVALID);
        assert_non_null(strstr(error.message, wrong[i].mechanism));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mechanism_is_listed_or_says_why_not),
        cmocka_unit_test(without_a_mask_all_keys_are_walked_first),
        cmocka_unit_test(the_fastest_is_the_least_of_the_list),
        cmocka_unit_test(a_short_list_says_how_many_there_are),
        cmocka_unit_test(a_forced_candidate_launches_its_kernels),
        cmocka_unit_test(what_does_not_suit_cannot_be_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
