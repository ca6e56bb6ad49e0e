#include "claims.h"
#include "toy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* One kernel for all claims; no cache, so that nothing is left behind. */
static int open_kernel(void **state)
{
    static const fpa_options options = {.cache_dir = ""};
    fpa_error error;
    fpa_kernel *kernel;
    fpa_status status = fpa_open_text("toy.lua", TOY_SPEC, NULL, &options, &kernel, &error);
    if (status)
        print_error("%s: %s\n", error.where, error.message);
    *state = kernel;
    return status != FPA_OK;
}

static int close_kernel(void **state)
{
    fpa_close(*state);
    return 0;
}

/* One kernel, several threads, a workspace and an output for each. */
static void *use(void *argument)
{
    static const int rounds = 20;
    fpa_kernel *kernel = *(fpa_kernel **)argument;
    bool fine = true;
    for (int i = 0; i < rounds; i++)
        fine = toy_works(kernel) && fine;
    return fine ? argument : NULL;
}

static void threads_may_use_one_kernel_at_once(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    fpa_kernel *kernel = *state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, &kernel), 0);
    for (int i = 0; i < THREADS; i++) {
        void *fine;
        assert_int_equal(pthread_join(threads[i], &fine), 0);
        assert_non_null(fine);
    }
}

static void a_wrong_workspace_is_refused_before_anything_is_written(void **state)
{
    toy_call call;
    fpa_error error;
    size_t size;
    fpa_kernel *kernel = *state;
    toy_fill(&call);
    assert_int_equal(fpa_workspace_size(kernel, FPA_FORM_CHUNKED, &call.operands, &size, &error), FPA_OK);
    if (size > 0) {
        char *bytes = aligned_alloc(64, (size + 127) / 64 * 64);
        assert_int_equal(fpa_forward(kernel, FPA_FORM_CHUNKED, &call.operands, bytes, size - 1, &error),
                         FPA_INVALID);
        assert_int_equal(fpa_forward(kernel, FPA_FORM_CHUNKED, &call.operands, NULL, size, &error),
                         FPA_INVALID);
        assert_int_equal(fpa_forward(kernel, FPA_FORM_CHUNKED, &call.operands, bytes + 4, size, &error),
                         FPA_INVALID);
        assert_string_equal(error.where, "workspace");
        free(bytes);
        assert_true(isnan(call.o[0]));
    }
}

static void steps_continue_what_a_prefill_began(void **state)
{
    toy_call call;
    fpa_error error;
    enum { PROMPT = 6 };
    fpa_kernel *kernel = *state;
    const fpa_description *toy = fpa_describe(kernel);
    int64_t state_shape[] = {TOY_BATCH, TOY_HEADS, toy->features, TOY_WIDTH};
    float *memory = calloc((size_t)(TOY_BATCH * TOY_HEADS * toy->state_elements), sizeof *memory);
    DLTensor tensor = toy_tensor(memory, 4, state_shape);
    toy_fill(&call);
    int64_t strides[] = {TOY_TOKENS * TOY_HEADS * TOY_WIDTH, TOY_HEADS * TOY_WIDTH, TOY_WIDTH, 1};
    for (int i = 0; i < 4; i++)
        call.tensors[i].strides = strides;
    assert_int_equal(fpa_step(kernel, &call.operands, NULL, 0, &error), FPA_INVALID);
    assert_string_equal(error.where, "state_in");
    call.shape[1] = PROMPT;
    call.operands.state_out = &tensor;
    assert_int_equal(toy_forward(kernel, FPA_FORM_CHUNKED, &call.operands, &error), FPA_OK);
    call.operands.state_in = &tensor;
    call.shape[1] = 1;
    for (int t = PROMPT; t < TOY_TOKENS; t++) {
        for (int i = 0; i < 4; i++)
            call.tensors[i].byte_offset = (uint64_t)(t * TOY_HEADS * TOY_WIDTH) * sizeof(float);
        assert_int_equal(toy_forward(kernel, FPA_FORM_RECURRENT, &call.operands, &error), FPA_OK);
    }
    assert_true(toy_is_right(&call));
    free(memory);
}

