/* Drafts on the CPU, against the formula: emitted kernels of sm_90a, then portable ones.
 *
 * make test: a head of each kind; make test-all: all of them. FPA_TEST_HEAD: one alone, by its name. */
#include "claims.h"
#include "dear.h"
#include "emulate/parts.h"
#include "emulate/trials.h"
#include "faults_cuda.h"
#include "runtime/verify/draft.h"
#include "runtime/verify/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parallel.h"
#include "scratch.h"

enum { SEED = 20261126, MOST_JOBS = EMULATED_MOST_HEADS };

static const char *const targets[] = {"cuda:sm_90a", "cuda:sm_80"};

/* What make test runs of each: gates and a normaliser, 16 bits, weights on the key side. */
enum { FIXED = 2 };
static const char *const fixed[][FIXED] = {{"fewhalf", "learned"}, {"gatednorm", "fewpadded"}};

/* One pass over the state and several, accepted tokens in one four and in several; few blocks a head and many. */
static const struct {
    int64_t length, batch, heads, query_heads;
    int multiprocessors;
} shapes[] = {{5, 2, 2, 2, 1}, {40, 2, 2, 6, 1}, {29, 1, 1, 2, 132}, {23, 3, 1, 1, 132}};

typedef struct job {
    const struct fault *fault; /* NULL: as emitted */
    const emulated_fixture *fixture;
    const fpa_head *head;
    fpa_source source;
    int number;
    fpa_status status;
    fpa_error error;
} job;

/* The first row of o before a token that is not as it was, or FPA_OK. */
static fpa_status compare_before(const fpa_field *before, const fpa_field *after, int64_t token,
                                 fpa_error *error)
{
    for (int64_t b = 0; b < after->batch; b++)
        for (int64_t at = 0; at < token; at++)
            for (int64_t h = 0; h < after->heads; h++)
                if (memcmp(field_at(before, b, at, h, 0), field_at(after, b, at, h, 0),
                           (size_t)after->entries * dtype_size(after->dtype)) != 0)
                    return (fail)(error, FPA_REFUSED, "drafts", "token %lld changes o[%lld]",
                                  (long long)token, (long long)at);
    return FPA_OK;
}

/* The last token of a draft, of which no number is one, changes no bit of the outputs before it. */
static void check_no_future(fpa_check *c)
{
    fpa_trial *t = c->trial;
    const int64_t length = t->shape.length < 17 ? t->shape.length - 1 : 16;
    const fpa_draft_trial draft = {0};
    fpa_field *const spoilt[] = {&t->q_field, &t->k_field, &t->v_field, &t->gate_field};
    fpa_field before, after, state;
    fpa_run run = {.from = 1, .to = 1 + length, .o = &before, .state_in = &state, .draft = &draft};
    check_make_output(c, &before);
    check_make_output(c, &after);
    check_make_states(c, LAYOUT_PLAIN, t->shape.batch, &state);
    check_run(c, (fpa_run){.to = 1, .state_out = &state});
    check_run(c, run);
    for (int i = 0; i < 4; i++)
        for (int64_t b = 0; b < spoilt[i]->batch; b++)
            for (int64_t h = 0; h < spoilt[i]->heads; h++)
                for (int64_t e = 0; e < spoilt[i]->entries; e++)
                    field_put(spoilt[i], b, length, h, e, NAN);
    run.o = &after;
    check_run(c, run);
    trial_restore(t);
    if (!c->status)
        c->status = compare_before(&before, &after, length, c->error);
    field_free(&before);
    field_free(&after);
    field_free(&state);
}

static fpa_status check_shape(emulated_module *emulated, const job *j, int number, fpa_error *error)
{
    const fpa_shape shape = {.batch = shapes[number].batch,
                             .length = shapes[number].length,
                             .heads = shapes[number].heads,
                             .query_heads = shapes[number].query_heads,
                             .layout = number % 2 ? LAYOUT_PLAIN : LAYOUT_PADDED,
                             .inputs =
                                 j->head->normalize == FPA_NORMALIZE_NONE ? INPUTS_DENSE : INPUTS_POSITIVE};
    fpa_measure measure = {0};
    fpa_trial trial = {0};
    fpa_check c = {&trial, &emulated->module, FORM_RECURRENT, "", &measure, error, FPA_OK};
    c.status = trial_make(&trial, j->head, &j->source.facts, shape, SEED, error);
    emulated->cuda.room.multiprocessors = shapes[number].multiprocessors;
    if (!c.status)
        check_draft(&c);
    if (!c.status)
        check_no_future(&c);
    trial_free(&trial);
    return c.status;
}

