/* Counts of a plan's operations and bytes, and the facts that callers see. */
#include "facts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static double matrix_flop(const fpa_matrix *matrix)
{
    return 2.0 * matrix->rows * (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? 1 : matrix->cols);
}

static double projection_flop(const fpa_plan *plan)
{
    double flop = 0;
    for (int i = 0; i < plan->projection_count; i++)
        flop += matrix_flop(&plan->head->matrices[plan->projections[i].matrix]);
    for (int i = 0; i < plan->made.projection_count; i++)
        flop += matrix_flop(&plan->head->matrices[plan->made.projections[i].matrix]);
    for (int m = 0; plan->written->lift && m < plan->written->matrix_count; m++)
        flop += matrix_flop(&plan->written->matrices[m]);
    return 2 * flop; /* of queries and of keys */
}

/* FLOP of one visible pair: its dot products and the product with v. The polynomial of the dots is not counted. */
static double pair_flop(const fpa_plan *plan)
{
    double flop = 2.0 * plan->head->dv;
    for (int i = 0; i < plan->score->dot_count; i++)
        flop += 2.0 * plan->dots[i].row_count;
    return flop;
}

/* FLOP of a token's window: dot products of q and k as given, and exponentials; 0 without a window. */
static double window_flop(const fpa_plan *plan)
{
    return 2.0 * plan->written->window * (head_width(plan->written) + plan->head->dv);
}

/* FLOP of a token for pairs with its own chunk's keys. A head that is not causal has none: all keys are in the
 * state. */
static double own_flop(const fpa_plan *plan)
{
    return plan->head->causal ? plan->chunk * (plan->head->d + plan->head->dv) : 0;
}

/* The forms that are emitted. A head that is not causal has no recurrent form: no state contains what a token sees
 * before all keys are known. */
static int forms_of(const fpa_plan *plan)
{
    if (plan->head->causal)
        return ((1 << FORMS) - 1) & ~(plan->pass ? 1 << FORM_RECURRENT : 0);
    return 1 << FORM_PARALLEL | (plan->facts.crossover ? 1 << FORM_CHUNKED : 0);
}

/* Bytes that must be moved for a token and head: its operands, and states once a chunk or once a token; for a
 * visible pair: its share of keys and values, which a block of pair_queries queries reads once. */
static void count_bytes(fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    double element = (double)dtype_size(head->dtype);
    double operands = 2 * element * (head_width(plan->written) + head->dv);
    double state = 4.0 * (double)plan->features * (head->dv + (head->normalize != FPA_NORMALIZE_NONE));
    plan->bytes[FORM_PARALLEL] = element * (head_width(plan->written) + head->dv) / plan->pair_queries;
    plan->bytes[FORM_CHUNKED] = operands + plan->chunk_states * state / plan->chunk;
    plan->bytes[FORM_RECURRENT] =
        operands + 2 * state + plan->written->window * element * (head_width(plan->written) + head->dv);
}

void plan_facts(fpa_plan *plan)
{
    const fpa_head *head = plan->head, *written = plan->written;
    fpa_facts *facts = &plan->facts;
    double state = 4.0 * plan->features * head->dv;
    double projected = projection_flop(plan);
    facts->flop[FORM_PARALLEL] = pair_flop(plan);
    facts->flop[FORM_CHUNKED] = state + own_flop(plan) + projected + window_flop(plan);
    facts->flop[FORM_RECURRENT] = state + projected + window_flop(plan);
    count_bytes(plan);
    facts->features = plan->features;
    facts->features_written = (int64_t)head_features(written);
    facts->features_minimum = (int64_t)plan->minimum;
    facts->features_tpow = (int64_t)fmin(head_features_tpow(written), 9e18);
    facts->state_elements = plan->features * (head->dv + (head->normalize != FPA_NORMALIZE_NONE));
    facts->state_bytes = (double)facts->state_elements * dtype_size(head->state_dtype);
    facts->block = head->block;
    facts->chunk = plan->chunk;
    facts->forms = forms_of(plan);
    memcpy(facts->name, head->name, strlen(head->name) + 1);
    snprintf(facts->target, sizeof facts->target, "%s", plan->target->name);
}

/* FLOP of gradients. A pair: dots and gradients of scores twice, in the passes for queries and for keys, and once
 * each the sums for queries, keys and values. A token: updates of two states, three products with them, pairs with
 * half of its own chunk, and projections. Forming features is not counted. */
void plan_backward_facts(fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    fpa_facts *facts = &plan->facts;
    const double dots = pair_flop(plan) - 2.0 * head->dv;
    facts->chunk = plan->chunk;
    facts->forms = 1 << FORM_PARALLEL | 1 << FORM_CHUNKED;
    facts->flop[FORM_PARALLEL] = 4 * dots + 6.0 * head->dv;
    facts->flop[FORM_CHUNKED] = 10.0 * (double)plan->features * head->dv +
                                plan->chunk / 2.0 * facts->flop[FORM_PARALLEL] + 3 * projection_flop(plan);
    facts->flop[FORM_RECURRENT] = 0;
    /* the length at which a token's pairs, half of the sequence on average, take as many operations as the chunked
     * form, unless the back end has set it: both forms multiply equally fast */
    if (!facts->crossover)
        facts->crossover = (int64_t)ceil(2 * facts->flop[FORM_CHUNKED] / facts->flop[FORM_PARALLEL]);
}

/* ---- for a person ---- */

void plan_print_costs(FILE *out, const fpa_plan *plan)
{
    const fpa_facts *facts = &plan->facts;
    fprintf(out, "state        %" PRId64 " elements, %.0f bytes a batch entry and head\n",
            facts->state_elements, facts->state_bytes);
    for (int form = 0; form < FORMS; form++)
        if (facts->forms & 1 << form)
            fprintf(out, "%-12s %.0f FLOP and %.*f bytes a %s\n", form_name(form), facts->flop[form],
                    form == FORM_PARALLEL, plan->bytes[form],
                    form == FORM_PARALLEL ? "visible pair" : "token");
    if (facts->crossover)
        fprintf(out, "crossover    chunked is cheaper from %" PRId64 " tokens on\n", facts->crossover);
}

void plan_print_score(FILE *out, const fpa_plan *plan)
{
    fprintf(out, "score        %d dot product%s of", plan->score->dot_count,
            plan->score->dot_count == 1 ? "" : "s");
    for (int i = 0; i < plan->score->dot_count; i++)
        fprintf(out, " %d", plan->dots[i].row_count);
    fprintf(out, " rows, %d monomial%s\n", plan->score->monomial_count,
            plan->score->monomial_count == 1 ? "" : "s");
}
