#include "verify_trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "reference.h"
#include "verify_inputs.h"

/* Operations that one trial may spend on the reference, and on the plain evaluations: a few
 * hundredths of a second each. Above, the formula is evaluated at some tokens only. */
static const double reference_budget = 3e7, plain_budget = 4e7;

enum { PLAIN_COLUMNS = 4, FEWEST_TOKENS = 6 };

static const double extreme_condition = 0.05; /* of a normaliser, times tau */

/* u = unit roundoff of float, n = degree, D = features, w = longest dot product of a score.
 *
 * One product of n dots: a dot of w products, each rounded, gathers at most w u of its
 * magnitude, and in fact, signs of roundings being random, about sqrt(w) u with a deviation
 * that never reached 4 sqrt(w) u. Products, powers, weights: 8 roundings a branch. With
 * matrices both projections are dots themselves. A sum of N terms: the same with N = D + L
 * (query of the state, update of the state over L tokens), and a random walk of partial sums
 * reaches a quarter of sqrt(N) u of the magnitude even when all terms have one sign; 2 sqrt(N)
 * leaves room. A gate is a product of up to L factors. 8 for scale, exp and division.
 * Storage adds its own roundoff: once for o, once for each state that is handed over. */
double trial_tau(const fpa_head *head, const fpa_facts *facts, int64_t length, int resumes)
{
    double longest = head->d, branch, tau;

    for (int m = 0; m < head->matrix_count; m++)
        longest = fmax(longest, head->matrices[m].rows);
    branch = 8 + 4 * sqrt(longest) + (head->matrix_count ? 8 * sqrt(head->d) : 0);
    tau = head_degree(head) * branch + 2 * sqrt((double)facts->features + (double)length) + 8;
    if (head->gate)
        tau += 4 * sqrt((double)length);
    tau *= dtype_roundoff(FPA_F32);
    if (head->dtype != FPA_F32)
        tau += dtype_roundoff(head->dtype);
    if (head->state_dtype != FPA_F32)
        tau += resumes * dtype_roundoff(head->state_dtype);
    return tau;
}

/* Half precision rounds to multiples of 2^-24 at last: once in o, and in every feature's row of a
 * state that is handed over. */
static double smallest_error(const fpa_head *head, const fpa_facts *facts)
{
    double error = 1e-30; /* products below float's range are lost by everybody */

    if (head->dtype == FPA_F16)
        error += 0x1p-25;
    if (head->state_dtype == FPA_F16)
        error += 0x1p-24 * (double)facts->features;
    return error;
}

static int64_t outputs(const fpa_trial *t)
{
    return t->shape.batch * t->shape.length * t->shape.query_heads;
}

static fpa_problem problem_of(const fpa_trial *t)
{
    return (fpa_problem){
        .head = t->head,
        .batch = t->shape.batch,
        .length = t->shape.length,
        .query_heads = t->shape.query_heads,
        .heads = t->shape.heads,
        .q = t->q,
        .k = t->k,
        .v = t->v,
        .log_gate = t->gate,
        .weights = (const double *const *)t->weights,
        .wanted = t->judged,
    };
}

/* Operations of one score in the reference. */
static double pair_cost(const fpa_head *head)
{
    double rows = 0;

    for (int t = 0; t < head->term_count; t++)
        for (int l = 0; l < head->terms[t].branch_count; l++)
            rows += head->terms[t].branches[l].width;
    return 2 * rows + 2 * head->term_count + 4 * head->dv + 20;
}

/* All tokens when that is affordable, else the ends of the sequence, the tokens around the first
 * chunk's end, and others evenly spread. */
