/* cuda_call: what emitted CUDA kernels and the code that launches them agree on. This text is
 * also copied into every emitted file, which includes nothing.
 *
 * Kernels of a head NAME, in the order in which a forward launches them:
 *
 *   NAME_gate_scan          running sums of the log-gates, chunk by chunk (gated heads)
 *   NAME_lift_rows          the coordinates of queries and keys, of heads with a lift: all other kernels have them in
 *                           the place of q and k
 *   NAME_pad_rows           rows of q, k, v in whole pieces of 16 bytes, where their widths are none; values of
 *                           masked keys as zeros
 *   NAME_pack_rows          vectors of packed rows (warpgroups, where q and k need it), or tiles of them (portable
 *                           kernels of many blocks)
 *   NAME_chunk_state        walks the keys: the state before each chunk, and after the last
 *   NAME_chunk_state_small  the same with smaller blocks, for few heads (some heads on warpgroups)
 *   NAME_segment_scan       adds what earlier segments left to the copies of later ones; on warpgroups, where copies
 *                           were kept, beside NAME_chunk_output
 *   NAME_chunk_output       reads the state, then the chunk's own keys; writes o. On warpgroups it runs
 *                           beside NAME_chunk_state, where sequences are walked in one piece: chunk by
 *                           chunk, as soon as the state before it is there
 *   NAME_parallel_output    instead of it where no query reads a state (some heads of wide values)
 *   NAME_fused_chunk        all in one pass, for heads of few features: after a walk for the totals of
 *                           segments, it goes along with the state in registers: query, own keys, update
 *   NAME_cluster_scan       instead of it, for few sequences: the blocks of a cluster take spans of tokens
 *                           in turn and hand the state on
 *   NAME_sequence_scan      the same of sequences of different lengths: clusters take one after the other
 *   NAME_decode             the recurrent form: update and query in one pass over the state
 *   NAME_decode_resident    instead of it, for one token of few heads, whose states fit into shared memory
 *   NAME_decode_recent      instead of it, when recent tokens are not in the state yet, which stays as it is
 *   NAME_decode_draft       instead of it, of several tokens that the state does not take in, behind some that it does
 *   NAME_decode_window      the keys in a token's window, and what NAME_decode found in the state, divided
 *   NAME_split_reduction    adds the parts of o that blocks of these left (several slices)
 *   NAME_state_product      of passes that are gradients: what two walks in opposite directions say of each chunk's end
 *   NAME_chunk_contraction  of such passes whose kernel is a square: gradients of queries from the copies of the state and the chunk's own keys
 *
 * Gradients are a file of their own, which has NAME_gate_scan and
 *
 *   NAME_backward_outputs   of normalised heads: 1 / n, and the gradient of the sum of scores, of each output; walks of queries find it themselves
 *   NAME_backward_state     the state before each chunk; or the one behind it, of queries and d_o, from the last chunk on
 *   NAME_backward_segments  adds what earlier segments of such a walk left to the states of later ones
 *   NAME_backward_queries   d_q, from the state before the chunk and the chunk's own keys
 *   NAME_backward_keys      d_k and d_v, from the state behind the chunk and the chunk's own queries
 *   NAME_backward_gates     d_log_gate
 *   NAME_backward_parts     adds up what blocks have left of the gradients of matrices, of each sequence
 *   NAME_backward_weights   and of all sequences that share a matrix; it has d_weights in the place of the matrices
 *   NAME_backward_split     matrices as other kernels multiply them (16-bit heads with matrices)
 *   NAME_backward_project   rows of queries and keys by them, or coordinates that a lift makes: all kernels above have these in the place of
 *                           q and k
 *   NAME_backward_unproject d_q and d_k of the gradients of rows
 *   NAME_backward_products  and parts of the gradients of matrices
 *   NAME_backward_form      features of those rows, which passes have in the place of q and k (some heads)
 *   NAME_backward_join      and gradients of rows of those of features
 *   NAME_backward_gather    rows of forward passes that are gradients: queries with d_o, keys with values (some heads)
 *   NAME_backward_scatter   and what such a pass gave, to d_k or d_v
 *   NAME_backward_pass_gates  d_log_gate of such passes
 *
 * Their parameters: one fpa_cuda_call; then, when the head has run-time matrices, an array of their
 * addresses; NAME_backward_...: an fpa_cuda_backward between them; NAME_chunk_state, NAME_chunk_output of warpgroups and NAME_parallel_output: fpa_cuda_maps instead; NAME_fused_chunk of
 * warpgroups: between them. NAME_cluster_scan, NAME_sequence_scan: fpa_cuda_maps behind the call. Sizes are elements unless a
 * name says bytes. */
