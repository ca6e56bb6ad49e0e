/* cuda_call: what emitted CUDA kernels and the code that launches them agree on. This text is
 * also copied into every emitted file, which includes nothing.
 *
 * A head has some of these kernels. Those of the forward pass of a head NAME, in the order of their launches:
 *
 *   NAME_gate_scan          running sums of the log-gates, from the beginning of each chunk (gated heads)
 *   NAME_lift_rows          heads with a lift: the coordinates of queries and keys, which all other kernels read in
 *                           place of q and k
 *   NAME_pad_rows           copies of q, k, v with rows that are multiples of 16 bytes; zeros for the values of
 *                           masked keys
 *   NAME_pack_rows          packed rows of q and k: vectors for warpgroups, if they cannot read q and k as given; tiles for
 *                           portable kernels of many blocks
 *   NAME_chunk_state        processes the keys: writes the state before each chunk, and the final one
 *   NAME_chunk_state_small  the same with smaller blocks, for few heads (some heads on warpgroups)
 *   NAME_segment_scan       adds the totals of earlier segments to the copies of later ones; if copies are kept for
 *                           a second call, on warpgroups, it runs at the same time as NAME_chunk_output
 *   NAME_chunk_output       reads the state before a chunk, then the chunk's own keys; writes o. On warpgroups, if
 *                           sequences have one segment, it runs at the same time as NAME_chunk_state and
 *                           processes a chunk as soon as the state before it is written
 *   NAME_parallel_output    replaces it if no state is read (some heads with wide values)
 *   NAME_fused_chunk        replaces chunk_state and chunk_output for heads of few features: a block keeps the
 *                           state in registers, and for each chunk computes outputs, then adds the chunk's keys.
 *                           With several segments, their totals are computed before
 *   NAME_cluster_scan       replaces it for few sequences: the blocks of a cluster process spans of tokens in turn,
 *                           and pass the state on from block to block
 *   NAME_sequence_scan      the same for sequences of different lengths: a cluster processes several, one by one
 *   NAME_decode             the recurrent form: updates the state and queries it, in one pass over it
 *   NAME_decode_resident    replaces it for one token of few heads, whose states fit into shared memory
 *   NAME_decode_recent      replaces it if recent tokens are not in the state, which is only read
 *   NAME_decode_draft       replaces it for several tokens that do not enter the state, after accepted ones that do
 *   NAME_decode_window      adds the keys in a token's window to what NAME_decode read from the state, and divides
 *   NAME_split_reduction    adds the parts of o from blocks that share a head
 *   NAME_state_product      in a module that is a pass of gradients: products of the states of two passes in
 *                           opposite directions, at the end of each chunk
 *   NAME_chunk_contraction  in such a module whose kernel is a square: gradients of queries, from the copies of the
 *                           state and the chunk's own keys
 *
 * Gradients are a file of their own, with NAME_gate_scan and
 *
 *   NAME_backward_pads      copies of q, k, v, d_o with rows that are multiples of 16 bytes
 *   NAME_backward_outputs   normalised heads: 1 / n of each output, and the gradient of its sum of scores
 *   NAME_backward_state     the state before each chunk; launched again, the reversed state of queries and d_o
 *   NAME_backward_segments  adds the totals of earlier segments to the states of later ones
 *   NAME_backward_queries   d_q, from the state before the chunk and the chunk's own keys
 *   NAME_backward_keys      d_k and d_v, from the reversed state after the chunk and the chunk's own queries
 *   NAME_backward_gates     d_log_gate
 *   NAME_backward_parts     gradients of matrices: adds the blocks' sums for each sequence,
 *   NAME_backward_weights   then for all sequences that share a matrix; d_weights in place of the matrices
 *   NAME_backward_split     16-bit heads with matrices: these in the order in which lanes multiply them
 *   NAME_backward_project   rows by matrices, or coordinates: the kernels above read them in place of q and k
 *   NAME_backward_unproject d_q and d_k from the gradients of these rows
 *   NAME_backward_products  sums for the gradients of matrices, from the same
 *   NAME_backward_form      features of these rows, in place of the q and k of passes (some heads)
 *   NAME_backward_join      gradients of rows from those of features
 *   NAME_backward_gather    operands of passes, which are forward passes that compute gradients (some heads)
 *   NAME_backward_scatter   stores the results of such a pass in d_q, d_k or d_v
 *   NAME_backward_pass_gates  d_log_gate from such passes
 *
 * Parameters, in this order: one fpa_cuda_call; an fpa_cuda_backward (NAME_backward_...) or fpa_cuda_maps (NAME_cluster_scan,
 * NAME_sequence_scan, and on warpgroups NAME_fused_chunk); an array of the addresses of the run-time matrices, if the head has any.
 * NAME_chunk_state and NAME_chunk_output of warpgroups, and NAME_parallel_output, have fpa_cuda_maps in place of that array.
 * Sizes are elements unless a name says bytes. */