static void choose_judged(fpa_trial *t)
{
    int64_t length = t->shape.length, chunk = t->facts->chunk;
    double row = (double)length * pair_cost(t->head) * (double)(t->shape.batch * t->shape.query_heads);
    double affordable = fmax(FEWEST_TOKENS, floor(reference_budget / fmax(row, 1)));
    int64_t step = affordable >= (double)length ? 1 : (int64_t)((double)length / affordable) + 1;

    for (int64_t b = 0; b < t->shape.batch; b++)
        for (int64_t token = 0; token < length; token++) {
            bool kept = token % step == 0 || token == length - 1 || llabs(token - chunk) <= 1;

            memset(t->judged + (b * length + token) * t->shape.query_heads, kept,
                   (size_t)t->shape.query_heads);
        }
}

/* Where the normaliser nearly vanishes the first-order bound says nothing: not judged. */
static fpa_status drop_loose(fpa_trial *t, fpa_error *error)
{
    fpa_problem problem = problem_of(t);
    double tau = trial_tau(t->head, t->facts, t->shape.length, 2);
    double *value, *condition;
    fpa_status status;

    if (t->head->normalize == FPA_NORMALIZE_NONE)
        return FPA_OK;
    value = calloc((size_t)outputs(t) + 1, sizeof *value);
    condition = calloc((size_t)outputs(t) + 1, sizeof *condition);
    status =
        value && condition ? reference_normalizer(&problem, value, condition, error) : fail_memory(error);
    for (int64_t i = 0; status == FPA_OK && i < outputs(t); i++)
        if (t->judged[i] && !(condition[i] * tau <= extreme_condition)) {
            t->judged[i] = 0;
            t->loose[i] = 1;
        } else if (!t->judged[i]) {
            t->loose[i] = 1; /* not known */
        }
    free(value);
    free(condition);
    return status;
}

/* Half precision ends at 65504: results near that say nothing either. */
static void drop_overflows(fpa_trial *t)
{
    static const double most[FPA_DTYPES] = {1e38, 1e38, 32768};

    for (int64_t i = 0; i < outputs(t); i++)
        for (int c = 0; c < t->head->dv && t->judged[i]; c++)
            if (!(t->magnitude[i * t->head->dv + c] < most[t->head->dtype])) {
                t->judged[i] = 0;
                t->loose[i] = 1;
            }
}

static double squares(const fpa_trial *t, const float *plain, int stride)
{
    double sum = 0;

    for (int64_t i = 0; i < outputs(t); i++)
        for (int c = 0; t->judged[i] && c < t->columns; c++) {
            double magnitude = t->magnitude[i * t->head->dv + c];
            double value = dtype_round(t->head->dtype, plain[i * stride + c]);

            if (magnitude > 0)
                sum += pow((value - t->reference[i * t->head->dv + c]) / magnitude, 2);
        }
    return sum;
}

/* Both plain evaluations, score by score and feature by feature; what counts is the worse. A
 * head with too many features for the second one has no criterion of this kind at this shape:
 * the first alone would be an unfair yardstick for a long sum. */
static fpa_status measure_plain(fpa_trial *t, fpa_error *error)
{
    double tokens = (double)outputs(t), features = head_features(t->head);
    fpa_problem problem = problem_of(t);
    float *scores = NULL, *columns = NULL;
    fpa_status status = FPA_OK;

    t->columns = t->head->dv < PLAIN_COLUMNS ? t->head->dv : PLAIN_COLUMNS;
    t->plain = t->shape.inputs != INPUTS_EXTREME_GATE &&
               tokens * features * (3 * t->columns + 3 + 4 * head_degree(t->head)) <= plain_budget;
    if (!t->plain)
        return FPA_OK;
    scores = calloc((size_t)outputs(t) * (size_t)t->head->dv + 1, sizeof *scores);
    columns = calloc((size_t)outputs(t) * (size_t)t->columns + 1, sizeof *columns);
    if (!scores || !columns)
        status = fail_memory(error);
    if (status == FPA_OK)
        status = reference_plain(&problem, scores, error);
    if (status == FPA_OK)
        status = reference_plain_features(&problem, t->columns, columns, error);
    if (status == FPA_OK)
        t->plain_squares = fmax(squares(t, scores, t->head->dv), squares(t, columns, t->columns));
    for (int64_t i = 0; i < outputs(t); i++)
        t->plain_count += t->judged[i] ? t->columns : 0;
    free(scores);
    free(columns);
    return status;
}

