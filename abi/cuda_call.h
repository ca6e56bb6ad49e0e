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
 *   NAME_pack_rows          packed rows of q and k: vectors for warpgroups, if they cannot read q and k as given;
 *                           tiles for portable kernels of many blocks
 *   NAME_chunk_state        processes the keys: writes the state before each chunk, and the final one
 *   NAME_chunk_state_small  the same with smaller blocks, for calls of few heads (some heads on warpgroups)
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
 *   NAME_chunk_contraction  in such a module whose kernel is of degree 2, or higher in the parallel form: gradients
 *                           of queries, from the copies of the state and the chunk's own keys
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
 * Parameters, in this order: one fpa_cuda_call; an fpa_cuda_backward (NAME_backward_...) or fpa_cuda_maps
 * (NAME_cluster_scan, NAME_sequence_scan, and NAME_fused_chunk if geometry.fused_total is not 0); an array of the
 * addresses of the run-time matrices, if the head has any. On warpgroups NAME_chunk_state and NAME_chunk_output, and
 * NAME_parallel_output and NAME_chunk_contraction, have fpa_cuda_maps in place of that array.
 * Sizes are elements unless a name says bytes. */
#ifndef FPA_CUDA_CALL_H
#define FPA_CUDA_CALL_H

/* A compiler takes seconds for the kernels of a file, one after the other. So the file may be compiled as several
 * programs at the same time, each with FPA_CUDA_PART defined as one of these numbers; together, the resulting modules
 * have all kernels. */
#define FPA_CUDA_PART_DECODE 1        /* NAME_decode, _decode_resident, _decode_window, _split_reduction */
#define FPA_CUDA_PART_DECODE_RECENT 2 /* NAME_decode_recent */
#define FPA_CUDA_PART_CHUNK_OUTPUT 3  /* NAME_chunk_output */
#define FPA_CUDA_PART_FUSED 4 /* NAME_fused_chunk, _cluster_scan, _chunk_contraction, _parallel_output */
#define FPA_CUDA_PART_CHUNK_STATE 5       /* NAME_chunk_state */
#define FPA_CUDA_PART_CHUNK_STATE_SMALL 6 /* NAME_chunk_state_small, NAME_sequence_scan */
#define FPA_CUDA_PART_DECODE_DRAFT 7      /* NAME_decode_draft */
#define FPA_CUDA_PART_ROWS 8 /* all that run before or between these: NAME_pack_rows, _segment_scan ... */
#define FPA_CUDA_PARTS 8
/* Numbers of the parts of a file of gradients: */
#define FPA_CUDA_PART_BACKWARD_MOVED 1 /* NAME_backward_gather, _scatter, _pass_gates */
#define FPA_CUDA_PART_BACKWARD_KEYS 3
#define FPA_CUDA_PART_BACKWARD_QUERIES 4
#define FPA_CUDA_PART_BACKWARD_STATE 5 /* NAME_backward_state, and all kernels without another part */
#define FPA_CUDA_PART_BACKWARD_ROWS 8  /* kernels of made or padded rows, and gradients of matrices */
#ifdef FPA_CUDA_PART
#define FPA_CUDA_HAS(part) ((part) == FPA_CUDA_PART)
#else
#define FPA_CUDA_HAS(part) 1
#endif

/* How a kernel is launched: threads of a block (0: the head has no such kernel), bytes of its dynamic shared memory,
 * and the blocks for which a multiprocessor has registers (0: registers do not limit them). A geometry has one for each
 * kernel, in the order of abi/cuda_kernels.h. */
#define FPA_CUDA_KERNELS 38
struct fpa_cuda_block {
    int threads, bytes, resident;
};

/* Counts of a kernel's work, summed over all blocks that share a head; machine/cuda_cost.h computes times from them. */
struct fpa_cuda_work {
    int products;     /* matrix products on tensor cores, in units of 16 x 8 results of 16 summands */
    int shared;       /* accesses to shared memory, in units of 128 bytes */
    int instructions; /* each for a warp */
    int bytes;        /* of device memory, read or written */
    int cached;       /* bytes that are read again, from the second-level cache */
    int awaited;      /* clocks that a warp waits for requested data with nothing else to do */
};
struct fpa_cuda_kernel_work {
    struct fpa_cuda_work step; /* per 16 tokens, queries or keys */
    /* per copy of the state that is written; NAME_chunk_output: per 16 queries that read one; NAME_pad_rows: per 16
     * queries or keys, where step is of values */
    struct fpa_cuda_work copy;
    struct fpa_cuda_work keys; /* per 16 queries and 64 keys that they see */
    int warpgroups;            /* 1: products are by wgmma */
    int trips;                 /* memory accesses before a block's first step that need each other's result */
};

