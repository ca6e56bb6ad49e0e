/* nvrtc_library: finds libnvrtc and its functions. Internal to nvrtc.c. */
#ifndef FPAC_RUNTIME_CUDA_NVRTC_LIBRARY_H
#define FPAC_RUNTIME_CUDA_NVRTC_LIBRARY_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Declared here as in nvrtc.h, since fpac is built without CUDA headers. */
typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;
enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_OUT_OF_MEMORY = 1 };

enum { NVRTC_MAX_ARCHITECTURES = 64 };

struct nvrtc_library {
    const char *(*nvrtcGetErrorString)(nvrtcResult result);
    nvrtcResult (*nvrtcVersion)(int *major, int *minor);
    nvrtcResult (*nvrtcGetNumSupportedArchs)(int *count);
    nvrtcResult (*nvrtcGetSupportedArchs)(int *architectures);
    nvrtcResult (*nvrtcCreateProgram)(nvrtcProgram *program, const char *code, const char *name, int headers,
                                      const char *const *texts, const char *const *names);
    nvrtcResult (*nvrtcDestroyProgram)(nvrtcProgram *program);
    nvrtcResult (*nvrtcCompileProgram)(nvrtcProgram program, int count, const char *const *options);
    nvrtcResult (*nvrtcGetProgramLogSize)(nvrtcProgram program, size_t *size);
    nvrtcResult (*nvrtcGetProgramLog)(nvrtcProgram program, char *log);
    nvrtcResult (*nvrtcGetCUBINSize)(nvrtcProgram program, size_t *size);
    nvrtcResult (*nvrtcGetCUBIN)(nvrtcProgram program, char *cubin);
    nvrtcResult (*nvrtcGetPTXSize)(nvrtcProgram program, size_t *size);
    nvrtcResult (*nvrtcGetPTX)(nvrtcProgram program, char *ptx);
    char version[16];    /* "13.0" */
    long long file_size; /* of the library */
    int architectures;
    int architecture[NVRTC_MAX_ARCHITECTURES]; /* targets it compiles for: 80, 86 ... */
};

/* Finds and opens the library once for the process, thread-safe; it stays open. */
fpa_status nvrtc_library_find(const struct nvrtc_library **nvrtc, fpa_error *error);

/* Whether DIR/fpac/nvrtc/libnvrtc.so.13 obeys the rules of the kernel cache: only this user can write the file, the library that it opens
 * in turn, and the two folders that hold them (base/private.h). Else reason is set. */
bool nvrtc_library_is_private(const char *path, char *reason, size_t size);

#endif
