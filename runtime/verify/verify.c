/* verify: the trials of a forward module, and their checks. A module becomes callable only after it has agreed with the formula. */
#include "verify.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "head/lift.h"
#include "base/parallel.h"
#include "base/plain_locale.h"
#include "check.h"
#include "scratch.h"
#include "verdict.h"
#include "walk.h"

/* FLOP of one run. A shape that needs more is reduced to one batch entry and head; if it still needs ten times as many, it is skipped,
 * and the verdict tells the longest sequence. */
static const double run_budget = 4e8;
static const double state_budget = 2e7; /* elements of all states of one trial */
/* FLOP of all runs of a row. A row that needs more has only its checks `lean`, which no other row has. */
static const double row_budget = 4e9;
/* FLOP that take as long as handling one element of a state that is handed over: it is filled, read, written, checked and copied. */
static const double state_work = 20;
/* FLOP of the states of a handover, which the parallel form computes chunk by chunk: handovers that need more are skipped. */
static const double handover_budget = 2e10;

enum { SEED = 20240607, SKIPPED = -1 };

/* The trials. Lengths are times * chunk + more + windows * (the window). Each (batch, heads, query heads), layout and check occurs with
 * short sequences; few are long. */
typedef struct row {
    int times, more;
    int batch, heads, query_heads;
    fpa_layout layout;
    fpa_inputs inputs, normalized; /* normalized: for heads with a normaliser */
    int checks, lean; /* lean: checks of a row above row_budget; SKIPPED: such a row is skipped */
} row;

