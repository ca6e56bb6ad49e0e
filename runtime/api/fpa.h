/* fpa: kernels of Factorized Polynomial Attention, generated, verified, callable from C.
 *
 * A head (what) becomes a plan (how), a source (text), a module (loaded code), and only
 * after verification a kernel (callable). fpa_open makes one from a spec at run time,
 * fpa_open_bundle from files that `fpac gen --object` wrote, without Lua or a compiler.
 *
 * Given: specs, or bundles, and tensors of the caller. Gives: kernels that were verified, and their results.
 *
 * The formula (A. Nejati, "Long Context Transformers with Finely Crafted State Spaces", 2025, "The FPA Kernel" and
 * "Relationship to Linear Attention"):
 *     k(q,k) = sum over terms  weight * prod over branches (W q).(W k)
 *     o_t    = sum over visible j of  exp(G_t - G_j) k(scale q_t, k_j) v_j   [/ normaliser]
 * with G the running sum of the log-gates: the gate of step t multiplies all that came before
 * token t, an initial state included, and not token t itself. Of heads that map q and k first (docs/spec.md), q and
 * k stand for what the maps, projections and functions of the position make of them.
 *
 * Tensors are DLPack's DLTensor on the CPU, or for CUDA targets on the kernel's GPU: the dtype of the head,
 * the last axis contiguous, any strides (in elements; NULL: C order) on the others, any byte_offset. The
 * library never owns, frees or keeps a tensor. No function here keeps global state: kernels may be opened,
 * used and closed from any threads, one kernel from several threads at once as long as
 * their workspaces and outputs differ.
 *
 * Two libraries have this header. libfpa has every function. libfpa-run, for programs that only open bundles,
 * has all but fpa_open and fpa_open_text, and no Lua, generator or compiler; link one of the two.
 *
 * What stays as it is from version to version, and what a caller has to do for that: docs/abi.md. In short: a
 * caller's struct begins as {0} and has its fields set by name, so that fields it does not know are 0. */
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
    FPA_FORM_AUTO = -1, /* step for one token, else parallel below the crossover, else chunked */
    FPA_FORM_PARALLEL,  /* quadratic in L, no state unless one is given */
    FPA_FORM_CHUNKED,   /* linear in L: a state, updated once a chunk; of all keys without a mask */
    FPA_FORM_RECURRENT, /* linear in L: a state, updated at every token */
} fpa_form;

typedef struct fpa_options {
    const char *target;    /* "c", "c:avx2", "cuda", "cuda:sm_90" ...; NULL or "c": the best C target that
                              this machine runs; "cuda": the best for the device */
    int device;            /* of CUDA targets: which GPU, as the driver counts them */
    const char *cache_dir; /* NULL: $FPA_CACHE_DIR, $XDG_CACHE_HOME/fpac, ~/.cache/fpac; "": no cache */
    const char *compiler;  /* NULL: $FPA_CC, else cc, gcc or clang on the PATH */
    void (*log)(void *user,
                const char *line); /* what was compiled, verified, rebuilt; may be NULL. With `backward`
                                                  other threads may call it, too, one at a time */
    void *log_user;
    int backward; /* 1: gradients too (fpa_backward): a second module of the head, compiled and verified with the
                     first; of a bundle, one that `fpac gen --backward` wrote. Which heads and targets have
                     them: docs/c-api.md */
} fpa_options;

/* What a call gives of a run-time matrix; with per_head the key/value heads' axis comes first. */
typedef struct fpa_weight_shape {
    int rows;
    int columns;  /* 0: a diagonal, of which the `rows` numbers on it are given */
    int per_head; /* 1: one a key/value head; 0: one for all */
} fpa_weight_shape;