void trial_restore(fpa_trial *t)
{
    field_fill(&t->q_field, t->q);
    field_fill(&t->k_field, t->k);
    field_fill(&t->v_field, t->v);
    if (t->head->gate)
        field_fill(&t->gate_field, t->gate);
}

static fpa_status fill_fields(fpa_trial *t, fpa_error *error)
{
    const fpa_shape *s = &t->shape;
    const fpa_head *head = t->head;
    fpa_status status =
        field_make(&t->q_field, head->dtype, s->layout, s->batch, s->length, s->query_heads, head->d, error);

    if (status == FPA_OK)
        status =
            field_make(&t->k_field, head->dtype, s->layout, s->batch, s->length, s->heads, head->d, error);
    if (status == FPA_OK)
        status =
            field_make(&t->v_field, head->dtype, s->layout, s->batch, s->length, s->heads, head->dv, error);
    if (status == FPA_OK && head->gate)
        status = field_make(&t->gate_field, FPA_F32, s->layout, s->batch, s->length, s->heads, 1, error);
    if (status == FPA_OK)
        trial_restore(t);
    return status;
}

fpa_status trial_make(fpa_trial *t, const fpa_head *head, const fpa_facts *facts, fpa_shape shape,
                      uint64_t seed, fpa_error *error)
{
    size_t count = (size_t)(shape.batch * shape.length * shape.query_heads) + 1;
    fpa_problem problem;
    fpa_status status;

    *t = (fpa_trial){.head = head, .facts = facts, .shape = shape, .smallest = smallest_error(head, facts)};
    t->judged = calloc(count, 1);
    t->loose = calloc(count, 1);
    t->reference = calloc(count * (size_t)head->dv, sizeof(double));
    t->magnitude = calloc(count * (size_t)head->dv, sizeof(double));
    if (!t->judged || !t->loose || !t->reference || !t->magnitude)
        return fail_memory(error);
    status = inputs_draw(t, seed, error);
    if (status == FPA_OK)
        status = fill_fields(t, error);
    if (status != FPA_OK)
        return status;
    choose_judged(t);
    status = drop_loose(t, error);
    problem = problem_of(t);
    if (status == FPA_OK)
        status = reference_forward(&problem, t->reference, t->magnitude, error);
    if (status != FPA_OK)
        return status;
    drop_overflows(t);
    return measure_plain(t, error);
}

void trial_free(fpa_trial *t)
{
    inputs_free(t);
    field_free(&t->q_field);
    field_free(&t->k_field);
    field_free(&t->v_field);
    field_free(&t->gate_field);
    free(t->judged);
    free(t->loose);
    free(t->reference);
    free(t->magnitude);
    *t = (fpa_trial){0};
}

/* The future becomes larger too: a mask that multiplies by almost zero shows. */
void trial_change_future(fpa_trial *t, int64_t from)
{
    for (int64_t b = 0; b < t->shape.batch; b++)
        for (int64_t token = from; token < t->shape.length; token++) {
            for (int64_t h = 0; h < t->shape.query_heads; h++)
                for (int c = 0; c < t->head->d; c++)
                    field_put(&t->q_field, b, token, h, c, -3 * field_get(&t->q_field, b, token, h, c) + 1);
            for (int64_t h = 0; h < t->shape.heads; h++) {
                for (int c = 0; c < t->head->d; c++)
                    field_put(&t->k_field, b, token, h, c, 2 - 5 * field_get(&t->k_field, b, token, h, c));
                for (int c = 0; c < t->head->dv; c++)
                    field_put(&t->v_field, b, token, h, c, 100 - 7 * field_get(&t->v_field, b, token, h, c));
                if (t->head->gate)
                    field_put(&t->gate_field, b, token, h, 0, -0.125);
            }
        }
}

