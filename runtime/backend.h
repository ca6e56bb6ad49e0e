/* backend: object -> module, and launches of a module. One table row for each back end.
 *
 * Given: an object, by a builder (builder.h) or a store. Gives: a module that can be launched, on its own kind of
 * memory. c/ and cuda/ each have a row of the table. A module is loaded code that has not been verified; only
 * verify calls it before it becomes a kernel. */
#ifndef FPAC_RUNTIME_BACKEND_H
#define FPAC_RUNTIME_BACKEND_H

#include "abi/launch.h"
#include "abi/source.h"
#include "machine/candidate.h"
#include "machine/target.h"
#include "runtime/api/fpa.h"
#include "log.h"

/* The bytes of a compiled module, as the cache and bundles store them. malloc'ed. */
typedef struct fpa_object {
    unsigned char *bytes;
    size_t size;
} fpa_object;

/* A draft, and the accepted tokens that are added to the state before it (fpa_draft). */
typedef struct fpa_draft_launch {
    /* the draft's queries with their keys; they write no state. NULL: only the state is updated */
    const struct fpa_launch *queries;
    const struct fpa_launch *keys; /* tokens that may be accepted, of the same sequences; NULL: none */
    const int32_t *counts;         /* [batch]: how many of them are accepted, from the first on */
    size_t element, state_element; /* bytes of an element of q, k, v and o, and of a state */
    void *workspace;
    size_t workspace_size;
} fpa_draft_launch;

typedef struct fpa_module {
    const struct fpa_backend *backend;
    void *handle;         /* data of the back end */
    int device;           /* device on which the module was loaded; 0 if the back end has one only */
    bool decodes_recent;  /* it supports `recent` in the recurrent form, and calls without queries */
    bool takes_sequences; /* it supports cu_seqlens and pools of states */
    bool saves_den;       /* it can store sums of scores (den) */
    /* The candidates for a call of that size: writes the first `most` of them to `out` and returns how many there
     * are. NULL: there is one way, without a name. */
    int (*candidates)(const struct fpa_module *module, const fpa_call_size *size, fpa_candidate *out,
                      int most);
    /* The fastest candidate for a launch, which a caller can use both for the workspace and the launch, since
     * choosing takes time. False: there is none, and forward says why. NULL: as with candidates. */
    bool (*choose)(const struct fpa_module *module, int form, const struct fpa_launch *launch,
                   fpa_candidate *fastest);
    /* Bytes of workspace of a launch. candidate: one of `candidates`; NULL: the fastest. */
    size_t (*workspace)(const struct fpa_module *module, int form, const struct fpa_launch *launch,
                        const fpa_candidate *candidate);
    /* Compute; on a GPU: put the computation into the stream and return at once. INVALID: the workspace is too
     * small, or the candidate does not suit the call. DEVICE: the driver refused the launch. */
    fpa_status (*forward)(const struct fpa_module *module, int form, const struct fpa_launch *launch,
                          const fpa_candidate *candidate, void *stream, fpa_error *error);
    /* Workspace and launch of a draft; NULL: drafts are not supported. */
    size_t (*draft_workspace)(const struct fpa_module *module, const fpa_draft_launch *draft);
    fpa_status (*draft)(const struct fpa_module *module, const fpa_draft_launch *draft, void *stream,
                        fpa_error *error);
    /* A piece of a sequence (fpa_piece_total, fpa_piece_outputs), in two launches of the chunked form. The first
     * one, without queries, processes the keys; copies of the state remain in the workspace, and state_out is the
     * piece's total. The second one has queries, which read the copies plus the part of state_in, the state before
     * the piece. piece_workspace: bytes for such a launch; 0: it would keep no copies. NULL: the back end never
     * keeps any. */
    size_t (*piece_workspace)(const struct fpa_module *module, const struct fpa_launch *launch);
    fpa_status (*piece)(const struct fpa_module *module, const struct fpa_launch *launch, void *stream,
                        fpa_error *error);
    /* Gradients, of a module made for them, which has no forward; NULL: this module has none. */
    size_t (*backward_workspace)(const struct fpa_module *module, int form,
                                 const struct fpa_backward_launch *launch);
    fpa_status (*backward)(const struct fpa_module *module, int form,
                           const struct fpa_backward_launch *launch, void *stream, fpa_error *error);
    /* Modules whose forward passes compute gradients if the call allows it (gen/gen.h: source_passes); NULL: there
     * are none. They are not owned, and must exist as long as this module is used. */
    const struct fpa_module *passes[PASSES];
} fpa_module;

/* The number of sequences by which a packed batch is planned: as many of the largest length as have all its
 * tokens. Sizes chosen for these suit the batch, which has more and shorter sequences. */
