/* target: what code is emitted for, and how a compiler is told of it.
 *
 * Given: a name, or this machine's processor, or a device's compute capability. Gives: the row of the table
 * of targets. Generator and runtime share it; it opens no library and asks no driver. */
#ifndef FPAC_MACHINE_TARGET_H
#define FPAC_MACHINE_TARGET_H

#include <stdbool.h>

/* Generator and runtime have a row for each: gen/backends.c, runtime/backend.c. */
typedef enum fpa_backend_index { BACKEND_C, BACKEND_CUDA, BACKENDS } fpa_backend_index;

typedef struct fpa_target {
    fpa_backend_index backend;
    const char *name;    /* "c:avx512", "cuda:sm_90" */
    const char *march;   /* C: words as "-march=x86-64-v4"; CUDA: "sm_90" */
    const char *machine; /* C: "x86_64" or "aarch64"; CUDA: "cuda" */
    int vector;          /* C: floats a register */
    int registers;       /* C: vector registers */
    bool pairs;          /* C: it multiplies and adds pairs of bf16 in one instruction */
    bool halves;         /* C: half a vector takes half of the time, on its default processor */
    bool converts;       /* C: vectors of numbers become f16, and f16 numbers, in one instruction */
    int capability;      /* CUDA: 90 for sm_90 */
    int shared_memory;   /* CUDA: bytes that one block may have */
    bool clusters;       /* CUDA: blocks form clusters, and a kernel may begin while the one before it ends */
    bool bf16_product;   /* CUDA: mul.bf16x2; else a product is an fma */
    int window_blocks; /* CUDA: of chunk_output beside a window, for which registers suffice without spills */
    bool warpgroups; /* CUDA: its code runs on that capability alone, with warpgroups' matrix instructions */
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
/* True when a machine whose best target is `best` runs code of `target`. */
bool target_fits_beside(const fpa_target *target, const fpa_target *best);
/* Of two targets of one back end that a machine runs: true when `a` is the faster one. */
bool target_is_better(const fpa_target *a, const fpa_target *b);
/* The best portable CUDA target whose code a device of that compute capability (90 for 9.0) runs, or NULL. */
const fpa_target *target_for_capability(int capability);

#endif
