/* A prompt in pieces of whole chunks on a GPU: the bits of one pass, where no sequence is walked in segments, states are float32
 * and weights of features powers of two. */
#include "claims.h"
#include "gpu_problem.h"
#include "head/form.h"
#include "runtime/kernel.h"

#include <stdlib.h>
#include <string.h>

/* One of each mechanism: split by threads and by warpgroups, fused_chunk, cluster_scan. */
static const char specs[] =
    "local square = tspow { d = 32, degree = 2, block = 8 }\n"
    "return {\n"
    "  head { name = 'plain', d = 32, dv = 32, scale = 0.25, terms = square },\n"
    "  head { name = 'warpgroups', d = 32, dv = 32, scale = 0.25, dtype = 'bf16', gate = true,\n"
    "         normalize = 'sum', terms = square },\n"
    "  head { name = 'packed', d = 16, dv = 24, scale = 0.25, dtype = 'f16', gate = true, normalize = "
    "'sum',\n"
    "         terms = taylor { degree = 2 } },\n"
    "  head { name = 'coordinates', d = 64, dv = 64, scale = 0.125, dtype = 'bf16', terms = linear {} },\n"
    "}\n";
static const char *const names[] = {"plain", "warpgroups", "packed", "coordinates"};

enum { KERNELS = 4, PIECES = 3, BATCH = 16, HEADS = 8 };
static const int ends[PIECES] = {2, 4, 7}; /* chunks */

struct fixture {
    bool ready; /* there is a GPU */
    test_gpu gpu;
    fpa_kernel *kernel[KERNELS];
};

static int setup(void **state)
{
    static struct fixture f;
    const char *target = getenv("FPA_TEST_TARGET");
    const fpa_options options = {.target = target ? target : "cuda", .cache_dir = ""};
    fpa_error error;
    *state = &f;
    f.ready = gpu_open(&f.gpu, 0);
    for (int i = 0; f.ready && i < KERNELS; i++)
        if (fpa_open_text("pieces.lua", specs, names[i], &options, &f.kernel[i], &error))
            return print_error("%s: %s: %s\n", names[i], error.where, error.message), -1;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < KERNELS; i++)
        fpa_close(f->kernel[i]);
    gpu_close(&f->gpu);
    return 0;
}

typedef struct view {
    DLTensor tensor;
    int64_t shape[4], stride[4];
} view;

/* Tokens first .. of every sequence; NULL where the operand is not given. */
static DLTensor *tokens_of(view *to, const gpu_operand *whole, int64_t first, int64_t count)
{
    const int axes = whole->tensor.ndim;
    int64_t elements = 1;
    if (axes == 0)
        return NULL;
    memcpy(to->shape, whole->shape, sizeof to->shape);
    for (int a = axes - 1; a >= 0; a--) {
        to->stride[a] = elements;
        elements *= to->shape[a];
    }
    to->shape[1] = count;
    to->tensor = whole->tensor;
    to->tensor.shape = to->shape;
    to->tensor.strides = to->stride;
    to->tensor.byte_offset += (uint64_t)(first * to->stride[1] * whole->tensor.dtype.bits / 8);
    return &to->tensor;
}

/* Each piece from the state that the one before has left, in place. */
static void run_pieces(gpu_problem *problem, const fpa_kernel *kernel, int64_t chunk)
{
    gpu_operand *all = problem->operand;
    gpu_problem piece = *problem;
    problem_poison(problem);
    for (int i = 0; i < PIECES; i++) {
        const int64_t first = i ? ends[i - 1] * chunk : 0, count = ends[i] * chunk - first;
        view q, k, v, o, gate;
        size_t size;
        fpa_error error;
        piece.tensors.q = tokens_of(&q, &all[IN_Q], first, count);
        piece.tensors.k = tokens_of(&k, &all[IN_K], first, count);
        piece.tensors.v = tokens_of(&v, &all[IN_V], first, count);
        piece.tensors.o = tokens_of(&o, &all[OUT_O], first, count);
        piece.tensors.log_gate = tokens_of(&gate, &all[IN_GATE], first, count);
        piece.tensors.state_in = i ? &all[OUT_STATE].tensor : NULL;
        const CUdeviceptr workspace = problem_workspace(&piece, kernel, FPA_FORM_CHUNKED, &size);
        assert_ok(
            fpa_forward(kernel, FPA_FORM_CHUNKED, &piece.tensors, (void *)(uintptr_t)workspace, size, &error),
            &error);
        CUDA(problem->gpu, cuStreamSynchronize(problem->gpu->stream));
        CUDA(problem->gpu, cuMemFree(workspace));
    }
    problem_fetch(problem);
}