static void the_automatic_form_follows_length_and_state(void **state)
{
    fpa_kernel *kernel = *state;
    int64_t crossover = fpa_describe(kernel)->crossover;
    assert_int_equal(fpa_choose_form(kernel, 1, 1), FPA_FORM_RECURRENT);
    assert_int_equal(fpa_choose_form(kernel, 1, 0), crossover == 1 ? FPA_FORM_CHUNKED : FPA_FORM_PARALLEL);
    if (crossover > 2)
        assert_int_equal(fpa_choose_form(kernel, crossover - 1, 0), FPA_FORM_PARALLEL);
    if (crossover > 1)
        assert_int_equal(fpa_choose_form(kernel, crossover, 0), FPA_FORM_CHUNKED);
}

static void a_head_without_a_mask_has_no_recurrent_form(void **state)
{
    toy_call call;
    fpa_error error;
    fpa_kernel *kernel;
    static const fpa_options options = {.cache_dir = ""};
    static const char text[] =
        "return head { name = 'all', d = 4, dv = 4, causal = false, terms = linear() }";
    assert_int_equal(fpa_open_text("text.lua", text, NULL, &options, &kernel, &error), FPA_OK);
    toy_fill(&call);
    const int64_t crossover = fpa_describe(kernel)->crossover;
    assert_true(crossover > 1);
    assert_int_equal(fpa_choose_form(kernel, crossover - 1, 0), FPA_FORM_PARALLEL);
    assert_int_equal(fpa_choose_form(kernel, crossover, 0), FPA_FORM_CHUNKED);
    assert_int_equal(fpa_choose_form(kernel, 1, 1), FPA_FORM_PARALLEL);
    assert_int_equal(toy_forward(kernel, FPA_FORM_RECURRENT, &call.operands, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "causal = false"));
    assert_int_equal(toy_forward(kernel, FPA_FORM_CHUNKED, &call.operands, &error), FPA_OK);
    assert_int_equal(toy_forward(kernel, (fpa_form)7, &call.operands, &error), FPA_UNSUPPORTED);
    assert_int_equal(toy_forward(kernel, FPA_FORM_AUTO, &call.operands, &error), FPA_OK);
    fpa_close(kernel);
}

static void nothing_to_compute_is_no_error(void **state)
{
    fpa_error error;
    fpa_kernel *kernel = *state;
    for (int axis = 0; axis < 3; axis++)
        for (fpa_form form = FPA_FORM_AUTO; form <= FPA_FORM_RECURRENT; form++) {
            toy_call call;
            toy_fill(&call);
            call.shape[axis] = 0;
            assert_int_equal(toy_forward(kernel, form, &call.operands, &error), FPA_OK);
            assert_true(isnan(call.o[0]));
        }
}

/* The tensors are checked before anything is computed: no form touches the output. */
static void a_wrong_tensor_is_refused_in_every_call(void **state)
{
    toy_call call;
    fpa_error error;
    size_t size;
    fpa_kernel *kernel = *state;
    toy_fill(&call);
    int64_t shape[] = {TOY_BATCH, TOY_TOKENS, TOY_HEADS - 1, TOY_WIDTH};
    call.tensors[2].shape = shape;
    for (fpa_form form = FPA_FORM_AUTO; form <= FPA_FORM_RECURRENT; form++) {
        assert_int_equal(fpa_workspace_size(kernel, form, &call.operands, &size, &error), FPA_INVALID);
        assert_int_equal(fpa_forward(kernel, form, &call.operands, NULL, 0, &error), FPA_INVALID);
        assert_string_equal(error.where, "v");
        assert_int_equal(fpa_forward(kernel, form, NULL, NULL, 0, &error), FPA_INVALID);
    }
    assert_true(isnan(call.o[0]));
}

