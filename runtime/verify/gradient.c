/* gradient: verification of a module's gradients: its trials, their checks, and the verdict. */
#include "verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/parallel.h"
#include "base/plain_locale.h"
#include "gradient_judge.h"
#include "gradient_ragged.h"
#include "head/lift.h"
#include "runtime/kernel.h"

/* Operations of the reference for one trial. A trial that needs more is reduced to one key head; one that still needs ten times as many,
 * to one query head; one that needs thirty times as many is skipped. */
static const double reference_budget = 4e7;
/* FLOP of a run of the long gated sequence, which limit its tokens. */
static const double long_budget = 4e9;

enum { SEED = 20261123, LONGEST = 1 << 16, PERIOD = 128 };

enum {              /* what a trial checks besides the gradients */
       REPEAT = 1,  /* the same call twice gives the same bits */
       SOME = 2,    /* and a call that wants fewer gradients gives the same bits */
       STATES = 4,  /* two runs, with a state and its gradient between them, equal one */
       LONG = 8,    /* a long gated sequence */
       RAGGED = 16, /* sequences of different lengths in one batch, states in pools */
};

/* The trials. Lengths are times * chunk + more. If times > 1, chunk is at least PASS_CHUNK, for gradients by forward passes: a GPU
 * divides passes of three or more of their chunks into segments, whatever the chunks of the gradients' own kernels are. */
enum { PASS_CHUNK = 128 };

typedef struct row {
    int times, more;
    int batch, heads, query_heads;
    fpa_layout layout;
    fpa_inputs inputs;
    int checks;
} row;

static const row rows[] = {
    {0, 1, 1, 2, 4, LAYOUT_HEAD_MAJOR, INPUTS_DENSE, REPEAT},
    {0, 5, 2, 3, 3, LAYOUT_PADDED, INPUTS_DENSE, REPEAT | SOME | STATES},
    {1, -1, 1, 1, 2, LAYOUT_PADDED, INPUTS_DENSE, 0},
    {1, 0, 1, 2, 2, LAYOUT_PLAIN, INPUTS_DENSE, SOME},
    {1, 1, 1, 1, 2, LAYOUT_HEAD_MAJOR, INPUTS_DENSE, STATES},
    {1, 2, 1, 1, 1, LAYOUT_PADDED, INPUTS_EXTREME_GATE, STATES},
    {1, 5, 1, 1, 1, LAYOUT_PLAIN, INPUTS_SPARSE, 0},
    {3, 7, 1, 2, 2, LAYOUT_PADDED, INPUTS_SLOW_GATE,
     REPEAT | SOME | STATES}, /* chunks that have an effect on the next but one */
    {0, 11, 2, 2, 4, LAYOUT_PLAIN, INPUTS_DENSE, RAGGED},
    {1, 3, 2, 1, 1, LAYOUT_PLAIN, INPUTS_DENSE, RAGGED},
    {0, LONGEST, 1, 1, 1, LAYOUT_PLAIN, INPUTS_DENSE, LONG},
    {2, 5, 1, 2, 2, LAYOUT_PIECES, INPUTS_DENSE,
     0}, /* rows of the second head begin inside a unit of 8 elements */
};

enum {
    ROWS = GRADIENT_SHAPES,
    LEANING_DRAW =
        8 /* seed of the last row: its gates let states fade slowly enough to show faults of this layout */
};
_Static_assert(sizeof rows == ROWS * sizeof *rows, "verify.h counts them");

typedef fpa_gradient_squares form_squares[FORMS][GRADIENT_KINDS + 1]; /* the last for matrices */

typedef struct problem {
    bool posed;
    fpa_gradient_trial trial;
    fpa_status status;
    fpa_error error;
    /* results of the module */
    form_squares squares;
    fpa_gradient_findings found;
    fpa_status answered;
    fpa_error reason;
} problem;

/* All trials of a head, and a module's results. */
typedef struct fpa_gradient_problems {
    const fpa_head *head;
    const fpa_facts *facts;
    const fpa_module *backward, *forward;
    fpa_reference_size size;
    int64_t longest_allowed; /* tokens */
    unsigned shapes;         /* bits of the rows that are run; 0: all */
    problem problems[ROWS];
    form_squares squares; /* of all trials */
    fpa_gradient_findings found;
} examination;