static const row rows[] = {
    {0, 0, 2, 3, 3, LAYOUT_PADDED, INPUTS_DENSE, INPUTS_POSITIVE, CHECK_RESUME, 0},
    {0, 1, 1, 2, 4, LAYOUT_HEAD_MAJOR, INPUTS_DENSE, INPUTS_POSITIVE,
     CHECK_RESUME | CHECK_REPEAT | CHECK_CANDIDATES, CHECK_RESUME | CHECK_CANDIDATES},
    {0, 5, 2, 3, 3, LAYOUT_HEAD_MAJOR, INPUTS_DENSE, INPUTS_DENSE,
     CHECK_HANDOVER | CHECK_REPEAT | CHECK_FUTURE | CHECK_RECENT | CHECK_CANDIDATES | CHECK_RAGGED,
     CHECK_CHAIN | CHECK_REPEAT | CHECK_FUTURE | CHECK_RECENT | CHECK_CANDIDATES | CHECK_RAGGED},
    {0, 97, 1, 2, 4, LAYOUT_PLAIN, INPUTS_DENSE, INPUTS_POSITIVE, CHECK_RESUME | CHECK_RECENT,
     0}, /* RECENT_ROW */
    {1, 3, 1, 3, 3, LAYOUT_PIECES, INPUTS_DENSE, INPUTS_DENSE, 0, 0},
    {1, 0, 1, 1, 1, LAYOUT_PLAIN, INPUTS_DENSE, INPUTS_POSITIVE, CHECK_REPEAT | CHECK_RECENT, 0},
    {1, 1, 2, 3, 3, LAYOUT_PADDED, INPUTS_DENSE, INPUTS_POSITIVE,
     CHECK_REPEAT | CHECK_FUTURE | CHECK_CANDIDATES | CHECK_RAGGED | CHECK_MANY,
     CHECK_REPEAT | CHECK_FUTURE | CHECK_CANDIDATES},
    {1, 2, 1, 1, 2, LAYOUT_PADDED, INPUTS_EXTREME_GATE, INPUTS_EXTREME_GATE,
     CHECK_RESUME | CHECK_FUTURE | CHECK_RECENT, CHECK_RESUME},
    {1, 5, 1, 1, 1, LAYOUT_PLAIN, INPUTS_SPARSE, INPUTS_SPARSE, 0, 0},
    {3, 7, 1, 1, 1, LAYOUT_PADDED, INPUTS_DENSE, INPUTS_POSITIVE,
     CHECK_HANDOVER | CHECK_FUTURE | CHECK_CANDIDATES | CHECK_RAGGED,
     CHECK_CHAIN | CHECK_FUTURE | CHECK_CANDIDATES},
    {0, 3, 1, 2, 2, LAYOUT_PLAIN, INPUTS_DENSE, INPUTS_POSITIVE, CHECK_RESUME,
     SKIPPED}, /* runs of one token each */
    {0, 2, 1, 1, 99, LAYOUT_PLAIN, INPUTS_DENSE, INPUTS_POSITIVE, CHECK_RECENT,
     0},                                                             /* more query heads than lanes */
    {2, 3, 1, 1, 1, LAYOUT_PLAIN, INPUTS_DENSE, INPUTS_DENSE, 0, 0}, /* SIGNED_ROW */
    /* each block of a cluster processes several chunks */
    {0, 389, 1, 1, 1, LAYOUT_PLAIN, INPUTS_EXTREME_GATE, INPUTS_EXTREME_GATE, CHECK_RESUME | CHECK_CANDIDATES,
     CHECK_RESUME | CHECK_CANDIDATES},
    {0, 1161, 1, 1, 2, LAYOUT_PLAIN, INPUTS_DENSE, INPUTS_POSITIVE,
     CHECK_HANDOVER | CHECK_FUTURE | CHECK_CANDIDATES | CHECK_RAGGED | CHECK_MANY,
     CHECK_CHAIN | CHECK_FUTURE | CHECK_CANDIDATES},
    /* lengths below, at and above a window, and runs that end inside it; exponents that overflow if they are not reduced */
    {1, 3, 1, 1, 2, LAYOUT_PADDED, INPUTS_LARGE, INPUTS_LARGE, CHECK_RESUME | CHECK_FUTURE | CHECK_RECENT,
     CHECK_CHAIN | CHECK_RECENT},
    {0, -1, 1, 2, 4, LAYOUT_PADDED, INPUTS_DENSE, INPUTS_DENSE, CHECK_HANDOVER | CHECK_RECENT,
     CHECK_CHAIN | CHECK_RECENT},
    {0, 0, 2, 1, 1, LAYOUT_PLAIN, INPUTS_DENSE, INPUTS_DENSE, CHECK_RESUME | CHECK_FUTURE | CHECK_RAGGED,
     CHECK_CHAIN | CHECK_RAGGED},
    {0, 5, 1, 2, 4, LAYOUT_PADDED, INPUTS_DENSE, INPUTS_DENSE, CHECK_HANDOVER | CHECK_REPEAT | CHECK_RECENT,
     CHECK_CHAIN | CHECK_RECENT},
    {0, 1, 1, 3, 3, LAYOUT_HEAD_MAJOR, INPUTS_DENSE, INPUTS_DENSE, CHECK_RESUME | CHECK_RECENT,
     CHECK_CHAIN | CHECK_RECENT},
    {0, 2, 1, 1, 99, LAYOUT_PLAIN, INPUTS_DENSE, INPUTS_POSITIVE, 0,
     SKIPPED}, /* more query heads than lanes */
    /* for every head: values of several chunks without gaps, which C kernels read without copies; chunks that have an effect on the next
     * but one */
    {2, 3, 1, 1, 1, LAYOUT_PLAIN, INPUTS_SLOW_GATE, INPUTS_SLOW_GATE, 0, SKIPPED},
    /* for a GPU, the chunked form only: two segments of two chunks and one of one, after an initial state */
    {4, 8, 2, 2, 4, LAYOUT_PLAIN, INPUTS_SLOW_GATE, INPUTS_SLOW_GATE, CHECK_SEGMENTS | CHECK_RESUME,
     CHECK_SEGMENTS},
};

enum {
    ROWS = sizeof rows / sizeof rows[0],
    SEGMENTS_ROW = ROWS - 1,
    WHOLE_ROW = SEGMENTS_ROW - 1,
    WINDOW_ROWS = WHOLE_ROW - 6,
    CLUSTER_ROWS = WINDOW_ROWS - 2,
    SIGNED_ROW = CLUSTER_ROWS - 1,
    RECENT_ROW = 3
};

