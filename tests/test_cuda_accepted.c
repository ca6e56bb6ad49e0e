/* Heads at the ends of what can be computed, on CUDA targets: those that are legitimate are verified, emulated here and
 * opened on a GPU where there is one; others are refused by their name. */
#include "base/parallel.h"
#include "claims.h"
#include "dear.h"
#include "emulate/module.h"
#include "far_heads.h"
#include "gen/gen.h"
#include "gpu_problem.h"
#include "runtime/verify/verify.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>

enum {
    STRETCHED = COUNT_OF(stretched_heads),
    HARMLESS = COUNT_OF(harmless_heads),
    HEADS = STRETCHED + HARMLESS + 1
};

/* stretched_heads, harmless_heads, large_state_head. */
static void text_of(int head, char *text, size_t size)
{
    if (head < STRETCHED)
        snprintf(text, size, "return head { name = 'far', %s }", stretched_heads[head]);
    else if (head < STRETCHED + HARMLESS)
        snprintf(text, size, "return head { name = 'far', d = 6, dv = 3, chunk = 48, %s }",
                 harmless_heads[head - STRETCHED].fields);
    else
        snprintf(text, size, "return head { name = 'far', %s }", large_state_head);
}

static bool is_as_wanted(int head, fpa_status status, const fpa_error *error)
{
    const bool large_state = head == HEADS - 1;
    char text[1024];
    text_of(head, text, sizeof text);
    if (large_state ? status == FPA_REFUSED && strstr(error->message, "state_dtype f16 ends at 65504") != NULL
                    : status == FPA_OK)
        return true;
    print_error("%s: status %d: %s\n", text, (int)status, status ? error->message : "it is verified");
    return false;
}

/* ---- without a GPU ---- */

typedef struct job {
    int head;
    const char *folder; /* of all jobs */
    fpa_status status;
    fpa_error error;
} job;

static fpa_status verify_emulated(const job *j, const fpa_head *head, fpa_error *error)
{
    fpa_source source;
    emulated_module emulated = {0};
    fpa_verdict verdict;
    char folder[96];
    snprintf(folder, sizeof folder, "%s/%d", j->folder, j->head);
    mkdir(folder, 0700);
    fpa_status status = source_generate(head, "cuda:sm_90a", &source, error);
    if (!status)
        status = emulated_open(&emulated, source.code, NULL, source.facts.name, folder, error);
    if (!status)
        status = verify_module(head, &source.facts, &emulated.module, &verdict, error);
    emulated_close(&emulated);
    source_free(&source);
    return status;
}

static void run_emulated(int index, void *user)
{
    job *j = (job *)user + index;
    char text[1024];
    fpa_head_list list;
    text_of(j->head, text, sizeof text);
    j->status = spec_load_text("far.lua", NULL, text, strlen(text), &list, &j->error);
    if (!j->status)
        j->status = verify_emulated(j, list.heads[0], &j->error);
    head_list_free(&list);
}

/* One of each kind, of those that take a second or two; `make test-all` runs all. */
static bool is_fixed(int head)
{
    enum { SMALL_ROW = 3, NORMALIZED = STRETCHED + 3 };
    return head == SMALL_ROW || head == NORMALIZED || head == HEADS - 1;
}

static void emitted_kernels_are_verified(void **state)
{
    char folder[64];
    fpa_error error;
    job jobs[HEADS];
    int count = 0, wrong = 0;
    if (!compiled_possible())
        skip();
    scratch_make(folder);
    assert_ok(compiled_prepare(folder, &error), &error);
    for (int head = 0; head < HEADS; head++)
        if (dear_tests() || is_fixed(head))
            jobs[count++] = (job){.head = head, .folder = folder};
    dear_report("heads", count, HEADS);
    parallel_run(count, run_emulated, jobs);
    for (int i = 0; i < count; i++)
        wrong += !is_as_wanted(jobs[i].head, jobs[i].status, &jobs[i].error);
    scratch_remove(folder);
    assert_int_equal(wrong, 0);
}

