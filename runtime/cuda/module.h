/* module_cuda: bytes of cubins -> kernels on a GPU, and the memory that they compute on. */
#ifndef FPAC_RUNTIME_CUDA_MODULE_H
#define FPAC_RUNTIME_CUDA_MODULE_H

#include "runtime/backend.h"
#include "abi/cuda_kernels.h"
#include "machine/gpu_room.h"
#include "driver.h"

/* What fpa_module.handle points to. Nothing in it changes after the load: threads share it freely. */
struct fpa_cuda_module {
    const fpa_driver *driver;
    int device;                       /* as the driver counts them: fpa_options.device */
    CUdevice gpu;                     /* the driver's own handle of it */
    CUcontext context;                /* the device's primary one, kept until unload */
    CUmodule modules[FPA_CUDA_PARTS]; /* which have the kernels between them; each has the geometry */
    int module_count;
    struct fpa_cuda_geometry geometry;
    CUfunction kernel[FPA_CUDA_KERNELS]; /* NULL: the head has no such kernel */
    fpa_gpu_room room;
    /* bytes of the workspace of gradients by forward passes, and twice those of states in walks of chunks, above which
     * sequences are taken some at a time */
    size_t pass_limit;
    char name[64]; /* of the head */
};

/* Load for options->device; the symbols are NAME_geometry and the kernels of cuda_call.h, of which
 * NAME_chunk_output has to be there. Fills module except for its backend. LOAD when the driver refuses the
 * bytes, or they are of another version of the generator; UNSUPPORTED when a block needs more shared
 * memory than this GPU has. */
fpa_status cuda_module_load(const fpa_options *options, const fpa_object *object, const char *name,
                            fpa_module *module, fpa_error *error);
/* Waits for nothing: the caller's streams must be through with the kernels. */
void cuda_module_unload(fpa_module *module);

/* Make the module's context the calling thread's current one, and give back what was before. */
fpa_status cuda_enter(const struct fpa_cuda_module *cuda, fpa_error *error);
void cuda_leave(const struct fpa_cuda_module *cuda);

/* Device memory, through the driver, in the module's context. */
extern const fpa_memory cuda_memory;

#endif
