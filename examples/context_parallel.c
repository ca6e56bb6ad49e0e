/* context_parallel: one long sequence in pieces, on several GPUs (or in threads on the CPU).
 *
 *   device 0     |first piece, one pass|           |last piece, one pass ...    |
 *   device 1     |total of its piece   | states    |outputs of the same piece   |
 *   device 2     |total of its piece   | are joined|outputs of the same piece   |
 *
 *   1. the first piece: its outputs and the state behind it; every piece between: its total, the state that its keys alone
 *      leave, while copies of states stay in its workspace;
 *   2. they are joined: before piece p there is the sum of those before it, each faded by the gates between;
 *   3. the last piece: its outputs, from that state; every piece between: its outputs, from that state and the copies.
 *
 * One pass takes less than a total and outputs. A device that had the first piece alone would wait for nobody and end early; with
 * the last one it works as long as the others. How long pieces are follows from what one pass, totals and outputs are found to take
 * (share_out). Where GPUs' totals are added up by the host all pieces are equal, and the first one is like the others.
 *
 * A thread a device. Sums go over NCCL where it is found, the head has no gate and every thread has its own GPU; else a second
 * piece's state is copied from GPU to GPU, and later ones are added up by the host. NCCL is $FPA_NCCL, else libnccl.so.2 where the
 * loader looks (LD_LIBRARY_PATH); PyTorch's wheels have it in site-packages/nvidia/nccl/lib. FPA_NCCL="" does without.
 *   cc context_parallel.c $(pkg-config --cflags --libs fpa) -ldl -lpthread -lm -o context_parallel
 *   ./context_parallel specs/tspow.lua tspow2_d64_b8 [TARGET [TOKENS [DEVICES [HEADS]]]]
 *
 * Prints the least seconds of one pass on one device, of all until states are joined and of all pieces, and how far results are
 * apart. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context_parallel.h" /* memory, NCCL, numbers */
#include "fpa.h"

enum { MOST = 64 /* devices */, ROUNDS = 6 /* the first loads code and finds workspaces */ };

typedef struct piece {
    int number, device;
    void *context, *stream, *communicator;
    fpa_kernel *kernel;
    int64_t first, tokens;
    void *q, *k, *v, *o, *gate, *total, *before, *zeros, *workspace; /* before: its first state */
    size_t size;
    double *decay; /* [heads]: of its gates, all together */
    float *host;   /* its total, for those that are added up by the host */
} piece;

static struct {
    int devices, heads; /* device i has piece i */
    int outer;          /* and device 0 the last piece, number `devices`, besides */
    int64_t tokens;
    const fpa_description *head;
    char *q, *k, *v; /* [tokens][heads][width] */
    float *gate;
    int uses_nccl;
    piece piece[MOST + 2]; /* behind the last one where the sequence ends */
    pthread_barrier_t meeting;
    double totals, all; /* seconds */
} world;

/* ---- memory of a piece ---- */

static void enter(const piece *p)
{
    if (devices)
        expect(cu.cuCtxSetCurrent(p->context), "cuCtxSetCurrent");
}

static void remove_operands(const piece *p)
{
    void *const memory[] = {p->q, p->k, p->v, p->o, p->gate, p->total, p->before, p->zeros, p->workspace};
    enter(p);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        drop(memory[i]);
}

static void finish(const piece *p)
{
    if (devices)
        expect(cu.cuStreamSynchronize(p->stream), "a stream");
}

static size_t state_numbers(void)
{
    return (size_t)world.heads * (size_t)world.head->state_elements;
}

