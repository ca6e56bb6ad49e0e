/* Emitted CUDA kernels of sm_90a on the CPU, launched by the library's own code: what they compute, and that
 * they end. */
#include "gen/gen.h"
#include "base/parallel.h"
#include "runtime/verify/check.h"
#include "emulate/faults.h"
#include "emulate/module.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { SEED = 20260722 };

/* ---- heads ---- */

static const char spec[] =
    "local function some(rows, d, seed) return dense(orthogonal { rows = rows, d = d, seed = seed }) end\n"
    "local function h(name, x)\n"
    "  x.name, x.d, x.dv, x.dtype = name, x.d or 32, x.dv or 16, x.dtype or 'bf16'\n"
    "  x.chunk, x.terms = x.chunk or 64, x.terms or tspow { d = 32, degree = 2, block = 8 }\n"
    "  return head(x)\n"
    "end\n"
    "return {\n"
    "  h('plain', {}),\n"
    "  h('normal', { normalize = 'sum' }),\n"
    "  h('gated', { gate = true }),\n"
    "  h('gatednorm', { gate = true, normalize = 'one_plus_sum', scale = 1 / 4 }),\n"
    "  h('half', { dtype = 'f16', state_dtype = 'f16', scale = 1 / 4, normalize = 'max' }),\n"
    "  h('open', { causal = false, normalize = 'sum' }),\n"
    "  h('paired', { terms = { term { some(24, 32, 1), some(24, 32, 2) } }, gate = true }),\n"
    "  h('learned', { terms = { term { trainable { name = 'w', rows = 13 }, some(24, 32, 3) }, "
    "term { trainable { name = 'g', diagonal = true }, trainable { name = 'w', rows = 13 }, weight = 3 } } "
    "}),\n"
    "  h('cubic', { d = 16, dv = 24, terms = tspow { d = 16, degree = 3, block = 8 } }),\n"
    "  h('wide', { d = 192, terms = { term { some(8, 192, 1), some(184, 192, 2) }, term { some(8, 192, 3), "
    "some(184, 192, 4) } } }),\n"
    "  h('blocks', { d = 48, dv = 64, terms = tspow { d = 48, degree = 2, block = 8 } }),\n"
    "  h('shared', { dv = 64, gate = true, scale = 1 / 4, state_dtype = 'bf16' }),\n"
    "  h('sharednorm', { dv = 40, normalize = 'sum' }),\n"
    "  h('few', { d = 16, dv = 64, scale = 1 / 4, normalize = 'sum', terms = taylor { degree = 2 } }),\n"
    "  h('fewgated', { dv = 40, gate = true, normalize = 'max', terms = term { some(12, 32, 1), some(16, 32, "
    "2) } }),\n"
    "  h('fewhalf', { d = 24, dv = 20, dtype = 'f16', state_dtype = 'f16', scale = 1 / 4, normalize = "
    "'one_plus_sum', gate = true,\n"
    "    terms = { term { select(range(1, 8)), some(9, 24, 1), weight = 3 }, term { some(9, 24, 1) }, term "
    "{} } }),\n"
    "  h('fewtwice', { d = 16, dv = 128, scale = 1 / 4, terms = taylor { degree = 2 } }),\n"
    "  h('fewodd', { d = 16, dv = 80, normalize = 'sum', terms = taylor { degree = 2 } }),\n"
    "  h('fewwide', { d = 64, dv = 64, terms = term { some(16, 64, 1), some(32, 64, 2) } }),\n"
    "  h('fewcubic', { d = 48, dv = 64, terms = term { some(8, 48, 1), some(8, 48, 2), some(8, 48, 3) } }),\n"
    "  h('fewtrained', { d = 24, terms = { term { trainable { name = 'a', rows = 10 }, trainable { name = "
    "'b', "
    "rows = 9, shared = true } }, term { trainable { name = 'g', diagonal = true } } } }),\n"
    "  h('linear', { terms = linear {}, gate = true, normalize = 'sum' }),\n"
    "  h('thin', { terms = linear {}, state_dtype = 'bf16', scale = 1 / 4 }),\n"
    "  h('relayed', { dv = 64, terms = linear {}, gate = true, normalize = 'sum', scale = 1 / 4 }),\n"
    "  h('weighted', { d = 48, dv = 64, terms = linear { weight = 3 }, gate = true }),\n"
    "  h('relayeddeep', { d = 112, dv = 64, terms = linear {}, gate = true, normalize = 'sum', scale = 1 / 8 "
    "}),\n"
    "  h('deep', { d = 256, dv = 64, terms = linear {}, gate = true, normalize = 'sum', scale = 1 / 16 }),\n"
    "  h('deeper', { d = 176, dv = 80, dtype = 'f16', terms = linear {}, scale = 1 / 8 }),\n"
    "  h('rotated', { d = 128, dv = 128, terms = term { some(64, 128, 1) } }),\n"
    "  h('relayedwide', { d = 72, dv = 128, dtype = 'f16', state_dtype = 'f16', terms = linear {} }),\n"
    "}\n";

