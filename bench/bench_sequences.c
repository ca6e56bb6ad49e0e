/* bench_sequences: sequences of different lengths in one call, against sequences of one length with as many tokens and
 * against padding to the longest; then prompts in pieces against one pass: one prompt, and as many as give the GPU 256 heads, these
 * also in pieces of whole chunks. What is compared runs by turns: a GPU's clock and heat change within seconds. On a GPU:
 *
 *   build/gpu/bench_sequences SPEC HEAD [TOKENS [HEADS [PART]]]
 *
 * TOKENS of all sequences together, 65,536 unless said; HEADS of each, 16; PART: equal, mixes or pieces alone; or ways: equal lengths and mixes by each
 * candidate that the model finds at most half as slow again as the fastest, beside its prediction. Lines are tab-separated: what, the mix, its
 * sequences, milliseconds, and times as much as what stands before it: medians over TURNS of medians. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/candidates.h"
#include "command/device.h"
#include "head/form.h"
#include "runtime/api/forward.h"
#include "runtime/backend.h"
#include "on_gpu.h"

enum {
    MOST_SEQUENCES = 1 << 16,
    REPEATS = 15,
    TURNS = 7,
    FULL = 256 /* heads of all sequences, about two a multiprocessor */
};

/* A call whose tensors lie on the GPU. */
typedef struct bench_call {
    fpa_kernel *kernel;
    fpa_form form;
    int64_t vector_stride[4], value_stride[4], gate_stride[3]; /* of prompts in pieces */
    int64_t q_shape[4], k_shape[4], v_shape[4], o_shape[4], gate_shape[3], state_shape[3], offset_shape[1];
    DLTensor q, k, v, o, gate, state, offsets;
    fpa_tensors tensors;
    void *workspace;
    size_t size;
    int64_t pieces, piece;          /* of how many tokens; 1: one pass */
    const fpa_candidate *candidate; /* NULL: what the model chooses */
} bench_call;

static fpa_device device;
static int heads = 16;

/* ---- operands ---- */

static void set_shapes(bench_call *c, int64_t batch, int64_t length)
{
    const fpa_description *about = fpa_describe(c->kernel);
    const int64_t vector[4] = {batch, length, heads, about->d}, value[4] = {batch, length, heads, about->dv};
    memcpy(c->q_shape, vector, sizeof vector);
    memcpy(c->k_shape, vector, sizeof vector);
    memcpy(c->v_shape, value, sizeof value);
    memcpy(c->o_shape, value, sizeof value);
    memcpy(c->gate_shape, vector, sizeof c->gate_shape);
}

static void make_operands(bench_call *c, int64_t batch, int64_t length)
{
    const fpa_description *about = fpa_describe(c->kernel);
    const float low = about->normalized ? 0 : -1;
    set_shapes(c, batch, length);
    c->q = make(c->kernel, about->dtype, 4, c->q_shape, low, 1, NULL);
    c->k = make(c->kernel, about->dtype, 4, c->k_shape, low, 1, NULL);
    c->v = make(c->kernel, about->dtype, 4, c->v_shape, -1, 1, NULL);
    c->o = make(c->kernel, about->dtype, 4, c->o_shape, 0, 0, NULL);
    c->tensors = (fpa_tensors){.q = &c->q, .k = &c->k, .v = &c->v, .o = &c->o, .stream = device.stream};
    if (about->gate) {
        c->gate = make(c->kernel, "f32", 3, c->gate_shape, -0.1f, 0, NULL);
        c->tensors.log_gate = &c->gate;
    }
}

static void free_call(bench_call *c)
{
    const fpa_module *module = &c->kernel->module;
    const DLTensor *all[] = {&c->q, &c->k, &c->v, &c->o, &c->gate, &c->state, &c->offsets};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        module->backend->memory->release(module, all[i]->data);
    module->backend->memory->release(module, c->workspace);
}

/* ---- measuring ---- */

/* A call, or one for each piece, the state handed over. */
static fpa_status launch(void *user, int64_t number, CUstream stream, fpa_error *error)
{
    bench_call *c = user;
    fpa_status status = FPA_OK;
    (void)number, (void)stream;
    for (int64_t i = 0; i < c->pieces && !status; i++) {
        const uint64_t at = (uint64_t)(i * c->piece * heads);
        const uint64_t item = c->q.dtype.bits / 8u;
        c->q.byte_offset = c->k.byte_offset = at * item * (uint64_t)c->q_shape[3];
        c->v.byte_offset = c->o.byte_offset = at * item * (uint64_t)c->v_shape[3];
        c->gate.byte_offset = at * sizeof(float);
        c->tensors.state_in = c->pieces > 1 && i > 0 ? &c->state : NULL;
        c->tensors.state_out = c->pieces > 1 ? &c->state : NULL;
        status = forward_by(c->kernel, c->candidate, c->form, &c->tensors, c->workspace, c->size, error);
    }
    return status;
}