#ifndef FPA_CUDA_CALL_H
#define FPA_CUDA_CALL_H

/* A compiler takes seconds for all kernels, one after the other. So a file may be compiled as several
 * programs at once, each with FPA_CUDA_PART defined as one of these: modules that together have all kernels.
 */
#define FPA_CUDA_PART_DECODE 1        /* NAME_decode, _decode_resident, _window, _split_reduction */
#define FPA_CUDA_PART_DECODE_RECENT 2 /* NAME_decode_recent */
#define FPA_CUDA_PART_CHUNK_OUTPUT 3  /* NAME_chunk_output */
#define FPA_CUDA_PART_FUSED 4 /* NAME_fused_chunk, _cluster_scan, _chunk_contraction, _parallel_output */
#define FPA_CUDA_PART_CHUNK_STATE 5       /* NAME_chunk_state */
#define FPA_CUDA_PART_CHUNK_STATE_SMALL 6 /* NAME_chunk_state_small, or NAME_sequence_scan */
#define FPA_CUDA_PART_DECODE_DRAFT 7      /* NAME_decode_draft */
#define FPA_CUDA_PART_ROWS 8 /* what runs before and between them: NAME_pack_rows, _segment_scan */
#define FPA_CUDA_PARTS 8
/* Of gradients: */
#define FPA_CUDA_PART_BACKWARD_MOVED 1 /* NAME_backward_gather, _scatter, _pass_gates */
#define FPA_CUDA_PART_BACKWARD_KEYS 3
#define FPA_CUDA_PART_BACKWARD_QUERIES 4
#define FPA_CUDA_PART_BACKWARD_STATE 5 /* and all others */
#define FPA_CUDA_PART_BACKWARD_ROWS 8  /* rows that are made, and what becomes of their gradients */
#ifdef FPA_CUDA_PART
#define FPA_CUDA_HAS(part) ((part) == FPA_CUDA_PART)
#else
#define FPA_CUDA_HAS(part) 1
#endif

/* How a kernel is launched: threads of a block, 0 when the head has no such kernel; bytes of dynamic shared
 * memory; blocks that a multiprocessor has registers for at a time, 0: as many as fit otherwise. In the order of
 * abi/cuda_kernels.h. */
#define FPA_CUDA_KERNELS 38
struct fpa_cuda_block {
    int threads, bytes, resident;
};

/* What a kernel does, counted for one head: all blocks that share it, together. The model of a machine makes seconds
 * of it (machine/cuda_cost.h). */
struct fpa_cuda_work {
    int products;     /* of 16 x 8 x 16 numbers, on tensor cores */
    int shared;       /* passes of 128 bytes of shared memory */
    int instructions; /* of warps */
    int bytes;        /* of device memory, read or written */
    int cached;       /* bytes that come from the second-level cache once more */
    int awaited;      /* clocks in which a warp waits for what it has asked for, and has nothing else to do */
};
struct fpa_cuda_kernel_work {
    struct fpa_cuda_work step; /* 16 tokens, queries or keys */
    struct fpa_cuda_work copy; /* a copy that is written; NAME_chunk_output: 16 queries that read one;
                                  NAME_pad_rows: queries or keys, where step is of values */
    struct fpa_cuda_work keys; /* 16 queries and 64 keys before them */
    int warpgroups;            /* 1: products are by wgmma */
    int trips;                 /* to memory and back, one after the other, before a block's first step */
};

