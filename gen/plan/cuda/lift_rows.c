/* plan_cuda_lift: sizes of NAME_lift_rows, and its work. */
#include "lift_rows.h"

#include "abi/cuda_kernels.h"
#include "base/dtype.h"
#include "base/round.h"
#include "fused_packed.h"
#include "head/lift.h"
#include "lift_groups.h"
#include "lift_numbers.h"
#include "parts.h"
#include "work.h"

#define LIFT(member) FIELD(fpa_cuda_lift, member)
const fpa_field cuda_lift_fields[] = {
    LIFT(vector),      LIFT(threads),      LIFT(tokens),
    LIFT(blocks),      LIFT(rows),         LIFT(steps),
    LIFT(keeps),       LIFT(stages),       LIFT(pitch),
    LIFT(places),      LIFT(positions),    LIFT(about),
    LIFT(norms),       LIFT(strips),       LIFT(strip_count),
    LIFT(strip_pitch), LIFT(bytes),        FIELD_CONSTANT("most_turns", LIFT_MOST_TURNS),
    LIFT(groups),      LIFT(matrix_bytes), LIFT(group_bytes),
    LIFT(in_f16),      FIELDS_END};

enum { LANES = 32, WARP_ROWS = 16, PIECE = 8 };

/* Whether some part makes two coordinates of each row. */
static bool has_pairs(const fpa_lift *lift)
{
    for (int i = 0; i < lift->part_count; i++)
        if (lift_coordinates(&lift->parts[i]) > lift->parts[i].rows)
            return true;
    return false;
}

static bool is_projected(const fpa_head *written, int source)
{
    return source != FPA_INPUT && written->matrices[source].kind != FPA_MATRIX_TRAINABLE_DIAGONAL;
}

/* Dense rows that all factors project together. */
static int projected_rows(const fpa_head *written, const fpa_lift_part *part)
{
    int rows = 0;
    for (int f = 0; f < part->factor_count; f++)
        if (is_projected(written, part->factors[f].source))
            rows += part->rows * (part->is_complex ? 2 : 1);
    return rows;
}

static bool projects(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    for (int i = 0; i < lift->part_count; i++)
        if (projected_rows(plan->written, &lift->parts[i]))
            return true;
    return false;
}

/* ---- what stays in registers ---- */

static int kept_of_matrix(const fpa_plan *plan, int source, const fpa_lift *lift)
{
    const fpa_matrix *matrix = &plan->written->matrices[source];
    const int parts = lift_is_whole(matrix, lift->width, plan->head->dtype) ? 1 : 2;
    return parts * LIFT_STEP_REGISTERS * ((lift->width + 15) / 16);
}

/* Registers for the angles of a thread's rows: turns in two parts, a phase, an amplitude. */
static int kept_of_angles(const fpa_lift *lift, const fpa_lift_part *part, bool projected)
{
    const int rows = projected ? WARP_ROWS / 4 : PIECE;
    if (part->angle == FPA_NO_MATRIX || lift->positions * rows > LIFT_MOST_TURNS)
        return 0;
    return rows * (2 * lift->positions + (part->phase != FPA_NO_MATRIX) + (part->amplitude != FPA_NO_MATRIX));
}

/* Registers that hold the data of one block of a part's rows. */
static int kept_of_step(const fpa_plan *plan, const fpa_lift_part *part)
{
    const fpa_lift *lift = plan->written->lift;
    const bool projected = projected_rows(plan->written, part) > 0;
    int registers = kept_of_angles(lift, part, projected);
    for (int f = 0; f < part->factor_count; f++) {
        const fpa_lift_factor *factor = &part->factors[f];
        if (is_projected(plan->written, factor->source))
            registers += kept_of_matrix(plan, factor->source, lift);
        if (factor->imaginary >= 0)
            registers += kept_of_matrix(plan, factor->imaginary, lift);
    }
    return registers;
}

/* Registers that hold the data of all parts, in blocks of `rows` rows. */
static int kept_registers(const fpa_plan *plan, int rows)
{
    const fpa_lift *lift = plan->written->lift;
    int registers = 0;
    for (int i = 0; i < lift->part_count; i++)
        registers += kept_of_step(plan, &lift->parts[i]) * divide_up(lift->parts[i].rows, rows);
    return registers;
}

/* ---- sizes ---- */

static int most_factors(const fpa_lift *lift)
{
    int most = 0;
    for (int i = 0; i < lift->part_count; i++)
        most = largest(most, lift->parts[i].factor_count);
    return most;
}

/* Blocks a multiprocessor, by the registers that sums of products take; both numbers of a pair are made
 * together. Coordinates that are not projected have no such sums: many blocks keep the memory busy. */
