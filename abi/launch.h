/* launch: the arguments of an emitted kernel. This text is also copied into every
 * generated header, so that generated files stand alone. Offsets are 64-bit and
 * counted in elements of the tensor's own type; the last axis is contiguous. */
#ifndef FPA_LAUNCH_H
#define FPA_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

struct fpa_launch {
    int64_t batch;       /* B */
    int64_t length;      /* L, tokens per sequence; 0 is allowed */
    int64_t query_heads; /* heads of q and o: a multiple of heads; 0: only the state is wanted */
    int64_t heads; /* H, heads of k, v, log_gate and state; query head h reads h / (query_heads / heads) */
    const void *q, *k, *v;
    void *o;
    int64_t q_stride[3], k_stride[3], v_stride[3], o_stride[3]; /* batch, token, head */
    const float *log_gate;         /* natural logarithm of each step's gate; NULL without a gate */
    int64_t gate_stride[3];        /* batch, token, head */
    const float *positions;        /* of tokens, those of k; NULL when the head takes none */
    int64_t position_stride[3];    /* batch, token, number of the position */
    const unsigned char *key_mask; /* nonzero: the key takes part; 0: it contributes nothing, whatever its k
                                      and v are. NULL when the head takes none */
    int64_t key_mask_stride[2];    /* batch, token */
    const void *state_in;          /* NULL: zero. One state a (batch, head); see the head's layout */
    int64_t state_in_stride[2];    /* batch, head */
    void *state_out;               /* NULL: not wanted. May be state_in itself */
    int64_t state_out_stride[2];   /* batch, head */
    const float *const *weights;   /* run-time matrices in the head's order; each [heads,] rows, cols */
    void *workspace;               /* at least NAME_workspace() bytes, 64-byte aligned */
    size_t workspace_size;         /* bytes */
    int64_t recent; /* tokens of k, v, log_gate, positions and key_mask before q's first that state_in has not
                       seen: of heads with a window in every form, whose state_out then has all keys that are
                       older than the next token's window; else in the recurrent form, of length 1, while the
                       state stays as it is (state_out is NULL). With cu_seqlens, of heads without a window: no
                       sequence has more; each has its own query's key and value as its last token */
    float *den;     /* of normalised heads: where the sums of outputs' scores go; NULL: not wanted */
    int64_t den_stride[3]; /* batch, token, head */
    const void *
        cu_seqlens; /* NULL: each sequence has `length` tokens. Else [batch + 1], of cu_seqlens_bytes (4 or 8)
                               each: all sequences lie in batch 0 of the tensors of tokens, number b as their tokens
                               cu_seqlens[b] .. cu_seqlens[b + 1] - 1, of `total`; none has more than `length`.
                               With `recent` these are of keys: q, o and den have one a sequence, token b */
    int64_t cu_seqlens_bytes;
    int64_t total;
    const int32_t *state_in_index,
        *state_out_index;                    /* [batch]: which of the states is a sequence's; negative: none.
                                                        NULL: number b */
    int64_t state_in_slots, state_out_slots; /* states that there are, of a (slot, head) each */
};

/* A call as pieces of work, for threads that have other calls to carry out beside it: those of a layer's heads.
 * They are two rounds, numbered through: any order within one, all of the first before the second. */
struct fpa_share {
    int64_t pieces[2]; /* of each round */
    int threads;       /* that OpenMP would use now */
    int most;          /* threads that can share a piece; of the parallel form one that is no state */
    size_t room;       /* bytes of workspace of each thread, 64-byte aligned */
};

/* A thread with a piece of work, which `team` of them share. */
struct fpa_member {
    int rank, team;      /* number `rank` of them; 0 and 1: alone */
    void *mine, *shared; /* `room` bytes of this thread, and of number 0 */
    void *meeting; /* where the team waits for each other: two ints, at first 0, then as they were left */
};

typedef void fpa_member_work(void *user, int thread, int threads);

/* The arguments of a backward pass. What is NULL is not wanted, and not computed. */
struct fpa_backward_launch {
    struct fpa_launch
        forward;     /* the forward pass's operands, and o and den as it wrote them; no final state */
    const void *d_o; /* the gradient of o */
    int64_t d_o_stride[3];
    const void *d_state_out; /* the gradient of the final state; NULL: zero */
    int64_t d_state_out_stride[2];
    void *d_q, *d_k, *d_v; /* gradients, each in the type of its operand */
    int64_t d_q_stride[3], d_k_stride[3], d_v_stride[3];
    float *d_log_gate;
    int64_t d_log_gate_stride[3];
    void *d_state_in;
    int64_t d_state_in_stride[2];
    float *const *d_weights; /* as weights, entries may be NULL; NULL: none is wanted */
};

#endif
