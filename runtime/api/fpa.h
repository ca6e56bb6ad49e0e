/* fpa: kernels of Factorized Polynomial Attention, generated, verified, callable from C.
 *
 * fpa_open compiles a head from a Lua spec at run time; fpa_open_bundle loads one from files that `fpac gen --object`
 * wrote, without Lua and without a compiler. Either way the compiled code is compared with the formula below in double
 * precision first: only code that passes becomes an fpa_kernel.
 *
 * Given: specs, or bundles, and the caller's tensors. Gives: verified kernels, and their results.
 *
 * The formula (A. Nejati, "Long Context Transformers with Finely Crafted State Spaces", 2025, "The FPA Kernel" and
 * "Relationship to Linear Attention"):
 *     k(q,k) = sum over terms  weight * prod over branches (W q).(W k)
 *     o_t    = sum over visible j of  exp(G_t - G_j) k(scale q_t, k_j) v_j   [/ normaliser]
 * G is the running sum of the log-gates. The gate of step t multiplies everything before token t, an initial state
 * included, but not token t itself. If a head has coordinates (docs/spec.md), q and k in this formula stand for the
 * coordinates, which are computed from q, k and the positions.
 *
 * Tensors are DLPack's DLTensor, on the CPU, or for CUDA targets on the kernel's GPU. They have the head's dtype; the
 * last axis is contiguous; other axes may have any stride (in elements; strides NULL: C order); any byte_offset is
 * allowed. The library never owns, frees or keeps a tensor.
 *
 * Threads: there is no global state. Kernels may be opened, used and closed by any thread. One kernel may be used by
 * several threads at once if their workspaces and outputs differ.
 *
 * Two libraries implement this header. libfpa has every function. libfpa-run is for programs that only open bundles:
 * it has no Lua, generator or compiler, and lacks fpa_open, fpa_open_text, fpa_open_layer and fpa_open_layer_text. Link
 * one of the two.
 *
 * docs/abi.md says what may change between versions. In short: initialise a caller's struct with {0} and set its fields
 * by name, so that fields which a later version adds are 0. */
#ifndef FPA_H
#define FPA_H

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#include "fpa_error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FPA_API __attribute__((visibility("default")))

typedef struct fpa_kernel fpa_kernel;

typedef enum fpa_form {
    /* the recurrent form for one token with a state; else the parallel form below the crossover; else the chunked
     * form */
    FPA_FORM_AUTO = -1,
    FPA_FORM_PARALLEL, /* time quadratic in L; uses a state only if one is given or wanted */
    /* time linear in L: a state that is updated once per chunk; without a causal mask, one state of all keys,
     * which every query reads */
    FPA_FORM_CHUNKED,
    FPA_FORM_RECURRENT, /* time linear in L: a state that is updated at every token */
} fpa_form;

typedef struct fpa_options {
    /* "c", "c:avx2", "cuda", "cuda:sm_90" ...; NULL or "c": the best C target that this machine runs; "cuda": the
     * best one for the device */
    const char *target;
    int device; /* CUDA targets: the GPU, as the driver numbers them */
    /* folder of the cache of compiled kernels; NULL: $FPA_CACHE_DIR, else $XDG_CACHE_HOME/fpac, else
     * ~/.cache/fpac; "": no cache */
    const char *cache_dir;
    const char *compiler; /* C targets: the compiler; NULL: $FPA_CC, else cc, gcc or clang on the PATH */
    /* Called with a line for each compilation, verification and use of the cache; may be NULL. With `backward` it is
     * also called from other threads, one at a time. */
    void (*log)(void *user, const char *line);
    void *log_user;
    /* 1: with gradients (fpa_backward), a second module that is compiled and verified at the same time. A bundle
     * must have been written by `fpac gen --backward`. docs/c-api.md lists the heads and targets that have
     * gradients. */
    int backward;
} fpa_options;

/* Shape of a run-time matrix, which the caller passes in fpa_tensors.weights: [rows, columns], or with per_head
 * [H, rows, columns]. */
typedef struct fpa_weight_shape {
    int rows;
    int columns;  /* 0: a diagonal matrix, given as its `rows` diagonal elements */
    int per_head; /* 1: one for each key/value head; 0: one for all */
} fpa_weight_shape;

