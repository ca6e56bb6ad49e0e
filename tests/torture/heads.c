/* Random heads: opened by the library, called in every form, compared with the formula. */
#include "heads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/comma_locale.h"

void *torture_reserve(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory)
        abort();
    return memory;
}

static double *random_numbers(random_source *random, size_t count, fpa_dtype dtype, double size)
{
    double *x = torture_reserve(count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = dtype_round(dtype, size * random_normal(random));
    return x;
}

void operand_fill(operand *x, fpa_dtype dtype, const double *numbers, int axes, const int64_t *shape)
{
    size_t count = 1;
    for (int a = 0; a < axes; a++)
        count *= (size_t)(x->shape[a] = shape[a]);
    x->data = torture_reserve(count, dtype_size(dtype));
    for (size_t i = 0; numbers && i < count; i++)
        dtype_store(dtype, (char *)x->data + i * dtype_size(dtype), numbers[i]);
    x->tensor = (DLTensor){.data = x->data,
                           .device = {kDLCPU, 0},
                           .ndim = axes,
                           .dtype = {dtype == FPA_BF16 ? kDLBfloat : kDLFloat, dtype == FPA_F32 ? 32 : 16, 1},
                           .shape = x->shape};
}

/* Tokens first .. first + tokens - 1 of every sequence. */
static DLTensor part_of(const operand *x, int64_t first, int64_t tokens, int64_t shape[4], int64_t strides[4])
{
    DLTensor part = x->tensor;
    int64_t stride = 1;
    for (int a = part.ndim - 1; a >= 0; a--) {
        strides[a] = stride;
        shape[a] = x->shape[a];
        stride *= shape[a];
    }
    shape[1] = tokens;
    part.shape = shape;
    part.strides = strides;
    part.byte_offset = (uint64_t)(first * strides[1] * part.dtype.bits / 8);
    return part;
}

void operands_make(const player *p, operands *all)
{
    const call_numbers *c = &p->call;
    const formula *f = &p->f;
    const fpa_description *about = fpa_describe(p->kernel);
    const int64_t b = c->batch, l = c->length, hq = c->query_heads, h = c->heads;
    const fpa_dtype dtype = (fpa_dtype)f->dtype;
    memset(all, 0, sizeof *all);
    operand_fill(&all->x[Q], dtype, c->q, 4, (int64_t[]){b, l, hq, f->d});
    operand_fill(&all->x[K], dtype, c->k, 4, (int64_t[]){b, l, h, f->d});
    operand_fill(&all->x[V], dtype, c->v, 4, (int64_t[]){b, l, h, f->dv});
    operand_fill(&all->x[GATE], FPA_F32, c->log_gate, 3, (int64_t[]){b, l, h});
    operand_fill(&all->x[O], dtype, NULL, 4, (int64_t[]){b, l, hq, f->dv});
    operand_fill(&all->state, FPA_F32, NULL, 3, (int64_t[]){b, h, about->state_elements});
    for (int i = 0; i < f->weights; i++) {
        const char *name = about->weight_names[i]; /* "w0": in which order they are wanted */
        const int which = atoi(name + 1);
        const int64_t own[] = {h, f->weight_rows[which], f->d};
        operand_fill(&all->weight[i], FPA_F32, c->weight[which], f->shared[which] ? 2 : 3,
                     own + f->shared[which]);
        all->weights[i] = &all->weight[i].tensor;
    }
}

void operands_drop(operands *all)
{
    for (int i = 0; i < OPERANDS; i++)
        free(all->x[i].data);
    for (int i = 0; i < MOST_WEIGHTS; i++)
        free(all->weight[i].data);
    free(all->state.data);
}

/* What a call is of: tokens first .. first + tokens - 1 of q and o, and of k and v `recent` more before these. */
typedef struct part {
    int64_t first, tokens, recent;
    bool takes_state, keeps_state;
} part;

static bool call_part(const player *p, operands *all, fpa_form form, part of)
{
    DLTensor x[OPERANDS];
    int64_t shapes[OPERANDS][4], strides[OPERANDS][4];
    fpa_error error;
    size_t size;
    for (int i = 0; i < OPERANDS; i++) {
        const int64_t more = i == Q || i == O ? 0 : of.recent;
        x[i] = part_of(&all->x[i], of.first - more, of.tokens + more, shapes[i], strides[i]);
    }
    const fpa_tensors tensors = {.q = &x[Q],
                                 .k = &x[K],
                                 .v = &x[V],
                                 .o = &x[O],
                                 .log_gate = p->f.gate ? &x[GATE] : NULL,
                                 .state_in = of.takes_state ? &all->state.tensor : NULL,
                                 .state_out = of.keeps_state ? &all->state.tensor : NULL,
                                 .weights = p->f.weights ? all->weights : NULL,
                                 .recent = of.recent};
    if (fpa_workspace_size(p->kernel, form, &tensors, &size, &error))
        return torture_says("form %d: %s: %s", form, error.where, error.message);
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    memset(workspace, 0xff, (size + 64) / 64 * 64);
    fpa_status status = fpa_forward(p->kernel, form, &tensors, workspace, size, &error);
    free(workspace);
    return status == FPA_OK || torture_says("form %d: %s: %s", form, error.where, error.message);
}

/* The first tokens of each sequence. */
static bool compare(const player *p, const operands *all, int64_t tokens, const char *how)
{
    const fpa_dtype dtype = (fpa_dtype)p->f.dtype;
    const size_t token = (size_t)(p->call.query_heads * p->f.dv);
    const size_t count = (size_t)(p->call.batch * p->call.length * p->call.query_heads * p->f.dv);
    for (size_t i = 0; i < count; i++) {
        const double got = dtype_load(dtype, (const char *)all->x[O].data + i * dtype_size(dtype));
        if ((int64_t)(i / token) % p->call.length >= tokens)
            continue;
        if (dtype == FPA_F16 && fabs(p->o[i]) + p->bound[i] > 60000)
            continue; /* more than f16 can say */
        if (!(fabs(got - p->o[i]) <= p->bound[i]))
            return torture_says("%s: o[%zu] is %.9g, the formula's %.9g, bound %.2g", how, i, got, p->o[i],
                                p->bound[i]);
    }
    return true;
}

/* Tokens up to the cut in one call, what follows in a second, which begins with the state of the first. */
static bool check_form(const player *p, fpa_form form, int64_t cut)
{
    static const char *const names[] = {"parallel", "chunked", "recurrent"};
    const int64_t rest = p->call.length - cut;
    char how[64];
    operands all;
    operands_make(p, &all);
    bool fine = call_part(p, &all, form, (part){.tokens = cut, .keeps_state = rest > 0 || cut % 2});
    if (fine && rest > 0)
        fine = call_part(p, &all, form,
                         (part){.first = cut, .tokens = rest, .takes_state = true, .keeps_state = cut % 2});
    snprintf(how, sizeof how, "%s, cut at %lld of %d", names[form], (long long)cut, p->call.length);
    fine = fine && compare(p, &all, p->call.length, how);
    operands_drop(&all);
    return fine;
}

/* Tokens behind the cut one by one, each with those since the cut beside a state that is only read. */
static bool check_recent(const player *p, int64_t cut)
{
    char how[64];
    operands all;
    operands_make(p, &all);
    bool fine = call_part(p, &all, FPA_FORM_CHUNKED, (part){.tokens = cut, .keeps_state = true});
    for (int64_t t = cut; fine && t < p->call.length; t++)
        fine = call_part(p, &all, FPA_FORM_RECURRENT,
                         (part){.first = t, .tokens = 1, .recent = t - cut, .takes_state = true});
    snprintf(how, sizeof how, "recent tokens from %lld of %d", (long long)cut, p->call.length);
    fine = fine && compare(p, &all, p->call.length, how);
    operands_drop(&all);
    return fine;
}

static bool check_forms(torture *t, const player *p)
{
    const bool cuts = p->f.causal && p->call.length > 1;
    const int64_t cut = cuts ? random_between(&t->random, 1, p->call.length - 1) : 0;
    for (int form = FPA_FORM_PARALLEL; form <= (p->f.causal ? FPA_FORM_RECURRENT : FPA_FORM_CHUNKED);
         form++) {
        t->tries += cuts ? 2 : 1;
        if (!check_form(p, (fpa_form)form, p->call.length) || (cuts && !check_form(p, (fpa_form)form, cut)))
            return false;
    }
    t->tries += cuts;
    return !cuts || check_recent(p, cut);
}

/* Tokens of q, k, v and the log-gate from the cut on are no numbers. */
static void spoil(const player *p, operands *all, int64_t cut, double value)
{
    for (int i = Q; i <= GATE; i++) {
        const operand *x = &all->x[i];
        const fpa_dtype dtype = i == GATE ? FPA_F32 : (fpa_dtype)p->f.dtype;
        const int64_t token = x->shape[2] * (x->tensor.ndim == 4 ? x->shape[3] : 1);
        for (int64_t e = 0; e < x->shape[0] * x->shape[1] * token; e++)
            if (e / token % p->call.length >= cut)
                dtype_store(dtype, (char *)x->data + (size_t)e * dtype_size(dtype), value);
    }
}

static bool check_future(torture *t, const player *p)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    const int64_t cut = random_between(&t->random, 1, p->call.length);
    bool fine = true;
    for (int form = FPA_FORM_PARALLEL; fine && p->f.causal && form <= FPA_FORM_RECURRENT; form++) {
        char how[64];
        operands all;
        operands_make(p, &all);
        spoil(p, &all, cut, values[random_between(&t->random, 0, 2)]);
        snprintf(how, sizeof how, "form %d, spoilt from %lld of %d", form, (long long)cut, p->call.length);
        fine = call_part(p, &all, (fpa_form)form, (part){.tokens = p->call.length, .keeps_state = cut % 2}) &&
               compare(p, &all, cut, how);
        operands_drop(&all);
        t->tries++;
    }
    return fine;
}

