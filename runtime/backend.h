/* backend: object -> module, and launches of a module. One table row a back end.
 *
 * Given: an object, by a builder (builder.h) or a store. Gives: a module that can be launched, on memory of
 * its own kind. c/ and cuda/ each make a row of the table. A module is loaded code that nobody has
 * checked yet; only verify calls it before it becomes a kernel. */
#ifndef FPAC_RUNTIME_BACKEND_H
#define FPAC_RUNTIME_BACKEND_H

#include "abi/launch.h"
#include "abi/source.h"
#include "machine/candidate.h"
#include "machine/target.h"
#include "runtime/api/fpa.h"
#include "log.h"

/* Bytes of a compiled module, as the cache and bundles keep them. malloc'ed. */
typedef struct fpa_object {
    unsigned char *bytes;
    size_t size;
} fpa_object;

/* A draft, and what the state takes in before (fpa_draft). */
typedef struct fpa_draft_launch {
    const struct fpa_launch
        *queries; /* of the draft, no state goes out; NULL: none, the state is brought up to date */
    const struct fpa_launch *keys; /* of tokens that may be accepted, of the same sequences; NULL: none */
    const int32_t *counts;         /* [batch]: so many of them are, from the first on */
    size_t element, state_element; /* bytes of a number of q, k, v and o; of a state */
    void *workspace;
    size_t workspace_size;
} fpa_draft_launch;

typedef struct fpa_module {
    const struct fpa_backend *backend;
    void *handle;         /* the back end's own */
    int device;           /* which of the back end's devices it was loaded on; 0: its only one */
    bool decodes_recent;  /* it takes recent tokens beside the state, and keys without queries */
    bool takes_sequences; /* it takes sequences of different lengths, and states in pools */
    bool saves_den;       /* it stores the sums that normalisers are made of */
    /* The ways to carry out a call of that size: the first `most` of them in out; returns how many there are.
     * NULL: there is one, which has no name. */
    int (*candidates)(const struct fpa_module *module, const fpa_call_size *size, fpa_candidate *out,
                      int most);
    /* The fastest of them, for who asks for the workspace of a call and then for the call. False: none suits, and forward says why. NULL: as candidates. */
    bool (*choose)(const struct fpa_module *module, int form, const struct fpa_launch *launch,
                   fpa_candidate *fastest);
    /* candidate: one of these; NULL: the fastest. */
    size_t (*workspace)(const struct fpa_module *module, int form, const struct fpa_launch *launch,
                        const fpa_candidate *candidate);
    /* Compute; on a GPU: put the computation into the stream and return at once. INVALID: the
     * workspace is too small, or the candidate cannot carry the call out. DEVICE: the driver refused. */
    fpa_status (*forward)(const struct fpa_module *module, int form, const struct fpa_launch *launch,
                          const fpa_candidate *candidate, void *stream, fpa_error *error);
    /* NULL: it takes no drafts. */
    size_t (*draft_workspace)(const struct fpa_module *module, const fpa_draft_launch *draft);
    fpa_status (*draft)(const struct fpa_module *module, const fpa_draft_launch *draft, void *stream,
                        fpa_error *error);
    /* A piece of a sequence in two halves of the chunked form: without queries its keys are walked, their copies of the state
     * stay in the workspace, and state_out has what they add up to; then queries read them, with state_in before all of them.
     * Bytes of workspace of the half that is launched; 0: such a call keeps no copies. NULL: none does. */
    size_t (*piece_workspace)(const struct fpa_module *module, const struct fpa_launch *launch);
    fpa_status (*piece)(const struct fpa_module *module, const struct fpa_launch *launch, void *stream,
                        fpa_error *error);
    /* Gradients, of a module that was made for them; NULL: it has none. Such a module has no forward. */
    size_t (*backward_workspace)(const struct fpa_module *module, int form,
                                 const struct fpa_backward_launch *launch);
    fpa_status (*backward)(const struct fpa_module *module, int form,
                           const struct fpa_backward_launch *launch, void *stream, fpa_error *error);
    /* Whose forward passes are such gradients, where a call allows it (gen/gen.h: source_passes); NULL: none are. Not
     * the module's own: they must stay while it is used. */
    const struct fpa_module *passes[PASSES];
} fpa_module;