/* Description of a kernel; valid until fpa_close. */
typedef struct fpa_description {
    const char *name;   /* name of the head */
    const char *target; /* "c:avx512", "cuda:sm_90" */
    const char *dtype;  /* type of q, k, v, o: "f32", "bf16", "f16" */
    const char *state_dtype;
    const char *arithmetic; /* type of the factors of products: "f32", "bf16", "f16"; sums are float32 */
    int device;             /* CUDA targets: the GPU on which the tensors must be; else 0 */
    int d, dv;              /* widths of q and k, of v and o */
    int causal, gate, normalized;
    int64_t features;       /* D, the rows of the state */
    int64_t state_elements; /* N, for one (batch, head): S [D][dv] row-major, then z [D] if normalised */
    int chunk, block;
    int64_t crossover; /* length from which the plan expects chunked to be faster than parallel; 0: never */
    /* FLOP for one head, by form. parallel: per pair of a query and a visible key; chunked, recurrent: per token */
    double flop[3];
    int weight_count; /* number of run-time matrices */
    const char *const *weight_names;
    const char *verdict; /* one line: what was verified, and the largest error */
    int from_cache;      /* 1: loaded from the cache or a bundle, not compiled */
    int positions;       /* numbers in a token's position, which calls must give; 0: none */
    int key_mask;        /* 1: calls must give a mask of keys */
    /* number of key/value heads that calls must have, because the head has constants for so many; 0: any number */
    int heads;
    int window;                   /* w: the newest w keys have the weight exp(scale q.k); 0: no window */
    const char *backward_verdict; /* as verdict, for the gradients; NULL: opened without them */
    const fpa_weight_shape *weight_shapes; /* [weight_count] */
    /* [weight_count]: "projection"; "affine": its last column is a constant that is added; "diagonal"; for
     * coordinates with positions "angle", "phase", "amplitude" */
    const char *const *weight_kinds;
} fpa_description;

/* Operands of one call. Axes: B batch, L tokens, Hq query heads, H key/value heads (Hq is a multiple of H: query head h
 * reads key/value head h / (Hq / H)), D features, N state_elements, n numbers in a position. */
typedef struct fpa_tensors {
    const DLTensor *q; /* [B, L, Hq, d]; q and o NULL: only state_out is computed */
    const DLTensor *k; /* [B, L, H, d] */
    const DLTensor *v; /* [B, L, H, dv] */
    DLTensor *o;       /* [B, L, Hq, dv], written; must not overlap an input */

    /* [B, L, H] float32, natural logarithms; gated heads only. Usually at most 0: a sum of positive ones above 88.7
     * overflows (docs/c-api.md). */
    const DLTensor *log_gate;

    /* [B, H, N], or [B, H, D, dv] if not normalised. state_in NULL: zero. state_out NULL: not wanted; it may be the same
     * tensor as state_in. */
    const DLTensor *state_in;
    DLTensor *state_out;

    /* [weight_count], in the order of weight_names: float32, C order. [rows, columns], [d] for a diagonal or [rows] for a
     * single column, with a leading axis H if there is one for each head. */
    const DLTensor *const *weights;

    /* CUDA: the CUstream for all work, of the current context (NULL: its default stream). C targets: NULL. */
    void *stream;

    /* Heads without a window: the number of tokens before the query's that state_in does not contain yet. q and o then
     * have one token; k, v and log_gate have recent + 1, the query's own last. The state is not updated: state_out is
     * NULL, and the form is recurrent or AUTO.
     * Heads with a window: the number of tokens that k and v have before q's first one: min(w - 1, all there were), or
     * more. q and o may have any number L of tokens, k and v have recent + L, and every form is allowed. */
    int64_t recent;

    /* [B, L, n], or [B, L] if n is 1: float32; only for heads that take positions of n numbers. With `recent`, as many
     * tokens as k has. */
    const DLTensor *positions;

    /* [B, L], bool or uint8; only for heads that take a mask of keys. Nonzero: the key takes part. 0: it contributes
     * nothing, whatever its k and v contain; its log-gate still counts. With `recent`, as many tokens as k has. */
    const DLTensor *key_mask;

    /* [B, L, Hq] float32, written; only for normalised heads without a window: each output's sum of scores, which is the
     * same sum with v = 1, before eps, 1 or the maximum are applied. fpa_backward needs it. NULL: not wanted. */
    DLTensor *den;

    /* [S + 1], int32 or int64: S sequences of different lengths, packed one after the other into a batch of 1. All
     * tensors with a token axis are then [1, total, ...]; sequence s has the tokens cu_seqlens[s] .. cu_seqlens[s + 1] - 1,
     * possibly none; outputs of tokens that belong to no sequence are not written; states are [S, H, N]. NULL: no packing.
     * See "Sequences of different lengths" below. */
    const DLTensor *cu_seqlens;
    /* with cu_seqlens: an upper bound of the lengths (0: total). Longer sequences are cut there */
    int64_t max_length;

    /* int32, [B], or [S] with cu_seqlens. With state_index, state_in is a pool [slots, H, N] with any stride between
     * slots, and sequence s starts from slot state_index[s]; -1: from zero. With state_out_index, sequence s leaves its
     * state in slot state_out_index[s] of state_out; -1: nowhere. To update a pool in place, pass the same pool and the
     * same index twice. NULL: the state tensor has one state for each sequence. */
    const DLTensor *state_index;
    const DLTensor *state_out_index;
} fpa_tensors;

