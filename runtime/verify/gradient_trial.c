/* gradient_trial: draws operands, evaluates the formula's gradients, and runs a module on the operands. */
#include "gradient_trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/splitmix.h"
#include "inputs.h"
#include "place.h"
#include "tokens.h"

const fpa_matrix *gradient_matrix(const fpa_head *head, int index)
{
    int m = 0;
    for (int left = index; left > 0 || head->matrices[m].kind == FPA_MATRIX_CONSTANT; m++)
        left -= head->matrices[m].kind != FPA_MATRIX_CONSTANT;
    return &head->matrices[m];
}

int64_t gradient_entries(const fpa_gradient_trial *trial, int index)
{
    return trial_matrix_entries(&trial->inputs, gradient_matrix(trial->inputs.head, index));
}

const char *gradient_name(int kind)
{
    static const char *const names[GRADIENT_KINDS] = {"d_q", "d_k", "d_v", "d_log_gate"};

    return names[kind];
}

fpa_status gradient_trial_refuse(const fpa_gradient_trial *trial, fpa_form_index form, const char *how,
                                 const char *what, fpa_error *error)
{
    char text[TRIAL_TEXT];

    trial_describe(&trial->inputs, form, text);
    return fail(error, FPA_REFUSED, trial->inputs.head->name, "gradients, %s%s: %s", text, how, what);
}

/* ---- making ---- */

/* The reference's problem, for the tokens that it is evaluated for. */
static fpa_problem problem_of(const fpa_gradient_trial *g)
{
    fpa_problem problem = trial_problem(&g->inputs);

    problem.length = g->known;
    problem.wanted = NULL;
    problem.arithmetic = problem.coordinates = FPA_F32;
    return problem;
}

/* Copies the first period's values to the second, with constant gates; place() repeats them for all later tokens. */
static void repeat(fpa_gradient_trial *g, int64_t period)
{
    const fpa_trial *t = &g->inputs;
    const size_t q = (size_t)(period * t->shape.query_heads * head_width(t->head)),
                 k = (size_t)(period * t->shape.heads * head_width(t->head)),
                 v = (size_t)(period * t->shape.heads * t->head->dv);

    memcpy(t->q + q, t->q, q * sizeof *t->q);
    memcpy(t->k + k, t->k, k * sizeof *t->k);
    memcpy(t->v + v, t->v, v * sizeof *t->v);
    for (int64_t i = 0; i < 2 * period * t->shape.heads; i++)
        t->gate[i] = -0.5;
}

static fpa_status draw(fpa_gradient_trial *g, int64_t period, uint64_t seed, fpa_error *error)
{
    fpa_trial *t = &g->inputs;
    const int64_t length = t->shape.length, outputs = t->shape.batch * g->known * t->shape.query_heads;
    const int dv = t->head->dv;
    uint64_t state = seed + 1;
    fpa_status status;

    t->shape.length = g->known;
    status = inputs_draw(t, seed, error);
    if (status == FPA_OK)
        status = tokens_draw(t, seed, error);
    t->shape.length = length;
    if (status == FPA_OK && period)
        repeat(g, period);
    g->d_o = calloc((size_t)(outputs * dv) + 1, sizeof *g->d_o);
    g->o = calloc((size_t)(outputs * dv) + 1, sizeof *g->o);
    g->den = calloc((size_t)outputs + 1, sizeof *g->den);
    if (status == FPA_OK && !(g->d_o && g->o && g->den))
        status = fail_memory(error);
    const int64_t drawn = period ? period * t->shape.query_heads * dv : outputs * dv;
    for (int64_t i = 0; status == FPA_OK && i < outputs * dv; i++)
        g->d_o[i] = i < drawn
                        ? dtype_round(t->head->dtype, (double)(splitmix_bits(&state) >> 11) * 0x1p-52 - 1)
                        : g->d_o[i - drawn];
    for (int64_t b = 0; status == FPA_OK && g->cut && !t->head->causal && b < t->shape.batch; b++)
        memset(g->d_o + b * outputs / t->shape.batch * dv, 0,
               sizeof *g->d_o * (size_t)(g->cut * t->shape.query_heads * dv));
    return status;
}

