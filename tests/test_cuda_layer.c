/* A layer's launches on a GPU: in which streams, behind which events, and what becomes of them when a call of the driver
 * fails. The driver is a library that records. */
#include "claims.h"
#include "fake_driver.h"
#include "runtime/cuda/module.h"
#include "runtime/together.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 3, WORKSPACE = 1 << 20 };

/* Modules of a layer, and a step of each. */
typedef struct layer {
    fpa_module modules[COUNT];
    fpa_part parts[COUNT];
    void *handle, *workspace;
    fpa_error error;
} layer;

enum { BYTES = 300 };

static size_t workspace_of(const fpa_module *module, int form, const struct fpa_launch *launch,
                           const fpa_candidate *candidate)
{
    (void)module, (void)form, (void)launch, (void)candidate;
    return BYTES;
}

/* Sequences of the parts, in the order in which they are launched. */
static int64_t launched[COUNT];
static int launches;

/* One launch, into the stream that a part is given. */
static fpa_status launch_once(const fpa_module *module, int form, const struct fpa_launch *launch,
                              const fpa_candidate *candidate, void *stream, fpa_error *error)
{
    const struct fpa_cuda_module *cuda = module->handle;
    launched[launches++ % COUNT] = candidate ? launch->batch : 0;
    const CUresult result =
        cuda->driver->cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, (CUstream)stream, NULL, NULL);
    if (result)
        return driver_fail(cuda->driver, result, cuda->name, "a launch", error);
    return launch->workspace_size >= BYTES ? FPA_OK : fail_memory(error);
}

static int open_layer(layer *l)
{
    const fpa_module *modules[COUNT];
    fake_with_geometry();
    for (int i = 0; i < COUNT; i++) {
        HOLDS(load(0, &l->modules[i], &l->error) == FPA_OK);
        l->modules[i].workspace = workspace_of;
        l->modules[i].forward = launch_once;
        modules[i] = &l->modules[i];
        l->parts[i] = (fpa_part){
            .module = modules[i],
            .form = FORM_RECURRENT,
            .work = COUNT - i,
            .chosen = true,
            .fastest.cost.seconds = i + 1, /* the last one takes longest, whatever its work */
            .launch = {
                .batch = i + 1, .length = 1, .query_heads = 2, .heads = 2, .state_in = l, .state_out = l}};
    }
    l->workspace = aligned_alloc(256, WORKSPACE);
    HOLDS(l->workspace);
    return backend_cuda.together->open(modules, COUNT, &l->handle, &l->error);
}

static int close_layer(layer *l)
{
    const struct fake_state *f = fake();
    backend_cuda.together->close(l->handle);
    HOLDS(f->streams == 0 && f->events == 0);
    for (int i = 0; i < COUNT; i++)
        backend_cuda.unload(&l->modules[i]);
    HOLDS(nothing_is_held(f));
    free(l->workspace);
    return 0;
}

/* As the caller of a call has it: the device's context is the current one. */
static fpa_status forward_failing(layer *l, int count, int fail_at)
{
    struct fake_state *f = fake();
    f->trace[0] = '\0';
    if (l->modules[0].backend->memory->enter(&l->modules[0], &l->error))
        return FPA_LOAD;
    f->calls = 0;
    f->fail_at = fail_at;
    const fpa_status status =
        backend_cuda.together->forward(l->handle, l->parts, count, l->workspace, WORKSPACE, NULL, &l->error);
    f->fail_at = 0;
    l->modules[0].backend->memory->leave(&l->modules[0]);
    return status;
}

static fpa_status forward(layer *l, int count)
{
    return forward_failing(l, count, 0);
}

static int parts_fork_and_join(void)
{
    layer l = {.handle = NULL};
    HOLDS(open_layer(&l) == FPA_OK);
    HOLDS(forward(&l, COUNT) == FPA_OK);
    HOLDS(strcmp(fake()->trace, "record e1 on c;wait s1 for e1;wait s2 for e1;"
                                "launch on c;launch on s1;launch on s2;"
                                "record e2 on s1;wait c for e2;record e3 on s2;wait c for e3;") == 0);
    HOLDS(launches == COUNT && launched[0] == 3 && launched[1] == 2 && launched[2] == 1);
    HOLDS(l.parts[0].launch.workspace != l.parts[1].launch.workspace);
    return close_layer(&l);
}

static void the_part_that_takes_longest_stays_and_the_others_fork(void **state)
{
    in_child(fake_path, parts_fork_and_join);
}