/* What the host has to know of a module's kernels: the constant NAME_geometry in the module, which lists its values by
 * the names of these fields. */
struct fpa_cuda_geometry {
    int version;                                    /* FPA_CUDA_VERSION of the generator */
    struct fpa_cuda_block kernel[FPA_CUDA_KERNELS]; /* decode_resident: without rows of the state */
    int features;                                   /* D, rounded up to a multiple of 16 */
    int columns;       /* of copies of the state: dv, one for z if normalised, rounded up to blocks */
    int column_blocks; /* blocks of columns, for which chunk_state and chunk_output have thread blocks each */
    int copy_bytes;    /* of an element of the copies of the state */
    int chunk;         /* tokens between copies of the state: a multiple of query_tokens */
    int state_elements; /* of the caller's state of one (batch, head): D*dv, then D of z if normalised */
    int state_element;  /* bytes of such an element */
    int weights;        /* run-time matrices; if the head has a lift, NAME_lift_rows alone reads them */
    int element;        /* bytes of an element of q, k, v and o */
    int gate;           /* 1: gated */
    int unmasked;       /* 1: not causal, every query sees all keys */
    int window;         /* newest keys of a query, which have the weights exp(scale q.k); 0: none */
    int decays;         /* 1: NAME_gate_scan also computes call.decays */
    int value_width;    /* dv if NAME_chunk_state and NAME_chunk_output take fpa_cuda_maps, else 0 */
    int value_box;      /* columns of a TMA box of values: 64, or fewer if ones follow in the same slab */
    /* columns that a slab has after dv, so that boxes of rows that begin amid 16 bytes can begin at the multiple of 16
     * bytes before; 0: NAME_pad_rows copies such values */
    int value_room;
    /* kernels that run before the others */
    int padded_vector; /* NAME_pad_rows: elements of a padded row of q and k; 0: they are not padded */
    int padded_value;  /* NAME_pad_rows: the same of v */
    int lifted_vector; /* NAME_lift_rows: elements of a token's coordinates in memory; 0: no lift */
    int lift_tokens;   /* NAME_lift_rows: tokens of a head in a work item, counted through all batches */
    int lift_steps;    /* NAME_lift_rows: the most blocks that can share a token (call.lift_slices) */
    int lift_by_heads; /* 1: blocks of NAME_lift_rows keep matrices or angles that differ from head to head */
    int cluster_maps;  /* 1: NAME_cluster_scan computes coordinates itself, from q and k */
    int fused_maps;    /* 1: NAME_fused_chunk computes coordinates itself, from q and k */
    int sequence_state;   /* NAME_sequence_scan: floats of a state that a cluster passes on to another */
    int cluster_stays;    /* 1: clusters of NAME_cluster_scan can process several sequences each */
    int cluster_reverses; /* 1: NAME_cluster_scan can process tokens in reverse order */
    int key_mask;         /* 1: the caller gives a mask of keys */
    int vector_rows;      /* elements of a vector: a row of q or k, or packed by NAME_pack_rows */
    int vector_box;    /* elements of a TMA box of vectors: 64, or fewer if ones follow in the first slab */
    int given_rows;    /* coordinates that boxes bring from q and k, into slabs of their own; 0: none */
    int given_first;   /* index in q and k of the first of these */
    int panel_keys;    /* portable kernels: rows of a packed tile x[row][token] of keys; 0: no tiles */
    int panel_queries; /* the same of queries */
    int pack_tokens;   /* NAME_pack_rows: tokens of a work item, or of a packed tile */
    int pack_operand;  /* bytes of the matrices in two parts, if a launch before splits them; else 0 */
    int pack_chunks;   /* blocks of that launch for one set of matrices */
    int pack_per_head; /* 1: each head has its own set of matrices */
    /* the split schedule */
    int chunk_state_slices; /* NAME_chunk_state: blocks that share a head's features */
    int small_state_slices; /* NAME_chunk_state_small: the same */
    int query_tokens;       /* NAME_chunk_output: queries of a work item */
    int parallel_tokens;    /* NAME_parallel_output: the same */
    int awaited_keys; /* NAME_chunk_output: work.awaited of keys, per 16 queries and 64 keys, if they have one stage */
    int contraction_tokens; /* NAME_chunk_contraction: queries of a work item; 0: there is no such kernel */
    int contraction_keys;   /* NAME_chunk_contraction: keys of a stage */
    int contraction_dots; /* NAME_chunk_contraction: numbers of call.dots per token: one per set of monomials */
    int contraction_values; /* 1: NAME_chunk_contraction can also compute sums of scores times values (call.sums) */
    int contraction_turns; /* 1: NAME_chunk_contraction, _chunk_state and _chunk_output can reverse the tokens */
    int persistent; /* 1: block i of chunk_state has walks i, i + gridDim.x ...; chunk_output has call.progress */
    int segment_scan_elements; /* NAME_segment_scan: elements of a copy that a block processes */
    /* NAME_fused_chunk, called `it` here */
    int fused_totals; /* 1: it can compute totals of segments */
    int fused_total;  /* floats of a total if their order is its own; 0: NAME_segment_scan can read them */
    int fused_vector; /* d, if the module has it for packed rows, or NAME_cluster_scan; else 0 */
    int fused_value;  /* dv, likewise */
    int fused_vector_box; /* elements of its boxes of q and k: 16 or 32, in rows of as many; 0: 64 */
    int fused_packs;      /* 1: it reads vectors of NAME_pack_rows */
    int fused_unpadded;   /* 1: it reads rows at any address; 2: also through one map of all heads' rows */
    int fused_reverses;   /* 1: it can process tokens in reverse order */
    int fused_narrows;    /* 1: it can store o as f16 although its operands are bf16 (call.narrows) */
    int fused_kept;       /* elements of a state that it stores per FPA_CUDA_KEPT tokens; 0: none */
    /* decoding */
    int decode_features;       /* NAME_decode: a block has a multiple of so many features */
    int decode_cluster;        /* the most blocks of a head that can be launched as a cluster */
    int decode_resident_least; /* NAME_decode_resident: bytes of shared memory of a block, at least */
    int decode_resident_row;   /* NAME_decode_resident: bytes of a row of the state */
    int decode_resident_most;  /* NAME_decode_resident: bytes of shared memory of a block, at most */
    /* gradients; _x stands for NAME_backward_x */
    int backward_tokens; /* _queries, _keys: tokens of a work item; 0: the file has no gradients */
    int backward_both;   /* 1: _keys can also compute what _queries does (fpa_cuda_backward.both_sides) */
    int backward_walks; /* _queries, _keys: slabs of 64 features of a state, if blocks have whole chunks; else 0 */
    int backward_outputs;  /* 1: _queries also computes what _outputs does otherwise */
    int backward_boundary; /* gates: bytes of a state between two parts of a chunk, of `chunk` tokens each */
    int backward_columns;  /* _keys: blocks of columns, with thread blocks of their own */
    int backward_entries;  /* elements of all run-time matrices of one head */
    int backward_padded_vector; /* _pads: elements of a padded row of q and k; 0: they are not padded */
    int backward_padded_value;  /* _pads: the same of v and d_o */
    int backward_shared;        /* elements of the run-time matrices that all heads share */
    int backward_per_head;      /* elements of the run-time matrices that each head has of its own */
    /* gradients that are forward passes: _gather, _scatter and others (gen/plan/passes.h) */
    int pass_width;            /* elements of a gathered row; 0: no gradient is a forward pass */
    int pass_values;           /* index of d_o / n, or v, in a row */
    int pass_kept;             /* elements after a row: what gradients of product rows are multiplied by */
    int pass_input;            /* index of the first element of a row that passes of rows read as q or k */
    int pass_d, pass_dv;       /* elements of q or k in a row; columns of the pass of values */
    int pass_columns;          /* of the latter, columns of the head's own values */
    int pass_parts, pass_part; /* parts of the values, each a pass of rows, and columns of a part */
    int pass_line;             /* 1: the kernel is a multiple of q.k */
    int pass_weighted;         /* 1: gathered keys are multiplied by the coordinates' weights, */
    int pass_weighs;           /* or 1: outputs of passes of rows are (call.column_weights) */
    int pass_widened;          /* 1: passes of an f16 head are bf16; _gather and _scatter convert */
    int pass_formed; /* 1: q and k of passes are product rows: _gather forms them, _scatter joins their gradients */
    int pass_features; /* features in place of q and k: _form forms them, _join joins their gradients; 0: none */
    int pass_numbers;  /* 1: passes read q, k, v, d_o as given, and call.numbers beside each token */
    int pass_beside;   /* 1: these are f16, and _outputs also computes q.d_q */
    int pass_parallel; /* 1: gradients are passes in the parallel form alone */
    /* made rows: _project, _unproject and others (gen/plan/row_head.h) */
    int made_width;    /* elements of a token's made rows; 0: every kernel computes the rows that it reads */
    int made_tokens;   /* _project, _unproject: tokens of a block */
    int made_operand;  /* _split: bytes of the matrix of all rows, and likewise of its transpose */
    int made_per_head; /* 1: each head has a matrix of its own */
    int made_sides;    /* _products: blocks that share a strip of tokens */
    int made_kept;     /* heads with a lift: bytes per token that _unproject stores for _products, */
    int made_sums;     /* then bytes for each made_tokens tokens */
    struct fpa_cuda_kernel_work work[FPA_CUDA_KERNELS]; /* of NAME_fused_chunk: with outputs */
    struct fpa_cuda_kernel_work totals;                 /* of NAME_fused_chunk for totals of segments */
};

