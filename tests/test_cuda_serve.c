/* The server of examples/serve.c: what each request is answered, over all rounds and slots that it was served in, is what one pass
 * over its tokens gives. On the CPU, and where there is a GPU there too. */
#include "c_hurry.h"
#include "claims.h"
#include "gpu_problem.h"

#include <math.h>

/* The program itself; its main is not called. */
#define main serve_main
int serve_main(int count, char **arguments);
#include "examples/serve.c"
#undef main

static const char spec[] =
    "return {\n"
    "  head { name = 'small', d = 8, dv = 8, scale = 1 / 4, gate = true, normalize = 'one_plus_sum',\n"
    "         terms = power { degree = 2 } },\n"
    "  head { name = 'half', d = 32, dv = 32, scale = 1 / 8, dtype = 'bf16', terms = tspow { d = 32,\n"
    "         degree = 2, block = 8 } },\n"
    "}\n";
static const char *const names[] = {"small", "half"};
static const double tolerance[] = {1e-5, 3e-2}; /* of the largest output; bf16: both are rounded to it */

enum { KERNELS = 2, SLOTS = 3, REQUESTS = 8, LONGEST = 2 * PROMPT + 2 * ANSWER };

/* What a request has had of rounds: where each of its tokens lay in the round's operands, and what it was answered. */
typedef struct request {
    int length, row[LONGEST];
    float *o; /* [length][HEADS][dv] */
} request;

struct fixture {
    test_gpu gpu;
    bool ready; /* there is a GPU */
};

static int setup(void **state)
{
    static struct fixture f;
    *state = &f;
    c_hurry();
    f.ready = gpu_open(&f.gpu, 0);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    gpu_close(&f->gpu);
    return 0;
}

static void fetch(const struct fixture *f, void *to, const void *from, size_t size)
{
    if (on_gpu)
        CUDA(&f->gpu, cuMemcpyDtoH(to, (uintptr_t)from, size));
    else
        memcpy(to, from, size);
}

static float number_at(const char *numbers, size_t element, size_t i)
{
    float number = 0;
    memcpy((char *)&number + (sizeof number - element), numbers + i * element, element);
    return number;
}

/* Tokens of a round, of this slot: rows first .. of the operands. */
static void take_rows(const struct fixture *f, const server *s, request *r, int first, int count)
{
    const size_t width = HEADS * (size_t)s->head->dv, size = width * (size_t)count;
    char *numbers = malloc(size * s->element);
    assert_non_null(numbers);
    assert_true(r->length + count <= LONGEST);
    fetch(f, numbers, (const char *)s->o + (size_t)first * width * s->element, size * s->element);
    for (size_t i = 0; i < size; i++)
        r->o[(size_t)r->length * width + i] = number_at(numbers, s->element, i);
    for (int i = 0; i < count; i++)
        r->row[r->length++] = first + i;
    free(numbers);
}

/* A round, and what each slot's request has had of it: steps come first, then pieces of prompts, in the order of slots. */
static void serve_and_note(const struct fixture *f, server *s, request *const *of_slot)
{
    slot before[SLOTS];
    int at = 0;
    memcpy(before, s->slot, sizeof before);
    serve_round(s);
    wait_for_all();
    for (int i = 0; i < SLOTS; i++)
        if (s->slot[i].answer < before[i].answer)
            take_rows(f, s, of_slot[i], at++, 1);
    for (int i = 0; i < SLOTS; i++) {
        const int piece = before[i].prompt - s->slot[i].prompt;
        if (piece > 0)
            take_rows(f, s, of_slot[i], at, piece);
        at += piece;
    }
}

/* Slots that have begun a new request since. */
static int note_requests(const server *s, const bool *was_free, request **of_slot, request *all, int begun)
{
    for (int i = 0; i < SLOTS; i++)
        if (was_free[i] && (s->slot[i].prompt || s->slot[i].answer)) {
            assert_true(begun < REQUESTS);
            of_slot[i] = &all[begun++];
            of_slot[i]->o = malloc(sizeof(float) * LONGEST * HEADS * (size_t)s->head->dv);
            assert_non_null(of_slot[i]->o);
        }
    return begun;
}

static int serve_all(const struct fixture *f, server *s, request *all)
{
    request *of_slot[SLOTS] = {NULL};
    bool was_free[SLOTS];
    int begun = 0, busy;
    do {
        for (int i = 0; i < SLOTS; i++)
            was_free[i] = !s->slot[i].prompt && !s->slot[i].answer;
        busy = admit(s);
        begun = note_requests(s, was_free, of_slot, all, begun);
        if (busy)
            serve_and_note(f, s, of_slot);
    } while (busy);
    return begun;
}

