/* plan_cuda_lift: sizes of NAME_lift_rows, and what it does, counted. */
#include "lift_rows.h"

#include "abi/cuda_kernels.h"
#include "head/lift.h"
#include "parts.h"
#include "work.h"

#define LIFT(member) FIELD(fpa_cuda_lift, member)
const fpa_field cuda_lift_fields[] = {
    LIFT(vector), LIFT(threads), LIFT(tokens),    LIFT(blocks), LIFT(rows),        LIFT(steps), LIFT(pitch),
    LIFT(norms),  LIFT(places),  LIFT(positions), LIFT(strips), LIFT(strip_pitch), LIFT(bytes), FIELDS_END};

enum { LANES = 32, MMA_ROWS = 16 * LIFT_THREADS / LANES };

/* Whether a row is two coordinates. */
static bool has_pairs(const fpa_lift *lift)
{
    for (int i = 0; i < lift->part_count; i++)
        if (lift_coordinates(&lift->parts[i]) > lift->parts[i].rows)
            return true;
    return false;
}

/* Dense rows that all factors project together. */
static int projected_rows(const fpa_head *written, const fpa_lift_part *part)
{
    int rows = 0;
    for (int f = 0; f < part->factor_count; f++) {
        const int source = part->factors[f].source;
        if (source != FPA_INPUT && written->matrices[source].kind != FPA_MATRIX_TRAINABLE_DIAGONAL)
            rows += part->rows * (part->is_complex ? 2 : 1);
    }
    return rows;
}

/* Blocks of a multiprocessor, by the registers that sums of products take; numbers of a pair are made together. Coordinates
 * that are not projected have none: many blocks keep the memory busy. */
static int blocks_of(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    for (int i = 0; i < lift->part_count; i++)
        if (projected_rows(plan->written, &lift->parts[i]))
            return has_pairs(lift) ? 2 : dtype_size(plan->head->dtype) == 4 ? 3 : 4;
    return dtype_size(plan->head->dtype) == 4 ? 3 : lift->positions ? 4 : 6;
}

/* Behind x come, of each token, its place, norm, positions, and rows on their way out. */
static void place_tokens(fpa_cuda_lift *l, const fpa_lift *lift, int element, int tokens)
{
    const int strips = element == 2 ? has_pairs(lift) + 1 : 0;
    l->tokens = tokens;
    l->places = tokens * l->pitch;
    l->norms = l->places + 8 * tokens;
    l->positions = l->norms + 4 * tokens;
    l->strips = round_up(l->positions + 4 * tokens * lift->positions, 16);
    l->strip_pitch = 2 * l->rows + 32; /* 4 tokens' numbers of 8 bytes a lane lie in all banks */
    l->bytes = l->strips + strips * tokens * l->strip_pitch;
}

fpa_cuda_lift plan_cuda_lift(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    const int element = (int)dtype_size(plan->head->dtype);
    fpa_cuda_lift l = {0};
    if (!lift)
        return l;
    l.vector = round_up(plan->head->d, 16 / element);
    l.threads = LIFT_THREADS;
    l.blocks = blocks_of(plan);
    l.rows = element == 2 ? MMA_ROWS : LANES;
    for (int i = 0; i < lift->part_count; i++)
        l.steps += (lift->parts[i].rows + l.rows - 1) / l.rows;
    /* an odd number of pieces: 8 tokens lie in all banks; columns of whole steps of the matrix instruction */
    l.pitch = element == 2 ? round_up(lift->width * element, 32) + 16 : round_up(lift->width * element, 16);
    place_tokens(&l, lift, element, LIFT_TOKENS);
    if (l.bytes > plan->target->shared_memory)
        place_tokens(&l, lift, element, LIFT_TOKENS / 2);
    return l;
}

/* ---- counts ---- */

/* Instructions of a number's map: the special function unit's, or functions of fp32. */
static int map_instructions(const fpa_lift_part *part, bool half)
{
    static const int map[2][FPA_MAPS] = {{[FPA_MAP_RELU] = 1,
                                          [FPA_MAP_ELU_PLUS_ONE] = 12,
                                          [FPA_MAP_SOFTPLUS] = 45,
                                          [FPA_MAP_EXP] = 10,
                                          [FPA_MAP_SILU] = 25},
                                         {[FPA_MAP_RELU] = 1,
                                          [FPA_MAP_ELU_PLUS_ONE] = 5,
                                          [FPA_MAP_SOFTPLUS] = 14,
                                          [FPA_MAP_EXP] = 2,
                                          [FPA_MAP_SILU] = 5}};
    return largest(map[half][part->map[FPA_QUERY]], map[half][part->map[FPA_KEY]]);
}

