/* Layers where memory is short, in threads, and in children that were forked. */
#include "failing_malloc.h"
#include "layer_fixture.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef MALLOC_IS_FOREIGN

static void layers_live_where_memory_is_short(void **state)
{
    print_message("skipped: a sanitizer, or a C library other than glibc, keeps its own malloc\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_live_where_memory_is_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static long live_blocks(void)
{
    return atomic_load(&fault.blocks);
}

/* From a cache that has the kernels: every third allocation of an opening fails once; those of the loader do not, which glibc
 * does not survive (test_allocations). */
static void an_opening_that_lacks_memory_says_so_and_leaves_nothing(void **state)
{
    layer_fixture *f = *state;
    enum { KEPT = 64 }; /* blocks that a locale, or the loader, keeps for good */
    long failures = 0;
    const long before = live_blocks();
    fpa_status status = FPA_NO_MEMORY;
    fault.spares_loader = true;
    for (long n = 1; status; n += 3) {
        fpa_layer *layer = NULL;
        fault.at = n;
        atomic_store(&fault.calls, 0);
        fault.armed = true;
        status = fpa_open_layer_text("layer.lua", LAYER_SPEC, NULL, &f->options, &layer, &f->error);
        fault.armed = false;
        if (status) {
            assert_int_equal(status, FPA_NO_MEMORY);
            assert_null(layer);
            failures++;
        } else if (atomic_load(&fault.calls) >= n) {
            status = FPA_NO_MEMORY; /* it went on without: a cache that cannot be read, say */
        }
        fpa_close_layer(layer);
        if (live_blocks() > before + KEPT)
            fail_msg("after failure %ld there are %ld blocks more", n, live_blocks() - before);
    }
    assert_true(failures > 50);
}

static void a_call_allocates_nothing(void **state)
{
    layer_fixture *f = *state;
    layer_operands(f, (layer_sizes){.batch = 2, .length = 70, .group = 2, .state_in = true});
    for (int form = FPA_FORM_PARALLEL; form <= FPA_FORM_RECURRENT; form++) {
        layer_forward(f, (fpa_form)form);
        fault.at = 0;
        atomic_store(&fault.calls, 0);
        fault.armed = true;
        const fpa_status status = fpa_layer_forward(f->layer, (fpa_form)form, &f->tensors, f->workspace,
                                                    f->workspace_bytes, &f->error);
        fault.armed = false;
        assert_int_equal(status, FPA_OK);
        assert_int_equal(atomic_load(&fault.calls), 0);
    }
}

/* ---- threads, children ---- */

typedef struct caller {
    const layer_fixture *f;
    float *o;
    bool fine;
} caller;

/* The fixture's call with another output and without a state. */
static void *call_again(void *argument)
{
    caller *c = argument;
    const layer_fixture *f = c->f;
    fpa_tensors tensors = f->tensors;
    DLTensor o = f->o.tensor;
    fpa_error error;
    size_t bytes = 0;
    o.data = c->o;
    tensors.o = &o;
    tensors.den = NULL;
    tensors.state_out = NULL;
    if (fpa_layer_workspace_size(f->layer, FPA_FORM_CHUNKED, &tensors, &bytes, &error))
        return NULL;
    void *workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
    c->fine = workspace &&
              fpa_layer_forward(f->layer, FPA_FORM_CHUNKED, &tensors, workspace, bytes, &error) == 0 &&
              memcmp(c->o, f->o.data, f->o.bytes) == 0;
    free(workspace);
    return NULL;
}

static void prepare(layer_fixture *f)
{
    layer_operands(f, (layer_sizes){.batch = 1, .length = 120, .group = 2, .state_in = true});
    layer_forward(f, FPA_FORM_CHUNKED);
}

static void threads_share_a_layer(void **state)
{
    enum { THREADS = 4 };
    layer_fixture *f = *state;
    caller callers[THREADS];
    pthread_t threads[THREADS];
    prepare(f);
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (caller){.f = f, .o = malloc(f->o.bytes)};
        assert_int_equal(pthread_create(&threads[i], NULL, call_again, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(callers[i].fine);
        free(callers[i].o);
    }
}

static void a_forked_child_computes_the_same(void **state)
{
    layer_fixture *f = *state;
    int status = 1;
    prepare(f);
    const pid_t child = fork();
    if (child == 0) {
        caller c = {.f = f, .o = malloc(f->o.bytes)};
        alarm(120); /* a hang ends here */
        call_again(&c);
        _exit(c.fine ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, layer_make, layer_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(an_opening_that_lacks_memory_says_so_and_leaves_nothing),
        CLAIM(a_call_allocates_nothing),
        CLAIM(threads_share_a_layer),
        CLAIM(a_forked_child_computes_the_same),
    };
    toy_hurry();
    setenv("OMP_NUM_THREADS", "2", 1);
    dl_iterate_phdr(note_range, NULL);
    return cmocka_run_group_tests(tests, layer_group, layer_ungroup);
}

#endif