static void make_workspace(bench_call *c)
{
    fpa_error error = {0};
    bench_call with_state = *c;
    with_state.tensors.state_in = with_state.tensors.state_out = c->pieces > 1 ? &c->state : NULL;
    check(workspace_size_by(c->kernel, c->candidate, c->form, &with_state.tensors, &c->size, &error), &error);
    check(c->kernel->module.backend->memory->allocate(&c->kernel->module, c->size + 1, &c->workspace, &error),
          &error);
}

/* Milliseconds. */
static double measure(bench_call *c)
{
    const fpa_work work = {launch, c};
    fpa_sample sample;
    fpa_error error = {0};
    if (!c->workspace)
        make_workspace(c);
    check(device_measure(&device, &work, REPEATS, 3.0, &sample, &error), &error);
    return 1e3 * sample.median;
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const double *numbers)
{
    double sorted[TURNS];
    memcpy(sorted, numbers, sizeof sorted);
    qsort(sorted, TURNS, sizeof *sorted, compare_numbers);
    return sorted[TURNS / 2];
}

typedef struct both {
    double first, second; /* milliseconds */
    double quotient;      /* the second over the first in the same turn */
} both;

static both measure_by_turns(bench_call *first, bench_call *second)
{
    double a[TURNS], b[TURNS], quotient[TURNS];
    for (int i = 0; i < TURNS; i++) {
        a[i] = measure(first);
        b[i] = measure(second);
        quotient[i] = b[i] / a[i];
    }
    return (both){median_of(a), median_of(b), median_of(quotient)};
}

/* ---- mixes of lengths ---- */

typedef struct mix {
    const char *name;
    int32_t offsets[MOST_SEQUENCES + 1];
    int64_t count, total, longest;
} mix;

static void add(mix *m, int64_t length)
{
    if (m->count == MOST_SEQUENCES || length > INT32_MAX - m->total)
        return;
    m->total += length;
    m->longest = length > m->longest ? length : m->longest;
    m->offsets[++m->count] = (int32_t)m->total;
}

/* Lengths between 1 and `most`, as many short ones as long ones on a scale of logarithms, until there are `total` tokens. */
static void draw(mix *m, int64_t total, int64_t most)
{
    uint64_t state = 12345;
    while (m->total < total && m->count < MOST_SEQUENCES) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int64_t length = (int64_t)pow((double)most, (double)(state >> 40) * 0x1p-24);
        length = length < 1 ? 1 : length;
        add(m, length < total - m->total ? length : total - m->total);
    }
}

static void make_mix(bench_call *c, fpa_kernel *kernel, fpa_form form, mix *m)
{
    *c = (bench_call){.kernel = kernel, .form = form, .pieces = 1};
    make_operands(c, 1, m->total);
    c->offset_shape[0] = m->count + 1;
    c->offsets = make(kernel, NULL, 1, c->offset_shape, 0, 0, m->offsets);
    c->tensors.cu_seqlens = &c->offsets;
    c->tensors.max_length = m->longest;
}

static void make_equal(bench_call *c, fpa_kernel *kernel, int64_t batch, int64_t length)
{
    *c = (bench_call){.kernel = kernel, .form = FPA_FORM_CHUNKED, .pieces = 1};
    make_operands(c, batch, length);
}

static double time_mix(fpa_kernel *kernel, fpa_form form, mix *m)
{
    bench_call c;
    make_mix(&c, kernel, form, m);
    const double milliseconds = measure(&c);
    free_call(&c);
    return milliseconds;
}

static double time_equal(fpa_kernel *kernel, int64_t batch, int64_t length)
{
    bench_call c;
    make_equal(&c, kernel, batch, length);
    const double milliseconds = measure(&c);
    free_call(&c);
    return milliseconds;
}

static void line(const char *what, const mix *m, double milliseconds, double before)
{
    printf("%s\t%s\t%lld\t%.4f\t%.3f\n", what, m->name, (long long)m->count, milliseconds,
           milliseconds / before);
    fflush(stdout);
}

static void line_of_turns(const char *what, const mix *m, const both *times)
{
    line(what, m, times->second, times->second / times->quotient);
}