/* ---- checks of one trial ---- */

enum { ALL_KINDS = (1 << GRADIENT_KINDS) - 1 };

static void make_outputs(fpa_gradient_check *c, fpa_gradient_outputs *outputs)
{
    *outputs = (fpa_gradient_outputs){0};
    if (c->status == FPA_OK)
        c->status = gradient_outputs_make(c->trial, outputs, c->error);
}

/* Checks that another call, which may want fewer gradients, gives the same bits. */
static void check_bits(fpa_gradient_check *c, const fpa_gradient_run *run, const fpa_gradient_outputs *first,
                       const char *what)
{
    const fpa_head *head = c->trial->inputs.head;
    fpa_gradient_outputs again;
    bool same = true;
    make_outputs(c, &again);
    gradient_check_run(c, *run, &again);
    for (int kind = 0; kind < GRADIENT_KINDS && c->status == FPA_OK; kind++)
        if (run->kinds & 1 << kind && (kind != OF_GATE || head->gate))
            same = same && field_equal(&first->field[kind], &again.field[kind], run->from, run->to);
    for (int i = 0; run->matrices && i < head_run_time_matrices(head) && c->status == FPA_OK; i++)
        same = same && memcmp(first->matrices[i], again.matrices[i],
                              (size_t)gradient_entries(c->trial, i) * sizeof(float)) == 0;
    gradient_outputs_free(c->trial, &again);
    if (!same)
        gradient_refuse(c, "%s", what);
}

/* Runs the second part of the tokens with the state after the first part, then the first part with that state's gradient. */
static void check_states(fpa_gradient_check *c)
{
    const fpa_gradient_trial *g = c->trial;
    const int64_t length = g->inputs.shape.length, cut = g->cut;
    fpa_field state, gradient;
    fpa_gradient_outputs outputs;
    fpa_gradient_squares sums[GRADIENT_KINDS + 1] = {
        0}; /* in sums of their own, since states may be narrow */
    char how[64];
    const fpa_gradient_run second = {
        .from = cut, .to = length, .state_in = &state, .d_state_in = &gradient, .kinds = ALL_KINDS};
    const fpa_gradient_run first = {.to = cut, .d_state_out = &gradient, .kinds = ALL_KINDS};
    snprintf(how, sizeof how, ", cut after %lld tokens", (long long)cut);
    c->how = how;
    c->resumes = 2;
    gradient_make_states(c, g->inputs.shape.batch, &state);
    gradient_make_states(c, g->inputs.shape.batch, &gradient);
    make_outputs(c, &outputs);
    gradient_run_states(c, &state);
    gradient_check_run(c, second, &outputs);
    if (c->status == FPA_OK && field_scan(&gradient).poison)
        gradient_refuse(c, "an element of d_state_in was not written");
    gradient_check_run(c, first, &outputs);
    gradient_judge(c, &first, &outputs, sums);
    if (c->status == FPA_OK && !(field_guards_hold(&gradient) && field_guards_hold(&state)))
        gradient_refuse(c, "the module wrote outside the elements of a state");
    gradient_outputs_free(g, &outputs);
    field_free(&gradient);
    field_free(&state);
    c->how = "";
}

/* As one call for each row, but with states handed over in the middle of each row. */
static void check_ragged(fpa_gradient_check *c, const fpa_gradient_run *all)
{
    fpa_gradient_squares sums[GRADIENT_KINDS + 1] = {
        0}; /* in sums of their own, since states may be narrow */
    fpa_gradient_outputs outputs;
    c->how = " (sequences of different lengths)";
    c->resumes = 2;
    make_outputs(c, &outputs);
    gradient_run_ragged(c, all, &outputs);
    gradient_judge(c, all, &outputs, sums);
    gradient_outputs_free(c->trial, &outputs);
    c->how = "";
}