static int blocks_of(const fpa_plan *plan, const fpa_cuda_lift *l)
{
    /* registers beside the kept data, and for each factor; registers and threads of a multiprocessor */
    enum { SUMS = 36, FACTOR = 12, ALL = 65536, MOST = 768 };
    const fpa_lift *lift = plan->written->lift;
    const bool wide = dtype_size(plan->head->dtype) == 4;
    if (l->keeps && projects(plan)) {
        const int own = (SUMS + FACTOR * most_factors(lift)) * (has_pairs(lift) ? 2 : 1);
        const int registers = round_up(kept_registers(plan, l->rows) + own, 8);
        const int blocks = ALL / l->threads / registers, most = MOST / l->threads;
        return blocks > most ? most : largest(blocks, 1);
    }
    if (projects(plan))
        return has_pairs(lift) ? 2 : wide ? 3 : 4;
    return wide ? 3 : lift->positions ? 4 : 6;
}

/* Addresses after the stages of x: of each token its offset, positions and norm, then strips of finished rows
 * to be stored. Offsets and positions have one stage more than x: they are read once more when a token's rows
 * are stored, a stage later. */
static void place_tokens(fpa_cuda_lift *l, const fpa_lift *lift, int tokens, int stages)
{
    l->tokens = tokens;
    l->stages = stages;
    l->places = stages * tokens * l->pitch;
    l->positions = l->places + 8 * tokens;
    l->about = round_up(tokens * (8 + 4 * lift->positions), 16);
    l->norms = l->places + (stages + 1) * l->about;
    l->strips = round_up(l->norms + 4 * tokens, 16);
    l->strip_pitch = 2 * l->rows + 32; /* rows of 4 tokens, 8 bytes a lane, use all banks */
    l->bytes = l->strips + l->strip_count * tokens * l->strip_pitch;
}

/* Two stages of all tokens, or what fits. */
static void place_in(fpa_cuda_lift *l, const fpa_plan *plan)
{
    for (int tokens = LIFT_TOKENS; tokens >= LIFT_TOKENS / 2; tokens /= 2)
        for (int stages = 2; stages > 0; stages--) {
            place_tokens(l, plan->written->lift, tokens, stages);
            if (l->bytes <= plan->target->shared_memory)
                return;
        }
}

/* Strips through which rows are stored: one for each block of rows if its data is kept in registers, else one
 * for all. Parts of whole pieces that are not projected need none. */
static int count_strips(const fpa_plan *plan, int rows, bool keeps)
{
    const fpa_lift *lift = plan->written->lift;
    int all = 0, first = 0;
    for (int i = 0; i < lift->part_count; first += lift_coordinates(&lift->parts[i++])) {
        const fpa_lift_part *part = &lift->parts[i];
        if (projected_rows(plan->written, part) || part->rows % PIECE || first % PIECE)
            all += divide_up(part->rows, rows) * (lift_coordinates(part) / part->rows);
    }
    return keeps || all == 0 ? all : has_pairs(lift) + 1;
}

/* Rows that a block processes at a time: 16 a warp; in fp32 one a lane. */
static void share_rows(fpa_cuda_lift *l, const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    int most = 0;
    for (int i = 0; i < lift->part_count; i++)
        most = largest(most, lift->parts[i].rows);
    l->threads = LIFT_THREADS;
    l->rows = LANES;
    if (dtype_size(plan->head->dtype) == 4)
        return;
    const int rows = WARP_ROWS * LIFT_THREADS / LANES, threads = most > rows && projects(plan) ? 2 : 1;
    l->keeps = kept_registers(plan, threads * rows) <= LIFT_MOST_KEPT &&
               count_strips(plan, threads * rows, true) <= LIFT_MOST_STRIPS;
    l->threads *= l->keeps ? threads : 1;
    l->rows = WARP_ROWS * l->threads / LANES;
}

fpa_cuda_lift plan_cuda_lift(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    const int element = (int)dtype_size(plan->head->dtype);
    fpa_cuda_lift l = {0};
    if (!lift)
        return l;
    l.vector = round_up(plan->head->d, 16 / element);
    if (lift_by_groups(plan, plan->cuda.fused_packed && plan->cuda.fused_packed->lifts, &l))
        return l;
    share_rows(&l, plan);
    l.blocks = blocks_of(plan, &l);
    for (int i = 0; i < lift->part_count; i++)
        l.steps += divide_up(lift->parts[i].rows, l.rows);
    /* an odd number of pieces, so that 8 tokens use all banks; columns in whole steps of the matrix
     * instruction */
    l.pitch = element == 2 ? round_up(lift->width * element, 32) + 16 : round_up(lift->width * element, 16);
    l.strip_count = element == 2 ? count_strips(plan, l.rows, l.keeps) : 0;
    place_in(&l, plan);
    return l;
}

bool lift_in_place(const fpa_plan *plan)
{
    return plan->written->lift && lift_maps_only(plan->written->lift) && plan->head->d % 8 == 0 &&
           plan->head->dv % 8 == 0;
}

/* ---- counts ---- */

/* Products of dense rows for 16 tokens, 8 rows at a time: 16 columns are two products, or one if one 16-bit
 * part represents the matrix. Kept matrices cost nothing more. Otherwise a block's tokens share the
 * fragments: constants are stored as such; of other matrices 16 pairs are loaded and split by 8 instructions
 * each. */
