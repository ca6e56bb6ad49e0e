/* plan_parallel: NAME_parallel_output: whether a head has it, its warpgroups' registers, and its rings of stages in
 * shared memory. */
#include "machine/cuda_chunk.h"
#include "parts.h"
#include "split_outer.h"
#include "work.h"

enum {
    TILES = 2,              /* of 64 queries of a block */
    OTHERS = 32,            /* registers of a thread that multiplies values, beside its sums, */
    SCORE_OTHERS = 40,      /* and of one that computes scores, beside dots; */
    TURN_OTHERS = 24,       /* more if one warpgroup computes dots in turn for both tiles of queries */
    LAUNCH_REGISTERS = 128, /* of each thread when a block starts */
    REGISTERS = 512,        /* of four threads, one of each warpgroup */
    PRODUCER_REGISTERS = 40,
    MOST_REGISTERS = 232,
    SCORE_STAGES = 2,
    MOST_STAGES = 4,
    BARRIERS = 24,                  /* bytes of a stage's barriers, three at most */
    ITEMS = 16 + 2 * (16 + 64),     /* bytes of two work items with barriers, and of alignment */
    SUMS = 2 * (8 + 4 * 64 * TILES) /* bytes of the sums of scores of their queries, with barriers */
};

/* Bytes of a stage of scores of all tiles of queries; below: of keys, values, queries. */
static int score_bytes(void)
{
    return TILES * (64 * SLAB_ROW + BARRIERS);
}

static int key_bytes(const fpa_split_outer *split)
{
    return (int)divide_up(split->outer.row_blocks, SLAB_BLOCKS) * 64 * SLAB_ROW + BARRIERS;
}

static int value_bytes(const fpa_split_outer *split)
{
    return split->columns.blocks * (int)divide_up(split->columns.tiles, SLAB_BLOCKS) * 64 * SLAB_ROW +
           BARRIERS + 4;
}

static int query_bytes(const fpa_split_outer *split)
{
    return TILES * (key_bytes(split) - BARRIERS) + BARRIERS;
}

/* Adds a stage, if there is room. */
static bool add_stage(const fpa_target *target, int bytes, int most, int *stages, int *all)
{
    if (*stages >= most || *all + bytes > target->shared_memory)
        return false;
    ++*stages;
    *all += bytes;
    return true;
}

/* Divides shared memory among the rings of queries, keys, values and scores: one stage each, then further ones in
 * the order of their use. Values come before keys: the warpgroups that multiply values have nothing else to do
 * while they wait, those that wait for keys are computing scores. */
static bool place_parallel(const fpa_plan *plan, const fpa_split_outer *split, fpa_parallel_output *p)
{
    const fpa_target *target = plan->target;
    const int sums = plan->head->normalize == FPA_NORMALIZE_NONE ? 0 : SUMS;
    const int keys = key_bytes(split), values = value_bytes(split), queries = query_bytes(split);
    p->query_stages = p->key_stages = p->value_stages = p->score_stages = 1;
    p->bytes = ITEMS + sums + queries + keys + values + score_bytes();
    if (p->bytes > target->shared_memory)
        return false;
    add_stage(target, keys, 2, &p->key_stages, &p->bytes);
    add_stage(target, score_bytes(), SCORE_STAGES, &p->score_stages, &p->bytes);
    for (int more = 1; more;)
        more = add_stage(target, values, MOST_STAGES, &p->value_stages, &p->bytes) +
               add_stage(target, keys, MOST_STAGES, &p->key_stages, &p->bytes);
    add_stage(target, queries, 2, &p->query_stages, &p->bytes);
    return p->key_stages > 1;
}

/* Registers of a thread for dots of 64 queries and 64 keys, until they are scores. */
static int dot_registers(const fpa_split_outer *split)
{
    return split->dots_in_turn ? 32 + 2 * (split->turn_keys / 2) : 32 * largest(split->dots, 1);
}

/* Divides three warpgroups and their registers: value_groups of them have the sums of whole blocks of columns, the
 * others compute scores. Whether registers suffice. */
static bool divide_registers(const fpa_split_outer *split, int value_groups, fpa_parallel_output *p)
{
    const int blocks = split->columns.blocks / value_groups, dots = dot_registers(split),
              sums = 4 * TILES * split->columns.tiles * blocks;
    p->value_groups = value_groups;
    p->score_groups = 3 - value_groups;
    p->value_registers = largest((int)divide_up(sums + OTHERS, 8) * 8, LAUNCH_REGISTERS);
    p->producer_registers = PRODUCER_REGISTERS;
    const int rest =
        (REGISTERS - PRODUCER_REGISTERS - value_groups * p->value_registers) / p->score_groups / 8 * 8;
    p->score_registers = rest < MOST_REGISTERS ? rest : MOST_REGISTERS;
    p->together =
        p->score_groups == 1 && !split->dots_in_turn && TILES * dots + SCORE_OTHERS <= p->score_registers;
    const int others = SCORE_OTHERS + (split->dots_in_turn && p->score_groups == 1 ? TURN_OTHERS : 0);
    return split->columns.blocks % value_groups == 0 && p->value_registers <= MOST_REGISTERS &&
           dots + others <= p->score_registers;
}

/* Two warpgroups compute scores if one has registers for the sums of all columns; else one does. */
static bool divide_groups(const fpa_split_outer *split, fpa_parallel_output *p)
{
    return divide_registers(split, 1, p) || divide_registers(split, 2, p);
}

/* Seconds of a token's pairs in a kernel of so many warpgroups. */
static double score_seconds(const fpa_plan *plan, const struct fpa_cuda_kernel_work *work, int groups)
{
    enum { SEEN = 2048 };
    struct fpa_cuda_geometry geometry = {0};
    geometry.work[CUDA_CHUNK_OUTPUT] = *work;
    return cuda_score_seconds(gpu_of_target(plan->target), &geometry, 4 * groups, SEEN);
}

/* Whether it is predicted to take less time than NAME_chunk_output by more than the predictions' error, a tenth. */
static bool is_faster(const fpa_plan *plan, const fpa_split_outer *split)
{
    const double clearly = 0.9;
    const fpa_parallel_output *p = &split->parallel;
    const struct fpa_cuda_kernel_work apart = work_parallel_output(plan, split),
                                      together = work_chunk_output(plan, split);
    return score_seconds(plan, &apart, p->score_groups + p->value_groups + 1) <
           clearly * score_seconds(plan, &together, split->output_groups + 1);
}

/* Whether it can replace NAME_chunk_output in the parallel form at all. Not for rows that are features: one-pass
 * kernels serve such heads. */
static bool may_have_parallel(const fpa_plan *plan, const fpa_split_outer *split)
{
    const fpa_head *head = plan->head;
    return head->causal && !head->gate && !split->columns.ones_slabs && !plan->pass &&
           !split->contraction.groups && !split->outer.rows && split->columns.blocks > 1;
}

void plan_parallel(const fpa_plan *plan, fpa_split_outer *split)
{
    split->parallel = (fpa_parallel_output){.tiles = TILES};
    if (!may_have_parallel(plan, split) || !divide_groups(split, &split->parallel) ||
        !place_parallel(plan, split, &split->parallel) || !is_faster(plan, split))
        split->parallel = (fpa_parallel_output){0};
}
