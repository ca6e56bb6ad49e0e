/* plan_cuda: limits, then mechanisms, then what emitted files have once. */
#include "cuda.h"

#include "cluster_scan.h"
#include "decode.h"
#include "fused_packed.h"
#include "fused_pass.h"
#include "mechanism.h"
#include "parts.h"
#include "split_outer.h"
#include "split_panel.h"
#include "work.h"

static int count_weights(const fpa_head *head)
{
    int weights = 0;
    for (int i = 0; i < head->matrix_count; i++)
        weights += head->matrices[i].kind != FPA_MATRIX_CONSTANT;
    return weights;
}

static fpa_status check_limits(const fpa_plan *plan, fpa_error *error)
{
    const fpa_head *head = plan->head;
    const int weights = count_weights(head);
    if (head->d > CUDA_MAX_WIDTH || head->dv > CUDA_MAX_WIDTH)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' has d = %d and dv = %d; CUDA kernels take at most %d", head->name, head->d,
                    head->dv, CUDA_MAX_WIDTH);
    if (plan->features > CUDA_MAX_FEATURES)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' has %lld features; CUDA kernels take at most %d", head->name,
                    (long long)plan->features, CUDA_MAX_FEATURES);
    if (weights > CUDA_MAX_WEIGHTS)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' has %d run-time matrices; CUDA kernels take at most %d", head->name, weights,
                    CUDA_MAX_WEIGHTS);
    return FPA_OK;
}

/* ---- what is chosen, put together ---- */

static const void *chosen(const fpa_cuda_plan *cuda, fpa_cuda_mechanism mechanism)
{
    return cuda->chosen[mechanism] ? cuda->suited[mechanism].plan : NULL;
}

static void name_chosen(fpa_cuda_plan *cuda)
{
    cuda->split_panel = chosen(cuda, SPLIT_PANEL);
    cuda->split_outer = chosen(cuda, SPLIT_OUTER);
    cuda->fused_panel = chosen(cuda, FUSED_PANEL);
    cuda->fused_coordinates = chosen(cuda, FUSED_COORDINATES);
    cuda->fused_packed = chosen(cuda, FUSED_PACKED);
    cuda->cluster_scan = chosen(cuda, CLUSTER_SCAN);
    cuda->decode = chosen(cuda, DECODE);
}

/* The portable chunk_state, which adds up totals of segments where a pass follows. */
static void describe_chunk_state(fpa_cuda_plan *cuda)
{
    const fpa_fused_pass *pass = cuda->fused_panel ? cuda->fused_panel : cuda->fused_coordinates;
    cuda->fused = pass || cuda->fused_packed;
    cuda->coordinates = pass && pass->coordinates;
    if (cuda->split_panel) {
        cuda->chunk_state = pass ? pass->chunk_state : cuda->split_panel->chunk_state;
        cuda->chunk_state_blocks = pass ? pass->chunk_state_blocks : cuda->split_panel->chunk_state_blocks;
    }
}

/* Where most features are alike, so are the roundings of a chain of sums over all of them, and add up. Products of
 * 16-bit numbers are rounded more anyway. */
static bool wants_grouped_sums(const fpa_plan *plan)
{
    enum { ALIKE = 4, LONGEST_CHAIN = 256 };
    return plan->cuda.rows->element == 4 && (double)plan->features > ALIKE * plan->minimum &&
           plan->features > LONGEST_CHAIN;
}

static const char *why_portable(const fpa_cuda_plan *cuda)
{
    if (cuda->split_outer)
        return NULL;
    const bool small = cuda->rows->element == 2 && cuda->suited[FUSED_PANEL].plan;
    return small || cuda->suited[SPLIT_OUTER].plan ? "its state is small enough for one pass"
                                                   : cuda->suited[SPLIT_OUTER].why;
}

static void fill_geometry(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const bool normalized = plan->head->normalize != FPA_NORMALIZE_NONE;
    g->version = FPA_CUDA_VERSION;
    g->features = cuda->copy_rows;
    g->columns = cuda->columns.blocks * 8 * cuda->columns.all;
    g->column_blocks = cuda->columns.blocks;
    g->copy_bytes = cuda->rows->element;
    g->chunk = plan->chunk;
    g->state_elements = (int)(plan->features * (plan->head->dv + normalized));
    g->state_element = (int)dtype_size(plan->head->state_dtype);
    g->weights = cuda->weights;
    g->gate = plan->head->gate;
    g->query_tokens = cuda->query_tokens;
    if (plan->head->gate)
        g->kernel[CUDA_GATE_SCAN] = (struct fpa_cuda_block){CUDA_SCAN_THREADS, 0, 0};
    g->kernel[CUDA_SEGMENT_SCAN] = (struct fpa_cuda_block){CUDA_SCAN_THREADS, 0, 0};
    g->segment_scan_elements = CUDA_SCAN_ELEMENTS;
    work_scans(plan, g);
    for (int m = 0; m < CUDA_MECHANISMS; m++)
        if (cuda->chosen[m])
            cuda_mechanisms[m].geometry(plan, g);
}