static void products_beyond_float32_are_refused_by_that_name(void **state)
{
    static const char *const targets[] = {"cuda:sm_80", "cuda:sm_90a"};
    for (size_t i = 0; i < 2 * COUNT_OF(heads_beyond); i++) {
        char text[1024];
        fpa_head_list list;
        fpa_source source;
        fpa_error error = {0};
        snprintf(text, sizeof text, "return head { name = 'far', d = 6, dv = 3, %s }", heads_beyond[i / 2]);
        fpa_status status = spec_load_text("far.lua", NULL, text, strlen(text), &list, &error);
        if (!status)
            status = source_generate(list.heads[0], targets[i % 2], &source, &error);
        if (status != FPA_UNSUPPORTED || !strstr(error.message, "kernels compute in float32"))
            fail_msg("%s: status %d: %s", text, (int)status, error.message);
        source_free(&source);
        head_list_free(&list);
    }
}

/* ---- on a GPU ---- */

static test_gpu gpu;
static bool ready; /* there is one */

static int find_gpu(void **state)
{
    ready = gpu_open(&gpu, 0);
    return 0;
}

static int leave_gpu(void **state)
{
    gpu_close(&gpu);
    return 0;
}

static fpa_status open_on(const char *target, int head, fpa_kernel **kernel, fpa_error *error)
{
    const fpa_options options = {.target = target, .cache_dir = ""};
    char text[1024];
    text_of(head, text, sizeof text);
    return fpa_open_text("far.lua", text, NULL, &options, kernel, error);
}

static void they_open_on_a_gpu(void **state)
{
    int wrong = 0;
    if (!ready)
        skip();
    for (int head = 0; head < HEADS; head++) {
        fpa_kernel *kernel;
        fpa_error error = {0};
        wrong += !is_as_wanted(head, open_on("cuda", head, &kernel, &error), &error);
        fpa_close(kernel);
    }
    assert_int_equal(wrong, 0);
}

static void expect_near(const fpa_kernel *cuda, const fpa_kernel *c, fpa_form form, const char *fields)
{
    const problem_shape shape = {1, 100, 2, 2};
    gpu_problem there, here;
    problem_make(&there, fpa_describe(cuda), &shape, 1, &gpu);
    problem_make(&here, fpa_describe(c), &shape, 1, NULL);
    problem_run(&there, cuda, form);
    problem_run(&here, c, form);
    const double distance = operand_distance(&there.operand[OUT_O], &here.operand[OUT_O]);
    if (!(distance < 1e-4))
        fail_msg("%s, form %d: o is %g from the C kernel's", fields, (int)form, distance);
    problem_free(&there);
    problem_free(&here);
}

static void factors_whose_product_is_harmless_give_what_c_kernels_give(void **state)
{
    if (!ready)
        skip();
    for (int i = 0; i < HARMLESS; i++) {
        fpa_kernel *cuda, *c;
        fpa_error error;
        if (open_on("cuda", STRETCHED + i, &cuda, &error) ||
            open_on(float_target(), STRETCHED + i, &c, &error))
            fail_msg("%s: %s", harmless_heads[i].fields, error.message);
        for (fpa_form form = FPA_FORM_PARALLEL; form <= FPA_FORM_RECURRENT; form++)
            expect_near(cuda, c, form, harmless_heads[i].fields);
        fpa_close(cuda);
        fpa_close(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_beyond_float32_are_refused_by_that_name),
        cmocka_unit_test(emitted_kernels_are_verified),
        cmocka_unit_test(they_open_on_a_gpu),
        cmocka_unit_test(factors_whose_product_is_harmless_give_what_c_kernels_give),
    };
    return cmocka_run_group_tests_name("cuda accepted", tests, find_gpu, leave_gpu);
}
