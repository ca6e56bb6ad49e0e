/* tensor_map: what the emulated driver writes into an fpa_tensor_map. */
#ifndef FPAC_TESTS_EMULATE_TENSOR_MAP_H
#define FPAC_TESTS_EMULATE_TENSOR_MAP_H

#include <stdint.h>

enum { TENSOR_RANK = 5 }; /* at most */

typedef struct tensor_map {
    const unsigned char *base;
    uint64_t size[TENSOR_RANK], stride[TENSOR_RANK]; /* stride: bytes; of numbers 2 */
    int numbers, tokens, rank;                       /* numbers, tokens: of a box */
    int row; /* bytes of a box's row in shared memory, of which pieces of 16 are swizzled */
} tensor_map;

#endif