/* The kernels' own constants; NAME_geometry in the module, filled by these names. */
struct fpa_cuda_geometry {
    int version;                                    /* FPA_CUDA_VERSION of the generator */
    struct fpa_cuda_block kernel[FPA_CUDA_KERNELS]; /* NAME_decode_resident: bytes beside rows of a state */
    int features;                                   /* D, rounded up to whole units of 16 */
    int columns;        /* of the copies: dv rounded up, then one of z when normalised, rounded up */
    int column_blocks;  /* blocks of columns that chunk_state and chunk_output are launched for */
    int copy_bytes;     /* of an element of the copies of the state */
    int chunk;          /* tokens between copies of the state: a multiple of query_tokens */
    int state_elements; /* of one (batch, head) as given in and out: D*dv, then D when normalised */
    int state_element;  /* bytes of one */
    int weights;        /* run-time matrices; with a lift they are NAME_lift_rows's */
    int element;        /* bytes of a number of q, k, v and o */
    int gate;           /* 1: gated */
    int unmasked;       /* 1: every query sees all keys */
    int window;         /* newest keys whose weights are exponentials; 0: none */
    int decays;         /* 1: NAME_gate_scan leaves decays, too */
    int value_width;    /* dv when NAME_chunk_state and NAME_chunk_output take fpa_cuda_maps, else 0 */
    int value_box; /* and numbers that a box of values has: where fewer than 64, NAME_chunk_state has its ones behind them */
    int value_room; /* columns behind dv for values whose boxes begin at the piece of 16 bytes before their rows; 0: they are padded */
    int padded_vector;  /* NAME_pad_rows: numbers that rows of q and k, */
    int padded_value;   /* and of v are brought to; 0: they stay as they are */
    int lifted_vector;  /* NAME_lift_rows: numbers that a token's coordinates take; 0: no lift */
    int lift_tokens;    /* tokens of a head that a block of it takes, of all batches */
    int lift_steps;     /* blocks of rows, which such blocks may share */
    int lift_by_heads;  /* 1: what its blocks keep is not the same for all heads */
    int cluster_maps;   /* 1: NAME_cluster_scan makes the coordinates itself, of q and k as they are given */
    int fused_maps;     /* 1: so does NAME_fused_chunk */
    int sequence_state; /* NAME_sequence_scan: numbers of a state that a cluster leaves to the next one */
    int cluster_stays;  /* 1: its clusters take other sequences behind their first; 0: each has one */
    int cluster_reverses; /* 1: NAME_cluster_scan can take tokens from the last one on */
    int key_mask;         /* 1: a mask of keys is given */
    int vector_rows;      /* numbers of a vector, packed by NAME_pack_rows, or as q and k have it */
    int vector_box; /* and those of a slab that a box has: where fewer than 64, a row of ones lies behind the first ones */
    int given_rows;  /* and coordinates of q and k as they are given that slabs behind them have, 0: none; */
    int given_first; /* number of the first one */
    int panel_keys; /* portable kernels: rows of a tile of pack_tokens keys that NAME_pack_rows leaves; 0: vectors */
    int panel_queries; /* and of queries */
    int pack_tokens;   /* that a block of it takes */
    int pack_operand; /* bytes of the matrices that a launch before splits, where chunks of them come by turns; 0: none */
    int pack_chunks;        /* of them, a block of that launch each */
    int pack_per_head;      /* 1: each head has its own */
    int chunk_state_slices; /* NAME_chunk_state: blocks a head */
    int small_state_slices; /* NAME_chunk_state_small: the same */
    int query_tokens;       /* NAME_chunk_output: that a block takes */
    int parallel_tokens;    /* NAME_parallel_output: the same */
    int awaited_keys;       /* clocks of a warp of it for keys of one stage beside tiles of a copy, for 16
                                  queries and 64 keys */
    int contraction_tokens; /* NAME_chunk_contraction: that a block takes at a time; 0: there is none */
    int contraction_keys;   /* of which it fetches a box at a time */
    int contraction_dots;   /* numbers that it leaves of a token, one for each set of monomials of two dots */
    int contraction_values; /* 1: it can leave sums of scores and values beside gradients of queries */
    int contraction_turns; /* 1: it, NAME_chunk_state and NAME_chunk_output can take tokens from the last one on */
    int persistent;        /* 1: blocks take one walk, or one block of queries, after the other:
                                  NAME_chunk_state's by gridDim.x, NAME_chunk_output's whichever is next */
    int segment_scan_elements; /* NAME_segment_scan: elements of a copy that a block takes */
    int fused_totals;          /* 1: NAME_fused_chunk can leave the totals of segments itself */
    int fused_total;           /* numbers of a total in an order of its own, which NAME_segment_scan cannot
                                  read; 0: as in a copy */
    int fused_vector;          /* d and dv when NAME_fused_chunk of packed rows, or NAME_cluster_scan, is */
    int fused_value;           /* there, else 0 */
    int fused_vector_box; /* numbers of q and k, 16 or 32, in rows of no more of them, that its boxes have; 0: 64 */
    int fused_packs;    /* 1: NAME_fused_chunk takes vectors of NAME_pack_rows */
    int fused_unpadded; /* 1: NAME_fused_chunk takes rows from any address; 2: and joined heads */
    int fused_reverses; /* 1: it can take tokens from the last one on */
    int fused_narrows;  /* 1: it can leave o as f16, though its numbers are bf16 (call.narrows) */
    int fused_kept; /* numbers of the state that it leaves before each FPA_CUDA_KEPT tokens; 0: it leaves none */
    int decode_features;       /* NAME_decode: that a block takes at least */
    int decode_cluster;        /* blocks of a head, at most, that can be one cluster */
    int decode_resident_least; /* NAME_decode_resident: shared memory with rows of a state, at least, */
    int decode_resident_row;   /* bytes of a row, */
    int decode_resident_most;  /* and what a launch may ask for */
    int backward_tokens; /* NAME_backward_queries, _keys: that a block takes; 0: the file has no gradients */
    int backward_both;   /* 1: NAME_backward_keys takes queries, too: see both_sides */
    int backward_walks; /* their blocks walk a chunk; slabs of 64 features that its state has; 0: they take backward_tokens */
    int backward_outputs; /* 1: queries' walks find what gradients of outputs are divided by, for walks back */
    int backward_boundary; /* bytes of a state between parts of chunks, of `chunk` tokens each, beside gates */
    int backward_columns;  /* blocks of columns that NAME_backward_keys is launched for */
    int backward_entries;  /* numbers of the run-time matrices that a head's rows are made by */
    int backward_padded_vector; /* NAME_backward_pads: numbers that rows of q and k, */
    int backward_padded_value;  /* and of v and d_o are brought to; 0: they stay as they are */
    int backward_shared;        /* numbers of all run-time matrices that heads share, */
    int backward_per_head;      /* and of those that each has */
    int pass_width;             /* NAME_backward_gather: numbers of a row; 0: no gradient is a forward pass */
    int pass_values;            /* where d_o and values begin in it, */
    int pass_kept;              /* and numbers behind it, of product rows: other factors of their gradients */
    int pass_input;             /* and what such passes read of it */
    int pass_d, pass_dv;        /* d of the head; columns of the pass of values, */
    int pass_columns;           /* of which so many are the head's values */
    int pass_parts, pass_part;  /* of values, each a pass of rows of so many columns; 1: all are one pass's */
    int pass_line;     /* 1: the kernel is a multiple of q.k: gates' gradients are made of the pass of rows */
    int pass_weighted; /* 1: which is of keys that have weights as they are gathered, */
    int pass_weighs;   /* or 1: passes of rows weigh their outputs (call.column_weights) */
    int pass_widened; /* 1: operands of passes are gathered as bf16, and their results become f16 as they are scattered */
    int pass_formed; /* 1: q and k of passes are product rows, always gathered, and their gradients scattered */
    int pass_features; /* not 0: q and k of passes are so many features of the rows that are made, formed before and joined behind them */
    int pass_numbers; /* 1: operands of passes are as they are given, with numbers beside each token (call.numbers) */
    int pass_beside;   /* 1: of such f16 heads, which know what queries read with outputs */
    int pass_parallel; /* 1: gradients are passes in the parallel form alone */
    int made_width;    /* NAME_backward_project: numbers of a vector of rows; 0: kernels make them */
    int made_tokens;   /* that a block of it, or of NAME_backward_unproject, takes */
    int made_operand;  /* bytes of the matrix that NAME_backward_split leaves, and of its transpose; */
    int made_per_head; /* 1: of each head */
    int made_sides;    /* NAME_backward_products: blocks that share a strip of tokens */
    int made_kept; /* bytes that NAME_backward_unproject leaves of a token for it, where a lift makes rows, */
    int made_sums; /* and of made_tokens of them, behind those of all tokens of a sequence */
    struct fpa_cuda_kernel_work work[FPA_CUDA_KERNELS]; /* NAME_fused_chunk: with queries */
    struct fpa_cuda_kernel_work totals;                 /* NAME_fused_chunk, for totals of segments */
};