/* ---- calls ---- */

/* Lengths are times * chunk + more. */
typedef struct call {
    int times, more;
    int batch, heads, query_heads;
    fpa_layout layout;
    int checks;
    int multiprocessors; /* 1: kernels of large calls, several items a block; many: segments */
    bool threads;        /* fetch, not the copy engine */
    int cluster;         /* blocks of a sequence that take turns; 0: none do */
} call;

static const call calls[] = {
    {0, 1, 2, 1, 2, LAYOUT_PADDED, CHECK_RESUME, 132, false, 0},
    {0, 1, 1, 2, 2, LAYOUT_PLAIN, CHECK_RESUME | CHECK_REPEAT, 132, false, 0}, /* a cluster a head */
    {0, 1, 1, 1, 9, LAYOUT_HEAD_MAJOR, 0, 132, false, 0},     /* in three passes over the state */
    {0, 3, 1, 2, 2, LAYOUT_PLAIN, CHECK_RESUME, 6, false, 0}, /* one token after the other, with a state */
    {0, 63, 1, 1, 1, LAYOUT_HEAD_MAJOR, 0, 1, false, 0},
    {0, 64, 1, 1, 1, LAYOUT_PLAIN, 0, 4, false, 0},
    {0, 65, 1, 2, 4, LAYOUT_PLAIN, CHECK_FUTURE | CHECK_RESUME, 132, false, 0},
    {0, 5, 1, 4, 4, LAYOUT_PLAIN, CHECK_RESUME, 1, false, 0}, /* one block a head in the recurrent form */
    {1, -1, 1, 1, 1, LAYOUT_PADDED, 0, 132, false, 0},
    {1, 0, 1, 1, 1, LAYOUT_PLAIN, CHECK_REPEAT, 1, false, 0},
    {1, 1, 1, 1, 2, LAYOUT_PLAIN, CHECK_RESUME, 132, false, 0},
    {3, 7, 1, 1, 1, LAYOUT_PLAIN, 0, 132, false, 0}, /* LONG_CALL: by segments */
    {3, 7, 1, 1, 1, LAYOUT_PLAIN, 0, 1, false, 0},   /* and by one */
    {5, 70, 1, 1, 1, LAYOUT_PLAIN, 0, 2, false, 0},  /* by fewer, of several panels each */
    {4, 100, 1, 1, 1, LAYOUT_PLAIN, 0, 1, false, 0}, /* rings are gone round several times */
    {18, 20, 1, 1, 1, LAYOUT_PLAIN, 0, 4, false, 0}, /* TOTALS_CALL: in totals, too */
    {3, 9, 1, 2, 4, LAYOUT_PADDED, CHECK_RESUME, 1, false, 0},
    {3, 7, 1, 1, 1, LAYOUT_PLAIN, 0, 1, true, 0}, /* THREADS_CALL */
    {4, 100, 1, 2, 2, LAYOUT_PLAIN, 0, 1, true, 0},
    {0, 1, 1, 2, 2, LAYOUT_PLAIN, CHECK_RESUME, 132, false, 3}, /* CLUSTER_CALL */
    {0, 128, 1, 2, 4, LAYOUT_HEAD_MAJOR, CHECK_RESUME, 132, false, 2},
    {5, 70, 2, 1, 1, LAYOUT_PLAIN, CHECK_FUTURE | CHECK_RESUME, 132, false, 2},
    {30, 9, 1, 1, 2, LAYOUT_PLAIN, CHECK_REPEAT, 132, false, 3},
    {9, 1, 1, 1, 1, LAYOUT_PADDED, CHECK_RESUME, 132, false, 8},
};

