/* plan_cuda: limits, then mechanisms, then what emitted files have once. */
#include "cuda.h"

#include "backward.h"
#include "lift_rows.h"
#include "mechanism.h"
#include "panel_rows.h"
#include "parts.h"
#include "split_outer.h"

/* A block of NAME_lift_rows has whole tokens as they are given. */
static fpa_status check_lift(const fpa_plan *plan, fpa_error *error)
{
    const int bytes = plan_cuda_lift(plan).bytes, most = plan->target->shared_memory;
    if (bytes <= most)
        return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, plan->head->origin,
                "head '%s': lift_rows needs %d bytes of shared memory for its tokens; a block of %s has %d",
                plan->head->name, bytes, plan->target->name, most);
}

int plan_widest(const fpa_target *target)
{
    return target->backend == BACKEND_CUDA ? CUDA_MAX_WIDTH : 0;
}

int plan_widest_values(const fpa_target *target)
{
    return target->backend == BACKEND_CUDA ? CUDA_MAX_VALUES : 0;
}

static fpa_status check_limits(const fpa_plan *plan, fpa_error *error)
{
    const fpa_head *head = plan->head;
    const int weights = head_run_time_matrices(plan->written);
    const int widest = plan->forced == SPLIT_OUTER ? CUDA_MAX_OUTER_WIDTH : CUDA_MAX_WIDTH;
    if (plan->written->lift && head->d > CUDA_MAX_COORDINATES)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' makes %d coordinates of q and k; CUDA kernels take at most %d coordinates",
                    head->name, head->d, CUDA_MAX_COORDINATES);
    if ((!plan->written->lift && head_width(plan->written) > widest) || head->dv > CUDA_MAX_VALUES)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' has d = %d and dv = %d; CUDA kernels take d up to %d and dv up to %d",
                    head->name, head_width(plan->written), head->dv, CUDA_MAX_WIDTH, CUDA_MAX_VALUES);
    if (plan->features > CUDA_MAX_FEATURES)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' has %lld features; CUDA kernels take at most %d", head->name,
                    (long long)plan->features, CUDA_MAX_FEATURES);
    if (weights > CUDA_MAX_WEIGHTS)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' has %d run-time matrices; CUDA kernels take at most %d", head->name, weights,
                    CUDA_MAX_WEIGHTS);
    return check_lift(plan, error);
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
    status = plan_mechanisms(plan, plan->forced, error);
    if (status)
        return status;
    cuda_compose(plan);
    const fpa_split_outer *split = plan->cuda.suited[SPLIT_OUTER].plan;
    plan->facts.formed = split && split->feature_rows;
    plan->facts.crossover = cuda_crossover(plan);
    return FPA_OK;
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
                                        FIELD_PART(fpa_cuda_rows, "packed", panels, panel_rows_fields),
                                        FIELD_ARRAY(fpa_cuda_rows, "dot_rows", dot_rows, dot_steps, 16, 0),
                                        FIELDS_END};

#define CUDA(member) FIELD(fpa_cuda_plan, member)
static const fpa_field cuda_fields[] = {
    FIELD_AS(fpa_cuda_plan, "column_blocks", columns.blocks),
    FIELD_AS(fpa_cuda_plan, "column_tiles", columns.tiles),
    FIELD_AS(fpa_cuda_plan, "all_tiles", columns.all),
    FIELD_AS(fpa_cuda_plan, "ones_slabs", columns.ones_slabs),
    CUDA(query_tokens),
    CUDA(copy_rows),
    CUDA(weights),
    CUDA(pads),
    CUDA(leaves_in_pieces),
    FIELD_PART(fpa_cuda_plan, "lifted", lift, cuda_lift_fields),
    FIELD_CONSTANT("pad_threads", CUDA_PAD_THREADS),
    CUDA(fused),
    CUDA(coordinates),
    CUDA(grouped_sums),
    FIELD_AS(fpa_cuda_plan, "fused_coordinates", chosen[FUSED_COORDINATES]),
    FIELD_AS(fpa_cuda_plan, "decodes", chosen[DECODE]),
    FIELD_PART(fpa_cuda_plan, "chunk_state_memory", chunk_state, cuda_memory_fields),
    CUDA(chunk_state_blocks),
    FIELDS_END};

bool plan_contracts(const fpa_plan *plan)
{
    const fpa_split_outer *outer = plan->cuda.split_outer;
    return outer && outer->contraction.groups > 0;
}

bool cuda_field_set(const fpa_plan *plan, int i, fpa_field_set *set)
{
    if (i == 0)
        *set = (fpa_field_set){NULL, rows_fields, plan->cuda.rows};
    else if (i == 1)
        *set = (fpa_field_set){NULL, cuda_fields, &plan->cuda};
    else if (i < 2 + CUDA_MECHANISMS)
        *set = (fpa_field_set){cuda_mechanisms[i - 2].table, cuda_mechanisms[i - 2].fields,
                               cuda_chosen(&plan->cuda, (fpa_cuda_mechanism)(i - 2))};
    else if (i == 2 + CUDA_MECHANISMS)
        *set = (fpa_field_set){NULL, cuda_backward_fields, plan->cuda.backward};
    return i <= 2 + CUDA_MECHANISMS;
}
