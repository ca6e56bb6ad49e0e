/* fused_pass: the plan of fused_chunk without specialised warps for outputs and keys, for heads whose state fits
 * into the registers of one block of four warps. Two mechanisms use it: fused_panel, by mma.sync, from panels of
 * packed rows or from coordinates as stored in memory; fused_coordinates, by wgmma, from coordinates. */
#ifndef FPAC_GEN_PLAN_CUDA_FUSED_PASS_H
#define FPAC_GEN_PLAN_CUDA_FUSED_PASS_H

#include "split_panel.h"

typedef struct fpa_fused_pass {
    bool coordinates; /* q and k are operands as stored in memory, here and in chunk_state */
    bool maps;   /* coordinates are element-wise maps of q and k, computed in their place in shared memory */
    bool lifts;  /* coordinates are computed by further warpgroups of the block, as by lift_groups */
    bool turns;  /* these coordinates are rotated by positions: one warpgroup computes both sides */
    bool own;    /* each side's coordinates are computed by the warpgroup that multiplies them */
    int lifters; /* warpgroups that compute coordinates */
    int places;  /* buffers, each for the coordinates of 64 queries or keys */
    int given, matrices, positions; /* lifts: where q and k, matrices and positions lie in shared memory */
    /* registers of a thread that holds the state, and of one that computes coordinates */
    int walker_registers, lifter_registers;
    int stages; /* fused_coordinates: panels in shared memory */
    int copies; /* copies of the state in shared memory; one: it is overwritten when all have read it */
    fpa_cuda_memory memory;
    int blocks; /* on a multiprocessor at a time */
    /* chunk_state, which computes totals of segments */
    fpa_cuda_memory chunk_state;
    int chunk_state_blocks;
} fpa_fused_pass;

const char *plan_fused_panel(const fpa_cuda_inputs *in, void *plan);
const char *plan_fused_coordinates(const fpa_cuda_inputs *in, void *plan);
void print_fused_coordinates(FILE *out, const fpa_plan *plan);
void geometry_fused_panel(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void geometry_fused_coordinates(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field fused_pass_fields[];

/* Shared memory of chunk_state when it reads coordinates as stored in memory. */
fpa_cuda_memory place_coordinate_keys(const fpa_plan *plan, const fpa_split_panel *split);
/* Why a block's registers cannot hold a head's state; NULL: they can. */
const char *fused_pass_refusal(const fpa_cuda_inputs *in);
/* The same for a split mechanism that is not chosen yet; whether fused_panel would suit then. */
const char *fused_split_refusal(const fpa_cuda_inputs *in, const fpa_split_panel *split);
bool fused_panel_suits(const fpa_cuda_inputs *in, const fpa_split_panel *split);
/* Whether the target has the shared memory that the kernel needs. */
bool fused_fits(const fpa_plan *plan, const fpa_fused_pass *pass);

#endif