enum {
    CALLS = sizeof calls / sizeof *calls,
    TOKEN_CALL = 1,
    LONG_CALL = 11,
    TOTALS_CALL = 15,
    THREADS_CALL = 17,
    CLUSTER_CALL = 19,
    MOST_HEADS = 32
};

static fpa_shape shape_of(const call *c, const fpa_head *head, const fpa_facts *facts)
{
    const bool positive = head->normalize != FPA_NORMALIZE_NONE;
    return (fpa_shape){.batch = c->batch,
                       .length = (int64_t)c->times * facts->chunk + c->more,
                       .heads = c->heads,
                       .query_heads = c->query_heads,
                       .layout = c->layout,
                       .inputs = positive ? INPUTS_POSITIVE : INPUTS_DENSE,
                       .checks = c->checks};
}

/* Token by token takes long, and so do all pairs. */
static bool is_wanted(const fpa_facts *facts, int form, int64_t length)
{
    static const int64_t most[FORMS] = {
        [FORM_PARALLEL] = 1000, [FORM_CHUNKED] = INT64_MAX, [FORM_RECURRENT] = 63};
    return facts->forms & 1 << form && length <= most[form] &&
           (form != FORM_RECURRENT || facts->features < 1000);
}

/* In every form: matrix instructions, then copies are as late as they may be. */
static fpa_status check_call(emulated_module *emulated, const fpa_head *head, const fpa_facts *facts,
                             const call *c, fpa_error *error)
{
    static const int late[] = {LATE_PRODUCTS, LATE_COPIES};
    fpa_trial trial = {0};
    fpa_status status = trial_make(&trial, head, facts, shape_of(c, head, facts), SEED, error);
    emulated->cuda.multiprocessors = c->multiprocessors;
    emulated->cuda.schedule = c->cluster                ? SCHEDULE_CLUSTER
                              : c->multiprocessors == 1 ? SCHEDULE_CROWDED
                                                        : SCHEDULE_BY_SIZE;
    for (int blocks = 2; blocks <= MOST_CLUSTER; blocks++)
        emulated->cuda.cluster_counts[blocks] = blocks == c->cluster;
    emulated_copies_boxes(emulated, !c->threads);
    for (int i = 0; i < 2; i++)
        for (int form = 0; form < FORMS && !status; form++) {
            fpa_measure measure = {0};
            emulated->late = late[i];
            if (is_wanted(facts, form, trial.shape.length))
                status = check_trial(&trial, &emulated->module, (fpa_form_index)form, &measure, error);
        }
    trial_free(&trial);
    return status;
}

/* ---- the test ---- */

struct fixture {
    bool ready;
    char folder[64];
    fpa_head_list list;
    fpa_source source[MOST_HEADS];
};

typedef struct job {
    const struct fixture *fixture;
    const fpa_head *head;
    const fpa_facts *facts;
    const char *code; /* of the head, or a fault in it */
    int first, end;   /* calls */
    int number;
    bool brief; /* a fault is found in the first calls */
    fpa_status status;
    fpa_error error;
    double seconds[2];
} job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool concerns(const struct fpa_cuda_module *cuda, int index)
{
    return index == TOTALS_CALL ? cuda->kernel[CUDA_FUSED_CHUNK] != NULL
                                : !calls[index].cluster || cuda->kernel[CUDA_CLUSTER_SCAN];
}

static void run_job(int index, void *argument)
{
    job *j = &((job *)argument)[index];
    emulated_module emulated;
    char folder[96];
    snprintf(folder, sizeof folder, "%s/%d", j->fixture->folder, j->number);
    mkdir(folder, 0700);
    const double start = now();
    j->status = emulated_open(&emulated, j->code, j->facts->name, folder, j->brief, &j->error);
    j->seconds[0] = now() - start;
    for (int i = j->first; i < j->end && !j->status; i++)
        if (concerns(&emulated.cuda, i))
            j->status = check_call(&emulated, j->head, j->facts, &calls[i], &j->error);
    j->seconds[1] = now() - start - j->seconds[0];
    emulated_close(&emulated);
}

