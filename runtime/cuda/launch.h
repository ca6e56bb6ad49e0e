/* launch: a forward as launches of a cubin's kernels, and the workspace that it needs. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_H
#define FPAC_RUNTIME_CUDA_LAUNCH_H

#include "runtime/backend.h"
#include "grid.h"
#include "sizes.h"

/* An fpa_module's candidates, choose, workspace and forward; module->handle is a struct fpa_cuda_module. forward
 * allocates nothing and waits for nothing; the module's context must be current. */
int cuda_module_candidates(const fpa_module *module, const fpa_call_size *size, fpa_candidate *out, int most);
bool cuda_choose(const fpa_module *module, int form, const struct fpa_launch *launch, fpa_candidate *fastest);
size_t cuda_workspace(const fpa_module *module, int form, const struct fpa_launch *launch,
                      const fpa_candidate *candidate);
fpa_status cuda_forward(const fpa_module *module, int form, const struct fpa_launch *launch,
                        const fpa_candidate *candidate, void *stream, fpa_error *error);

/* fpa_module.piece, piece_workspace. */
size_t cuda_piece_workspace(const fpa_module *module, const struct fpa_launch *launch);
fpa_status cuda_piece(const fpa_module *module, const struct fpa_launch *launch, void *stream,
                      fpa_error *error);

/* Whose factors and numbers fpa_cuda_call.numbers are. */
enum { OF_QUERIES, OF_KEYS, FACTORS_OF_KEYS, FACTORS_OF_QUERIES };

/* What a pass of a gated head leaves beside o, where gates' gradients are made of it (gen/plan/passes.h). */
typedef struct cuda_dots {
    const void *rows; /* of o's type: o times them, before it is rounded, */
    int64_t stride[3];
    float *dots; /* here: [column blocks][B][query_heads][length]; NULL: not wanted */
    /* by fused_chunk: [B][H][parts of FPA_CUDA_KEPT tokens][geometry.fused_kept], 16 bits each; NULL: not wanted */
    void *kept;
    const float *column_weights; /* by which o is multiplied before that; NULL: 1 */
    const float *numbers;        /* by fused_chunk: fpa_cuda_call's */
    int numbers_of;
    bool narrows;     /* by fused_chunk: o is of f16 (geometry.fused_narrows) */
    bool adds;        /* by fused_chunk: to what o is */
    int64_t reversed; /* of so many tokens, from the last one on (cuda_turns); 0: from the first one */
    /* the copy engine's maps describe each head by itself, since the rows of the walk whose states are multiplied by
     * these cannot be described as one row of all heads */
    bool apart;
} cuda_dots;

void cuda_set_dots(const cuda_dots *dots, cuda_sizes *s);

/* As cuda_forward, behind what is in the queue. *states: what cuda_state_products (launch_contraction.h) takes: `kept`, or in the workspace
 * the states before each chunk but the first of geometry.chunk tokens; NULL: of a single chunk. */
void cuda_forward_dots(cuda_queue *behind, const fpa_module *module, int form,
                       const struct fpa_launch *launch, const fpa_candidate *candidate, const cuda_dots *dots,
                       const void **states);

/* Several kernels, one behind the other; s is of a candidate that suits. */
void cuda_launch_all(cuda_queue *q, cuda_sizes *s);

/* Sizes and workspace of a call of warpgroups' kernels of a head that nothing is padded for, with its operands; and what comes before its
 * queries there, copies of states where it has several chunks, unless cuda_forward of the same sizes has left that (walked). */
void cuda_walk_states(cuda_queue *q, int form, bool walked, int64_t reversed, cuda_sizes *s);

#endif