#define FPA_CUDA_VERSION 57

/* NAME_cluster_scan: tokens of a span, which a block processes in its turn. */
#define FPA_CUDA_SPAN 128

/* NAME_backward_gather, NAME_backward_scatter: tokens of a block. */
#define FPA_CUDA_PASS_TOKENS 64

/* Passes of gradients: tokens between the states that NAME_fused_chunk stores. Running sums of gradients of gates begin
 * anew there, since long ones cancel. */
#define FPA_CUDA_KEPT 256
/* NAME_backward_products: a block sums up SIDE x SIDE elements of a matrix's gradient, over STRIP tokens, PANEL at a
 * time; in shared memory a token has PITCH bytes of each operand. */
#define FPA_CUDA_MADE_SIDE 64
#define FPA_CUDA_MADE_STRIP 1024
#define FPA_CUDA_MADE_PANEL 64
#define FPA_CUDA_MADE_PITCH 144
/* NAME_backward_project, NAME_backward_unproject: bytes of the ring through which a block reads the matrix. */
#define FPA_CUDA_MADE_RING 16384
/* The same kernels: bytes between two tokens in the shared memory where a warp collects the results of 16 tokens. */
#define FPA_CUDA_MADE_LEAVE 144
/* NAME_backward_outputs: outputs of a block. */
#define FPA_CUDA_BACKWARD_OUTPUTS 16
/* NAME_backward_segments: elements of a state that a thread processes, through all copies of a walk. */
#define FPA_CUDA_BACKWARD_SEGMENTS 4
/* NAME_backward_pads: tokens of a block. */
#define FPA_CUDA_BACKWARD_PADDED 64

