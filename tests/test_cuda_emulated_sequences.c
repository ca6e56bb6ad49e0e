/* Sequences of different lengths and states in pools on the CPU, against the formula; prompts in pieces against one pass: emitted kernels of sm_90a, then
 * portable ones.
 *
 * make test: a head of each kind, each in every third shape; make test-all: all of them. FPA_TEST_HEAD: one alone, by its name. */
#include "claims.h"
#include "dear.h"
#include "emulate/parts.h"
#include "emulate/trials.h"
#include "runtime/verify/ragged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "head/lift.h"
#include "machine/cuda_mechanism.h"
#include "scratch.h"

enum { SEED = 20261125, MOST_JOBS = EMULATED_MOST_HEADS, CHUNKS = 5 /* of a prompt in pieces */ };

static const char *const targets[] = {"cuda:sm_90a", "cuda:sm_80"};

/* What make test runs of each: vectors as they lie and packed ones, gates, no mask, fused kernels of both kinds,
 * coordinates, a window, passes that make their coordinates, beside clusters that do not and that do. */
enum { FIXED = 9 };
static const char *const fixed[][FIXED] = {
    {"shared", "openlinear", "paired", "few", "clustered", "favor", "nearlifted", "liftedpass",
     "clusteredwaves"},
    {"gatednorm", "openrows", "openlinear", "lonely", "lonely", "lonely", "lonely", "lonely", "lonely"},
};

/* Lengths in chunks and more tokens; by few multiprocessors sequences are walked whole, by many in segments. clusters: of `blocks`
 * each, between which sequences are dealt: by one, or by so many that some are cut, or that some have nothing, or whole ones in turn; where threads
 * fetch, a fused pass takes their place. */
static const struct {
    int times, more, batch, heads, query_heads, multiprocessors;
    bool threads;    /* fetch, not the copy engine */
    bool overlapped; /* queries beside the walk, where kernels can */
    int blocks, clusters;
    bool whole; /* sequences go to one cluster each */
} shapes[] = {
    {0, 7, 2, 2, 4, 132, false, false, 0, 0, false},  {3, 9, 2, 1, 2, 132, false, false, 0, 0, false},
    {2, 70, 2, 1, 1, 1, false, false, 0, 0, false},   {3, 5, 1, 2, 2, 132, true, false, 0, 0, false},
    {3, 11, 2, 2, 2, 3, false, true, 0, 0, false},    {7, 9, 2, 1, 2, 132, false, false, 3, 1, false},
    {23, 9, 2, 1, 2, 132, false, false, 3, 3, false}, {5, 70, 3, 2, 2, 132, false, false, 2, 2, false},
    {0, 1, 2, 1, 1, 132, false, false, 2, 8, false},  {3, 9, 2, 1, 2, 132, true, false, 3, 4, false},
    {9, 9, 3, 1, 2, 132, false, false, 3, 5, true},
};

typedef struct job {
    const emulated_fixture *fixture;
    const fpa_head *head;
    fpa_source source;
    int target, number; /* see targets; among its jobs */
    fpa_status status;
    fpa_error error;
    uint64_t launched;       /* kernels */
    unsigned made;           /* bit i: shapes[i] */
    bool in_pieces, differs; /* pieces of whole chunks were compared with one pass, their bits differ */
} job;

static unsigned made[2]; /* of all jobs of a target */

/* As few blocks walk as can. */
static bool choose_overlapped(const void *choice, const fpa_module *module, const fpa_call_size *size,
                              fpa_candidate *candidate)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    *candidate = (fpa_candidate){.mechanism = "split",
                                 .segments = 1,
                                 .blocks = (int64_t)g->chunk_state_slices * g->column_blocks,
                                 .variant = SPLIT_OVERLAPPED};
    return size->form != FORM_RECURRENT && size->query_heads > 0 && !cuda_refusal(g, size, candidate);
}

static bool choose_clusters(const void *choice, const fpa_module *module, const fpa_call_size *size,
                            fpa_candidate *candidate)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const int number = *(const int *)choice, blocks = shapes[number].blocks;
    *candidate = (fpa_candidate){.mechanism = "cluster_scan", .segments = blocks};
    if (shapes[number].whole) {
        candidate->blocks = (int64_t)blocks * shapes[number].clusters;
        candidate->variant = SCAN_WHOLE;
    }
    return size->form != FORM_RECURRENT && !cuda_refusal(&cuda->geometry, size, candidate);
}

static fpa_status check_form(emulated_module *emulated, const job *j, fpa_trial *t, fpa_form_index form,
                             fpa_error *error)
{
    fpa_measure measure = {0};
    if (!(j->source.facts.forms & 1 << form) || (form == FORM_RECURRENT && t->shape.length > 16))
        return FPA_OK;
    fpa_check c = {t, &emulated->module, form, "", &measure, error, FPA_OK};
    check_ragged(&c);
    return c.status;
}