/* Sets d_o to zero for outputs that are 0 / 0, such as those of queries whose keys are all masked while eps is 0: they have no gradients.
 * defined: 0 for these, 1 for others. */
static fpa_status clear_undefined(fpa_gradient_trial *g, unsigned char *defined, fpa_error *error)
{
    const fpa_problem problem = problem_of(g);
    const int64_t outputs = problem.batch * problem.length * problem.query_heads;
    const int dv = problem.head->dv;

    memset(defined, 1, (size_t)outputs);
    if (problem.head->normalize == FPA_NORMALIZE_NONE)
        return FPA_OK;
    double *n = calloc((size_t)outputs + 1, sizeof *n);
    fpa_status status = n ? reference_normalizer(&problem, n, NULL, error) : fail_memory(error);
    for (int64_t i = 0; status == FPA_OK && i < outputs; i++) {
        defined[i] = n[i] != 0;
        if (!defined[i])
            memset(g->d_o + i * dv, 0, sizeof *g->d_o * (size_t)dv);
    }
    free(n);
    return status;
}

/* Computes o and den as a forward pass would store them; 0 and 1 for undefined outputs. */
static fpa_status store_outputs(fpa_gradient_trial *g, const unsigned char *defined, fpa_error *error)
{
    fpa_problem problem = problem_of(g);
    fpa_head plain = *g->inputs.head;
    const int64_t outputs = problem.batch * problem.length * problem.query_heads;
    problem.wanted = defined;
    fpa_status status = reference_forward(&problem, g->o, NULL, error);

    plain.normalize = FPA_NORMALIZE_SUM;
    plain.eps = 0;
    problem.head = &plain;
    if (status == FPA_OK)
        status = reference_normalizer(&problem, g->den, NULL, error);
    for (int64_t i = 0; i < outputs * plain.dv; i++)
        g->o[i] = dtype_round(plain.dtype, g->o[i]);
    for (int64_t i = 0; i < outputs; i++)
        g->den[i] = defined[i] ? (double)(float)g->den[i] : 1;
    return status;
}

static fpa_status save_outputs(fpa_gradient_trial *g, fpa_error *error)
{
    const fpa_shape *s = &g->inputs.shape;
    unsigned char *defined = malloc((size_t)(s->batch * g->known * s->query_heads) + 1);
    fpa_status status = defined ? clear_undefined(g, defined, error) : fail_memory(error);

    if (status == FPA_OK)
        status = store_outputs(g, defined, error);
    free(defined);
    return status;
}

/* Scales d_o so that gradients stay in the range of f16, which ends at 65504: a score's gradient is (d_o.v - d_o.o) / n, and o is a sum
 * over n, too, so that both factors grow if n is small. */
static fpa_status keep_in_range(fpa_gradient_trial *g, fpa_error *error)
{
    const fpa_head *head = g->inputs.head;
    const fpa_problem problem = problem_of(g);
    const int64_t outputs = problem.batch * problem.length * problem.query_heads;

    if (head->dtype != FPA_F16 || head->normalize == FPA_NORMALIZE_NONE)
        return FPA_OK;
    double *n = calloc((size_t)outputs + 1, sizeof *n);
    fpa_status status = n ? reference_normalizer(&problem, n, NULL, error) : fail_memory(error);
    for (int64_t i = 0; status == FPA_OK && i < outputs * head->dv; i++)
        g->d_o[i] = dtype_round(head->dtype, g->d_o[i] * fmin(1, n[i / head->dv] * n[i / head->dv]));
    free(n);
    return status;
}

