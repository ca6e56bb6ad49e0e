/* Verification must be able to fail on a GPU too: emitted CUDA kernels with one mistake each are refused.
 * That the mistakes can be made in what is emitted today is tested everywhere; the rest is skipped where
 * there is no GPU. */
#include "gen/plan/cuda/cuda.h"
#include "runtime/cuda/build.h"
#include "base/parallel.h"
#include "runtime/verify/verify.h"
#include "claims.h"
#include "faults_cuda.h"
#include "gpu_problem.h"

#include <stdlib.h>
#include <string.h>

static const char spec[] =
    "local function small(name, dtype)\n"
    "  return head { name = name, d = 16, dv = 16, chunk = 64, gate = true, normalize = 'sum',\n"
    "                dtype = dtype, terms = tspow { d = 16, degree = 2, block = 4 } }\n"
    "end\n"
    "return { small('small_f32', 'f32'), small('small_bf16', 'bf16'), small('small_f16', 'f16') }\n";

enum { HEADS = 3, FAULTS = sizeof cuda_faults / sizeof *cuda_faults };

struct fixture {
    bool ready; /* there is a GPU */
    test_gpu gpu;
    const fpa_target *target;
    fpa_head_list list;
    fpa_source source[HEADS];
};

/* A kernel as emitted or with a fault; what became of it stays here. */
typedef struct mutant {
    const struct fixture *fixture;
    int head;
    const struct fault *fault; /* NULL: none */
    char *code;
    fpa_status status;
    fpa_error error;
} mutant;

static int setup(void **state)
{
    static struct fixture f;
    fpa_error error;
    *state = &f;
    f.ready = gpu_open(&f.gpu, 0);
    f.target = target_find("cuda:sm_80");
    fpa_status status = f.ready ? backend_cuda.choose(NULL, "cuda", &f.target, &error) : FPA_OK;
    if (!status && f.target->warpgroups) /* the portable kernels, which every GPU has */
        f.target = target_find("cuda:sm_90");
    if (!status)
        status = spec_load_text("mutation.lua", NULL, spec, sizeof spec - 1, &f.list, &error);
    for (int i = 0; i < HEADS && !status; i++)
        status = source_generate(f.list.heads[i], f.target->name, &f.source[i], &error);
    if (status)
        print_error("%s: %s\n", error.where, error.message);
    return status ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < HEADS; i++)
        source_free(&f->source[i]);
    head_list_free(&f->list);
    gpu_close(&f->gpu);
    return 0;
}

/* Compile and verify a text under the facts of what it was made from. */
static void judge(int index, void *argument)
{
    mutant *one = &((mutant *)argument)[index];
    const fpa_head *head = one->fixture->list.heads[one->head];
    const fpa_options options = {.target = one->fixture->target->name};
    fpa_source source = one->fixture->source[one->head];
    fpa_object object = {0};
    fpa_module module = {0};
    fpa_verdict verdict;
    source.code = one->code;
    one->status = builder_cuda.compile(&options, &source, &object, &one->error);
    if (!one->status)
        one->status = backend_cuda.load(&options, &object, source.facts.name, &module, &one->error);
    if (!one->status) {
        one->status = verify_module(head, &source.facts, &module, &verdict, &one->error);
        backend_cuda.unload(&module);
    }
    free(object.bytes);
}

static char *code_of(const struct fixture *f, int head, const struct fault *fault)
{
    char *code = f->source[head].code;
    return fault ? fault_make_in(fault, f->list.heads[head], f->target->name, code) : code;
}

/* make test: of each head those of the fixed part. */
static void every_fault_can_be_made_in_the_emitted_code(void **state)
{
    const struct fixture *f = *state;
    for (int head = 0; head < HEADS; head++)
        for (size_t i = 0; i < FAULTS; i++)
            if (fault_is_fixed(cuda_faults, i))
                free(code_of(f, head, &cuda_faults[i]));
}

/* Where the edge lies, plain float32 multiplies a query with the keys that it sees: what the mask leaves of others' scores
 * is read by nobody. */
static bool is_told(const fpa_head *head, const struct fault *fault)
{
    return head->dtype != FPA_F32 || !fault || strcmp(fault->what, "a mask that shows the next token");
}

/* What is emitted has to be accepted, or the rest says nothing. */
static bool is_right(const mutant *one, const char *head)
{
    if (one->fault)
        return fault_refused(one->fault, head, one->status, one->error.message);
    print_message("%-10s %-48s %s\n", head, "as emitted", one->status ? one->error.message : "accepted");
    return one->status == FPA_OK;
}

static void every_fault_is_refused_in_its_words_and_the_original_is_not(void **state)
{
    enum { EACH = 1 + FAULTS };
    static mutant mutants[HEADS * EACH];
    const struct fixture *f = *state;
    int wrong = 0, count = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < HEADS * EACH; i++) {
        const struct fault *fault = i % EACH ? &cuda_faults[i % EACH - 1] : NULL;
        if (is_told(f->list.heads[i / EACH], fault))
            mutants[count++] =
                (mutant){.fixture = f, .head = i / EACH, .fault = fault, .code = code_of(f, i / EACH, fault)};
    }
    parallel_run(count, judge, mutants);
    for (int i = 0; i < count; i++) {
        wrong += !is_right(&mutants[i], f->list.heads[mutants[i].head]->name);
        if (mutants[i].fault)
            free(mutants[i].code);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_can_be_made_in_the_emitted_code),
        cmocka_unit_test(every_fault_is_refused_in_its_words_and_the_original_is_not),
    };
    return cmocka_run_group_tests_name("cuda mutation", tests, setup, teardown);
}