/* What is dealt to clusters is the chunked form alone; all pairs of long sequences are of make test-all. */
static fpa_status check_shape(emulated_module *emulated, const job *j, int number, fpa_error *error)
{
    const int heads = lift_heads(j->head) ? lift_heads(j->head) : shapes[number].heads;
    const fpa_shape shape = {
        .batch = shapes[number].batch,
        .length = (int64_t)shapes[number].times * j->source.facts.chunk + shapes[number].more,
        .heads = heads,
        .query_heads = heads * (shapes[number].query_heads / shapes[number].heads),
        .layout = shapes[number].overlapped             ? LAYOUT_PIECES
                  : number % 2 || shapes[number].blocks ? LAYOUT_PLAIN
                                                        : LAYOUT_PADDED,
        .inputs = j->head->normalize == FPA_NORMALIZE_NONE ? INPUTS_DENSE : INPUTS_POSITIVE};
    fpa_trial trial = {0};
    fpa_status status = trial_make(&trial, j->head, &j->source.facts, shape, SEED, error);
    trial.choose = shapes[number].overlapped ? choose_overlapped
                   : shapes[number].blocks   ? choose_clusters
                                             : NULL;
    trial.choice = &number;
    emulated->cuda.room.cluster_counts[shapes[number].blocks] = shapes[number].clusters;
    emulated->cuda.room.multiprocessors = shapes[number].multiprocessors;
    emulated_copies_boxes(emulated, !shapes[number].threads);
    for (int form = 0; form < FORMS && !status; form++)
        if (dear_tests() || form != FORM_PARALLEL || !shapes[number].blocks)
            status = check_form(emulated, j, &trial, (fpa_form_index)form, error);
    trial_free(&trial);
    return status;
}

/* ---- a prompt in pieces of whole chunks ---- */

/* In one piece, each chunk from the state that the one before has left. */
static bool choose_whole(const void *choice, const fpa_module *module, const fpa_call_size *size,
                         fpa_candidate *candidate)
{
    const struct fpa_cuda_module *cuda = module->handle;
    *candidate = (fpa_candidate){.mechanism = "split", .segments = 1};
    if (cuda_refusal(&cuda->geometry, size, candidate))
        *candidate = (fpa_candidate){.mechanism = "fused_chunk", .segments = 1};
    return !cuda_refusal(&cuda->geometry, size, candidate);
}

/* o and final states, of one pass and of pieces. */
typedef struct passes {
    fpa_field o[2], state[2];
} passes;

static fpa_status run_passes(const emulated_module *emulated, fpa_trial *t, passes *x, fpa_error *error)
{
    static const int ends[] = {1, 3, CHUNKS};
    const int64_t chunk = t->shape.length / CHUNKS;
    fpa_measure measure = {0};
    fpa_check c = {t, &emulated->module, FORM_CHUNKED, "", &measure, error, FPA_OK};
    for (int i = 0; i < 2; i++) {
        check_make_output(&c, &x->o[i]);
        check_make_states(&c, LAYOUT_PADDED, t->shape.batch, &x->state[i]);
    }
    check_run(&c, (fpa_run){.to = t->shape.length, .o = &x->o[0], .state_out = &x->state[0]});
    for (int i = 0; i < 3; i++)
        check_run(&c, (fpa_run){.from = i ? ends[i - 1] * chunk : 0,
                                .to = ends[i] * chunk,
                                .o = &x->o[1],
                                .state_in = i ? &x->state[1] : NULL,
                                .state_out = &x->state[1]});
    return c.status;
}

/* Of the heads that make test runs: their states are in fp32, and features' weights, by which the hand-over multiplies and divides, powers of two. */
static bool hands_over_exactly(const job *j)
{
    return j->head->causal && j->source.facts.forms >> FORM_CHUNKED & 1 && j->head->state_dtype == FPA_F32 &&
           is_one_of(fixed[j->target], FIXED, j->head->name);
}

static fpa_status check_pieces(const emulated_module *emulated, job *j, fpa_error *error)
{
    const fpa_shape shape = {.batch = dear_tests() ? 2 : 1,
                             .length = (int64_t)CHUNKS * j->source.facts.chunk,
                             .heads = 1,
                             .query_heads = 2,
                             .inputs =
                                 j->head->normalize == FPA_NORMALIZE_NONE ? INPUTS_DENSE : INPUTS_POSITIVE};
    fpa_trial trial = {0};
    passes x = {0};
    fpa_status status = trial_make(&trial, j->head, &j->source.facts, shape, SEED, error);
    trial.choose = choose_whole;
    if (!status)
        status = run_passes(emulated, &trial, &x, error);
    j->in_pieces = !status;
    j->differs = !status && !(field_equal(&x.o[0], &x.o[1], 0, shape.length) &&
                              field_equal(&x.state[0], &x.state[1], 0, 1));
    for (int i = 0; i < 2; i++) {
        field_free(&x.o[i]);
        field_free(&x.state[i]);
    }
    trial_free(&trial);
    return status;
}

