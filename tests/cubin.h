/* cubin: what a compiled CUDA module says of its kernels, read from its bytes, for tests. */
#ifndef FPAC_TESTS_CUBIN_H
#define FPAC_TESTS_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

enum { CUBIN_MANY_KERNELS = 16, CUBIN_NAME = 128 };

typedef struct cubin_kernel {
    char name[CUBIN_NAME];
    int registers; /* a thread */
    int frame;     /* bytes of local memory a thread: spilled registers, arrays that did not fit */
    int threads;   /* a block, as __launch_bounds__ promises; 0: no promise */
} cubin_kernel;

typedef struct cubin {
    int count;
    cubin_kernel kernel[CUBIN_MANY_KERNELS];
} cubin;

/* False: the bytes are no cubin that this can read. */
bool cubin_read(const unsigned char *bytes, size_t size, cubin *result);

/* The bytes of a variable's initial value: size of them into value. False: there is none of that size. */
bool cubin_variable(const unsigned char *bytes, size_t size, const char *name, void *value,
                    size_t value_size);

/* A mistake of ptxas 13.0, which only an unlucky schedule on a GPU shows: CS2R clears two registers, an
 * instruction under a predicate may write them instead, and a third reads them as soon as that one is ready,
 * while CS2R is not. True: some kernel has such a read; where: its name and address. */
bool cubin_reads_too_early(const unsigned char *bytes, size_t size, char *where, size_t where_size);

#endif
