/* Random heads with gradients: what is not finite at one token changes no bit of a gradient that does not depend on it. That
 * gradients are right is what opening them verifies. */
#include "heads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEN, D_O, D_Q, D_K, D_V, D_GATE, GRADIENTS };

static const char *const names[] = {"den", "d_o", "d_q", "d_k", "d_v", "d_log_gate"};

typedef struct gradients {
    operands all;
    operand x[GRADIENTS];
} gradients;

static void make_gradients(torture *t, const player *p, gradients *g)
{
    const call_numbers *c = &p->call;
    const formula *f = &p->f;
    const fpa_dtype dtype = (fpa_dtype)f->dtype;
    const int64_t b = c->batch, l = c->length, hq = c->query_heads, h = c->heads;
    const size_t outputs = (size_t)(b * l * hq * f->dv);
    double *d_o = torture_reserve(outputs, sizeof *d_o);
    for (size_t i = 0; i < outputs; i++)
        d_o[i] = random_normal(&t->random);
    operands_make(p, &g->all);
    operand_fill(&g->x[DEN], FPA_F32, NULL, 3, (int64_t[]){b, l, hq});
    operand_fill(&g->x[D_O], dtype, d_o, 4, (int64_t[]){b, l, hq, f->dv});
    operand_fill(&g->x[D_Q], dtype, NULL, 4, (int64_t[]){b, l, hq, f->d});
    operand_fill(&g->x[D_K], dtype, NULL, 4, (int64_t[]){b, l, h, f->d});
    operand_fill(&g->x[D_V], dtype, NULL, 4, (int64_t[]){b, l, h, f->dv});
    operand_fill(&g->x[D_GATE], FPA_F32, NULL, 3, (int64_t[]){b, l, h});
    free(d_o);
}

static void drop_gradients(gradients *g)
{
    operands_drop(&g->all);
    for (int i = 0; i < GRADIENTS; i++)
        free(g->x[i].data);
}

static void *workspace_of(size_t size)
{
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    if (!workspace)
        abort();
    memset(workspace, 0xff, (size + 64) / 64 * 64);
    return workspace;
}

static bool run_forward(const player *p, gradients *g)
{
    operands *all = &g->all;
    const fpa_tensors tensors = {.q = &all->x[Q].tensor,
                                 .k = &all->x[K].tensor,
                                 .v = &all->x[V].tensor,
                                 .o = &all->x[O].tensor,
                                 .log_gate = p->f.gate ? &all->x[GATE].tensor : NULL,
                                 .weights = p->f.weights ? all->weights : NULL,
                                 .den = p->f.normalize ? &g->x[DEN].tensor : NULL};
    fpa_error error;
    size_t size;
    if (fpa_workspace_size(p->kernel, FPA_FORM_AUTO, &tensors, &size, &error))
        return torture_says("forward: %s: %s", error.where, error.message);
    void *workspace = workspace_of(size);
    const fpa_status status = fpa_forward(p->kernel, FPA_FORM_AUTO, &tensors, workspace, size, &error);
    free(workspace);
    return status == FPA_OK || torture_says("forward: %s: %s", error.where, error.message);
}

static bool run_backward(const player *p, gradients *g, fpa_form form)
{
    operands *all = &g->all;
    const fpa_gradient_tensors tensors = {.q = &all->x[Q].tensor,
                                          .k = &all->x[K].tensor,
                                          .v = &all->x[V].tensor,
                                          .log_gate = p->f.gate ? &all->x[GATE].tensor : NULL,
                                          .weights = p->f.weights ? all->weights : NULL,
                                          .o = &all->x[O].tensor,
                                          .den = p->f.normalize ? &g->x[DEN].tensor : NULL,
                                          .d_o = &g->x[D_O].tensor,
                                          .d_q = &g->x[D_Q].tensor,
                                          .d_k = &g->x[D_K].tensor,
                                          .d_v = &g->x[D_V].tensor,
                                          .d_log_gate = p->f.gate ? &g->x[D_GATE].tensor : NULL};
    fpa_error error;
    size_t size;
    if (fpa_backward_workspace(p->kernel, form, &tensors, &size, &error))
        return torture_says("form %d: %s: %s", form, error.where, error.message);
    void *workspace = workspace_of(size);
    const fpa_status status = fpa_backward(p->kernel, form, &tensors, workspace, size, &error);
    free(workspace);
    return status == FPA_OK || torture_says("form %d: %s: %s", form, error.where, error.message);
}