/* Windows by which a row is longer: rows for heads that have a window. */
static int64_t windows_of(const row *r)
{
    static const int windows[WHOLE_ROW - WINDOW_ROWS] = {2, 1, 1, 3, 1, 2};
    return r < &rows[WINDOW_ROWS] || r >= &rows[WHOLE_ROW] ? 0 : windows[r - &rows[WINDOW_ROWS]];
}

static double run_cost(const fpa_head *head, const fpa_facts *facts, const fpa_shape *s, fpa_form_index form)
{
    double length = (double)s->length, heads = (double)(s->batch * s->query_heads);
    double pairs = head->causal ? length * (length + 1) / 2 : length * length;
    return heads * facts->flop[form] * (form == FORM_PARALLEL ? pairs : length);
}

/* The row of segments is for the chunked form only. */
static bool has_form(const fpa_facts *facts, const fpa_shape *s, int form)
{
    return facts->forms & 1 << form && (!(s->checks & CHECK_SEGMENTS) || form == FORM_CHUNKED);
}

/* That row has ten times the budget, since a GPU runs it, and the reference's work does not depend on features. */
static bool exceeds(const fpa_head *head, const fpa_facts *facts, const fpa_shape *s, int form, double times)
{
    const double most = times * run_budget * (s->checks & CHECK_SEGMENTS ? 10 : 1);
    return run_cost(head, facts, s, (fpa_form_index)form) > most;
}

static bool affordable(const fpa_head *head, const fpa_facts *facts, const fpa_shape *s, int form)
{
    return has_form(facts, s, form) && !exceeds(head, facts, s, form, 10);
}

static int count_bits(int bits)
{
    return bits ? 1 + count_bits(bits & (bits - 1)) : 0;
}

/* FLOP of the states that the parallel form hands over, which it computes chunk by chunk. */
static double states_cost(const fpa_facts *facts, const fpa_shape *s)
{
    return (double)(s->batch * s->heads) * (double)s->length * facts->flop[FORM_CHUNKED];
}

/* FLOP of a handover in addition to the runs' own: states are copied from run to run. */
static double handover_cost(const fpa_facts *facts, const fpa_shape *s, int form)
{
    enum { HANDED = 4 }; /* runs that together have the sequence's tokens */
    const double elements = (double)(s->batch * s->heads) * (double)facts->state_elements;
    return (form == FORM_PARALLEL ? states_cost(facts, s) : 0) + HANDED * state_work * elements;
}

/* FLOP of all runs of the module for a row's checks. */
static double row_cost(const fpa_head *head, const fpa_facts *facts, const fpa_shape *s)
{
    const int forms = count_bits(facts->forms & ((1 << FORMS) - 1));
    const int handovers =
        (s->checks & CHECK_HANDOVER ? forms : (s->checks & (CHECK_RESUME | CHECK_CHAIN)) != 0) +
        2 * ((s->checks & CHECK_RAGGED) != 0);
    const int again = (s->checks & CHECK_REPEAT) != 0, changed = (s->checks & CHECK_FUTURE) != 0;
    double flop = 0;
    for (int form = 0; form < FORMS; form++)
        if (affordable(head, facts, s, form))
            flop += (1 + again + changed + handovers) * run_cost(head, facts, s, (fpa_form_index)form) +
                    handovers * handover_cost(facts, s, form);
    return flop;
}

