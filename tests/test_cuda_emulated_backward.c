/* Emitted gradients for CUDA on the CPU, launched by the library's own code, beside those of the formula: the trials by
 * which verification judges a module, but of short sequences. */
#include "claims.h"
#include "dear.h"
#include "emulate/backward_edge.h"
#include "emulate/backward.h"
#include "emulate/states.h"
#include "head/lift.h"
#include "runtime/builder.h"
#include "runtime/cuda/launch_backward.h"
#include "runtime/verify/trial.h"
#include "share.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What make test runs: each type, gates, normalisers, sums of terms of two factors and three, matrices, coordinates as features,
 * by warpgroups that have two slabs of features or one, and by warps; "gated" and "coordinates" are walked in segments below, "gatednorm" in
 * test_passes.c. FPA_TEST_HEAD: one alone, by its name. */
static const char *const fixed[] = {
    "half",           "manydots",  "odd",    "shared",       "tf32",   "coordinates", "coordinates_of_warps",
    "manyrows",       "widecells", "parted", "line_of_rows", "rowful", "hedgehog",    "waves",
    "waves_of_warps", "swung"};

/* Of those, whose gradients are looked at when something is not finite: products with and without tensor cores, coordinates. */
static const char *const edges[] = {"half", "coordinates", "tf32"};

static bool is_run(const fpa_head *head)
{
    const char *only = getenv("FPA_TEST_HEAD");
    return only ? strcmp(only, head->name) == 0
                : dear_tests() || is_one_of(fixed, sizeof fixed / sizeof *fixed, head->name);
}

/* What a masked key holds reaches nothing. */
static bool masks_keys(const fpa_head *head)
{
    return head->lift && head->lift->key_mask;
}

static void emitted_gradients_are_those_of_the_formula(void **state)
{
    enum {
        LONGER = 1400,
        SHORT = 70
    }; /* tokens: a sum of log-gates' gradients over many chunks; of many rows, cells or features, a chunk and some */
    static const char *const large[] = {"manyrows", "rowful", "widecells", "widepairs"};
    static backward_job jobs[BACKWARD_MOST_HEADS];
    const backward_fixture *f = *state;
    uint64_t launched = 0;
    share taken = {0};
    int wrong = 0, count = 0, chosen = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < f->list.count; i++)
        if (is_run(f->list.heads[i]) && share_take(&taken, chosen++)) {
            jobs[count] = (backward_job){.fixture = f,
                                         .head = i,
                                         .number = i,
                                         .half = 1 + count % 2,
                                         .code = backward_source(f, i)->code};
            if (!masks_keys(f->list.heads[i]) &&
                (dear_tests() || is_one_of(edges, sizeof edges / sizeof *edges, f->list.heads[i]->name)))
                jobs[count].check = backward_edge_check;
            jobs[count++].longest = i == backward_head_named(f, "gated") ? LONGER
                                    : is_one_of(large, sizeof large / sizeof *large, f->list.heads[i]->name)
                                        ? SHORT
                                        : 0;
        }
    dear_report("heads", count, f->list.count);
    share_report(&taken, "heads", chosen);
    backward_run(count, jobs);
    for (int i = 0; i < count; i++) {
        backward_report(&jobs[i], "");
        wrong += jobs[i].status != FPA_OK;
        launched |= jobs[i].launched;
    }
    assert_int_equal(wrong, 0);
    for (int i = CUDA_BACKWARD_OUTPUTS; i <= CUDA_BACKWARD_WEIGHTS; i++)
        if (!getenv("FPA_TEST_HEAD") && !share_is_part() && i != CUDA_BACKWARD_SEGMENTS &&
            !(launched >> i & 1))
            fail_msg("no head launches NAME_%s", cuda_kernel_names[i]);
}