/* ---- one token of one operand ---- */

/* What is not finite, and at which token of every sequence. */
typedef struct blemish {
    int operand; /* Q, K, V, GATE, or OPERANDS: d_o */
    int64_t token;
    double value;
} blemish;

/* Bytes of a token. */
static size_t token_size(const operand *x)
{
    const int64_t each = x->shape[2] * (x->tensor.ndim == 4 ? x->shape[3] : 1);
    return (size_t)each * x->tensor.dtype.bits / 8;
}

static void spoil(const player *p, operand *x, const blemish *b)
{
    const fpa_dtype dtype = x->tensor.ndim == 3 ? FPA_F32 : (fpa_dtype)p->f.dtype;
    const size_t token = token_size(x), element = dtype_size(dtype);
    for (int64_t s = 0; s < x->shape[0]; s++)
        for (size_t i = 0; i < token; i += element)
            dtype_store(dtype, (char *)x->data + (size_t)(s * x->shape[1] + b->token) * token + i, b->value);
}

static bool depends(const player *p, int of, int64_t t, const blemish *b)
{
    const bool key = b->operand == K || b->operand == V;
    if (!p->f.causal) /* every query sees every key */
        return key == (of == D_Q) || t == b->token;
    if (of == D_GATE) /* a running sum from behind: see docs/numerics.md */
        return key || b->operand == GATE || t <= b->token;
    if (b->operand == GATE)
        return of == D_Q ? t >= b->token : t < b->token;
    if (of == D_Q)
        return key ? t >= b->token : t == b->token;
    return key ? t == b->token : t <= b->token;
}

static bool same(const player *p, const operand *before, const operand *after, int of, const blemish *b)
{
    const size_t token = token_size(before);
    for (int64_t i = 0; i < before->shape[0] * before->shape[1]; i++) {
        const int64_t t = i % before->shape[1];
        const size_t at = (size_t)i * token;
        if (!depends(p, of, t, b) && memcmp((char *)before->data + at, (char *)after->data + at, token) != 0)
            return torture_says("operand %d at token %lld, %g, changes %s of token %lld", b->operand,
                                (long long)b->token, b->value, names[of], (long long)t);
    }
    return true;
}

static bool check_gradients(torture *t, const player *p)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    const blemish b = {.operand = random_chance(&t->random, 0.2) ? OPERANDS
                                  : p->f.gate                    ? random_between(&t->random, Q, GATE)
                                                                 : random_between(&t->random, Q, V),
                       .token = random_between(&t->random, 0, p->call.length - 1),
                       .value = values[random_between(&t->random, 0, 2)]};
    const fpa_form form = random_chance(&t->random, 0.5) ? FPA_FORM_CHUNKED : FPA_FORM_PARALLEL;
    random_source again = t->random;
    gradients before, after;
    make_gradients(t, p, &before);
    t->random = again;
    make_gradients(t, p, &after);
    bool fine = run_forward(p, &before) && run_forward(p, &after) && run_backward(p, &before, form);
    spoil(p, b.operand == OPERANDS ? &after.x[D_O] : &after.all.x[b.operand], &b);
    fine = fine && run_backward(p, &after, form);
    for (int of = D_Q; fine && of < (p->f.gate ? GRADIENTS : D_GATE); of++)
        fine = same(p, &before.x[of], &after.x[of], of, &b);
    drop_gradients(&before);
    drop_gradients(&after);
    t->tries++;
    return fine;
}

bool torture_gradients(torture *t)
{
    return torture_play(t, &(playing){.check = check_gradients, .backward = true});
}
