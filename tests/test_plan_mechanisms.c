/* The table of mechanisms: its names, what is chosen of it, and what is made when one row is asked for. */
#include "gen/gen.h"
#include "gen/plan/cuda/fused_rows.h"
#include "gen/plan/cuda/mechanism.h"
#include "gen/plan/cuda/split_outer.h"
#include "claims.h"
#include "dear.h"
#include "emulate/heads.h"
#include "planned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TSPOW "d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 8 }"
#define LINEAR "d = 64, dv = 64, terms = linear {}"
#define WINDOW                                                                                               \
    "d = 16, dv = 64, normalize = 'sum', scale = 1 / 4, window = 128, terms = taylor { degree = 2 }"
#define TAYLOR "d = 16, dv = 16, terms = taylor { degree = 2 }"
#define MIXED                                                                                                \
    "d = 64, dv = 64, terms = term { dense(orthogonal { rows = 16, d = 64, seed = 1 }), "                    \
    "dense(orthogonal { rows = 32, d = 64, seed = 2 }) }"

/* Heads, and what is chosen of each role; NULL: none. */
static const struct kind {
    const char *body, *target, *split, *fused, *cluster;
} kinds[] = {
    {TSPOW, "cuda:sm_90a", "split_outer", NULL, NULL},
    {TSPOW, "cuda:sm_80", "split_panel", NULL, NULL},
    {TSPOW ", causal = false", "cuda:sm_90a", "split_outer", NULL, NULL},
    /* chunks of portable kernels take less, but calls of 4,096 tokens, which are quadratic, three times as long */
    {"d = 16, dv = 64, terms = power { degree = 4 }", "cuda:sm_90a", "split_outer", NULL, NULL},
    {MIXED, "cuda:sm_90a", "split_outer", "fused_packed", NULL},
    {TAYLOR, "cuda:sm_90a", "split_outer", "fused_packed", NULL},
    {TAYLOR, "cuda:sm_80", "split_panel", NULL, NULL},
    {"d = 8, dv = 16, terms = taylor { degree = 2 }", "cuda:sm_80", "split_panel", "fused_panel", NULL},
    {LINEAR, "cuda:sm_90a", "split_panel", "fused_coordinates", "cluster_scan"},
    {LINEAR, "cuda:sm_90", "split_panel", "fused_panel", NULL},
    {LINEAR ", dtype = 'f32'", "cuda:sm_90a", "split_panel", "fused_panel", NULL},
    {"d = 128, dv = 100, gate = true, terms = linear {}", "cuda:sm_90a", "split_outer", "fused_rows", NULL},
    {"d = 201, dv = 200, gate = true, terms = linear {}", "cuda:sm_90a", "split_outer", "fused_rows", NULL},
    {"d = 21, dv = 256, terms = { term { select(range(1, 7)), select(range(9, 13)) }, term { identity() } }",
     "cuda:sm_90a", "split_outer", "fused_rows", NULL}, /* features as rows */
    {"d = 256, dv = 64, terms = linear {}", "cuda:sm_90a", "split_outer", "fused_rows", NULL},
    {WINDOW, "cuda:sm_90a", "split_panel", "fused_packed", NULL},
    {WINDOW ", dtype = 'f32'", "cuda:sm_90a", "split_panel", NULL, NULL},
    {WINDOW, "cuda:sm_80", "split_panel", NULL, NULL},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* Name of the chosen row of a role. */
static const char *chosen(const fpa_plan *plan, fpa_role role)
{
    const char *name = NULL;
    for (int m = 0; m < CUDA_MECHANISMS; m++)
        if (cuda_mechanisms[m].role == role && plan->cuda.chosen[m]) {
            assert_null(name);
            name = cuda_mechanisms[m].name;
        }
    return name;
}

static bool equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void names_are_unique(void **state)
{
    for (int i = 0; i < CUDA_MECHANISMS; i++) {
        assert_non_null(cuda_mechanisms[i].name);
        assert_string_equal(cuda_mechanism_name(i), cuda_mechanisms[i].name);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(cuda_mechanisms[i].name, cuda_mechanisms[j].name);
    }
    assert_null(cuda_mechanism_name(CUDA_MECHANISMS));
}

static void each_role_has_one_mechanism_or_none(void **state)
{
    bool seen[CUDA_MECHANISMS] = {0};
    for (int i = 0; i < KINDS; i++) {
        const struct kind *kind = &kinds[i];
        planned_head m;
        planned_make(&m, kind->body, kind->target);
        const char *split = chosen(&m.plan, ROLE_SPLIT), *fused = chosen(&m.plan, ROLE_FUSED);
        const char *cluster = chosen(&m.plan, ROLE_CLUSTER);
        if (!equal(split, kind->split) || !equal(fused, kind->fused) || !equal(cluster, kind->cluster))
            fail_msg("%s for %s: %s, %s, %s", kind->body, kind->target, split, fused, cluster);
        assert_int_equal(m.plan.cuda.chosen[DECODE], m.plan.head->causal);
        for (int r = 0; r < CUDA_MECHANISMS; r++)
            seen[r] |= m.plan.cuda.chosen[r];
        planned_free(&m);
    }
    for (int r = 0; r < CUDA_MECHANISMS; r++)
        if (!seen[r])
            fail_msg("%s: no head has it", cuda_mechanisms[r].name);
}

/* Each row has a plan or a reason, and what is chosen has a plan. */
static void a_mechanism_that_does_not_suit_says_why(void **state)
{
    for (int i = 0; i < KINDS; i++) {
        planned_head m;
        planned_make(&m, kinds[i].body, kinds[i].target);
        for (int r = 0; r < CUDA_MECHANISMS; r++) {
            const fpa_suited *suited = &m.plan.cuda.suited[r];
            assert_int_equal(suited->plan == NULL, suited->why[0] != '\0');
            assert_true(suited->plan || !m.plan.cuda.chosen[r]);
        }
        planned_free(&m);
    }
}

/* The geometry has what a launch needs of the chosen ones, and nothing of others. */
static void the_geometry_has_the_kernels_of_what_is_chosen(void **state)
{
    for (int i = 0; i < KINDS; i++) {
        planned_head m;
        planned_make(&m, kinds[i].body, kinds[i].target);
        const struct fpa_cuda_geometry *g = &m.plan.cuda.geometry;
        assert_int_equal(g->version, FPA_CUDA_VERSION);
        assert_int_equal(g->chunk, m.plan.facts.chunk);
        assert_int_equal(g->chunk % g->query_tokens, 0);
        assert_int_equal(g->state_elements, m.plan.facts.state_elements);
        assert_int_equal(g->kernel[CUDA_FUSED_CHUNK].threads > 0, kinds[i].fused != NULL);
        assert_int_equal(g->kernel[CUDA_CLUSTER_SCAN].threads > 0, kinds[i].cluster != NULL);
        assert_int_equal(g->kernel[CUDA_DECODE].threads > 0, m.plan.head->causal);
        assert_int_equal(g->persistent, equal(kinds[i].split, "split_outer"));
        assert_true(g->kernel[CUDA_CHUNK_STATE].bytes <= m.plan.target->shared_memory);
        planned_free(&m);
    }
}

/* ---- one that is asked for ---- */

static void check_forced(const struct kind *kind, int r, const fpa_suited *suited)
{
    const char *name = cuda_mechanisms[r].name;
    planned_head m;
    fpa_error error;
    const fpa_status status = planned_try(&m, kind->body, kind->target, name, &error);
    if (!suited->plan && r == FUSED_ROWS && !status) { /* with features as rows, which the plan has not */
        assert_true(m.plan.cuda.fused_rows->packed && m.plan.cuda.split_outer->feature_rows);
    } else if (!suited->plan) {
        assert_int_equal(status, FPA_UNSUPPORTED);
        if (!strstr(error.message, name) || !strstr(error.message, suited->why))
            fail_msg("%s for %s by %s: %s", kind->body, kind->target, name, error.message);
    } else {
        assert_int_equal(status, FPA_OK);
        assert_true(m.plan.cuda.chosen[r]);
        assert_true(cuda_mechanisms[r].role != ROLE_SPLIT || !m.plan.cuda.fused);
        char *text = plan_print(&m.plan), line[64];
        snprintf(line, sizeof line, "mechanism    %s, as requested\n", name);
        assert_non_null(strstr(text, line));
        free(text);
    }
    planned_free(&m);
}

static void a_mechanism_that_suits_can_be_asked_for_and_others_say_why_not(void **state)
{
    for (int i = 0; i < KINDS; i++) {
        planned_head m;
        planned_make(&m, kinds[i].body, kinds[i].target);
        for (int r = 0; r < CUDA_MECHANISMS; r++)
            check_forced(&kinds[i], r, &m.plan.cuda.suited[r]);
        planned_free(&m);
    }
}

/* What is asked for decides the choice; plans that do not depend on it are the same. */
/* A product has 256 columns at most, the normaliser's among them. */
static void many_columns_are_one_block_where_a_product_has_them(void **state)
{
    static const struct {
        const char *values;
        int blocks, tiles;
    } widths[] = {{"dv = 128", 1, 16},
                  {"dv = 192", 1, 24},
                  {"dv = 256", 1, 32},
                  {"dv = 248, normalize = 'sum'", 1, 31},
                  {"dv = 256, normalize = 'sum'", 2, 16}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char body[128];
        planned_head m;
        snprintf(body, sizeof body, "d = 48, %s, scale = 1 / 8, terms = power { degree = 2 }",
                 widths[i].values);
        planned_make(&m, body, "cuda:sm_90a");
        assert_string_equal(chosen(&m.plan, ROLE_SPLIT), "split_outer");
        assert_int_equal(m.plan.cuda.columns.blocks, widths[i].blocks);
        assert_int_equal(m.plan.cuda.columns.tiles, widths[i].tiles);
        planned_free(&m);
    }
}

static void a_plan_is_not_changed_by_what_follows(void **state)
{
    static const fpa_cuda_mechanism first[] = {SPLIT_PANEL, FUSED_PANEL, FUSED_COORDINATES};
    for (int i = 0; i < KINDS; i++) {
        planned_head free_one, forced;
        planned_make(&free_one, kinds[i].body, kinds[i].target);
        planned_make_as(&forced, kinds[i].body, kinds[i].target, "split_panel");
        for (int r = 0; r < 3; r++) {
            const fpa_suited *a = &free_one.plan.cuda.suited[first[r]],
                             *b = &forced.plan.cuda.suited[first[r]];
            assert_int_equal(a->plan == NULL, b->plan == NULL);
            if (a->plan)
                assert_memory_equal(a->plan, b->plan, cuda_mechanisms[first[r]].size);
        }
        planned_free(&free_one);
        planned_free(&forced);
    }
}

/* A planner that is called again, with the plans of all rows there, gives what it gave. */
static void a_planner_reads_and_gives_one_plan(void **state)
{
    static const fpa_cuda_mechanism plain[] = {SPLIT_PANEL, FUSED_PANEL, FUSED_COORDINATES, CLUSTER_SCAN,
                                               DECODE};
    for (int i = 0; i < KINDS; i++) {
        planned_head m;
        planned_make(&m, kinds[i].body, kinds[i].target);
        const fpa_cuda_plan before = m.plan.cuda;
        for (int r = 0; r < 5; r++) {
            const fpa_mechanism *row = &cuda_mechanisms[plain[r]];
            arena memory = {0};
            const fpa_cuda_inputs in = {.plan = &m.plan,
                                        .rows = before.rows,
                                        .suited = before.suited,
                                        .columns = &before.columns,
                                        .memory = &memory};
            void *again = arena_alloc(&memory, row->size);
            assert_non_null(again);
            const char *why = row->plan(&in, again);
            assert_string_equal(why ? why : "", before.suited[plain[r]].why);
            if (!why)
                assert_memory_equal(again, before.suited[plain[r]].plan, row->size);
            arena_free(&memory);
        }
        assert_memory_equal(&before, &m.plan.cuda, sizeof before);
        planned_free(&m);
    }
}

static fpa_status generate_as(const struct kind *kind, const char *mechanism, fpa_source *source,
                              fpa_error *error)
{
    planned_head m;
    planned_make(&m, kind->body, kind->target);
    fpa_status status = source_generate_as(m.list.heads[0], kind->target, mechanism, source, error);
    planned_free(&m);
    return status;
}

static void sources_of_what_is_asked_for_have_its_kernels(void **state)
{
    const struct kind linear = {LINEAR, "cuda:sm_90a", NULL, NULL, NULL};
    fpa_source source;
    fpa_error error;
    assert_int_equal(generate_as(&linear, "split_panel", &source, &error), FPA_OK);
    assert_null(strstr(source.code, "h_fused_chunk("));
    assert_non_null(strstr(source.code, "h_chunk_output("));
    source_free(&source);
    assert_int_equal(generate_as(&linear, "fused_coordinates", &source, &error), FPA_OK);
    assert_non_null(strstr(source.code, "h_fused_chunk("));
    assert_null(strstr(source.code, "h_cluster_scan("));
    source_free(&source);
    assert_int_equal(generate_as(&linear, "cluster_scan", &source, &error), FPA_OK);
    assert_non_null(strstr(source.code, "h_cluster_scan("));
    source_free(&source);
}

static void a_name_that_is_none_is_answered_with_all_names(void **state)
{
    const struct kind plain_c = {LINEAR, "c:avx2", NULL, NULL, NULL};
    fpa_source source;
    fpa_error error;
    assert_int_equal(generate_as(&kinds[0], "split_pane", &source, &error), FPA_INVALID);
    for (int r = 0; r < CUDA_MECHANISMS; r++)
        assert_non_null(strstr(error.message, cuda_mechanisms[r].name));
    assert_int_equal(generate_as(&plain_c, "split_panel", &source, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "c:avx2"));
}

/* Those that make test runs (test_cuda_emulated.c, ..._fused.c, ..._lift.c, ..._window.c). */
static void heads_of_the_emulations_fixed_part_take_every_mechanism(void **state)
{
    enum { FIXED = sizeof emulated_fixed / sizeof *emulated_fixed };
    bool chosen[CUDA_MECHANISMS] = {false};
    fpa_head_list list;
    fpa_error error;
    assert_ok(spec_load_text("emulated.lua", NULL, emulated_heads, sizeof emulated_heads - 1, &list, &error),
              &error);
    for (int i = 0; i < list.count; i++) {
        fpa_simplified simple;
        fpa_plan plan;
        if (!is_one_of(emulated_fixed, FIXED, list.heads[i]->name))
            continue;
        assert_ok(simplify(list.heads[i], &simple, &error) ||
                      plan_choose(&simple, list.heads[i], target_find("cuda:sm_90a"), &plan, &error),
                  &error);
        for (int m = 0; m < CUDA_MECHANISMS; m++)
            chosen[m] = chosen[m] || plan.cuda.chosen[m];
        plan_free(&plan);
        simplified_free(&simple);
    }
    for (int m = 0; m < CUDA_MECHANISMS; m++)
        if (!chosen[m])
            fail_msg("no head of emulated_fixed takes %s", cuda_mechanisms[m].name);
    head_list_free(&list);
}

/* ---- exemplars ---- */

/* Marks what is chosen of a head of a spec in that type. */
static void mark_chosen(const char *spec, const char *name, const char *dtype, bool seen[CUDA_MECHANISMS])
{
    char path[128];
    planned_head m = {0};
    fpa_error error;
    snprintf(path, sizeof path, "%s.lua", spec);
    fpa_status status = spec_load(path, &m.list, &error);
    for (int i = 0; !status && i < m.list.count; i++) {
        fpa_head *head = m.list.heads[i];
        if (strcmp(head->name, name) != 0)
            continue;
        for (int t = 0; t < FPA_DTYPES; t++)
            if (strcmp(dtype, dtype_name((fpa_dtype)t)) == 0)
                head->dtype = (fpa_dtype)t;
        status = simplify(head, &m.simple, &error);
        if (!status)
            status = plan_choose(&m.simple, head, target_find("cuda:sm_90a"), &m.plan, &error);
        for (int r = 0; r < CUDA_MECHANISMS; r++)
            seen[r] |= m.plan.cuda.chosen[r];
        plan_free(&m.plan);
        simplified_free(&m.simple);
    }
    assert_ok(status, &error);
    head_list_free(&m.list);
}

/* generated/exemplars are of the lines of tools/generated.sh: SPEC HEAD TARGET DTYPE. */
static void every_mechanism_of_sm_90a_has_an_exemplar(void **state)
{
    bool seen[CUDA_MECHANISMS] = {false};
    FILE *list = fopen("tools/generated.sh", "r");
    char line[256], spec[64], head[64], target[16], dtype[8];
    int count = 0;
    assert_non_null(list);
    while (fgets(line, sizeof line, list))
        if (sscanf(line, "%63s %63s %15s %7s", spec, head, target, dtype) == 4 && !strcmp(target, "sm_90a") &&
            !strstr(line, "--backward")) {
            mark_chosen(spec, head, dtype, seen);
            count++;
        }
    fclose(list);
    assert_true(count > 0);
    for (int r = 0; r < CUDA_MECHANISMS; r++)
        if (!seen[r])
            fail_msg("%s: tools/generated.sh has no head for sm_90a that takes it", cuda_mechanisms[r].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(each_role_has_one_mechanism_or_none),
        cmocka_unit_test(a_mechanism_that_does_not_suit_says_why),
        cmocka_unit_test(the_geometry_has_the_kernels_of_what_is_chosen),
        cmocka_unit_test(a_mechanism_that_suits_can_be_asked_for_and_others_say_why_not),
        cmocka_unit_test(many_columns_are_one_block_where_a_product_has_them),
        cmocka_unit_test(a_plan_is_not_changed_by_what_follows),
        cmocka_unit_test(a_planner_reads_and_gives_one_plan),
        cmocka_unit_test(sources_of_what_is_asked_for_have_its_kernels),
        cmocka_unit_test(a_name_that_is_none_is_answered_with_all_names),
        cmocka_unit_test(heads_of_the_emulations_fixed_part_take_every_mechanism),
        cmocka_unit_test(every_mechanism_of_sm_90a_has_an_exemplar),
    };
    return cmocka_run_group_tests_name("mechanisms", tests, NULL, NULL);
}