static fpa_status make_gradients(fpa_gradient_trial *g, fpa_gradients *to, double ***weights,
                                 fpa_error *error)
{
    const fpa_trial *t = &g->inputs;
    const int64_t tokens = t->shape.batch * g->known;
    const bool roundings = t->head->gate && to == &g->to[PLAIN];

    *weights = calloc((size_t)t->head->matrix_count + 1, sizeof **weights);
    to->q = calloc((size_t)(tokens * t->shape.query_heads * head_width(t->head)) + 1, sizeof *to->q);
    to->k = calloc((size_t)(tokens * t->shape.heads * head_width(t->head)) + 1, sizeof *to->k);
    to->v = calloc((size_t)(tokens * t->shape.heads * t->head->dv) + 1, sizeof *to->v);
    to->log_gate = calloc((size_t)(tokens * t->shape.heads) + 1, sizeof *to->log_gate);
    if (roundings)
        to->log_gate_whole = calloc((size_t)(tokens * t->shape.heads) + 1, sizeof *to->log_gate_whole);
    if (roundings)
        to->log_gate_carried = calloc((size_t)(tokens * t->shape.heads) + 1, sizeof *to->log_gate_carried);
    if (!*weights || !to->q || !to->k || !to->v || !to->log_gate ||
        (roundings && !(to->log_gate_whole && to->log_gate_carried)))
        return fail_memory(error);
    for (int m = 0; m < t->head->matrix_count; m++) {
        if (t->head->matrices[m].kind == FPA_MATRIX_CONSTANT)
            continue;
        (*weights)[m] = calloc((size_t)trial_matrix_entries(t, &t->head->matrices[m]), sizeof(double));
        if (!(*weights)[m])
            return fail_memory(error);
    }
    to->weights = *weights;
    return FPA_OK;
}

static fpa_status evaluate(fpa_gradient_trial *g, fpa_error *error)
{
    fpa_problem problem = problem_of(g);
    const bool normalized = g->inputs.head->normalize != FPA_NORMALIZE_NONE;
    const fpa_saved given = {.d_o = g->d_o,
                             .o = normalized ? g->o : NULL,
                             .den = normalized ? g->den : NULL,
                             .span = g->inputs.facts->chunk};
    fpa_status status = FPA_OK;

    for (int i = 0; i < EVALUATIONS && status == FPA_OK; i++)
        status = make_gradients(g, &g->to[i], &g->weights[i], error);
    problem.arithmetic = g->inputs.facts->arithmetic;
    if (status == FPA_OK)
        status = reference_gradient(&problem, &given, &g->to[EXACT], &g->to[MAGNITUDE], error);
    return status == FPA_OK ? reference_gradient_plain(&problem, &given, &g->to[PLAIN], error) : status;
}

/* Makes a field of all tokens from the values of the first two periods; later tokens repeat the second one. */
static fpa_status place(const fpa_gradient_trial *g, fpa_field *field, fpa_dtype dtype, int64_t heads,
                        int64_t entries, const double *values, fpa_error *error)
{
    const fpa_shape *s = &g->inputs.shape;
    const int64_t period = g->known / 2;
    fpa_status status = field_make(field, NULL, dtype, s->layout, s->batch, s->length, heads, entries, error);

    for (int64_t b = 0; b < s->batch && status == FPA_OK; b++)
        for (int64_t t = 0; t < s->length; t++) {
            const int64_t from = t < g->known ? t : period + t % period;

            for (int64_t h = 0; h < heads; h++)
                for (int64_t e = 0; e < entries; e++)
                    field_put(field, b, t, h, e, values[((b * g->known + from) * heads + h) * entries + e]);
        }
    if (status == FPA_OK)
        field_stamp(field);
    return status;
}