/* False: this row does not apply to the head, or needs too many operations. */
static bool make_shape(const fpa_head *head, const fpa_facts *facts, const fpa_module *module, const row *r,
                       fpa_shape *s)
{
    int chunk = facts->chunk > 0 ? facts->chunk : 1;
    const int fixed = lift_heads(head); /* of the head's constants */
    bool heavy = false;
    if (windows_of(r) && !head->window)
        return false;
    if (r == &rows[SEGMENTS_ROW] && !is_of_gpu(facts))
        return false;
    if ((r->inputs == INPUTS_EXTREME_GATE && !head->gate) || (r->more == 97 && chunk <= 97))
        return false;
    /* inputs of both signs: with positive ones the quotient hides a wrong feature among many below the roundings of narrow arithmetic */
    if (r == &rows[SIGNED_ROW] &&
        (facts->arithmetic == FPA_F32 || head->normalize == FPA_NORMALIZE_NONE || !head->causal))
        return false;
    *s = (fpa_shape){
        .batch = r->batch,
        .length = (int64_t)r->times * chunk + r->more + windows_of(r) * head->window,
        .heads = fixed ? fixed : r->heads,
        .query_heads = (fixed ? fixed : r->heads) * (r->query_heads / r->heads),
        .layout = r->layout,
        .inputs = head->normalize == FPA_NORMALIZE_NONE ? r->inputs : r->normalized,
        .checks = r->checks,
    };
    if (r >= &rows[CLUSTER_ROWS] && r < &rows[WINDOW_ROWS] &&
        !walk_has(module, s, FORM_CHUNKED, "cluster_scan"))
        return false;
    for (int form = 0; form < FORMS; form++)
        heavy = heavy || (has_form(facts, s, form) && exceeds(head, facts, s, form, 1));
    if (heavy || (double)facts->state_elements * (double)(s->batch * s->heads) > state_budget) {
        s->batch = 1;
        s->heads = s->query_heads = fixed ? fixed : 1;
    }
    if (row_cost(head, facts, s) > row_budget)
        s->checks = r->lean;
    if (s->checks != SKIPPED && states_cost(facts, s) > handover_budget)
        s->checks &= ~(CHECK_RESUME | CHECK_HANDOVER | CHECK_CHAIN | CHECK_RAGGED);
    return s->checks != SKIPPED;
}

/* A row's inputs and the formula's outputs. */
typedef struct problem {
    bool posed; /* false: the row is skipped */
    fpa_trial trial;
    fpa_status status; /* of making the trial */
    fpa_error error;
} problem;

/* A problem for one of the module's forms and candidates. */
typedef struct question {
    int row;
    fpa_form_index form;
    /* by the picked candidate; else by the fastest for calls of this size */
    bool walks;
    fpa_pick pick;
    fpa_measure measure;
    fpa_status status;
    fpa_error reason;
} question;

typedef struct fpa_module_problems {
    const fpa_head *head;
    const fpa_facts *facts;
    const fpa_module *module; /* NULL: not known yet */
    problem problems[ROWS];
    fpa_blocks blocks; /* for runs that follow one another */
    question *questions;
    int count;
    atomic_int refused; /* the first question that failed */
    scratch_list scratch;
} examination;

/* Rows that apply only to some modules. */
static bool is_of_module(int index)
{
    return index >= CLUSTER_ROWS && index < WINDOW_ROWS;
}

static void pose(int index, void *user)
{
    examination *x = user;
    problem *p = &x->problems[index];
    fpa_shape shape;
    if (is_of_module(index) == !x->module || !make_shape(x->head, x->facts, x->module, &rows[index], &shape))
        return;
    for (int form = 0; form < FORMS; form++)
        p->posed = p->posed || affordable(x->head, x->facts, &shape, form);
    if (p->posed)
        p->status = trial_make(&p->trial, x->head, x->facts, shape, SEED + (uint64_t)index, &p->error);
}

/* Whether a row's trial is also run by candidates other than the fastest: for the recurrent form one short row, for others the two
 * longest rows that are affordable, which have more than one chunk. */
static bool is_walked(const examination *x, int index, int form)
{
    int later = 0;
    if (!(x->problems[index].trial.shape.checks & CHECK_CANDIDATES))
        return false;
    if (index >= CLUSTER_ROWS)
        return form != FORM_RECURRENT;
    for (int i = index; i < CLUSTER_ROWS; i++) {
        const fpa_trial *t = &x->problems[i].trial;
        if (x->problems[i].posed && t->shape.checks & CHECK_CANDIDATES &&
            affordable(x->head, x->facts, &t->shape, form) &&
            (form != FORM_RECURRENT || walk_is_short(&t->shape)))
            later++;
        else if (i == index)
            return false;
    }
    return later <= (form == FORM_RECURRENT ? 1 : 2);
}