#ifndef FPA_CUDA_CALL_H
#define FPA_CUDA_CALL_H

/* A compiler takes seconds for all kernels of a file, one after the other. So the file may be compiled as several
 * programs at the same time, each with FPA_CUDA_PART defined as one of these numbers; the resulting modules
 * together have all kernels. */
#define FPA_CUDA_PART_DECODE 1        /* NAME_decode, _decode_resident, _window, _split_reduction */
#define FPA_CUDA_PART_DECODE_RECENT 2 /* NAME_decode_recent */
#define FPA_CUDA_PART_CHUNK_OUTPUT 3  /* NAME_chunk_output */
#define FPA_CUDA_PART_FUSED 4 /* NAME_fused_chunk, _cluster_scan, _chunk_contraction, _parallel_output */
#define FPA_CUDA_PART_CHUNK_STATE 5       /* NAME_chunk_state */
#define FPA_CUDA_PART_CHUNK_STATE_SMALL 6 /* NAME_chunk_state_small, or NAME_sequence_scan */
#define FPA_CUDA_PART_DECODE_DRAFT 7      /* NAME_decode_draft */
#define FPA_CUDA_PART_ROWS 8 /* kernels before and between the others: NAME_pack_rows, _segment_scan */
#define FPA_CUDA_PARTS 8
/* Of gradients: */
#define FPA_CUDA_PART_BACKWARD_MOVED 1 /* NAME_backward_gather, _scatter, _pass_gates */
#define FPA_CUDA_PART_BACKWARD_KEYS 3
#define FPA_CUDA_PART_BACKWARD_QUERIES 4
#define FPA_CUDA_PART_BACKWARD_STATE 5 /* and all others */
#define FPA_CUDA_PART_BACKWARD_ROWS 8  /* NAME_backward_project, _unproject and the kernels beside these */
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

/* The work of a kernel, counted for one head, over all blocks that share it; machine/cuda_cost.h computes its time
 * from these counts. */
struct fpa_cuda_work {
    int products;     /* of 16 x 8 x 16 numbers, on tensor cores */
    int shared;       /* passes of 128 bytes of shared memory */
    int instructions; /* of warps */
    int bytes;        /* of device memory, read or written */
    int cached;       /* bytes that are read once more, from the second-level cache */
    int awaited; /* clocks for which a warp waits for data that it has requested, with nothing else to do */
};
struct fpa_cuda_kernel_work {
    struct fpa_cuda_work step; /* 16 tokens, queries or keys */
    struct fpa_cuda_work copy; /* a copy that is written; NAME_chunk_output: 16 queries that read one;
                                  NAME_pad_rows: queries or keys, where step is of values */
    struct fpa_cuda_work keys; /* 16 queries and 64 keys before them */
    int warpgroups;            /* 1: products are by wgmma */
    int trips; /* dependent accesses to memory, one after the other, before a block's first step */
};

