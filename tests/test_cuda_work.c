/* What kernels do, counted: of a head that was counted by hand, and of every head that is shipped or measured. */
#include "abi/cuda_kernels.h"

#include <stdio.h>
#include <string.h>

#include "claims.h"
#include "planned.h"
#include "shipped_heads.h"

/* ---- by hand ---- */

/* Of d = 64 in blocks of 8: 36 tiles of 64 features, of which 8 are halved squares; values are 8 tiles of 8 columns.
 * 16 tokens are a product's depth: each tile is 4 products of 16 features by 8 columns. */
static void a_known_head_is_counted_as_by_hand(void **state)
{
    const struct fpa_cuda_geometry g =
        planned_geometry("d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 8 }", "cuda:sm_90a");
    const struct fpa_cuda_kernel_work *walk = &g.work[CUDA_CHUNK_STATE], *output = &g.work[CUDA_CHUNK_OUTPUT];
    assert_int_equal(walk->step.products, 36 * 4 * 8);         /* 1152 */
    assert_int_equal(output->copy.products, (36 * 4 - 8) * 8); /* 1088: squares are read as halves */
    assert_int_equal(output->keys.products,
                     4 * 2 * 4 + 4 * 2 * 4); /* 64: 8 tiles of keys, 4 steps; 4 steps, 8 */
    assert_int_equal(walk->copy.bytes,
                     (36 * 64 - 8 * 24) * 64 * 2); /* in 16 bits: of squares 40 of 64 rows */
    assert_true(walk->warpgroups && output->warpgroups);
}

/* Every feature is multiplied with every value: of 16 tokens, 16 x 8 x 16 a product. The walk reads k and v. */
static void a_linear_head_is_counted_as_by_hand(void **state)
{
    const struct fpa_cuda_geometry g = planned_geometry("d = 64, dv = 64, terms = linear {}", "cuda:sm_90a");
    assert_int_equal(g.totals.step.products, 64 * 64 / 128);
    assert_int_equal(g.totals.step.bytes, 16 * (64 + 64) * 2);
    assert_int_equal(g.work[CUDA_FUSED_CHUNK].step.bytes, 16 * (64 + 64 + 64 + 64) * 2);
    assert_int_equal(g.work[CUDA_FUSED_CHUNK].step.products, 32 + 32 + 64); /* state, copy, own 64 keys */
    assert_int_equal(g.work[CUDA_DECODE].copy.bytes, 2 * 64 * 64 * 4);      /* read and written, fp32 */
}

/* ---- every head ---- */

static void expect_counts(const char *name, const struct fpa_cuda_work *work)
{
    if (work->products < 0 || work->shared < 0 || work->instructions < 0 || work->bytes < 0 ||
        work->cached < 0 || work->awaited < 0)
        fail_msg(
            "%s: %d products, %d of shared memory, %d instructions, %d bytes, %d cached, %d clocks awaited",
            name, work->products, work->shared, work->instructions, work->bytes, work->cached, work->awaited);
}

static bool is_nothing(const struct fpa_cuda_work *work)
{
    return !work->products && !work->shared && !work->instructions && !work->bytes;
}

static void expect_work(const char *name, const struct fpa_cuda_kernel_work *work)
{
    expect_counts(name, &work->step);
    expect_counts(name, &work->copy);
    expect_counts(name, &work->keys);
    assert_true(work->trips >= 0);
    if (is_nothing(&work->step) && is_nothing(&work->copy))
        fail_msg("%s has a kernel that does nothing", name);
}

/* Kernels that a head has do something; parts of o are added up in a launch of fixed time. */
static void expect_kernels(const char *name, const struct fpa_cuda_geometry *g)
{
    for (int i = 0; i < FPA_CUDA_KERNELS; i++)
        if (g->kernel[i].threads && i != CUDA_SPLIT_REDUCTION && i != CUDA_STATE_PRODUCT &&
            i != CUDA_CHUNK_CONTRACTION) /* the last two are gradients', which are not counted */
            expect_work(name, &g->work[i]);
    if (g->kernel[CUDA_FUSED_CHUNK].threads)
        expect_work(name, &g->totals);
}

/* Multiply-adds of 16 tokens that are in a count: on tensor cores 2048 a product, six products for one of tf32 in three;
 * in plain fp32 32 an instruction. */