static void count_products(const fpa_plan *plan, int rows, const fpa_matrix *matrix,
                           struct fpa_cuda_work *work)
{
    enum { SPLIT = 8 * 4, READ = 2, FRAGMENT = 4 };
    const fpa_cuda_lift *l = &plan->cuda.lift;
    const int width = plan->written->lift->width, steps = (rows + 7) / 8 * ((width + 15) / 16);
    const bool constant = matrix->kind == FPA_MATRIX_CONSTANT;
    const int parts = l->keeps && lift_is_whole(matrix, width, plan->head->dtype) ? 1 : 2;
    work->products += parts * steps;
    work->instructions += parts * steps + steps / 2;
    work->shared += steps / 2 * FRAGMENT;
    if (l->keeps)
        return;
    work->instructions += steps * (constant ? READ : SPLIT) * 16 / l->tokens;
    work->shared += constant ? steps * FRAGMENT * 16 / l->tokens : 0;
}

/* The same by FMAs: an element of the matrix is loaded once for 16 tokens, and four of their numbers at a
 * time. */
static void count_sums(const fpa_plan *plan, int rows, struct fpa_cuda_work *work)
{
    const int numbers = rows * plan->written->lift->width;
    work->instructions += numbers * (16 + 4 + 1) / LANES;
    work->shared += numbers * 4 / LANES;
}

/* The products of a part's rows, of all its factors. */
static void count_part(const fpa_plan *plan, const fpa_lift_part *part, struct fpa_cuda_work *work)
{
    const fpa_head *written = plan->written;
    for (int f = 0; f < part->factor_count; f++) {
        const fpa_lift_factor *factor = &part->factors[f];
        if (is_projected(written, factor->source))
            count_products(plan, part->rows, &written->matrices[factor->source], work);
        if (factor->imaginary >= 0)
            count_products(plan, part->rows, &written->matrices[factor->imaginary], work);
    }
}

/* Work for 16 tokens. Each warp finds its next task once for all tokens of a block; fetching 16 bytes takes
 * 10 instructions, storing them 12. */
static struct fpa_cuda_work count_step(const fpa_plan *plan)
{
    enum { TURN = 150, FETCH = 10, SEND = 12 };
    const fpa_head *written = plan->written;
    const fpa_lift *lift = written->lift;
    const fpa_cuda_lift *l = &plan->cuda.lift;
    const int element = (int)dtype_size(written->dtype);
    struct fpa_cuda_work work = {.bytes = 16 * element * (lift->width + l->vector),
                                 .instructions =
                                     TURN * l->threads / LANES * 16 / l->tokens +
                                     16 * (FETCH * l->pitch + SEND * l->vector * element) / 16 / LANES,
                                 .shared = 16 * (l->pitch + 2 * l->vector * element) / 128};
    for (int i = 0; i < lift->part_count; i++) {
        const fpa_lift_part *part = &lift->parts[i];
        work.instructions += 16 * part->rows * lift_finishing(lift, part, element == 2) / LANES;
        if (element == 4)
            count_sums(plan, projected_rows(written, part), &work);
        else
            count_part(plan, part, &work);
    }
    return work;
}

/* Whether kept data changes with the head: matrices of each head, or angles (queries and keys have different
 * ones, too). */
static bool keeps_by_heads(const fpa_head *written)
{
    for (int i = 0; i < written->lift->part_count; i++)
        if (written->lift->parts[i].angle != FPA_NO_MATRIX)
            return true;
    for (int m = 0; m < written->matrix_count; m++)
        if (written->matrices[m].heads || written->matrices[m].per_head)
            return true;
    return false;
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
    g->lift_by_heads = !l->groups && l->keeps && keeps_by_heads(plan->written);
    g->key_mask = lift->key_mask;
    g->work[CUDA_LIFT_ROWS] =
        (struct fpa_cuda_kernel_work){.step = l->groups ? work_lift_groups(plan) : count_step(plan),
                                      .warpgroups = l->groups > 0,
                                      .trips = 2};
}

void print_lift_rows(FILE *out, const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    const fpa_cuda_lift *l = &plan->cuda.lift;
    if (lift && l->groups)
        fprintf(out,
                "lift_rows    %d coordinates from q and k of width %d%s, %d part%s; %d warpgroups a block, "
                "%d tokens each, matrices of %.1f KiB%s; %.1f KiB of shared memory\n",
                plan->head->d, lift->width, lift->key_mask ? ", keys may be masked" : "", lift->part_count,
                lift->part_count == 1 ? "" : "s", l->groups, l->tokens, l->matrix_bytes / 1024.0,
                l->in_f16 ? " in f16" : "", l->bytes / 1024.0);
    else if (lift)
        fprintf(out,
                "lift_rows    %d coordinates from q and k of width %d%s%s, %d part%s; %d tokens a block, %d "
                "rows at a time; %.1f KiB of shared memory\n",
                plan->head->d, lift->width, lift->positions ? " and positions" : "",
                lift->key_mask ? ", keys may be masked" : "", lift->part_count,
                lift->part_count == 1 ? "" : "s", l->tokens, l->rows, l->bytes / 1024.0);
}
