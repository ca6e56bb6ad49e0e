/* engine: a head inside of an inference engine: a bundle that was compiled ahead of time, weights that are mapped,
 * sequences that each have a state. No Lua, no compiler; after the start nothing is allocated.
 *
 *   fpac gen specs/trainable.lua --head trainable_dense -o models --target c:avx2,avx512 --object
 *   cc engine.c $(pkg-config --cflags --libs fpa-run) -o engine
 *   ./make_weights model.fpaw && ./engine models trainable_dense model.fpaw */
#include <stdio.h>
#include <stdlib.h>

#include <fpa.h>

#include "model_file.h"

enum { HEADS = 2, PROMPT = 200, REPLY = 8, SEQUENCES = 2, MOST_WEIGHTS = 16 };

typedef struct engine {
    fpa_kernel *kernel;
    const fpa_description *about; /* of the kernel */
    model_file model;
    DLTensor weights[MOST_WEIGHTS]; /* into the model's mapping, in the kernel's order */
    const DLTensor *weight_list[MOST_WEIGHTS];
    void *workspace; /* enough for every call */
    size_t workspace_size;
} engine;

/* One conversation: all that is remembered of it is the state, whatever its length. */
typedef struct sequence {
    float *state; /* [1, HEADS, state_elements] */
    int64_t tokens;
} sequence;

/* What a model's layer computes of its tokens, in C order: [1, tokens, HEADS, width]. */
typedef struct activations {
    float *q, *k, *v, *o;
    int64_t tokens;
} activations;

static DLTensor tensor(const float *data, int axes, int64_t *shape)
{
    DLTensor made = {0};
    made.data = (void *)(uintptr_t)data;
    made.device.device_type = kDLCPU;
    made.dtype.code = kDLFloat;
    made.dtype.bits = 32;
    made.dtype.lanes = 1;
    made.ndim = axes;
    made.shape = shape;
    return made;
}

/* ---- start and end ---- */

static int bind_weights(engine *e, fpa_error *error)
{
    for (int i = 0; i < e->about->weight_count; i++) {
        const model_entry *entry = i < MOST_WEIGHTS ? model_find(&e->model, e->about->weight_names[i]) : NULL;
        if (!entry) {
            snprintf(error->where, sizeof error->where, "%.60s", e->about->weight_names[i]);
            snprintf(error->message, sizeof error->message, "is a matrix that the model lacks");
            return -1;
        }
        e->weights[i] = tensor((const float *)(const void *)(e->model.bytes + entry->offset),
                               (int)entry->axes, (int64_t *)(uintptr_t)entry->shape);
        e->weight_list[i] = &e->weights[i];
    }
    return 0;
}

static void engine_close(engine *e)
{
    free(e->workspace);
    fpa_close(e->kernel);
    model_close(&e->model);
}

/* 0: done. The bundle's best target for this machine is taken, and verified once on it. */
static int engine_open(engine *e, const char *bundle, const char *head, const char *model, fpa_error *error)
{
    *e = (engine){0};
    if (fpa_open_bundle(bundle, head, NULL, &e->kernel, error))
        return -1;
    e->about = fpa_describe(e->kernel);
    if (model_open(model, &e->model)) {
        snprintf(error->where, sizeof error->where, "%.200s", model);
        snprintf(error->message, sizeof error->message, "is no file of weights");
        return -1;
    }
    return bind_weights(e, error);
}

/* ---- calls ---- */

typedef struct call {
    int64_t keys[4], values[4], state_shape[3];
    DLTensor q, k, v, o, state;
    fpa_tensors tensors;
} call;

static void prepare(const engine *e, const sequence *s, const activations *x, call *c)
{
    const fpa_description *about = e->about;
    *c = (call){.keys = {1, x->tokens, HEADS, about->d},
                .values = {1, x->tokens, HEADS, about->dv},
                .state_shape = {1, HEADS, about->state_elements}};
    c->q = tensor(x->q, 4, c->keys);
    c->k = tensor(x->k, 4, c->keys);
    c->v = tensor(x->v, 4, c->values);
    c->o = tensor(x->o, 4, c->values);
    c->state = tensor(s->state, 3, c->state_shape);
    c->tensors.q = &c->q;
    c->tensors.k = &c->k;
    c->tensors.v = &c->v;
    c->tensors.o = &c->o;
    c->tensors.state_in = s->tokens ? &c->state : NULL; /* the first tokens find an empty state */
    c->tensors.state_out = &c->state;
    c->tensors.weights = e->weight_list;
}

