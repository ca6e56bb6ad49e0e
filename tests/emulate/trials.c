#include "trials.h"

#include "../claims.h"
#include "../dear.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "head/lift.h"
#include "machine/cuda_mechanism.h"
#include "runtime/verify/walk.h"
#include "../scratch.h"

#include <stdio.h>
#include <string.h>

enum { SEED = 20260722 };

/* ---- calls ---- */

/* Multiprocessors beside whose walks there are queries, and of which more begin with a walk than go on with the next one. */
enum { FEW = 3 };

static const emulated_call calls[EMULATED_CALLS] = {
    {0, 1, 2, 1, 2, LAYOUT_PADDED, CHECK_RESUME, 132, false, 0, 0, 0},
    {0, 1, 1, 2, 2, LAYOUT_PLAIN, CHECK_RESUME | CHECK_REPEAT, 132, false, 0, 0, 0}, /* a cluster a head */
    {0, 1, 1, 1, 9, LAYOUT_HEAD_MAJOR, 0, 132, false, 0, 0, 0}, /* in three passes over the state */
    {0, 3, 1, 2, 2, LAYOUT_PLAIN, CHECK_RESUME, 6, false, 0, 0,
     0}, /* one token after the other, with a state */
    {0, 63, 1, 1, 1, LAYOUT_HEAD_MAJOR, 0, 1, false, 0, 0, 0},
    {0, 64, 1, 1, 1, LAYOUT_PLAIN, 0, 4, false, 0, 0, 0},
    {0, 65, 1, 2, 4, LAYOUT_PLAIN, CHECK_FUTURE | CHECK_RESUME, 132, false, 0, 0, 0},
    {0, 5, 1, 4, 4, LAYOUT_PLAIN, CHECK_RESUME, 1, false, 0, 0,
     0}, /* one block a head in the recurrent form */
    {0, 11, 1, 2, 4, LAYOUT_PADDED, CHECK_RECENT, 132, false, 0, 0,
     0}, /* with recent tokens beside the state */
    {1, -1, 1, 3, 3, LAYOUT_PIECES, CHECK_FUTURE, 132, false, 0, 0, 0}, /* rows that lean */
    {1, 0, 1, 1, 1, LAYOUT_PLAIN, CHECK_REPEAT, 1, false, 0, 0, 0},
    {1, 1, 1, 1, 2, LAYOUT_PLAIN, CHECK_RESUME, 132, false, 0, 0, 0},
    {3, 7, 1, 1, 1, LAYOUT_PLAIN, CHECK_FUTURE, 132, false, 0, 0, 0}, /* LONG_CALL: by segments */
    {3, 7, 1, 2, 2, LAYOUT_PIECES, 0, 1, false, 0, 0, 0},             /* and by one */
    {5, 70, 1, 1, 1, LAYOUT_PLAIN, 0, 2, false, 0, 0, 0},             /* by fewer, of several panels each */
    {4, 100, 1, 1, 1, LAYOUT_PLAIN, CHECK_FUTURE, 1, false, 0, 0,
     0}, /* rings are gone round several times; STRONG_CALL: by strong gates */
    {18, 20, 1, 1, 1, LAYOUT_PLAIN, 0, 4, false, 0, 0, 0}, /* TOTALS_CALL: in totals, too */
    {4, 70, 1, 1, 2, LAYOUT_PLAIN, CHECK_RESUME, 132, false, SEGMENTS_AHEAD, 0, 0},    /* AHEAD_CALL */
    {1, 63, 2, 3, 6, LAYOUT_PADDED, CHECK_RESUME | CHECK_REPEAT, FEW, false, 0, 0, 0}, /* ROUNDS_CALL */
    {3, 7, 1, 1, 1, LAYOUT_PLAIN, 0, 1, true, 0, 0, 0},                                /* THREADS_CALL */
    {4, 100, 1, 2, 2, LAYOUT_PLAIN, 0, 1, true, 0, 0, 0},
    {0, 1, 1, 2, 2, LAYOUT_PLAIN, CHECK_RESUME, 132, false, 3, 0, -1}, /* CLUSTER_CALL */
    {0, 128, 1, 2, 4, LAYOUT_HEAD_MAJOR, CHECK_RESUME, 132, false, 2, 0, -1},
    {5, 70, 2, 1, 1, LAYOUT_PLAIN, CHECK_FUTURE | CHECK_RESUME, 132, false, 2, 0, -1},
    {30, 9, 1, 1, 2, LAYOUT_PLAIN, CHECK_REPEAT, 132, false, 3, 0, 0},
    {9, 1, 1, 1, 1, LAYOUT_PADDED, CHECK_RESUME, 132, false, 8, 0, 0},
    {5, 70, 2, 2, 2, LAYOUT_PLAIN, CHECK_FUTURE | CHECK_RESUME, 132, false, 2, 0, 3},  /* SHARED_CALL */
    {0, -1, 1, 2, 4, LAYOUT_PADDED, CHECK_RESUME | CHECK_RECENT, 132, false, 0, 1, 0}, /* WINDOW_CALL */
    {0, 0, 1, 1, 1, LAYOUT_PLAIN, CHECK_FUTURE, 1, false, 0, 1, 0},
    {0, 1, 2, 1, 2, LAYOUT_HEAD_MAJOR, CHECK_RESUME | CHECK_RECENT, 132, false, 0, 1, 0},
    {1, 3, 1, 1, 1, LAYOUT_PADDED, CHECK_RESUME, 1, false, 0, 1, 0},
    {3, 7, 1, 1, 1, LAYOUT_PLAIN, CHECK_FUTURE | CHECK_RESUME, 132, false, 0, 2, 0},
    {3, 9, 2, 1, 2, LAYOUT_PLAIN, CHECK_RAGGED | CHECK_MANY, FEW, false, 0, 0, 0}, /* SEQUENCES_CALL */
    {0, 7, 2, 1, 2, LAYOUT_PLAIN, CHECK_RAGGED, 132, false, 0, 0, 0},              /* one key more shows */
    {3, 9, 1, 1, 1, LAYOUT_PLAIN, CHECK_RESUME, 132, false, MOST_SEGMENTS, 0, 0},  /* SEGMENTS_CALL */
    {23, 9, 2, 1, 2, LAYOUT_PLAIN, CHECK_RAGGED, 132, false, 3, 0, 0},             /* SCANNED_CALL */
    {9, 9, 3, 1, 2, LAYOUT_PLAIN, CHECK_RAGGED, 132, false, 2, 0, -4},             /* WHOLE_CALL */
    {1, 63, 2, 1, 1, LAYOUT_PLAIN, CHECK_RESUME, 132, false, 0, 0, 0},             /* ENTRIES_CALL */
    {9, 9, 1, 1, 1, LAYOUT_PLAIN, 0, 1, false, 0, 0, 0},                           /* RINGS_CALL */
    {4, 8, 1, 1, 1, LAYOUT_PLAIN, CHECK_SEGMENTS | CHECK_RESUME, 132, false, SEGMENTS_OF_CHUNKS, 0,
     0},                                                                /* CHUNKS_CALL */
    {4, 8, 2, 2, 4, LAYOUT_PLAIN, 0, 132, false, SEGMENTS_AHEAD, 0, 0}, /* HEADS_AHEAD_CALL */
    {0, 63, 1, 1, 2, LAYOUT_PLAIN, CHECK_RECENT, 1, false, 0, 0, 0},    /* RECENT_CALL */
};

