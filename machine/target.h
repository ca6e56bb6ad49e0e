/* target: what code is emitted for, and how a compiler is told of it.
 *
 * Given: a name, or this machine's processor, or a device's compute capability. Gives: the row of the table of
 * targets. Generator and runtime share it; it opens no library and asks no driver. */
#ifndef FPAC_MACHINE_TARGET_H
#define FPAC_MACHINE_TARGET_H

#include <stdbool.h>

typedef struct fpa_target {
    const char *name;    /* "c:avx512", "cuda:sm_90" */
    const char *march;   /* C: words as "-march=x86-64-v4"; CUDA: "sm_90" */
    const char *machine; /* C: "x86_64" or "aarch64"; CUDA: "cuda" */
    int vector;          /* C: floats a register */
    int registers;       /* C: vector registers */
    bool pairs;          /* C: it multiplies and adds pairs of bf16 in one instruction */
    int capability;      /* CUDA: 90 for sm_90; 0: a C target */
    int shared_memory;   /* CUDA: bytes that one block may have */
    bool
        warpgroups; /* CUDA: its code runs on that capability alone, with matrix instructions of warpgroups */
} fpa_target;

int target_count(void);
const fpa_target *target_at(int index);
/* "c:avx2", "cuda:sm_90" or short "sm_90"; "c": the best that this machine's CPU runs. NULL: there
 * is no such target. ("cuda" alone is the runtime's to choose: it can ask the device.) */
const fpa_target *target_find(const char *name);
/* The best C target this machine runs, by its CPU's features. */
const fpa_target *target_best(void);
/* True when this machine's CPU can run code of the target; false of CUDA targets. */
bool target_runs(const fpa_target *target);
/* True when a device of that compute capability runs code of the CUDA target. */
bool target_fits(const fpa_target *target, int capability);
/* The best portable CUDA target whose code a device of that compute capability (90 for 9.0) runs, or NULL. */
const fpa_target *target_for_capability(int capability);

#endif