/* The largest number of tokens of a draft. */
#define FPA_DRAFT_TOKENS 16

/* Tokens of an earlier draft, of which the first count[b] of sequence b are added to the state. */
typedef struct fpa_accepted {
    const DLTensor *count; /* [B], int32, on the same device as the others: 0 .. T */
    const DLTensor *k, *v; /* [B, T, H, d], [B, T, H, dv]; T: 1 .. FPA_DRAFT_TOKENS */
    const DLTensor *log_gate, *positions, *key_mask; /* of these tokens, as in fpa_tensors */
} fpa_accepted;

/* Operands of one backward pass, for a loss whose gradient with respect to o is d_o. Axes as in fpa_tensors. Each gradient
 * has the shape and type of its operand; a gradient that is NULL is not computed. */
typedef struct fpa_gradient_tensors {
    const DLTensor *q, *k, *v, *log_gate, *state_in, *const *weights; /* as given to the forward pass */
    const DLTensor *o;                                                /* as the forward pass wrote it */
    const DLTensor *den; /* [B, L, Hq] float32, as the forward pass wrote it; NULL if not normalised */
    const DLTensor *d_o; /* as o */
    const DLTensor *d_state_out; /* gradient of the final state, shaped as state_out; NULL: zero */
    DLTensor *d_q, *d_k, *d_v;  /* d_k and d_v sum over the query heads of a key/value head, in their order */
    DLTensor *d_log_gate;       /* [B, L, H] float32 */
    DLTensor *d_state_in;       /* shaped as state_in; allowed without state_in, which is then zero */
    DLTensor *const *d_weights; /* [weight_count], or NULL; each entry float32 as in weights, or NULL */
    void *stream;               /* as in fpa_tensors */

    /* As in fpa_tensors: a packed batch, in which each sequence has gradients of its own. Gradients of tokens that belong
     * to no sequence are not written. d_state_out and d_state_in are [S, H, N]; d_weights are summed over all sequences. */
    const DLTensor *cu_seqlens;
    int64_t max_length;                   /* as in fpa_tensors */
    const DLTensor *state_index;          /* as in fpa_tensors; the gradients of states are not pools */
    const DLTensor *positions, *key_mask; /* as given to the forward pass; masked keys and values get zeros */
} fpa_gradient_tensors;

/* The version of the library, such as "0.1.0", which may differ from the one that the program was compiled with. A
 * constant string. */
FPA_API const char *fpa_version(void);

/* Open one head of a Lua spec file: generate the source, compile it or take it from the cache, load, verify. Not in
 * libfpa-run. head NULL: the file's only head. options NULL: defaults. *kernel is NULL on failure; close it with
 * fpa_close. Errors: INVALID (spec, head or option; with file:line), UNSUPPORTED, NO_MEMORY, IO, COMPILE (no compiler, or
 * the compiler's message), LOAD, REFUSED (verification failed), DEVICE (CUDA targets: no GPU or no driver). */
FPA_API fpa_status fpa_open(const char *spec, const char *head, const fpa_options *options,
                            fpa_kernel **kernel, fpa_error *error);

/* The same from a spec's text in memory; `name` takes the place of the file name in messages. Relative paths of .npy files
 * that the spec reads start from the current directory. Not in libfpa-run. */
FPA_API fpa_status fpa_open_text(const char *name, const char *text, const char *head,
                                 const fpa_options *options, fpa_kernel **kernel, fpa_error *error);