static fpa_status place_all(fpa_gradient_trial *g, fpa_error *error)
{
    fpa_trial *t = &g->inputs;
    const fpa_head *head = t->head;
    const int64_t of_queries = t->shape.query_heads, of_keys = t->shape.heads;
    const struct {
        fpa_field *field;
        fpa_dtype dtype;
        int64_t heads, entries;
        const double *values;
    } all[] = {{&t->q_field, head->dtype, of_queries, head_width(head), t->q},
               {&t->k_field, head->dtype, of_keys, head_width(head), t->k},
               {&t->v_field, head->dtype, of_keys, head->dv, t->v},
               {&g->o_field, head->dtype, of_queries, head->dv, g->o},
               {&g->den_field, FPA_F32, of_queries, 1, g->den},
               {&g->d_o_field, head->dtype, of_queries, head->dv, g->d_o},
               {&t->gate_field, FPA_F32, of_keys, 1, t->gate}};
    fpa_status status = FPA_OK;
    for (int i = 0; i < (head->gate ? 7 : 6) && status == FPA_OK; i++)
        status = place(g, all[i].field, all[i].dtype, all[i].heads, all[i].entries, all[i].values, error);
    if (status == FPA_OK)
        status = tokens_place(t, error);
    if (status == FPA_OK)
        tokens_restore(t);
    return status;
}

fpa_status gradient_trial_make(fpa_gradient_trial *g, const fpa_head *head, const fpa_facts *facts,
                               fpa_shape shape, int64_t period, int64_t cut, uint64_t seed, fpa_error *error)
{
    fpa_status status;

    *g = (fpa_gradient_trial){.inputs = {.head = head, .facts = facts, .shape = shape}};
    g->known = period ? 2 * period : shape.length;
    g->judged = period ? period : shape.length;
    g->cut = cut;
    g->inputs.spares = calloc(1, sizeof *g->inputs.spares);
    status = g->inputs.spares ? draw(g, period, seed, error) : fail_memory(error);
    if (status == FPA_OK)
        status = save_outputs(g, error);
    if (status == FPA_OK && !period)
        status = keep_in_range(g, error);
    if (status == FPA_OK)
        status = evaluate(g, error);
    return status == FPA_OK ? place_all(g, error) : status;
}

void gradient_trial_free(fpa_gradient_trial *g)
{
    for (int i = 0; i < EVALUATIONS; i++) {
        for (int m = 0; g->weights[i] && m < g->inputs.head->matrix_count; m++)
            free(g->weights[i][m]);
        free(g->weights[i]);
        free(g->to[i].q);
        free(g->to[i].k);
        free(g->to[i].v);
        free(g->to[i].log_gate);
        free(g->to[i].log_gate_whole);
        free(g->to[i].log_gate_carried);
    }
    free(g->d_o);
    free(g->o);
    free(g->den);
    field_free(&g->o_field);
    field_free(&g->den_field);
    field_free(&g->d_o_field);
    trial_free(&g->inputs);
    *g = (fpa_gradient_trial){0};
}

/* ---- running ---- */

fpa_status gradient_outputs_make(const fpa_gradient_trial *g, fpa_gradient_outputs *outputs, fpa_error *error)
{
    const fpa_trial *t = &g->inputs;
    const fpa_shape *s = &t->shape;
    const int count = head_run_time_matrices(t->head);
    const int64_t heads[] = {s->query_heads, s->heads, s->heads, s->heads};
    const int64_t entries[] = {head_width(t->head), head_width(t->head), t->head->dv, 1};
    fpa_status status = FPA_OK;

    *outputs = (fpa_gradient_outputs){0};
    for (int i = 0; i < GRADIENT_KINDS && status == FPA_OK; i++)
        status = field_make(&outputs->field[i], NULL, i == OF_GATE ? FPA_F32 : t->head->dtype, s->layout,
                            s->batch, s->length, heads[i], entries[i], error);
    outputs->matrices = calloc((size_t)count + 1, sizeof *outputs->matrices);
    if (status == FPA_OK && !outputs->matrices)
        status = fail_memory(error);
    for (int i = 0; i < count && status == FPA_OK; i++) {
        const size_t size = (size_t)gradient_entries(g, i) * sizeof(float);

        outputs->matrices[i] = malloc(size);
        if (!outputs->matrices[i])
            return fail_memory(error);
        memset(outputs->matrices[i], GUARDED_FILLING, size);
    }
    return status;
}