static fpa_shape shape_of(const emulated_call *c, const fpa_head *head, const fpa_facts *facts)
{
    const bool positive = head->normalize != FPA_NORMALIZE_NONE;
    const int heads = lift_heads(head) ? lift_heads(head) : c->heads; /* as its constants are for */
    return (fpa_shape){.batch = c->batch,
                       .length =
                           (int64_t)c->times * facts->chunk + c->more + (int64_t)c->windows * head->window,
                       .heads = heads,
                       .query_heads = heads * (c->query_heads / c->heads),
                       .layout = c->layout,
                       .inputs = c->windows && c->times == 1              ? INPUTS_LARGE
                                 : head->gate && c == &calls[STRONG_CALL] ? INPUTS_EXTREME_GATE
                                 : head->gate && c == &calls[CHUNKS_CALL] ? INPUTS_SLOW_GATE
                                 : positive                               ? INPUTS_POSITIVE
                                                                          : INPUTS_DENSE,
                       .checks = c->checks};
}

/* Token by token takes long, and so do all pairs; longer where the state is large, and again with recent tokens beside it. */
static bool is_wanted(const fpa_head *head, const fpa_facts *facts, const emulated_call *c, int form,
                      int64_t length)
{
    enum { LARGE = 50000 }; /* numbers of a state */
    static const int64_t most[FORMS] = {
        [FORM_PARALLEL] = 1000, [FORM_CHUNKED] = INT64_MAX, [FORM_RECURRENT] = 63};
    const bool large = (int64_t)facts->features * head->dv > LARGE && c->checks & CHECK_RECENT;
    return facts->forms & 1 << form && length <= most[form] &&
           (form != FORM_RECURRENT || (facts->features < 1000 && (dear_tests() || !large)));
}