/* Open one head of a folder that `fpac gen --object` wrote; needs no Lua and no compiler. The object's digest is checked,
 * and the kernel, with options.backward also its gradients, is verified once on each machine. UNSUPPORTED: the folder has
 * the head for no target that runs here, or without gradients though they are wanted. */
FPA_API fpa_status fpa_open_bundle(const char *folder, const char *head, const fpa_options *options,
                                   fpa_kernel **kernel, fpa_error *error);

/* The description of a kernel, valid until fpa_close; NULL if kernel is NULL. */
FPA_API const fpa_description *fpa_describe(const fpa_kernel *kernel);

/* The form that FPA_FORM_AUTO selects for sequences of `length` tokens, with or without a state; FPA_FORM_AUTO if
 * kernel is NULL. */
FPA_API fpa_form fpa_choose_form(const fpa_kernel *kernel, int64_t length, int with_state);

/* The bytes of scratch memory that fpa_forward needs for these shapes, with the number of threads that OpenMP
 * would use now. Only shapes are read; data may be NULL. The caller allocates the workspace on the tensors'
 * device, aligned to 64 bytes, or on a GPU to 256, as every CUDA allocation is. INVALID: a shape is wrong;
 * UNSUPPORTED: the head does not have the form. */
FPA_API fpa_status fpa_workspace_size(const fpa_kernel *kernel, fpa_form form, const fpa_tensors *tensors,
                                      size_t *bytes, fpa_error *error);

/* Compute o, and state_out if given. All tensors are checked first; if one is wrong the result is INVALID and nothing is
 * written. After the check the call neither allocates nor fails. Results are bitwise reproducible, for any number of
 * threads. On a GPU the call only enqueues work in the stream and may be captured in a CUDA graph; the calling thread's
 * current context must be the device's primary one (DEVICE: the driver refused the launch). */
FPA_API fpa_status fpa_forward(const fpa_kernel *kernel, fpa_form form, const fpa_tensors *tensors,
                               void *workspace, size_t workspace_size, fpa_error *error);

/* Gradients of a loss, from its gradients with respect to o and the final state, for a kernel that was opened with
 * options.backward (else UNSUPPORTED). Forms: parallel, chunked or AUTO. The workspace is as for fpa_forward;
 * beyond two states for each thread, AUTO needs at most 1 GiB, while the parallel form's workspace grows with the
 * length. All tensors are checked before anything is written (INVALID). Results do not depend on the number of
 * threads. */
FPA_API fpa_status fpa_backward_workspace(const fpa_kernel *kernel, fpa_form form,
                                          const fpa_gradient_tensors *tensors, size_t *bytes,
                                          fpa_error *error);
FPA_API fpa_status fpa_backward(const fpa_kernel *kernel, fpa_form form, const fpa_gradient_tensors *tensors,
                                void *workspace, size_t workspace_size, fpa_error *error);

/* Two ways to decode, which agree to rounding.
 *
 * Step: fpa_step updates the state at every token, so each token reads and writes the whole state.
 *
 * Recent tokens: the caller keeps the newest r keys, values and log-gates in a buffer, and the state is only read, which
 * takes about half the time on a GPU. When the buffer is full, one fpa_forward without q and o adds all r tokens to the
 * state:
 *
 *     k, v: [B, r, H, d], the caller's buffer; i counts tokens since the state was last updated
 *     for every token:
 *         write its k, v into place i
 *         fpa_forward(q, o of this token; k, v: places 0 .. i; recent = i; state_in)
 *         if i + 1 == r: fpa_forward(q = o = NULL; k, v: all r places; state_in = state_out), i = 0, else i = i + 1
 *
 * Heads with a window of w keys: the state does not contain the keys of the window; calls take these as keys and values.
 * From one call to the next the caller passes a state and the last w - 1 keys and values (drawing: docs/forms.md):
 *
 *     k, v: [B, recent + L, H, d]: the last min(w - 1, all there were) earlier tokens, then the L new ones
 *     fpa_forward(q, o of the L tokens; k, v; recent; state_in; state_out)
 *     state_out then contains every key but the newest w - 1, which the next call starts with
 *
 * A prompt starts with recent = 0 and without state_in. A decoding step has L = 1; during it one key moves from the window
 * into the state. recent may be more than w - 1: tokens older than the window which state_in does not contain get the
 * kernel's weight, pair by pair, and are added to state_out; with state_out NULL and L = 1 the state is only read. Without
 * q and o, recent is 0 and k and v have exactly the tokens that follow state_in. */