static void compose(fpa_plan *plan)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    name_chosen(cuda);
    describe_chunk_state(cuda);
    cuda->grouped_sums = wants_grouped_sums(plan);
    cuda->portable_why = why_portable(cuda);
    if (cuda->split_outer) {
        cuda->columns = cuda->split_outer->columns;
        cuda->query_tokens = cuda->split_outer->query_tokens;
        cuda->copy_rows = cuda->split_outer->outer.copy_rows;
        plan->chunk = cuda->split_outer->chunk;
    } else {
        cuda->columns = cuda->split_panel->columns;
        cuda->query_tokens = cuda->split_panel->query_tokens;
        cuda->copy_rows = cuda->rows->features;
        plan->chunk = cuda->split_panel->chunk;
    }
    cuda->weights = count_weights(plan->head);
    plan->pair_queries = cuda->query_tokens;
    fill_geometry(plan, &cuda->geometry);
    plan->facts.crossover = plan->head->causal ? cuda_crossover(plan) : 0;
}

fpa_status plan_cuda(fpa_plan *plan, fpa_error *error)
{
    fpa_status status = check_limits(plan, error);
    if (!status)
        status = plan_features(plan, PIECES_OF_TABLES, error);
    if (status)
        return status;
    plan->facts.arithmetic = plan->head->dtype;
    plan->cuda.rows = plan_cuda_rows(plan, &plan->memory);
    if (!plan->cuda.rows)
        return fail_memory(error);
    status = plan_mechanisms(plan, plan->forced, error);
    if (!status)
        compose(plan);
    return status;
}

const char *cuda_mechanism_name(int i)
{
    return i < CUDA_MECHANISMS ? cuda_mechanisms[i].name : NULL;
}

bool cuda_mechanism_is_left(const fpa_plan *plan, int i, int form)
{
    static const unsigned forms[] = {[ROLE_SPLIT] = 1u << FORM_PARALLEL | 1u << FORM_CHUNKED,
                                     [ROLE_FUSED] = 1u << FORM_CHUNKED,
                                     [ROLE_CLUSTER] = 1u << FORM_CHUNKED,
                                     [ROLE_DECODE] = 1u << FORM_RECURRENT};
    return !plan->cuda.chosen[i] && forms[cuda_mechanisms[i].role] >> form & 1;
}

/* ---- what templates read ---- */

#define ROWS(member) FIELD(fpa_cuda_rows, member)
static const fpa_field dot_fields[] = {FIELD(fpa_cuda_dot, base), FIELD(fpa_cuda_dot, first),
                                       FIELD(fpa_cuda_dot, steps), FIELD(fpa_cuda_dot, rows), FIELDS_END};

static const fpa_field rows_fields[] = {ROWS(element),
                                        FIELD_AS(fpa_cuda_rows, "rows", row_count),
                                        FIELD_AS(fpa_cuda_rows, "zero", zero_row),
                                        FIELD_AS(fpa_cuda_rows, "ones", ones_row),
                                        ROWS(factors),
                                        ROWS(units),
                                        ROWS(warp_units),
                                        ROWS(slices),
                                        FIELD_AS(fpa_cuda_rows, "padded_features", features),
                                        FIELD_ARRAY(fpa_cuda_rows, "feature_weights", weight, features, 1, 0),
                                        FIELD_ARRAY(fpa_cuda_rows, "shared", shared, factors, 1, 0),
                                        FIELD_PARTS(fpa_cuda_rows, "dots", dots, dot_count, dot_fields, true),
                                        FIELD_ARRAY(fpa_cuda_rows, "dot_rows", dot_rows, dot_steps, 16, 0),
                                        FIELDS_END};

#define CUDA(member) FIELD(fpa_cuda_plan, member)
static const fpa_field cuda_fields[] = {
    FIELD_AS(fpa_cuda_plan, "column_blocks", columns.blocks),
    FIELD_AS(fpa_cuda_plan, "column_tiles", columns.tiles),
    FIELD_AS(fpa_cuda_plan, "all_tiles", columns.all),
    CUDA(query_tokens),
    CUDA(copy_rows),
    CUDA(weights),
    CUDA(fused),
    CUDA(coordinates),
    CUDA(grouped_sums),
    FIELD_AS(fpa_cuda_plan, "fused_coordinates", chosen[FUSED_COORDINATES]),
    FIELD_PART(fpa_cuda_plan, "chunk_state_memory", chunk_state, cuda_memory_fields),
    CUDA(chunk_state_blocks),
    FIELDS_END};

bool cuda_field_set(const fpa_plan *plan, int i, fpa_field_set *set)
{
    if (i == 0)
        *set = (fpa_field_set){NULL, rows_fields, plan->cuda.rows};
    else if (i == 1)
        *set = (fpa_field_set){NULL, cuda_fields, &plan->cuda};
    else if (i < 2 + CUDA_MECHANISMS)
        *set = (fpa_field_set){cuda_mechanisms[i - 2].table, cuda_mechanisms[i - 2].fields,
                               chosen(&plan->cuda, (fpa_cuda_mechanism)(i - 2))};
    return i < 2 + CUDA_MECHANISMS;
}
