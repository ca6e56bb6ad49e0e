/* nvrtc: NVIDIA's run-time compiler, libnvrtc, found at run time. Needs no GPU and starts no process. */
#ifndef FPAC_RUNTIME_CUDA_NVRTC_H
#define FPAC_RUNTIME_CUDA_NVRTC_H

#include "runtime/backend.h"
#include "abi/cuda_call.h"

/* What a compilation cost, and what the compiler said of the result. */
typedef struct nvrtc_report {
    double seconds;
    char version[16];      /* of NVRTC: "13.0" */
    int registers;         /* the most registers of a thread of any kernel; 0: unknown, as for PTX */
    long long spill_bytes; /* stored because registers ran out, summed over the kernels */
    char *log; /* NVRTC's own, whole, of a failed compilation too; malloc'ed; NULL: there is none */
} nvrtc_report;

void nvrtc_report_free(nvrtc_report *report);

/* The first NVRTC that opens, once in a process: $FPA_LIBNVRTC alone when that is set; else in $CUDA_HOME,
 * $CUDA_PATH, /usr/local/cuda; where the loader looks; the nvrtc folder of fpac's cache; Python's nvidia
 * packages. COMPILE when there is none. version: "13.0". */
fpa_status nvrtc_find(const char **version, fpa_error *error);

/* What decides its bytes besides source and target, one field a line; malloc'ed. */
fpa_status nvrtc_identity(const fpa_target *target, char **identity, fpa_error *error);

typedef struct nvrtc_input {
    const char *code, *file; /* file: the name in messages, without a folder */
    const fpa_target *target;
    bool ptx; /* to PTX text, which ends in a 0 that object->size leaves out; else to a cubin */
    int part; /* FPA_CUDA_PART of cuda_call.h; 0: all of the file */
} nvrtc_input;

/* Compile. UNSUPPORTED when this NVRTC does not know the target, COMPILE with its first lines when it
 * refuses the source. report is always set; nvrtc_report_free. */
fpa_status nvrtc_compile(const nvrtc_input *input, fpa_object *object, nvrtc_report *report,
                         fpa_error *error);

/* What a person should see of the log: warnings, and the kernels that spill more than 64 bytes a thread, joined to one line. false:
 * there is nothing. */
bool nvrtc_remarks(const nvrtc_report *report, char *text, size_t size);

/* Whether such remarks are a warning. Spills alone are none on targets where blocks have warps that only
 * fetch: those have few registers. */
bool nvrtc_warns(const char *remarks, const fpa_target *target);

#endif
