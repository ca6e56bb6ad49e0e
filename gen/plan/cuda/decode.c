#include "decode.h"

#include "parts.h"
#include "work.h"

enum {
    LEAST_STAGES = 6, /* also room for the threads' sums */
    STAGES = 12,      /* of fp32, where three blocks share a multiprocessor; of drafts, at most */
    LONG_STAGES = 22, /* where two do */
};

/* Whether a multiprocessor has room for so many blocks with `rest` bytes beside their rings. */
static bool fits(const fpa_plan *plan, int blocks, int stages, int rest)
{
    const int bytes = rest + stages * 16 * CUDA_DECODE_THREADS;
    return blocks * (bytes + 1024) <= plan->target->shared_memory + 1024;
}

/* As many as two blocks have room for; fp32: at most as many as hide memory behind products with queries. */
static int count_draft_stages(const fpa_plan *plan, const fpa_decode *decode, int rest)
{
    const int most = plan->head->state_dtype == FPA_F32 && decode->stages > STAGES ? STAGES : decode->stages;
    int stages = most;
    while (stages > LEAST_STAGES && !fits(plan, 2, stages, rest))
        stages -= 2;
    return fits(plan, 2, stages, rest) ? stages : most;
}

/* A draft's packed rows, values, decays and weights lie behind the ring, with which there is room for the sums of its queries. */
static void plan_draft(const fpa_cuda_inputs *in, fpa_decode *decode, int rest)
{
    const fpa_head *head = in->plan->head;
    const int rows = in->rows->row_count, columns = head->state_dtype == FPA_F32 ? 4 : 8;
    const int values = CUDA_DRAFT_TOKENS * round_up(head->dv, 4), per_query = rows + 1 + CUDA_DRAFT_TOKENS;
    const int own = 4 * (values + CUDA_DRAFT_TOKENS * (rows + 1) + CUDA_DRAFT_QUERIES * per_query);
    decode->draft_stages = count_draft_stages(in->plan, decode, rest + own);
    const int room = CUDA_DECODE_ROOM + decode->draft_stages * 4 * CUDA_DECODE_THREADS;
    int queries = CUDA_DRAFT_QUERIES;
    if (room < columns * queries * CUDA_DECODE_THREADS || (decode->cluster == 1 && rows < 7))
        queries = CUDA_DECODE_QUERIES;
    const int bytes = rest + own + 4 * (queries - CUDA_DRAFT_QUERIES) * per_query +
                      decode->draft_stages * 16 * CUDA_DECODE_THREADS;
    decode->draft_queries = queries;
    decode->draft_bytes =
        !in->plan->written->window && !in->plan->written->lift && bytes <= in->plan->target->shared_memory
            ? bytes
            : 0;
}

/* Few rows are a warp each, of which it asks for more columns at a time. */
static int rows_together(const fpa_plan *plan)
{
    const int rows = work_matrix_rows(plan);
    int together = 1;
    while (together < CUDA_DECODE_TOGETHER && together * CUDA_DECODE_THREADS / 32 < rows)
        together *= 2;
    return together;
}

/* Whether a block asks for nothing for a while, in which it multiplies matrices or adds up sums of features: two blocks with
 * longer rings then have more on its way than three. Of states that are no larger than three rings a block begins and ends
 * most of the time, which more of them do beside each other. */
static bool has_pauses(const fpa_plan *plan)
{
    const int64_t state = plan->features * plan->head->dv * 4;
    return (plan->head->normalize != FPA_NORMALIZE_NONE || work_matrix_rows(plan) > 0) &&
           state > 3 * STAGES * 16 * CUDA_DECODE_THREADS;
}