static inline int64_t planned_sequences(const struct fpa_launch *launch)
{
    const int64_t whole = launch->length > 0 ? (launch->total + launch->length / 2) / launch->length : 1;
    return whole < 1 ? 1 : whole < launch->batch ? whole : launch->batch;
}

/* Whether, in all operands, the first token of a batch entry is one token's stride after the last token of the entry
 * before, so that all entries are like one sequence. Strides of an operand that is not given are 0. */
static inline bool joins_batch(const struct fpa_launch *launch)
{
    const int64_t *strides[] = {launch->q_stride,        launch->k_stride,       launch->v_stride,
                                launch->o_stride,        launch->gate_stride,    launch->den_stride,
                                launch->key_mask_stride, launch->position_stride};
    for (size_t i = 0; i < sizeof strides / sizeof *strides && launch->batch > 1; i++)
        if (strides[i][0] != launch->length * strides[i][1])
            return false;
    return true;
}

/* The size of a launch, for the cost model. In the recurrent form lengths do not matter, so that a packed batch
 * counts as it is. */
static inline fpa_call_size call_size(int form, const struct fpa_launch *launch)
{
    const bool packed = launch->cu_seqlens && form != FORM_RECURRENT;
    return (fpa_call_size){.form = form,
                           .batch = packed ? planned_sequences(launch) : launch->batch,
                           .length = launch->length,
                           .sequences = launch->cu_seqlens ? launch->batch : 0,
                           .query_heads = launch->query_heads,
                           .heads = launch->heads,
                           .recent = launch->recent,
                           .state_in = launch->state_in != NULL,
                           .state_out = launch->state_out != NULL,
                           .joined = !packed && joins_batch(launch)};
}

/* Functions for the memory on which a module computes, if it is not the process's own. For verification and for
 * the command; each function waits until previous work has finished. */
typedef struct fpa_memory {
    fpa_status (*allocate)(const fpa_module *module, size_t size, void **address, fpa_error *error);
    void (*release)(const fpa_module *module, void *address); /* NULL is fine */
    /* Fill `size` bytes, an even number, with copies of a 2-byte unit. */
    fpa_status (*fill)(const fpa_module *module, void *to, uint16_t unit, size_t size, fpa_error *error);
    fpa_status (*upload)(const fpa_module *module, void *to, const void *from, size_t size, fpa_error *error);
    fpa_status (*download)(const fpa_module *module, void *to, const void *from, size_t size,
                           fpa_error *error);
    /* Before and after a forward, if the caller's thread has no context of its own: enter makes the module's
     * context the current one, leave restores the previous one. */
    fpa_status (*enter)(const fpa_module *module, fpa_error *error);
    void (*leave)(const fpa_module *module);
    /* Wait for all launches. Errors on the device are reported here. */
    fpa_status (*finish)(const fpa_module *module, fpa_error *error);
} fpa_memory;

typedef struct fpa_backend {
    const char *name;         /* "c", "cuda"; targets are "c", "c:<isa>", "cuda", "cuda:sm_<n>" */
    int device_type;          /* kDLCPU or kDLCUDA: the kind of device on which operands must be */
    const fpa_memory *memory; /* NULL: the process's own */
    /* joint launches, for layers (together.h); NULL: the back end has no layers */
    const struct fpa_together *together;
    /* The target that a name stands for on this machine: for "c" and "cuda" the best one, for "c:avx2" and
     * "cuda:sm_80" that one. UNSUPPORTED: this machine cannot run it. DEVICE: there is no GPU or driver. */
    fpa_status (*choose)(const fpa_options *options, const char *name, const fpa_target **target,
                         fpa_error *error);
    fpa_status (*load)(const fpa_options *options, const fpa_object *object, const char *name,
                       fpa_module *module, fpa_error *error);
    void (*unload)(fpa_module *module);
    /* A description of the device for which a verdict holds: CPU model and features; GPU and driver. malloc'ed. */
    fpa_status (*device)(const fpa_options *options, char **device, fpa_error *error);
} fpa_backend;

/* The back end of a target's name ("c", "c:avx2"); NULL: there is none. */
const fpa_backend *backend_find(const char *target);
extern const fpa_backend backend_c, backend_cuda;

/* The back end and the target of a name ("c", "c:avx2"); the error UNSUPPORTED lists the names that exist. */
fpa_status backend_target(const char *name, const fpa_backend **backend, const fpa_target **target,
                          fpa_error *error);

/* The same for a target that has to run on this machine, by the back end's choose. */
fpa_status backend_choose(const fpa_options *options, const char *name, const fpa_backend **backend,
                          const fpa_target **target, fpa_error *error);

#endif