static double multiply_adds(const fpa_head *head, const struct fpa_cuda_work *work)
{
    if (head->dtype != FPA_F32)
        return 2048.0 * work->products;
    return head->products == FPA_PRODUCTS_TF32X3 ? 2048.0 / 6 * work->products : 32.0 * work->instructions;
}

/* 16 tokens times all features and values; chunk_output: the same for a copy, and at least values of 64 keys. */
static void expect_arithmetic(const char *name, const fpa_plan *plan)
{
    const struct fpa_cuda_geometry *g = &plan->cuda.geometry;
    const double state = 16.0 * (double)plan->features * plan->head->dv, values = 16.0 * 64 * plan->head->dv;
    const struct {
        cuda_kernel kernel;
        double least;
    } passes[] = {
        {CUDA_CHUNK_STATE, state},
        {CUDA_CHUNK_STATE_SMALL, state},
        {CUDA_FUSED_CHUNK, plan->head->causal ? 2 * state : state}, /* without a mask queries alone */
        {CUDA_CLUSTER_SCAN, 2 * state}};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (g->kernel[passes[i].kernel].threads &&
            multiply_adds(plan->head, &g->work[passes[i].kernel].step) < passes[i].least)
            fail_msg("%s: %s does less than its arithmetic", name, cuda_kernel_names[passes[i].kernel]);
    if (g->kernel[CUDA_FUSED_CHUNK].threads && !plan->head->causal)
        assert_true(multiply_adds(plan->head, &g->totals.step) >= state);
    assert_true(multiply_adds(plan->head, &g->work[CUDA_CHUNK_OUTPUT].copy) >= state);
    assert_true(multiply_adds(plan->head, &g->work[CUDA_CHUNK_OUTPUT].keys) >= values);
}

/* False: there are no CUDA kernels of it, for which the generator gives a reason. */
static bool check_head(const fpa_head *head, const char *target)
{
    char name[256];
    fpa_error error = {0};
    fpa_simplified simple = {0};
    fpa_plan plan = {0};
    snprintf(name, sizeof name, "%s, %s, %s", head->name, dtype_name(head->dtype), target);
    assert_int_equal(simplify(head, &simple, &error), FPA_OK);
    const fpa_status status = plan_choose(&simple, head, target_find(target), &plan, &error);
    if (status && status != FPA_UNSUPPORTED)
        fail_msg("%s: %s", name, error.message);
    if (!status) {
        expect_kernels(name, &plan.cuda.geometry);
        expect_arithmetic(name, &plan);
    }
    plan_free(&plan);
    simplified_free(&simple);
    return !status;
}

/* In bf16, and in fp32 with the products that it names. */
static int check_everywhere(fpa_head *head)
{
    static const char *const targets[] = {"cuda:sm_80", "cuda:sm_90", "cuda:sm_90a"};
    const fpa_products products = head->products;
    int planned = 0;
    for (int n = 0; n < 2; n++) {
        head->dtype = n ? FPA_F32 : FPA_BF16;
        head->products = n ? products : FPA_PRODUCTS_PLAIN;
        for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
            planned += check_head(head, targets[i]);
    }
    return planned;
}

static void no_shipped_head_is_counted_as_less_than_its_arithmetic(void **state)
{
    shipped_heads all;
    int planned = 0;
    shipped_load(&all);
    for (int i = 0; i < all.count; i++)
        planned += check_everywhere(all.item[i].head);
    print_message("%d plans of %d heads\n", planned, all.count);
    assert_true(planned > 3 * all.count);
    shipped_free(&all);
}

static void no_measured_head_is_counted_as_less_than_its_arithmetic(void **state)
{
    fpa_head_list list;
    fpa_error error;
    int planned = 0;
    assert_ok(spec_load("bench/shapes.lua", &list, &error), &error);
    for (int i = 0; i < list.count; i++)
        planned += check_everywhere(list.heads[i]);
    print_message("%d plans of %d heads\n", planned, list.count);
    assert_true(planned > 5 * list.count);
    head_list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_head_is_counted_as_by_hand),
        cmocka_unit_test(a_linear_head_is_counted_as_by_hand),
        cmocka_unit_test(no_shipped_head_is_counted_as_less_than_its_arithmetic),
        cmocka_unit_test(no_measured_head_is_counted_as_less_than_its_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
