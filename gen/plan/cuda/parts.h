/* plan_cuda_parts: what several mechanisms count alike. Internal to gen/plan/cuda. */
#ifndef FPAC_GEN_PLAN_CUDA_PARTS_H
#define FPAC_GEN_PLAN_CUDA_PARTS_H

#include "base/round.h"
#include "gen/plan/features.h"
#include "gen/plan/plan.h"

static inline int largest(int a, int b)
{
    return a > b ? a : b;
}

/* Bytes from one row to the next such that 8 rows of 16 bytes lie in different banks. */
static inline int cuda_odd_pitch(int bytes)
{
    const int pitch = round_up(bytes, 16);
    return pitch / 16 % 2 ? pitch : pitch + 16;
}

/* Packed rows, and features and dots by them; NULL: no memory. */
const fpa_cuda_rows *plan_cuda_rows(const fpa_plan *plan, arena *memory);
/* Of so many units: those of a warp that holds sums of all columns, and blocks of such warps. */
void cuda_choose_slices(const fpa_plan *plan, int units, fpa_cuda_rows *rows);
/* rows->shared, of factor_row; false: no memory. */
void cuda_share_factors(arena *memory, fpa_cuda_rows *rows);

enum { PORTABLE_COLUMNS = 8 }; /* tiles of a block of portable kernels */

/* Of a state of gradients, with the one of ones. */
fpa_columns cuda_backward_columns(const fpa_head *head, int warp_units);
/* Blocks of so many tiles of 8 columns of values. */
fpa_columns cuda_columns_in(const fpa_head *head, int blocks, int tiles);
/* The fewest blocks that have at most so many tiles each. */
fpa_columns cuda_columns(const fpa_head *head, int most);
/* The most numbers by which a row of that width can begin behind a multiple of 16 bytes, if rows are contiguous
 * and the first one is aligned. */
int cuda_most_lean(int width);
/* Blocks that a multiprocessor should have at a time: few sums leave registers for more of them, which hide
 * each other's waits. tiles: of sums, 4 registers each. */
int cuda_occupancy(const fpa_plan *plan, int tiles, int bytes);
/* Whether a plan is that of a pass by fused_rows that also stores its outputs' dot products and its states, for
 * gradients of gates. */
bool cuda_leaves_dots(const fpa_plan *plan);
/* The mechanism's plan; NULL: it is not chosen. */
const void *cuda_chosen(const fpa_cuda_plan *cuda, fpa_cuda_mechanism mechanism);
void print_cuda_backward(FILE *out, const fpa_plan *plan);
/* What emitted files have once, and the geometry, from the mechanisms that are chosen. */
void cuda_compose(fpa_plan *plan);
/* Of chunked calls that fill a GPU, of few long sequences and of many shorter ones, their geometric mean. */
double cuda_typical_seconds(const fpa_plan *plan);
/* Tokens from which on the chunked form takes fewer seconds than the parallel one, for batches that fill a GPU. */
int64_t cuda_crossover(const fpa_plan *plan);

#endif