/* Bytes for 64 keys in fpa_cuda_call.decays: for each key the factor, in 16 bits, by which it decays until the end of
 * its chunk; then the factor of the sums before the chunk (fp32); then 12 unused bytes, for bulk copies. */
#define FPA_CUDA_DECAYS 144

struct fpa_cuda_call {
    long long batch, length, query_heads, heads;
    const void *q, *k, *v;
    void *o;
    long long q_stride[3], k_stride[3], v_stride[3], o_stride[3]; /* batch, token, head */
    const float *log_gate;
    long long gate_stride[3];
    const float *positions;        /* of keys; the last `length` of them are also those of queries */
    long long position_stride[3];  /* batch, token, number */
    const unsigned char *key_mask; /* 0: the key is masked */
    long long key_mask_stride[2];  /* batch, token */
    const void *state_in;
    long long state_in_stride[2]; /* batch, head */
    void *state_out;
    long long state_out_stride[2];
    float *den; /* result: outputs' sums of scores, from which normalisers are computed; NULL: not wanted */
    long long den_stride[3];

    /* ---- parts of the workspace ---- */
    /* [B][H][gate_row][2]: sum of log-gates from the chunk's first token on, times log2(e), as high and low part; then
     * room for query_tokens more, since blocks read whole panels */
    float *gates;
    /* [B][H][chunks][features][columns], or in tiles: copies of the state before each chunk; if not causal, only of the
     * state before the last one */
    void *states;
    /* [B][H][segments][features][columns]: the state of a segment's tokens alone, its total; NAME_sequence_scan:
     * [clusters] states that clusters pass on to the next one */
    float *totals;
    /* Kernels of decoding: [B][query_heads][length][slices][]: parts of o: dv sums and the sum of scores, each
     * rounded up to 4. NAME_fused_chunk: [B][H][features][columns], or as a total: the state after the last segment,
     * from which a later launch stores the final one; NULL: it stores the final state itself */
    float *partial;
    float *running; /* [B][H][state_elements rounded up to 4]: the state between tokens of a recurrent call */
    /* [B][H][gate_row / 64], FPA_CUDA_DECAYS bytes each; NULL: NAME_chunk_state processes no keys in this call */
    void *decays;
    /* NAME_pad_rows, NAME_lift_rows: [B][length][heads][width in whole pieces of 16 bytes], zeros after the width;
     * NULL: not wanted. Those of keys and values include recent tokens */
    void *padded_queries, *padded_keys, *padded_values;
    long long gate_row; /* length in whole blocks of 64 */
    /* NAME_pack_rows: of keys, of queries: vectors [B][heads][length][vector_rows]; of portable kernels tiles
     * [B][heads][tiles][panel_keys or panel_queries][pack_tokens] */
    void *vectors[2];
    long long splits_matrices; /* NAME_pack_rows: 1: this launch only splits the matrices of q and k */
    /* NAME_pack_rows: the matrices in two parts, in shared memory's order: geometry.pack_operand bytes, or as many per
     * head */
    void *pack_matrices;
    /* Counters, at first 0. NAME_chunk_output: work items that blocks have taken; then, for [B][H][chunks][column
     * blocks], blocks of NAME_chunk_state that have written their part of the copy. NAME_sequence_scan: for
     * [clusters][4] warps, 1 if the warp has stored its part of the state. NULL: each block of NAME_chunk_output has
     * one item */
    unsigned *progress;

