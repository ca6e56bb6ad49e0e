/* cuda_call: what emitted CUDA kernels and the code that launches them agree on. This text is
 * also copied into every emitted file, which includes nothing.
 *
 * Kernels of a head NAME, in the order in which a forward launches them:
 *   NAME_gates   running sums of the log-gates, chunk by chunk            (gated heads)
 *   NAME_pack    vectors of packed rows                                   (warpgroups, where q and k need it)
 *   NAME_state   walks the keys: the state before each chunk, and after the last
 *   NAME_state2  the same with smaller blocks, for few heads              (some heads on warpgroups)
 *   NAME_carry   adds what earlier segments left to the copies of later ones
 *   NAME_attend  reads the state, then the chunk's own keys; writes o; on warpgroups beside NAME_state, where
 *                sequences are walked in one piece: chunk by chunk, as soon as the state before it is there
 *   NAME_flow    all in one pass, for heads of few features: after a walk for the totals of segments,
 *                it goes along with the state in registers, query, own keys, update, panel by panel
 *   NAME_relay   instead of it, for few sequences: the blocks of a cluster take turns and hand the state on
 *   NAME_step    the recurrent form: update and query in one pass over the state
 *   NAME_token   instead of it, for one token of few heads, whose states fit into shared memory
 *   NAME_recall  instead of it, when recent tokens are not in the state yet, which stays as it is
 *   NAME_gather  adds the parts of o that blocks of these left            (several slices)
 * Their parameters: one fpa_cuda_call; then, when the head has run-time matrices, an array of
 * their addresses; NAME_state and NAME_attend of warpgroups: fpa_cuda_maps instead; NAME_flow of warpgroups:
 * between them. NAME_relay: fpa_cuda_maps behind the call. Sizes are elements unless a name says bytes. */
#ifndef FPA_CUDA_CALL_H
#define FPA_CUDA_CALL_H

/* A compiler takes seconds for all kernels, one after the other. So a file may be compiled as several
 * programs at once, each with FPA_CUDA_PART defined as one of these: modules that together have all kernels.
 */
#define FPA_CUDA_STEP 1   /* NAME_step, _token, _gather */
#define FPA_CUDA_RECALL 2 /* NAME_recall */
#define FPA_CUDA_ATTEND 3 /* NAME_attend */
#define FPA_CUDA_FLOW 4   /* NAME_flow, _relay */
#define FPA_CUDA_WALK 5   /* NAME_gates, _pack, _state, _carry */
#define FPA_CUDA_WALK2 6  /* NAME_state2 */
#define FPA_CUDA_PARTS 6
#ifdef FPA_CUDA_PART
#define FPA_CUDA_HAS(part) ((part) == FPA_CUDA_PART)
#else
#define FPA_CUDA_HAS(part) 1
#endif

/* The kernels' own constants; NAME_geometry in the module. */
struct fpa_cuda_geometry {
    int version;        /* FPA_CUDA_VERSION of the generator */
    int features;       /* D, rounded up to whole units of 16 */
    int columns;        /* of the copies: dv rounded up, then one of z when normalised, rounded up */
    int column_blocks;  /* blocks of columns that state and attend are launched for */
    int copy_bytes;     /* of an element of the copies of the state */
    int chunk;          /* tokens between copies of the state: a multiple of query_tokens */
    int state_elements; /* of one (batch, head) as given in and out: D*dv, then D when normalised */
    int state_element;  /* bytes of one */
    int weights;        /* run-time matrices */
    int gate;           /* 1: gated */
    int state_threads, state_slices, state_bytes;   /* NAME_state: threads, blocks a head, shared memory */
    int attend_threads, query_tokens, attend_bytes; /* NAME_attend: tokens a block */
    int flow_threads, flow_bytes;                   /* NAME_flow; 0 threads: the head has none */
    int flow_totals;                                /* 1: it can leave the totals of segments itself */
    int flow_total; /* numbers of a total in an order of its own, which NAME_carry cannot read; 0: as in a
                       copy */
    int relay_threads, relay_bytes;    /* NAME_relay; 0 threads: there is none */
    int flow_vector, flow_value;       /* d and dv when NAME_flow by roles, or NAME_relay, is there, else 0 */
    int carry_threads, carry_elements; /* NAME_carry: elements of a copy that a block takes */
    int gates_threads;
    int step_threads, step_features,
        step_bytes,     /* NAME_step: features that a block takes at least; 0 threads: none */
        step_cluster,   /* blocks of a head, at most, that can be one cluster */
        token_bytes,    /* NAME_token: shared memory beside a block's rows of the state; 0: there is none */
        token_least,    /* with them, at least */
        token_row,      /* bytes of a row */
        token_most,     /* of shared memory that a launch may ask for */
        recalls;        /* 1: there is NAME_recall */
    int gather_threads; /* NAME_gather: a block an output row */
    int second_threads, second_slices, second_bytes; /* NAME_state2; 0 blocks a head: there is none */
    int state_clocks, second_clocks; /* estimates, when NAME_attend stays: of a block for 16 tokens, */
    int attend_clocks;               /* and of NAME_attend for 16 queries and a block of columns */
    int stays;  /* 1: blocks take one walk, or one block of queries, after the other: NAME_state's by
                   gridDim.x,  NAME_attend's whichever is next */
    int decays; /* 1: NAME_gates leaves decays, too */
    int vector_rows, pack_threads, pack_tokens, pack_bytes; /* NAME_pack; 0 threads: there is none */
    int value_width; /* dv when NAME_state and NAME_attend take fpa_cuda_maps, else 0 */
};