/* On a GPU that few sequences do not fill each is walked in several segments at once. */
static void segments_of_a_walk_are_one_walk(void **state)
{
    static const char *const walked[] = {"gated", "coordinates", "learned", "fp32", "gatednorm"};
    enum {
        HEADS = sizeof walked / sizeof *walked,
        MANY = 132,
        FIXED = 2,
        LONGER = 1400,
        LITTLE = 1 << 18 /* longer parts between states */
    };
    static backward_job jobs[HEADS];
    const backward_fixture *f = *state;
    const int all = dear_tests() ? HEADS : FIXED;
    share taken = {0};
    int wrong = 0, count = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < all; i++) {
        const int head = backward_head_named(f, walked[i]);
        if (!share_take(&taken, i))
            continue;
        jobs[count++] = (backward_job){.fixture = f,
                                       .head = head,
                                       .number = BACKWARD_MOST_HEADS + i,
                                       .code = backward_source(f, head)->code,
                                       .multiprocessors = MANY,
                                       .pass_limit = i == 1 ? LITTLE : 0,
                                       .half = 2,
                                       .longest = f->list.heads[head]->gate ? LONGER : 0};
    }
    dear_report("heads", count, HEADS);
    share_report(&taken, "walks", all);
    backward_run(count, jobs);
    for (int i = 0; i < count; i++) {
        backward_report(&jobs[i], "in segments");
        wrong += jobs[i].status != FPA_OK || !(jobs[i].launched >> CUDA_BACKWARD_SEGMENTS & 1);
    }
    assert_int_equal(wrong, 0);
}

/* As portable kernels make them. */
static fpa_status open_portable(const fpa_head *head, fpa_source *source, fpa_module *module,
                                fpa_error *error)
{
    const fpa_options options = {.cache_dir = ""};
    const fpa_target *target;
    const fpa_backend *backend;
    fpa_object object = {0};
    fpa_status status = backend_choose(&options, "c", &backend, &target, error);
    if (!status)
        status = source_generate(head, target->name, source, error);
    if (!status)
        status = builder_c.compile(&options, source, &object, error);
    if (!status)
        status = backend->load(&options, &object, source->facts.name, module, error);
    free(object.bytes);
    return status;
}

static fpa_status make_states(const fpa_trial *trial, const fpa_module *module, fpa_field *states,
                              fpa_error *error)
{
    const fpa_shape *s = &trial->shape;
    const fpa_form_index form = trial->head->causal ? FORM_RECURRENT : FORM_CHUNKED;
    fpa_status status = field_make(states, NULL, trial->head->state_dtype, LAYOUT_PADDED, s->batch, 1,
                                   s->heads, trial->facts->state_elements, error);
    const fpa_run run = {.form = form, .to = s->length, .state_out = states};
    return status ? status : trial_run(trial, module, &run, error);
}

/* The largest difference, in parts of the largest number; what is not finite is one. */
static double difference(const fpa_field *a, const fpa_field *b)
{
    double most = 0, worst = 0;
    for (int64_t i = 0; i < a->batch; i++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t e = 0; e < a->entries; e++) {
                const double x = field_get(a, i, 0, h, e), y = field_get(b, i, 0, h, e);
                most = fmax(most, fabs(x));
                worst = isfinite(x - y) ? fmax(worst, fabs(x - y)) : INFINITY;
            }
    return worst / most;
}

/* Gradients begin with states that a module by hand makes, for which nothing is compiled. */
static void states_by_hand_are_those_of_portable_kernels(void **state)
{
    static const char *const some[] = {"half", "hedgehog"};
    const backward_fixture *f = *state;
    share taken = {0};
    int chosen = 0;
    for (int i = 0; i < f->list.count; i++) {
        const fpa_head *head = f->list.heads[i];
        const double rounding = head->state_dtype == FPA_F32   ? 1e-5
                                : head->state_dtype == FPA_F16 ? 2e-3
                                                               : 2e-2;
        const fpa_shape shape = {.batch = 2,
                                 .length = 5,
                                 .heads = lift_heads(head) ? lift_heads(head) : 3,
                                 .query_heads = lift_heads(head) ? lift_heads(head) : 3,
                                 .layout = LAYOUT_PADDED};
        fpa_source source = {0};
        fpa_module portable = {0}, by_hand = {0};
        fpa_trial trial = {0};
        fpa_field a = {0}, b = {0};
        fpa_error error;
        if (!(dear_tests() || is_one_of(some, sizeof some / sizeof *some, head->name)) ||
            !share_take(&taken, chosen++))
            continue;
        assert_ok(open_portable(head, &source, &portable, &error), &error);
        assert_ok(states_open(head, &by_hand, &error), &error);
        assert_ok(trial_make(&trial, head, &source.facts, shape, 1, &error), &error);
        assert_ok(make_states(&trial, &portable, &a, &error), &error);
        assert_ok(make_states(&trial, &by_hand, &b, &error), &error);
        if (!(difference(&a, &b) <= rounding))
            fail_msg("%s: states differ by %g", head->name, difference(&a, &b));
        assert_true(field_guards_hold(&b));
        field_free(&a);
        field_free(&b);
        trial_free(&trial);
        states_close(&by_hand);
        portable.backend->unload(&portable);
        source_free(&source);
    }
    share_report(&taken, "states", chosen);
}