void gradient_outputs_free(const fpa_gradient_trial *g, fpa_gradient_outputs *outputs)
{
    for (int i = 0; i < GRADIENT_KINDS; i++)
        field_free(&outputs->field[i]);
    for (int i = 0; outputs->matrices && i < head_run_time_matrices(g->inputs.head); i++)
        free(outputs->matrices[i]);
    free(outputs->matrices);
    *outputs = (fpa_gradient_outputs){0};
}

static void set_operands(const fpa_gradient_trial *g, const fpa_gradient_run *run, struct fpa_launch *a)
{
    const fpa_trial *t = &g->inputs;
    *a = (struct fpa_launch){.batch = t->shape.batch,
                             .length = run->to - run->from,
                             .query_heads = t->shape.query_heads,
                             .heads = t->shape.heads,
                             .weights = t->launch_weights};
    place_set_keys(t, run->from, a);
    a->q = field_from(&t->q_field, run->from, a->q_stride);
    a->o = field_from(&g->o_field, run->from, a->o_stride);
    if (t->head->normalize != FPA_NORMALIZE_NONE)
        a->den = field_from(&g->den_field, run->from, a->den_stride);
    a->state_in = place_of_state(run->state_in, a->state_in_stride);
    a->total = a->batch * a->length;
    if (run->sequences) {
        a->batch = run->sequences->count;
        a->length = run->sequences->longest;
        a->cu_seqlens = run->sequences->cu_seqlens;
        a->cu_seqlens_bytes = sizeof *run->sequences->cu_seqlens;
        a->state_in_index = run->state_in ? run->sequences->in : NULL;
        a->state_in_slots = run->state_in ? run->state_in->batch : 0;
    }
}

static struct fpa_backward_launch launch_of(const fpa_gradient_trial *g, const fpa_gradient_run *run,
                                            const fpa_gradient_outputs *outputs)
{
    struct fpa_backward_launch a = {0};
    set_operands(g, run, &a.forward);
    a.d_o = field_from(&g->d_o_field, run->from, a.d_o_stride);
    a.d_state_out = place_of_state(run->d_state_out, a.d_state_out_stride);
    a.d_state_in = place_of_state(run->d_state_in, a.d_state_in_stride);
    if (run->kinds & 1 << OF_Q)
        a.d_q = field_from(&outputs->field[OF_Q], run->from, a.d_q_stride);
    if (run->kinds & 1 << OF_K)
        a.d_k = field_from(&outputs->field[OF_K], run->from, a.d_k_stride);
    if (run->kinds & 1 << OF_V)
        a.d_v = field_from(&outputs->field[OF_V], run->from, a.d_v_stride);
    if (run->kinds & 1 << OF_GATE && g->inputs.head->gate)
        a.d_log_gate = field_from(&outputs->field[OF_GATE], run->from, a.d_log_gate_stride);
    if (run->matrices && head_run_time_matrices(g->inputs.head))
        a.d_weights = outputs->matrices;
    return a;
}

/* Takes matrices, or their gradients, in the order of a launch; `to`: their addresses on the device. */
static void take_matrices(const fpa_gradient_trial *g, fpa_place *place, const float *const *from,
                          bool written, const float **to)
{
    for (int i = 0; i < head_run_time_matrices(g->inputs.head); i++)
        to[i] = place_take(place, from[i], (size_t)gradient_entries(g, i) * sizeof(float), written, from[i]);
}