/* What a kernel is; valid until fpa_close. */
typedef struct fpa_description {
    const char *name;   /* of the head */
    const char *target; /* "c:avx512", "cuda:sm_90" */
    const char *dtype;  /* of q, k, v, o: "f32", "bf16", "f16" */
    const char *state_dtype;
    const char *arithmetic; /* what products are rounded to: "f32", "bf16", "f16"; sums are float32 */
    int device;             /* of CUDA targets: the GPU that the tensors lie on; else 0 */
    int d, dv;              /* widths of q and k, of v and o */
    int causal, gate, normalized;
    int64_t features;       /* D, the rows of the state */
    int64_t state_elements; /* of one (batch, head): S [D][dv] row-major, then z [D] when normalised */
    int chunk, block;
    int64_t crossover; /* tokens from which chunked beats parallel by the plan's count; 0: never */
    double flop[3];    /* parallel: per visible pair; chunked, recurrent: per token; of one head */
    int weight_count;  /* run-time matrices */
    const char *const *weight_names;
    const char *verdict; /* one line: what the kernel was checked on and its largest error */
    int from_cache;      /* 1: loaded from the cache or a bundle, not compiled */
    int positions;       /* numbers of a token's position that calls give; 0: they give none */
    int key_mask;        /* 1: calls give a mask of keys */
    int heads;           /* key/value heads that calls have, as the head's constants do; 0: any number */
    int window;          /* newest keys that have the weight exp(scale q.k); 0: none */
    const char *backward_verdict;          /* of the gradients, as verdict; NULL: opened without them */
    const fpa_weight_shape *weight_shapes; /* [weight_count] */
} fpa_description;

/* Operands of one call. Axes: B batch, L tokens, Hq query heads, H key/value heads (Hq a multiple
 * of H: query head h reads key/value head h / (Hq / H)), D features, N state_elements. */
typedef struct fpa_tensors {
    const DLTensor *q;              /* [B, L, Hq, d]; q and o NULL: only state_out is wanted */
    const DLTensor *k;              /* [B, L, H, d] */
    const DLTensor *v;              /* [B, L, H, dv] */
    DLTensor *o;                    /* [B, L, Hq, dv], written; must not overlap an input */
    const DLTensor *log_gate;       /* [B, L, H] float32, natural logarithm; only for gated heads. Sums of
                                       positive ones above 88.7 overflow: docs/c-api.md */
    const DLTensor *state_in;       /* [B, H, N], or [B, H, D, dv] when not normalised; NULL: zero */
    DLTensor *state_out;            /* the same shapes; NULL: not wanted; may be state_in itself */
    const DLTensor *const *weights; /* [weight_count] in the order of weight_names: float32, C order,
                                       [rows, columns], [d] (diagonal) or [rows] (of one column), with a
                                       leading H when one a head */
    void *stream;                   /* CUDA: the CUstream to compute in, of the current context (NULL: its
                                       default stream); C: NULL */
    int64_t recent;                 /* tokens before q's that state_in has not seen, while q and o have one:
                                       k, v and log_gate have recent + 1 tokens, the query's own the last.
                                       The state stays as it is: state_out NULL, recurrent form or AUTO.
                                       Of heads with a window: the tokens before q's first one that k and v
                                       have, the window's w - 1 or all there are; q and o may have any number
                                       L, k and v recent + L, and every form takes them (below) */
    const DLTensor *positions;      /* [B, L, n], or [B, L] when n is 1: float32; only for heads that take
                                       positions of n numbers. With `recent`, recent + 1 tokens as k has */
    const DLTensor *key_mask; /* [B, L], bool or uint8; only for heads that take one. Nonzero (true): the
                                       key takes part; 0: it contributes nothing, whatever its k and v are (its
                                       log-gate still counts). With `recent`, recent + 1 tokens as k has */
    DLTensor *
        den; /* [B, L, Hq] float32, written; only for normalised heads: the sum of each output's scores (the same
                      sum with v = 1, before eps, 1 or a maximum make the normaliser of it), as fpa_backward takes it.
                      NULL: not wanted */
    const DLTensor
        *cu_seqlens; /* [S + 1], int32 or int64: S sequences of lengths of their own, one behind the other in
                                    one batch. q, k, v, o and all others with tokens are then [1, total, ...], sequence s
                                    has tokens cu_seqlens[s] .. cu_seqlens[s + 1] - 1 of them (none is fine, and tokens
                                    that are no sequence's stay as they are), and states are of sequences, [S, H, N].
                                    Below: "Sequences of different lengths". NULL: the batch's axis */
    int64_t
        max_length; /* with cu_seqlens: no sequence is longer; 0: total. What is longer is cut off there */
    const DLTensor *state_index; /* [B], or [S]: int32. state_in is a pool [slots, H, N], any stride a slot: a
                                        sequence begins with the state in slot state_index[s]; -1: with zero. NULL: state_in
                                        has one for each */
    const DLTensor
        *state_out_index; /* the same of state_out, where a sequence leaves its state; -1: nowhere. To bring a
                                        pool up to date in place give pool and index twice */
} fpa_tensors;

