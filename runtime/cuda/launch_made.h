/* launch_made: gradients of heads whose rows are made by matrices: kernels have rows in the place of q and k, which are made
 * before they run; what rows' gradients are to q, k and the matrices is made behind them (gen/plan/row_head.h). */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_MADE_H
#define FPAC_RUNTIME_CUDA_LAUNCH_MADE_H

#include "module.h"
#include "runtime/backend.h"

/* One call. `call` and `back` are of tensors as they are given. */
typedef struct made_rows {
    const struct fpa_cuda_module *cuda; /* NULL: kernels make their rows themselves */
    const struct fpa_backward_launch *launch;
    bool matrices; /* their gradients are wanted */
    bool features; /* kernels have features of the rows in the place of q and k (gen/plan/feature_line.h) */
    struct fpa_cuda_call call;
    struct fpa_cuda_backward back;
} made_rows;

/* Bytes of a sequence's rows and their gradients, of all its query heads; of the matrices as kernels multiply them. */
int64_t made_sequence_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);
int64_t made_operand_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);
/* Numbers that parts of a sequence's gradients of matrices have. */
int64_t made_part_entries(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);

/* Bytes of a sequence's gradients of rows of a lift's matrices, where those of the matrices are wanted. */
int64_t made_kept_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);

/* Of their features, where passes have these. */
int64_t made_feature_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);

/* The workspace's rows of the sequences in flight; their features, which kernels have then. */
void made_place(made_rows *m, char *rows, int64_t sequences);
void made_place_kept(made_rows *m, char *kept, int64_t sequences);
void made_place_features(made_rows *m, char *features, int64_t sequences);

/* Once a call: the matrices, split. */
fpa_status made_begin(const made_rows *m, CUstream stream, fpa_error *error);
/* Rows of some sequences, or their features, which call and back then have in the place of q, k, and their gradients. */
fpa_status made_project(made_rows *m, struct fpa_cuda_call *call, struct fpa_cuda_backward *back,
                        CUstream stream, fpa_error *error);
/* The same for a launch whose operands they are. */
void made_give(const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back,
               struct fpa_backward_launch *launch);
/* d_q and d_k as far as they are wanted, and sums of d_weights of each of these sequences. */
fpa_status made_unproject(made_rows *m, CUstream stream, fpa_error *error);

/* d_weights of all sequences' sums, whether rows were made or not. */
fpa_status launch_weight_sums(const struct fpa_cuda_module *cuda, const struct fpa_backward_launch *launch,
                              const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back,
                              CUstream stream, fpa_error *error);

#endif