/* Equal lengths by the ordinary call, and as a mix in which all happen to be equal. */
static void compare_equal(fpa_kernel *kernel, int64_t total, int64_t length, const char *name)
{
    static mix m;
    m = (mix){.name = name};
    while (m.total + length <= total)
        add(&m, length);
    if (m.count == 0)
        return;
    bench_call equal, packed;
    make_equal(&equal, kernel, m.count, length);
    make_mix(&packed, kernel, FPA_FORM_CHUNKED, &m);
    const both times = measure_by_turns(&equal, &packed);
    line("equal lengths", &m, times.first, times.first);
    line_of_turns("cu_seqlens", &m, &times);
    free_call(&equal), free_call(&packed);
}

/* A mix, against as many tokens in equal sequences, and against all padded to the longest. */
static void compare_mix(fpa_kernel *kernel, int64_t total, int64_t most, const char *name)
{
    enum { PADDED_TOKENS = 1 << 21 }; /* what memory is spent on, at most */
    static mix m;
    m = (mix){.name = name};
    draw(&m, total, most);
    if (m.count == 0)
        return;
    const double ragged = time_mix(kernel, FPA_FORM_CHUNKED, &m);
    const int64_t mean = (m.total + m.count - 1) / m.count;
    line("cu_seqlens", &m, ragged, ragged);
    if (fpa_choose_form(kernel, m.longest, 0) != FPA_FORM_CHUNKED)
        line("cu_seqlens, in the form that auto takes", &m, time_mix(kernel, FPA_FORM_AUTO, &m), ragged);
    line("equal lengths, as many tokens", &m, time_equal(kernel, m.count, mean), ragged);
    if (m.count * m.longest <= PADDED_TOKENS)
        line("padded to the longest", &m, time_equal(kernel, m.count, m.longest), ragged);
    else
        line("padded, of half of the sequences or fewer", &m,
             time_equal(kernel, PADDED_TOKENS / m.longest, m.longest), ragged);
}

/* ---- each way to carry a call out ---- */

enum { MOST_WAYS = 768 };

/* What suits the call, by the model's seconds. */
static int list_ways(const bench_call *c, fpa_candidate list[MOST_WAYS])
{
    const fpa_module *module = &c->kernel->module;
    const float *weights[c->kernel->description.weight_count + 1];
    struct fpa_launch launch;
    fpa_form form = c->form;
    fpa_error error = {0};
    bool empty;
    check(forward_prepare(c->kernel, TENSORS_SHAPES, &c->tensors, &form, weights, &launch, &empty, &error),
          &error);
    const fpa_call_size size = call_size(FORM_CHUNKED, &launch);
    return module->candidates ? module->candidates(module, &size, list, MOST_WAYS) : 0;
}

static void time_way(bench_call *c, const mix *m, const fpa_candidate *way)
{
    char text[CANDIDATE_TEXT], what[CANDIDATE_TEXT + 64];
    snprintf(what, sizeof what, "%s %s", way->mechanism, candidate_text(text, way));
    c->candidate = way;
    c->workspace = NULL;
    line(what, m, measure(c), 1e3 * way->cost.seconds);
    c->kernel->module.backend->memory->release(&c->kernel->module, c->workspace);
    c->workspace = NULL;
}

static void time_ways(bench_call *c, const mix *m)
{
    static fpa_candidate list[MOST_WAYS];
    const int count = list_ways(c, list);
    double least = INFINITY;
    for (int i = 0; i < count && i < MOST_WAYS; i++)
        least = list[i].refused ? least : fmin(least, list[i].cost.seconds);
    for (int i = 0; i < count && i < MOST_WAYS; i++)
        if (!list[i].refused && list[i].cost.seconds <= 1.5 * least)
            time_way(c, m, &list[i]);
    free_call(c);
}

static void compare_ways(fpa_kernel *kernel, int64_t total, int64_t length, int64_t most, const char *name)
{
    static mix m;
    bench_call call;
    m = (mix){.name = name};
    while (length && m.total + length <= total)
        add(&m, length);
    if (!length)
        draw(&m, total, most);
    make_mix(&call, kernel, FPA_FORM_CHUNKED, &m);
    time_ways(&call, &m);
    if (!length)
        return;
    printf("# the same without cu_seqlens\n");
    make_equal(&call, kernel, m.count, length);
    time_ways(&call, &m);
}

static void compare_all_ways(fpa_kernel *kernel, int64_t total)
{
    compare_ways(kernel, total, 4096, 0, "4,096 each");
    compare_ways(kernel, total, 1024, 0, "1,024 each");
    compare_ways(kernel, total, 0, 2048, "1 to 2,048");
    compare_ways(kernel, total, 0, 16384, "1 to 16,384");
    compare_ways(kernel, total, 0, 65536, "1 to 65,536");
}

/* ---- a prompt in pieces ---- */