/* Tokens of a draft at most, and of one that is accepted. */
#define FPA_DRAFT_TOKENS 16

/* What a state takes in of a draft: of sequence b its first count[b] tokens, none or all of T. */
typedef struct fpa_accepted {
    const DLTensor *count; /* [B], int32, where the others lie: 0 .. T */
    const DLTensor *k, *v; /* [B, T, H, d], [B, T, H, dv]; T: 1 .. FPA_DRAFT_TOKENS */
    const DLTensor *log_gate, *positions, *key_mask; /* of these tokens, as in fpa_tensors */
} fpa_accepted;

/* Operands of one backward pass, for a loss whose gradient in o is d_o: axes as in fpa_tensors, each gradient in shape and
 * type as its operand. Gradients that are NULL are not wanted, and not computed. */
typedef struct fpa_gradient_tensors {
    const DLTensor *q, *k, *v, *log_gate, *state_in, *const *weights; /* as the forward pass took them */
    const DLTensor *o;                                                /* what it wrote */
    const DLTensor *den;         /* [B, L, Hq] float32: likewise, of normalised heads; else NULL */
    const DLTensor *d_o;         /* as o */
    const DLTensor *d_state_out; /* as a state: the gradient of the final state; NULL: zero */
    DLTensor *d_q, *d_k, *d_v;   /* sums over the query heads of a key head are taken in their order */
    DLTensor *d_log_gate;        /* [B, L, H] float32 */
    DLTensor *d_state_in;        /* as a state; also where none was given, which is zero */
    DLTensor *const *d_weights;  /* [weight_count], entries may be NULL: float32, as weights; or NULL */
    void *stream;                /* C: NULL */
    const DLTensor *
        cu_seqlens; /* [S + 1]: sequences of lengths of their own, as in fpa_tensors, one part of the packed batch each:
                                    tokens that are no sequence's have no gradients, which stay as they are. d_state_out and
                                    d_state_in are of sequences, [S, H, N]; d_weights are sums over all of them */
    int64_t max_length; /* as in fpa_tensors */
    const DLTensor
        *state_index; /* [B], or [S]: state_in is a pool, as in fpa_tensors; gradients of states are not */
    const DLTensor *positions,
        *key_mask; /* as the forward pass took them; masked keys and their values get zeros */
} fpa_gradient_tensors;

/* The library's own version, "0.1.0": a program may run with another one than it was compiled with. */
FPA_API const char *fpa_version(void);

/* Open one head of a Lua spec file: generate, compile (or take from the cache), load, verify. Not in
 * libfpa-run. head NULL: the file's only head. options NULL: defaults. *kernel is set on success only and
 * is closed with fpa_close. Errors: INVALID (spec, head, option; with file:line), UNSUPPORTED,
 * NO_MEMORY, IO, COMPILE (no compiler, or its message), LOAD, REFUSED (verification failed), DEVICE
 * (no GPU or no driver, of CUDA targets). */
FPA_API fpa_status fpa_open(const char *spec, const char *head, const fpa_options *options,
                            fpa_kernel **kernel, fpa_error *error);

/* The same from spec text in memory; name stands for the file in messages. .npy files that it
 * names are looked for in the current folder. Not in libfpa-run. */
FPA_API fpa_status fpa_open_text(const char *name, const char *text, const char *head,
                                 const fpa_options *options, fpa_kernel **kernel, fpa_error *error);