/* Constants of a module's kernels: NAME_geometry in the module, initialised by these names. */
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
    int decays;         /* 1: NAME_gate_scan computes call.decays, too */
    int value_width;    /* dv when NAME_chunk_state and NAME_chunk_output take fpa_cuda_maps, else 0 */
    /* then: numbers of a box of values; fewer than 64 if NAME_chunk_state has ones behind them */
    int value_box;
    /* columns after dv, for values whose boxes begin at the multiple of 16 bytes before a row; 0: such values are
     * padded */
    int value_room;
    int padded_vector;    /* NAME_pad_rows: numbers of a padded row of q and k, */
    int padded_value;     /* and of v; 0: these are not padded */
    int lifted_vector;    /* NAME_lift_rows: numbers that a token's coordinates take; 0: no lift */
    int lift_tokens;      /* tokens of a head that a block of it takes, of all batches */
    int lift_steps;       /* parts into which its rows can be divided among blocks (call.lift_slices) */
    int lift_by_heads;    /* 1: the matrices or angles that its blocks keep differ from head to head */
    int cluster_maps;     /* 1: NAME_cluster_scan computes coordinates itself, from q and k */
    int fused_maps;       /* 1: so does NAME_fused_chunk */
    int sequence_state;   /* NAME_sequence_scan: numbers of the state that a cluster passes to another one */
    int cluster_stays;    /* 1: its clusters are persistent and process several sequences; 0: one each */
    int cluster_reverses; /* 1: NAME_cluster_scan can process tokens in reverse order */
    int key_mask;         /* 1: a mask of keys is given */
    int vector_rows;      /* numbers of a vector, packed by NAME_pack_rows, or as q and k have it */
    /* and of a slab those that a box brings: fewer than 64 if a row of ones follows the first slab's */
    int vector_box;
    int given_rows;  /* coordinates in further slabs, which boxes bring from q and k; 0: none; */
    int given_first; /* number of the first one */
    /* portable kernels: rows of a tile of pack_tokens keys, x[row][token], in place of a vector; 0: vectors, or nothing */
    int panel_keys;
    int panel_queries; /* the same of queries */
    int pack_tokens;   /* that a block of it takes */
    int pack_operand; /* bytes of the matrices in two parts, if an earlier launch splits them; 0: none does */
    int pack_chunks;  /* chunks of them, each split by one block of that launch */
    int pack_per_head;      /* 1: each head has its own matrices */
    int chunk_state_slices; /* NAME_chunk_state: blocks a head */
    int small_state_slices; /* NAME_chunk_state_small: the same */
    int query_tokens;       /* NAME_chunk_output: that a block takes */
    int parallel_tokens;    /* NAME_parallel_output: the same */
    /* NAME_chunk_output: clocks that a warp waits for keys, for 16 queries and 64 keys, if they have one stage
     * beside tiles of a copy */
    int awaited_keys;
    int contraction_tokens; /* NAME_chunk_contraction: that a block takes at a time; 0: there is none */
    int contraction_keys;   /* keys that it fetches at a time */
    int contraction_dots;   /* dot products that it stores for a token, one for each set of monomials */
    /* 1: it can also compute sums of scores times values, which are gradients of values */
    int contraction_values;
    /* 1: it, NAME_chunk_state and NAME_chunk_output can process tokens in reverse order */
    int contraction_turns;
    /* 1: persistent blocks. Those of NAME_chunk_state take every gridDim.x-th walk, those of NAME_chunk_output the
     * next block of queries */
    int persistent;
    int segment_scan_elements; /* NAME_segment_scan: elements of a copy that a block takes */
    int fused_totals;          /* 1: NAME_fused_chunk can compute the totals of segments itself */
    int fused_total;           /* numbers of a total in an order of its own, which NAME_segment_scan cannot
                                  read; 0: as in a copy */
    int fused_vector;          /* d and dv when NAME_fused_chunk of packed rows, or NAME_cluster_scan, is */
    int fused_value;           /* there, else 0 */
    /* numbers of q and k, 16 or 32, in rows of no more of them, that its boxes have; 0: 64 */
    int fused_vector_box;
    int fused_packs;    /* 1: NAME_fused_chunk takes vectors of NAME_pack_rows */
    int fused_unpadded; /* 1: NAME_fused_chunk reads rows at any address; 2: of joined heads, too */
    int fused_reverses; /* 1: it can process tokens in reverse order */
    int fused_narrows;  /* 1: it can store o as f16 although its operands are bf16 (call.narrows) */
    /* numbers of the state that it stores before each FPA_CUDA_KEPT tokens; 0: it stores none */
    int fused_kept;
    int decode_features;       /* NAME_decode: that a block takes at least */
    int decode_cluster;        /* blocks of a head, at most, that can be one cluster */
    int decode_resident_least; /* NAME_decode_resident: shared memory with rows of a state, at least, */
    int decode_resident_row;   /* bytes of a row, */
    int decode_resident_most;  /* and what a launch may ask for */
    int backward_tokens; /* NAME_backward_queries, _keys: that a block takes; 0: the file has no gradients */
    int backward_both;   /* 1: NAME_backward_keys takes queries, too: see both_sides */
    /* not 0: their blocks process a whole chunk, with a state of so many slabs of 64 features; 0: they process
     * backward_tokens */
    int backward_walks;
    int backward_outputs; /* 1: NAME_backward_queries computes what NAME_backward_outputs does otherwise */
    /* bytes of a state between parts of chunks, each of `chunk` tokens, that gradients of gates need */
    int backward_boundary;
    int backward_columns;       /* blocks of columns that NAME_backward_keys is launched for */
    int backward_entries;       /* numbers of the run-time matrices of one head */
    int backward_padded_vector; /* NAME_backward_pads: numbers of a padded row of q and k, */
    int backward_padded_value;  /* and of v and d_o; 0: these are not padded */
    int backward_shared;        /* numbers of all run-time matrices that heads share, */
    int backward_per_head;      /* and of those that each has */
    int pass_width;             /* NAME_backward_gather: numbers of a row; 0: no gradient is a forward pass */
    int pass_values;            /* where d_o and values begin in a row, */
    int pass_kept;       /* numbers after a row: the other factors that gradients of product rows need */
    int pass_input;      /* numbers of a row that the pass reads as q or k */
    int pass_d, pass_dv; /* d of the head; columns of the pass of values, */
    int pass_columns;    /* of which so many are the head's values */
    /* parts of the values, each a pass of rows of pass_part columns; 1: one pass has all columns */
    int pass_parts, pass_part;
    int pass_line;
    int pass_weighted; /* 1: keys are multiplied by weights when they are gathered, */
    int pass_weighs;   /* or 1: the outputs of passes of rows are (call.column_weights) */
    int pass_widened;  /* 1: f16 operands are gathered as bf16, and results are scattered as f16 */
    int pass_formed; /* 1: q and k of passes are product rows: always gathered, and their gradients scattered */
    /* not 0: q and k of passes are so many features (NAME_backward_form, NAME_backward_join) */
    int pass_features;
    /* 1: operands of passes are read as given, with two numbers beside each token (call.numbers) */
    int pass_numbers;
    int pass_beside;   /* 1: and in f16: NAME_backward_outputs computes q.d_q, too */
    int pass_parallel; /* 1: gradients are passes in the parallel form alone */
    /* NAME_backward_project: numbers of a vector of rows; 0: every kernel computes rows itself */
    int made_width;
    int made_tokens;   /* that a block of it, or of NAME_backward_unproject, takes */
    int made_operand;  /* bytes of the matrix that NAME_backward_split writes, and of its transpose; */
    int made_per_head; /* 1: of each head */
    int made_sides;    /* NAME_backward_products: blocks that share a strip of tokens */
    int made_kept; /* bytes that NAME_backward_unproject stores for it, for each token (heads with a lift), */
    int made_sums; /* and for each made_tokens tokens, after those */
    struct fpa_cuda_kernel_work work[FPA_CUDA_KERNELS]; /* NAME_fused_chunk: with queries */
    struct fpa_cuda_kernel_work totals;                 /* NAME_fused_chunk, for totals of segments */
};

