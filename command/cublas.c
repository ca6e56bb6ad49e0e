#include "cublas.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Constants of cublas_v2.h and library_types.h. */
enum {
    OP_N = 0,
    R_32F = 0,
    R_16F = 2,
    R_16BF = 14,
    COMPUTE_32F = 68,
    GEMM_DEFAULT = -1,
};

struct cublas_functions {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, CUstream stream);
    int (*gemm)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a,
                int a_type, int a_rows, const void *b, int b_type, int b_rows, const void *beta, void *c,
                int c_type, int c_rows, int compute_type, int algorithm);
    int (*sgemm)(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a,
                 int a_rows, const float *b, int b_rows, const float *beta, float *c, int c_rows);
};

/* ---- finding the library ---- */

/* Where the library is searched: first on the loader's path, then where NVIDIA's installers and wheels put it.
 * $NAME is an environment variable; an entry is used only if it is set to an absolute path. */
static const char *const places[] = {
    "libcublas.so.13",
    "libcublas.so.12",
    "libcublas.so",
    "$CUDA_HOME/lib64/libcublas.so*",
    "/usr/local/cuda/lib64/libcublas.so*",
    "/usr/local/cuda-*/lib64/libcublas.so*",
    "$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/*/lib/libcublas.so*",
    "$CONDA_PREFIX/lib/libcublas.so*",
    "$CONDA_PREFIX/lib/python3*/site-packages/nvidia/*/lib/libcublas.so*",
    "$HOME/.local/lib/python3*/site-packages/nvidia/*/lib/libcublas.so*",
    "/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcublas.so*",
};

/* Replaces the variable of an entry; false: it is not set. */
static bool expand(const char *place, char *path, size_t size)
{
    char name[32];
    if (*place != '$') {
        snprintf(path, size, "%s", place);
        return true;
    }
    size_t length = strcspn(place, "/");
    snprintf(name, sizeof name, "%.*s", (int)length - 1, place + 1);
    const char *value = getenv(name);
    snprintf(path, size, "%s%s", value ? value : "", place + length);
    return value && *value == '/';
}

/* Opens the library, after libcublasLt, which it needs, in the same folder, where the loader may not search. */
static void *open_file(const char *path)
{
    char companion[512];
    const char *name = strstr(path, "libcublas.so");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library || !name)
        return library;
    snprintf(companion, sizeof companion, "%.*slibcublasLt.so%s", (int)(name - path), path,
             name + strlen("libcublas.so"));
    return dlopen(companion, RTLD_NOW | RTLD_LOCAL) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Opens the newest file, by name, that matches the pattern and can be opened. */
static void *open_pattern(const char *pattern)
{
    glob_t files;
    void *library = NULL;
    if (!strpbrk(pattern, "*"))
        return open_file(pattern);
    if (glob(pattern, 0, NULL, &files))
        return NULL;
    for (size_t i = files.gl_pathc; i > 0 && !library; i--)
        library = open_file(files.gl_pathv[i - 1]);
    globfree(&files);
    return library;
}

/* Opens the library; if $FPA_LIBCUBLAS is set, only from there. */
static fpa_status open_library(void **library, fpa_error *error)
{
    char path[512];
    const char *own = getenv("FPA_LIBCUBLAS");
    *library = NULL;
    if (own && *own) {
        *library = open_file(own);
        return *library ? FPA_OK
                        : fail(error, FPA_UNSUPPORTED, "cuBLAS", "%s (FPA_LIBCUBLAS) does not open", own);
    }
    for (size_t i = 0; i < sizeof places / sizeof *places && !*library; i++) {
        if (expand(places[i], path, sizeof path))
            *library = open_pattern(path);
    }
    if (*library)
        return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, "cuBLAS",
                "no libcublas.so on the loader's path, in /usr/local/cuda or in Python's nvidia wheels; "
                "name it in FPA_LIBCUBLAS");
}

/* dlsym returns an object pointer for a function; POSIX guarantees that it can be converted. */
static bool find_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static fpa_status find_functions(void *library, struct cublas_functions *functions, fpa_error *error)
{
    if (find_symbol(library, "cublasCreate_v2", &functions->create) &&
        find_symbol(library, "cublasDestroy_v2", &functions->destroy) &&
        find_symbol(library, "cublasSetStream_v2", &functions->set_stream) &&
        find_symbol(library, "cublasGemmEx", &functions->gemm) &&
        find_symbol(library, "cublasSgemm_v2", &functions->sgemm))
        return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, "cuBLAS", "the library found lacks a function that is needed");
}

/* ---- using the library ---- */

static fpa_status check(int result, const char *what, fpa_error *error)
{
    return result ? fail(error, FPA_DEVICE, "cuBLAS", "%s failed with status %d", what, result) : FPA_OK;
}

fpa_status cublas_open(fpa_cublas *cublas, fpa_error *error)
{
    void *library;
    memset(cublas, 0, sizeof *cublas);
    fpa_status status = open_library(&library, error);
    if (status)
        return status;
    cublas->functions = calloc(1, sizeof *cublas->functions);
    if (!cublas->functions)
        return fail_memory(error);
    status = find_functions(library, cublas->functions, error);
    return status ? status : check(cublas->functions->create(&cublas->handle), "its start", error);
}

/* The library is not unloaded, since it runs code of its own when the process ends. */
void cublas_close(fpa_cublas *cublas)
{
    if (cublas->handle)
        cublas->functions->destroy(cublas->handle);
    free(cublas->functions);
    memset(cublas, 0, sizeof *cublas);
}

static void *pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

fpa_status cublas_product(const fpa_cublas *cublas, fpa_dtype dtype, int n, CUdeviceptr a, CUdeviceptr b,
                          CUdeviceptr c, CUstream stream, fpa_error *error)
{
    static const int types[FPA_DTYPES] = {[FPA_F32] = R_32F, [FPA_BF16] = R_16BF, [FPA_F16] = R_16F};
    const struct cublas_functions *functions = cublas->functions;
    const float one = 1, zero = 0;
    const int type = types[dtype];
    fpa_status status = check(functions->set_stream(cublas->handle, stream), "choosing a stream", error);
    if (status)
        return status;
    if (dtype == FPA_F32)
        return check(functions->sgemm(cublas->handle, OP_N, OP_N, n, n, n, &one, pointer(a), n, pointer(b), n,
                                      &zero, pointer(c), n),
                     "a float32 product", error);
    return check(functions->gemm(cublas->handle, OP_N, OP_N, n, n, n, &one, pointer(a), type, n, pointer(b),
                                 type, n, &zero, pointer(c), type, n, COMPUTE_32F, GEMM_DEFAULT),
                 "a matrix product", error);
}
