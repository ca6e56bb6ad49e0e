/* What plan_outer makes of the heads of outer_heads.h, for tests of it. */
#ifndef FPAC_TESTS_OUTER_MADE_H
#define FPAC_TESTS_OUTER_MADE_H

#include "gen/plan/plan.h"
#include "gen/gen.h"
#include "gen/plan/cuda/outer.h"
#include "outer_heads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WARPGROUP_TILES = 6 };

static const int made_parts[] = {1, 2, 4, 4 | OUTER_CUT};

struct made {
    fpa_head_list list;
    fpa_simplified simple;
    fpa_plan plan;
    fpa_outer_plan outer;
    int parts;
};

static void make(const char *body, int warpgroup_tiles, int parts, struct made *m)
{
    char spec[512];
    fpa_error error = {0};
    *m = (struct made){.parts = parts};
    assert_true(snprintf(spec, sizeof spec, "return head { name = 'h', %s }", body) < (int)sizeof spec);
    if (spec_load_text("hopper.lua", NULL, spec, strlen(spec), &m->list, &error) ||
        simplify(m->list.heads[0], &m->simple, &error) ||
        plan_choose(&m->simple, m->list.heads[0], target_find("cuda:sm_90"), &m->plan, &error) ||
        plan_outer(&m->plan, m->plan.cuda.columns.all, warpgroup_tiles, parts, &m->plan.memory, &m->outer,
                   &error))
        fail_msg("%s: %s: %s", body, error.where, error.message);
}

static void unmake(struct made *m)
{
    plan_free(&m->plan);
    simplified_free(&m->simple);
    head_list_free(&m->list);
}

static void each(void (*check)(const struct made *m))
{
    for (size_t i = 0; i < sizeof suited / sizeof *suited; i++)
        for (int j = 0; j < 4 * WARPGROUP_TILES; j++) {
            const int tiles = j / 4 + 1, parts = made_parts[j % 4];
            struct made m;
            make(suited[i].body, tiles, parts, &m);
            if (!m.outer.used)
                fail_msg("%s: %s", suited[i].body, m.outer.why);
            assert_in_range(m.outer.strip_length, 1, tiles);
            check(&m);
            unmake(&m);
        }
}

/* A vector of the plan's rows with a value of its own for each, and the same as a hopper vector. */
static double *random_rows(const struct made *m, double **vector)
{
    double *row = calloc(m->plan.row_count, sizeof *row);
    *vector = calloc(8 * m->outer.row_blocks, sizeof **vector);
    assert_non_null(row);
    assert_non_null(*vector);
    for (int i = 0; i < m->plan.row_count; i++)
        row[i] = i == m->plan.ones_row ? 1 : rand() / (double)RAND_MAX + 0.5;
    for (int i = 0; i < 8 * m->outer.row_blocks; i++)
        if (m->outer.source[i] >= 0)
            (*vector)[i] = row[m->outer.source[i]];
    return row;
}

#endif
