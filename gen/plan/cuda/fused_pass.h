/* fused_pass: fused_chunk whose threads all do the same, for heads whose state lies in the registers of one
 * block of four warps. Two mechanisms: fused_panel by mma.sync, of panels or of coordinates as they lie;
 * fused_coordinates by the instructions of a warpgroup, of coordinates as they lie. */
#ifndef FPAC_GEN_PLAN_CUDA_FUSED_PASS_H
#define FPAC_GEN_PLAN_CUDA_FUSED_PASS_H

#include "split_panel.h"

typedef struct fpa_fused_pass {
    bool coordinates; /* q and k are read as they lie, here and in chunk_state */
    bool maps;        /* coordinates are maps of q and k, made where these lie: fused_coordinates */
    bool lifts;       /* or are made by warpgroups of its own, as NAME_lift_rows makes them by warpgroups */
    bool turns;       /* which positions turn: both sides by one warpgroup */
    bool own; /* or each side by the warpgroup that multiplies it: who adds keys, and who reads the state */
    int lifters; /* warpgroups that make them */
    int places;  /* of 64 tokens' coordinates of one side */
    int given, matrices,
        positions; /* then: places of q and k as they are given, and of what they are multiplied by; */
    int walker_registers, lifter_registers; /* of threads that walk, and of those that make coordinates */
    int stages;                             /* fused_coordinates: panels in shared memory */
    int copies; /* and of the state; one: it is written when all have read the one before */
    fpa_cuda_memory memory;
    int blocks; /* on a multiprocessor at a time */
    /* of chunk_state, which adds up totals of segments */
    fpa_cuda_memory chunk_state;
    int chunk_state_blocks;
} fpa_fused_pass;

const char *plan_fused_panel(const fpa_cuda_inputs *in, void *plan);
const char *plan_fused_coordinates(const fpa_cuda_inputs *in, void *plan);
void print_fused_coordinates(FILE *out, const fpa_plan *plan);
void geometry_fused_panel(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
void geometry_fused_coordinates(const fpa_plan *plan, struct fpa_cuda_geometry *geometry);
extern const fpa_field fused_pass_fields[];

/* Places of chunk_state that reads coordinates as they lie; bytes of a panel's vectors. */
fpa_cuda_memory place_coordinate_keys(const fpa_plan *plan, const fpa_split_panel *split);
/* Why a head's state does not go through a block's registers; NULL: it does. */
const char *fused_pass_refusal(const fpa_cuda_inputs *in);
/* The same beside a split that is not chosen yet; whether fused_panel would suit then. */
const char *fused_split_refusal(const fpa_cuda_inputs *in, const fpa_split_panel *split);
bool fused_panel_suits(const fpa_cuda_inputs *in, const fpa_split_panel *split);
/* Whether all of a kernel's shared memory is there. */
bool fused_fits(const fpa_plan *plan, const fpa_fused_pass *pass);

#endif
