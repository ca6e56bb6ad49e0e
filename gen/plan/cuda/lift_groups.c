#include "lift_groups.h"

#include "base/dtype.h"
#include "base/round.h"
#include "head/lift.h"
#include "lift_numbers.h"
#include "parts.h"
#include "work.h"

enum {
    WARPGROUP = 128, /* threads */
    TOKENS = 64,     /* tokens of a warpgroup: 16 a warp */
    /* rows of matrices in one product, so that a thread can hold the sums of two products; */
    MOST_ROWS = 128,
    LEAST_MOST = 64, /* or this many, if that leaves registers for one warpgroup more */
    /* rows of all matrices: with fewer, blocks of warps do not wait for tensor cores, and matrices in two
     * parts take less time than tokens in f16 */
    LEAST_ROWS = 128,
    MOST_WIDTH = 128,  /* so that 16 tokens stay in a warp's registers */
    SLAB_NUMBERS = 64, /* numbers of a slab's row */
    /* registers beside sums and tokens: of lift_rows, of one lifter, of a packing thread */
    REST = 56,
    SINGLE_REST = 40,
    PAIR_REST = 24,
    REGISTERS = 65536, /* registers of a multiprocessor */
    MOST_REGISTERS = 248,
    LEAST_GROUPS = 2, /* one multiplies while the other's sums become coordinates */
    MOST_GROUPS = 4,
};

/* How a part's rows are divided among products. */
typedef struct part_shape {
    int rows;    /* rows of each matrix in a product */
    int blocks;  /* products for all rows */
    int columns; /* columns of a product: rows of all matrices */
    int pieces;  /* 16-bit parts of matrix elements */
} part_shape;

static int factor_sides(const fpa_lift_part *part)
{
    return part->is_complex ? 2 : 1;
}

static int factor_matrix(const fpa_lift_part *part, int factor, int side)
{
    return side == 0 ? part->factors[factor].source : part->factors[factor].imaginary;
}

static bool is_whole(const fpa_plan *plan, const fpa_lift_part *part)
{
    const fpa_head *written = plan->written;
    for (int f = 0; f < part->factor_count; f++)
        for (int s = 0; s < factor_sides(part); s++)
            if (!lift_is_whole(&written->matrices[factor_matrix(part, f, s)], written->lift->width,
                               plan->head->dtype))
                return false;
    return true;
}

static part_shape shape_of(const fpa_plan *plan, const fpa_cuda_lift *l, const fpa_lift_part *part)
{
    const int matrices = part->factor_count * factor_sides(part);
    const int most = l->rows / matrices / 8 * 8, blocks = divide_up(part->rows, most);
    const int rows = (int)round_up(divide_up(part->rows, blocks), 8);
    return (part_shape){rows, blocks, matrices * rows, l->in_f16 || is_whole(plan, part) ? 1 : 2};
}

/* The number of rows of all factors' matrices. */
static int count_matrix_rows(const fpa_lift *lift)
{
    int rows = 0;
    for (int i = 0; i < lift->part_count; i++)
        rows += lift->parts[i].rows * lift->parts[i].factor_count * factor_sides(&lift->parts[i]);
    return rows;
}

/* Whether matrices are one part of f16, which has three bits more than the bf16 of coordinates, instead of
 * two parts of bf16. If one part of bf16 is exact, that is used. */
static bool is_for_f16(const fpa_plan *plan)
{
    const fpa_lift *lift = plan->written->lift;
    bool whole = true;
    if (count_matrix_rows(lift) < LEAST_ROWS)
        return false;
    for (int i = 0; i < lift->part_count; i++) {
        const fpa_lift_part *part = &lift->parts[i];
        whole = whole && is_whole(plan, part);
        for (int f = 0; f < part->factor_count; f++)
            for (int s = 0; s < factor_sides(part); s++)
                if (!lift_is_ordinary(&plan->written->matrices[factor_matrix(part, f, s)], lift->width))
                    return false;
    }
    return !whole && plan->head->dtype == FPA_BF16;
}

static int slabs_of(const fpa_lift *lift)
{
    return divide_up(lift->width, SLAB_NUMBERS);
}

