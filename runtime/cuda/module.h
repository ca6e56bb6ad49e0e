/* module_cuda: bytes of cubins -> kernels on a GPU, and the memory that they compute on. */
#ifndef FPAC_RUNTIME_CUDA_MODULE_H
#define FPAC_RUNTIME_CUDA_MODULE_H

#include "runtime/backend.h"
#include "abi/cuda_kernels.h"
#include "driver.h"

/* Kernels are chosen by the size of a call, or as for many sequences, or by clusters where there are such. */
typedef enum cuda_schedule {
    SCHEDULE_BY_SIZE,
    SCHEDULE_CROWDED,
    SCHEDULE_CLUSTER,
    CUDA_SCHEDULES
} cuda_schedule;

enum { MOST_CLUSTER = 8 }; /* blocks that a cluster may have on every GPU that has clusters */

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
    int multiprocessors;
    int shared_memory;               /* bytes that one block may have at most */
    cuda_schedule schedule;          /* that chunked forms go */
    int occupancy[FPA_CUDA_KERNELS]; /* blocks on one multiprocessor at a time, at least 1; 0: no such kernel
                                      */
    bool overlaps;      /* NAME_decode and its companions, and NAME_chunk_output, may start before the kernel
                           before them      is through */
    int decode_cluster; /* blocks of a head that one cluster may have; 1: no clusters here */
    /* of NAME_decode_resident and NAME_cluster_scan, by their blocks: clusters that the GPU has room for at a
     * time */
    int decode_resident_clusters[MOST_CLUSTER + 1], cluster_counts[MOST_CLUSTER + 1];
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
