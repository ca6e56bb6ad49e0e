#include "counting.h"
#include "base/round.h"

#include <math.h>

/* ---- sizes ---- */

int counting_lanes(const fpa_plan *plan)
{
    return plan->target->vector;
}

double counting_vectors(const fpa_plan *plan, int count)
{
    return ceil((double)count / counting_lanes(plan));
}

bool counting_normalizes(const fpa_plan *plan)
{
    return plan->head->normalize != FPA_NORMALIZE_NONE;
}

/* The number of vectors that contain a row of values: whole ones, then narrower ones. */
double counting_row_vectors(const fpa_plan *plan)
{
    return plan->head->dv / counting_lanes(plan); // NOLINT(bugprone-integer-division): whole vectors
}

double counting_row_rests(const fpa_plan *plan)
{
    double parts = 0;
    for (int bits = plan->head->dv % counting_lanes(plan); bits; bits &= bits - 1)
        parts++;
    return parts;
}

double counting_rows_bytes(const fpa_plan *plan)
{
    double rows = plan->row_count;
    for (int i = 0; plan->c.pairs && i < plan->score->dot_count; i++)
        rows += (plan->dots[i].row_count + 1) / 2; // NOLINT(bugprone-integer-division): whole pairs
    return 4.0 * rows * plan->c.tokens;
}

double counting_read_bytes(const fpa_counting *of)
{
    return 4.0 * of->forming->rows * of->plan->c.tokens;
}

double counting_values_bytes(const fpa_plan *plan)
{
    return 4.0 * plan->head->dv * plan->c.tokens * (plan->c.pairs ? 1.5 : 1);
}

double counting_outputs_bytes(const fpa_plan *plan)
{
    return 4.0 * (plan->head->dv + counting_normalizes(plan)) * plan->c.tokens;
}

double counting_state_bytes(const fpa_plan *plan)
{
    return 4.0 * (double)plan->features * (plan->head->dv + counting_normalizes(plan));
}

void counting_loop(const fpa_counting *to, fpa_cpu_loop loop)
{
    loop.runs *= to->times;
    cpu_work_loop(to->work, loop);
}

void counting_once(const fpa_counting *to, fpa_cpu_loop loop)
{
    loop.steps = 1;
    counting_loop(to, loop);
}

int counting_whole_vectors(const fpa_plan *plan, int tokens)
{
    return (int)counting_vectors(plan, tokens) * counting_lanes(plan);
}

fpa_counting counting_begin(const fpa_plan *plan, fpa_cpu_work *work)
{
    *work = (fpa_cpu_work){.threads = 1};
    return (fpa_counting){plan, &plan->c.forming, work, 1};
}

/* ---- products ---- */

/* Counts the tiles of one shape, with so many vectors of columns, some of them narrow. */
static void count_tiles(const fpa_counting *to, const fpa_product *p, int rows, int columns, int narrow,
                        double runs)
{
    const double sums = (double)rows * columns;
    counting_loop(to, (fpa_cpu_loop){.name = p->name,
                                     .runs = runs * p->times,
                                     .steps = p->steps,
                                     .step.multiply_adds = (double)rows * (columns - narrow),
                                     .step.loads = columns - narrow,
                                     .narrow.multiply_adds = (double)rows * narrow,
                                     .step.broadcasts = rows,
                                     .narrow.loads = narrow,
                                     .others = columns + 2 + (p->fetches ? 2 : 0),
                                     .chain = 1,
                                     .first = p->clears ? 0 : sums,
                                     .last = sums});
}

void counting_product(const fpa_counting *to, fpa_product p)
{
    if (p.columns == 0)
        return;
    const int lanes = counting_lanes(to->plan), parts = tile_vectors(p.columns, lanes);
    const int panels = divide_up(parts, p.tile.vectors);
    for (int i = 0; i < panels; i++) {
        const int columns = parts * (i + 1) / panels - parts * i / panels;
        const int rest = i == panels - 1 && p.columns % lanes && !to->plan->c.pairs;
        const int narrow = p.columns < lanes ? columns : rest;
        const int rows = tile_panel_rows(p.tile, columns), whole = p.rows / p.tile.rows * p.tile.rows;
        if (whole)
            count_tiles(to, &p, rows, columns, narrow, (double)whole / rows);
        if (p.rows % p.tile.rows)
            count_tiles(to, &p, p.rows % p.tile.rows, columns, narrow, 1);
    }
}

/* Tokens rounded up to whole register tiles, as rows of outputs are. */
int counting_whole_rows(int tokens, fpa_register_tile tile)
{
    return round_up(tokens, tile.rows);
}

/* Steps of an inner index of `count`: half as many if the plan multiplies pairs. */
double counting_steps(const fpa_plan *plan, double count)
{
    return plan->c.pairs ? ceil(count / 2) : count;
}

/* Counts the conversion of `rows` rows to pairs: two rows each are rounded and interleaved
 * (templates/c/pairs.c.in: pair_rows). */
void counting_pairing(const fpa_counting *to, const char *name, double rows, double width_vectors)
{
    counting_once(to, (fpa_cpu_loop){.name = name,
                                     .runs = rows / 2 * width_vectors,
                                     .step.loads = 2,
                                     .step.shuffles = 1,
                                     .step.roundings = 1,
                                     .step.stores = 1,
                                     .others = 4});
}

void counting_projection(const fpa_counting *to, const char *name, const fpa_matrix *matrix, int count)
{
    const fpa_plan *plan = to->plan;
    const int panel = plan->c.scores.vectors * counting_lanes(plan);
    const int columns = round_up(count, panel);
    counting_product(to, (fpa_product){.name = name,
                                       .rows = matrix->rows,
                                       .columns = columns < plan->c.tokens ? columns : plan->c.tokens,
                                       .tile = plan->c.scores,
                                       .steps = matrix->cols,
                                       .times = 1,
                                       .clears = true});
}
