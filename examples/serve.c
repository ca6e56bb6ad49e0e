/* serve: continuous batching. Requests wait in a queue; each has a prompt, read in pieces, then tokens that are decoded one by
 * one. A slot of a pool of states is a request's from its first piece to its last token; then the next request has it.
 * Every round is two calls: a step of all slots that decode, and a forward over the pieces of those that read, lengths of
 * their own in one batch. The same program serves from the CPU and from a GPU.
 *
 *   cc serve.c $(pkg-config --cflags --libs fpa) -ldl -o serve
 *   ./serve specs/tspow.lua tspow2_d64_b8 [TARGET [MOST [FILE.svg]]]
 *
 * TARGET "c" or "cuda"; MOST: slots, at most, 64 unless said. Prints tokens a second for 1, 2, 4 .. MOST slots, and draws them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fpa.h"
#include "serve.h" /* memory of the process or of a GPU, the picture */

enum { HEADS = 4, PIECE = 128, PIECES = 4, PROMPT = 256, ANSWER = 64, MOST = 1024 };

static void check(fpa_status status, const fpa_error *error)
{
    if (status)
        stop(error->where, error->message);
}

/* ---- a server ---- */

typedef struct slot {
    int prompt, answer; /* tokens to read, to decode */
    int begun;          /* the pool has its state */
} slot;

typedef struct server {
    fpa_kernel *kernel;
    const fpa_description *head;
    int slots, waiting; /* waiting: requests in the queue */
    int piece, budget;  /* tokens of a prompt that a round reads, whole chunks, and of all prompts */
    slot slot[MOST];
    void *q, *k, *v, *o, *gate, *pool, *workspace;
    int32_t
        *index[2];  /* offsets; slots that states come from, slots that they go to; of a step, of a forward */
    size_t size;    /* of the workspace */
    size_t element; /* bytes of a number of q, k, v, o */
    int64_t decoded, read;
} server;

static DLTensor tensor(void *data, size_t element, int axes, int64_t *shape)
{
    return (DLTensor){.data = data,
                      .device = {on_gpu ? kDLCUDA : kDLCPU, 0},
                      .ndim = axes,
                      .dtype = {element == 2 ? kDLBfloat : kDLFloat, (uint8_t)(8 * element), 1},
                      .shape = shape};
}

/* Numbers that a model would have computed. */
static void *make_numbers(size_t count, float low, size_t element)
{
    char *numbers = malloc((count + 1) * element);
    void *memory = allocate(count * element);
    if (!numbers)
        stop("serve", "out of memory");
    for (size_t i = 0; i < count; i++) {
        const float number = low + (float)rand() / (float)RAND_MAX * -2 * low;
        memcpy(numbers + i * element, (const char *)&number + (sizeof number - element),
               element); /* bf16: the upper half */
    }
    upload(memory, numbers, count * element);
    wait_for_all();
    free(numbers);
    return memory;
}

static void start(server *s, fpa_kernel *kernel, int slots, int requests)
{
    const fpa_description *head = fpa_describe(kernel);
    const int chunk = head->chunk > 0 ? head->chunk : 1, piece = (PIECE + chunk - 1) / chunk * chunk;
    const size_t tokens = (size_t)(slots + PIECES * piece) * HEADS;
    *s = (server){.kernel = kernel,
                  .head = head,
                  .slots = slots,
                  .waiting = requests,
                  .piece = piece,
                  .budget = PIECES * piece,
                  .element = strcmp(head->dtype, "f32") == 0 ? 4 : 2};
    s->q = make_numbers(tokens * (size_t)head->d, -0.5f, s->element);
    s->k = make_numbers(tokens * (size_t)head->d, -0.5f, s->element);
    s->v = make_numbers(tokens * (size_t)head->dv, -0.5f, s->element);
    s->o = allocate(tokens * (size_t)head->dv * s->element);
    s->gate = make_numbers(tokens, 0, sizeof(float)); /* nothing fades */
    s->pool = allocate((size_t)slots * HEADS * (size_t)head->state_elements * sizeof(float));
    for (int i = 0; i < 2; i++)
        s->index[i] = allocate((size_t)(3 * slots + 1) * sizeof(int32_t));
}

static void finish(server *s)
{
    void *all[] = {s->q, s->k, s->v, s->o, s->gate, s->pool, s->index[0], s->index[1], s->workspace};
    wait_for_all();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            release(all[i]);
}