static void what_is_not_given_is_refused_by_its_name(void **state)
{
    toy_call call;
    fpa_error error = {0};
    size_t size;
    fpa_kernel *kernel = *state, *opened = kernel;
    toy_fill(&call);
    assert_int_equal(fpa_open(NULL, NULL, NULL, &opened, &error), FPA_INVALID);
    assert_null(opened);
    assert_string_equal(error.where, "spec");
    assert_int_equal(fpa_open("no.lua", NULL, NULL, NULL, &error), FPA_INVALID);
    assert_string_equal(error.where, "kernel");
    assert_int_equal(fpa_open_text(NULL, TOY_SPEC, NULL, NULL, &opened, &error), FPA_INVALID);
    assert_string_equal(error.where, "name");
    assert_int_equal(fpa_open_text("toy.lua", NULL, NULL, NULL, &opened, &error), FPA_INVALID);
    assert_string_equal(error.where, "text");
    assert_int_equal(fpa_open_text("toy.lua", TOY_SPEC, NULL, NULL, NULL, &error), FPA_INVALID);
    assert_string_equal(error.where, "kernel");
    assert_int_equal(fpa_open_bundle(NULL, NULL, NULL, &opened, &error), FPA_INVALID);
    assert_string_equal(error.where, "folder");
    assert_int_equal(fpa_open_bundle("nowhere", NULL, NULL, NULL, &error), FPA_INVALID);
    assert_string_equal(error.where, "kernel");
    assert_int_equal(fpa_workspace_size(NULL, FPA_FORM_AUTO, &call.operands, &size, &error), FPA_INVALID);
    assert_string_equal(error.where, "kernel");
    assert_int_equal(fpa_workspace_size(kernel, FPA_FORM_AUTO, &call.operands, NULL, &error), FPA_INVALID);
    assert_string_equal(error.where, "bytes");
    assert_int_equal(fpa_forward(NULL, FPA_FORM_AUTO, &call.operands, NULL, 0, &error), FPA_INVALID);
    assert_string_equal(error.where, "kernel");
    assert_int_equal(fpa_step(NULL, NULL, NULL, 0, &error), FPA_INVALID);
    assert_int_equal(fpa_step(kernel, NULL, NULL, 0, &error), FPA_INVALID);
    assert_string_equal(error.where, "tensors");
    assert_int_equal(fpa_open(NULL, NULL, NULL, NULL, NULL), FPA_INVALID); /* and without an error */
    assert_null(fpa_describe(NULL));
    assert_int_equal(fpa_choose_form(NULL, 1, 1), FPA_FORM_AUTO);
    fpa_close(NULL);
}

/* The workspace is written before anything else is: no byte of it may be an operand's. */
static void a_workspace_that_overlaps_a_tensor_is_refused(void **state)
{
    toy_call call;
    fpa_error error;
    size_t size = 0;
    const fpa_kernel *kernel = *state;
    static const char *const names[] = {"q", "k", "v", "o"};
    for (fpa_form form = FPA_FORM_PARALLEL; form <= FPA_FORM_RECURRENT; form++) {
        toy_fill(&call);
        assert_int_equal(fpa_workspace_size(kernel, form, &call.operands, &size, &error), FPA_OK);
        if (size == 0)
            continue;
        const size_t room = (size + 63) / 64 * 64, bytes = (sizeof call.q + 63) / 64 * 64;
        char *memory = aligned_alloc(64, room + bytes);
        for (int i = 0; i < 4; i++) { /* a tensor that begins within the last 64 bytes of the workspace */
            void *before = call.tensors[i].data;
            call.tensors[i].data = memory + size / 4 * 4 - 4;
            assert_int_equal(fpa_forward(kernel, form, &call.operands, memory, room, &error), FPA_INVALID);
            assert_string_equal(error.where, "workspace");
            assert_non_null(strstr(error.message, "overlaps"));
            assert_non_null(strstr(error.message, names[i]));
            call.tensors[i].data = memory + room; /* right behind it */
            memcpy(memory + room, before, sizeof call.q);
            assert_int_equal(fpa_forward(kernel, form, &call.operands, memory, room, &error), FPA_OK);
            memcpy(before, memory + room, sizeof call.q);
            call.tensors[i].data = before;
        }
        assert_true(toy_is_right(&call));
        free(memory);
    }
}

/* An array of a language. */
typedef struct object {
    DLTensor tensor;
    int64_t shape[4], strides[4];
    bool is_readable;
} object;