#define FPA_CUDA_VERSION 56

/* Tokens that a block of NAME_cluster_scan processes at a time. */
#define FPA_CUDA_SPAN 128

/* Tokens that a block of NAME_backward_gather or _scatter takes; outputs that one of NAME_backward_outputs does. */
#define FPA_CUDA_PASS_TOKENS 64

/* In passes of gradients: NAME_fused_chunk stores the state before each so many tokens, and running sums of
 * gradients of gates start anew. */
#define FPA_CUDA_KEPT 256
/* NAME_backward_products: rows and columns of a matrix that a block adds up; tokens of a block, and how many of
 * these at a time; bytes of a token's part in shared memory. */
#define FPA_CUDA_MADE_SIDE 64
#define FPA_CUDA_MADE_STRIP 1024
#define FPA_CUDA_MADE_PANEL 64
#define FPA_CUDA_MADE_PITCH 144
/* Bytes of the ring through which a matrix comes to a block of NAME_backward_project or _unproject, in steps of 16
 * numbers and 16 to 64 others. */
#define FPA_CUDA_MADE_RING 16384
/* Bytes from one token to the next of results that a warp stores, 16 tokens at a time. */
#define FPA_CUDA_MADE_LEAVE 144
#define FPA_CUDA_BACKWARD_OUTPUTS 16
/* Numbers of a state that a thread of NAME_backward_segments follows through all copies of a walk. */
#define FPA_CUDA_BACKWARD_SEGMENTS 4
/* Tokens of a block of NAME_backward_pads. */
#define FPA_CUDA_BACKWARD_PADDED 64

