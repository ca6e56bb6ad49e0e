/* test_backward_faults: mistakes in emitted gradients, each refused in its words; without a mistake they are accepted.
 *
 * make test: one of each refusal; make test-all: all. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "c_hurry.h"
#include "claims.h"
#include "dear.h"
#include "faults_backward.h"
#include "runtime/builder.h"
#include "runtime/verify/verify.h"

static const char spec[] =
    "return head { name = 'cube', d = 6, dv = 8, gate = true, normalize = 'sum', terms = power { degree = 3 "
    "} },\n"
    "  head { name = 'learned', d = 10, dv = 6, terms = term { trainable { name = 'W', rows = 5 },\n"
    "         diagonal { [range(1, 4)] = 1, [range(5, 10)] = sqrt2 } } },\n"
    "  head { name = 'waves', d = 6, dv = 8, positions = 1, key_mask = true, normalize = { 'sum', eps = 1e-6 "
    "},\n"
    "         terms = fourier { map = softplus, form = 'one_plus' } },\n"
    "  head { name = 'random', d = 8, dv = 6, normalize = 'sum', terms = favor { d = 8, size = 12, seed = 2, "
    "gamma = 1 / 2 } },\n"
    "  head { name = 'sketch', d = 9, dv = 5, terms = tensorsketch { d = 9, degree = 3, size = 15, seed = 2, "
    "constant = 1 / 2 } },\n"
    "  head { name = 'everywhere', d = 8, dv = 6, causal = false, normalize = { 'sum', eps = 1e-6 }, terms = "
    "power { degree = 2 } }\n";

enum { CUBE, LEARNED, WAVES, RANDOM, SKETCH, EVERYWHERE, HEADS };

/* A head's own modules: forward, and what is said of gradients is asked of another text. */
struct subject {
    const fpa_head *head;
    fpa_source source;
    fpa_module forward;
};

struct fixture {
    const char *target;
    fpa_head_list list;
    struct subject subjects[HEADS];
};

/* Vectors of 8 floats where the machine has them: what is long in it is dear. */
static const char *some_target(void)
{
    return target_runs(target_find("c:neon"))   ? "c:neon"
           : target_runs(target_find("c:avx2")) ? "c:avx2"
                                                : "c:sse2";
}

static void load(const struct subject *s, const fpa_source *source, const char *code, fpa_module *module)
{
    fpa_source text = *source;
    fpa_object object = {0};
    fpa_error error = {0};
    text.code = (char *)(uintptr_t)code;
    assert_ok(builder_c.compile(NULL, &text, &object, &error) ||
                  backend_c.load(NULL, &object, s->head->name, module, &error),
              &error);
    free(object.bytes);
}

static int setup(void **state)
{
    static struct fixture f;
    fpa_error error = {0};
    *state = &f;
    f.target = some_target();
    c_hurry();
    assert_ok(spec_load_text("faults.lua", NULL, spec, strlen(spec), &f.list, &error), &error);
    for (int i = 0; i < HEADS; i++) {
        struct subject *s = &f.subjects[i];
        fpa_source forward;
        s->head = f.list.heads[i];
        assert_ok(source_generate(s->head, f.target, &forward, &error) ||
                      source_generate_backward(s->head, f.target, &s->source, &error),
                  &error);
        load(s, &forward, forward.code, &s->forward);
        source_free(&forward);
    }
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < HEADS; i++) {
        backend_c.unload(&f->subjects[i].forward);
        source_free(&f->subjects[i].source);
    }
    head_list_free(&f->list);
    return 0;
}

static fpa_status verdict_of(const struct subject *s, const char *code, char text[GRADIENT_TEXT],
                             fpa_error *error)
{
    fpa_module module = {0};
    fpa_status status;
    load(s, &s->source, code, &module);
    status = verify_backward(s->head, &s->source.facts, &module, &s->forward, text, error);
    backend_c.unload(&module);
    return status;
}

static void gradients_as_emitted_are_accepted(void **state)
{
    const struct fixture *f = *state;
    for (int i = 0; i < HEADS; i++) {
        char text[GRADIENT_TEXT];
        fpa_error error = {0};
        assert_ok(verdict_of(&f->subjects[i], f->subjects[i].source.code, text, &error), &error);
        assert_non_null(strstr(text, i == CUBE ? "to 65536 tokens" : "to 391 tokens"));
    }
}