/* A request's rows of an operand, where the kernel reads them. */
static void *gather(const struct fixture *f, const request *r, const void *rows, size_t bytes)
{
    char *host = malloc(bytes * (size_t)r->length);
    void *memory = allocate(bytes * (size_t)r->length);
    assert_non_null(host);
    for (int i = 0; i < r->length; i++)
        fetch(f, host + (size_t)i * bytes, (const char *)rows + (size_t)r->row[i] * bytes, bytes);
    upload(memory, host, bytes * (size_t)r->length);
    wait_for_all();
    free(host);
    return memory;
}

static void expect_one_pass(const struct fixture *f, const server *s, const request *r, double most)
{
    const fpa_description *head = s->head;
    const size_t d = (size_t)head->d, dv = (size_t)head->dv, outputs = (size_t)r->length * HEADS * dv;
    int64_t vectors[4] = {1, r->length, HEADS, head->d}, values[4] = {1, r->length, HEADS, head->dv};
    void *const memory[] = {gather(f, r, s->q, HEADS * d * s->element),
                            gather(f, r, s->k, HEADS * d * s->element),
                            gather(f, r, s->v, HEADS * dv * s->element),
                            gather(f, r, s->gate, HEADS * sizeof(float)), allocate(outputs * s->element)};
    const DLTensor q = tensor(memory[0], s->element, 4, vectors),
                   k = tensor(memory[1], s->element, 4, vectors),
                   v = tensor(memory[2], s->element, 4, values), gate = tensor(memory[3], 4, 3, vectors);
    DLTensor o = tensor(memory[4], s->element, 4, values);
    const fpa_tensors tensors = {
        .q = &q, .k = &k, .v = &v, .o = &o, .log_gate = head->gate ? &gate : NULL, .stream = stream};
    size_t size;
    fpa_error error;
    check(fpa_workspace_size(s->kernel, FPA_FORM_PARALLEL, &tensors, &size, &error), &error);
    void *workspace = allocate(size);
    check(fpa_forward(s->kernel, FPA_FORM_PARALLEL, &tensors, workspace, size, &error), &error);
    wait_for_all();
    char *numbers = malloc(outputs * s->element);
    assert_non_null(numbers);
    fetch(f, numbers, memory[4], outputs * s->element);
    double distance = 0, largest = 0;
    for (size_t i = 0; i < outputs; i++) {
        const double wanted = (double)number_at(numbers, s->element, i), gap = fabs((double)r->o[i] - wanted);
        largest = fabs(wanted) > largest ? fabs(wanted) : largest;
        distance = gap <= distance ? distance : gap; /* what is no number is too far */
    }
    if (!(largest > 0 && distance <= most * largest))
        fail_msg("%s on %s, a request of %d tokens: %g from one pass, of %g", head->name, head->target,
                 r->length, distance, largest);
    free(numbers);
    release(workspace);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        release(memory[i]);
}

/* More requests than slots, so that each slot is taken again, with a state in it. */
static void expect_answers(const struct fixture *f, const char *target)
{
    const fpa_options options = {.target = target, .cache_dir = ""};
    for (int i = 0; i < KERNELS; i++) {
        static request all[REQUESTS];
        fpa_kernel *kernel;
        fpa_error error;
        server s;
        memset(all, 0, sizeof all);
        srand(3);
        assert_ok(fpa_open_text("serve.lua", spec, names[i], &options, &kernel, &error), &error);
        start(&s, kernel, SLOTS, REQUESTS);
        assert_int_equal(serve_all(f, &s, all), REQUESTS);
        for (int r = 0; r < REQUESTS; r++) {
            expect_one_pass(f, &s, &all[r], tolerance[i]);
            free(all[r].o);
        }
        finish(&s);
        fpa_close(kernel);
    }
}

static void each_request_is_answered_as_by_one_pass(void **state)
{
    expect_answers(*state, float_target());
}

static void so_it_is_on_a_gpu(void **state)
{
    const struct fixture *f = *state;
    if (!f->ready)
        skip();
    open_gpu();
    expect_answers(f, getenv("FPA_TEST_TARGET") ? getenv("FPA_TEST_TARGET") : "cuda");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_is_answered_as_by_one_pass),
        cmocka_unit_test(so_it_is_on_a_gpu),
    };
    return cmocka_run_group_tests_name("cuda serve", tests, setup, teardown);
}