/* Blocks of a cluster go round a few times, or have no span at all. Sequences of pieces of a call do not lie one behind the other. */
static bool choose_cluster(const void *choice, const fpa_module *module, const fpa_call_size *size,
                           fpa_candidate *candidate)
{
    const emulated_call *c = choice;
    const struct fpa_cuda_module *cuda = module->handle;
    const fpa_candidate shared = {.mechanism = "cluster_scan",
                                  .segments = c->cluster,
                                  .blocks = (int64_t)c->cluster * abs(c->clusters),
                                  .variant = c->clusters < 0 ? SCAN_WHOLE : SCAN_SHARED};
    *candidate = (fpa_candidate){.mechanism = "cluster_scan", .segments = c->cluster};
    if (c->clusters && !cuda_refusal(&cuda->geometry, size, &shared))
        *candidate = shared;
    return size->form == FORM_CHUNKED && size->query_heads > 0 && size->length > 0;
}

/* As for very many sequences, of which an emulated call has few: whole sequences, one block a head, and as
 * few blocks as can walk beside the queries. */
static bool choose_crowded(const void *choice, const fpa_module *module, const fpa_call_size *size,
                           fpa_candidate *candidate)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    *candidate = (fpa_candidate){.mechanism = "split", .segments = 1};
    if (size->form == FORM_RECURRENT)
        candidate->mechanism = size->recent && !g->window ? "decode_recent" : "decode";
    else if (size->form == FORM_CHUNKED && g->kernel[CUDA_FUSED_CHUNK].threads && size->query_heads > 0)
        candidate->mechanism = "fused_chunk";
    else if (g->persistent)
        candidate->blocks = (int64_t)g->chunk_state_slices * g->column_blocks;
    if (candidate->blocks && cuda->room.overlaps && !(g->unmasked && size->form == FORM_CHUNKED))
        candidate->variant = SPLIT_OVERLAPPED;
    return true;
}

/* As for states that are large, which an emulated head's are not: as many blocks share a head as can, as one cluster
 * where there is room. */
static bool choose_spread(const void *choice, const fpa_module *module, const fpa_call_size *size,
                          fpa_candidate *candidate)
{
    enum { MANY = 768 };
    fpa_candidate list[MANY];
    const int count = module->candidates(module, size, list, MANY);
    bool found = false, resident = false;
    for (int i = 0; i < count && i < MANY && !resident && size->form == FORM_RECURRENT; i++)
        if (!list[i].refused) {
            *candidate = list[i];
            resident = cuda_mechanism_of(candidate) == MECHANISM_DECODE_RESIDENT; /* most blocks come first */
            found = true;
        }
    return found;
}

static bool choose_segments(const void *choice, const fpa_module *module, const fpa_call_size *size,
                            fpa_candidate *candidate)
{
    enum { MANY = 768 };
    fpa_candidate list[MANY];
    const int count = module->candidates(module, size, list, MANY);
    candidate->segments = 0;
    for (int i = 0; i < count && i < MANY && size->form == FORM_CHUNKED; i++)
        if (!list[i].refused && cuda_mechanism_of(&list[i]) == MECHANISM_SPLIT &&
            list[i].segments > candidate->segments)
            *candidate = list[i];
    return candidate->segments > 0;
}

