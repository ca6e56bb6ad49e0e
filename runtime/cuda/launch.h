/* launch: a forward pass as launches of a module's kernels, and the workspace that it needs. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_H
#define FPAC_RUNTIME_CUDA_LAUNCH_H

#include "runtime/backend.h"
#include "grid.h"
#include "sizes.h"

/* The functions of fpa_module of these names; module->handle is a struct fpa_cuda_module. cuda_forward allocates nothing and does not
 * wait; the module's context must be current. */
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

/* To which operand the factors in fpa_cuda_call.numbers belong. */
enum { OF_QUERIES, OF_KEYS, FACTORS_OF_KEYS, FACTORS_OF_QUERIES };

/* What a pass of gradients stores or applies besides o (gen/plan/passes.h). */
typedef struct cuda_dots {
    const void *rows; /* of o's type; each output is multiplied by its row, before it is rounded, */
    int64_t stride[3];
    /* and the dot product is stored here, [column blocks][B][query_heads][length]; NULL: not wanted */
    float *dots;
    /* by fused_chunk: [B][H][parts of FPA_CUDA_KEPT tokens][geometry.fused_kept], 16 bits each; NULL: not wanted */
    void *kept;
    const float *column_weights; /* factors of o's columns, before that; NULL: 1 */
    const float *numbers;        /* by fused_chunk: see fpa_cuda_call.numbers */
    int numbers_of;
    bool narrows; /* by fused_chunk: o is of f16 (geometry.fused_narrows) */
    bool adds;    /* by fused_chunk: adds to o instead of storing it */
    /* number of tokens, processed from the last one on (cuda_turns); 0: from the first one on */
    int64_t reversed;
    /* the maps describe each head by itself, since the pass whose states are multiplied by this one's cannot describe the rows of all
     * heads as one */
    bool apart;
} cuda_dots;

void cuda_set_dots(const cuda_dots *dots, cuda_sizes *s);

/* The same as cuda_forward, after the launches in the queue. *states: the operand of cuda_state_products (launch_contraction.h): `kept`,
 * or the states in the workspace before each chunk of geometry.chunk tokens but the first; NULL if there is a single chunk. */
void cuda_forward_dots(cuda_queue *behind, const fpa_module *module, int form,
                       const struct fpa_launch *launch, const fpa_candidate *candidate, const cuda_dots *dots,
                       const void **states);

/* Launches all kernels of a forward pass; s is of a candidate that can be used. */
void cuda_launch_all(cuda_queue *q, cuda_sizes *s);

/* For a call of the split schedule by warpgroups, whose operands need no padding: sets sizes, workspace and operands, and launches what
 * comes before its queries: copies of states, if there are several chunks, unless cuda_forward of the same sizes has left them (walked). */
void cuda_walk_states(cuda_queue *q, int form, bool walked, int64_t reversed, cuda_sizes *s);

#endif