/* Open one head of a folder written by `fpac gen --object`: needs no Lua and no compiler. The
 * object's digest is checked, and the kernel is verified once on each machine; with options.backward so are the
 * gradients'. UNSUPPORTED: the folder has the head for no target that runs here, or without the gradients wanted. */
FPA_API fpa_status fpa_open_bundle(const char *folder, const char *head, const fpa_options *options,
                                   fpa_kernel **kernel, fpa_error *error);

/* Of no kernel (NULL): NULL. */
FPA_API const fpa_description *fpa_describe(const fpa_kernel *kernel);

/* The form that AUTO stands for, for L tokens; of no kernel (NULL): AUTO. */
FPA_API fpa_form fpa_choose_form(const fpa_kernel *kernel, int64_t length, int with_state);

/* Bytes of scratch memory that fpa_forward needs for these shapes with the threads OpenMP would
 * use now. Only shapes are read. The caller gives that many bytes where the tensors are, 64-byte
 * aligned; on a GPU 256-byte aligned, as every allocation there is. */
FPA_API fpa_status fpa_workspace_size(const fpa_kernel *kernel, fpa_form form, const fpa_tensors *tensors,
                                      size_t *bytes, fpa_error *error);

/* Compute o (and state_out). Checks every tensor first (INVALID, nothing is written then), then
 * neither allocates nor fails. Bitwise reproducible, whatever the number of threads. On a GPU it
 * returns at once, before the stream gets there, and may be captured in a graph; the calling thread's
 * current context has to be the device's primary one (DEVICE: the driver refused the launch). */
FPA_API fpa_status fpa_forward(const fpa_kernel *kernel, fpa_form form, const fpa_tensors *tensors,
                               void *workspace, size_t workspace_size, fpa_error *error);

/* Gradients, of a kernel opened with options.backward. Forms: parallel, chunked, or AUTO. The workspace is what
 * fpa_forward's is; beside two states for every thread it takes at most 1 GiB where the form is AUTO, and grows with the
 * length in the parallel form. Nothing is written before every tensor was checked. Bits do not depend on the number of
 * threads. UNSUPPORTED: opened without gradients. */
FPA_API fpa_status fpa_backward_workspace(const fpa_kernel *kernel, fpa_form form,
                                          const fpa_gradient_tensors *tensors, size_t *bytes,
                                          fpa_error *error);
FPA_API fpa_status fpa_backward(const fpa_kernel *kernel, fpa_form form, const fpa_gradient_tensors *tensors,
                                void *workspace, size_t workspace_size, fpa_error *error);

/* Two ways to decode. A step updates the state at every token, which reads and writes all of it. Or the
 * newest r keys, values and log-gates are kept, and the state is only read (recent = 0, 1 .. r - 1: about
 * half of the time); when r are there, one fpa_forward without q and o puts them into the state, and the next
 * token begins at recent = 0:
 *
 *     k, v: [B, r, H, d] of the caller, token i of the current r in place i
 *     every token, the i-th (from 0) since the state was brought up to date:
 *         fpa_forward(q, o of 1 token; k, v: the first i + 1 places; recent = i; state_in)
 *         if i + 1 == r: fpa_forward(q = o = NULL; k, v: all r places; state_in = state_out), i = 0
 *
 * Results are those of steps, to rounding.
 *
 * Heads with a window of w keys: a state never has the window's own keys, which a call takes as keys and values. What
 * is handed over from call to call is a state and the last w - 1 keys and values (docs/forms.md has a drawing):
 *
 *     k, v: [B, recent + L, H, d]: the last min(w - 1, all before) tokens of what came before, then the L new ones
 *     fpa_forward(q, o of the L tokens; k, v; recent; state_in; state_out)
 *     state_out has every key that is older than the w - 1 newest of these, which the next call begins with
 *
 * A prompt begins with recent = 0 and no state_in; a step is L = 1, in whose course one key leaves the window for the
 * state. recent may be more than w - 1: what state_in lacks is then weighed by the kernel, pair by pair, and goes into
 * state_out; with state_out NULL and L = 1 the state is only read. Without q and o all of k's and v's tokens come
 * behind state_in, and recent is 0. */

