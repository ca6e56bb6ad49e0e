/* launch_backward_rows: rows of sequences in flight that kernels of gradients have in the workspace, in the place of an operand: padded, where those
 * that are given are no whole pieces of 16 bytes; or made by matrices before they run, and what rows' gradients are to q, k and the
 * matrices is made behind them (gen/plan/row_head.h). */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_ROWS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_ROWS_H

#include "grid.h"
#include "runtime/backend.h"

/* Padded q and k, v and d_o of one call. `call` and `back` are of tensors as they are given. */
typedef struct backward_pads {
    const struct fpa_cuda_module *cuda;
    const struct fpa_launch *launch;
    struct fpa_cuda_call call;
    struct fpa_cuda_backward back;
} backward_pads;

/* Bytes of a sequence's padded rows, of all its query heads. */
int64_t backward_pad_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);

/* The workspace's rows of the sequences in flight. */
void place_backward_pads(backward_pads *p, char *rows, int64_t sequences);

/* Rows of some sequences, which call and back then have in the place of those that are given. */
void launch_backward_pads(cuda_queue *q, backward_pads *p, struct fpa_cuda_call *call,
                          struct fpa_cuda_backward *back);

/* Rows that matrices make, of one call. `call` and `back` are of tensors as they are given. */
typedef struct made_rows {
    const struct fpa_cuda_module *cuda;
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
void made_begin(cuda_queue *q, const made_rows *m);
/* Rows of some sequences, or their features, which call and back then have in the place of q, k, and their gradients. */
void made_project(cuda_queue *q, made_rows *m, struct fpa_cuda_call *call, struct fpa_cuda_backward *back);
/* The same for a launch whose operands they are. */
void made_give(const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back,
               struct fpa_backward_launch *launch);
/* d_q and d_k as far as they are wanted, and sums of d_weights of each of these sequences. */
void made_unproject(cuda_queue *q, made_rows *m);

/* launch->d_weights, if they are wanted, of all sequences' sums, whether rows were made or not. */
void launch_weight_sums(cuda_queue *q, const struct fpa_backward_launch *launch,
                        const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back);

#endif