    /* ---- sizes chosen for this call ---- */
    /* tokens of a chunk; in the parallel form at least length; in the chunked form, if not causal, of a segment */
    long long chunk;
    /* of a sequence; in the chunked form, if not causal, with one more without tokens, before which the state has all
     * keys */
    long long chunks;
    /* a last chunk of at most so many tokens is merged with the one before; `chunks` counts both as one */
    long long tail;
    long long segments;
    long long segment_chunks; /* of a segment, which one block processes */
    long long first_chunks;   /* of a sequence's first segment, which may differ on warpgroups */
    long long totals_only;    /* NAME_fused_chunk: 1: this launch computes totals of segments, no outputs */
    /* NAME_fused_chunk: 1: the launch for totals also computes outputs of first segments, which the next one skips */
    long long ahead;
    /* NAME_chunk_state: first token that it leaves out; with cu_seqlens 0: those of the last chunk, else none */
    long long walk_end;
    /* NAME_chunk_output: query heads whose blocks alternate: the first block of each, then the second of each ... */
    long long beside;
    /* not 0: NAME_chunk_output runs at the same time as NAME_chunk_state or, if copies are kept, NAME_segment_scan: it
     * waits for a copy until so many of their blocks have counted in `progress`. 0: it runs afterwards */
    long long awaited;
    long long lift_slices; /* NAME_lift_rows: blocks that share some tokens' coordinates */
    /* NAME_decode, _decode_resident, _decode_recent, _decode_draft: blocks that share a head */
    long long slices;
    long long share; /* features of such a block, at most */
    long long group; /* query heads of each key head */
    /* NAME_decode_recent: tokens of k, v and log_gate before the query's own; heads with a window: of k and v before
     * q's first. With cu_seqlens, which then count keys, of sequences of one query each: keys less queries in all */
    long long recent;
    /* heads with a window, or with geometry.given_rows: q and k as given, even if copies replace q and k above */
    const void *given_q, *given_k;
    long long given_q_stride[3], given_k_stride[3];
    /* not 0: tokens are processed from the last one on, so that a query sees itself and later keys. NAME_cluster_scan,
     * NAME_fused_chunk: 1. Kernels of chunks (geometry.contraction_turns): the number of tokens, in tiles of 64, while
     * length is in whole tiles */
    long long reversed;
    /* NAME_segment_scan: 1: segments were processed without the initial state: it is added to all copies now, those of
     * the first segment included, and no final state is stored. `states` NULL: only the final state is stored */
    long long kept;
    /* Passes of gradients. NAME_chunk_output of gated heads on warpgroups, and NAME_fused_chunk (which then also stores
     * `states`): dots = o . dot_rows of each token, before o is rounded; NULL: not wanted. NAME_chunk_contraction:
     * dot_rows are the gradients of o; it stores d_q as o; `dots`, if wanted, are the outputs times these gradients */
    const void *dot_rows;
    long long dot_stride[3];
    float *dots; /* [column blocks][B][query_heads][length] */
    /* NAME_chunk_contraction of pairs: sums of scores times values, which are gradients of values if queries are keys;
     * the first sum_columns columns are stored. NULL: not wanted */
    void *sums;
    long long sum_stride[3], sum_columns;
    /* Passes of gradients: factors of the columns of o, before `dots` (NAME_fused_chunk), or of products of states
     * (NAME_state_product); NULL: 1 */
    const float *column_weights; /* [dv] */
    /* Passes of gradients, NAME_fused_chunk: [B][query_heads][length][2]: a factor of scores and a number added to
     * them, for each query (numbers_of 0; 3: the factor alone) or key (1; 2: the factor alone) */
    const float *numbers;
    long long numbers_of;
    long long narrows; /* NAME_fused_chunk of passes of bf16: 1: o is f16 */
    /* NAME_fused_chunk of passes of parts of values, NAME_state_product: 1: results are added to o, or products */
    long long adds;
    /* NAME_state_product: states of a reversed pass at the same places, and products of `states` with these */
    const void *reversed_states;
    double *products; /* [B][H][chunks]: at the beginning of each chunk but the first */
    /* NAME_decode, _decode_resident, _decode_recent: 1: a head's blocks are a cluster, which adds its parts of o
     * itself; the grid is [heads][slices] */
    long long joined;
    /* NULL, or sequences of different lengths, whose tokens are one axis, as in fpa_launch. Here batch is 1, length is
     * the number of all tokens, and strides of the batch's axis are those of tokens, so that a sequence begins at index
     * cu_seqlens[b]. Its first chunk has index cu_seqlens[b] / chunk + b among those of a head; segments likewise */
    const void *cu_seqlens;
    long long cu_seqlens_bytes;
    long long sequences;
    /* tokens of a sequence, at most; NAME_decode, NAME_sequence_scan: also without cu_seqlens */
    long long longest;
    long long segment_tokens; /* of a segment; more than any sequence has, if each is one segment */
    long long whole; /* a sequence of at most so many tokens is one chunk, longer than `chunk` or not */
    long long empty_chunks; /* without tokens, at a sequence's end: 1 in the chunked form, if not causal */
    /* [sequences]: slots of states; NULL: sequence b has slot b */
    const int *state_in_index, *state_out_index;
    long long state_in_slots, state_out_slots;
    /* NAME_decode_draft: tokens of the previous draft, at most `accepted` per sequence, of which the first
     * accepted_counts[b] enter the state */
    const void *accepted_k, *accepted_v;
    const float *accepted_log_gate;
    long long accepted_k_stride[3], accepted_v_stride[3], accepted_gate_stride[3]; /* batch, token, head */
    const int *accepted_counts;                                                    /* NULL: none */
    long long accepted;
    /* NAME_decode_recent: not 0: cu_seqlens count keys, at most so many per sequence; the last one is its query's */
    long long packed_recent;
};

