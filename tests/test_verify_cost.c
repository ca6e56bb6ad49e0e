/* What verification asks of a module and of the formula is counted, whatever the head. */
#include <string.h>
#include <time.h>

#include "claims.h"
#include "hand_module.h"

/* FLOP that a module was asked for: by the facts, and as many as moving a state takes. */
static struct {
    const fpa_facts *facts;
    int dv;
    double flop;
} asked;

static double states_of(const struct fpa_launch *a)
{
    enum { STATE_WORK = 20 }; /* as verify.c counts an element */
    const double elements = (double)(a->batch * a->heads) * (double)asked.facts->state_elements;
    return STATE_WORK * elements * (a->state_out != NULL);
}

static double flop_of(int form, const struct fpa_launch *a)
{
    const double tokens = (double)a->length, heads = (double)(a->batch * a->query_heads);
    const double made = form == FORM_PARALLEL && a->state_out
                            ? (double)(a->batch * a->heads) * tokens * asked.facts->flop[FORM_CHUNKED]
                            : 0;
    const double counted = form == FORM_PARALLEL ? tokens * (tokens + 1) / 2 : tokens;
    return heads * counted * asked.facts->flop[form] + made;
}

/* Of a head whose kernel is 0 everywhere: zeros for results and states. */
static fpa_status give_zeros(const fpa_module *module, int form, const struct fpa_launch *a,
                             const fpa_candidate *candidate, void *stream, fpa_error *error)
{
    (void)module, (void)candidate, (void)stream, (void)error;
    asked.flop += flop_of(form, a) + states_of(a);
    for (int64_t b = 0; b < a->batch; b++) {
        for (int64_t t = 0; t < a->length; t++)
            for (int64_t h = 0; a->o && h < a->query_heads; h++)
                memset((float *)a->o + b * a->o_stride[0] + t * a->o_stride[1] + h * a->o_stride[2], 0,
                       (size_t)asked.dv * sizeof(float));
        for (int64_t h = 0; a->state_out && h < a->heads; h++)
            memset((float *)a->state_out + b * a->state_out_stride[0] + h * a->state_out_stride[1], 0,
                   (size_t)asked.facts->state_elements * sizeof(float));
    }
    return FPA_OK;
}

static size_t need_nothing(const fpa_module *module, int form, const struct fpa_launch *launch,
                           const fpa_candidate *candidate)
{
    (void)module, (void)form, (void)launch, (void)candidate;
    return 0;
}

/* One term of `degree` branches of all d coordinates, each of weight 0. */
static fpa_head *zero_head(int d, int dv, int degree)
{
    fpa_head *head = tspow_head(d, dv, d);
    fpa_term *term = head->terms;
    head->chunk = 0;
    term->branch_count = degree;
    term->branches = arena_array(&head->memory, (size_t)degree, sizeof *term->branches);
    fpa_branch branch = {.kind = FPA_BRANCH_DIAGONAL, .source = FPA_INPUT, .width = d};
    branch.row = arena_array(&head->memory, (size_t)d, sizeof *branch.row);
    branch.gram = arena_array(&head->memory, (size_t)d, sizeof *branch.gram);
    for (int i = 0; i < d; i++) {
        branch.row[i] = i;
        branch.gram[i] = number_int(0);
    }
    for (int l = 0; l < degree; l++)
        term->branches[l] = branch;
    return head;
}

static void verify_zeros(const fpa_head *head, const fpa_facts *facts)
{
    fpa_module module = hand_module(head, NO_FAULT);
    fpa_verdict verdict;
    fpa_error error = {0};
    module.forward = give_zeros;
    module.workspace = need_nothing;
    asked.facts = facts;
    asked.dv = head->dv;
    asked.flop = 0;
    if (verify_module(head, facts, &module, &verdict, &error) != FPA_OK)
        fail_msg("%s: %s", error.where, error.message);
}

/* Sizes of (q.k)^5 at d = 32, (q.k)^2 at d = 256 and at d = 1024; the chunk is the plan's. */
static void dear_heads_are_verified_by_a_bounded_number_of_operations(void **state)
{
    static const struct {
        int64_t features;
        int d, dv, chunk;
    } cases[] = {{496128, 32, 32, 768}, {33024, 256, 64, 192}, {525312, 1024, 64, 768}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fpa_head *head = zero_head(8, 4, 1); /* small: the module computes nothing */
        fpa_facts facts = hand_facts(head);
        facts.features = cases[i].features;
        facts.state_elements = cases[i].features * cases[i].dv;
        facts.chunk = cases[i].chunk;
        facts.flop[FORM_PARALLEL] = 2.0 * (cases[i].d + cases[i].dv);
        facts.flop[FORM_CHUNKED] = facts.flop[FORM_RECURRENT] = 4.0 * (double)facts.state_elements;
        verify_zeros(head, &facts);
        print_message("D = %lld: %.3g operations\n", (long long)facts.features, asked.flop);
        assert_true(asked.flop < 6e10);
        head_free(head);
    }
}

/* 64^5 features as written, none of which is anything: as many floats are 4 GiB, five columns of a state 20. */
static void zeros_of_a_written_head_cost_nothing(void **state)
{
    fpa_head *head = zero_head(64, 4, 5);
    fpa_facts facts = hand_facts(head);
    facts.features = facts.state_elements = 6;
    for (int form = 0; form < FORMS; form++)
        facts.flop[form] = 24;
    const clock_t start = clock();
    verify_zeros(head, &facts);
    assert_true(clock() - start < 10 * CLOCKS_PER_SEC);
    head_free(head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dear_heads_are_verified_by_a_bounded_number_of_operations),
        cmocka_unit_test(zeros_of_a_written_head_cost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
