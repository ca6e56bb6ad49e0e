/* driver: NVIDIA's driver, libcuda.so.1, opened at run time. Declares the part of its interface that fpac uses, under the driver's own
 * names: so fpac builds without CUDA headers, and runs without a GPU. Do not include beside cuda.h. */
#ifndef FPAC_RUNTIME_CUDA_DRIVER_H
#define FPAC_RUNTIME_CUDA_DRIVER_H

#include "base/error.h"

#include <stddef.h>

typedef int CUresult; /* 0: success */
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

/* CUresult */
enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_NOT_FOUND = 500, /* a symbol of a module */
};
/* CUdevice_attribute */
enum {
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};
/* CUfunction_attribute */
enum {
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9, /* per cent */
};
/* CUlaunchAttributeID */
enum {
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};

/* CUtensorMapDataType, ...Interleave, ...Swizzle, ...L2promotion, ...FloatOOBfill */
enum {
    CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
    CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
    CU_TENSOR_MAP_SWIZZLE_32B = 1,
    CU_TENSOR_MAP_SWIZZLE_64B = 2,
    CU_TENSOR_MAP_SWIZZLE_128B = 3,
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
};

/* CUlaunchAttribute: its value is a union of 64 bytes. */
typedef struct CUlaunchAttribute_st {
    int id;
    char pad[4];
    union {
        struct {
            unsigned x, y, z;
        } cluster;
        int overlap; /* of programmatic stream serialization: 1 allows it */
        char room[64];
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig_st {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
} CUlaunchConfig;

enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum { CU_STREAM_CAPTURE_MODE_GLOBAL = 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1 };
enum { CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2 };

/* The driver's functions. A name without its version is the newest that drivers from CUDA 11 on have
 * (cuMemAlloc is cuMemAlloc_v2). */
typedef struct fpa_driver {
    CUresult (*cuInit)(unsigned flags);
    CUresult (*cuGetErrorName)(CUresult result, const char **name);
    CUresult (*cuGetErrorString)(CUresult result, const char **text);
    CUresult (*cuDriverGetVersion)(int *version);
    /* devices and their contexts */
    CUresult (*cuDeviceGet)(CUdevice *device, int number);
    CUresult (*cuDeviceGetCount)(int *count);
    CUresult (*cuDeviceGetName)(char *name, int size, CUdevice device);
    CUresult (*cuDeviceGetAttribute)(int *value, int attribute, CUdevice device);
    CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *context, CUdevice device);
    CUresult (*cuDevicePrimaryCtxRelease)(CUdevice device);
    CUresult (*cuCtxGetCurrent)(CUcontext *context);
    CUresult (*cuCtxPushCurrent)(CUcontext context);
    CUresult (*cuCtxPopCurrent)(CUcontext *context);
    CUresult (*cuCtxSynchronize)(void);
    /* modules and kernels */
    CUresult (*cuModuleLoadDataEx)(CUmodule *module, const void *image, unsigned count, int *options,
                                   void **values);
    CUresult (*cuModuleUnload)(CUmodule module);
    CUresult (*cuModuleGetFunction)(CUfunction *function, CUmodule module, const char *name);
    CUresult (*cuModuleGetGlobal)(CUdeviceptr *address, size_t *size, CUmodule module, const char *name);
    CUresult (*cuFuncSetAttribute)(CUfunction function, int attribute, int value);
    CUresult (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, CUfunction function, int threads,
                                                            size_t shared_bytes);
    CUresult (*cuLaunchKernel)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                               CUstream stream, void **parameters, void **extra);
    /* memory */
    CUresult (*cuMemAlloc)(CUdeviceptr *address, size_t size);
    CUresult (*cuMemFree)(CUdeviceptr address);
    CUresult (*cuMemAllocHost)(void **address, size_t size);
    CUresult (*cuMemFreeHost)(void *address);
    CUresult (*cuMemGetInfo)(size_t *unused, size_t *total);
    CUresult (*cuMemcpyHtoD)(CUdeviceptr to, const void *from, size_t size);
    CUresult (*cuMemcpyDtoH)(void *to, CUdeviceptr from, size_t size);
    CUresult (*cuMemcpyDtoHAsync)(void *to, CUdeviceptr from, size_t size, CUstream stream);
    CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream);
    CUresult (*cuMemsetD8)(CUdeviceptr to, unsigned char value, size_t size);
    CUresult (*cuMemsetD16)(CUdeviceptr to, unsigned short value, size_t count);
    CUresult (*cuMemsetD8Async)(CUdeviceptr to, unsigned char value, size_t size, CUstream stream);
    /* streams, graphs and events */
    CUresult (*cuStreamCreate)(CUstream *stream, unsigned flags);
    CUresult (*cuStreamDestroy)(CUstream stream);
    CUresult (*cuStreamSynchronize)(CUstream stream);
    CUresult (*cuStreamBeginCapture)(CUstream stream, int mode);
    CUresult (*cuStreamEndCapture)(CUstream stream, CUgraph *graph);
    /* *captured: 0: the stream is not being captured; number: of the capture */
    CUresult (*cuStreamGetCaptureInfo)(CUstream stream, int *captured, unsigned long long *number);
    CUresult (*cuStreamWaitEvent)(CUstream stream, CUevent event, unsigned flags);
    CUresult (*cuGraphInstantiate)(CUgraphExec *executable, CUgraph graph, unsigned long long flags);
    CUresult (*cuGraphLaunch)(CUgraphExec executable, CUstream stream);
    CUresult (*cuGraphExecDestroy)(CUgraphExec executable);
    CUresult (*cuGraphDestroy)(CUgraph graph);
    CUresult (*cuEventCreate)(CUevent *event, unsigned flags);
    CUresult (*cuEventRecord)(CUevent event, CUstream stream);
    CUresult (*cuEventElapsedTime)(float *milliseconds, CUevent start, CUevent end);
    CUresult (*cuEventDestroy)(CUevent event);
    /* NULL if the driver is older than CUDA 11.8; the last one also if it is older than 12.0 */
    CUresult (*cuOccupancyMaxActiveClusters)(int *clusters, CUfunction function,
                                             const CUlaunchConfig *config);
    CUresult (*cuLaunchKernelEx)(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                 void **extra);
    /* the map is an fpa_tensor_map; sizes and strides: the innermost first */
    CUresult (*cuTensorMapEncodeTiled)(void *map, int type, unsigned rank, void *base,
                                       const unsigned long long *sizes, const unsigned long long *strides,
                                       const unsigned *box, const unsigned *steps, int interleave,
                                       int swizzle, int promotion, int fill);
    int devices; /* GPUs that the driver counts: at least 1 */
    int version; /* of CUDA that it serves: 13000 for 13.0 */
} fpa_driver;

/* The driver: $FPA_LIBCUDA, else libcuda.so.1 on the loader's path; opened and initialised once for the process, thread-safe. DEVICE if
 * there is none, if it is too old, or if it has no GPU. */
fpa_status driver_find(const fpa_driver **driver, fpa_error *error);

/* The error of a failed driver call: "what failed: CUDA_ERROR_X (the driver's words)". NO_MEMORY if device memory was missing, else
 * DEVICE. */
fpa_status driver_fail(const fpa_driver *driver, CUresult result, const char *where, const char *what,
                       fpa_error *error);

/* The GPU with that number in the driver's count, with its compute capability (90 for 9.0). INVALID
 * tells how many there are. capability may be NULL. */
fpa_status driver_device(const fpa_driver *driver, int number, CUdevice *device, int *capability,
                         fpa_error *error);

#endif
