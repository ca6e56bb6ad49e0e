/* module_cuda: loads cubins' kernels onto a GPU, and allocates and copies device memory. */
#ifndef FPAC_RUNTIME_CUDA_MODULE_H
#define FPAC_RUNTIME_CUDA_MODULE_H

#include "runtime/backend.h"
#include "abi/cuda_kernels.h"
#include "machine/gpu_room.h"
#include "driver.h"
#include "staging.h"

/* What fpa_module.handle points to. Read-only after the load, but for staging, which has a lock: threads may share it. */
struct fpa_cuda_module {
    const fpa_driver *driver;
    int device;                       /* the driver's ordinal: fpa_options.device */
    CUdevice gpu;                     /* the driver's handle */
    CUcontext context;                /* the device's primary context, retained until unload */
    CUmodule modules[FPA_CUDA_PARTS]; /* the kernels are distributed among these; each has the geometry */
    int module_count;
    struct fpa_cuda_geometry geometry;
    CUfunction kernel[FPA_CUDA_KERNELS]; /* NULL: the head has no such kernel */
    fpa_gpu_room room;
    /* Limit in bytes for the workspace of gradients by forward passes, and for twice the states in walks of chunks: calls that need
     * more are processed in pieces */
    size_t pass_limit;
    cuda_staging *staging; /* for large copies from the device */
    char name[64];         /* of the head, in symbols and messages */
};

/* Loads onto options->device; the symbols are NAME_geometry and the kernels of cuda_call.h. Fills module except for its backend. LOAD if
 * the driver refuses the bytes, or if they are of another version of the generator; UNSUPPORTED if a block needs more shared memory than
 * this GPU has. */
fpa_status cuda_module_load(const fpa_options *options, const fpa_object *object, const char *name,
                            fpa_module *module, fpa_error *error);
/* Does not synchronise: the kernels must have ended in all streams. */
void cuda_module_unload(fpa_module *module);

/* Makes the module's context the calling thread's current one; cuda_leave restores the previous one. */
fpa_status cuda_enter(const struct fpa_cuda_module *cuda, fpa_error *error);
void cuda_leave(const struct fpa_cuda_module *cuda);

/* Device memory, through the driver, in the module's context. */
extern const fpa_memory cuda_memory;

#endif