/* A thread has 4 columns of a row; each warp keeps its sums of weights. */
const char *plan_decode(const fpa_cuda_inputs *in, void *plan)
{
    fpa_decode *decode = plan;
    const fpa_head *head = in->plan->head;
    if (!head->causal)
        return "it is not causal";
    if (in->plan->pass)
        return "it is a pass of gradients, which has whole sequences";
    const int warps = CUDA_DECODE_THREADS / 32;
    const int rows = (1 + CUDA_DECODE_QUERIES) * in->rows->row_count;
    const bool joins = in->plan->target->clusters;
    const int values = round_up(head->dv, 4);
    const int columns = values + (head->normalize != FPA_NORMALIZE_NONE ? 4 : 0);
    const int clusters = joins ? CUDA_DECODE_CLUSTER * columns + 2 * CUDA_DECODE_BARRIERS : 0;
    /* the ring begins with a whole line of shared memory's banks */
    const int rest =
        4 * (CUDA_DECODE_ROOM + round_up(rows + values + CUDA_DECODE_QUERIES * warps + clusters, 32));
    /* of 16 bits a thread has 8 columns, and needs more registers for their sums */
    const bool narrow = head->state_dtype != FPA_F32;
    decode->together = rows_together(in->plan);
    decode->features = CUDA_DECODE_THREADS / ((head->dv + 3) / 4);
    const bool longer = has_pauses(in->plan);
    decode->blocks = narrow || longer || !joins ? 2 : 3;
    decode->stages = narrow ? 20 : longer && joins ? LONG_STAGES : STAGES;
    while (decode->stages > LEAST_STAGES && !fits(in->plan, decode->blocks, decode->stages, rest))
        decode->stages -= 2;
    if (!fits(in->plan, decode->blocks, decode->stages, rest))
        decode->blocks--;
    decode->bytes = rest + decode->stages * 16 * CUDA_DECODE_THREADS;
    decode->cluster = joins ? CUDA_DECODE_CLUSTER : 1;
    const bool whole = head->dv * dtype_size(head->state_dtype) % 16 == 0; /* rows, for bulk copies */
    decode->resident_bytes = joins && whole && !in->plan->written->window ? rest : 0;
    /* for sums */
    decode->resident_least = rest + 4 * (8 * CUDA_DECODE_QUERIES * CUDA_DECODE_THREADS - CUDA_DECODE_ROOM);
    plan_draft(in, decode, rest);
    return NULL;
}

void geometry_decode(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_decode *decode = plan->cuda.decode;
    const struct fpa_cuda_block block = {CUDA_DECODE_THREADS, decode->bytes, decode->blocks};
    g->kernel[CUDA_DECODE] = block;
    if (plan->written->window)
        g->kernel[CUDA_DECODE_WINDOW] = (struct fpa_cuda_block){CUDA_DECODE_WINDOW_THREADS, 0, 0};
    else
        g->kernel[CUDA_DECODE_RECENT] = block;
    if (decode->draft_bytes)
        g->kernel[CUDA_DECODE_DRAFT] = (struct fpa_cuda_block){CUDA_DECODE_THREADS, decode->draft_bytes, 2};
    if (decode->resident_bytes)
        g->kernel[CUDA_DECODE_RESIDENT] =
            (struct fpa_cuda_block){CUDA_DECODE_THREADS, decode->resident_bytes, 0};
    if (!plan->written->window)
        g->kernel[CUDA_SPLIT_REDUCTION] = (struct fpa_cuda_block){CUDA_SPLIT_REDUCTION_THREADS, 0, 0};
    g->decode_features = decode->features;
    g->decode_cluster = decode->cluster;
    g->decode_resident_least = decode->resident_least;
    g->decode_resident_row = plan->head->dv * (int)dtype_size(plan->head->state_dtype);
    g->decode_resident_most = CUDA_DECODE_RESIDENT_MOST;
    work_decode(plan, g);
}

const fpa_field decode_fields[] = {FIELD_CONSTANT("decode_threads", CUDA_DECODE_THREADS),
                                   FIELD_CONSTANT("decode_room", CUDA_DECODE_ROOM),
                                   FIELD_CONSTANT("decode_numbers", CUDA_DECODE_NUMBERS),
                                   FIELD_AS(fpa_decode, "decode_together", together),
                                   FIELD_CONSTANT("decode_barriers", CUDA_DECODE_BARRIERS),
                                   FIELD_CONSTANT("decode_resident_most", CUDA_DECODE_RESIDENT_MOST),
                                   FIELD_CONSTANT("split_reduction_threads", CUDA_SPLIT_REDUCTION_THREADS),
                                   FIELD_CONSTANT("decode_window_threads", CUDA_DECODE_WINDOW_THREADS),
                                   FIELD_AS(fpa_decode, "decode_features", features),
                                   FIELD_AS(fpa_decode, "decode_stages", stages),
                                   FIELD_AS(fpa_decode, "decode_blocks", blocks),
                                   FIELD_AS(fpa_decode, "decode_bytes", bytes),
                                   FIELD_AS(fpa_decode, "decode_cluster", cluster),
                                   FIELD_AS(fpa_decode, "decode_resident_bytes", resident_bytes),
                                   FIELD_CONSTANT("draft_tokens", CUDA_DRAFT_TOKENS),
                                   FIELD_AS(fpa_decode, "decode_draft_bytes", draft_bytes),
                                   FIELD_AS(fpa_decode, "draft_queries", draft_queries),
                                   FIELD_AS(fpa_decode, "draft_stages", draft_stages),
                                   FIELDS_END};