static int steps_of(const fpa_lift *lift)
{
    return (lift->width + 15) / 16;
}

/* Whether a matrix is the same for all heads, so that it can stay in shared memory. */
static bool is_operand(const fpa_matrix *matrix)
{
    return matrix->kind != FPA_MATRIX_TRAINABLE_DIAGONAL && !matrix->heads && !matrix->per_head;
}

/* Whether all rows of a part are products with matrices. */
static bool is_projected(const fpa_plan *plan, const fpa_lift_part *part)
{
    if (part->angle != FPA_NO_MATRIX ||
        (part->map[FPA_QUERY] == FPA_MAP_ONE && part->map[FPA_KEY] == FPA_MAP_ONE) ||
        part->factor_count * factor_sides(part) > MOST_ROWS / 8)
        return false;
    for (int f = 0; f < part->factor_count; f++)
        for (int s = 0; s < factor_sides(part); s++) {
            const int source = factor_matrix(part, f, s);
            if (source == FPA_INPUT || !is_operand(&plan->written->matrices[source]))
                return false;
        }
    return true;
}

static bool suits(const fpa_plan *plan, bool packed)
{
    const fpa_lift *lift = plan->written->lift;
    if (!plan->target->warpgroups || dtype_size(plan->head->dtype) != 2 || lift->width > MOST_WIDTH)
        return false;
    for (int i = 0; i < lift->part_count; i++)
        if (!is_projected(plan, &lift->parts[i]))
            return false;
    return packed || count_matrix_rows(lift) >= LEAST_ROWS;
}

/* Chooses as many warpgroups as registers and shared memory hold; false if fewer than two fit. */
static bool place_groups(const fpa_plan *plan, fpa_cuda_lift *l, int registers)
{
    for (l->groups = MOST_GROUPS; l->groups >= LEAST_GROUPS; l->groups--) {
        const int own = REGISTERS / WARPGROUP / l->groups / 8 * 8;
        l->bytes = l->matrix_bytes + l->groups * l->group_bytes;
        if (registers <= (own < MOST_REGISTERS ? own : MOST_REGISTERS) &&
            l->bytes <= plan->target->shared_memory)
            return true;
    }
    return false;
}

/* The most sums of a product; *products: the number of products of all parts. */
static int most_sums(const fpa_plan *plan, const fpa_cuda_lift *l, int *products)
{
    const fpa_lift *lift = plan->written->lift;
    int most = 0;
    *products = 0;
    for (int i = 0; i < lift->part_count; i++) {
        const part_shape shape = shape_of(plan, l, &lift->parts[i]);
        *products += shape.blocks;
        most = largest(most, shape.columns / 2);
    }
    return most;
}

int lift_group_registers(const fpa_plan *plan, const fpa_cuda_lift *l)
{
    int products;
    const int most = most_sums(plan, l, &products);
    return most * (products > 1 ? 2 : 1) + 4 * steps_of(plan->written->lift) + REST;
}

int lift_single_registers(const fpa_plan *plan, const fpa_cuda_lift *l)
{
    int products;
    return most_sums(plan, l, &products) + 4 * steps_of(plan->written->lift) + SINGLE_REST;
}

int lift_pair_registers(const fpa_plan *plan, const fpa_cuda_lift *l)
{
    int products;
    return 2 * most_sums(plan, l, &products) + 4 * steps_of(plan->written->lift) + PAIR_REST;
}

int lift_given_bytes(const fpa_lift *lift)
{
    return TOKENS * slabs_of(lift) * SLAB_ROW;
}

static bool place_rows(const fpa_plan *plan, fpa_cuda_lift *l)
{
    const fpa_lift *own = plan->written->lift;
    const int slabs = slabs_of(own);
    l->matrix_bytes = 0;
    for (int i = 0; i < own->part_count; i++) {
        const part_shape shape = shape_of(plan, l, &own->parts[i]);
        l->matrix_bytes += shape.blocks * shape.pieces * slabs * shape.columns * SLAB_ROW;
    }
    l->strip_pitch = (int)round_up(2 * l->vector, 32) + 16;
    l->group_bytes = (int)round_up(lift_given_bytes(own) + TOKENS * l->strip_pitch, 1024);
    return place_groups(plan, l, lift_group_registers(plan, l));
}

