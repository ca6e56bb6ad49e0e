/* What plan_outer makes of the heads of outer_heads.h, for tests of it. */
#ifndef FPAC_TESTS_OUTER_MADE_H
#define FPAC_TESTS_OUTER_MADE_H

#include "gen/plan/plan.h"
#include "gen/gen.h"
#include "gen/plan/cuda/outer.h"
#include "claims.h"
#include "outer_heads.h"
#include "planned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARPGROUP_TILES = 6 };

static const int made_parts[] = {1, 2, 4, 4 | OUTER_CUT, 1 | OUTER_TURNED, 4 | OUTER_TURNED};
enum { MADE_PARTS = sizeof made_parts / sizeof *made_parts };

struct made {
    planned_head head;
    fpa_outer_plan outer;
    int parts;
};

/* The head, with a plan. */
static void make_head(const char *body, struct made *m)
{
    char spec[512];
    *m = (struct made){0};
    assert_true(snprintf(spec, sizeof spec, "return head { name = 'h', %s }", body) < (int)sizeof spec);
    planned_spec(&m->head, spec, "cuda:sm_90");
}

static void make_outer(int warpgroup_tiles, int parts, arena *memory, struct made *m)
{
    m->parts = parts;
    plan_outer(&m->head.plan, m->head.plan.cuda.columns.all, warpgroup_tiles, parts, memory, &m->outer);
}

static void each(void (*check)(const struct made *m))
{
    for (size_t i = 0; i < sizeof suited / sizeof *suited; i++) {
        struct made m;
        make_head(suited[i].body, &m);
        for (int j = 0; j < MADE_PARTS * WARPGROUP_TILES; j++) {
            arena memory = {0};
            make_outer(j / MADE_PARTS + 1, made_parts[j % MADE_PARTS], &memory, &m);
            if (!m.outer.used)
                fail_msg("%s: %s", suited[i].body, m.outer.why);
            assert_in_range(m.outer.strip_length, 1, j / MADE_PARTS + 1);
            check(&m);
            arena_free(&memory);
        }
        planned_free(&m.head);
    }
}

/* A vector of the plan's rows with a value of its own for each, and the same as a hopper vector. */
static double *random_rows(const struct made *m, double **vector)
{
    double *row = calloc(m->head.plan.row_count, sizeof *row);
    *vector = calloc(8 * m->outer.row_blocks, sizeof **vector);
    assert_non_null(row);
    assert_non_null(*vector);
    for (int i = 0; i < m->head.plan.row_count; i++)
        row[i] = i == m->head.plan.ones_row ? 1 : rand() / (double)RAND_MAX + 0.5;
    for (int i = 0; i < 8 * m->outer.row_blocks; i++)
        if (m->outer.source[i] >= 0)
            (*vector)[i] = row[m->outer.source[i]];
    return row;
}

#endif
