/* bench_draft: a step of one token against drafts of several: the state is read only; the acceptance of a draft; both in one
 * pass. On a GPU:
 *
 *   build/gpu/bench_draft SPEC HEAD [BATCH [HEADS [TOKENS]]]
 *
 * BATCH 128, HEADS 16; TOKENS of a draft: 2, 4, 8 and 16 unless said. Half of each draft is accepted. Lines are tab-separated:
 * what, tokens, microseconds, and times as long as a step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/device.h"
#include "on_gpu.h"

enum { REPEATS = 15 };

static fpa_device device;
static int64_t batch = 128, heads = 16;

/* A call whose tensors lie on the GPU. */
typedef struct bench_call {
    fpa_kernel *kernel;
    bool is_step; /* fpa_step; else a draft */
    int64_t vector[4], value[4], gates[3], states[3], sequences[1];
    DLTensor q, k, v, o, gate, state, count;
    fpa_tensors tensors;
    fpa_accepted accepted;
    bool accepts;
    void *workspace;
    size_t size;
} bench_call;

static void make_operands(bench_call *c, int64_t tokens)
{
    const fpa_description *is = fpa_describe(c->kernel);
    const int64_t vector[4] = {batch, tokens, heads, is->d}, value[4] = {batch, tokens, heads, is->dv};
    const int64_t states[3] = {batch, heads, is->state_elements};
    const float low = is->normalized ? 0 : -1;
    int32_t counts[batch];
    memcpy(c->vector, vector, sizeof vector);
    memcpy(c->value, value, sizeof value);
    memcpy(c->gates, vector, sizeof c->gates);
    memcpy(c->states, states, sizeof states);
    c->sequences[0] = batch;
    for (int64_t b = 0; b < batch; b++)
        counts[b] = (int32_t)((tokens + 1) / 2);
    c->q = make(c->kernel, is->dtype, 4, c->vector, low, 1, NULL);
    c->k = make(c->kernel, is->dtype, 4, c->vector, low, 1, NULL);
    c->v = make(c->kernel, is->dtype, 4, c->value, -1, 1, NULL);
    c->o = make(c->kernel, is->dtype, 4, c->value, 0, 0, NULL);
    c->state = make(c->kernel, is->state_dtype, 3, c->states, 0, 0, NULL);
    c->count = make(c->kernel, NULL, 1, c->sequences, 0, 0, counts);
    if (is->gate)
        c->gate = make(c->kernel, "f32", 3, c->gates, -0.1f, 0, NULL);
}

/* asks: there are queries; accepts: tokens go into the state. */
static void set_call(bench_call *c, bool asks, bool accepts)
{
    const DLTensor *gate = fpa_describe(c->kernel)->gate ? &c->gate : NULL;
    c->tensors = (fpa_tensors){.state_in = &c->state, .stream = device.stream};
    if (asks) {
        c->tensors.q = &c->q;
        c->tensors.k = &c->k;
        c->tensors.v = &c->v;
        c->tensors.o = &c->o;
        c->tensors.log_gate = gate;
    }
    c->accepts = accepts && !c->is_step;
    c->tensors.state_out = accepts ? &c->state : NULL;
    c->accepted = (fpa_accepted){.count = &c->count, .k = &c->k, .v = &c->v, .log_gate = gate};
}

static void free_call(bench_call *c)
{
    const fpa_module *module = &c->kernel->module;
    const DLTensor *all[] = {&c->q, &c->k, &c->v, &c->o, &c->gate, &c->state, &c->count};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        module->backend->memory->release(module, all[i]->data);
}

static fpa_status launch(void *user, int64_t number, CUstream stream, fpa_error *error)
{
    bench_call *c = user;
    (void)number, (void)stream;
    if (c->is_step)
        return fpa_step(c->kernel, &c->tensors, c->workspace, c->size, error);
    return fpa_draft(c->kernel, &c->tensors, c->accepts ? &c->accepted : NULL, c->workspace, c->size, error);
}

static double measure(bench_call *c)
{
    const fpa_work work = {launch, c};
    const fpa_memory *memory = c->kernel->module.backend->memory;
    fpa_sample sample;
    fpa_error error = {0};
    check(c->is_step ? fpa_workspace_size(c->kernel, FPA_FORM_RECURRENT, &c->tensors, &c->size, &error)
                     : fpa_draft_workspace(c->kernel, &c->tensors, c->accepts ? &c->accepted : NULL, &c->size,
                                           &error),
          &error);
    check(memory->allocate(&c->kernel->module, c->size + 1, &c->workspace, &error), &error);
    check(device_measure(&device, &work, REPEATS, 3.0, &sample, &error), &error);
    memory->release(&c->kernel->module, c->workspace);
    return 1e6 * sample.median;
}

static void line(const char *what, int64_t tokens, double microseconds, double step)
{
    printf("%s\t%lld\t%.2f\t%.3f\n", what, (long long)tokens, microseconds, microseconds / step);
    fflush(stdout);
}

static double time_step(fpa_kernel *kernel)
{
    bench_call c = {.kernel = kernel, .is_step = true};
    make_operands(&c, 1);
    set_call(&c, true, true);
    const double step = measure(&c);
    free_call(&c);
    line("step", 1, step, step);
    return step;
}

static void time_drafts(fpa_kernel *kernel, int64_t tokens, double step)
{
    bench_call c = {.kernel = kernel};
    make_operands(&c, tokens);
    set_call(&c, true, false);
    line("draft", tokens, measure(&c), step);
    set_call(&c, false, true);
    line("acceptance", tokens, measure(&c), step);
    set_call(&c, true, true);
    line("acceptance and draft", tokens, measure(&c), step);
    free_call(&c);
}

int main(int count, char **arguments)
{
    const fpa_options options = {.target = "cuda"};
    fpa_error error = {0};
    fpa_kernel *kernel;
    if (count < 3)
        return fprintf(stderr, "usage: bench_draft SPEC HEAD [BATCH [HEADS [TOKENS]]]\n"), 2;
    batch = count > 3 ? atoll(arguments[3]) : batch;
    heads = count > 4 ? atoll(arguments[4]) : heads;
    check(fpa_open(arguments[1], arguments[2], &options, &kernel, &error), &error);
    check(device_open(0, &device, &error), &error);
    printf("# %s, batch %lld, %lld heads, %s\n", arguments[2], (long long)batch, (long long)heads,
           device.name);
    const double step = time_step(kernel);
    for (int64_t tokens = 2; tokens <= FPA_DRAFT_TOKENS; tokens *= 2)
        if (count <= 5 || tokens == atoll(arguments[5]))
            time_drafts(kernel, tokens, step);
    device_close(&device);
    fpa_close(kernel);
    return 0;
}