/* Of one row and token: its products, its map, what an angle is made to, its stores. */
static int finishing(const fpa_lift *lift, const fpa_lift_part *part, bool half)
{
    enum { STORE = 2, PRODUCT = 1, TURN = 30, NUMBER = 3, HALF_TURN = 12, HALF_NUMBER = 6 };
    const int number = half ? HALF_NUMBER : NUMBER;
    const int turn = part->angle == FPA_NO_MATRIX ? 0 : (half ? HALF_TURN : TURN) + number * lift->positions;
    return map_instructions(part, half) + turn + STORE * lift_coordinates(part) / part->rows +
           PRODUCT * part->factor_count * (part->is_complex ? 4 : 1);
}

int work_maps(const fpa_plan *plan)
{
    enum { CONVERT = 4, SHARE = 2 };
    const fpa_lift_part *part = plan->written->lift->parts;
    return SHARE * 16 * 2 * part->rows * (map_instructions(part, true) + CONVERT) / LANES;
}

/* Dense rows of 16 tokens, by 8 rows: each 16 columns are two products, and a block's tokens share the fragments: constants are
 * there as such; of others 16 pairs are fetched and split by 8 instructions each. */
static void count_products(const fpa_plan *plan, int rows, bool constant, struct fpa_cuda_work *work)
{
    enum { SPLIT = 8 * 4, READ = 2, FRAGMENT = 4 };
    const int steps = (rows + 7) / 8 * ((plan->written->lift->width + 15) / 16);
    work->products += 2 * steps;
    work->instructions += steps * (2 + (constant ? READ : SPLIT) * 16 / plan->cuda.lift.tokens) + steps / 2;
    work->shared += steps / 2 * FRAGMENT + (constant ? steps * FRAGMENT * 16 / plan->cuda.lift.tokens : 0);
}

/* The same by FMAs: a row's number is fetched once for 16 tokens, of which four numbers are read at a time. */
static void count_sums(const fpa_plan *plan, int rows, struct fpa_cuda_work *work)
{
    const int numbers = rows * plan->written->lift->width;
    work->instructions += numbers * (16 + 4 + 1) / LANES;
    work->shared += numbers * 4 / LANES;
}

/* 16 bytes of a token are fetched by 12 instructions. */
static struct fpa_cuda_work count_step(const fpa_plan *plan)
{
    enum { FETCH = 12 };
    const fpa_head *written = plan->written;
    const fpa_lift *lift = written->lift;
    const fpa_cuda_lift *l = &plan->cuda.lift;
    const int element = (int)dtype_size(written->dtype);
    struct fpa_cuda_work work = {.bytes = 16 * element * (lift->width + l->vector),
                                 .instructions = 16 * FETCH * l->pitch / 16 / LANES,
                                 .shared = 16 * l->pitch / 128};
    for (int i = 0; i < lift->part_count; i++) {
        const fpa_lift_part *part = &lift->parts[i];
        const int rows = projected_rows(written, part), source = part->factors->source;
        work.instructions += 16 * part->rows * finishing(lift, part, element == 2) / LANES;
        if (element == 2)
            count_products(plan, rows,
                           source != FPA_INPUT && written->matrices[source].kind == FPA_MATRIX_CONSTANT,
                           &work);
        else
            count_sums(plan, rows, &work);
    }
    return work;
}

void geometry_lift_rows(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_lift *lift = plan->written->lift;
    const fpa_cuda_lift *l = &plan->cuda.lift;
    if (!lift)
        return;
    g->kernel[CUDA_LIFT_ROWS] = (struct fpa_cuda_block){l->threads, l->bytes, l->blocks};
    g->lifted_vector = l->vector;
    g->lift_tokens = l->tokens;
    g->lift_steps = l->steps;
    g->key_mask = lift->key_mask;
    g->work[CUDA_LIFT_ROWS] = (struct fpa_cuda_kernel_work){.step = count_step(plan), .trips = 2};
}

void print_lift_rows(FILE *out, const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    const fpa_cuda_lift *l = &plan->cuda.lift;
    if (lift)
        fprintf(out,
                "lift_rows    %d coordinates of q and k of %d numbers%s%s, %d part%s; %d tokens a block, %d "
                "rows at "
                "a time; %.1f KiB of shared memory\n",
                plan->head->d, lift->width, lift->positions ? " and positions" : "",
                lift->key_mask ? ", keys may be masked" : "", lift->part_count,
                lift->part_count == 1 ? "" : "s", l->tokens, l->rows, l->bytes / 1024.0);
}