static void run_job(int index, void *argument)
{
    job *j = &((job *)argument)[index];
    emulated_module emulated;
    char folder[128];
    snprintf(folder, sizeof folder, "%s/draft%d", j->fixture->folder, j->number);
    mkdir(folder, 0700);
    j->status = emulated_open(&emulated, j->source.code, NULL, j->source.facts.name, folder, &j->error);
    if (!j->status && !emulated.module.draft)
        j->status = (fail)(&j->error, FPA_LOAD, j->head->name, "has no kernel for drafts");
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes) && !j->status; i++)
        j->status = check_shape(&emulated, j, i, &j->error);
    emulated_close(&emulated);
}

static bool is_wanted(const fpa_head *head, int target)
{
    const char *only = getenv("FPA_TEST_HEAD");
    if (!head->causal || head->window || head->lift)
        return false;
    if (only)
        return strcmp(head->name, only) == 0;
    return dear_tests() || is_one_of(fixed[target], FIXED, head->name);
}

static void check_target(const emulated_fixture *f, int target)
{
    static job jobs[MOST_JOBS];
    int count = 0, wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < f->list.count; i++) {
        job *j = &jobs[count];
        if (!is_wanted(f->list.heads[i], target))
            continue;
        *j = (job){.fixture = f, .head = f->list.heads[i], .number = MOST_JOBS * target + count};
        assert_ok(source_generate(j->head, targets[target], &j->source, &j->error), &j->error);
        count++;
    }
    assert_true(count > 0);
    parallel_run(count, run_job, jobs);
    for (int i = 0; i < count; i++) {
        print_message("%-11s %s: %s\n", jobs[i].head->name, targets[target],
                      jobs[i].status ? jobs[i].error.message : "agrees with the formula");
        wrong += jobs[i].status != FPA_OK;
        source_free(&jobs[i].source);
    }
    assert_int_equal(wrong, 0);
}

static void drafts_are_those_of_the_formula(void **state)
{
    check_target(*state, 0);
}

static void so_are_those_of_portable_kernels(void **state)
{
    check_target(*state, 1);
}

/* ---- mistakes ---- */

/* Of faults_cuda.h, which GPUs meet: those of drafts. make test: one; make test-all: all. */
static void mistakes_are_found(void **state)
{
    enum { FAULTS = sizeof cuda_faults / sizeof *cuda_faults };
    static job jobs[FAULTS];
    const emulated_fixture *f = *state;
    int count = 0, wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < FAULTS && (count == 0 || dear_tests()); i++) {
        job *j = &jobs[count];
        if (strcmp(cuda_faults[i].says, SAYS_DRAFT) != 0)
            continue;
        *j = (job){.fixture = f,
                   .head = f->list.heads[emulated_head_named(f, "gatednorm")],
                   .number = 2 * MOST_JOBS + count};
        j->fault = &cuda_faults[i];
        assert_ok(source_generate(j->head, targets[0], &j->source, &j->error), &j->error);
        free(j->source.code);
        j->source.code = fault_make(j->fault, j->head, targets[0]);
        count++;
    }
    assert_true(count > 0);
    parallel_run(count, run_job, jobs);
    for (int i = 0; i < count; i++) {
        wrong += !fault_refused(jobs[i].fault, jobs[i].head->name, jobs[i].status, jobs[i].error.message);
        source_free(&jobs[i].source);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drafts_are_those_of_the_formula),
        cmocka_unit_test(so_are_those_of_portable_kernels),
        cmocka_unit_test(mistakes_are_found),
    };
    return cmocka_run_group_tests_name("cuda emulated drafts", tests, emulated_setup, emulated_teardown);
}