static int one_part_does_not_fork(void)
{
    layer l = {.handle = NULL};
    HOLDS(open_layer(&l) == FPA_OK);
    HOLDS(forward(&l, 1) == FPA_OK);
    HOLDS(strstr(fake()->trace, "launch on c;") && !strstr(fake()->trace, "record"));
    HOLDS(forward(&l, 0) == FPA_OK && !fake()->trace[0]);
    return close_layer(&l);
}

static void a_part_alone_stays_in_the_callers_stream(void **state)
{
    in_child(fake_path, one_part_does_not_fork);
}

static int captures_are_kept_apart(void)
{
    layer l = {.handle = NULL};
    struct fake_state *f = fake();
    HOLDS(open_layer(&l) == FPA_OK);
    f->capture = 7; /* of another stream: ours cannot go there */
    HOLDS(forward(&l, COUNT) == FPA_OK);
    HOLDS(!strstr(f->trace, "record") && !strstr(f->trace, "on s"));
    f->callers_capture = 8;
    HOLDS(forward(&l, COUNT) == FPA_OK && !strstr(f->trace, "record"));
    f->callers_capture = 7; /* a second layer of one graph */
    HOLDS(forward(&l, COUNT) == FPA_OK && strstr(f->trace, "launch on s2;"));
    return close_layer(&l);
}

static void streams_of_another_capture_are_left_alone(void **state)
{
    in_child(fake_path, captures_are_kept_apart);
}

/* What was forked is joined all the same, or a capture could not end. */
static int failures_are_joined(void)
{
    layer l = {.handle = NULL};
    struct fake_state *f = fake();
    int failures = 0;
    HOLDS(open_layer(&l) == FPA_OK);
    for (int n = 1;; n++) {
        const fpa_status status = forward_failing(&l, COUNT, n);
        if (status == FPA_OK)
            break;
        failures++;
        HOLDS(status == FPA_DEVICE && *l.error.message);
        if (strstr(f->trace, "launch"))
            HOLDS(strstr(f->trace, "record e2 on s1;") && strstr(f->trace, "record e3 on s2;"));
    }
    HOLDS(failures > 10);
    return close_layer(&l);
}

static void what_forked_is_joined_whatever_fails(void **state)
{
    in_child(fake_path, failures_are_joined);
}

static int openings_leave_nothing(void)
{
    struct fake_state *f = fake_with_geometry();
    layer l = {.handle = NULL};
    const fpa_module *modules[COUNT] = {&l.modules[0], &l.modules[0], &l.modules[0]};
    int failures = 0;
    HOLDS(load(0, &l.modules[0], &l.error) == FPA_OK);
    for (int n = 1;; n++) {
        f->calls = 0;
        f->fail_at = n;
        const fpa_status status = backend_cuda.together->open(modules, COUNT, &l.handle, &l.error);
        f->fail_at = 0;
        if (status == FPA_OK)
            break;
        failures++;
        HOLDS(!l.handle && f->streams == 0 && f->events == 0 && f->depth == 0);
        HOLDS(status == FPA_DEVICE && *l.error.message);
    }
    HOLDS(failures == 6); /* a context, a fork, two streams with an event each */
    backend_cuda.together->close(l.handle);
    HOLDS(f->streams == 0 && f->events == 0);
    backend_cuda.unload(&l.modules[0]);
    HOLDS(nothing_is_held(f));
    return 0;
}

static void when_a_stream_cannot_be_made_nothing_stays(void **state)
{
    in_child(fake_path, openings_leave_nothing);
}

static int small_workspaces_are_refused(void)
{
    layer l = {.handle = NULL};
    HOLDS(open_layer(&l) == FPA_OK);
    const size_t needed = backend_cuda.together->workspace(l.parts, COUNT);
    HOLDS(needed == COUNT * 512);
    HOLDS(backend_cuda.together->forward(l.handle, l.parts, COUNT, l.workspace, needed - 1, NULL, &l.error) ==
          FPA_INVALID);
    return close_layer(&l);
}

static void every_part_has_a_workspace_of_its_own(void **state)
{
    in_child(fake_path, small_workspaces_are_refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_part_that_takes_longest_stays_and_the_others_fork),
        cmocka_unit_test(a_part_alone_stays_in_the_callers_stream),
        cmocka_unit_test(streams_of_another_capture_are_left_alone),
        cmocka_unit_test(what_forked_is_joined_whatever_fails),
        cmocka_unit_test(when_a_stream_cannot_be_made_nothing_stays),
        cmocka_unit_test(every_part_has_a_workspace_of_its_own),
    };
    return cmocka_run_group_tests(tests, compile_fake, remove_fake);
}