/* Operands of tokens first .. on a device. */
static void place(piece *p, int64_t first, int64_t tokens)
{
    const size_t rows = (size_t)tokens * (size_t)world.heads, from = (size_t)first * (size_t)world.heads;
    const size_t vector = (size_t)world.head->d * element, value = (size_t)world.head->dv * element;
    p->first = first;
    p->tokens = tokens;
    p->q = put(world.q + from * vector, rows * vector);
    p->k = put(world.k + from * vector, rows * vector);
    p->v = put(world.v + from * value, rows * value);
    p->o = put(NULL, rows * value);
    p->gate = put(world.gate + from, rows * sizeof(float));
    p->total = put(NULL, state_numbers() * sizeof(float));
    p->before = put(NULL, state_numbers() * sizeof(float));
    p->zeros = world.uses_nccl ? put(NULL, state_numbers() * sizeof(float)) : NULL;
}

/* ---- the three steps ---- */

static DLTensor tensor(const piece *p, void *data, int axes, int64_t *shape, int is_token)
{
    const int bits = is_token ? 8 * (int)element : 32;
    return (DLTensor){.data = data,
                      .device = {devices ? kDLCUDA : kDLCPU, devices ? p->device : 0},
                      .ndim = axes,
                      .dtype = {bits == 16 ? kDLBfloat : kDLFloat, (uint8_t)bits, 1},
                      .shape = shape};
}

/* Of a piece: its total, then its outputs, or both in one pass. */
enum step { TOTAL, OUTPUTS, BOTH };

static void forward(piece *p, enum step step)
{
    int64_t vectors[4] = {1, p->tokens, world.heads, world.head->d};
    int64_t values[4] = {1, p->tokens, world.heads, world.head->dv};
    int64_t states[3] = {1, world.heads, world.head->state_elements};
    fpa_error error;
    size_t size;
    DLTensor q = tensor(p, p->q, 4, vectors, 1), k = tensor(p, p->k, 4, vectors, 1);
    DLTensor v = tensor(p, p->v, 4, values, 1), o = tensor(p, p->o, 4, values, 1);
    DLTensor gate = tensor(p, p->gate, 3, vectors, 0);
    DLTensor before = tensor(p, p->before, 3, states, 0), total = tensor(p, p->total, 3, states, 0);
    const DLTensor *const log_gate = world.head->gate ? &gate : NULL;
    const int leaves =
        step == BOTH && p->first == 0 && p->tokens < world.tokens; /* the state behind the first piece */
    const fpa_tensors keys = {
        .k = &k, .v = &v, .log_gate = log_gate, .state_out = &total, .stream = p->stream};
    const fpa_tensors queries = {.q = &q,
                                 .k = &k,
                                 .v = &v,
                                 .o = &o,
                                 .log_gate = log_gate,
                                 .state_in = p->first > 0 ? &before : NULL,
                                 .state_out = leaves ? &total : NULL,
                                 .stream = p->stream};
    check(step == BOTH ? fpa_workspace_size(p->kernel, FPA_FORM_CHUNKED, &queries, &size, &error)
                       : fpa_piece_workspace(p->kernel, &queries, &size, &error),
          &error);
    if (size > p->size) {
        drop(p->workspace);
        p->workspace = put(NULL, size);
        p->size = size;
    }
    check(step == BOTH    ? fpa_forward(p->kernel, FPA_FORM_CHUNKED, &queries, p->workspace, p->size, &error)
          : step == TOTAL ? fpa_piece_total(p->kernel, &keys, p->workspace, p->size, &error)
                          : fpa_piece_outputs(p->kernel, &queries, p->workspace, p->size, &error),
          &error);
}

/* The piece that device 0 has at last. */
static piece *last_piece(void)
{
    return &world.piece[world.devices];
}

/* Every root gets the sum of the totals before it: other ranks bring zeros. Device 0 that of all, before its last piece. */
static void join_by_nccl(piece *p)
{
    for (int root = 1; root <= world.devices - !world.outer; root++)
        expect(nccl.ncclReduce(p->number < root ? p->total : p->zeros,
                               root < world.devices ? p->before : last_piece()->before, state_numbers(),
                               NCCL_FLOAT, NCCL_SUM, root % world.devices, p->communicator, p->stream),
               "ncclReduce");
}