/* Whether products of `rows` rows have at least 8 rows of each matrix of a part. */
static bool has_rows(const fpa_plan *plan, int rows)
{
    const fpa_lift *lift = plan->written->lift;
    for (int i = 0; i < lift->part_count; i++)
        if (lift->parts[i].factor_count * factor_sides(&lift->parts[i]) > rows / 8)
            return false;
    return true;
}

/* Whether products of fewer rows are better: if they leave registers for one more warpgroup, or if otherwise no
 * product would be in flight while numbers are mapped. */
static bool has_narrow(const fpa_plan *plan, const fpa_cuda_lift *wide, const fpa_cuda_lift *narrow)
{
    int products;
    most_sums(plan, wide, &products);
    return narrow->groups > wide->groups || (narrow->groups == wide->groups && products == 1);
}

bool lift_by_groups(const fpa_plan *plan, bool packed, fpa_cuda_lift *lift)
{
    fpa_cuda_lift l = {.vector = lift->vector, .tokens = TOKENS, .blocks = 1, .rows = MOST_ROWS, .steps = 1};
    if (!suits(plan, packed))
        return false;
    l.in_f16 = is_for_f16(plan);
    fpa_cuda_lift narrow = l;
    narrow.rows = LEAST_MOST;
    const bool fits = place_rows(plan, &l);
    if (has_rows(plan, LEAST_MOST) && place_rows(plan, &narrow) && (!fits || has_narrow(plan, &l, &narrow)))
        l = narrow;
    else if (!fits)
        return false;
    l.threads = l.groups * WARPGROUP;
    *lift = l;
    return true;
}

bool lift_is_constant(const fpa_head *written)
{
    for (int i = 0; i < written->matrix_count; i++)
        if (written->matrices[i].kind != FPA_MATRIX_CONSTANT)
            return false;
    return true;
}

struct fpa_cuda_work work_lift_groups(const fpa_plan *plan)
{
    /* instructions: of a warp's turn, which finds its tokens and the next ones; of fetching 16 bytes; of a
     * product and its operand; of converting 16 columns of 16 tokens to f16 */
    enum { LANES = 32, TURN = 170, FETCH = 10, PRODUCT = 4, NARROW = 32, LINE = 128 };
    const fpa_lift *lift = plan->written->lift;
    const fpa_cuda_lift *l = &plan->cuda.lift;
    struct fpa_cuda_work work = {.bytes = 16 * 2 * (lift->width + l->vector),
                                 .instructions = TURN + (FETCH + (l->in_f16 ? NARROW : 0)) * steps_of(lift),
                                 .shared = 16 * (2 * slabs_of(lift) * SLAB_ROW + 2 * l->vector) / LINE};
    for (int i = 0; i < lift->part_count; i++) {
        const fpa_lift_part *part = &lift->parts[i];
        const part_shape shape = shape_of(plan, l, part);
        const int products = shape.blocks * shape.pieces * steps_of(lift);
        work.products += products * shape.columns / 8;
        work.shared += products * shape.columns / 16 + 16 * lift_coordinates(part) / LANES;
        work.instructions += PRODUCT * products + 16 * part->rows * lift_finishing(lift, part, true) / LANES;
    }
    return work;
}

struct fpa_cuda_work work_lift_beside(const fpa_plan *plan)
{
    /* finding and announcing a buffer takes fewer instructions than finding tokens; 16 bytes that are not
     * stored in device memory take none; coordinates are stored in blocks of 16 x 16 */
    enum { TURN = 60, LEAVING = 5, LANES = 32, PIECE = 8, BLOCK = 16 };
    const fpa_cuda_lift *l = &plan->cuda.lift;
    const int numbers = 16 * l->vector, stored = numbers / LANES - numbers / BLOCK / BLOCK;
    struct fpa_cuda_work work = work_lift_groups(plan);
    work.bytes = 16 * 2 * plan->written->lift->width;
    work.instructions -= TURN + LEAVING * numbers / PIECE / LANES + stored;
    work.shared -=
        numbers /
        LANES; /* one line for each store to strips; stores of matrices take as many as reading strips */
    return work;
}
