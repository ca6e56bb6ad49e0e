#include "backward_edge.h"

#include "../dear.h"
#include "runtime/verify/gradient_trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 20261126, LENGTH = 151 };

/* The log-gate of a token decays by differences of sums, which are not finite from there on: d_k and d_v make no claim of it. */
enum operand { Q, K, V, D_O, GATE };
static const char *const operand_names[] = {"q", "k", "v", "d_o", "log_gate"};

struct change {
    enum operand operand;
    int64_t token;
    double value;
};

static const struct change changes[] = {
    {V, 37, NAN},    {Q, 37, INFINITY},     {K, 37, NAN},    {D_O, 37, -INFINITY},
    {GATE, 37, NAN}, {V, 70, -INFINITY},    {Q, 64, NAN},    {K, 127, INFINITY},
    {D_O, 150, NAN}, {GATE, 70, -INFINITY}, {D_O, 100, NAN},
};

/* Whether the gradient at token t is made of the changed token. */
static bool depends(int of, int64_t t, const struct change *c)
{
    const bool key = c->operand == K || c->operand == V;
    if (of == OF_GATE)
        return key || c->operand == GATE || t <= c->token;
    if (c->operand == GATE)
        return of != OF_Q || t >= c->token;
    if (of == OF_Q)
        return key ? t >= c->token : t == c->token;
    return key ? t == c->token : t <= c->token;
}

/* ... and of nothing that may be zero, so that it cannot be finite. */
static bool is_spoilt(int of, int64_t t, const struct change *c)
{
    return c->operand != GATE && of != OF_GATE && t != c->token && depends(of, t, c);
}

static fpa_field *field_of(fpa_gradient_trial *g, enum operand operand)
{
    fpa_trial *t = &g->inputs;
    fpa_field *const fields[] = {&t->q_field, &t->k_field, &t->v_field, &g->d_o_field, &t->gate_field};
    return fields[operand];
}

static void apply(fpa_field *field, const struct change *c)
{
    for (int64_t h = 0; h < field->heads; h++)
        for (int64_t i = 0; i < field->entries; i++)
            field_put(field, 0, c->token, h, i, c->value);
}

static fpa_status compare(const fpa_head *head, const struct change *c, fpa_form_index form,
                          const fpa_gradient_outputs *before, const fpa_gradient_outputs *after,
                          fpa_error *error)
{
    for (int of = 0; of < (head->gate ? GRADIENT_KINDS : OF_GATE); of++)
        for (int64_t t = 0; t < LENGTH; t++) {
            const bool lost = is_spoilt(of, t, c) && isfinite(field_get(&after->field[of], 0, t, 0, 0));
            if (lost || (!depends(of, t, c) && !field_equal(&before->field[of], &after->field[of], t, t + 1)))
                return fail(error, FPA_REFUSED, head->name, "%s form: %s[%lld] = %g %s %s[%lld]",
                            form_name(form), operand_names[c->operand], (long long)c->token, c->value,
                            lost ? "is lost in" : "changes", gradient_name(of), (long long)t);
        }
    return FPA_OK;
}

static fpa_status run_form(const fpa_gradient_trial *g, const fpa_module *module, fpa_form_index form,
                           fpa_gradient_outputs *outputs, fpa_error *error)
{
    const fpa_gradient_run run = {.form = form, .to = LENGTH, .kinds = (1 << GRADIENT_KINDS) - 1};
    fpa_status status = gradient_outputs_make(g, outputs, error);
    return status ? status : gradient_run(g, module, &run, outputs, error);
}

static fpa_status check_change(fpa_gradient_trial *g, const fpa_module *module, fpa_form_index form,
                               const fpa_gradient_outputs *before, const struct change *change,
                               fpa_error *error)
{
    fpa_field *field = field_of(g, change->operand);
    fpa_gradient_outputs after = {0};
    unsigned char *saved = malloc(field->size);
    if (!saved)
        return fail_memory(error);
    memcpy(saved, field->bytes, field->size);
    apply(field, change);
    fpa_status status = run_form(g, module, form, &after, error);
    memcpy(field->bytes, saved, field->size);
    if (!status)
        status = compare(g->inputs.head, change, form, before, &after, error);
    gradient_outputs_free(g, &after);
    free(saved);
    return status;
}

/* make test: some changes in one form, the others in the other one. */
static fpa_status check_form(fpa_gradient_trial *g, const fpa_module *module, fpa_form_index form,
                             fpa_error *error)
{
    fpa_gradient_outputs before = {0};
    fpa_status status = run_form(g, module, form, &before, error);
    for (size_t i = 0; i < sizeof changes / sizeof *changes && !status; i++)
        if ((changes[i].operand != GATE || g->inputs.head->gate) &&
            (dear_tests() || (i < sizeof changes / sizeof *changes / 2) == (form == FORM_CHUNKED)))
            status = check_change(g, module, form, &before, &changes[i], error);
    gradient_outputs_free(g, &before);
    return status;
}

static fpa_status check_shape(const fpa_head *head, const fpa_facts *facts, const fpa_module *module,
                              fpa_shape shape, fpa_error *error)
{
    fpa_gradient_trial trial;
    fpa_status status = gradient_trial_make(&trial, head, facts, shape, 0, 0, SEED, error);
    for (int form = FORM_PARALLEL; form <= FORM_CHUNKED && !status; form++)
        status = check_form(&trial, module, (fpa_form_index)form, error);
    gradient_trial_free(&trial);
    return status;
}

fpa_status backward_edge_check(const fpa_head *head, const fpa_facts *facts, const fpa_module *module,
                               fpa_error *error)
{
    fpa_shape shape = {.batch = 1,
                       .length = LENGTH,
                       .heads = 1,
                       .query_heads = 2,
                       .layout = LAYOUT_PLAIN,
                       .inputs = head->normalize ? INPUTS_POSITIVE : INPUTS_DENSE};
    const fpa_status status = check_shape(head, facts, module, shape, error);
    shape.query_heads = 1; /* whose operands passes may take as they lie, from the last token on */
    return status || !module->passes[PASS_VALUES] ? status : check_shape(head, facts, module, shape, error);
}