/* before = sum over earlier pieces of the decays between, times their totals. */
static void join_by_host(piece *p)
{
    float *sum = claim(state_numbers() * sizeof *sum);
    const int64_t elements = world.head->state_elements;
    for (int i = 0; i < p->number; i++)
        for (int h = 0; h < world.heads; h++) {
            double decay = 1;
            for (int between = i + 1; between < p->number; between++)
                decay *= world.piece[between].decay[h];
            for (int64_t e = h * elements; e < (h + 1) * elements; e++)
                sum[e] += (float)(decay * (double)world.piece[i].host[e]);
        }
    if (devices)
        expect(cu.cuMemcpyHtoD_v2((address)(uintptr_t)p->before, sum, state_numbers() * sizeof *sum),
               "cuMemcpyHtoD");
    else
        memcpy(p->before, sum, state_numbers() * sizeof *sum);
    free(sum);
}

static void join_by_copies(piece *p)
{
    const int by_host = world.devices > 2 || world.outer;
    finish(p);
    if (by_host)
        get(p->host, p->total, state_numbers() * sizeof(float));
    pthread_barrier_wait(&world.meeting); /* all totals are there */
    if (by_host && p->number > 0)
        join_by_host(p);
    else if (by_host && world.outer)
        join_by_host(last_piece());
    else if (p->number == 1)
        expect(cu.cuMemcpy((address)(uintptr_t)p->before, (address)(uintptr_t)world.piece[0].total,
                           state_numbers() * sizeof(float)),
               "cuMemcpy");
    if (devices)
        expect(cu.cuCtxSynchronize(), "cuCtxSynchronize"); /* our stream waits for no copy by itself */
}

/* Seconds until states are joined, or of outputs behind that, too. Sums by NCCL go into the stream: nobody waits before outputs do. */
static double once(piece *p, int outputs)
{
    const int has_two = world.outer && p->number == 0;
    pthread_barrier_wait(&world.meeting);
    const double begin = seconds();
    forward(p,
            has_two ? BOTH : TOTAL); /* without an outer piece nobody needs the last total, but its copies */
    (world.uses_nccl ? join_by_nccl : join_by_copies)(p);
    if (outputs)
        forward(has_two ? last_piece() : p, has_two ? BOTH : OUTPUTS);
    finish(p);
    pthread_barrier_wait(&world.meeting);
    return seconds() - begin;
}

static void *run(void *argument)
{
    piece *p = argument;
    enter(p);
    for (int round = 0; round < ROUNDS; round++) {
        const double totals = once(p, 0), all = once(p, 1);
        if (p->number == 0 && (round == 1 || (round > 1 && all < world.all)))
            world.totals = totals, world.all = all;
    }
    return NULL;
}

/* ---- a sequence, in one pass and in pieces ---- */

static void make_sequence(void)
{
    const size_t rows = (size_t)world.tokens * (size_t)world.heads;
    world.q = numbers(rows * (size_t)world.head->d);
    world.k = numbers(rows * (size_t)world.head->d);
    world.v = numbers(rows * (size_t)world.head->dv);
    world.gate = claim(rows * sizeof *world.gate);
    for (size_t i = 0; i < rows; i++)
        world.gate[i] = -0.01f * (float)rand() / (float)RAND_MAX;
}

