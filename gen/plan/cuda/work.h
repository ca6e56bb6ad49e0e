/* work: what kernels do, counted. Units are abi/cuda_call.h's: for one head, all blocks that share it together. Products
 * and bytes are exact. Passes of shared memory and instructions are those of the emitted loops, as their disassembly
 * has them: each coefficient says of what. Beside the counters of a GPU they stand in
 * bench/results/current/counts.txt.
 *
 * Planners make sizes by them, so that they are given a mechanism's sizes before these are part of a plan. */
#ifndef FPAC_GEN_PLAN_CUDA_WORK_H
#define FPAC_GEN_PLAN_CUDA_WORK_H

#include "split_outer.h"
#include "split_panel.h"

/* Each fills the entries of its kernels in geometry->work, and geometry->totals. */
void work_scans(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_split_outer(const fpa_plan *plan, const fpa_split_outer *split, struct fpa_cuda_geometry *geometry);
void work_split_panel(const fpa_plan *plan, const fpa_split_panel *split, struct fpa_cuda_geometry *geometry);
void work_fused_panel(const fpa_plan *plan, struct fpa_cuda_geometry *geometry); /* after its split's */
void work_fused_rows(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_fused_packed(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_fused_coordinates(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_cluster_scan(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_decode(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);

/* One chunk_state kernel of warpgroups. */
struct fpa_cuda_kernel_work work_chunk_state(const fpa_plan *plan, const fpa_split_outer *split,
                                             const fpa_chunk_state_kernel *kernel);
/* Queries of warpgroups: once split->outer, columns and what is chosen for queries are there. */
struct fpa_cuda_kernel_work work_chunk_output(const fpa_plan *plan, const fpa_split_outer *split);
/* The same by NAME_parallel_output, once split->parallel is there, too. */
struct fpa_cuda_kernel_work work_parallel_output(const fpa_plan *plan, const fpa_split_outer *split);
/* What fpa_cuda_geometry.awaited_keys is for them. */
int work_awaited_keys(const fpa_plan *plan, const fpa_split_outer *split);

/* Rows that matrices form for a token, and products of 16 x 8 x 16 for 16 tokens of them: the matrices' 16-bit parts,
 * high and low, and 8 rows at a time. */
int work_projected_rows(const fpa_plan *plan);
int work_projection_products(const fpa_plan *plan);
/* Rows of matrices, without those that diagonals form. */
int work_matrix_rows(const fpa_plan *plan);
/* Products of 16 queries and 64 keys: dots, then scores with so many tiles of 8 columns. */
int work_score_products(int dot_steps, int columns);
/* Instructions of a head's maps for 16 tokens, where two of a multiprocessor's four schedulers have them. */
int work_maps(const fpa_plan *plan);
/* Bytes of q, k, v or o for 16 tokens, of so many numbers a token. */
int work_operand_bytes(const fpa_plan *plan, int numbers);
/* Dots and monomials beyond the first one: each takes a pass over the scores. */
int work_more_scores(const fpa_plan *plan);

/* Tokens between copies of the state that take the least time: `step`, doubled or not, at most `most`, so that sequences of
 * some thousand tokens have several. geometry has the work of chunk_state and chunk_output. */
int work_best_chunk(const fpa_plan *plan, const struct fpa_cuda_geometry *geometry, int step, int most);

#endif