/* Tokens first .. of the round's, of some slots, each with its state in the pool. offsets: NULL: one token each. */
static void call(server *s, int number, int count, int64_t first, const int32_t *offsets, const int32_t *from,
                 const int32_t *to)
{
    const fpa_description *head = s->head;
    const int64_t tokens = offsets ? offsets[count] : count;
    int64_t vectors[4] = {offsets ? 1 : count, offsets ? tokens : 1, HEADS, head->d}, values[4], states[3],
            indices[2];
    int32_t *device = s->index[number];
    fpa_error error;
    size_t size;
    memcpy(values, vectors, sizeof values);
    values[3] = head->dv;
    states[0] = s->slots, states[1] = HEADS, states[2] = head->state_elements;
    indices[0] = count, indices[1] = count + 1;
    DLTensor q = tensor(s->q, s->element, 4, vectors), k = tensor(s->k, s->element, 4, vectors),
             v = tensor(s->v, s->element, 4, values);
    DLTensor o = tensor(s->o, s->element, 4, values), gate = tensor(s->gate, 4, 3, vectors),
             pool = tensor(s->pool, 4, 3, states);
    DLTensor lengths = tensor(device, 4, 1, &indices[1]), in = tensor(device + count + 1, 4, 1, indices);
    DLTensor out = tensor(device + 2 * count + 1, 4, 1, indices);
    lengths.dtype.code = in.dtype.code = out.dtype.code = kDLInt;
    q.byte_offset = k.byte_offset = (uint64_t)(first * HEADS * head->d) * s->element;
    v.byte_offset = o.byte_offset = (uint64_t)(first * HEADS * head->dv) * s->element;
    gate.byte_offset = (uint64_t)(first * HEADS) * sizeof(float);
    const fpa_tensors tensors = {.q = &q,
                                 .k = &k,
                                 .v = &v,
                                 .o = &o,
                                 .log_gate = head->gate ? &gate : NULL,
                                 .state_in = &pool,
                                 .state_out = &pool,
                                 .state_index = &in,
                                 .state_out_index = &out,
                                 .cu_seqlens = offsets ? &lengths : NULL,
                                 .max_length = offsets ? s->piece : 0,
                                 .stream = stream};
    const fpa_form form = offsets ? FPA_FORM_AUTO : FPA_FORM_RECURRENT;
    if (offsets)
        upload(device, offsets, (size_t)(count + 1) * sizeof *offsets);
    upload(device + count + 1, from, (size_t)count * sizeof *from);
    upload(device + 2 * count + 1, to, (size_t)count * sizeof *to);
    check(fpa_workspace_size(s->kernel, form, &tensors, &size, &error), &error);
    if (size > s->size || !s->workspace) { /* it grows a few times, then never again */
        wait_for_all();
        if (s->workspace)
            release(s->workspace);
        s->workspace = allocate(s->size = 2 * size);
    }
    check(fpa_forward(s->kernel, form, &tensors, s->workspace, s->size, &error), &error);
}

/* Slots without a request take the next one. */
static int admit(server *s)
{
    int busy = 0;
    for (int i = 0; i < s->slots; i++) {
        slot *a = &s->slot[i];
        if (!a->prompt && !a->answer && s->waiting) {
            *a = (slot){.prompt = 1 + rand() % (2 * PROMPT), .answer = 1 + rand() % (2 * ANSWER)};
            s->waiting--;
        }
        busy += a->prompt || a->answer;
    }
    return busy;
}

/* All that decode, then pieces of prompts, as many tokens as the budget has. */
static void serve_round(server *s)
{
    int32_t from[MOST], to[MOST], offsets[MOST + 1] = {0};
    int decoding = 0, reading = 0;
    for (int i = 0; i < s->slots; i++)
        if (!s->slot[i].prompt && s->slot[i].answer) {
            from[decoding] = to[decoding] = i;
            decoding++;
            s->slot[i].answer--;
        }
    if (decoding)
        call(s, 0, decoding, 0, NULL, from, to);
    for (int i = 0; i < s->slots && offsets[reading] < s->budget; i++) {
        slot *a = &s->slot[i];
        const int left = s->budget - offsets[reading], most = left < s->piece ? left : s->piece;
        const int piece = a->prompt < most ? a->prompt : most;
        if (piece == 0)
            continue;
        from[reading] = a->begun ? i : -1; /* -1: nothing came before */
        to[reading] = i;
        offsets[reading + 1] = offsets[reading] + piece;
        a->begun = 1;
        a->prompt -= piece;
        reading++;
    }
    if (reading)
        call(s, 1, reading, decoding, offsets, from, to);
    s->decoded += decoding;
    s->read += offsets[reading];
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Tokens a second, decoded and read. */
static double serve(fpa_kernel *kernel, int slots, double *reads)
{
    server s;
    srand(1);
    start(&s, kernel, slots, 2 * slots + 2);
    if (admit(&s))
        serve_round(&s); /* the first calls load code and find the workspace */
    wait_for_all();
    s.decoded = s.read = 0;
    const double begin = seconds();
    while (admit(&s))
        serve_round(&s);
    wait_for_all();
    const double took = seconds() - begin;
    *reads = (double)s.read / took;
    finish(&s);
    return (double)s.decoded / took;
}

int main(int count, char **arguments)
{
    const fpa_options options = {.target = count > 3 ? arguments[3] : "c"};
    const int most = count > 4 ? atoi(arguments[4]) : 64;
    double rate[16], reads;
    fpa_error error;
    fpa_kernel *kernel;
    int points = 0;
    if (count < 3 || most < 1 || most > MOST)
        return fprintf(stderr, "usage: serve SPEC HEAD [TARGET [MOST [FILE.svg]]]; MOST: 1 to %d slots\n",
                       MOST),
               2;
    if (strncmp(options.target, "cuda", 4) == 0)
        open_gpu();
    check(fpa_open(arguments[1], arguments[2], &options, &kernel, &error), &error);
    const fpa_description *head = fpa_describe(kernel);
    if (strcmp(head->dtype, "f16") == 0 || strcmp(head->state_dtype, "f32") != 0 || head->weight_count ||
        head->positions || head->key_mask || head->window)
        stop(head->name, "this example wants a head of f32 or bf16 with states of f32, without run-time "
                         "matrices, positions, masks or a "
                         "window");
    printf("slots\tdecoded a second\tread a second\n");
    for (int slots = 1; slots <= most; slots *= 2) {
        rate[points] = serve(kernel, slots, &reads);
        printf("%d\t%.0f\t%.0f\n", slots, rate[points++], reads);
        fflush(stdout);
    }
    if (count > 5)
        draw(arguments[5], head->name, head->target, rate, points);
    fpa_close(kernel);
    return 0;
}
