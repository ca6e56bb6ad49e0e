/* launch_contraction: what gradients by forward passes make of copies of states that these have left. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_CONTRACTION_H
#define FPAC_RUNTIME_CUDA_LAUNCH_CONTRACTION_H

#include "grid.h"

typedef struct cuda_contraction {
    const void *rows; /* gradients of o, of o's type */
    int64_t stride[3];
    /* cuda_forward of the same sizes has left copies of states in the workspace; else they are made */
    bool walked;
    int64_t reversed; /* of so many tokens, from the last one on (cuda_turns); 0: from the first one */
    float *dots;      /* of a gated head: outputs times rows, [B][heads][length]; NULL: not wanted */
    void *
        sums; /* of scores and values, if the module leaves them (cuda_contracts_values): `columns` of them; NULL: not wanted */
    int64_t sum_stride[3], columns;
} cuda_contraction;

/* Whether gradients of queries are found so: the module has NAME_chunk_contraction, and the driver describes operands. */
bool cuda_contracts(const fpa_module *module);

/* Whether it leaves sums of scores and values in a call of this form, too. */
bool cuda_contracts_values(const fpa_module *module, int form);

/* launch->o <- gradients of the launch's queries, in the parallel form of pairs alone. *states: as of cuda_forward_dots. Operands, and rows, are
 * such that the copy engine can fetch them (cuda_can_describe), else INVALID. */
void cuda_contract(cuda_queue *behind, const fpa_module *module, int form, const struct fpa_launch *launch,
                   const cuda_contraction *c, const void **states);

/* States of a walk and of one from the last token on, of whole chunks. */
typedef struct cuda_met_states {
    const void *states, *reversed_states;
    const float *column_weights; /* by which columns are multiplied; NULL: 1 */
    int64_t heads,
        value_stride; /* of the walks' values: from head to head, where rows of all heads were described as one; else 0 */
    bool adds; /* to what the products are */
} cuda_met_states;

/* products[B][H][chunks] <- both states at each chunk's beginning, times each other. */
void cuda_state_products(cuda_queue *behind, const fpa_module *module, int64_t sequences, int64_t chunks,
                         const cuda_met_states *met, double *products);

#endif
