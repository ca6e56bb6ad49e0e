/* cuda_backward: rates of the portable kernels of gradients, and the chunks that follow from them. */
#include "cuda_backward.h"

/* Clocks of a multiprocessor per token for an instruction of one warp for 16 tokens: a warp of these kernels issues one every 5.5 clocks
 * (by ncu on an H200), at the same time as the multiprocessor's other warps. */
static double instruction_clocks(const cuda_backward_counts *counts)
{
    static const double between = 5.5;
    return between / counts->warps / 16;
}

/* Bytes of device memory that a multiprocessor can transfer in these clocks: 132 of them share 2,000 GB/s, at 1.7 GHz. Copies reach only
 * this rate of an H200's 4,800 GB/s, since few are in flight at a time. */
static double bytes_an_instruction(const cuda_backward_counts *counts)
{
    return 2000 / (132 * 1.7) * instruction_clocks(counts);
}

int cuda_backward_chunk(const cuda_backward_counts *counts)
{
    const double bytes = bytes_an_instruction(counts);
    int chunk = CUDA_BACKWARD_LEAST_CHUNK;
    while (chunk < CUDA_BACKWARD_MOST_CHUNK &&
           counts->copies / (2 * chunk) > chunk / 32.0 * counts->pair * bytes)
        chunk *= 2;
    return chunk;
}

int cuda_backward_product_chunk(double copies, double pair)
{
    static const double flop_a_byte = 160; /* rate of a GPU's products by mma.sync over that of its memory */
    const double products = copies * flop_a_byte;
    int chunk = CUDA_BACKWARD_LEAST_CHUNK;
    while (chunk < CUDA_BACKWARD_MOST_CHUNK && products / chunk - products / (2 * chunk) > chunk / 2.0 * pair)
        chunk *= 2;
    return chunk;
}

/* Equates half a sequence's pairs for each token with half a chunk's and a state's work. */
double cuda_backward_crossover(const cuda_backward_counts *counts, int chunk)
{
    const double state = counts->state + counts->copies / chunk / bytes_an_instruction(counts);
    return chunk + 32 * state / counts->pair;
}

double cuda_backward_pair_clocks(const cuda_backward_counts *counts)
{
    return counts->pair * instruction_clocks(counts) / 16;
}