/* Gives a launch its operands: on a device these are copies, and results are copied back. */
static void take_operands(const fpa_gradient_trial *g, const fpa_gradient_run *run,
                          fpa_gradient_outputs *outputs, fpa_place *place, struct fpa_backward_launch *a,
                          const float **matrices)
{
    const fpa_trial *t = &g->inputs;
    struct fpa_launch *f = &a->forward;
    const int count = head_run_time_matrices(t->head);
    f->q = place_take_field(place, &t->q_field, f->q);
    f->o = place_take_field(place, &g->o_field, f->o);
    f->den = place_take_field(place, &g->den_field, f->den);
    place_take_keys(place, t, f);
    f->state_in = place_take_field(place, run->state_in, f->state_in);
    f->cu_seqlens = place_take_numbers(place, f->cu_seqlens, f->batch + 1);
    f->state_in_index = place_take_numbers(place, f->state_in_index, f->batch);
    a->d_o = place_take_field(place, &g->d_o_field, a->d_o);
    a->d_state_out = place_take_field(place, run->d_state_out, a->d_state_out);
    a->d_state_in = place_take_output(place, run->d_state_in, a->d_state_in);
    a->d_q = place_take_output(place, &outputs->field[OF_Q], a->d_q);
    a->d_k = place_take_output(place, &outputs->field[OF_K], a->d_k);
    a->d_v = place_take_output(place, &outputs->field[OF_V], a->d_v);
    a->d_log_gate = place_take_output(place, &outputs->field[OF_GATE], a->d_log_gate);
    take_matrices(g, place, f->weights, false, matrices);
    f->weights = matrices;
    if (!a->d_weights)
        return;
    take_matrices(g, place, (const float *const *)a->d_weights, true, matrices + count);
    a->d_weights = (float *const *)(uintptr_t)(matrices + count);
}

static fpa_status compute(const fpa_module *module, const fpa_gradient_run *run,
                          const struct fpa_backward_launch *a, fpa_error *error)
{
    const fpa_status status = place_enter(module, error);
    return status != FPA_OK
               ? status
               : place_leave(module, module->backward(module, (int)run->form, a, NULL, error), error);
}

static fpa_status tell(const fpa_gradient_trial *g, const fpa_gradient_run *run, fpa_status status,
                       const fpa_error *reason, fpa_error *error)
{
    if (status == FPA_INVALID)
        return gradient_trial_refuse(
            g, run->form, "", "the module asked for this workspace, and then reported that it is too small",
            error);
    return fail(error, status, g->inputs.head->name, "gradients: %s", reason->message);
}

fpa_status gradient_run(const fpa_gradient_trial *g, const fpa_module *module, const fpa_gradient_run *run,
                        fpa_gradient_outputs *outputs, fpa_error *error)
{
    enum { OTHERS = 20 }; /* operands other than matrices */
    struct fpa_backward_launch a = launch_of(g, run, outputs);
    const int count = head_run_time_matrices(g->inputs.head);
    const size_t size = module->backward_workspace(module, (int)run->form, &a);
    const size_t all = guarded_bytes(size);
    const fpa_guarded workspace = {all ? aligned_alloc(GUARDED_ALIGNMENT, all) : NULL, size, all};
    const float **matrices = calloc(2 * (size_t)count + 1, sizeof *matrices);
    fpa_error reason = {0};
    fpa_place place = {0};
    fpa_status status = workspace.bytes && matrices ? FPA_OK : fail_memory(error);

    if (status == FPA_OK)
        status = place_make(&place, module, g->inputs.spares, OTHERS + 2 * count, error);
    if (status != FPA_OK)
        goto out;
    take_operands(g, run, outputs, &place, &a, matrices);
    a.forward.workspace = place_take_guarded(&place, &workspace);
    a.forward.workspace_size = size;
    status = place.status;
    if (status == FPA_OK && (status = compute(module, run, &a, &reason)) != FPA_OK)
        status = tell(g, run, status, &reason, error);
    if (status == FPA_OK)
        status = place_fetch(&place);
    if (status == FPA_OK && !guarded_is_whole(&workspace))
        status = gradient_trial_refuse(g, run->form, "", "the module wrote outside its workspace", error);
out:
    place_free(&place);
    free(matrices);
    free(workspace.bytes);
    return status;
}
