#include "scores.h"

#include <math.h>

/* Operations of the score's polynomial for one vector (templates/c/score.c.in, by Horner's rule in the first dot). */
static double kernel_operations(const fpa_plan *plan)
{
    const fpa_score *score = plan->score;
    double operations = 0;
    for (int i = 0; i < score->monomial_count; i++) {
        for (int f = 0; f < score->dot_count; f++)
            operations += score->monomials[i].power[f];
        operations += score->monomials[i].weight.value != 1;
    }
    return fmax(0, operations - 1);
}

static void count_kernel(const fpa_counting *to, double count, double more)
{
    counting_once(to, (fpa_cpu_loop){.name = "kernel",
                                     .runs = count,
                                     .step.arithmetic = kernel_operations(to->plan) + more,
                                     .step.loads = to->plan->score->dot_count + more / 2,
                                     .step.stores = 1,
                                     .others = 3});
}

static void count_dots(const fpa_counting *to, fpa_register_tile tile, int keys, int columns, double times)
{
    const fpa_plan *plan = to->plan;
    for (int i = 0; i < plan->score->dot_count; i++)
        counting_product(to, (fpa_product){.name = "dots",
                                           .rows = counting_whole_rows(keys, tile),
                                           .columns = columns,
                                           .tile = tile,
                                           .steps = counting_steps(plan, plan->dots[i].row_count),
                                           .times = times,
                                           .clears = true});
}

/* The same for scores that stay in registers, where they are multiplied, rounded to pairs and stored. */
static void count_whole_kernel(const fpa_counting *to, double count, double more)
{
    const double stores = to->plan->c.pairs ? 0.5 : 1, pairs = to->plan->c.pairs ? 0.5 : 0;
    counting_once(to, (fpa_cpu_loop){.name = "kernel",
                                     .runs = count,
                                     .step.arithmetic = kernel_operations(to->plan) + more,
                                     .step.loads = more / 2,
                                     .step.shuffles = pairs,
                                     .step.roundings = pairs,
                                     .step.stores = stores});
}

/* Counts scores times values, with `steps` keys for each row. */
static void count_values(const fpa_counting *to, int keys, int tokens, double steps, bool are_pairs)
{
    const fpa_plan *plan = to->plan;
    const double count = counting_vectors(plan, tokens);
    if (plan->c.pairs && !are_pairs)
        counting_pairing(to, "pairs of scores", keys, count);
    counting_product(to, (fpa_product){.name = "scores by values",
                                       .rows = counting_whole_rows(tokens, plan->c.values),
                                       .columns = plan->head->dv,
                                       .tile = plan->c.values,
                                       .steps = counting_steps(plan, steps),
                                       .times = 1,
                                       .fetches = true});
    if (counting_normalizes(plan))
        counting_loop(to, (fpa_cpu_loop){.name = "sums of scores",
                                         .runs = count,
                                         .steps = counting_steps(plan, keys),
                                         .step.arithmetic = 1,
                                         .step.loads = 1,
                                         .others = 2,
                                         .chain = 1,
                                         .first = 1,
                                         .last = 1});
}

void scores_full(const fpa_counting *to, int keys, int tokens)
{
    const fpa_plan *plan = to->plan;
    const bool whole = plan->c.whole_scores.rows;
    count_dots(to, whole ? plan->c.whole_scores : plan->c.scores, keys, counting_whole_vectors(plan, tokens),
               1);
    (whole ? count_whole_kernel : count_kernel)(to, keys * counting_vectors(plan, tokens),
                                                plan->head->gate ? 2 : 0);
    count_values(to, keys, tokens, keys, whole);
}

void scores_diagonal(const fpa_counting *to, int tokens)
{
    const fpa_plan *plan = to->plan;
    const int lanes = counting_lanes(plan), rows = plan->c.scores.rows,
              count = counting_whole_vectors(plan, tokens);
    for (int j = 0; j < tokens; j += rows)
        count_dots(to, plan->c.scores, rows, count - j / lanes * lanes, 1);
    double seen = 0;
    for (int t = 0; t < count; t += lanes)
        seen += t + lanes < tokens ? t + lanes : tokens;
    count_kernel(to, seen, plan->head->gate ? 6 : 1);
    counting_once(to, (fpa_cpu_loop){.name = "clear",
                                     .runs = (double)tokens * count / lanes - seen,
                                     .step.stores = 1,
                                     .others = 1});
    double steps = 0;
    const int value_rows = plan->c.values.rows;
    for (int m = 0; m < tokens; m += value_rows)
        steps += m + value_rows < tokens ? m + value_rows : tokens;
    count_values(to, tokens, tokens, steps / ceil((double)tokens / value_rows), false);
}

/* ---- windows ---- */

/* 1 + 2 + ... + count, none of them above `most`. */
static double sum_below(double count, double most)
{
    return count <= most ? count * (count + 1) / 2 : most * (most + 1) / 2 + (count - most) * most;
}

fpa_window_panels scores_window_panels(const fpa_plan *plan, double first, double last)
{
    const int tokens = plan->c.tokens, window = plan->written->window;
    const double whole = floor((double)window / tokens), some = floor((window + tokens - 2.0) / tokens) + 1;
    const double near = sum_below(last, whole) - sum_below(first - 1, whole);
    const double both = sum_below(last, some) - sum_below(first - 1, some) - near;
    return (fpa_window_panels){near, both, sum_below(last, last) - sum_below(first - 1, last) - near - both};
}

/* Counts the exponents of a panel of keys, their maximum, and exponentials of the differences, with selections by
 * a key's distance. */
static void count_exponents(const fpa_counting *to, int tokens, double times)
{
    const fpa_plan *plan = to->plan;
    const double count = counting_vectors(plan, tokens);
    counting_product(to, (fpa_product){.name = "exponents",
                                       .rows = plan->c.tokens,
                                       .columns = counting_whole_vectors(plan, tokens),
                                       .tile = plan->c.scores,
                                       .steps = head_width(plan->written),
                                       .times = times,
                                       .clears = true});
    counting_once(to, (fpa_cpu_loop){.name = "largest exponents",
                                     .runs = times * count * plan->c.tokens,
                                     .step = {.arithmetic = 12, .loads = 1},
                                     .others = 3});
    counting_once(to, (fpa_cpu_loop){.name = "exponentials",
                                     .runs = times * count * plan->c.tokens,
                                     .step = {.arithmetic = 34, .loads = 1, .stores = 1},
                                     .others = 3});
}

void scores_window(const fpa_counting *to, fpa_window_panels panels, int tokens)
{
    const fpa_plan *plan = to->plan;
    const int keys = plan->c.tokens;
    const double count = counting_vectors(plan, tokens), all = panels.near + panels.both + panels.far;
    fpa_counting each = *to;
    count_exponents(to, tokens, panels.near + panels.both);
    each.times *= panels.both + panels.far;
    count_dots(&each, plan->c.scores, keys, counting_whole_vectors(plan, tokens), 1);
    count_kernel(&each, keys * count, 6);
    each.times = to->times * all;
    count_values(&each, keys, tokens, keys, false);
}
