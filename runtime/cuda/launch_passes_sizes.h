/* launch_passes_sizes: the division of a call of gradients by forward passes into pieces, which are processed one after the other, and
 * its workspace. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PASSES_SIZES_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PASSES_SIZES_H

#include "launch_backward_rows.h"
#include "machine/cuda_candidates.h"

/* A piece: sequences of query heads that are processed at the same time: some heads of one batch entry, or all heads of several entries. */
typedef struct passes_piece {
    int64_t first, batch, heads;
} passes_piece;

/* Bytes of each part of the workspace, in this order. */
typedef struct passes_room {
    size_t outputs, rows, gates, result, forward; /* rows: of queries; the same number again for keys */
    size_t reads, read_dots, given_dots,
        products;   /* for gradients of log-gates; reads: workspace of the pass for query sums */
    size_t weights; /* of coordinates of rows */
    size_t zero;    /* a log-gate of zero */
    size_t kept;    /* states of the forward pass; the same again for the reversed pass */
    size_t operands, made, parts,
        sums;         /* made rows and their gradients; matrices, parts and sums of their gradients */
    size_t queries;   /* bytes of `made` before the rows of keys, if made rows share memory */
    size_t features;  /* of made rows, and their gradients */
    size_t lift_kept; /* gradients of rows, for gradients of a lift's matrices */
} passes_room;

/* Which part of rows is gathered: all numbers; vectors without values, which are then read as given; or nothing. */
typedef enum pass_gathered { GATHERS_ALL, GATHERS_VECTORS, GATHERS_NOTHING } pass_gathered;

/* One call. */
typedef struct passes {
    const fpa_module *module;
    const struct fpa_cuda_module *cuda;
    cuda_queue *queue;  /* NULL while sizes are computed */
    passes_piece these; /* the sequences in flight */
    /* the call; if rows are made: of_rows, the call with these rows in place of q and k */
    const struct fpa_backward_launch *launch;
    struct fpa_backward_launch of_rows;
    made_rows made;         /* unused if the head makes no rows */
    int form, d, dv;        /* widths of results d_q, d_k and d_v */
    int64_t group, at_once; /* query heads for each key head; sequences of a piece */
    bool contracts;         /* d_q and d_k are computed by NAME_chunk_contraction of the pass of values */
    fpa_pass dots; /* for gated heads: the pass that stores dot products for gradients of log-gates */
    /* the rows that are in the workspace now were gathered in forward order, with all their numbers */
    bool forth;
    bool turns; /* contractions, and the pass of d_v, process operands as given, in reverse order of tiles */
    /* tokens of the reversed contraction or pass being launched (cuda_dots.reversed); 0: forward order */
    int64_t behind;
    bool given, given_values; /* vectors, and rows g and values, are read as given */
    pass_gathered gathers;    /* which part of rows the workspace has memory for */
    bool shares;              /* made rows, gathered rows and results share memory (share_room) */
    bool keeps;               /* the pass `dots` is computed by NAME_fused_chunk, which stores its states */
    /* tokens and number of chunks for gradients of log-gates, whose sums start anew at a chunk's end; the call's tokens, rounded up to
     * whole chunks */
    int64_t chunk, chunks, reached;
    passes_room room;
    struct fpa_cuda_call call;
    struct fpa_cuda_backward back;
    char *forward, *reads; /* workspaces of passes */
    void *kept, *reversed_kept;
    float *read_dots, *given_dots;
    double *products;
    float *zero;    /* the log-gate of all tokens if only passes have a gate; else NULL */
    float *weights; /* of coordinates, if passes of rows multiply their outputs by these; else NULL */
    const void *states, *reversed_states; /* the states in kept and reversed_kept, or in passes' workspaces */
    /* passes of rows that keep states read each head's rows as a tensor of its own (cuda_dots.apart) */
    bool apart;
    /* operands are gathered as bf16, and passes store gradients of f16 directly (cuda_dots.narrows) */
    bool narrows;
    /* if !apart: the stride of their values from head to head, if maps describe all heads as one; else 0 */
    int64_t value_stride;
    bool gives_ahead; /* given_dots are stored in forward order of tokens */
} passes;

/* Whether parts of the values are read as given; otherwise they are gathered, with zeros after the last value. */
bool pass_parts_are_given(const passes *p);

/* Whether the copy engine can fetch a tensor of the call as given. */
bool pass_describes(const passes *p, const void *base, const int64_t stride[3]);

/* Whether a contraction can read rows g and values as given while vectors are gathered. */
bool pass_can_give_values(const passes *p);

/* Numbers of a gathered row, including the other factors of product rows at its end; 0: nothing is gathered. */
int pass_row_width(const passes *p, pass_gathered gathered);

/* What must be gathered if kernels reverse the order of tokens themselves. lie: for this call's operands; else for those with the most
 * favourable addresses and strides. */
pass_gathered pass_least_gathered(const passes *p, bool lie);

/* The piece that begins with sequence number `first`. */
passes_piece passes_piece_at(const passes *p, int64_t first);

/* Whether contractions and the pass of d_v can process these sequences' operands as given, in reverse order of
 * tiles. */
bool passes_turn(const passes *p, passes_piece these);

/* Whether the call needs a pass, for a gradient or for its dot products. */
bool passes_want(const passes *p, fpa_pass pass);

/* Finds the candidate for a pass that only NAME_fused_chunk can compute. False: any candidate can. */
bool passes_find(const passes *p, fpa_pass pass, const struct fpa_launch *launch, fpa_candidate *found);

/* Dot products for each token, whose sum is a query or key sum: one for each block of columns, or those of a contraction. */
int64_t pass_dot_blocks(const passes *p);
/* Whether NAME_backward_outputs computes the query sums of the whole call. */
bool pass_outputs_read(const passes *p);

/* Fills *p except for operands and addresses; *p must not be moved afterwards. Returns bytes of the workspace: at most the module's
 * limit, unless a single sequence, or the sequences of one key head, need more. */
size_t passes_prepare(passes *p, const fpa_module *module, int form,
                      const struct fpa_backward_launch *launch);

/* Sets the addresses of the workspace's parts, which begins at `base`; p->call and p->back must already be those of the call. */
void passes_place(passes *p, char *base);

#endif