/* Checks of candidates other than the fastest: each form takes over states from one other form, and later tokens are changed only if
 * nothing is repeated. */
static int walked_checks(int checks)
{
    if (checks & CHECK_HANDOVER)
        checks = (checks & ~CHECK_HANDOVER) | CHECK_CHAIN;
    return checks & CHECK_REPEAT ? checks & ~CHECK_FUTURE : checks;
}

static void ask(examination *x, int index, int form, const fpa_pick *pick)
{
    question *q = &x->questions[x->count++];
    *q = (question){.row = index, .form = (fpa_form_index)form, .walks = pick};
    if (pick)
        q->pick = *pick;
}

/* Adds a form's questions: by the fastest candidate, and by others, which large calls would use, for which the formula would take too
 * long. */
static void ask_form(examination *x, int index, int form)
{
    fpa_pick picks[MANY_PICKS];
    const fpa_shape *shape = &x->problems[index].trial.shape;
    int count = 0;
    if (index != SEGMENTS_ROW)
        ask(x, index, form, NULL);
    if (index == SEGMENTS_ROW)
        count = walk_list_segments(x->module, shape, x->facts->chunk, picks);
    else if (index == RECENT_ROW && form == FORM_RECURRENT)
        count = walk_list_recent(x->module, shape, picks);
    else if (is_walked(x, index, form))
        count = walk_list(x->module, shape, (fpa_form_index)form, picks);
    for (int i = 0; i < count; i++)
        if (index < CLUSTER_ROWS || index == SEGMENTS_ROW || strcmp(picks[i].mechanism, "cluster_scan") == 0)
            ask(x, index, form, &picks[i]);
}

static fpa_status list_questions(examination *x, fpa_error *error)
{
    x->count = 0;
    x->questions = calloc((size_t)ROWS * FORMS * (1 + MANY_PICKS), sizeof *x->questions);
    for (int index = 0; index < ROWS && x->questions; index++)
        for (int form = 0; form < FORMS && x->problems[index].posed; form++)
            if (affordable(x->head, x->facts, &x->problems[index].trial.shape, form))
                ask_form(x, index, form);
    return x->questions ? FPA_OK : fail_memory(error);
}

static fpa_status put(const examination *x, question *q, fpa_trial *t)
{
    const int checks = t->shape.checks;
    t->choose = q->walks ? walk_choose : NULL;
    t->choice = &q->pick;
    t->shape.checks = q->walks ? walked_checks(checks) : checks;
    const fpa_status status = check_trial(t, x->module, q->form, &q->measure, &q->reason);
    t->shape.checks = checks;
    t->choose = NULL;
    return status;
}

/* Answers a question with tensors and memory of its own. */
static fpa_status put_at_once(examination *x, question *q, const fpa_trial *t)
{
    scratch its = scratch_take(&x->scratch);
    fpa_trial own;
    fpa_status status = trial_borrow(t, &own, &its.spares, &q->reason);
    own.blocks = &its.blocks;
    if (status == FPA_OK)
        status = put(x, q, &own);
    trial_return(&own);
    scratch_leave(&x->scratch, &its);
    return status;
}

/* After a failed question later ones are skipped; earlier ones are finished, so that the first failure is the one that is reported. */
static void note_refused(examination *x, int index)
{
    int first = atomic_load(&x->refused);
    while (index < first && !atomic_compare_exchange_weak(&x->refused, &first, index))
        ;
}

static void answer(int index, void *user)
{
    examination *x = user;
    question *q = &x->questions[index];
    problem *p = &x->problems[q->row];
    if (atomic_load(&x->refused) < index)
        return;
    q->measure = (fpa_measure){0};
    q->status = p->status;
    q->reason = p->error;
    if (q->status == FPA_OK && x->module->backend->memory) {
        q->status = put_at_once(x, q, &p->trial);
    } else if (q->status == FPA_OK) {
        p->trial.blocks = &x->blocks;
        q->status = put(x, q, &p->trial);
    }
    if (q->status != FPA_OK)
        note_refused(x, index);
}