/* A sequence without tokens: the gradient of its final state is that of its initial one, those of matrices are zero. */
static void of_no_tokens_the_state_gets_its_gradient(void **state)
{
    enum { HEADS = 2 };
    const backward_fixture *f = *state;
    const int head = backward_head_named(f, "learned");
    const fpa_facts *facts = &backward_source(f, head)->facts;
    const int64_t size = facts->state_elements;
    emulated_module emulated;
    fpa_error error;
    char folder[96];
    if (!f->ready)
        skip();
    snprintf(folder, sizeof folder, "%s/none", f->folder);
    mkdir(folder, 0700);
    assert_ok(emulated_open(&emulated, backward_source(f, head)->code, NULL, facts->name, folder, &error),
              &error);
    float *given = calloc((size_t)(HEADS * size), sizeof *given),
          *got = calloc((size_t)(HEADS * size), sizeof *got);
    float matrices[2][HEADS * 13 * 16];
    float *const d_weights[2] = {matrices[0], matrices[1]};
    const float *const weights[2] = {matrices[0], matrices[1]};
    assert_true(given && got);
    memset(matrices, 0xff, sizeof matrices);
    for (int64_t i = 0; i < HEADS * size; i++)
        given[i] = (float)(i % 1000) / 8;
    struct fpa_backward_launch a = {
        .forward = {.batch = 1, .heads = HEADS, .query_heads = HEADS, .weights = weights},
        .d_state_out = given,
        .d_state_out_stride = {HEADS * size, size},
        .d_state_in = got,
        .d_state_in_stride = {HEADS * size, size},
        .d_weights = d_weights};
    a.forward.workspace_size = cuda_backward_workspace(&emulated.module, FORM_CHUNKED, &a);
    a.forward.workspace = aligned_alloc(256, a.forward.workspace_size + 256 - a.forward.workspace_size % 256);
    assert_ok(cuda_backward(&emulated.module, FORM_CHUNKED, &a, NULL, &error), &error);
    assert_memory_equal(got, given, (size_t)(HEADS * size) * sizeof *got);
    for (int i = 0; i < HEADS * 13 * 16; i++)
        assert_true(matrices[0][i] == 0);
    for (int i = 0; i < HEADS * 16; i++)
        assert_true(matrices[1][i] == 0);
    free(a.forward.workspace);
    free(given);
    free(got);
    emulated_close(&emulated);
}

/* The emulation has all of these for itself, so that a text that lacks one runs here and is refused by a compiler. */
static void portable_texts_define_the_types_that_they_name(void **state)
{
    static const char *const heads[] = {"odd", "halflearned", "oddmoved", "coordinates"};
    const backward_fixture *f = *state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const fpa_head *head = f->list.heads[backward_head_named(f, heads[i])];
        fpa_source source;
        fpa_error error;
        if (source_generate_backward(head, "cuda:sm_80", &source, &error))
            fail_msg("%s: %s: %s", head->name, error.where, error.message);
        if (strstr(source.code, "u64") && !strstr(source.code, "typedef unsigned long long u64;"))
            fail_msg("%s: u64 is named and not defined", head->name);
        source_free(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_gradients_are_those_of_the_formula),
        cmocka_unit_test(segments_of_a_walk_are_one_walk),
        cmocka_unit_test(of_no_tokens_the_state_gets_its_gradient),
        cmocka_unit_test(states_by_hand_are_those_of_portable_kernels),
        cmocka_unit_test(portable_texts_define_the_types_that_they_name),
    };
    setenv("FPA_CFLAGS", "-O0", 0); /* of what is no user's */
    return cmocka_run_group_tests_name("cuda emulated backward", tests, backward_setup, backward_teardown);
}
