/* target: what code is emitted for, and the compiler's option for it.
 *
 * Given: a name, this machine's processor, or a device's compute capability. Gives: a row of the table of targets. Used by generator and
 * runtime; it opens no library and asks no driver. */
#ifndef FPAC_MACHINE_TARGET_H
#define FPAC_MACHINE_TARGET_H

#include <stdbool.h>

/* Generator and runtime have a row for each: gen/backends.c, runtime/backend.c. */
typedef enum fpa_backend_index { BACKEND_C, BACKEND_CUDA, BACKENDS } fpa_backend_index;

typedef struct fpa_target {
    fpa_backend_index backend;
    const char *name;    /* "c:avx512", "cuda:sm_90" */
    const char *march;   /* C: options such as "-march=x86-64-v4"; CUDA: "sm_90" */
    const char *machine; /* C: "x86_64" or "aarch64"; CUDA: "cuda" */
    int vector;          /* C: floats in a register */
    int registers;       /* C: vector registers */
    bool pairs;          /* C: one instruction multiplies and adds pairs of bf16 */
    bool halves;         /* C: half a vector takes half the time on its default processor */
    bool converts;       /* C: single instructions convert vectors of floats to f16 and back */
    int capability;      /* CUDA: 90 for sm_90 */
    int shared_memory;   /* CUDA: most bytes of one block */
    bool clusters;       /* CUDA: it has clusters, and a kernel may start before the previous one has ended */
    bool bf16_product;   /* CUDA: it has mul.bf16x2; otherwise fma is used */
    int window_blocks; /* CUDA: blocks of chunk_output per multiprocessor, for a window, whose registers suffice without spills */
    bool warpgroups; /* CUDA: it has wgmma; its code runs only on this capability */
} fpa_target;

int target_count(void);
const fpa_target *target_at(int index);
/* Finds a target by name: "c:avx2", "cuda:sm_90" or short "sm_90"; "c": the best that this machine's CPU runs. NULL: there is none.
 * ("cuda" alone is resolved by the runtime, which can ask the device.) */
const fpa_target *target_find(const char *name);
/* The best C target that this machine's CPU runs. */
const fpa_target *target_best(void);
/* Whether this machine's CPU runs code of the target; false for CUDA targets. */
bool target_runs(const fpa_target *target);
/* Whether a device of that compute capability runs code of the CUDA target. */
bool target_fits(const fpa_target *target, int capability);
/* Whether a machine whose best target is `best` runs code of `target`. */
bool target_fits_beside(const fpa_target *target, const fpa_target *best);
/* Whether `a` is the faster one of two targets of a back end that a machine runs. */
bool target_is_better(const fpa_target *a, const fpa_target *b);
/* The best portable CUDA target whose code a device of that compute capability (90 for 9.0) runs, or NULL. */
const fpa_target *target_for_capability(int capability);

#endif