static int setup(void **state)
{
    static struct fixture f;
    fpa_error error;
    *state = &f;
    f.ready = emulated_possible();
    print_message("seed %d\n", SEED);
    if (!f.ready)
        print_message("g++ or tests/emulate is not here: the emitted kernels are not run\n");
    scratch_make(f.folder);
    fpa_status status = spec_load_text("emulated.lua", NULL, spec, sizeof spec - 1, &f.list, &error);
    for (int i = 0; i < f.list.count && !status; i++)
        status = source_generate(f.list.heads[i], "cuda:sm_90a", &f.source[i], &error);
    if (status)
        print_error("%s: %s\n", error.where, error.message);
    return status ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < f->list.count; i++)
        source_free(&f->source[i]);
    head_list_free(&f->list);
    scratch_remove(f->folder);
    return 0;
}

static void report(const job *j, const char *what)
{
    print_message("%-10s %-44s %4.1f + %4.1f s: %s\n", j->facts->name, what, j->seconds[0], j->seconds[1],
                  j->status ? j->error.message : "agrees with the formula");
}

static void emitted_kernels_compute_the_formula(void **state)
{
    const struct fixture *f = *state;
    static job jobs[MOST_HEADS];
    int wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < f->list.count; i++) {
        const fpa_facts *facts = &f->source[i].facts;
        const bool large = facts->features > 2000;
        jobs[i] = (job){.fixture = f,
                        .head = f->list.heads[i],
                        .facts = facts,
                        .code = f->source[i].code,
                        .number = i,
                        .first = large ? LONG_CALL : 0,
                        .end = large ? LONG_CALL + 4 : CALLS};
    }
    parallel_run(f->list.count, run_job, jobs);
    for (int i = 0; i < f->list.count; i++) {
        report(&jobs[i], "");
        wrong += jobs[i].status != FPA_OK;
    }
    assert_int_equal(wrong, 0);
}

/* ---- faults ---- */

enum { FAULTS = sizeof emulated_faults / sizeof *emulated_faults };

static int head_named(const struct fixture *f, const char *name)
{
    int i = 0;
    while (strcmp(f->list.heads[i]->name, name) != 0)
        i++;
    return i;
}

/* Long calls do all of it. What the compiler refuses was no fault. */
static void every_fault_in_an_emitted_kernel_is_found_in_its_words(void **state)
{
    const struct fixture *f = *state;
    static job jobs[FAULTS];
    int wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < FAULTS; i++) {
        const enum fault_place place = emulated_faults[i].place;
        static const char *const heads[] = {"gated", "gated",   "fewgated",    "fewgated",
                                            "few",   "relayed", "relayeddeep", "plain"};
        static const int firsts[] = {LONG_CALL, THREADS_CALL, LONG_CALL,    THREADS_CALL,
                                     LONG_CALL, CLUSTER_CALL, CLUSTER_CALL, TOKEN_CALL};
        const int head = head_named(f, heads[place]), first = firsts[place];
        jobs[i] = (job){.fixture = f,
                        .head = f->list.heads[head],
                        .facts = &f->source[head].facts,
                        .code = fault_make(&emulated_faults[i].fault, f->list.heads[head], "cuda:sm_90a"),
                        .number = MOST_HEADS + i,
                        .brief = true,
                        .first = first,
                        .end = first + (place >= IN_FUSED && place != IN_FUSED_BY_THREADS ? 5 : 2)};
    }
    parallel_run(FAULTS, run_job, jobs);
    for (int i = 0; i < FAULTS; i++) {
        wrong += !fault_refused(&emulated_faults[i].fault, jobs[i].facts->name, jobs[i].status,
                                jobs[i].error.message);
        free((char *)(uintptr_t)jobs[i].code);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_kernels_compute_the_formula),
        cmocka_unit_test(every_fault_in_an_emitted_kernel_is_found_in_its_words),
    };
    return cmocka_run_group_tests_name("cuda emulated", tests, setup, teardown);
}