static int read_object(void *of, DLTensor *tensor)
{
    object *mine = of;
    *tensor = mine->tensor;
    tensor->shape = mine->shape;
    tensor->strides = mine->strides;
    return mine->is_readable ? 0 : -1;
}

static int locked = 1; /* the interpreter's lock */

static void *release_lock(void)
{
    locked--;
    return &locked;
}

static void acquire_lock(void *lock)
{
    ++*(int *)lock;
}

/* Objects of the call's four tensors, in memory of their own that begins with the same numbers. */
static void make_objects(const toy_call *call, float memory[4][TOY_ELEMENTS], object objects[4])
{
    for (int i = 0; i < 4; i++) {
        objects[i] = (object){.tensor = call->tensors[i], .is_readable = true};
        memcpy(memory[i], call->tensors[i].data, sizeof memory[i]);
        objects[i].tensor.data = memory[i];
        memcpy(objects[i].shape, call->shape, sizeof call->shape);
        memcpy(objects[i].strides, call->tensors[i].strides, sizeof objects[i].strides);
    }
}

/* Each object in turn becomes another one than the call was prepared for, in each thing that a DLTensor says. */
static void changed_objects_are_told(const fpa_object_call *ready, object objects[4])
{
    for (int i = 0; i < 4; i++)
        for (int change = 0; change < 7; change++) {
            object before = objects[i], *now = &objects[i];
            now->is_readable = change != 0;
            now->shape[1] -= change == 1;
            now->strides[2] += change == 2;
            now->tensor.dtype.bits = change == 3 ? 16 : 32;
            now->tensor.dtype.code = change == 4 ? kDLInt : kDLFloat;
            now->tensor.device.device_id = change == 5;
            now->tensor.ndim -= change == 6;
            assert_int_equal(
                fpa_forward_objects(ready, &objects[0], &objects[1], &objects[2], NULL, &objects[3], NULL),
                FPA_OBJECTS_CHANGED);
            objects[i] = before;
        }
}

static void objects_are_computed_where_they_lie_and_others_are_told(void **state)
{
    toy_call call;
    fpa_error error = {0};
    size_t size = 0;
    object objects[4];
    static float memory[4][TOY_ELEMENTS];
    int64_t strides[] = {TOY_TOKENS * TOY_HEADS * TOY_WIDTH, TOY_HEADS * TOY_WIDTH, TOY_WIDTH, 1};
    toy_fill(&call);
    for (int i = 0; i < 4; i++)
        call.tensors[i].strides = strides;
    make_objects(&call, memory, objects);
    assert_int_equal(fpa_workspace_size(*state, FPA_FORM_AUTO, &call.operands, &size, &error), FPA_OK);
    char *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    const fpa_object_call ready = {read_object, NULL,          release_lock,   acquire_lock, *state,
                                   NULL,        FPA_FORM_AUTO, &call.operands, size,         &error};
    changed_objects_are_told(&ready, objects);
    assert_ptr_equal(call.tensors[0].data, call.q); /* as it was */
    assert_int_equal(
        fpa_forward_objects(&ready, &objects[0], &objects[1], &objects[2], NULL, &objects[3], workspace),
        FPA_OK);
    memcpy(call.o, memory[3], sizeof call.o);
    assert_true(toy_is_right(&call));
    assert_int_equal(locked, 1);
    assert_int_equal(
        fpa_forward_objects(&ready, &objects[0], &objects[1], &objects[2], NULL, &objects[0], workspace),
        FPA_INVALID);
    assert_non_null(strstr(error.message, "overlap"));
    free(workspace);
}

/* 2^33 sequences of no token: no memory is behind the tensors, and nobody visits them one by one. */
static void sequences_without_tokens_take_no_time(void **state)
{
    toy_call call;
    fpa_error error;
    const fpa_kernel *kernel = *state;
    toy_fill(&call);
    call.shape[0] = (int64_t)1 << 33;
    call.shape[1] = 0;
    const clock_t begin = clock();
    alarm(60);
    for (fpa_form form = FPA_FORM_AUTO; form <= FPA_FORM_RECURRENT; form++)
        assert_int_equal(toy_forward(kernel, form, &call.operands, &error), FPA_OK);
    alarm(0);
    assert_true(clock() - begin < CLOCKS_PER_SEC);
    assert_true(isnan(call.o[0]));
}

