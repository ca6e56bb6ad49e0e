/* launch_contraction: gradients from copies of states that forward passes have stored: contractions, and products of states. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_CONTRACTION_H
#define FPAC_RUNTIME_CUDA_LAUNCH_CONTRACTION_H

#include "grid.h"

typedef struct cuda_contraction {
    const void *rows; /* gradients of o, of o's type */
    int64_t stride[3];
    /* cuda_forward of the same sizes has left copies of states in the workspace; else they are computed first */
    bool walked;
    /* number of tokens, processed from the last one on (cuda_turns); 0: from the first one on */
    int64_t reversed;
    float *dots; /* of a gated head: outputs times rows, [B][heads][length]; NULL: not wanted */
    /* of scores and values, if the module leaves them (cuda_contracts_values): `columns` of them; NULL: not wanted */
    void *sums;
    int64_t sum_stride[3], columns;
} cuda_contraction;

/* Whether gradients of queries are computed by contraction: the module has NAME_chunk_contraction, and the driver can describe tensors. */
bool cuda_contracts(const fpa_module *module);

/* Whether the contraction also computes sums of scores times values in a call of this form. */
bool cuda_contracts_values(const fpa_module *module, int form);

/* launch->o <- gradients of the launch's queries (in the parallel form from pairs alone). *states: as for cuda_forward_dots. INVALID if
 * the copy engine cannot fetch the operands and rows (cuda_can_describe). */
void cuda_contract(cuda_queue *behind, const fpa_module *module, int form, const struct fpa_launch *launch,
                   const cuda_contraction *c, const void **states);

/* States of a forward pass and of a reversed one, of whole chunks. */
typedef struct cuda_met_states {
    const void *states, *reversed_states;
    const float *column_weights; /* factors of columns; NULL: 1 */
    /* stride of the passes' values from head to head, if rows of all heads were described as one; else 0 */
    int64_t heads, value_stride;
    bool adds; /* adds to the products instead of storing them */
} cuda_met_states;

/* products[B][H][chunks] <- the dot product of both states at each chunk's beginning. */
void cuda_state_products(cuda_queue *behind, const fpa_module *module, int64_t sequences, int64_t chunks,
                         const cuda_met_states *met, double *products);

#endif