/* A piece of each prompt is not behind the one of the prompt before. */
static void set_strides(bench_call *c, int64_t total)
{
    const fpa_description *about = fpa_describe(c->kernel);
    const int64_t vector[4] = {total * heads * about->d, (int64_t)heads * about->d, about->d, 1};
    const int64_t value[4] = {total * heads * about->dv, (int64_t)heads * about->dv, about->dv, 1};
    const int64_t gate[3] = {total * heads, heads, 1};
    memcpy(c->vector_stride, vector, sizeof vector);
    memcpy(c->value_stride, value, sizeof value);
    memcpy(c->gate_stride, gate, sizeof gate);
    c->q.strides = c->k.strides = c->vector_stride;
    c->v.strides = c->o.strides = c->value_stride;
    c->gate.strides = c->gate_stride;
}

/* Of as many whole pieces as a prompt of `total` tokens has. */
static void compare_pieces(fpa_kernel *kernel, int64_t prompts, int64_t total, int64_t piece)
{
    total = total / piece * piece;
    bench_call c = {.kernel = kernel, .form = FPA_FORM_CHUNKED, .pieces = total / piece, .piece = piece};
    char what[64], name[64];
    if (c.pieces < 2)
        return;
    snprintf(name, sizeof name, "prompts of %lld tokens", (long long)total);
    const mix one = {.name = name, .count = prompts};
    bench_call whole;
    make_equal(&whole, kernel, prompts, total);
    make_operands(&c, prompts, total);
    set_shapes(&c, prompts, piece);
    set_strides(&c, total);
    c.state_shape[0] = prompts;
    c.state_shape[1] = heads;
    c.state_shape[2] = fpa_describe(kernel)->state_elements;
    c.state = make(kernel, fpa_describe(kernel)->state_dtype, 3, c.state_shape, 0, 0, NULL);
    snprintf(what, sizeof what, "pieces of %lld tokens", (long long)piece);
    const both times = measure_by_turns(&whole, &c);
    line("one pass", &one, times.first, times.first);
    line_of_turns(what, &one, &times);
    free_call(&whole), free_call(&c);
}

/* So many tokens at least, in whole chunks: a last one that is begun costs as much. */
static int64_t whole_chunks(const fpa_kernel *kernel, int64_t tokens)
{
    const int64_t chunk = fpa_describe(kernel)->chunk;
    return chunk > 0 ? (tokens + chunk - 1) / chunk * chunk : tokens;
}

static void compare_all_equal(fpa_kernel *kernel, int64_t total)
{
    compare_equal(kernel, total, 1024, "1,024 each");
    compare_equal(kernel, total, 4096, "4,096 each");
    compare_equal(kernel, total, 4000, "4,000 each");
    compare_equal(kernel, total, total, "one");
}

static void compare_mixes(fpa_kernel *kernel, int64_t total)
{
    compare_mix(kernel, total, 2048, "1 to 2,048");
    compare_mix(kernel, total, 16384, "1 to 16,384");
    compare_mix(kernel, total, 65536, "1 to 65,536");
}

static void compare_all_pieces(fpa_kernel *kernel, int64_t total)
{
    const int64_t prompts = heads < FULL ? FULL / heads : 1;
    compare_pieces(kernel, prompts, total / 4, 2048);
    compare_pieces(kernel, prompts, total / 4, whole_chunks(kernel, 2048));
    compare_pieces(kernel, prompts, total / 4, 8192);
    compare_pieces(kernel, 1, total, 2048);
    compare_pieces(kernel, 1, total, 8192);
}

static bool is_wanted(const char *part, const char *name)
{
    return !part || !strcmp(part, name);
}

int main(int count, char **arguments)
{
    const char *part = count > 5 ? arguments[5] : NULL;
    const fpa_options options = {.target = "cuda"};
    const int64_t total = count > 3 ? atoll(arguments[3]) : 65536;
    fpa_error error = {0};
    fpa_kernel *kernel;
    if (count < 3)
        return fprintf(stderr,
                       "usage: bench_sequences SPEC HEAD [TOKENS [HEADS [equal|mixes|pieces|ways]]]\n"),
               2;
    heads = count > 4 ? atoi(arguments[4]) : heads;
    check(fpa_open(arguments[1], arguments[2], &options, &kernel, &error), &error);
    check(device_open(0, &device, &error), &error);
    printf("# %s, %lld tokens, %d heads, %s\n", arguments[2], (long long)total, heads, device.name);
    if (is_wanted(part, "equal"))
        compare_all_equal(kernel, total);
    if (is_wanted(part, "mixes"))
        compare_mixes(kernel, total);
    if (is_wanted(part, "pieces"))
        compare_all_pieces(kernel, total);
    if (part && !strcmp(part, "ways"))
        compare_all_ways(kernel, total);
    device_close(&device);
    fpa_close(kernel);
    return 0;
}
