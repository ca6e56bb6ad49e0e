/* Hosts with threads: they open one head or different ones at once, share a kernel, and open and close kernels while
 * others compute. `make tsan` runs this under the thread sanitizer. */
#include "open_fixture.h"

#include <pthread.h>

#include "command/bundle.h"
#include "gen/gen.h"

enum { MANY = 64, SOME = 8, HEADS = 6 };

/* Without a log, which threads would write into together. */
static int make_silent(void **state)
{
    const int failed = make_fixture(state);
    ((fixture *)*state)->options.log = NULL;
    return failed;
}

/* Heads that go through different parts of the generator and of the verifier. */
static const struct {
    const char *name, *fields;
} heads[HEADS] = {
    {"powers", "d = 4, dv = 4, chunk = 4, terms = power { degree = 2 }"},
    {"gated",
     "d = 6, dv = 5, gate = true, normalize = 'sum', terms = tspow { d = 6, degree = 2, block = 3 }"},
    {"half", "d = 8, dv = 9, dtype = 'f16', terms = taylor { degree = 2 }"},
    {"brain", "d = 8, dv = 8, dtype = 'bf16', state_dtype = 'bf16', terms = linear {}"},
    {"matrix",
     "d = 4, dv = 3, normalize = 'max', terms = { term { dense { { 1, 2, 0, 0 }, { 0, 1, -1, 3 } } } }"},
    {"full", "d = 5, dv = 7, causal = false, terms = inhomogeneous { degree = 2, constant = 1 }"},
};

/* One thread of a test. */
typedef struct worker {
    pthread_t thread;
    const fixture *fixture;
    fpa_kernel *kernel; /* one that others use too */
    int number;         /* which thread this is */
    bool fine;
} worker;

