/* work: what the kernels of a plan do, counted. Units are abi/cuda_call.h's: for one head, all blocks that share it
 * together. Products and bytes are exact. Passes of shared memory and instructions are those of the emitted loops, read
 * from their disassembly: coefficients say of what. tests/test_cuda_work.c holds them beside the counters of a GPU
 * (bench/results/current/counts.txt). */
#ifndef FPAC_GEN_PLAN_CUDA_WORK_H
#define FPAC_GEN_PLAN_CUDA_WORK_H

#include "gen/plan/plan.h"

/* Each fills the entries of its kernels in geometry->work, and geometry->totals. They are called by the mechanisms'
 * own geometry(). */
void work_scans(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_split_outer(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_split_panel(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_fused_panel(const fpa_plan *plan, struct fpa_cuda_geometry *geometry); /* after its split's */
void work_fused_packed(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_fused_coordinates(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_cluster_scan(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void work_decode(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);

/* Rows that matrices form for a token, and products of 16 x 8 x 16 for 16 tokens of them: the matrices' 16-bit parts,
 * high and low, and 8 rows at a time. */
int work_projected_rows(const fpa_plan *plan);
int work_projection_products(const fpa_plan *plan);
/* Products of 16 queries and 64 keys: dots, then scores with values. */
int work_score_products(const fpa_plan *plan, int dot_steps);
/* Bytes of q, k, v or o for 16 tokens, of so many numbers a token. */
int work_operand_bytes(const fpa_plan *plan, int numbers);
/* Dots and monomials beyond the first one: each takes a pass over the scores. */
int work_more_scores(const fpa_plan *plan);

#endif
