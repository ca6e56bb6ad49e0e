/* backend_cuda: the CUDA back end's compilation, with the compiler's figures. */
#ifndef FPAC_RUNTIME_BACKEND_CUDA_H
#define FPAC_RUNTIME_BACKEND_CUDA_H

#include "backend.h"
#include "nvrtc.h"

/* All kernels to one cubin, or to PTX text, as files are kept; backend_cuda.compile makes several cubins at
 * once (image_cuda.h). report is always set: nvrtc_report_free. Logs what backend_cuda.compile logs. Needs
 * no GPU. */
fpa_status cuda_compile(const fpa_options *options, const fpa_source *source, bool ptx, fpa_object *object,
                        nvrtc_report *report, fpa_error *error);

#endif