/* As verification's picks are, of one pass where there is one: two segments of two chunks and one of one. */
static bool choose_several(const void *choice, const fpa_module *module, const fpa_call_size *size,
                           fpa_candidate *candidate)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const fpa_pick pick = {
        cuda_mechanism_names[cuda->kernel[CUDA_FUSED_CHUNK] ? MECHANISM_FUSED_CHUNK : MECHANISM_SPLIT], 0,
        true, FUSED_AHEAD_LEAST};
    (void)choice;
    return size->form == FORM_CHUNKED && walk_choose(&pick, module, size, candidate);
}

/* Three segments, whatever the size, of which the first is walked beside the total of the second. Calls of no tokens, which states are tried with, as ever. */
static bool choose_ahead(const void *choice, const fpa_module *module, const fpa_call_size *size,
                         fpa_candidate *candidate)
{
    const struct fpa_cuda_module *cuda = module->handle;
    (void)choice;
    *candidate =
        (fpa_candidate){.mechanism = "fused_chunk", .segments = FUSED_AHEAD_LEAST, .variant = FUSED_AHEAD};
    return size->form == FORM_CHUNKED && size->length > 0 && !cuda_refusal(&cuda->geometry, size, candidate);
}

void emulated_choose(const emulated_call *c, emulated_module *emulated, fpa_trial *trial)
{
    emulated->cuda.room.multiprocessors = c->multiprocessors;
    emulated_copies_boxes(emulated, !c->threads);
    trial->choice = c;
    if (c->checks & CHECK_RAGGED && c->cluster)
        emulated->cuda.room.cluster_counts[c->cluster] = 3; /* which share the sequences */
    if (c->cluster == MOST_SEGMENTS)
        trial->choose = choose_segments;
    else if (c->cluster == SEGMENTS_AHEAD)
        trial->choose = choose_ahead;
    else if (c->cluster == SEGMENTS_OF_CHUNKS)
        trial->choose = choose_several;
    else if (c->cluster)
        trial->choose = choose_cluster;
    else
        trial->choose = c->multiprocessors == 1 || c->multiprocessors == FEW ? choose_crowded : choose_spread;
}

/* In every form: matrix instructions, then copies are as late as they may be; one of both alone where `only` is it. */
static fpa_status check_call(emulated_module *emulated, const fpa_head *head, const fpa_facts *facts,
                             const emulated_call *c, int only, unsigned *forms, fpa_error *error)
{
    static const int late[] = {LATE_PRODUCTS, LATE_COPIES};
    fpa_trial trial = {0};
    fpa_status status = trial_make(&trial, head, facts, shape_of(c, head, facts), SEED, error);
    emulated_choose(c, emulated, &trial);
    for (int i = 0; i < 2; i++)
        for (int form = 0; form < FORMS && !status; form++) {
            fpa_measure measure = {0};
            emulated->late = late[i];
            if (!is_wanted(head, facts, c, form, trial.shape.length) || (only && only != late[i]))
                continue;
            *forms |= 1u << form;
            status = check_trial(&trial, &emulated->module, (fpa_form_index)form, &measure, error);
        }
    trial_free(&trial);
    return status;
}

/* ---- jobs ---- */

static emulated_fixture fixture;

static bool concerns(const struct fpa_cuda_module *cuda, int index)
{
    if (calls[index].windows && !cuda->geometry.window)
        return false;
    return index == TOTALS_CALL || index == AHEAD_CALL
               ? cuda->kernel[CUDA_FUSED_CHUNK] != NULL
               : calls[index].cluster <= 0 || cuda->kernel[CUDA_CLUSTER_SCAN];
}

/* What is late in a call of a head that has no fault: in make test by turns, so that each is in half of the calls. */
static int late_of(const emulated_job *j, int call)
{
    static const int late[] = {LATE_PRODUCTS, LATE_COPIES};
    const int step = j->step ? j->step : 1;
    return j->base || dear_tests() ? 0 : late[(call / step + j->head) % 2];
}

