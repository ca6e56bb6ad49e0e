/* build: the compilation of CUDA kernels, with the compiler's figures.
 *
 * runtime/cuda is the back end of CUDA kernels. Given: a source. Gives: a cubin, compiled by NVRTC, which
 * needs no GPU; on one, a module whose forward is a few launches into the caller's stream. libcuda and
 * libnvrtc are opened when they are needed, so that one binary runs with and without a GPU. */
#ifndef FPAC_RUNTIME_CUDA_BUILD_H
#define FPAC_RUNTIME_CUDA_BUILD_H

#include "runtime/builder.h"
#include "nvrtc.h"

/* Compiles all kernels to one cubin, or to PTX text, for a file on disk; builder_cuda.compile joins several cubins instead (image.h).
 * report is always set: nvrtc_report_free. Logs what builder_cuda.compile logs. Needs no GPU. */
fpa_status cuda_compile(const fpa_options *options, const fpa_source *source, bool ptx, fpa_object *object,
                        nvrtc_report *report, fpa_error *error);

#endif