/* Parameters of kernels of gradients, beside the call, whose o is an input here. A sequence is an index in [B][H]. */
struct fpa_cuda_backward {
    const void *d_o, *d_state_out;
    void *d_q, *d_k, *d_v, *d_state_in; /* NULL: not wanted */
    const float *den;
    float *d_log_gate;
    long long d_o_stride[3], d_q_stride[3], d_k_stride[3], d_v_stride[3], den_stride[3], d_log_gate_stride[3];
    long long d_state_out_stride[2], d_state_in_stride[2];

    /* ---- parts of the workspace ---- */
    float *outputs;     /* [B][query_heads][length][2]: 1 / n, gradient of the sum of scores */
    double *query_sums; /* [B][query_heads][length]: contributions of queries to d_log_gate (q.d_q ...) */
    double *key_sums;   /* [B][H][length]: contributions of keys */
    /* [sequences][chunks + 1][features][columns]: entry i is of the boundary before chunk i (the last one: after all
     * chunks): the state of the tokens before it, and the reversed state of the tokens after it */
    void *states, *reversed;
    float *parts;         /* [sequences][part_count][backward_entries]: gradients of matrices; NULL: none */
    float *sequence_sums; /* [B][H][backward_entries]: the sums of these parts */

    /* ---- sizes of this launch ---- */
    long long first_sequence, sequences; /* that it processes */
    long long walks_back;                /* NAME_backward_state: 1: the reversed state, of queries and d_o */
    float *totals;      /* [sequences][segments - 1][features][columns]: states of a segment's tokens alone */
    long long segments; /* NAME_backward_state: of a sequence, processed by different blocks */
    long long segment_chunks; /* of a segment */
    long long last;           /* NAME_backward_state: 1: it also stores the state after the last chunk */
    long long part_count;     /* NAME_backward_parts: parts of a sequence, of queries or of keys */
    long long adds;           /* NAME_backward_parts: 1: adds to the sums that are there */
    /* NAME_backward_keys: not 0: for each query head it has also blocks of queries, in runs of so many, which alternate
     * with runs of blocks of keys */
    long long both_sides;