/* Sequences of different lengths are planned as so many of the longest length as have their tokens: what suits those suits these,
 * of which there are more, and shorter ones. */
static inline int64_t planned_sequences(const struct fpa_launch *launch)
{
    const int64_t whole = launch->length > 0 ? (launch->total + launch->length / 2) / launch->length : 1;
    return whole < 1 ? 1 : whole < launch->batch ? whole : launch->batch;
}

/* Whether a batch entry's first token lies behind the last one of the entry before, as tokens do: in all operands that there are. */
static inline bool joins_batch(const struct fpa_launch *launch)
{
    const int64_t *strides[] = {launch->q_stride,        launch->k_stride,       launch->v_stride,
                                launch->o_stride,        launch->gate_stride,    launch->den_stride,
                                launch->key_mask_stride, launch->position_stride}; /* 0: there is none */
    for (size_t i = 0; i < sizeof strides / sizeof *strides && launch->batch > 1; i++)
        if (strides[i][0] != launch->length * strides[i][1])
            return false;
    return true;
}

/* What a launch asks for. Token by token lengths do not count. */
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

/* The memory that a module computes on, when that is not the process's own. For verification and
 * for the command; each call waits for the work before it. */
typedef struct fpa_memory {
    fpa_status (*allocate)(const fpa_module *module, size_t size, void **address, fpa_error *error);
    void (*release)(const fpa_module *module, void *address); /* NULL is fine */
    /* Of an even size, with two bytes again and again. */
    fpa_status (*fill)(const fpa_module *module, void *to, uint16_t unit, size_t size, fpa_error *error);
    fpa_status (*upload)(const fpa_module *module, void *to, const void *from, size_t size, fpa_error *error);
    fpa_status (*download)(const fpa_module *module, void *to, const void *from, size_t size,
                           fpa_error *error);
    /* Around a forward, where the caller's thread has no context of its own: make the module's the
     * current one, and give back what was before. */
    fpa_status (*enter)(const fpa_module *module, fpa_error *error);
    void (*leave)(const fpa_module *module);
    /* Wait for all launches: what went wrong on the device comes back here. */
    fpa_status (*finish)(const fpa_module *module, fpa_error *error);
} fpa_memory;

typedef struct fpa_backend {
    const char *name;                    /* "c", "cuda"; targets are "c", "c:<isa>", "cuda", "cuda:sm_<n>" */
    int device_type;                     /* kDLCPU, kDLCUDA: where operands must lie */
    const fpa_memory *memory;            /* NULL: the process's own */
    const struct fpa_together *together; /* of layers (together.h) */
    /* The target that a name stands for here: "c", "cuda" the best one, "c:avx2", "cuda:sm_80" that one.
     * UNSUPPORTED when this machine cannot run it, DEVICE when there is no GPU or driver. */
    fpa_status (*choose)(const fpa_options *options, const char *name, const fpa_target **target,
                         fpa_error *error);
    fpa_status (*load)(const fpa_options *options, const fpa_object *object, const char *name,
                       fpa_module *module, fpa_error *error);
    void (*unload)(fpa_module *module);
    /* The device that a verdict holds for: CPU model and features; GPU, driver. malloc'ed text. */
    fpa_status (*device)(const fpa_options *options, char **device, fpa_error *error);
} fpa_backend;

/* The back end of a target ("c", "c:avx2"), or NULL. */
const fpa_backend *backend_find(const char *target);
extern const fpa_backend backend_c, backend_cuda;

/* The back end and the target that a name ("c", "c:avx2") stands for; UNSUPPORTED lists the names
 * there are. */
fpa_status backend_target(const char *name, const fpa_backend **backend, const fpa_target **target,
                          fpa_error *error);

/* The same for a target that is to run here: its back end's choice for the name. */
fpa_status backend_choose(const fpa_options *options, const char *name, const fpa_backend **backend,
                          const fpa_target **target, fpa_error *error);

#endif