static void make_call(random_source *random, player *p)
{
    call_numbers *c = &p->call;
    const formula *f = &p->f;
    const fpa_dtype dtype = (fpa_dtype)f->dtype;
    c->batch = random_between(random, 1, 2);
    c->length = random_chance(random, 0.2) ? random_between(random, 1, 3) : random_between(random, 1, 150);
    c->heads = random_between(random, 1, 2);
    c->query_heads = c->heads * random_between(random, 1, 3);
    const size_t tokens = (size_t)(c->batch * c->length), keys = tokens * (size_t)c->heads;
    const size_t queries = tokens * (size_t)c->query_heads;
    c->q = random_numbers(random, queries * (size_t)f->d, dtype, 0.5);
    c->k = random_numbers(random, keys * (size_t)f->d, dtype, 0.5);
    c->v = random_numbers(random, keys * (size_t)f->dv, dtype, 1);
    c->log_gate = torture_reserve(keys, sizeof *c->log_gate);
    for (size_t i = 0; i < keys; i++)
        c->log_gate[i] = (double)(float)(-0.2 * random_unit(random));
    for (int i = 0; i < f->weights; i++)
        c->weight[i] = random_numbers(random, (size_t)(c->heads * f->weight_rows[i] * f->d), FPA_F32, 0.5);
    p->o = torture_reserve(queries * (size_t)f->dv, sizeof *p->o);
    p->bound = torture_reserve(queries * (size_t)f->dv, sizeof *p->bound);
    formula_output(f, c, p->o, p->bound);
}