/* The call is refused, and the message is about `what`. */
#define REFUSES(what, ...)                                                                                   \
    do {                                                                                                     \
        fpa_error error = {0};                                                                               \
        assert_int_equal(__VA_ARGS__, FPA_INVALID);                                                          \
        assert_string_equal(error.where, what);                                                              \
    } while (0)

static void gradients_drafts_and_layers_refuse_it_too(void **state)
{
    const fpa_tensors none = {0};
    const fpa_gradient_tensors no_gradient = {0};
    const fpa_accepted accepted = {0};
    const fpa_kernel *kernel = *state;
    const int heads = 1;
    fpa_layer *layer;
    size_t size;
    REFUSES("kernel", fpa_backward_workspace(NULL, FPA_FORM_AUTO, &no_gradient, &size, &error));
    REFUSES("bytes", fpa_backward_workspace(kernel, FPA_FORM_AUTO, &no_gradient, NULL, &error));
    REFUSES("kernel", fpa_backward(NULL, FPA_FORM_AUTO, &no_gradient, NULL, 0, &error));
    REFUSES("kernel", fpa_draft_workspace(NULL, &none, &accepted, &size, &error));
    REFUSES("tensors", fpa_draft_workspace(kernel, NULL, &accepted, &size, &error));
    REFUSES("bytes", fpa_draft_workspace(kernel, &none, &accepted, NULL, &error));
    REFUSES("kernel", fpa_draft(NULL, &none, &accepted, NULL, 0, &error));
    REFUSES("tensors", fpa_draft(kernel, NULL, &accepted, NULL, 0, &error));
    REFUSES("kernel", fpa_accept(NULL, &none, &accepted, NULL, 0, &error));
    REFUSES("tensors", fpa_accept(kernel, NULL, &accepted, NULL, 0, &error));
    REFUSES("accepted", fpa_accept(kernel, &none, NULL, NULL, 0, &error));
    REFUSES("spec", fpa_open_layer(NULL, NULL, NULL, &layer, &error));
    REFUSES("opened", fpa_open_layer("no.lua", NULL, NULL, NULL, &error));
    REFUSES("text", fpa_open_layer_text("no.lua", NULL, NULL, NULL, &layer, &error));
    REFUSES("name", fpa_join_layer(NULL, &kernel, &heads, 1, &layer, &error));
    REFUSES("heads", fpa_join_layer("layer", &kernel, NULL, 1, &layer, &error));
    REFUSES("joined", fpa_join_layer("layer", &kernel, &heads, 1, NULL, &error));
    REFUSES("layer", fpa_layer_workspace_size(NULL, FPA_FORM_AUTO, &none, &size, &error));
    REFUSES("layer", fpa_layer_backward(NULL, FPA_FORM_AUTO, &no_gradient, NULL, 0, &error));
    assert_int_equal(fpa_layer_step(NULL, NULL, NULL, 0, NULL), FPA_INVALID); /* and without an error */
}

int main(void)
{
    toy_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_may_use_one_kernel_at_once),
        cmocka_unit_test(a_wrong_workspace_is_refused_before_anything_is_written),
        cmocka_unit_test(steps_continue_what_a_prefill_began),
        cmocka_unit_test(the_automatic_form_follows_length_and_state),
        cmocka_unit_test(a_head_without_a_mask_has_no_recurrent_form),
        cmocka_unit_test(nothing_to_compute_is_no_error),
        cmocka_unit_test(a_wrong_tensor_is_refused_in_every_call),
        cmocka_unit_test(a_workspace_that_overlaps_a_tensor_is_refused),
        cmocka_unit_test(objects_are_computed_where_they_lie_and_others_are_told),
        cmocka_unit_test(sequences_without_tokens_take_no_time),
        cmocka_unit_test(what_is_not_given_is_refused_by_its_name),
        cmocka_unit_test(gradients_drafts_and_layers_refuse_it_too),
    };
    return cmocka_run_group_tests(tests, open_kernel, close_kernel);
}