/* Bytes for 64 keys in fpa_cuda_call.decays: for each key the factor, in 16 bits, by which it fades until its
 * chunk's end; then the chunk's own factor for the sums before it (fp32); then 12 unused bytes, so that bulk
 * copies are possible. */
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
    float *den; /* of outputs: the sums of scores, from which normalisers are computed; NULL: not wanted */
    long long den_stride[3];
    /* parts of the workspace */
    float *gates; /* [B][H][gate_row][2]: sum from the chunk's first token on, times log2(e), high and low
                       part; behind the last row there is room for query_tokens more */
    /* [B][H][chunks][features][columns]: the state before each chunk, or tile by tile; without a mask only that
     * before the last one */
    void *states;
    float *totals;  /* [B][H][segments][features][columns]: what a segment alone adds up to;
                       NAME_sequence_scan: [clusters] states that they leave to the next one */
    float *partial; /* [B][query_heads][length][slices][]: parts of o: dv, then the sum of weights, each
                       rounded up to 4 */
    float *running; /* [B][H][state_elements rounded up to 4]: the state between tokens of a recurrent call */
    /* [B][H][gate_row / 64], FPA_CUDA_DECAYS bytes each; NULL: NAME_chunk_state processes no keys in this call */
    void *decays;
    /* NAME_pad_rows, NAME_lift_rows: [B][length][heads][width in whole pieces of 16 bytes], zeros behind the width;
       NULL: not wanted. Keys and values with their recent tokens */
    void *padded_queries, *padded_keys, *padded_values;
    long long gate_row; /* length in whole blocks of 64 */
    /* NAME_pack_rows: [B][heads][length][vector_rows] of keys, of queries; of portable kernels
     * [B][heads][tiles][panel_keys][pack_tokens], and panel_queries likewise */
    void *vectors[2];
    long long splits_matrices; /* NAME_pack_rows: 1: this launch only splits the matrices of q and k */
    /* NAME_pack_rows: in two parts, as shared memory has them; geometry.pack_operand bytes, of each head if they
     * have their own */
    void *pack_matrices;
    /* zeros at first: items that blocks of NAME_chunk_output have taken; then, for [B][H][chunks][column
     * blocks], blocks of NAME_chunk_state that have written their part of a copy. NAME_sequence_scan: for
     * [clusters][4] warps whether they have left their part of a state. NULL: NAME_chunk_output has
     * a block for each item */
    unsigned *progress;
    /* sizes chosen for this call */
    /* tokens; the parallel form: at least length; the chunked form without a mask: of a segment */
    long long chunk;
    /* that length divides into; the chunked form without a mask: and one without tokens behind them, before which
     * the state has all keys */
    long long chunks;
    /* a last chunk of at most so many tokens is part of the one before; counted in `chunks` */
    long long tail;
    long long segments;
    long long segment_chunks; /* chunks that one block walks */
    /* chunks of a first segment; with NAME_fused_chunk of specialised warpgroups there may be more than in others */
    long long first_chunks;
    long long totals_only; /* NAME_fused_chunk: 1: computes the totals of segments and no outputs */
    /* NAME_fused_chunk: 1: the launch for totals also computes the outputs of first segments, which the next
     * launch leaves out */
    long long ahead;
    /* first token that NAME_chunk_state leaves out; of different lengths: 0: the last chunk's */
    long long walk_end;
    /* query heads that NAME_chunk_output processes alternately, token block by token block */
    long long beside;
    /* NAME_chunk_output runs at the same time as NAME_chunk_state (so many of its blocks write one copy) or, if
     * copies are kept, as NAME_segment_scan, and waits for them; 0: it runs afterwards */
    long long awaited;
    long long lift_slices; /* blocks of NAME_lift_rows that share some tokens' rows */
    long long slices; /* blocks of NAME_decode, _token or _decode_recent that share one head's features */
    long long share;  /* features that such a block has, at most */
    long long group;  /* query heads that share a key's head */
    /* NAME_decode_recent: tokens of k, v and log_gate before the query's own; heads with a window: of k and v before
     * q's first. With cu_seqlens, which then count keys: how many more keys than queries there are; a sequence has
     * one query */
    long long recent;
    /* heads with a window, or with given_rows: q and k as given, even if padded copies replace them elsewhere */
    const void *given_q, *given_k;
    long long given_q_stride[3], given_k_stride[3];
    /* NAME_cluster_scan, NAME_fused_chunk: 1: from the last token on, which sees itself only; kernels of chunks
     * (contraction_turns): so many tokens, likewise, in tiles of 64, of which length has whole ones */
    long long reversed;
    /* NAME_segment_scan: 1: segments were processed without the initial state: it is added to all copies now, also to
     * those of the first segment, and no final state is stored. `states` NULL: only the final state is written, no
     * copies */
    long long kept;
    /* In passes of gradients. NAME_chunk_output of gated heads on warpgroups and NAME_fused_chunk (which then stores
     * `states`): rows by which o is multiplied, before rounding, for `dots`; NULL: not wanted.
     * NAME_chunk_contraction: gradients of o; it stores d_q as o, and `dots` are o times these, if wanted */
    const void *dot_rows;
    long long dot_stride[3];
    float *dots; /* [column blocks][B][query_heads][length] */
    /* NAME_chunk_contraction of pairs: sums of scores times values, which are gradients of values if queries are keys;
     * NULL: not wanted. How many of their first columns are stored */
    void *sums;
    long long sum_stride[3], sum_columns;
    /* In passes of gradients, NAME_fused_chunk: factors of o's columns, applied before `dots`; NAME_state_product: of
     * the products of states; NULL: 1 */
    const float *column_weights; /* [dv] */
    /* In passes of gradients, NAME_fused_chunk: [B][query_heads][length][2], a factor of scores and a number that is
     * added to them, for each query (numbers_of 0; 3: the factor alone) or key (1; 2: the factor alone) */
    const float *numbers;
    long long numbers_of;
    long long narrows; /* NAME_fused_chunk of passes of bf16: 1: o is of f16 */
    /* NAME_fused_chunk of passes of parts of values, NAME_state_product: 1: to what o, or products, are */
    long long adds;
    /* NAME_state_product: states before the same chunks of a pass in reverse order, and their products with `states` */
    const void *reversed_states;
    double *products; /* [B][H][chunks]: at each chunk's beginning, but the first's */
    /* 1: the blocks of a head are a cluster, which adds its parts of o itself; the grid is [heads][slices] */
    long long joined;
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
    /* chunks without tokens after a sequence's last one: 1 in the chunked form without a mask */
    long long empty_chunks;
    const int *state_in_index, *state_out_index; /* NULL: number b */
    long long state_in_slots, state_out_slots;
    /* NAME_decode_draft: tokens of the previous draft, at most `accepted` of each sequence, of which the first
     * accepted_counts[b] enter the state */
    const void *accepted_k, *accepted_v;
    const float *accepted_log_gate;
    long long accepted_k_stride[3], accepted_v_stride[3], accepted_gate_stride[3]; /* batch, token, head */
    const int *accepted_counts;                                                    /* NULL: none */
    long long accepted;
    /* NAME_decode_recent: not 0: cu_seqlens count keys, at most so many a sequence; its query is its last token */
    long long packed_recent;
};

