/* launch: the arguments of an emitted C kernel. This text is also copied into every generated header, so that
 * generated files need no other file. Strides are 64-bit, in elements of the tensor's type; the last axis is
 * contiguous. */
#ifndef FPA_LAUNCH_H
#define FPA_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

struct fpa_launch {
    int64_t batch;       /* B */
    int64_t length;      /* L, tokens of a sequence; 0 is allowed */
    int64_t query_heads; /* heads of q and o, a multiple of `heads`; 0: only the final state is computed */
    /* H, heads of k, v, log_gate and state; query head h uses key/value head h / (query_heads / heads) */
    int64_t heads;
    const void *q, *k, *v;
    void *o;
    int64_t q_stride[3], k_stride[3], v_stride[3], o_stride[3]; /* batch, token, head */
    const float *log_gate;      /* natural logarithm of each step's gate; NULL without a gate */
    int64_t gate_stride[3];     /* batch, token, head */
    const float *positions;     /* positions of the tokens of k; NULL: the head has no positions */
    int64_t position_stride[3]; /* batch, token, number of a position */
    /* 0: the key contributes nothing, whatever its k and v are; else it takes part. NULL: the head has no mask of
     * keys */
    const unsigned char *key_mask;
    int64_t key_mask_stride[2]; /* batch, token */
    /* the initial states, one for each (batch, head), S [D][dv], then z [D] if the head has it; NULL: zero */
    const void *state_in;
    int64_t state_in_stride[2];  /* batch, head */
    void *state_out;             /* the final states; may be state_in. NULL: not wanted */
    int64_t state_out_stride[2]; /* batch, head */
    /* run-time matrices in the head's order, each [rows][cols], or [heads][rows][cols] */
    const float *const *weights;
    void *workspace;       /* at least NAME_workspace() bytes, 64-byte aligned */
    size_t workspace_size; /* bytes */
    /* Tokens of k, v, log_gate, positions and key_mask before q's first one that state_in does not contain.
     * Heads with a window, in every form: state_out then contains all keys that are older than the window of the
     * next token.
     * Other heads: in the recurrent form, with length 1; the state is only read, and state_out is NULL. With
     * cu_seqlens, `recent` is the most tokens of a sequence, and the last token of each sequence has its query's
     * own key and value. */
    int64_t recent;
    float *den;            /* result of normalised heads: each output's sum of scores; NULL: not wanted */
    int64_t den_stride[3]; /* batch, token, head */
    /* NULL: each sequence has `length` tokens. Else [batch + 1] integers of cu_seqlens_bytes (4 or 8) each:
     * sequence b is the tokens cu_seqlens[b] .. cu_seqlens[b + 1] - 1 of batch 0 of all tensors with tokens, of
     * which there are `total`; none has more than `length`. With `recent`, cu_seqlens count keys; q, o and den
     * have one token per sequence, number b. */
    const void *cu_seqlens;
    int64_t cu_seqlens_bytes;
    int64_t total;
    /* [batch]: the slot of each sequence's state; negative: it has none. NULL: sequence b has slot b */
    const int32_t *state_in_index, *state_out_index;
    int64_t state_in_slots, state_out_slots; /* number of slots; a slot has a state for each head */
};

/* How a call is divided into pieces of work, for a caller that distributes the calls of several heads (a layer)
 * among its own threads. There are two rounds of pieces, which are numbered consecutively: pieces of a round are
 * independent, and the second round begins when the first one has ended. */
struct fpa_share {
    int64_t pieces[2]; /* pieces of each round */
    int threads;       /* threads that OpenMP would use now */
    /* the most threads that can share a piece; in the parallel form pieces of the first round, which compute
     * outputs, have one thread each */
    int most;
    size_t room; /* bytes of workspace for each thread; the caller aligns it to 64 bytes */
};

/* The calling thread's place in the team of threads that share a piece. */
struct fpa_member {
    int rank, team; /* 0 <= rank < team; rank 0 of team 1: it has the piece alone */
    /* workspaces of `room` bytes: this thread's, and that of rank 0, which all threads of the team use */
    void *mine, *shared;
    /* the team's barrier: two ints, initially 0; the next piece may use it as the last one left it */
    void *meeting;
};

typedef void fpa_member_work(void *user, int thread, int threads);

/* The arguments of a backward pass. A result whose pointer is NULL is not computed. */
struct fpa_backward_launch {
    /* the operands of the forward pass, with the o and den that it wrote; state_out is not used */
    struct fpa_launch forward;
    const void *d_o; /* the gradient of o */
    int64_t d_o_stride[3];
    const void *d_state_out; /* the gradient of the final state; NULL: zero */
    int64_t d_state_out_stride[2];
    void *d_q, *d_k, *d_v; /* results, each in the type of its operand */
    int64_t d_q_stride[3], d_k_stride[3], d_v_stride[3];
    float *d_log_gate;
    int64_t d_log_gate_stride[3];
    void *d_state_in;
    int64_t d_state_in_stride[2];
    /* results, shaped as forward.weights; NULL, or an entry that is NULL: not wanted */
    float *const *d_weights;
};

#endif
