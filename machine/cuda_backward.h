/* cuda_backward: chunks of the portable kernels of gradients, and the length from which chunks pay, by what these
 * kernels take of a GPU. The planner counts instructions, bytes and products; what the machine takes for them is
 * here. */
#ifndef FPAC_MACHINE_CUDA_BACKWARD_H
#define FPAC_MACHINE_CUDA_BACKWARD_H

enum {
    CUDA_BACKWARD_LEAST_CHUNK = 128,
    CUDA_BACKWARD_MOST_CHUNK = 512 /* longer ones gain little, and take long to verify */
};

/* All kernels of a head's gradients together. */
typedef struct cuda_backward_counts {
    double pair; /* instructions of a warp for 16 tokens and 16 others that see them, or are seen by them */
    double
        state; /* instructions of a warp for 16 tokens: products with states, and what states get; of any chunk */
    double copies; /* bytes: the states at one boundary of chunks, written and read in both passes */
    double warps;  /* of a multiprocessor, each with 16 tokens of its own */
} cuda_backward_counts;

/* Tokens of a chunk where warps form features of packed rows, so that their instructions take the time: the chunk is
 * doubled while that spares more bytes of copies than the additional pairs take time. */
int cuda_backward_chunk(const cuda_backward_counts *counts);

/* The same where products by tensor cores take the time: `copies` numbers of bytes as above, and multiply-adds of a
 * pair of tokens. */
int cuda_backward_product_chunk(double copies, double pair);

/* Tokens of a sequence whose pairs take as long as chunks and states do. */
double cuda_backward_crossover(const cuda_backward_counts *counts, int chunk);

/* Clocks of a multiprocessor for a pair of tokens. */
double cuda_backward_pair_clocks(const cuda_backward_counts *counts);

#endif