static void open_pieces(const char *spec, const char *name, const char *target)
{
    int used[MOST];
    void *communicators[MOST];
    fpa_error error;
    for (int i = 0; i < world.devices; i++) {
        piece *p = &world.piece[i];
        const fpa_options options = {.target = target, .device = devices ? i % devices : 0};
        *p = (piece){.number = i, .device = options.device};
        if (devices) {
            expect(cu.cuDevicePrimaryCtxRetain(&p->context, p->device), "cuDevicePrimaryCtxRetain");
            enter(p);
            expect(cu.cuStreamCreate(&p->stream, 1), "cuStreamCreate");
        }
        check(fpa_open(spec, name, &options, &p->kernel, &error), &error);
        used[i] = p->device;
    }
    world.head = fpa_describe(world.piece[0].kernel);
    world.uses_nccl =
        devices >= world.devices && world.devices > 1 && !world.head->gate &&
        find_symbols(getenv("FPA_NCCL") ? getenv("FPA_NCCL") : "libnccl.so.2", nccl_symbols, 2, &nccl) &&
        nccl.ncclCommInitAll(communicators, world.devices, used) == 0;
    for (int i = 0; i < world.devices && world.uses_nccl; i++)
        world.piece[i].communicator = communicators[i];
    world.outer = world.devices > 1 && (world.uses_nccl || !devices);
    if (world.outer) {
        *last_piece() = world.piece[0]; /* its device, stream and kernel */
        last_piece()->number = world.devices;
    }
}

/* ---- how long pieces are ---- */

/* The least seconds of a step of a piece. */
static double measure(piece *p, enum step step)
{
    double least = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = seconds();
        forward(p, step);
        finish(p);
        const double took = seconds() - begin;
        least = round < 2 || took < least ? took : least;
    }
    return least;
}

/* Times one pass, in between what no measurement of a few tokens can lead astray. */
static double times_pass(double took, double pass)
{
    return fmin(fmax(took / pass, 0.25), 4);
}

static int64_t whole_chunks(double tokens)
{
    const int64_t chunk = world.head->chunk;
    return chunk > 0 && world.tokens >= 64 * world.devices * chunk ? llround(tokens / (double)chunk) * chunk
                                                                   : llround(tokens);
}

/* Totals and outputs of a piece take w and r passes over it. Until states are joined a first piece of w times as many tokens is through,
 * and until the others have their outputs a last one of r times as many. once: seconds of one pass over the sequence. */
static void share_out(double once)
{
    const int64_t tokens = world.tokens / world.devices;
    double between = (double)tokens, first = between;
    if (world.outer) {
        piece part = world.piece[1];
        enter(&part);
        place(&part, tokens, tokens);
        const double pass = once / world.devices;
        const double w = times_pass(measure(&part, TOTAL), pass),
                     r = times_pass(measure(&part, OUTPUTS), pass);
        remove_operands(&part);
        between = (double)world.tokens / (world.devices - 1 + w + r);
        first = w * between;
    }
    for (int i = 1; i <= world.devices; i++)
        world.piece[i].first = whole_chunks(first + (i - 1) * between);
    world.piece[world.devices + world.outer].first = world.tokens;
}

static void place_piece(int number)
{
    piece *p = &world.piece[number];
    enter(p);
    place(p, p->first, p[1].first - p->first);
    p->host = claim(state_numbers() * sizeof *p->host);
    p->decay = claim((size_t)world.heads * sizeof *p->decay);
    for (int h = 0; h < world.heads; h++) {
        for (int64_t t = p->first; t < p->first + p->tokens && world.head->gate; t++)
            p->decay[h] += world.gate[t * world.heads + h];
        p->decay[h] = exp(p->decay[h]);
    }
}

/* Largest difference of o between a piece and the whole, over the largest value. */
static double distance(const piece *p, const char *whole)
{
    const size_t row = (size_t)world.heads * (size_t)world.head->dv, count = (size_t)p->tokens * row;
    char *own = claim(count * element);
    double most = 0, largest = 0;
    enter(p);
    get(own, p->o, count * element);
    for (size_t i = 0; i < count; i++) {
        const double b = value_at(whole, (size_t)p->first * row + i);
        most = fmax(most, fabs(value_at(own, i) - b));
        largest = fmax(largest, fabs(b));
    }
    free(own);
    return most / largest;
}