static void copy_strides(int64_t to[3], const fpa_field *field)
{
    memcpy(to, field->stride, sizeof field->stride);
}

static struct fpa_launch launch_of(const fpa_trial *t, int64_t from, int64_t to, const fpa_field *o,
                                   const fpa_field *state_in, const fpa_field *state_out)
{
    struct fpa_launch launch = {
        .batch = t->shape.batch,
        .length = to - from,
        .query_heads = t->shape.query_heads,
        .heads = t->shape.heads,
        .q = field_at(&t->q_field, 0, from, 0, 0),
        .k = field_at(&t->k_field, 0, from, 0, 0),
        .v = field_at(&t->v_field, 0, from, 0, 0),
        .o = field_at(o, 0, from, 0, 0),
        .weights = t->launch_weights,
    };

    copy_strides(launch.q_stride, &t->q_field);
    copy_strides(launch.k_stride, &t->k_field);
    copy_strides(launch.v_stride, &t->v_field);
    copy_strides(launch.o_stride, o);
    if (t->head->gate) {
        launch.log_gate = (const float *)(const void *)field_at(&t->gate_field, 0, from, 0, 0);
        copy_strides(launch.gate_stride, &t->gate_field);
    }
    if (state_in) {
        launch.state_in = state_in->first;
        launch.state_in_stride[0] = state_in->stride[0];
        launch.state_in_stride[1] = state_in->stride[2];
    }
    if (state_out) {
        launch.state_out = state_out->first;
        launch.state_out_stride[0] = state_out->stride[0];
        launch.state_out_stride[1] = state_out->stride[2];
    }
    return launch;
}

static bool all_poison(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0xff)
            return false;
    return true;
}

fpa_status trial_run(const fpa_trial *t, const fpa_module *module, fpa_form_index form, int64_t from,
                     int64_t to, fpa_field *o, fpa_field *state_in, fpa_field *state_out, fpa_error *error)
{
    enum { GUARD = 64 };
    struct fpa_launch launch = launch_of(t, from, to, o, state_in, state_out);
    size_t size = module->workspace(form, &launch);
    size_t all = size > SIZE_MAX / 2 ? 0 : (size + 2 * GUARD + 63) / 64 * 64;
    unsigned char *workspace = all ? aligned_alloc(64, all) : NULL;
    char text[TRIAL_TEXT];
    fpa_status status = FPA_OK;
    int code;

    trial_describe(t, form, text);
    if (!workspace)
        return fail(error, FPA_NO_MEMORY, t->head->name, "%s: no memory for a workspace of %zu bytes", text,
                    size);
    memset(workspace, 0xff, all);
    launch.workspace = workspace + GUARD;
    launch.workspace_size = size;
    code = module->forward(form, &launch);
    if (code)
        status = fail(error, FPA_REFUSED, t->head->name, "%s: the module returned %d%s", text, code,
                      code == 1 ? ": it finds the workspace that it asked for too small" : "");
    else if (!all_poison(workspace, GUARD) || !all_poison(workspace + GUARD + size, all - GUARD - size))
        status = fail(error, FPA_REFUSED, t->head->name,
                      "%s: the module wrote outside its workspace of %zu bytes", text, size);
    free(workspace);
    return status;
}

void trial_describe(const fpa_trial *t, fpa_form_index form, char text[TRIAL_TEXT])
{
    static const char *const layouts[LAYOUTS] = {"contiguous", "padded", "head-major"};
    static const char *const inputs[] = {"dense", "positive", "sparse", "extreme-gate"};

    snprintf(text, TRIAL_TEXT, "%s form, %lld x %lld tokens, %lld heads, %lld query heads, %s, %s inputs",
             form_name(form), (long long)t->shape.batch, (long long)t->shape.length,
             (long long)t->shape.heads, (long long)t->shape.query_heads, layouts[t->shape.layout],
             inputs[t->shape.inputs]);
}