/* Scratch memory for calls of as many tokens as x has, at the beginning of a sequence and later, and of one. */
static int engine_reserve(engine *e, const sequence *s, activations x, fpa_error *error)
{
    const struct {
        int64_t tokens, before;
    } kinds[] = {{x.tokens, 0}, {x.tokens, 1}, {1, 1}};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const sequence such = {s->state, kinds[i].before};
        size_t size;
        call c;
        x.tokens = kinds[i].tokens;
        prepare(e, &such, &x, &c);
        if (fpa_workspace_size(e->kernel, FPA_FORM_AUTO, &c.tensors, &size, error))
            return -1;
        e->workspace_size = size > e->workspace_size ? size : e->workspace_size;
    }
    e->workspace = aligned_alloc(64, (e->workspace_size + 64) / 64 * 64);
    return e->workspace ? 0 : -1;
}

/* A prompt, or one token behind what the sequence has: the state goes on. */
static int engine_eval(const engine *e, sequence *s, const activations *x, fpa_error *error)
{
    call c;
    prepare(e, s, x, &c);
    if (fpa_forward(e->kernel, FPA_FORM_AUTO, &c.tensors, e->workspace, e->workspace_size, error))
        return -1;
    s->tokens += x->tokens;
    return 0;
}

/* ---- a conversation ---- */

static void fill(float *numbers, int64_t count, unsigned seed) /* in place of a model's layer */
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
    }
}

static void next_activations(const engine *e, activations *x, int64_t tokens, unsigned seed)
{
    x->tokens = tokens;
    fill(x->q, tokens * HEADS * e->about->d, seed);
    fill(x->k, tokens * HEADS * e->about->d, seed + 1);
    fill(x->v, tokens * HEADS * e->about->dv, seed + 2);
}

/* Every sequence's prompt, then their replies by turns, a token each. */
static int converse(const engine *e, sequence *sequences, activations *x, fpa_error *error)
{
    for (int s = 0; s < SEQUENCES; s++) {
        next_activations(e, x, PROMPT, 100u * (unsigned)s);
        if (engine_eval(e, &sequences[s], x, error))
            return -1;
    }
    for (int step = 0; step < REPLY; step++) {
        for (int s = 0; s < SEQUENCES; s++) {
            next_activations(e, x, 1, 1000u + 100u * (unsigned)s + (unsigned)step);
            if (engine_eval(e, &sequences[s], x, error))
                return -1;
            printf("sequence %d, token %lld: %.5f\n", s, (long long)sequences[s].tokens, (double)x->o[0]);
        }
    }
    return 0;
}

static float *numbers(int64_t count)
{
    return calloc((size_t)count, sizeof(float));
}

int main(int count, char **arguments)
{
    engine e = {0};
    sequence sequences[SEQUENCES] = {{0}};
    activations x = {.tokens = PROMPT};
    fpa_error error = {0};
    if (count != 4)
        return fprintf(stderr, "usage: engine BUNDLE HEAD WEIGHTS\n"), 2;
    int failed = engine_open(&e, arguments[1], arguments[2], arguments[3], &error);
    if (!failed) {
        fprintf(stderr, "%s for %s, %lld numbers a state\n", e.about->name, e.about->target,
                (long long)e.about->state_elements);
        x.q = numbers(PROMPT * HEADS * e.about->d), x.k = numbers(PROMPT * HEADS * e.about->d);
        x.v = numbers(PROMPT * HEADS * e.about->dv), x.o = numbers(PROMPT * HEADS * e.about->dv);
        for (int s = 0; s < SEQUENCES; s++) {
            sequences[s].state = numbers(HEADS * e.about->state_elements);
            failed |= !sequences[s].state;
        }
        failed |= !x.q || !x.k || !x.v || !x.o;
    }
    if (!failed)
        failed = engine_reserve(&e, &sequences[0], x, &error) || converse(&e, sequences, &x, &error);
    if (failed)
        fprintf(stderr, "engine: %s: %s\n", error.where, error.message);
    for (int s = 0; s < SEQUENCES; s++)
        free(sequences[s].state);
    free(x.q), free(x.k), free(x.v), free(x.o);
    engine_close(&e);
    return failed ? 1 : 0;
}