static fpa_status check_form(const examination *x, problem *p, fpa_form_index form, int checks,
                             fpa_error *error)
{
    const fpa_gradient_run all = {
        .to = p->trial.inputs.shape.length, .kinds = ALL_KINDS, .matrices = !(checks & LONG)};
    fpa_gradient_check c = {&p->trial, x->backward, x->forward, form, "", 0, &p->found, error, FPA_OK};
    fpa_gradient_squares alone[GRADIENT_KINDS + 1] = {0};
    fpa_gradient_outputs outputs;
    make_outputs(&c, &outputs);
    gradient_check_run(&c, all, &outputs);
    gradient_judge(&c, &all, &outputs, checks & LONG ? alone : p->squares[form]);
    if (c.status == FPA_OK && checks & LONG)
        c.status =
            gradient_check_rms(x->head, form, &alone[OF_GATE], gradient_name(OF_GATE), &p->found, error);
    if (c.status == FPA_OK && checks & REPEAT)
        check_bits(&c, &all, &outputs, "the same call twice gave different bits");
    for (int kind = 0; kind < OF_GATE && c.status == FPA_OK && checks & SOME; kind++) {
        fpa_gradient_run some = all;
        some.kinds = 1 << kind;
        some.matrices = false;
        check_bits(&c, &some, &outputs, "a call for one gradient gave other bits than a call for all");
    }
    gradient_outputs_free(&p->trial, &outputs);
    if (c.status == FPA_OK && checks & RAGGED)
        check_ragged(&c, &all);
    if (c.status == FPA_OK && checks & STATES)
        check_states(&c);
    return c.status;
}

/* ---- all trials ---- */

/* Operations of the reference: exact, absolute and plain. */
static double reference_cost(const examination *x, const fpa_shape *s)
{
    const double pair = 3 * x->size.score + 6.0 * x->head->dv + 40;

    return 3 * pair * (double)(s->batch * s->query_heads) * (double)s->length * (double)s->length / 2;
}

/* False: this row does not apply to the head, or needs too many operations. */
static bool make_shape(const examination *x, const row *r, fpa_shape *s)
{
    const fpa_head *head = x->head;
    const bool normalized = head->normalize != FPA_NORMALIZE_NONE, is_long = r->checks & LONG;
    const double token = fmax(x->facts->flop[FORM_CHUNKED], 1);
    const int fixed = lift_heads(head); /* heads of the lift's constants; 0: any number */
    const int chunk = r->times > 1 && x->facts->chunk < PASS_CHUNK ? PASS_CHUNK : x->facts->chunk;

    if ((r->inputs == INPUTS_EXTREME_GATE || is_long) && !head->gate)
        return false;
    if (is_long && head->lift &&
        (head->lift->positions ||
         head->lift->key_mask)) /* positions and masks do not repeat with the tokens */
        return false;
    if (r->layout == LAYOUT_PIECES && head_width(head) % 8 == 0 &&
        head->dv % 8 == 0) /* it would be C order */
        return false;
    *s = (fpa_shape){.batch = r->batch,
                     .length = (int64_t)r->times * chunk + r->more,
                     .heads = fixed ? fixed : r->heads,
                     .query_heads = (fixed ? fixed : r->heads) * (r->query_heads / r->heads),
                     .layout = r->layout,
                     .inputs = !normalized || r->inputs == INPUTS_EXTREME_GATE ? r->inputs
                               : r->inputs == INPUTS_SLOW_GATE                 ? INPUTS_SLOW_POSITIVE
                                                                               : INPUTS_POSITIVE};
    if (is_long) {
        s->length = (int64_t)fmin((double)x->longest_allowed, long_budget / token);
        return s->length > 2 * PERIOD + 8 * x->facts->chunk;
    }
    if (r->layout == LAYOUT_PIECES) /* keeps both heads: rows of a single one are aligned */
        return s->length <= x->longest_allowed && reference_cost(x, s) <= 30 * reference_budget;
    if (reference_cost(x, s) > reference_budget) {
        s->batch = 1;
        s->heads = fixed ? fixed : 1;
        s->query_heads = s->heads * (r->query_heads > r->heads ? 2 : 1);
    }
    if (reference_cost(x, s) > 10 * reference_budget)
        s->query_heads = s->heads;
    return s->length > 0 && s->length <= x->longest_allowed && reference_cost(x, s) <= 30 * reference_budget;
}