#define FPA_CUDA_VERSION 10

/* Tokens that a block of NAME_relay takes at a time. */
#define FPA_CUDA_STRETCH 128

/* Bytes of 64 keys in fpa_cuda_call.decays: 16 bits each, what their chunk leaves of the sums before it
 * (fp32), and 12 that nobody reads, so that bulk copies can have them. */
#define FPA_CUDA_DECAYS 144

struct fpa_cuda_call {
    long long batch, length, query_heads, heads;
    const void *q, *k, *v;
    void *o;
    long long q_stride[3], k_stride[3], v_stride[3], o_stride[3]; /* batch, token, head */
    const float *log_gate;
    long long gate_stride[3];
    const void *state_in;
    long long state_in_stride[2]; /* batch, head */
    void *state_out;
    long long state_out_stride[2];
    /* parts of the workspace */
    float *gates;   /* [B][H][gate_row][2]: sum from the chunk's first token on, times log2(e), high and low
                       part; behind the last row there is room for query_tokens more */
    void *states;   /* [B][H][chunks][features][columns]: the state before each chunk, or tile by tile */
    float *totals;  /* [B][H][segments][features][columns]: what a segment alone adds up to */
    float *partial; /* [B][query_heads][length][slices][]: parts of o: dv, then the sum of weights, each
                       rounded up to 4 */
    float *running; /* [B][H][state_elements rounded up to 4]: the state between tokens of a recurrent call */
    void *decays; /* [B][H][gate_row / 64], FPA_CUDA_DECAYS bytes each: what 64 keys keep until their chunk's
                     end, and what it leaves of the sums before it */
    long long gate_row;      /* length in whole blocks of 64 */
    void *vectors;           /* NAME_pack: [B][its heads][length][vector_rows] */
    long long packs_queries; /* NAME_pack: 1 queries, 0 keys */
    /* zeros at first: items that blocks of NAME_attend have taken; then, for [B][H][chunks][column blocks],
     * blocks of NAME_state that have written their part of a copy. NULL: NAME_attend has a block for each
     * item */
    unsigned *progress;
    /* sizes chosen for this call */
    long long chunk;  /* tokens; the parallel form: at least length */
    long long chunks; /* that length divides into */
    long long segments;
    long long segment_chunks; /* chunks that one block walks */
    long long first_chunks;   /* of a first segment; NAME_flow by roles: maybe more, else as many */
    long long totals_only;    /* NAME_flow: 1: no queries, the totals of segments */
    long long walk_end;       /* first token that NAME_state leaves out */
    long long beside;         /* query heads whose tokens NAME_attend takes in turn */
    long long awaited; /* NAME_attend runs beside so many blocks of NAME_state a copy, and waits for them; 0:
                          it does not */
    long long slices;  /* blocks of NAME_step, _token or _recall that share one head's features */
    long long share;   /* features that such a block has, at most */
    long long group;   /* query heads that share a key's head */
    long long recent;  /* NAME_recall: tokens of k, v and log_gate before the query's own */
    long long
        joined; /* 1: they are a cluster, which adds its parts of o up itself; the grid is [heads][slices] */
};

/* The driver's description of a tensor, from which the copy engine fetches boxes of 64 numbers and 64 tokens:
 * dimensions number, head, token, batch; what lies outside of them is zero. */
struct fpa_tensor_map {
#ifdef __cplusplus
    alignas(64) unsigned long long word[16];
#else
    _Alignas(64) unsigned long long word[16];
#endif
};

/* Of queries, keys (or their vectors) and values; NAME_flow: and of o. What it cannot describe, threads fetch
 * and store. */
struct fpa_cuda_maps {
    struct fpa_tensor_map query, key, value, output;
    int queries, keys, outputs; /* 1: query, key and value, output are there */
};

#endif
