/* ceiling: what a GPU does at best, measured in the same run as what is compared with it. */
#ifndef FPAC_COMMAND_CEILING_H
#define FPAC_COMMAND_CEILING_H

#include "head/head.h"
#include "device.h"

typedef struct fpa_ceiling {
    double copy;                /* bytes a second, read plus written, of a large copy on the device */
    double product[FPA_DTYPES]; /* FLOP a second of a large matrix product; 0: not measured */
    int64_t product_rows;
    char note[256]; /* why no product was measured; "" */
} fpa_ceiling;

/* Copy 1 GiB. */
fpa_status ceiling_copy(const fpa_device *device, fpa_ceiling *ceiling, fpa_error *error);

/* Multiply square matrices of that dtype with cuBLAS. Where that is not to be had: OK, product 0 and a
 * note. */
fpa_status ceiling_product(const fpa_device *device, fpa_dtype dtype, fpa_ceiling *ceiling, fpa_error *error);

#endif