    /* ---- gradients that are forward passes; a sequence is an index in [B][query_heads] ---- */
    void *pass_queries, *pass_keys; /* [sequences][pass_length][pass_width]: q and d_o / n; k and v */
    float *pass_gates;              /* [sequences][pass_length]: log-gates of these rows */
    /* NAME_backward_scatter: [sequences][pass_length][d, or dv and added columns, in whole pieces of 8] */
    const void *pass_result;
    long long pass_length; /* rows of a sequence; in reverse order with rows of zeros before its last token */
    long long pass_reversed; /* 1: from the last token on */
    long long pass_vectors;  /* 1: rows have q or k alone */
    float *pass_weights; /* NAME_backward_gather: not NULL: it only stores the coordinates' weights here */
    long long scatters_values;  /* NAME_backward_scatter: 1: to d_v, 0: to d_k, */
    long long scatters_queries; /* or 1: to d_q */
    /* NAME_backward_pass_gates: contributions of queries, [pass_read_blocks][sequences][length], and of keys, in
     * reverse order, [pass_blocks][sequences][pass_length]; products of NAME_state_product. With geometry.pass_beside,
     * NAME_backward_outputs computes those of queries */
    float *pass_reads;
    const float *pass_gives;
    const double *pass_products;
    long long pass_read_blocks, pass_blocks, pass_chunk, pass_chunks;
    /* made rows: [sequences][query heads of a key head, or 1][length][made_width], and their gradients; the matrix of
     * these rows, and its transpose */
    void *made_queries, *made_keys, *made_d_queries, *made_d_keys, *made_operands;
    /* heads with a lift: gradients of the rows of its matrices (geometry.made_kept, made_sums); NULL: not wanted */
    void *made_kept_queries, *made_kept_keys;
    /* features of made rows, [sequences][query heads of a key head, or 1][length][pass_features], and their
     * gradients; NULL: not wanted */
    void *feature_queries, *feature_keys, *feature_d_queries, *feature_d_keys;
    /* padded rows, [sequences][query heads of a key head, or 1][length][width]; NULL: as given */
    void *padded_queries, *padded_keys, *padded_d_o, *padded_values;
    /* kernels of whole chunks (geometry.backward_walks): states between parts of chunks, and their products,
     * [sequences][gate_parts]; query_sums are then [slabs of 64 features][B][query_heads][length] */
    void *boundaries; /* NULL: not wanted */
    double *products;
    long long gate_parts, part_shift; /* a part has geometry.chunk 2^part_shift tokens */
};

/* The driver's description of a tensor (CUtensorMap), from which the copy engine fetches boxes of 64 elements and 64
 * tokens: dimensions element, head, token, batch; elements outside of the tensor are zero. */
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
    struct fpa_tensor_map given_query, given_key; /* of the coordinates of geometry.given_rows */
    int queries, keys, outputs;   /* 1: query; key and value; output is valid, and so are the given ones */
    int keys_alone, values_alone; /* 1: key is valid; value is valid */
};

#endif
