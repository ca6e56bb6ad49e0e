/* ceiling: the best rates of a GPU, measured in the same run as the kernels that are compared with them. */
#ifndef FPAC_COMMAND_CEILING_H
#define FPAC_COMMAND_CEILING_H

#include "head/head.h"
#include "device.h"

typedef struct fpa_ceiling {
    double copy;                /* bytes per second, read plus written, of a large copy on the device */
    double product[FPA_DTYPES]; /* FLOP per second of a large matrix product; 0: not measured */
    int64_t product_rows;
    char note[256]; /* why no product was measured; "" */
} fpa_ceiling;

/* Measure a copy of 1 GiB. */
fpa_status ceiling_copy(const fpa_device *device, fpa_ceiling *ceiling, fpa_error *error);

/* Measure a product of square matrices of that dtype by cuBLAS. If it is not available: FPA_OK with product 0 and
 * a note. */
fpa_status ceiling_product(const fpa_device *device, fpa_dtype dtype, fpa_ceiling *ceiling, fpa_error *error);

#endif