fpa_status module_problems_pose(const fpa_head *head, const fpa_facts *facts, fpa_module_problems **problems,
                                fpa_error *error)
{
    const locale_t before = locale_plain();
    examination *x = calloc(1, sizeof *x);
    *problems = x;
    if (x) {
        x->head = head;
        x->facts = facts;
        scratch_list_make(&x->scratch);
        parallel_run(ROWS, pose, x);
    }
    locale_restore(before);
    return x ? FPA_OK : fail_memory(error);
}

void module_problems_free(fpa_module_problems *problems)
{
    for (int i = 0; problems && i < ROWS; i++)
        if (problems->problems[i].posed)
            trial_free(&problems->problems[i].trial);
    if (problems)
        scratch_list_close(&problems->scratch);
    free(problems);
}

/* On a device all questions are answered in parallel, since most of the time is spent filling, copying and comparing memory. If memory
 * does not suffice for this, they are answered one after the other. On the CPU each question uses all threads. */
static void answer_all(examination *x)
{
    atomic_init(&x->refused, x->count);
    if (x->module->backend->memory)
        parallel_run(x->count, answer, x);
    else
        for (int i = 0; i < x->count; i++)
            answer(i, x);
    const int first = atomic_load(&x->refused);
    if (!x->module->backend->memory || first == x->count || x->questions[first].status != FPA_NO_MEMORY)
        return;
    atomic_store(&x->refused, x->count);
    for (int i = first; i < x->count; i++) {
        scratch_list_free(&x->scratch);
        answer(i, x);
    }
}

/* Results are added up in the order of the questions, so that they do not depend on which were answered in parallel. */
static fpa_status examine(examination *x, fpa_measure measures[FORMS], int *count, fpa_error *error)
{
    fpa_status status;
    parallel_run(ROWS, pose, x);
    status = list_questions(x, error);
    if (status == FPA_OK)
        answer_all(x);
    for (int i = 0; i < x->count && status == FPA_OK; i++) {
        const question *q = &x->questions[i];
        status = q->status;
        if (status != FPA_OK && error)
            *error = q->reason;
        measure_add(&measures[q->form], &q->measure);
        *count += i == 0 || x->questions[i - 1].row != q->row;
    }
    scratch_list_free(&x->scratch);
    free(x->questions);
    x->questions = NULL;
    blocks_free(&x->blocks);
    return status;
}

fpa_status verify_module_of(fpa_module_problems *problems, const fpa_module *module, fpa_verdict *verdict,
                            fpa_error *error)
{
    const fpa_head *head = problems->head;
    const fpa_facts *facts = problems->facts;
    fpa_measure measures[FORMS] = {0};
    const locale_t before = locale_plain();
    fpa_status status = FPA_OK;
    *verdict = (fpa_verdict){0};
    problems->module = module;
    if (!module->forward)
        status = fail(error, FPA_LOAD, head->name, "the module is one of gradients, not of a forward pass");
    else if (!(facts->forms & ((1 << FORMS) - 1)))
        status = fail(error, FPA_REFUSED, head->name, "the module has no form that could be checked");
    if (status == FPA_OK)
        status = examine(problems, measures, &verdict->problems, error);
    for (int form = 0; form < FORMS && status == FPA_OK; form++)
        if (facts->forms & 1 << form)
            status =
                verdict_conclude(head, (fpa_form_index)form, &measures[form], &verdict->form[form], error);
    if (status == FPA_OK)
        verdict_write(measures, verdict);
    locale_restore(before);
    return status;
}

fpa_status verify_module(const fpa_head *head, const fpa_facts *facts, const fpa_module *module,
                         fpa_verdict *verdict, fpa_error *error)
{
    fpa_module_problems *problems;
    fpa_status status = module_problems_pose(head, facts, &problems, error);
    if (status == FPA_OK)
        status = verify_module_of(problems, module, verdict, error);
    module_problems_free(problems);
    return status;
}