static void drop_call(player *p)
{
    for (int i = 0; i < MOST_WEIGHTS; i++)
        free(p->call.weight[i]);
    free(p->call.q);
    free(p->call.k);
    free(p->call.v);
    free(p->call.log_gate);
    free(p->o);
    free(p->bound);
    p->call = (call_numbers){0};
    p->o = p->bound = NULL;
}

static void drop_player(player *p)
{
    fpa_close(p->kernel);
    for (int i = 0; i < p->f.terms; i++)
        for (int l = 0; l < p->f.term[i].branches; l++)
            free(p->f.term[i].branch[l].w);
}

bool torture_play(torture *t, const playing *how)
{
    enum { CALLS = 4 };
    char path[TORTURE_PATH];
    player p = {.kernel = NULL};
    const fpa_options options = {.backward = how->backward};
    fpa_error error;
    torture_path(t, "random.lua", path);
    FILE *spec = fopen(path, "w");
    if (!spec)
        return torture_says("%s cannot be written", path);
    formula_random(&t->random, &p.f, spec);
    fclose(spec);
    if (how->comma && !comma_locale_enter(t->folder)) {
        fprintf(stderr, "no locale with a decimal comma can be had here\n");
        drop_player(&p);
        return true;
    }
    const fpa_status status = fpa_open(path, NULL, &options, &p.kernel, &error);
    const bool without = how->backward && status == FPA_UNSUPPORTED; /* of a head that has no gradients */
    bool fine = status == FPA_OK || without || torture_says("%s: %s", error.where, error.message);
    for (int i = 0; fine && !without && i < CALLS; i++) {
        make_call(&t->random, &p);
        fine = how->check(t, &p);
        drop_call(&p);
    }
    drop_player(&p);
    return fine;
}

bool torture_head(torture *t)
{
    return torture_play(t, &(playing){.check = check_forms});
}

bool torture_future(torture *t)
{
    return torture_play(t, &(playing){.check = check_future});
}

bool torture_locale(torture *t)
{
    return torture_play(t, &(playing){.check = check_forms, .comma = true});
}