/* Sequences of different lengths, and pools of states.
 *
 * cu_seqlens, state_index and state_out_index are on the same device as the other tensors. On a GPU their contents are read
 * only when the stream executes the call: a captured graph may be launched again with other contents, while total, S,
 * max_length and slots stay the same. Grids are sized by total, S and, where a form's cost depends on it, max_length: give
 * the longest length that is possible.
 *
 * On the CPU the contents are checked first (INVALID): offsets that decrease or exceed the tokens, sequences longer than
 * max_length, indices outside the pool, two sequences that write the same slot, and one that writes a slot from which
 * another one starts. On a GPU they are not checked: offsets are clamped to 0 .. total, a sequence that ends before it
 * starts is empty, an index outside the pool counts as -1. Overlapping sequences give undefined results, but no other
 * memory is read or written. Each sequence has the results of a call of its own, to rounding: its tokens may be summed in
 * another order if several blocks share it.
 *
 * Pools may be combined with `recent`. So may cu_seqlens, for heads without a window: then cu_seqlens are offsets of keys;
 * sequence s has the tokens cu_seqlens[s] .. cu_seqlens[s + 1] - 1 of k, v and everything else that belongs to keys, the
 * query's own token last; q, o and den are [1, S, ...], one token for each sequence; `recent` is an upper bound of the
 * number of recent tokens; max_length is 0; o of a sequence without tokens is not written. Heads with a window continue
 * packed sequences without `recent`: the last w - 1 tokens of each sequence are repeated before its new ones, in q as well,
 * and o of the repeated tokens is to be ignored. */

/* Decode one step: fpa_forward in recurrent form; state_in and state_out are required. Pass the same tensor as both to
 * update it in place. */
FPA_API fpa_status fpa_step(const fpa_kernel *kernel, const fpa_tensors *tensors, void *workspace,
                            size_t workspace_size, fpa_error *error);

/* Speculative decoding: T drafted tokens in one step, of which only the first n are accepted; n is read from a tensor, one
 * number for each sequence. The queries of a draft see the state and, causally, the keys of the draft; the state is not
 * changed. Later the accepted tokens are added to the state:
 *
 *     fpa_draft(q, k, v, o of T tokens; state_in)                     accepted NULL: the state is only read
 *     fpa_accept(state_in, state_out; accepted: k, v of these, count) no q, k, v, o: the state is updated
 *
 * Or both in one pass over the state: first the acceptance of the previous draft, then a draft that sees the result:
 *
 *     fpa_draft(q, k, v, o; state_in, state_out; accepted: k, v of the previous draft, count)
 *
 * state_in NULL: zero. States may be in pools; a sequence whose state_out_index is -1 accepts nothing. On a GPU count is
 * read only when the stream executes the call, so that a captured graph can be launched again with other counts; values
 * are clamped to 0 .. T. On the CPU a count outside 0 .. T is INVALID. UNSUPPORTED: heads that are not causal or have a
 * window; on CUDA targets also heads with coordinates. tensors must not have recent or cu_seqlens, and without `accepted`
 * no state_out. fpa_draft_workspace gives the workspace of either call. */
FPA_API fpa_status fpa_draft_workspace(const fpa_kernel *kernel, const fpa_tensors *tensors,
                                       const fpa_accepted *accepted, size_t *bytes, fpa_error *error);
FPA_API fpa_status fpa_draft(const fpa_kernel *kernel, const fpa_tensors *tensors,
                             const fpa_accepted *accepted, void *workspace, size_t workspace_size,
                             fpa_error *error);
FPA_API fpa_status fpa_accept(const fpa_kernel *kernel, const fpa_tensors *tensors,
                              const fpa_accepted *accepted, void *workspace, size_t workspace_size,
                              fpa_error *error);

/* Context parallelism: one sequence in pieces, each on its own device (examples/context_parallel.c). First each device
 * computes the total of its piece, the state that its keys alone leave; when the state before the piece is known, it
 * computes the outputs:
 *
 *     fpa_piece_total(k, v, log_gate; state_out)             no q, o, state_in
 *     fpa_piece_outputs(q, k, v, log_gate, o; state_in)      no state_out; state_in NULL: the first piece
 *
 * Results are those of two calls of fpa_forward in the chunked form, to rounding. Both calls get the same k, v, log_gate
 * (and positions, key_mask), the same stream (or the second one is ordered after the first), and the same workspace, of the
 * size that fpa_piece_workspace gives for the outputs; nothing else may use it between the calls. On GPUs the workspace
 * keeps copies of the states, so that the second call does not process the keys again. It does process them again where
 * there are no such copies: heads whose chunked form is a single kernel, the CPU, and packed sequences. UNSUPPORTED: heads
 * that have a window or are not causal. */
