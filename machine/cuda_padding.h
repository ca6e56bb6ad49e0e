/* cuda_padding: rows that are brought to whole pieces of 16 bytes before kernels fetch them. */
#ifndef FPAC_MACHINE_CUDA_PADDING_H
#define FPAC_MACHINE_CUDA_PADDING_H

#include "cuda_mechanism.h"

/* Numbers that rows are brought to by NAME_pad_rows; 0: their widths are whole pieces of 16 bytes, or another kernel
 * packs them. */
typedef struct cuda_padding {
    int vector, value; /* of q and k, of v */
} cuda_padding;

cuda_padding cuda_padding_of(const struct fpa_cuda_geometry *geometry, cuda_mechanism mechanism);

#endif