static void run_job(int index, void *argument)
{
    emulated_job *j = &((emulated_job *)argument)[index];
    const fpa_facts *facts = &j->fixture->source[j->head].facts;
    emulated_module emulated;
    char folder[96];
    snprintf(folder, sizeof folder, "%s/%d", j->fixture->folder, j->number);
    mkdir(folder, 0700);
    const double start = clock_seconds();
    j->status = emulated_open(&emulated, j->code, j->base, facts->name, folder, &j->error);
    j->seconds[0] = clock_seconds() - start;
    for (int i = j->first; i < j->end && !j->status; i += j->step ? j->step : 1)
        if (concerns(&emulated.cuda, i)) {
            j->called |= UINT64_C(1) << i;
            j->status = check_call(&emulated, j->fixture->list.heads[j->head], facts, &calls[i],
                                   late_of(j, i), &j->forms, &j->error);
        }
    j->seconds[1] = clock_seconds() - start - j->seconds[0];
    j->launched = emulated.launched;
    emulated_close(&emulated);
}

const char *emulated_mechanism(const fpa_head *head)
{
    static const char *const asked_for[] = {"anyrowsgated", "anyrowsfull"};
    for (size_t i = 0; i < sizeof asked_for / sizeof *asked_for; i++)
        if (!strcmp(head->name, asked_for[i]))
            return "fused_rows";
    return NULL;
}

const char *emulated_target(const fpa_head *head)
{
    return strstr(head->name, "_of_warps") ? "cuda:sm_90" : "cuda:sm_90a";
}

const fpa_source *emulated_source(const emulated_fixture *f, int head)
{
    fpa_source *source = &fixture.source[head];
    fpa_error error;
    if (!source->code && source_generate_as(f->list.heads[head], emulated_target(f->list.heads[head]),
                                            emulated_mechanism(f->list.heads[head]), source, &error))
        fail_msg("%s: %s", error.where, error.message);
    return source;
}

void emulated_run(int count, emulated_job *jobs)
{
    for (int i = 0; i < count; i++)
        emulated_source(jobs[i].fixture, jobs[i].head); /* its facts */
    parallel_run(count, run_job, jobs);
}

void emulated_report(const emulated_job *j, const char *what)
{
    print_message("%-11s %-44s %4.1f + %4.1f s: %s\n", j->fixture->list.heads[j->head]->name, what,
                  j->seconds[0], j->seconds[1], j->status ? j->error.message : "agrees with the formula");
}

/* ---- the fixture ---- */

int emulated_setup(void **state)
{
    emulated_fixture *f = &fixture;
    fpa_error error;
    fpa_status status = FPA_OK;
    *state = f;
    f->ready = compiled_possible();
    print_message("seed %d\n", SEED);
    if (!f->ready)
        print_message("g++ or tests/emulate is not here: the emitted kernels are not run\n");
    scratch_make(f->folder);
    if (f->ready)
        status = compiled_prepare(f->folder, &error);
    if (!status)
        status =
            spec_load_text("emulated.lua", NULL, emulated_heads, sizeof emulated_heads - 1, &f->list, &error);
    if (status)
        print_error("%s: %s\n", error.where, error.message);
    if (f->list.count > EMULATED_MOST_HEADS) {
        print_error("tests/emulate/heads.h: %d heads, more than EMULATED_MOST_HEADS\n", (int)f->list.count);
        return -1;
    }
    return status ? -1 : 0;
}

int emulated_teardown(void **state)
{
    emulated_fixture *f = *state;
    for (int i = 0; i < f->list.count; i++)
        source_free(&f->source[i]);
    head_list_free(&f->list);
    scratch_remove(f->folder);
    return 0;
}

int emulated_head_named(const emulated_fixture *f, const char *name)
{
    for (int i = 0; i < f->list.count; i++)
        if (strcmp(f->list.heads[i]->name, name) == 0)
            return i;
    fail_msg("tests/emulate/heads.h has no head %s", name);
    return -1;
}