/* The way that such a call goes by. */
static fpa_candidate way_of(const fpa_kernel *kernel, int64_t length, bool resumed)
{
    fpa_candidate all[32] = {0}, *best = NULL;
    const fpa_call_size size = {.form = FORM_CHUNKED,
                                .batch = BATCH,
                                .length = length,
                                .query_heads = HEADS,
                                .heads = HEADS,
                                .state_in = resumed,
                                .state_out = true};
    const int count = kernel->module.candidates(&kernel->module, &size, all, 32);
    for (int i = 0; i < count && i < 32; i++)
        if (!all[i].refused && (!best || all[i].cost.seconds < best->cost.seconds))
            best = &all[i];
    assert_non_null(best);
    return *best;
}

/* The whole and all pieces go by one mechanism, which walks each sequence from its first token to its last. */
static bool is_walked_whole(const fpa_kernel *kernel, int64_t chunk)
{
    const fpa_candidate whole = way_of(kernel, ends[PIECES - 1] * chunk, false);
    bool same = whole.segments == 1 || strcmp(whole.mechanism, "cluster_scan") == 0;
    for (int i = 0; i < PIECES; i++) {
        const fpa_candidate way = way_of(kernel, (ends[i] - (i ? ends[i - 1] : 0)) * chunk, i > 0);
        same = same && strcmp(way.mechanism, whole.mechanism) == 0 && way.segments == whole.segments;
    }
    return same;
}

static void pieces_of_whole_chunks_have_the_bits_of_one_pass(void **state)
{
    static const int outputs[] = {OUT_O, OUT_STATE};
    struct fixture *f = *state;
    if (!f->ready)
        skip();
    int compared = 0;
    for (int i = 0; i < KERNELS; i++) {
        const fpa_description *is = fpa_describe(f->kernel[i]);
        if (!is_walked_whole(f->kernel[i], is->chunk)) {
            print_message("%s on %s: walked in segments, or by another mechanism, at some length\n", names[i],
                          is->target);
            continue;
        }
        compared++;
        const problem_shape shape = {BATCH, (int64_t)ends[PIECES - 1] * is->chunk, HEADS, HEADS};
        gpu_problem whole, pieces;
        problem_make(&whole, is, &shape, 11, &f->gpu);
        problem_make(&pieces, is, &shape, 11, &f->gpu);
        problem_run(&whole, f->kernel[i], FPA_FORM_CHUNKED);
        run_pieces(&pieces, f->kernel[i], is->chunk);
        for (int j = 0; j < 2; j++)
            if (memcmp(whole.operand[outputs[j]].host, pieces.operand[outputs[j]].host,
                       whole.operand[outputs[j]].size) != 0)
                fail_msg("%s on %s, chunks of %d tokens: %s of pieces has other bits; the distance is %g",
                         names[i], is->target, is->chunk, j ? "state_out" : "o",
                         operand_distance(&pieces.operand[outputs[j]], &whole.operand[outputs[j]]));
        problem_free(&whole);
        problem_free(&pieces);
    }
    assert_true(compared > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_whole_chunks_have_the_bits_of_one_pass),
    };
    return cmocka_run_group_tests_name("cuda pieces", tests, setup, teardown);
}