/* Sequences of different lengths, and states in pools. cu_seqlens, state_index and state_out_index lie where the other
 * tensors do, and a call on a GPU does not look at them before the stream gets there: a captured graph is launched
 * again with other contents, as long as total, S, max_length and slots stay. Work is sized by total and S, and by
 * max_length where a form's cost depends on it: to give the longest length that there can be is worth it.
 * On the CPU what they say is checked first (INVALID): offsets that go back or leave the tokens, sequences longer than
 * max_length, indices of no slot, two sequences that leave their states in one slot, or one in a slot that another one
 * begins with. On a GPU nobody looks: offsets are taken as if they were within 0 .. total, a sequence that would end
 * before its beginning as empty, an index of no slot as -1; what sequences that overlap give is undefined, but no
 * other memory is read or written. Each sequence's results are those of a call of its own, to rounding: its tokens may be
 * added up in another order where several blocks share it.
 * Pools go with `recent` too, and so do sequences of different lengths, of heads without a window. cu_seqlens is then of keys: sequence
 * s has tokens cu_seqlens[s] .. cu_seqlens[s + 1] - 1 of k, v and all that belongs to keys, its query's own the last; q, o and den are
 * [1, S, ...], a token a sequence. `recent` says how many there are beside a state at most, max_length is 0; o of a sequence without
 * tokens stays as it is. Heads with a window go on in such batches without `recent`: each sequence's last w - 1 tokens come
 * again before its new ones, in q too; o of these tokens is nobody's. */

/* Decode: fpa_forward in recurrent form with state_in and state_out required; pass the same
 * tensor twice to update it in place. */
FPA_API fpa_status fpa_step(const fpa_kernel *kernel, const fpa_tensors *tensors, void *workspace,
                            size_t workspace_size, fpa_error *error);

/* Speculative decoding: several tokens a step, of which not all may stay. The queries of a draft see the state and, causally,
 * the draft's own keys; the state stays as it is. Then the state takes in the first n tokens, n a number of each sequence that
 * lies where the tensors do:
 *
 *     fpa_draft(q, k, v, o of T tokens; state_in)                     accepted NULL: the state is read only
 *     fpa_accept(state_in, state_out; accepted: k, v of these, count) no q, k, v, o: the state is brought up to date
 *
 * Or both in one pass over the state, the acceptance of the draft before and then a draft that sees it:
 *
 *     fpa_draft(q, k, v, o; state_in, state_out; accepted: k, v of the draft before, count)
 *
 * with the same results. state_in NULL: zero. States may be in pools; a sequence whose state_out_index is -1 accepts nothing. On a
 * GPU nobody looks at counts before the stream gets there: a captured graph is launched again with others; what is
 * outside of 0 .. T is taken as the nearest of the two. On the CPU it is INVALID. Heads without a mask or with a window, and
 * kernels of CUDA for heads that map q and k first, are UNSUPPORTED. tensors have no recent and no cu_seqlens; without accepted no
 * state_out. The workspace: fpa_draft_workspace's, of either call. */
FPA_API fpa_status fpa_draft_workspace(const fpa_kernel *kernel, const fpa_tensors *tensors,
                                       const fpa_accepted *accepted, size_t *bytes, fpa_error *error);
FPA_API fpa_status fpa_draft(const fpa_kernel *kernel, const fpa_tensors *tensors,
                             const fpa_accepted *accepted, void *workspace, size_t workspace_size,
                             fpa_error *error);
FPA_API fpa_status fpa_accept(const fpa_kernel *kernel, const fpa_tensors *tensors,
                              const fpa_accepted *accepted, void *workspace, size_t workspace_size,
                              fpa_error *error);

/* One sequence in pieces, each on a device of its own (examples/context_parallel.c): first what a piece's keys add up to, then,
 * when the state before the piece is known, its outputs:
 *
 *     fpa_piece_total(k, v, log_gate; state_out)             no q, o, state_in
 *     fpa_piece_outputs(q, k, v, log_gate, o; state_in)      no state_out; state_in NULL: the first piece
 *
 * with the results of two calls of fpa_forward in the chunked form, to rounding. Both get the same k, v, log_gate (and
 * positions, key_mask), the same stream (or the second one waits for the first), and the same workspace, of
 * fpa_piece_workspace's size for the outputs, which nobody else uses between them: on GPUs copies of states stay there, and the
 * second call walks no keys. Where a head's queries read no copies (its chunked form is one pass; on the CPU; sequences of
 * different lengths) the second call walks them again. Heads with a window, or without a mask, are UNSUPPORTED. */
