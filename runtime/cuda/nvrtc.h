/* nvrtc: compilation by NVIDIA's run-time compiler, libnvrtc, which is opened at run time. Needs no GPU and starts no process. */
#ifndef FPAC_RUNTIME_CUDA_NVRTC_H
#define FPAC_RUNTIME_CUDA_NVRTC_H

#include "runtime/backend.h"
#include "abi/cuda_call.h"

/* The time of a compilation, and the compiler's report. */
typedef struct nvrtc_report {
    double seconds;
    char version[16];      /* NVRTC's, such as "13.0" */
    int registers;         /* the most registers per thread of any kernel; 0: unknown, as for PTX */
    long long spill_bytes; /* bytes of spill stores, summed over the kernels */
    char *log; /* NVRTC's complete log, also of a failed compilation; malloc'ed; NULL: there is none */
} nvrtc_report;

void nvrtc_report_free(nvrtc_report *report);

/* Opens an NVRTC once for the process: only $FPA_LIBNVRTC if that is set; otherwise the first that opens in $CUDA_HOME, $CUDA_PATH,
 * /usr/local/cuda, on the loader's path, in the nvrtc folder of fpac's cache, or in Python's nvidia packages. COMPILE if there is none.
 * version: such as "13.0". */
fpa_status nvrtc_find(const char **version, fpa_error *error);

/* Text that identifies what a cubin's bytes depend on besides its source: version, target and options, one a line; malloc'ed. */
fpa_status nvrtc_identity(const fpa_target *target, char **identity, fpa_error *error);

typedef struct nvrtc_input {
    const char *code, *file; /* file: the name for messages, without a folder */
    const fpa_target *target;
    bool ptx; /* to PTX text, whose final 0 object->size does not count; else to a cubin */
    int part; /* FPA_CUDA_PART of cuda_call.h; 0: the whole file */
} nvrtc_input;

/* Compiles a source. UNSUPPORTED if this NVRTC does not know the target; COMPILE with its first messages if compilation fails. report is
 * always set: nvrtc_report_free. */
fpa_status nvrtc_compile(const nvrtc_input *input, fpa_object *object, nvrtc_report *report,
                         fpa_error *error);

/* What a user should read of the log: warnings, and the kernels that spill more than 64 bytes a thread, joined to one line. False: there
 * is nothing. */
bool nvrtc_remarks(const nvrtc_report *report, char *text, size_t size);

/* Whether such remarks are a warning. Spills alone are not on targets where blocks have warps that only fetch, since these warps have few
 * registers. */
bool nvrtc_warns(const char *remarks, const fpa_target *target);

#endif