FPA_API fpa_status fpa_piece_workspace(const fpa_kernel *kernel, const fpa_tensors *tensors, size_t *bytes,
                                       fpa_error *error);
FPA_API fpa_status fpa_piece_total(const fpa_kernel *kernel, const fpa_tensors *tensors, void *workspace,
                                   size_t workspace_size, fpa_error *error);
FPA_API fpa_status fpa_piece_outputs(const fpa_kernel *kernel, const fpa_tensors *tensors, void *workspace,
                                     size_t workspace_size, fpa_error *error);

/* Unload; kernel may be NULL. No call on the kernel may be running. */
FPA_API void fpa_close(fpa_kernel *kernel);

/* Layers: different heads, side by side along the heads' axis, computed by one call. On the CPU one team of threads shares
 * the work of all heads; on a GPU each part runs in a stream of its own, which forks from the caller's stream and joins it
 * again. Results have the same bits as calls of the single heads. */
typedef struct fpa_layer fpa_layer;

/* A part: consecutive key/value heads of a layer that have the same kernel. */
typedef struct fpa_layer_part {
    const fpa_description *head; /* description of its kernel */
    int first, heads;            /* the part is the layer's key/value heads first .. first + heads - 1 */
    /* index of the first element of its states in the state of a sequence: [heads, state_elements] in C order,
     * with the state_elements of `head` */
    int64_t state_offset;
    int first_weight; /* index of its first run-time matrix among the layer's */
} fpa_layer_part;

/* Description of a layer; valid until fpa_close_layer. */
typedef struct fpa_layer_description {
    const char *name, *target, *dtype, *state_dtype; /* as in fpa_description, the same for all heads */
    int device, d, dv;
    int heads;                      /* H, key/value heads of all parts */
    int gate, normalized, key_mask; /* 1: at least one head has it */
    int positions;                  /* numbers in a token's position; 0: no head takes positions */
    int window;                     /* the longest window of its heads; 0: none has one */
    int backward;                   /* 1: opened with gradients */
    int64_t state_elements;         /* S, of one sequence: the states of all heads */
    int weight_count;               /* run-time matrices of all parts, in the order of the parts */
    const char *const
        *weight_names; /* "HEAD.NAME"; in the second part with the same head "HEAD@2.NAME", and so on */
    int part_count;
    const fpa_layer_part *parts; /* [part_count], in the order of the heads' axis */
} fpa_layer_description;

/* Open a layer of a Lua spec file, with the kernels of its heads, each as fpa_open does; equal heads once. layer NULL: the
 * file's only layer. Not in libfpa-run. Errors: those of fpa_open. */
FPA_API fpa_status fpa_open_layer(const char *spec, const char *layer, const fpa_options *options,
                                  fpa_layer **opened, fpa_error *error);
/* The same from a spec's text in memory, as fpa_open_text. Not in libfpa-run. */
FPA_API fpa_status fpa_open_layer_text(const char *name, const char *text, const char *layer,
                                       const fpa_options *options, fpa_layer **opened, fpa_error *error);

/* Open a layer of a folder that `fpac gen --object` wrote, as fpa_open_bundle opens a head: for the best target that runs
 * here and that the folder has for all of the layer's heads. layer NULL: the folder's only layer. UNSUPPORTED: there is no
 * such target, or none with gradients though they are wanted. */
FPA_API fpa_status fpa_open_bundle_layer(const char *folder, const char *layer, const fpa_options *options,
                                         fpa_layer **opened, fpa_error *error);

/* Make a layer of kernels that are open already, from several bundles for example: `count` parts (at most 64), part i with
 * heads[i] key/value heads of kernels[i]. The kernels stay the caller's and must stay open as long as the layer. INVALID:
 * different widths, dtypes, numbers of positions, targets or devices; numbers of heads that are not 1 to 65536 or not
 * those that a head's constants demand. LOAD: a module of an older version of fpac. */
FPA_API fpa_status fpa_join_layer(const char *name, const fpa_kernel *const *kernels, const int *heads,
                                  int count, fpa_layer **joined, fpa_error *error);