FPA_API fpa_status fpa_piece_workspace(const fpa_kernel *kernel, const fpa_tensors *tensors, size_t *bytes,
                                       fpa_error *error);
FPA_API fpa_status fpa_piece_total(const fpa_kernel *kernel, const fpa_tensors *tensors, void *workspace,
                                   size_t workspace_size, fpa_error *error);
FPA_API fpa_status fpa_piece_outputs(const fpa_kernel *kernel, const fpa_tensors *tensors, void *workspace,
                                     size_t workspace_size, fpa_error *error);

/* Unload. NULL is fine. No call on the kernel may be running. */
FPA_API void fpa_close(fpa_kernel *kernel);

/* Layers: heads that need not be alike, side by side along one axis, and computed by one call. On the CPU the threads of
 * one team share the work of all heads; on a GPU the heads of each kind have a stream of their own, which forks from the
 * caller's and joins it again. Results are, bit for bit, those of calls of the heads by themselves. */
typedef struct fpa_layer fpa_layer;

/* Some key/value heads of a layer that are alike. */
typedef struct fpa_layer_part {
    const fpa_description *head; /* of their kernel */
    int first, heads;     /* which of the layer's key/value heads they are: first .. first + heads - 1 */
    int64_t state_offset; /* element of a sequence's state at which theirs begin: [heads, state_elements] in
                                    C order, with the state_elements of `head` */
    int first_weight;     /* number of their first run-time matrix among the layer's */
} fpa_layer_part;

/* What a layer is; valid until fpa_close_layer. */
typedef struct fpa_layer_description {
    const char *name, *target, *dtype, *state_dtype; /* as in fpa_description, of all heads */
    int device, d, dv;
    int heads;                       /* H, key/value heads of all parts */
    int gate, normalized, key_mask;  /* 1: of some heads at least */
    int positions;                   /* numbers of a token's position; 0: no head takes any */
    int window;                      /* the longest of its heads; 0: none has one */
    int backward;                    /* 1: opened with gradients */
    int64_t state_elements;          /* S, of one sequence: the states of all heads */
    int weight_count;                /* run-time matrices of all parts, one part's behind the other's */
    const char *const *weight_names; /* "HEAD.NAME"; of the second part of a head "HEAD@2.NAME" and so on */
    int part_count;
    const fpa_layer_part *parts; /* [part_count], in the order of the heads' axis */
} fpa_layer_description;

/* Open a layer of a Lua spec file with the kernels of its heads, each as fpa_open does: equal heads once. layer NULL: the
 * file's only one. Not in libfpa-run. Errors: those of fpa_open. */
FPA_API fpa_status fpa_open_layer(const char *spec, const char *layer, const fpa_options *options,
                                  fpa_layer **opened, fpa_error *error);
/* The same from spec text in memory, as fpa_open_text. Not in libfpa-run. */
FPA_API fpa_status fpa_open_layer_text(const char *name, const char *text, const char *layer,
                                       const fpa_options *options, fpa_layer **opened, fpa_error *error);

/* Open a layer of a folder written by `fpac gen --object`, as fpa_open_bundle opens a head: its heads, for the best target that
 * runs here and that all of them were written for. layer NULL: the folder's only one. UNSUPPORTED: there is no such target,
 * or one without the gradients wanted. */
FPA_API fpa_status fpa_open_bundle_layer(const char *folder, const char *layer, const fpa_options *options,
                                         fpa_layer **opened, fpa_error *error);

/* A layer of kernels that are open already, of several bundles say: heads[i] key/value heads of kernels[i], `count` parts, at most
 * 64. The kernels stay the caller's, and open while the layer is. INVALID: widths, dtypes, numbers of positions, targets or
 * devices that differ, numbers of heads that are not 1 to 65536 or not those of a head's constants; LOAD: a module of an
 * older version of fpac. */