static void pose(int index, void *user)
{
    examination *x = user;
    problem *p = &x->problems[index];
    const row *r = &rows[index];
    const uint64_t draw = r->layout == LAYOUT_PIECES ? LEANING_DRAW : (uint64_t)index;
    fpa_shape shape;
    int64_t cut = 0;

    p->posed = (!x->shapes || x->shapes >> index & 1) && make_shape(x, r, &shape);
    if (p->posed && r->checks & (STATES | RAGGED))
        cut = r->checks & STATES ? (2 * shape.length + 2) / 5 : (3 * shape.length + 4) / 5;
    if (p->posed)
        p->status = gradient_trial_make(&p->trial, x->head, x->facts, shape, r->checks & LONG ? PERIOD : 0,
                                        cut, SEED + draw, &p->error);
}

static void answer(int index, void *user)
{
    const examination *x = user;
    problem *p = &((examination *)user)->problems[index];
    const int checks = rows[index].checks;
    fpa_status status = p->status;

    p->found = (fpa_gradient_findings){.trials = 1, .longest = p->trial.inputs.shape.length};
    memset(p->squares, 0, sizeof p->squares);
    p->reason = p->error;
    if (p->posed && status == FPA_OK && !(checks & LONG))
        status = check_form(x, p, FORM_PARALLEL, checks, &p->reason);
    if (p->posed && status == FPA_OK)
        status = check_form(x, p, FORM_CHUNKED, checks, &p->reason);
    p->answered = status;
}

static void add_found(examination *x, const problem *p)
{
    fpa_gradient_findings *all = &x->found;

    all->trials += p->found.trials;
    all->longest = p->found.longest > all->longest ? p->found.longest : all->longest;
    all->judged += p->found.judged;
    all->worst = fmax(all->worst, p->found.worst);
    all->ratio = fmax(all->ratio, p->found.ratio);
    for (int form = 0; form < FORMS; form++)
        for (int kind = 0; kind <= GRADIENT_KINDS; kind++) {
            x->squares[form][kind].found += p->squares[form][kind].found;
            x->squares[form][kind].plain += p->squares[form][kind].plain;
            x->squares[form][kind].expected += p->squares[form][kind].expected;
            x->squares[form][kind].count += p->squares[form][kind].count;
        }
}

static fpa_status conclude(examination *x, fpa_error *error)
{
    fpa_status status = FPA_OK;

    if (!x->found.judged)
        return fail(error, FPA_REFUSED, x->head->name, "gradients: none could be compared with the formula");
    for (int form = FORM_PARALLEL; form <= FORM_CHUNKED; form++)
        for (int kind = 0; kind <= GRADIENT_KINDS && status == FPA_OK; kind++)
            status = gradient_check_rms(x->head, (fpa_form_index)form, &x->squares[form][kind],
                                        kind < GRADIENT_KINDS ? gradient_name(kind) : "d_weights", &x->found,
                                        error);
    return status;
}

/* Runs all trials by these kernels: on a device in parallel, because most of the time passes between its calls; on the CPU one after the
 * other, since each uses all threads. The result does not depend on this. */
static fpa_status examine(examination *x, const fpa_module *backward, fpa_error *error)
{
    const bool at_once = backward->backend->memory;
    fpa_status status = FPA_OK;

    x->backward = backward;
    x->found = (fpa_gradient_findings){0};
    memset(x->squares, 0, sizeof x->squares);
    if (at_once)
        parallel_run(ROWS, answer, x);
    for (int i = 0; i < ROWS && status == FPA_OK; i++) {
        problem *p = &x->problems[i];

        if (!p->posed)
            continue;
        if (!at_once)
            answer(i, x);
        add_found(x, p);
        status = p->answered;
        if (status != FPA_OK && error)
            *error = p->reason;
    }
    return status == FPA_OK ? conclude(x, error) : status;
}

static void say(const fpa_gradient_findings *found, const char *what, char text[GRADIENT_TEXT])
{
    const size_t used = strlen(text);

    snprintf(text + used, GRADIENT_TEXT - used,
             "%s: %d shapes to %lld tokens, %lld values, worst %.2g of the bound, RMS %.2g of plain", what,
             found->trials, (long long)found->longest, (long long)found->judged, found->worst, found->ratio);
}

