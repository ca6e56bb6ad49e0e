/* module: emitted CUDA kernels as a module that runs on the CPU, launched by the library's own code, for
 * tests. */
#ifndef FPAC_TESTS_EMULATE_MODULE_H
#define FPAC_TESTS_EMULATE_MODULE_H

#include "compiled.h"
#include "runtime/cuda/module.h"

enum { LATE_PRODUCTS = 1, LATE_COPIES = 2 };

/* launch.h's emulate_launch: NULL, or what went wrong. */
typedef const char *emulated_launch(void *kernel, unsigned grid_x, unsigned grid_y, unsigned block,
                                    unsigned bytes, unsigned neighbours, unsigned resident,
                                    const struct fpa_cuda_call *call, const void *maps, const void *weights,
                                    int late, int overlaps, bool behind_gates, size_t totals);

/* What a CUfunction points to here. */
typedef struct emulated_kernel {
    struct emulated_module *owner;
    void *address;
    emulated_launch *launch; /* of its library */
} emulated_kernel;

typedef struct emulated_module {
    fpa_module module;
    struct fpa_cuda_module cuda;
    fpa_driver driver; /* launches run before they return */
    emulated_kernel kernels[FPA_CUDA_KERNELS];
    void *library[2];  /* of all kernels, of those that a fault changes; the first may be NULL */
    const void *last;  /* kernel launched, or NULL */
    int late;          /* what is not done before somebody waits for it: LATE_... */
    uint64_t launched; /* bit i: kernels[i] was */
} emulated_module;

/* Translate, compile (compiled.h, prepared before), load; `folder` is that module's. base: NULL, or the text without
 * the fault that `code` has, of which all kernels are taken that the fault does not reach. The module has one thread at a time, and as
 * many multiprocessors as one likes: set module->cuda.room.multiprocessors. emulated_close afterwards, also after an
 * error: COMPILE with what the compiler says, LOAD. */
fpa_status emulated_open(emulated_module *emulated, const char *code, const char *base, const char *name,
                         const char *folder, fpa_error *error);
void emulated_close(emulated_module *emulated);

/* Kernels that are not a head's, whose first parameter is an
 * fpa_cuda_call. *library: for dlsym and dlclose. */
fpa_status emulated_load(const char *code, const char *name, const char *folder, void **library,
                         emulated_launch **launch, fpa_error *error);

/* Whether the driver can describe tensors for the copy engine; at first it can. */
void emulated_copies_boxes(emulated_module *emulated, bool can);

#endif