/* ---- memory of a device, which is the process's own ---- */

static atomic_int allocated; /* trials ask at once */

static fpa_status allocate(const fpa_module *module, size_t size, void **address, fpa_error *error)
{
    *address = aligned_alloc(256, (size + 256) / 256 * 256);
    allocated++;
    return *address ? FPA_OK : fail_memory(error);
}

static void release(const fpa_module *module, void *address)
{
    assert_non_null(module->handle);
    free(address);
    allocated--;
}

static fpa_status fill(const fpa_module *module, void *to, uint16_t unit, size_t size, fpa_error *error)
{
    (void)module, (void)error;
    for (size_t i = 0; i < size / sizeof unit; i++)
        ((uint16_t *)to)[i] = unit;
    return FPA_OK;
}

static fpa_status copy(const fpa_module *module, void *to, const void *from, size_t size, fpa_error *error)
{
    (void)module, (void)error;
    memcpy(to, from, size);
    return FPA_OK;
}

static fpa_status enter(const fpa_module *module, fpa_error *error)
{
    (void)module, (void)error;
    return FPA_OK;
}

static void leave(const fpa_module *module)
{
}

static const fpa_memory memory = {.allocate = allocate,
                                  .release = release,
                                  .fill = fill,
                                  .upload = copy,
                                  .download = copy,
                                  .enter = enter,
                                  .leave = leave,
                                  .finish = enter};

/* Modules may have gone elsewhere, to a kernel, when trials give the memory back that runs have left to each other. */
static void memory_is_released_by_modules_that_have_moved(void **state)
{
    const struct fixture *f = *state;
    const struct subject *s = &f->subjects[LEARNED];
    fpa_backend device = backend_c;
    fpa_module own = {0}, forward = s->forward;
    fpa_gradient_problems *problems;
    char text[GRADIENT_TEXT];
    fpa_error error = {0};
    device.memory = &memory;
    load(s, &s->source, s->source.code, &own);
    fpa_module backward = own;
    backward.backend = forward.backend = &device;
    assert_ok(gradient_problems_pose(s->head, &s->source.facts, 0, &problems, &error) ||
                  verify_gradients_of(problems, &backward, &forward, text, &error),
              &error);
    assert_true(allocated > 0);
    backward = forward = (fpa_module){0};
    gradient_problems_free(problems);
    assert_int_equal(allocated, 0);
    backend_c.unload(&own);
}

static int survivors(const struct fixture *f, int subject, const struct fault *list, size_t count)
{
    const struct subject *s = &f->subjects[subject];
    int survived = 0, refused = 0;
    for (size_t i = 0; i < count; i++) {
        char text[GRADIENT_TEXT];
        fpa_error error = {0};
        char *code;
        if (!fault_is_fixed(list, i))
            continue;
        code = fault_make_backward(&list[i], s->head, f->target);
        const fpa_status status = verdict_of(s, code, text, &error);
        survived += !fault_refused(&list[i], s->head->name, status, error.message);
        refused++;
        free(code);
    }
    dear_report("faults", refused, (int)count);
    return survived;
}

static void every_fault_is_refused_in_its_words(void **state)
{
    const struct fixture *f = *state;
    assert_int_equal(survivors(f, CUBE, backward_faults, sizeof backward_faults / sizeof *backward_faults) +
                         survivors(f, LEARNED, backward_matrix_faults,
                                   sizeof backward_matrix_faults / sizeof *backward_matrix_faults) +
                         survivors(f, WAVES, backward_wave_faults,
                                   sizeof backward_wave_faults / sizeof *backward_wave_faults) +
                         survivors(f, RANDOM, backward_random_faults,
                                   sizeof backward_random_faults / sizeof *backward_random_faults) +
                         survivors(f, SKETCH, backward_sketch_faults,
                                   sizeof backward_sketch_faults / sizeof *backward_sketch_faults) +
                         survivors(f, EVERYWHERE, backward_everywhere_faults,
                                   sizeof backward_everywhere_faults / sizeof *backward_everywhere_faults),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_as_emitted_are_accepted),
        cmocka_unit_test(memory_is_released_by_modules_that_have_moved),
        cmocka_unit_test(every_fault_is_refused_in_its_words),
    };

    return cmocka_run_group_tests_name("backward faults", tests, setup, teardown);
}