#define FPA_CUDA_VERSION 54

/* Tokens that a block of NAME_cluster_scan takes at a time. */
#define FPA_CUDA_SPAN 128

/* Tokens that a block of NAME_backward_gather or _scatter takes; outputs that one of NAME_backward_outputs does. */
#define FPA_CUDA_PASS_TOKENS 64

/* Tokens after which NAME_fused_chunk of a pass leaves the state, and sums of gates' gradients begin anew. */
#define FPA_CUDA_KEPT 256
/* NAME_backward_products: rows and columns of a matrix that a block has; tokens that it takes, and of these at a time; bytes
 * of a token's part in shared memory. */
#define FPA_CUDA_MADE_SIDE 64
#define FPA_CUDA_MADE_STRIP 1024
#define FPA_CUDA_MADE_PANEL 64
#define FPA_CUDA_MADE_PITCH 144
/* Bytes of a matrix that are on their way to a block of NAME_backward_project or _unproject: steps of 16 numbers and 16 to 64 others, of 64 bytes for each. */
#define FPA_CUDA_MADE_RING 16384
/* Bytes from one token to the next of what leaves, of which a warp has 16 at a time. */
#define FPA_CUDA_MADE_LEAVE 144
#define FPA_CUDA_BACKWARD_OUTPUTS 16
/* Numbers of a copy of a state that a thread of NAME_backward_segments has, of all of its walk's copies. */
#define FPA_CUDA_BACKWARD_SEGMENTS 4
/* Tokens that a block of NAME_backward_pads takes. */
#define FPA_CUDA_BACKWARD_PADDED 64

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
    const float *positions;        /* of keys, and of queries: those of the last `length` keys */
    long long position_stride[3];  /* batch, token, number */
    const unsigned char *key_mask; /* 0: the key is masked */
    long long key_mask_stride[2];  /* batch, token */
    const void *state_in;
    long long state_in_stride[2]; /* batch, head */
    void *state_out;
    long long state_out_stride[2];
    float *den; /* of outputs: the sums of scores that normalisers are made of; NULL: not wanted */
    long long den_stride[3];
    /* parts of the workspace */
    float *gates; /* [B][H][gate_row][2]: sum from the chunk's first token on, times log2(e), high and low
                       part; behind the last row there is room for query_tokens more */
    void
        *states; /* [B][H][chunks][features][columns]: the state before each chunk, or tile by tile; without a
                       mask only that before the last one */
    float *totals;  /* [B][H][segments][features][columns]: what a segment alone adds up to;
                       NAME_sequence_scan: [clusters] states that they leave to the next one */
    float *partial; /* [B][query_heads][length][slices][]: parts of o: dv, then the sum of weights, each
                       rounded up to 4 */
    float *running; /* [B][H][state_elements rounded up to 4]: the state between tokens of a recurrent call */
    void *decays; /* [B][H][gate_row / 64], FPA_CUDA_DECAYS bytes each: what 64 keys keep until their chunk's
                     end, and what it leaves of the sums before it; NULL: NAME_chunk_state walks no keys */
    /* NAME_pad_rows, NAME_lift_rows: [B][length][heads][width in whole pieces of 16 bytes], zeros behind the width;
       NULL: not wanted. Keys and values with their recent tokens */
    void *padded_queries, *padded_keys, *padded_values;
    long long gate_row;        /* length in whole blocks of 64 */
    void *vectors[2];          /* NAME_pack_rows: [B][heads][length][vector_rows] of keys, of queries; tiles:
                         [B][heads][tiles][panel_keys][pack_tokens], and so on */
    long long splits_matrices; /* NAME_pack_rows: packs nothing, matrices are split for both */
    void *
        pack_matrices; /* NAME_pack_rows: in two parts, as shared memory has them; geometry.pack_operand bytes, of each head if they have their own */
    /* zeros at first: items that blocks of NAME_chunk_output have taken; then, for [B][H][chunks][column
     * blocks], blocks of NAME_chunk_state that have written their part of a copy. NAME_sequence_scan: for
     * [clusters][4] warps whether they have left their part of a state. NULL: NAME_chunk_output has
     * a block for each item */
    unsigned *progress;
    /* sizes chosen for this call */
    long long
        chunk; /* tokens; the parallel form: at least length; the chunked form without a mask: of a segment */
    long long
        chunks; /* that length divides into; the chunked form without a mask: and one without tokens behind
                         them, before which the state has all keys */
    long long
        tail; /* a last chunk of at most so many tokens is part of the one before; counted in `chunks` */
    long long segments;
    long long segment_chunks; /* chunks that one block walks */
    long long first_chunks;   /* of a first segment; NAME_fused_chunk by roles: maybe more, else as many */
    long long totals_only;    /* NAME_fused_chunk: 1: no queries, the totals of segments */
    long long
        ahead; /* NAME_fused_chunk: 1: but first segments have queries in that launch, and none in the next */
    /* first token that NAME_chunk_state leaves out; of different lengths: 0: the last chunk's */
    long long walk_end;
    long long beside; /* query heads whose tokens NAME_chunk_output takes in turn */
    long long
        awaited; /* NAME_chunk_output runs beside so many blocks of NAME_chunk_state a copy, or where copies were
                          kept of NAME_segment_scan, and waits for them; 0: it does not */
    long long lift_slices; /* blocks of NAME_lift_rows that share some tokens' rows */
    long long slices; /* blocks of NAME_decode, _token or _decode_recent that share one head's features */
    long long share;  /* features that such a block has, at most */
    long long group;  /* query heads that share a key's head */
    /* NAME_decode_recent: tokens of k, v and log_gate before the query's own; beside a window of k and v before q's first. With
     * cu_seqlens, which are of keys: how many more keys than queries there are, which are one a sequence */
    long long recent;
    /* beside a window, and where vectors have given_rows: as they are given, whatever rows q and k become */
    const void *given_q, *given_k;
    long long given_q_stride[3], given_k_stride[3];
    long long
        reversed; /* NAME_cluster_scan, NAME_fused_chunk: 1: from the last token on, which sees itself only; kernels of chunks (contraction_turns):
                   * so many tokens, likewise, in tiles of 64, of which length has whole ones */
    /* NAME_segment_scan: 1: segments were walked without the initial state; it is added to all copies, those of the first
       segment, too, and no final state is left. `states` NULL: no copies are written, the final state alone */
    long long kept;
    /* NAME_chunk_output of gated heads on warpgroups, and NAME_fused_chunk of passes, which then leaves `states`: o times such rows,
       before it is rounded; NULL: not wanted.
       NAME_chunk_contraction: gradients of o, whose d_q goes to o; dots are o times them, where wanted */
    const void *dot_rows;
    long long dot_stride[3];
    float *dots; /* [column blocks][B][query_heads][length] */
    /* NAME_chunk_contraction of pairs: sums of scores and values, which are gradients of values where queries are keys; their first columns; NULL: not wanted */
    void *sums;
    long long sum_stride[3], sum_columns;
    /* NAME_fused_chunk of passes: o's columns are times these, before its dots, NAME_state_product: states' products; NULL: 1 */
    const float *column_weights; /* [dv] */
    /* NAME_fused_chunk of passes: of each query (numbers_of 0; 3: the factor alone) or key (1; 2: the factor alone) a factor of its scores and
       a number that is added to them; [B][query_heads][length][2] */
    const float *numbers;
    long long numbers_of;
    long long narrows; /* NAME_fused_chunk of passes of bf16: 1: o is of f16 */
    long long
        adds; /* NAME_fused_chunk of passes of parts of values, NAME_state_product: 1: to what o, or products, are */
    /* NAME_state_product: states of a walk over the same chunks from the last one on, and its products with `states` */
    const void *reversed_states;
    double *products; /* [B][H][chunks]: at each chunk's beginning, but the first's */
    long long
        joined; /* 1: they are a cluster, which adds its parts of o up itself; the grid is [heads][slices] */
    /* Sequences of different lengths, or NULL: as in fpa_launch, where all tokens are one batch. Here batch is 1
     * and length is that batch's; strides of the batch's axis are a token's, so that a sequence's place there
     * is its first token. Chunks and segments are of a head: begin / (their tokens) + number is where a sequence
     * has its first. */
    const void *cu_seqlens;
    long long cu_seqlens_bytes;
    long long sequences;
    long long longest;        /* tokens of a sequence, at most; NAME_decode: of equal ones, too */
    long long segment_tokens; /* of a segment; where all sequences have one: more than there are */
    long long whole;          /* a sequence of at most so many tokens is one chunk, whatever it has */
    long long empty_chunks;   /* behind a sequence's last one: 1 in the chunked form without a mask */
    const int *state_in_index, *state_out_index; /* NULL: number b */
    long long state_in_slots, state_out_slots;
    /* NAME_decode_draft: tokens of which the state takes in the first accepted_counts[b], of `accepted` */
    const void *accepted_k, *accepted_v;
    const float *accepted_log_gate;
    long long accepted_k_stride[3], accepted_v_stride[3], accepted_gate_stride[3]; /* batch, token, head */
    const int *accepted_counts;                                                    /* NULL: none */
    long long accepted;
    /* NAME_decode_recent: not 0: cu_seqlens are of keys, of which a sequence has no more than so many, its query's the last one */
    long long packed_recent;
};