FPA_API fpa_status fpa_join_layer(const char *name, const fpa_kernel *const *kernels, const int *heads,
                                  int count, fpa_layer **joined, fpa_error *error);

/* Of no layer (NULL): NULL. */
FPA_API const fpa_layer_description *fpa_describe_layer(const fpa_layer *layer);

/* fpa_workspace_size, fpa_forward and fpa_step of a layer, with the same guarantees. Tensors are those of one head, where
 * the axes Hq and H are all heads: H as described, Hq a multiple of it, so that each head has equally many query heads.
 * What differs:
 *     state_in, state_out  [B, S]; pools [slots, S]: the last axis contiguous, the other as it may be
 *     log_gate, positions, key_mask  needed where some head takes them; those that do not leave them alone
 *     den                  written for heads with a normaliser; what belongs to others stays as it is
 *     weights              those of the parts, one behind the other; one a head: a leading axis of the part's heads
 *     recent               without windows: of all heads. Of a layer in which some heads have one: tokens before q's first
 *                          that k, v and all others with tokens have. Each head takes the newest of them that its own window
 *                          may reach, w - 1; those without a window have them in their state, and take none
 * A form other than AUTO is every head's (UNSUPPORTED where one lacks it); with AUTO each takes its own. On a GPU calls on one
 * layer from several threads put their launches in one after the other; while its streams belong to a capture that has not
 * ended, calls on other streams compute the parts one behind the other in their own. */
FPA_API fpa_status fpa_layer_workspace_size(const fpa_layer *layer, fpa_form form, const fpa_tensors *tensors,
                                            size_t *bytes, fpa_error *error);
FPA_API fpa_status fpa_layer_forward(const fpa_layer *layer, fpa_form form, const fpa_tensors *tensors,
                                     void *workspace, size_t workspace_size, fpa_error *error);
FPA_API fpa_status fpa_layer_step(const fpa_layer *layer, const fpa_tensors *tensors, void *workspace,
                                  size_t workspace_size, fpa_error *error);

/* Gradients of a layer that was opened with options.backward, as fpa_backward with tensors as above; parts are computed one
 * behind the other. What d_log_gate has of heads without a gate stays as it is. UNSUPPORTED: a head of it was opened without gradients. */
FPA_API fpa_status fpa_layer_backward_workspace(const fpa_layer *layer, fpa_form form,
                                                const fpa_gradient_tensors *tensors, size_t *bytes,
                                                fpa_error *error);
FPA_API fpa_status fpa_layer_backward(const fpa_layer *layer, fpa_form form,
                                      const fpa_gradient_tensors *tensors, void *workspace,
                                      size_t workspace_size, fpa_error *error);

/* Unload, with the kernels that it opened. NULL is fine. No call on the layer may be running. */
FPA_API void fpa_close_layer(fpa_layer *layer);

/* For bindings: what a language's arrays are is read by a function of theirs, so that a small call takes no longer to
 * prepare than to compute. The functions are those of DLPack's exchange table (Python's __dlpack_c_exchange_api__) and
 * of the interpreter; *tensors and its DLTensors are the binding's, with strides, as they were in a call before. */
typedef struct fpa_object_call {
    int (*read)(void *object, DLTensor *tensor); /* dltensor_from_py_object_no_sync; not 0: it cannot */
    int (*stream)(DLDeviceType type, int32_t device, void **stream); /* current_work_stream; of GPUs only */
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

/* fpa_forward or fpa_layer_forward, after the addresses of q, k, v, state_in and o, those that are not NULL in *tensors, became those of the
 * objects. FPA_OBJECTS_CHANGED: one could not be read, or is not what its DLTensor says (type, device, shape, strides),
 * and nothing was changed; else a fpa_status. Called with the interpreter's lock, which is released to compute. */
FPA_API int fpa_forward_objects(const fpa_object_call *call, void *q, void *k, void *v, void *state, void *o,
                                void *workspace);

#ifdef __cplusplus
}
#endif

#endif
