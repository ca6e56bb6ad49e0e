/* launch_passes_sizes: what a call of gradients by forward passes is divided into, and its workspace. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PASSES_SIZES_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PASSES_SIZES_H

#include "launch_backward_rows.h"
#include "machine/cuda_candidates.h"

/* Sequences, of query heads, that are taken at once: some heads of one batch entry, or all heads of some. */
typedef struct passes_piece {
    int64_t first, batch, heads;
} passes_piece;

/* Bytes of each part of the workspace, one behind the other. */
typedef struct passes_room {
    size_t outputs, rows, gates, result, forward;  /* rows: of queries, and again of keys */
    size_t reads, read_dots, given_dots, products; /* of gates' gradients: `reads` is a pass's own */
    size_t weights;                                /* of coordinates */
    size_t zero;                                   /* a log-gate */
    size_t kept;                                   /* states of such a pass, forth and again back */
    size_t operands, made, parts, sums;            /* of rows that matrices make, and of gradients of these */
    size_t queries;                                /* of `made`, where it is shared: before rows of keys */
    size_t features;                               /* of rows, and their gradients */
    size_t lift_kept;                              /* of a lift's matrices: gradients of their rows */
} passes_room;

/* What of rows is gathered: all numbers, vectors without values, which are read as they are given, or nothing. */
typedef enum pass_gathered { GATHERS_ALL, GATHERS_VECTORS, GATHERS_NOTHING } pass_gathered;

/* One call. */
typedef struct passes {
    const fpa_module *module;
    const struct fpa_cuda_module *cuda;
    cuda_queue *queue;  /* NULL while sizes are counted */
    passes_piece these; /* that are launched now */
    /* or `of_rows`: the call, with rows that matrices make in the place of q and k */
    const struct fpa_backward_launch *launch;
    struct fpa_backward_launch of_rows;
    made_rows made;         /* if there are any */
    int form, d, dv;        /* widths of results */
    int64_t group, at_once; /* query heads of a key; sequences */
    bool contracts;         /* d_q and d_k are by NAME_chunk_contraction of the pass of values */
    fpa_pass dots;          /* of gated heads the pass that leaves what gates' gradients are made of */
    /* the rows that are in the workspace now were gathered in forward order, with all their numbers */
    bool forth;
    bool turns; /* contractions, and the pass of d_v, process operands as given, in reverse order of tiles */
    int64_t behind; /* number of tokens of a reversed pass, while one is launched; 0: forward order */
    bool given, given_values; /* of vectors, and of rows g and values, as they are given */
    pass_gathered gathers;    /* what of rows has room, in each piece of the call */
    bool shares;              /* product rows, and what becomes of them, share room in time (share_room) */
    bool keeps;               /* which is by NAME_fused_chunk */
    int64_t chunk, chunks,
        reached; /* at whose ends their sums begin anew; tokens with those that make chunks whole */
    passes_room room;
    struct fpa_cuda_call call;
    struct fpa_cuda_backward back;
    char *forward, *reads; /* workspaces of passes */
    void *kept, *reversed_kept;
    float *read_dots, *given_dots;
    double *products;
    float *zero;    /* the log-gate of all tokens, where only passes have one; else NULL */
    float *weights; /* of coordinates, where passes of rows weigh their outputs; else NULL */
    const void *states, *reversed_states; /* in these */
    bool apart; /* of passes of rows, which keep them: no operand's rows of all heads are described as one */
    /* their results, and those of values, leave as the gradients are, of f16, where operands are of bf16 */
    bool narrows;
    int64_t value_stride; /* else, if their values' are, from head to head */
    bool gives_ahead;     /* given_dots are of tokens from the first one on */
} passes;

/* Whether parts of the values are read as given; otherwise they are gathered, with zeros after the last value. */
bool pass_parts_are_given(const passes *p);

/* What a contraction can fetch as it lies: whether the driver can describe a tensor of the call. */
bool pass_describes(const passes *p, const void *base, const int64_t stride[3]);

/* Whether rows g and values can be as they are given, where vectors are gathered. */
bool pass_can_give_values(const passes *p);

/* Numbers of a gathered row: 0, of nothing. Of product rows other factors follow behind what else is gathered. */
int pass_row_width(const passes *p, pass_gathered gathered);

/* What must be gathered if tokens are processed in reverse order as given. lie: for this call's operands; else for
 * the most favourable ones. */
pass_gathered pass_least_gathered(const passes *p, bool lie);

/* Sequences from number `first` on. */
passes_piece passes_piece_at(const passes *p, int64_t first);

/* Whether contractions and the pass of d_v can process these sequences' operands as given, in reverse order of
 * tiles. */
bool passes_turn(const passes *p, passes_piece these);

/* Whether the call takes passes of that kind. */
bool passes_want(const passes *p, fpa_pass pass);

/* Finds the candidate that computes a pass whose outputs' dot products are wanted; false: any candidate does. */
bool passes_find(const passes *p, fpa_pass pass, const struct fpa_launch *launch, fpa_candidate *found);

/* Numbers of a token that what queries read, or keys give, is the sum of: one a block of columns, or one of a contraction. */
int64_t pass_dot_blocks(const passes *p);
/* Whether what all queries read is known with outputs, by one launch. */
bool pass_outputs_read(const passes *p);

/* Fills *p, except for operands and addresses; *p must not move afterwards. Returns bytes of the workspace: at
 * most the module's limit, unless a single sequence, or those that share a key head, need more. */
size_t passes_prepare(passes *p, const fpa_module *module, int form,
                      const struct fpa_backward_launch *launch);

/* Addresses of the workspace's parts, which begins at `base`; p->call and p->back are those of the call. */
void passes_place(passes *p, char *base);

#endif