/* What gradients take beside the call, whose o is read. Sequences are [B][H], counted through. */
struct fpa_cuda_backward {
    const void *d_o, *d_state_out;
    void *d_q, *d_k, *d_v, *d_state_in; /* NULL: not wanted */
    const float *den;
    float *d_log_gate;
    long long d_o_stride[3], d_q_stride[3], d_k_stride[3], d_v_stride[3], den_stride[3], d_log_gate_stride[3];
    long long d_state_out_stride[2], d_state_in_stride[2];
    /* parts of the workspace */
    float *outputs;     /* [B][query_heads][length][2]: 1 / n, gradient of the sum of scores */
    double *query_sums; /* [B][query_heads][length]: what a query reads, times its gradient */
    double *key_sums;   /* [B][H][length]: what a key gives */
    /* [sequences][chunks + 1][features][columns]: states between chunks, of the tokens before, and of those behind */
    void *states, *reversed;
    float *parts;         /* [sequences][part_count][backward_entries]: gradients of matrices; NULL: none */
    float *sequence_sums; /* [B][H][backward_entries] */
    /* the launch's share of the sequences */
    long long first_sequence, sequences;
    long long walks_back; /* NAME_backward_state: 1: queries and d_o, from behind */
    float *totals;        /* [sequences][segments - 1][features][columns]: what a segment alone adds up to */
    long long segments;   /* NAME_backward_state: that a sequence is walked in at once, */
    long long segment_chunks; /* and chunks of one */
    long long last;           /* NAME_backward_state: 1: the state at the end is wanted, too */
    long long part_count;     /* NAME_backward_parts: parts of a sequence, of queries or of keys */
    long long adds;           /* NAME_backward_parts: 1: to what the sums are */
    long long
        both_sides; /* NAME_backward_keys: so many blocks follow as many of each query head; 0: there are none of these */
    /* of forward passes that are gradients; sequences are [B][query_heads] then: rows
     * [sequences][pass_length][pass_width], q and d_o / n, k and v */
    void *pass_queries, *pass_keys;
    float *pass_gates; /* [sequences][pass_length]: log-gates of such rows */
    /* NAME_backward_scatter: [sequences][pass_length][d, or dv and what was added, in whole pieces of 8] */
    const void *pass_result;
    /* of the rows of a sequence: with those of zeros that come before its last token, reversed */
    long long pass_length;
    long long pass_reversed; /* 1: from the last token on */
    long long pass_vectors;  /* 1: of q and k alone */
    float *pass_weights;     /* NAME_backward_gather: only these are written, of each coordinate; else NULL */
    long long scatters_values;  /* NAME_backward_scatter: 1: to d_v, 0: to d_k, */
    long long scatters_queries; /* or 1: to d_q */
    /* NAME_backward_pass_gates: what queries read, in turn of the tokens, and keys give, in reverse order, times
     * their gradients: [pass_read_blocks][sequences][length], [pass_blocks][sequences][pass_length]; NAME_state_product's products.
     * NAME_backward_outputs leaves what all of the call's queries read, where it knows that (pass_beside) and it is wanted */
    float *pass_reads;
    const float *pass_gives;
    const double *pass_products;
    long long pass_read_blocks, pass_blocks, pass_chunk, pass_chunks;
    /* rows of queries and keys, [sequences][query heads of a key head, or 1][length][made_width], and their gradients; the
     * matrix that makes them, and its transpose */
    void *made_queries, *made_keys, *made_d_queries, *made_d_keys, *made_operands;
    /* of rows that a lift makes: gradients of rows of its matrices, likewise, of made_kept and made_sums bytes; NULL: not wanted */
    void *made_kept_queries, *made_kept_keys;
    /* features of those rows, [sequences][query heads of a key head, or 1][length][pass_features], and their gradients; NULL: not wanted */
    void *feature_queries, *feature_keys, *feature_d_queries, *feature_d_keys;
    /* rows in whole pieces of 16 bytes, [sequences][query heads of a key head, or 1][length][width]; NULL: as they are given */
    void *padded_queries, *padded_keys, *padded_d_o, *padded_values;
    /* of walks of chunks by warpgroups: states between parts of chunks, and their products, [sequences][gate_parts]; query_sums are
     * [slabs of 64 features][B][query_heads][length] then */
    void *boundaries; /* NULL: not wanted */
    double *products;
    long long gate_parts, part_shift; /* a part has so many times twice the tokens that the file says */
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

/* Of queries, keys (or their vectors) and values; NAME_fused_chunk: and of o; NAME_chunk_contraction: and of dot_rows, there. What it cannot describe,
 * threads fetch and store. */
struct fpa_cuda_maps {
    struct fpa_tensor_map query, key, value, output;
    struct fpa_tensor_map given_query, given_key; /* of geometry.given_rows */
    int queries, keys, outputs;   /* 1: query, key and value, output are there, and what belongs to them */
    int keys_alone, values_alone; /* 1: key is there, value is, whether the other one is or not */
};

#endif