/* The head that was asked for, if it is one that the example can do. */
static void open_head(char **arguments, const char *target)
{
    if (strncmp(target, "cuda", 4) == 0 &&
        (!find_symbols("libcuda.so.1", cu_symbols, sizeof cu_symbols / sizeof *cu_symbols, &cu) ||
         cu.cuInit(0) || cu.cuDeviceGetCount(&devices) || devices == 0))
        stop("context_parallel", "there is no NVIDIA driver here, or no GPU");
    open_pieces(arguments[1], arguments[2], target);
    element = strcmp(world.head->dtype, "f32") == 0 ? 4 : 2;
    if (strcmp(world.head->dtype, "f16") == 0 || strcmp(world.head->state_dtype, "f32") != 0 ||
        !world.head->causal || world.head->weight_count || world.head->positions || world.head->key_mask ||
        world.head->window)
        stop(world.head->name,
             "this example wants a causal head of f32 or bf16, states of f32, no run-time matrices, "
             "positions, masks or window");
}

/* o of one pass over the whole sequence, on the first device, and its seconds. */
static char *run_whole(double *once)
{
    const size_t values = (size_t)world.tokens * (size_t)world.heads * (size_t)world.head->dv * element;
    piece whole = world.piece[0];
    char *o = claim(values);
    enter(&whole);
    place(&whole, 0, world.tokens);
    *once = measure(&whole, BOTH);
    get(o, whole.o, values);
    remove_operands(&whole); /* the pieces have memory of their own */
    return o;
}

/* A thread a device. */
static void run_pieces(void)
{
    pthread_t threads[MOST];
    pthread_barrier_init(&world.meeting, NULL, (unsigned)world.devices);
    for (int i = 0; i < world.devices + world.outer; i++)
        place_piece(i);
    for (int i = 0; i < world.devices; i++)
        expect(pthread_create(&threads[i], NULL, run, &world.piece[i]), "pthread_create");
    for (int i = 0; i < world.devices; i++)
        pthread_join(threads[i], NULL);
}

static void report(double once, double most)
{
    printf("%s on %s: %lld tokens, %d heads, %d device%s, joined by %s; pieces of", world.head->name,
           world.head->target, (long long)world.tokens, world.heads, world.devices,
           world.devices > 1 ? "s" : "", world.uses_nccl ? "NCCL" : "copies");
    for (int i = 0; i < world.devices + world.outer; i++)
        printf(" %lld", (long long)world.piece[i].tokens);
    printf("\none pass %.6f s; totals %.6f s, with all pieces %.6f s: %.2f times as fast\n", once,
           world.totals, world.all, once / world.all);
    printf("results differ by %.2g of the largest\n", most);
}

int main(int count, char **arguments)
{
    enum { LEAST = 32 }; /* tokens a device */
    double once = 0, most = 0;
    world.tokens = count > 4 ? atoll(arguments[4]) : 4096;
    world.devices = count > 5 ? atoi(arguments[5]) : 2;
    world.heads = count > 6 ? atoi(arguments[6]) : 2;
    if (count < 3 || world.devices < 1 || world.devices > MOST || world.tokens < LEAST * world.devices ||
        world.heads < 1) {
        fprintf(stderr, "usage: context_parallel SPEC HEAD [TARGET [TOKENS [DEVICES [HEADS]]]]\n"
                        "with 1 to 64 devices of at least 32 tokens each\n");
        return 2;
    }
    open_head(arguments, count > 3 ? arguments[3] : "c");
    make_sequence();
    char *o = run_whole(&once);
    share_out(once);
    run_pieces();
    for (int i = 0; i < world.devices + world.outer; i++) {
        most = fmax(most, distance(&world.piece[i], o));
        remove_operands(&world.piece[i]);
    }
    free(o);
    report(once, most);
    for (int i = 0; i < world.devices; i++)
        fpa_close(world.piece[i].kernel);
    return most < (element == 2 ? 2e-2 : 1e-4) ? 0 : 1;
}
