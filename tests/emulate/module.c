#include "module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/cuda/launch.h"
#include "runtime/cuda/launch_backward.h"
#include "runtime/cuda/launch_draft.h"
#include "machine/cuda_slices.h"
#include "compiled.h"
#include "tensor_map.h"
#include "translate.h"
#include "../kernels.h"

enum { LAUNCH_FAILED = 719 };

/* ---- the driver ---- */

static _Thread_local const char *failure; /* of this thread's last launch */

static CUresult error_name(CUresult result, const char **name)
{
    *name = result == LAUNCH_FAILED ? "EMULATION" : NULL;
    return CUDA_SUCCESS;
}

static CUresult error_string(CUresult result, const char **text)
{
    (void)result;
    *text = failure;
    return CUDA_SUCCESS;
}

static CUresult encode(void *map, int type, unsigned rank, void *base, const unsigned long long *sizes,
                       const unsigned long long *strides, const unsigned *box, const unsigned *steps,
                       int interleave, int swizzle, int promotion, int fill)
{
    tensor_map *tensor = map;
    (void)steps, (void)interleave, (void)promotion, (void)fill;
    if (type != CU_TENSOR_MAP_DATA_TYPE_UINT16 || (rank != 4 && rank != 5) ||
        swizzle < CU_TENSOR_MAP_SWIZZLE_32B || swizzle > CU_TENSOR_MAP_SWIZZLE_128B || box[0] == 0 ||
        box[0] > 8u << swizzle || box[0] % 8 || box[1] != 1 ||
        (box[2] != 64 && box[2] != 32 && box[2] != 16) || box[3] != 1 || box[rank - 1] != 1 ||
        (uintptr_t)base % 16)
        return CUDA_ERROR_INVALID_VALUE;
    tensor->base = base;
    tensor->numbers = (int)box[0];
    tensor->tokens = (int)box[2];
    tensor->row = 16 << swizzle;
    tensor->rank = (int)rank;
    for (int i = 0; i < (int)rank; i++) {
        tensor->size[i] = sizes[i];
        tensor->stride[i] = i ? strides[i - 1] : 2;
        if (sizes[i] == 0 || sizes[i] > 1ull << 32 ||
            (i && (strides[i - 1] % 16 || strides[i - 1] >= 1ull << 40)))
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult current_context(CUcontext *context)
{
    *context = NULL;
    return CUDA_SUCCESS;
}

/* Their second parameter is an fpa_cuda_backward. */
static bool is_backward(const emulated_kernel *kernel)
{
    const long index = kernel - kernel->owner->kernels;
    return index >= CUDA_BACKWARD_OUTPUTS;
}

static bool takes_maps(const emulated_kernel *kernel)
{
    const struct fpa_cuda_module *cuda = &kernel->owner->cuda;
    const void *one = kernel;
    if (one == (const void *)cuda->kernel[CUDA_FUSED_CHUNK])
        return cuda->geometry.fused_total;
    if (one == (const void *)cuda->kernel[CUDA_CLUSTER_SCAN] ||
        one == (const void *)cuda->kernel[CUDA_SEQUENCE_SCAN] || is_backward(kernel))
        return true;
    if (one == (const void *)cuda->kernel[CUDA_CHUNK_CONTRACTION] ||
        one == (const void *)cuda->kernel[CUDA_PARALLEL_OUTPUT])
        return true;
    return cuda->geometry.value_width && (one == (const void *)cuda->kernel[CUDA_CHUNK_STATE] ||
                                          one == (const void *)cuda->kernel[CUDA_CHUNK_STATE_SMALL] ||
                                          one == (const void *)cuda->kernel[CUDA_CHUNK_OUTPUT]);
}

/* They come last; kernels of tiles read packed vectors instead, and those of coordinates what is made by them. */
static bool takes_weights(const emulated_kernel *kernel)
{
    const struct fpa_cuda_module *cuda = &kernel->owner->cuda;
    if (cuda->geometry.lifted_vector)
        return cuda->geometry.weights &&
               ((const void *)kernel == (const void *)cuda->kernel[CUDA_LIFT_ROWS] ||
                (cuda->geometry.fused_maps &&
                 (const void *)kernel == (const void *)cuda->kernel[CUDA_FUSED_CHUNK]) ||
                (cuda->geometry.cluster_maps &&
                 ((const void *)kernel == (const void *)cuda->kernel[CUDA_CLUSTER_SCAN] ||
                  (const void *)kernel == (const void *)cuda->kernel[CUDA_SEQUENCE_SCAN])));
    return cuda->geometry.weights && (!takes_maps(kernel) || is_backward(kernel) ||
                                      (const void *)kernel == (const void *)cuda->kernel[CUDA_FUSED_CHUNK]);
}

/* Bytes of totals that a launch of NAME_fused_chunk reads: those of all segments but the last. */
static size_t count_totals(const emulated_kernel *kernel, const struct fpa_cuda_call *call)
{
    const struct fpa_cuda_geometry *g = &kernel->owner->cuda.geometry;
    const long long total = g->fused_total ? g->fused_total : (long long)g->features * g->columns;
    const void *one = kernel;
    if (one != (const void *)kernel->owner->cuda.kernel[CUDA_FUSED_CHUNK] || !call->totals ||
        call->totals_only)
        return 0;
    return (size_t)(call->batch * call->heads * (call->segments - 1) * total) * sizeof(float);
}

static CUresult launch_kernel_ex(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                 void **extra)
{
    const emulated_kernel *kernel = (const emulated_kernel *)(const void *)function;
    unsigned neighbours = 1;
    int overlaps = 0;
    for (unsigned i = 0; i < config->attribute_count; i++)
        if (config->attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            neighbours = config->attributes[i].value.cluster.x;
        else if (config->attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            overlaps = config->attributes[i].value.overlap;
    if (config->grid_z != 1 || config->block_y != 1 || config->block_z != 1 || config->grid_x == 0)
        failure = "a grid of an impossible shape";
    else {
        const bool maps = takes_maps(kernel);
        const int resident = kernel->owner->cuda.geometry.kernel[kernel - kernel->owner->kernels].resident;
        failure = kernel->launch(
            kernel->address, config->grid_x, config->grid_y, config->block_x, config->shared_bytes,
            neighbours, (unsigned)resident, parameters[0], maps ? parameters[1] : NULL,
            takes_weights(kernel) ? parameters[maps ? 2 : 1] : NULL, kernel->owner->late, overlaps,
            kernel->owner->last == (const void *)kernel->owner->cuda.kernel[CUDA_GATE_SCAN],
            count_totals(kernel, parameters[0]));
        kernel->owner->last = kernel;
        kernel->owner->launched |= UINT64_C(1) << (kernel - kernel->owner->kernels);
    }
    return failure ? LAUNCH_FAILED : CUDA_SUCCESS;
}

static CUresult set_memory(CUdeviceptr to, unsigned char value, size_t size, CUstream stream)
{
    memset((void *)(uintptr_t)to, value, size);
    return CUDA_SUCCESS;
}

static CUresult launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                              CUstream stream, void **parameters, void **extra)
{
    const CUlaunchConfig config = {.grid_x = grid_x,
                                   .grid_y = grid_y,
                                   .grid_z = grid_z,
                                   .block_x = block_x,
                                   .block_y = block_y,
                                   .block_z = block_z,
                                   .shared_bytes = shared_bytes,
                                   .stream = stream};
    return launch_kernel_ex(&config, function, parameters, extra);
}

/* ---- opening ---- */

/* Those of a library, in the place of others of their name. */
static fpa_status find_kernels(emulated_module *emulated, void *library, emulated_launch *launch,
                               fpa_error *error)
{
    struct fpa_cuda_module *cuda = &emulated->cuda;
    char symbol[HEAD_MAX_NAME + 32];
    snprintf(symbol, sizeof symbol, "%s_geometry", cuda->name);
    const void *geometry = dlsym(library, symbol);
    if (!geometry)
        return fail(error, FPA_LOAD, cuda->name, "the library lacks %s", symbol);
    memcpy(&cuda->geometry, geometry, sizeof cuda->geometry);
    for (int i = 0; i < FPA_CUDA_KERNELS; i++) {
        snprintf(symbol, sizeof symbol, "%s_%s", cuda->name, cuda_kernel_names[i]);
        void *address = dlsym(library, symbol);
        if (!address)
            continue;
        emulated->kernels[i] = (emulated_kernel){emulated, address, launch};
        cuda->kernel[i] = (CUfunction)(void *)&emulated->kernels[i];
        cuda->room.occupancy[i] = 1;
    }
    return FPA_OK;
}

/* What a GPU would say that has room for all. */
static void make_room(emulated_module *emulated)
{
    struct fpa_cuda_module *cuda = &emulated->cuda;
    cuda->room.decode_cluster = cuda->geometry.decode_cluster > 1 ? cuda->geometry.decode_cluster : 1;
    cuda->room.overlaps = cuda->room.decode_cluster > 1 || cuda->geometry.kernel[CUDA_CLUSTER_SCAN].threads ||
                          cuda->geometry.persistent;
    for (int blocks = 1;
         blocks <= cuda->room.decode_cluster && cuda->geometry.kernel[CUDA_DECODE_RESIDENT].bytes; blocks++)
        if (cuda_resident_bytes(&cuda->geometry, blocks) <= cuda->geometry.decode_resident_most)
            cuda->room.decode_resident_clusters[blocks] = 1000;
    emulated->module.decodes_recent = cuda->geometry.kernel[CUDA_DECODE_RECENT].threads > 0;
    if (cuda->geometry.kernel[CUDA_DECODE_DRAFT].threads) {
        emulated->module.draft_workspace = cuda_draft_workspace;
        emulated->module.draft = cuda_draft;
    }
}

static fpa_status build(const char *code, const char *name, const char *folder, char library[PATH_MAX],
                        fpa_error *error)
{
    const char *reason;
    char *text = emulate_translate(code, &reason);
    if (!text)
        return fail(error, FPA_COMPILE, name, "%s", reason);
    snprintf(library, PATH_MAX, "%s/%s.so", folder, name);
    fpa_status status = compiled_library(text, library, error);
    free(text);
    return status;
}

fpa_status emulated_load(const char *code, const char *name, const char *folder, void **library,
                         emulated_launch **launch, fpa_error *error)
{
    char path[PATH_MAX];
    fpa_status status = build(code, name, folder, path, error);
    *library = NULL;
    if (status)
        return status;
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library)
        return fail(error, FPA_LOAD, name, "%s", dlerror());
    void *address = dlsym(*library, "emulate_launch");
    memcpy(launch, &address, sizeof *launch);
    return FPA_OK;
}

static fpa_status open_library(emulated_module *emulated, int number, const char *code, const char *folder,
                               fpa_error *error)
{
    static const char *const parts[] = {"base", "own"};
    char own[PATH_MAX];
    emulated_launch *launch;
    snprintf(own, sizeof own, "%.3000s/%s", folder, parts[number]);
    mkdir(own, 0700);
    fpa_status status =
        emulated_load(code, emulated->cuda.name, own, &emulated->library[number], &launch, error);
    return status ? status : find_kernels(emulated, emulated->library[number], launch, error);
}

fpa_status emulated_open(emulated_module *emulated, const char *code, const char *base, const char *name,
                         const char *folder, fpa_error *error)
{
    static const fpa_backend backend = {.name = "emulated"}; /* memory is the process's own */
    memset(emulated, 0, sizeof *emulated);
    snprintf(emulated->cuda.name, sizeof emulated->cuda.name, "%s", name);
    emulated->cuda.driver = &emulated->driver;
    emulated->cuda.room.gpu = gpu_find("h200");
    emulated->cuda.room.multiprocessors = 1;
    emulated->cuda.pass_limit = (size_t)1 << 30;
    emulated->cuda.room.shared_memory = 227 << 10;
    emulated->driver.cuGetErrorName = error_name;
    emulated->driver.cuGetErrorString = error_string;
    emulated->driver.cuCtxGetCurrent = current_context;
    emulated->driver.cuLaunchKernel = launch_kernel;
    emulated->driver.cuLaunchKernelEx = launch_kernel_ex;
    emulated->driver.cuMemsetD8Async = set_memory;
    emulated_copies_boxes(emulated, true);
    emulated->module = (fpa_module){
        .backend = &backend,
        .handle = &emulated->cuda,
        .candidates = cuda_module_candidates,
        .choose = cuda_choose,
        .workspace = cuda_workspace,
        .forward = cuda_forward,
        .piece_workspace = cuda_piece_workspace,
        .piece = cuda_piece,
        .saves_den = true,
        .takes_sequences = true,
        .backward_workspace = cuda_backward_workspace,
        .backward = cuda_backward,
    };
    char *changed = base ? kernels_changed(base, code) : NULL;
    fpa_status status = FPA_OK;
    if (changed)
        status = open_library(emulated, 0, base, folder, error);
    if (!status)
        status = open_library(emulated, 1, changed ? changed : code, folder, error);
    free(changed);
    make_room(emulated);
    return status;
}

void emulated_close(emulated_module *emulated)
{
    for (int i = 0; i < 2; i++) {
        if (emulated->library[i])
            dlclose(emulated->library[i]);
        emulated->library[i] = NULL;
    }
}

void emulated_copies_boxes(emulated_module *emulated, bool can)
{
    emulated->driver.cuTensorMapEncodeTiled = can ? encode : NULL;
}