/* The description of a layer, valid until fpa_close_layer; NULL if layer is NULL. */
FPA_API const fpa_layer_description *fpa_describe_layer(const fpa_layer *layer);

/* fpa_workspace_size, fpa_forward and fpa_step for a layer, with the same guarantees. Tensors are as for one head; the axes
 * Hq and H count all heads of the layer: H as described, Hq a multiple of it. Differences:
 *     state_in, state_out  [B, S]; pools [slots, S]: the last axis contiguous, any stride on the other
 *     log_gate, positions, key_mask  required if some head takes them; heads that do not, ignore them
 *     den                  written for heads with a normaliser; elements of other heads are not written
 *     weights              those of the parts, in the order of the parts; a leading axis counts the part's heads
 *     recent               if no head has a window: as for one head. Else: the number of tokens before q's first one in k, v
 *                          and all other tensors with tokens of keys. A head with a window of w uses the newest w - 1 of
 *                          them; a head without one has them in its state and uses none
 * A form other than AUTO applies to every head (UNSUPPORTED if one lacks it); with AUTO each head selects its own. On a GPU,
 * calls on one layer from several threads enqueue their launches one call after the other; while the layer's streams belong
 * to a graph capture that has not ended, calls on other streams compute the parts one after the other in the caller's
 * stream. */
FPA_API fpa_status fpa_layer_workspace_size(const fpa_layer *layer, fpa_form form, const fpa_tensors *tensors,
                                            size_t *bytes, fpa_error *error);
FPA_API fpa_status fpa_layer_forward(const fpa_layer *layer, fpa_form form, const fpa_tensors *tensors,
                                     void *workspace, size_t workspace_size, fpa_error *error);
FPA_API fpa_status fpa_layer_step(const fpa_layer *layer, const fpa_tensors *tensors, void *workspace,
                                  size_t workspace_size, fpa_error *error);

/* Gradients of a layer that was opened with options.backward: fpa_backward, with tensors as above. The parts are computed
 * one after the other. Elements of d_log_gate of heads without a gate are not written. UNSUPPORTED: one of its heads was
 * opened without gradients. */
FPA_API fpa_status fpa_layer_backward_workspace(const fpa_layer *layer, fpa_form form,
                                                const fpa_gradient_tensors *tensors, size_t *bytes,
                                                fpa_error *error);
FPA_API fpa_status fpa_layer_backward(const fpa_layer *layer, fpa_form form,
                                      const fpa_gradient_tensors *tensors, void *workspace,
                                      size_t workspace_size, fpa_error *error);

/* Unload, with the kernels that the layer opened; layer may be NULL. No call on the layer may be running. */
FPA_API void fpa_close_layer(fpa_layer *layer);

/* For bindings to other languages: a fast path for repeated calls, which reads arrays through functions of that
 * language, so that preparing a small call takes less time than computing it. The functions are those of DLPack's
 * exchange table (Python's __dlpack_c_exchange_api__) and of the interpreter. *tensors and its DLTensors belong to
 * the binding; they have strides, and describe the previous call. */
typedef struct fpa_object_call {
    int (*read)(void *object, DLTensor *tensor); /* dltensor_from_py_object_no_sync; nonzero: it cannot */
    int (*stream)(DLDeviceType type, int32_t device, void **stream); /* current_work_stream; for GPUs only */
    void *(*release)(void);                                          /* PyEval_SaveThread */
    void (*acquire)(void *lock);                                     /* PyEval_RestoreThread */
    const fpa_kernel *kernel;
    const fpa_layer *layer; /* one of the two */
    fpa_form form;
    fpa_tensors *tensors;
    size_t workspace_size;
    fpa_error *error;
} fpa_object_call;

#define FPA_OBJECTS_CHANGED (-1)

/* fpa_forward or fpa_layer_forward with the data addresses of the objects: those of q, k, v, state_in and o that
 * are not NULL in *tensors are replaced before. Returns FPA_OBJECTS_CHANGED, with nothing changed, if an object
 * cannot be read or differs from its DLTensor in type, device, shape or strides; else an fpa_status. Called with
 * the interpreter's lock, which is released during the computation. */
FPA_API int fpa_forward_objects(const fpa_object_call *call, void *q, void *k, void *v, void *state, void *o,
                                void *workspace);

#ifdef __cplusplus
}
#endif

#endif