/* Of the shapes dealt to clusters short ones, in which some have nothing, are always made; of the long ones, in which some
 * begin amid a sequence or have whole ones, each head makes one. */
static bool is_made(const emulated_module *emulated, const job *j, int number)
{
    enum { LONG = 8 };
    if (!shapes[number].blocks)
        return dear_tests() || (number + j->target + j->number) % 3 == 0;
    const bool its = shapes[number].times < LONG || shapes[number].whole == (j->number % 3 == 2);
    return emulated->cuda.kernel[CUDA_SEQUENCE_SCAN] &&
           (dear_tests() || (shapes[number].clusters > 2 && its));
}

static void run_job(int index, void *argument)
{
    job *j = &((job *)argument)[index];
    emulated_module emulated;
    char folder[128];
    snprintf(folder, sizeof folder, "%s/sequences%d_%d", j->fixture->folder, j->target, j->number);
    mkdir(folder, 0700);
    j->status = emulated_open(&emulated, j->source.code, NULL, j->source.facts.name, folder, &j->error);
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes) && !j->status; i++)
        if (is_made(&emulated, j, i)) {
            j->status = check_shape(&emulated, j, i, &j->error);
            j->made |= 1u << i;
        }
    emulated_copies_boxes(&emulated, true);
    if (!j->status && hands_over_exactly(j))
        j->status = check_pieces(&emulated, j, &j->error);
    j->launched = emulated.launched;
    emulated_close(&emulated);
}

static bool is_wanted(const fpa_head *head, int target)
{
    const char *only = getenv("FPA_TEST_HEAD");
    if (only)
        return strcmp(head->name, only) == 0;
    return dear_tests() || is_one_of(fixed[target], FIXED, head->name);
}

static void check_target(const emulated_fixture *f, int target)
{
    static job jobs[MOST_JOBS];
    int count = 0, wrong = 0, in_pieces = 0;
    uint64_t launched = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < f->list.count; i++) {
        job *j = &jobs[count];
        if (!is_wanted(f->list.heads[i], target))
            continue;
        *j = (job){.fixture = f, .head = f->list.heads[i], .target = target, .number = count};
        assert_ok(source_generate_as(j->head, targets[target], target ? NULL : emulated_mechanism(j->head),
                                     &j->source, &j->error),
                  &j->error);
        count++;
    }
    assert_true(count > 0);
    parallel_run(count, run_job, jobs);
    for (int i = 0; i < count; i++) {
        print_message("%-11s %s: %s\n", jobs[i].head->name, targets[target],
                      jobs[i].status ? jobs[i].error.message : "agrees with the formula");
        if (jobs[i].differs)
            print_message("%-11s %s: pieces of whole chunks have other bits than one pass\n",
                          jobs[i].head->name, targets[target]);
        wrong += jobs[i].status != FPA_OK || jobs[i].differs;
        in_pieces += jobs[i].in_pieces;
        launched |= jobs[i].launched;
        made[target] |= jobs[i].made;
        source_free(&jobs[i].source);
    }
    assert_int_equal(wrong, 0);
    assert_true(in_pieces > 0 || getenv("FPA_TEST_HEAD"));
    assert_true(target || getenv("FPA_TEST_HEAD") || launched >> CUDA_SEQUENCE_SCAN & 1);
}

static void sequences_of_different_lengths_are_those_of_the_formula(void **state)
{
    check_target(*state, 0);
}

static void so_are_those_of_portable_kernels(void **state)
{
    check_target(*state, 1);
}

/* By one head or another, for either target; of those that are dealt to clusters, those that always are. */
static void every_shape_is_made_by_some_head(void **state)
{
    const emulated_fixture *f = *state;
    if (!f->ready || getenv("FPA_TEST_HEAD"))
        skip();
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
        for (int target = 0; target < 2; target++) {
            const bool wanted =
                !shapes[i].blocks || (target == 0 && (dear_tests() || shapes[i].clusters > 2));
            if (wanted && !(made[target] >> i & 1))
                fail_msg("no head for %s has shape %d", targets[target], i);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_of_different_lengths_are_those_of_the_formula),
        cmocka_unit_test(so_are_those_of_portable_kernels),
        cmocka_unit_test(every_shape_is_made_by_some_head),
    };
    return cmocka_run_group_tests_name("cuda emulated sequences", tests, emulated_setup, emulated_teardown);
}
