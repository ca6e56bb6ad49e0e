/* cuda_backward: chunks of the portable kernels of gradients, and the length from which chunks are faster than pairs. The planner counts
 * instructions, bytes and products; the rates are here. */
#ifndef FPAC_MACHINE_CUDA_BACKWARD_H
#define FPAC_MACHINE_CUDA_BACKWARD_H

enum {
    CUDA_BACKWARD_LEAST_CHUNK = 128,
    CUDA_BACKWARD_MOST_CHUNK = 512 /* longer ones are hardly faster, and take long to verify */
};

/* Counts over all kernels of a head's gradients. */
typedef struct cuda_backward_counts {
    double pair; /* instructions of a warp for 16 queries with 16 keys, and for 16 keys with 16 queries */
    /* instructions of a warp for 16 tokens: products with states, and updates of states, for chunks of any length */
    double state;
    double copies; /* bytes of the states between two chunks, written and read in both passes */
    double warps;  /* warps on a multiprocessor, each of which processes 16 tokens at a time */
} cuda_backward_counts;

/* Tokens of a chunk if warps compute features of packed rows, so that their instructions limit the kernel: the chunk is doubled while
 * copies that are saved take longer than the additional pairs. */
int cuda_backward_chunk(const cuda_backward_counts *counts);

/* The same if products by tensor cores limit the kernel: from `copies` bytes as above, and multiply-adds for a pair of tokens. */
int cuda_backward_product_chunk(double copies, double pair);

/* Tokens of a sequence whose pairs take as long as its chunks and states. */
double cuda_backward_crossover(const cuda_backward_counts *counts, int chunk);

/* Clocks of a multiprocessor for a pair of tokens. */
double cuda_backward_pair_clocks(const cuda_backward_counts *counts);

#endif