static void run_workers(fixture *f, fpa_kernel *kernel, int count, void *(*work)(void *worker))
{
    static worker workers[MANY];
    for (int i = 0; i < count; i++) {
        workers[i] = (worker){.fixture = f, .kernel = kernel, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    for (int i = 0; i < count; i++)
        if (!workers[i].fine)
            fail_msg("thread %d of %d does not hold; it said why above", i, count);
}

static bool says(const char *what, const fpa_error *error)
{
    fprintf(stderr, "%s: %s: %s\n", what, error->where, error->message);
    return false;
}

static void *open_toy_and_use(void *argument)
{
    worker *w = argument;
    fpa_error error;
    fpa_kernel *kernel;
    if (fpa_open_text("toy", TOY_SPEC, NULL, &w->fixture->options, &kernel, &error)) {
        says("toy", &error);
        return NULL;
    }
    w->fine = toy_works(kernel);
    fpa_close(kernel);
    return NULL;
}

static void threads_that_open_one_head_compile_it_once(void **state)
{
    fixture *f = *state;
    run_workers(f, NULL, MANY, open_toy_and_use);
    assert_int_equal(compilations(f), 1);
    assert_int_equal(scratch_count(f->cache, NULL), 1);
}

/* Each with the description that its spec asks for. */
static void *open_one_of_many(void *argument)
{
    worker *w = argument;
    const int h = w->number % HEADS;
    char text[512];
    fpa_error error;
    fpa_kernel *kernel;
    snprintf(text, sizeof text, "return head { name = '%s', %s }", heads[h].name, heads[h].fields);
    if (fpa_open_text("many.lua", text, heads[h].name, &w->fixture->options, &kernel, &error)) {
        says(heads[h].name, &error);
        return NULL;
    }
    w->fine = strcmp(fpa_describe(kernel)->name, heads[h].name) == 0;
    fpa_close(kernel);
    return NULL;
}

static void threads_open_different_heads(void **state)
{
    fixture *f = *state;
    run_workers(f, NULL, 2 * HEADS, open_one_of_many);
    assert_int_equal(compilations(f), HEADS);
    assert_int_equal(scratch_count(f->cache, NULL), HEADS);
}

/* Mistakes of a spec, of a target and of a call: each thread is told its own. */
static void *make_a_mistake(void *argument)
{
    worker *w = argument;
    char text[128], name[32];
    fpa_error error = {0};
    fpa_kernel *kernel;
    snprintf(name, sizeof name, "mistake%d.lua", w->number);
    snprintf(text, sizeof text, "%.*sreturn head { nme%d = 1 }", w->number, "\n\n\n\n\n\n\n\n", w->number);
    const fpa_status status = fpa_open_text(name, text, NULL, &w->fixture->options, &kernel, &error);
    snprintf(text, sizeof text, "%s:%d", name, w->number + 1);
    snprintf(name, sizeof name, "nme%d", w->number);
    w->fine =
        status == FPA_INVALID && !kernel && strcmp(error.where, text) == 0 && strstr(error.message, name);
    if (!w->fine)
        says(name, &error);
    return NULL;
}

static void each_thread_is_told_its_own_mistake(void **state)
{
    run_workers(*state, NULL, SOME, make_a_mistake);
}

static void *open_bundle_and_use(void *argument)
{
    worker *w = argument;
    fpa_error error;
    fpa_kernel *kernel;
    if (fpa_open_bundle(w->fixture->bundle, "toy", &w->fixture->options, &kernel, &error)) {
        says("bundle", &error);
        return NULL;
    }
    w->fine = toy_works(kernel);
    fpa_close(kernel);
    return NULL;
}

static void threads_open_one_bundle(void **state)
{
    static const char *const best[] = {"c"};
    fixture *f = *state;
    fpa_head_list list;
    fpa_error error;
    assert_int_equal(spec_load_text("toy", NULL, TOY_SPEC, strlen(TOY_SPEC), &list, &error), FPA_OK);
    if (bundle_write(list.heads, 1, f->bundle, best, 1, (bundle_parts){.objects = true}, &f->options, &error))
        fail_msg("%s: %s", error.where, error.message);
    head_list_free(&list);
    run_workers(f, NULL, 2 * SOME, open_bundle_and_use);
}

/* ---- one kernel, many threads ---- */

/* Its tokens are worth several threads a head, which wait for each other at every chunk. */
#define TEAM_SPEC                                                                                            \
    "return head { name = 'team', d = 32, dv = 32, gate = true, normalize = 'sum', terms = power { degree "  \
    "= 2 } }"

static fpa_kernel *open_spec(const fixture *f, const char *spec)
{
    fpa_error error;
    fpa_kernel *kernel;
    assert_ok(fpa_open_text("text.lua", spec, NULL, &f->options, &kernel, &error), &error);
    return kernel;
}

/* A call of some hundred tokens of one head: o, then the state. */
enum { TOKENS = 200, WIDEST = 32, COUNT = TOKENS * WIDEST, STATE_MOST = 600 * (WIDEST + 1) };

typedef struct long_call {
    float in[COUNT], gate[TOKENS], out[COUNT + STATE_MOST];
    fpa_status status;
    fpa_error error;
} long_call;

static void call_long(const fpa_kernel *kernel, fpa_form form, long_call *call)
{
    const fpa_description *is = fpa_describe(kernel);
    int64_t shape[4] = {1, TOKENS, 1, is->d}, state_shape[3] = {1, 1, is->state_elements};
    *call = (long_call){.status = FPA_INVALID};
    if (is->d != is->dv || is->d > WIDEST || is->state_elements > STATE_MOST)
        return;
    for (int i = 0; i < COUNT; i++)
        call->in[i] = (float)(i % 1009) / 500 - 1;
    DLTensor x = toy_tensor(call->in, 4, shape), o = toy_tensor(call->out, 4, shape),
             gate = toy_tensor(call->gate, 3, shape), state = toy_tensor(call->out + COUNT, 3, state_shape);
    const fpa_tensors operands = {
        .q = &x, .k = &x, .v = &x, .o = &o, .log_gate = is->gate ? &gate : NULL, .state_out = &state};
    call->status = toy_forward(kernel, form, &operands, &call->error);
}

static long_call alone[FPA_FORM_RECURRENT + 1]; /* what one thread computed */

static void *compute_with_a_shared_kernel(void *argument)
{
    worker *w = argument;
    long_call *call = malloc(sizeof *call);
    w->fine = true;
    for (int i = 0; w->fine && i <= FPA_FORM_RECURRENT; i++) {
        const fpa_form form = (fpa_form)((w->number + i) % (FPA_FORM_RECURRENT + 1));
        call_long(w->kernel, form, call);
        w->fine = call->status ? says("a call", &call->error)
                               : memcmp(call->out, alone[form].out, sizeof call->out) == 0;
    }
    free(call);
    return NULL;
}

static void threads_that_share_a_kernel_get_the_bits_of_one(void **state)
{
    static const char *const specs[] = {TOY_SPEC, TEAM_SPEC};
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        fpa_kernel *kernel = open_spec(f, specs[i]);
        for (fpa_form form = FPA_FORM_PARALLEL; form <= FPA_FORM_RECURRENT; form++) {
            call_long(kernel, form, &alone[form]);
            assert_ok(alone[form].status, &alone[form].error);
        }
        run_workers(f, kernel, SOME, compute_with_a_shared_kernel);
        fpa_close(kernel);
    }
}

/* Even ones open and close kernels of their own meanwhile. */
static void *compute_or_open(void *argument)
{
    worker *w = argument;
    w->fine = true;
    for (int i = 0; w->fine && i < 3; i++)
        if (w->number % 2)
            w->fine = toy_works(w->kernel);
        else
            open_toy_and_use(w);
    return NULL;
}

static void kernels_come_and_go_while_others_compute(void **state)
{
    fixture *f = *state;
    fpa_kernel *kernel = open_spec(f, TOY_SPEC);
    run_workers(f, kernel, SOME, compute_or_open);
    fpa_close(kernel);
    assert_int_equal(compilations(f), 1);
}

#undef CLAIM
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_silent, drop_fixture)

int main(void)
{
    toy_hurry();
    setenv("OMP_NUM_THREADS", "3", 1);
    const struct CMUnitTest tests[] = {
        CLAIM(threads_that_open_one_head_compile_it_once),
        CLAIM(threads_open_different_heads),
        CLAIM(each_thread_is_told_its_own_mistake),
        CLAIM(threads_open_one_bundle),
        CLAIM(threads_that_share_a_kernel_get_the_bits_of_one),
        CLAIM(kernels_come_and_go_while_others_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
