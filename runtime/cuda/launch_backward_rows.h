/* launch_backward_rows: rows in the workspace that kernels of gradients read in place of an operand, for the sequences in flight: padded
 * rows, if rows as given are not multiples of 16 bytes; or made rows (gen/plan/row_head.h), which are computed before the other kernels,
 * and whose gradients become those of q, k and matrices after them. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_ROWS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_BACKWARD_ROWS_H

#include "grid.h"
#include "runtime/backend.h"

/* Padded q, k, v and d_o of one call. `call` and `back` describe the tensors as given. */
typedef struct backward_pads {
    const struct fpa_cuda_module *cuda;
    const struct fpa_launch *launch;
    struct fpa_cuda_call call;
    struct fpa_cuda_backward back;
} backward_pads;

/* Bytes of a sequence's padded rows, of all its query heads. */
int64_t backward_pad_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);

/* Sets the places of padded rows of the sequences in flight. */
void place_backward_pads(backward_pads *p, char *rows, int64_t sequences);

/* Launches padding of some sequences' rows; call and back then have these in place of the tensors as given. */
void launch_backward_pads(cuda_queue *q, backward_pads *p, struct fpa_cuda_call *call,
                          struct fpa_cuda_backward *back);

/* Made rows of one call. `call` and `back` describe the tensors as given. */
typedef struct made_rows {
    const struct fpa_cuda_module *cuda;
    const struct fpa_backward_launch *launch;
    bool matrices; /* their gradients are wanted */
    bool features; /* kernels read features of the rows in place of q and k (gen/plan/feature_line.h) */
    struct fpa_cuda_call call;
    struct fpa_cuda_backward back;
} made_rows;

/* Bytes of a sequence's rows and their gradients, of all its query heads; of the matrices as operands. */
int64_t made_sequence_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);
int64_t made_operand_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);
/* Numbers in the parts of a sequence's gradients of matrices. */
int64_t made_part_entries(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);

/* Bytes that a sequence stores for gradients of a lift's matrices, if these are wanted. */
int64_t made_kept_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);

/* Bytes of a sequence's features of made rows, if passes read these. */
int64_t made_feature_bytes(const struct fpa_cuda_geometry *g, const struct fpa_launch *launch);

/* Sets the places of rows of the sequences in flight; of numbers for gradients of matrices; of features, which kernels then read. */
void made_place(made_rows *m, char *rows, int64_t sequences);
void made_place_kept(made_rows *m, char *kept, int64_t sequences);
void made_place_features(made_rows *m, char *features, int64_t sequences);

/* Once for each call: launches the splitting of matrices. */
void made_begin(cuda_queue *q, const made_rows *m);
/* Launches the computation of some sequences' rows, or features; call and back then have these in place of q and k and of their
 * gradients. */
void made_project(cuda_queue *q, made_rows *m, struct fpa_cuda_call *call, struct fpa_cuda_backward *back);
/* Sets them as operands of a launch. */
void made_give(const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back,
               struct fpa_backward_launch *launch);
/* Launches d_q and d_k, as far as they are wanted, and the sums for d_weights of each of these sequences. */
void made_unproject(cuda_queue *q, made_rows *m);

/* launch->d_weights, if they are wanted, from the sums of all sequences, with or without made rows. */
void launch_weight_sums(cuda_queue *q, const struct fpa_backward_launch *launch,
                        const struct fpa_cuda_call *call, const struct fpa_cuda_backward *back);

#endif
