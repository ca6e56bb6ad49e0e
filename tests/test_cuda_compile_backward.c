/* Gradients of shipped heads, compiled by NVRTC for several targets: registers, no spills, shared memory, names. Needs no
 * GPU.
 *
 * make test: the modules of a table; make test-all: every shipped head that has gradients, for the oldest and the newest
 * target with each type. */
#include "abi/cuda_kernels.h"
#include "claims.h"
#include "compile_job.h"
#include "cubin.h"
#include "dear.h"
#include "nvrtc_hurry.h"
#include "runtime/builder.h"
#include "runtime/cuda/build.h"
#include "runtime/cuda/image.h"
#include "shipped_heads.h"
#include "share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_JOBS = 1024 };

static const struct module {
    const char *head;
    fpa_dtype dtype;
    const char *target;
} fixed[] = {
    {"tspow2_d64_b8", FPA_BF16, "cuda:sm_80"},   {"tspow2_d64_b8", FPA_BF16, "cuda:sm_90a"},
    {"gated_linear_d32", FPA_F16, "cuda:sm_90"}, {"trainable_dense", FPA_BF16, "cuda:sm_90a"},
    {"trainable_dense", FPA_F32, "cuda:sm_80"},  {"trainable_diagonal", FPA_BF16, "cuda:sm_120"},
    {"power3_d16", FPA_F32, "cuda:sm_90a"},      {"taylor2_d16", FPA_BF16, "cuda:sm_80"},
    {"linear_d64", FPA_F32, "cuda:sm_80"},       {"learned_map_d32", FPA_BF16, "cuda:sm_80"},
    {"fourier_d32", FPA_F32, "cuda:sm_90a"},     {"tensorsketch_p2_d32", FPA_BF16, "cuda:sm_90a"},
};

enum { FIXED = sizeof fixed / sizeof *fixed };

typedef struct fixture {
    shipped_heads heads[FPA_DTYPES];
    compile_job jobs[MOST_JOBS];
    int count, chosen;
    share taken; /* of the chosen */
} fixture;

static const fpa_head *head_named(const shipped_heads *heads, const char *name)
{
    for (int i = 0; i < heads->count; i++)
        if (strcmp(heads->item[i].head->name, name) == 0)
            return heads->item[i].head;
    fail_msg("no shipped head is called %s", name);
    return NULL;
}

static void add_job(fixture *f, const fpa_head *head, const char *target)
{
    assert_true(f->count < MOST_JOBS);
    if (share_take(&f->taken, f->chosen++))
        f->jobs[f->count++] = (compile_job){.head = head, .target = target_find(target), .backward = true};
}

static void add_all(fixture *f)
{
    static const char *const targets[] = {"cuda:sm_80", "cuda:sm_90a"};
    for (int d = 0; d < FPA_DTYPES; d++)
        for (int i = 0; i < f->heads[d].count; i++)
            for (int t = 0; t < 2; t++)
                if (source_check_backward(f->heads[d].item[i].head, targets[t], NULL) == FPA_OK)
                    add_job(f, f->heads[d].item[i].head, targets[t]);
}

static int setup(void **state)
{
    static fixture f;
    *state = &f;
    for (int d = 0; d < FPA_DTYPES; d++) {
        shipped_load(&f.heads[d]);
        for (int i = 0; i < f.heads[d].count; i++) {
            f.heads[d].item[i].head->dtype = (fpa_dtype)d;
            if (d != FPA_F32)
                f.heads[d].item[i].head->products = FPA_PRODUCTS_PLAIN;
        }
    }
    for (int i = 0; i < FIXED; i++)
        add_job(&f, head_named(&f.heads[fixed[i].dtype], fixed[i].head), fixed[i].target);
    if (dear_tests())
        add_all(&f);
    share_report(&f.taken, "modules", f.chosen);
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    for (int d = 0; d < FPA_DTYPES; d++)
        shipped_free(&f->heads[d]);
    return 0;
}

/* Of a module one kernel that is optimised: of the first that with the fewest registers for what it has; that whose products
 * are serialised first. NULL: none. */
static const char *optimised_of(const compile_job *job, int i)
{
    if (strcmp(job->head->name, "tensorsketch_p2_d32") == 0)
        return "backward_unproject";
    return i == 0 ? "backward_keys" : NULL;
}

/* make test: of each module the kernels that reach functions which none before it reaches; sm_90a has its own. */
static void choose_kernels(fixture *f)
{
    function_set reached[2] = {{0}};
    dear_report("modules, of them kernels that others have not,", f->count, f->count + !dear_tests());
    for (int i = 0; i < f->count && !dear_tests(); i++)
        compile_job_choose(&f->jobs[i], &reached[f->jobs[i].target->warpgroups],
                           optimised_of(&f->jobs[i], i));
    for (int w = 0; w < 2; w++)
        function_set_free(&reached[w]);
}

static void gradients_compile_within_their_bounds(void **state)
{
    fixture *f = *state;
    char *identity = NULL;
    int wrong = 0, too_large = 0;
    if (nvrtc_identity(target_find("cuda:sm_80"), &identity, NULL)) {
        print_message("there is no NVRTC\n");
        skip();
    }
    free(identity);
    choose_kernels(f);
    compile_jobs_run(f->count, f->jobs);
    for (int i = 0; i < f->count; i++) {
        const compile_job *job = &f->jobs[i];
        too_large += job->too_large;
        wrong += job->problem[0] != 0;
        if (job->problem[0])
            print_message("%s for %s: %s\n", job->head->name, job->target->name, job->problem);
    }
    print_message("%d modules, %d of them too large for their target\n", f->count, too_large);
    assert_int_equal(wrong, 0);
    assert_true(too_large < f->count / 4 || share_is_part());
}

/* As a head is opened: several programs at once, which have all kernels between them. */
static void the_programs_have_every_kernel_between_them(void **state)
{
    const fixture *f = *state;
    fpa_object object = {0}, images[FPA_CUDA_PARTS];
    struct fpa_cuda_geometry g;
    fpa_source source;
    fpa_error error;
    char symbol[HEAD_MAX_NAME + 32];
    if (!f->count || f->jobs[0].status)
        skip();
    const fpa_head *head = head_named(&f->heads[FPA_F16], "gated_linear_d32");
    assert_int_equal(source_generate_backward(head, "cuda:sm_90", &source, &error), FPA_OK);
    nvrtc_hurry();
    assert_ok(builder_cuda.compile(NULL, &source, &object, &error), &error);
    nvrtc_hurry_no_more();
    const int count = image_split(&object, images, FPA_CUDA_PARTS);
    assert_true(count > 1);
    snprintf(symbol, sizeof symbol, "%s_geometry", head->name);
    assert_true(cubin_variable(images[0].bytes, images[0].size, symbol, &g, sizeof g));
    for (int i = 0; i < FPA_CUDA_KERNELS; i++) {
        bool found = !g.kernel[i].threads;
        snprintf(symbol, sizeof symbol, "%s_%s", head->name, cuda_kernel_names[i]);
        for (int n = 0; n < count && !found; n++)
            found = image_names(&images[n], symbol);
        if (!found)
            fail_msg("no program has %s", symbol);
    }
    free(object.bytes);
    source_free(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_compile_within_their_bounds),
        cmocka_unit_test(the_programs_have_every_kernel_between_them),
    };
    return cmocka_run_group_tests_name("cuda compile backward", tests, setup, teardown);
}