/* Parameters of gradients beside the call, whose o is read. Sequences are numbers in [B][H]. */
struct fpa_cuda_backward {
    const void *d_o, *d_state_out;
    void *d_q, *d_k, *d_v, *d_state_in; /* NULL: not wanted */
    const float *den;
    float *d_log_gate;
    long long d_o_stride[3], d_q_stride[3], d_k_stride[3], d_v_stride[3], den_stride[3], d_log_gate_stride[3];
    long long d_state_out_stride[2], d_state_in_stride[2];
    /* parts of the workspace */
    float *outputs;     /* [B][query_heads][length][2]: 1 / n, gradient of the sum of scores */
    double *query_sums; /* [B][query_heads][length]: contributions of queries to d_log_gate (q.d_q ...) */
    double *key_sums;   /* [B][H][length]: contributions of keys */
    /* [sequences][chunks + 1][features][columns]: states between chunks, of the tokens before, and of those behind */
    void *states, *reversed;
    float *parts;         /* [sequences][part_count][backward_entries]: gradients of matrices; NULL: none */
    float *sequence_sums; /* [B][H][backward_entries] */
    /* the launch's share of the sequences */
    long long first_sequence, sequences;
    long long walks_back; /* NAME_backward_state: 1: the reversed state, of queries and d_o */
    float *totals;        /* [sequences][segments - 1][features][columns]: what a segment alone adds up to */
    long long segments;   /* NAME_backward_state: segments of a sequence, processed by different blocks, */
    long long segment_chunks; /* and chunks of one */
    long long last;           /* NAME_backward_state: 1: the state after the last chunk is wanted, too */
    long long part_count;     /* NAME_backward_parts: parts of a sequence, of queries or of keys */
    long long adds;           /* NAME_backward_parts: 1: adds to the sums that are there */
    /* NAME_backward_keys: blocks of queries and of keys alternate in runs of so many for each query head; 0: there
     * are no blocks of queries */
    long long both_sides;
    /* of forward passes that are gradients; sequences are [B][query_heads] then: rows
     * [sequences][pass_length][pass_width], q and d_o / n, k and v */
    void *pass_queries, *pass_keys;
    float *pass_gates; /* [sequences][pass_length]: log-gates of such rows */
    /* NAME_backward_scatter: [sequences][pass_length][d, or dv and what was added, in whole pieces of 8] */
    const void *pass_result;
    /* rows of a sequence, with the rows of zeros that precede its last token in reverse order */
    long long pass_length;
    long long pass_reversed; /* 1: from the last token on */
    long long pass_vectors;  /* 1: of q and k alone */
    float *pass_weights; /* NAME_backward_gather: computes only these, the coordinates' weights; else NULL */
    long long scatters_values;  /* NAME_backward_scatter: 1: to d_v, 0: to d_k, */
    long long scatters_queries; /* or 1: to d_q */
    /* NAME_backward_pass_gates: contributions of queries (in forward order) and of keys (in reverse order):
     * [pass_read_blocks][sequences][length], [pass_blocks][sequences][pass_length]; and NAME_state_product's
     * products. If pass_beside, NAME_backward_outputs computes those of queries */
    float *pass_reads;
    const float *pass_gives;
    const double *pass_products;
    long long pass_read_blocks, pass_blocks, pass_chunk, pass_chunks;
    /* rows by matrices, or coordinates, of queries and keys, [sequences][query heads of a key head, or
     * 1][length][made_width], and their gradients; the matrix of these rows, and its transpose */
    void *made_queries, *made_keys, *made_d_queries, *made_d_keys, *made_operands;
    /* heads with a lift: gradients of the rows of its matrices, made_kept and made_sums bytes as above; NULL: not
     * wanted */
    void *made_kept_queries, *made_kept_keys;
    /* features of those rows, [sequences][query heads of a key head, or 1][length][pass_features], and their
     * gradients; NULL: not wanted */
    void *feature_queries, *feature_keys, *feature_d_queries, *feature_d_keys;
    /* padded rows, [sequences][query heads of a key head, or 1][length][width]; NULL: as given */
    void *padded_queries, *padded_keys, *padded_d_o, *padded_values;
    /* kernels that process whole chunks: states between parts of chunks, and their products, [sequences][gate_parts];
     * query_sums are then [slabs of 64 features][B][query_heads][length] */
    void *boundaries; /* NULL: not wanted */
    double *products;
    long long gate_parts, part_shift; /* a part has 2^part_shift times the tokens that the file says */
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

/* Maps of queries, keys (or their vectors) and values; for NAME_fused_chunk also of o, for NAME_chunk_contraction
 * of dot_rows in its place. Tensors that the driver cannot describe are fetched and stored by threads. */
struct fpa_cuda_maps {
    struct fpa_tensor_map query, key, value, output;
    struct fpa_tensor_map given_query, given_key; /* of geometry.given_rows */
    int queries, keys, outputs; /* 1: query; key and value; output (and the given ones with them) are valid */
    int keys_alone, values_alone; /* 1: key is valid; value is valid */
};

#endif
