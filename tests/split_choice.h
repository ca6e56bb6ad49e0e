/* What the split schedule's choices are tried with: two heads, a GPU, and the candidate that is the fastest. */
#ifndef FPAC_TESTS_SPLIT_CHOICE_H
#define FPAC_TESTS_SPLIT_CHOICE_H

#include "machine/cuda_candidates.h"

#include "head/form.h"
#include "machine/cuda_estimate.h"
#include "claims.h"
#include "planned.h"
#include "runtime/backend.h"

enum { MULTIPROCESSORS = 132 };

/* Heads of specs/storage.lua. */
static struct fpa_cuda_geometry square64, square128;

static void plan_squares(void)
{
    square64 =
        planned_geometry("d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 8 }", "cuda:sm_90a");
    square128 = planned_geometry("d = 128, dv = 128, terms = tspow { d = 128, degree = 2, block = 8 }",
                                 "cuda:sm_90a");
    assert_true(square64.persistent && square64.small_state_slices > 0 && square128.persistent);
}

static fpa_gpu_room on_gpu(const struct fpa_cuda_geometry *geometry)
{
    return (fpa_gpu_room){.gpu = gpu_find("h200"),
                          .multiprocessors = MULTIPROCESSORS,
                          .occupancy[CUDA_CHUNK_STATE] = 1,
                          .occupancy[CUDA_CHUNK_STATE_SMALL] = geometry->small_state_slices > 0,
                          .occupancy[CUDA_CHUNK_OUTPUT] = 1,
                          .overlaps = true};
}

static bool is_overlapped(const fpa_candidate *candidate)
{
    return candidate->variant & SPLIT_OVERLAPPED;
}

static int64_t slices_of(const struct fpa_cuda_geometry *geometry, const fpa_candidate *candidate)
{
    return candidate->variant & SPLIT_SMALL ? geometry->small_state_slices : geometry->chunk_state_slices;
}

static fpa_candidate choose_for(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room,
                                const fpa_call_size *size)
{
    fpa_candidate best;
    assert_true(cuda_fastest(geometry, room, size, &best));
    assert_string_equal(best.mechanism, "split");
    return best;
}

static fpa_candidate choose(const struct fpa_cuda_geometry *geometry, const fpa_gpu_room *room, int64_t heads,
                            int64_t tokens)
{
    const fpa_call_size size = {
        .form = FORM_CHUNKED, .batch = 1, .length = tokens, .query_heads = heads, .heads = heads};
    return choose_for(geometry, room, &size);
}

#endif