/* A module with passes has two sets of kernels, of which a call uses one: both are examined. */
static fpa_status examine_both(examination *x, const fpa_module *backward, char text[GRADIENT_TEXT],
                               fpa_error *error)
{
    fpa_module alone = *backward;

    memset(alone.passes, 0, sizeof alone.passes);
    fpa_status status = examine(x, &alone, error);
    if (status == FPA_OK)
        say(&x->found, "gradients", text);
    if (status != FPA_OK || !(backward->passes[PASS_ROWS] || backward->passes[PASS_VALUES]))
        return status;
    status = examine(x, backward, error);
    if (status == FPA_OK)
        say(&x->found, "; as forward passes", text);
    return status;
}

static fpa_status pose_some(const fpa_head *head, const fpa_facts *facts, int64_t longest, unsigned shapes,
                            fpa_gradient_problems **problems, fpa_error *error)
{
    examination *x = calloc(1, sizeof *x);
    const locale_t before = locale_plain();
    fpa_status status = x ? FPA_OK : fail_memory(error);

    *problems = x;
    if (x) {
        x->head = head;
        x->facts = facts;
        x->longest_allowed = longest ? longest : LONGEST;
        x->shapes = shapes;
        status = reference_size(head, &x->size, error);
    }
    if (status == FPA_OK)
        parallel_run(ROWS, pose, x);
    locale_restore(before);
    return status;
}

fpa_status gradient_problems_pose(const fpa_head *head, const fpa_facts *facts, int64_t longest,
                                  fpa_gradient_problems **problems, fpa_error *error)
{
    return pose_some(head, facts, longest, 0, problems, error);
}

void gradient_problems_free(fpa_gradient_problems *problems)
{
    for (int i = 0; problems && i < ROWS; i++)
        if (problems->problems[i].posed)
            gradient_trial_free(&problems->problems[i].trial);
    free(problems);
}

fpa_status verify_gradients_of(fpa_gradient_problems *problems, const fpa_module *backward,
                               const fpa_module *forward, char text[GRADIENT_TEXT], fpa_error *error)
{
    const locale_t before = locale_plain();
    fpa_status status = FPA_OK;

    *text = 0;
    problems->forward = forward;
    if (!backward->backward)
        status = fail(error, FPA_LOAD, problems->head->name,
                      "the module is one of a forward pass, not of gradients");
    if (status == FPA_OK)
        status = examine_both(problems, backward, text, error);
    locale_restore(before);
    return status;
}

fpa_status verify_backward_up_to(const fpa_head *head, const fpa_facts *facts, const fpa_module *backward,
                                 const fpa_module *forward, int64_t longest, unsigned shapes,
                                 char text[GRADIENT_TEXT], fpa_error *error)
{
    fpa_gradient_problems *problems;
    fpa_status status = pose_some(head, facts, longest, shapes, &problems, error);

    if (status == FPA_OK)
        status = verify_gradients_of(problems, backward, forward, text, error);
    gradient_problems_free(problems);
    return status;
}

fpa_status verify_backward(const fpa_head *head, const fpa_facts *facts, const fpa_module *backward,
                           const fpa_module *forward, char text[GRADIENT_TEXT], fpa_error *error)
{
    return verify_backward_up_to(head, facts, backward, forward, LONGEST, 0, text, error);
}

fpa_status verify_add_backward(fpa_kernel *kernel, const fpa_facts *facts, fpa_module *module,
                               const char *stored, fpa_error *error)
{
    fpa_status status = FPA_OK;

    if (stored)
        snprintf(kernel->backward_verdict, sizeof kernel->backward_verdict, "%s", stored);
    else
        status =
            verify_backward(kernel->head, facts, module, &kernel->module, kernel->backward_verdict, error);
    if (status != FPA_OK) {
        module->backend->unload(module);
        return status;
    }
    kernel->backward = *module;
    kernel->backward_facts = *facts;
    kernel->description.backward_verdict = kernel->backward_verdict;
    return FPA_OK;
}
