#include "parts.h"

#include "../claims.h"
#include "../dear.h"
#include "../share.h"
#include "abi/cuda_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIXED = sizeof emulated_fixed / sizeof *emulated_fixed,
    LARGE = 2000, /* features */
    WIDE = 200,   /* d */
    SHORT = 2,    /* calls */
    CLUSTERED = 4 /* heads of clusters in the fixed part, which share the calls */
};

bool emulated_is_fixed(const fpa_head *head)
{
    return is_one_of(emulated_fixed, FIXED, head->name);
}

static bool has_kernel(const fpa_source *source, cuda_kernel kernel)
{
    char symbol[HEAD_MAX_NAME + 32];
    snprintf(symbol, sizeof symbol, "%s_%s(", source->facts.name, cuda_kernel_names[kernel]);
    return strstr(source->code, symbol) != NULL;
}

static emulated_part part_of(const fpa_source *source)
{
    if (has_kernel(source, CUDA_DECODE_WINDOW))
        return PART_WINDOW;
    /* where a pass makes coordinates itself no kernel does before */
    if (has_kernel(source, CUDA_LIFT_ROWS) && !strstr(source->code, " map_pair(") &&
        !strstr(source->code, " cluster_scan_map(") && !strstr(source->code, " turn_tokens(") &&
        !strstr(source->code, " cluster_scan_project("))
        return PART_LIFT;
    return has_kernel(source, CUDA_FUSED_CHUNK) && !has_kernel(source, CUDA_CLUSTER_SCAN) ? PART_FUSED
                                                                                          : PART_OTHERS;
}

/* The first so many concern its heads; coordinates are made before mechanisms differ. */
static int calls_of(emulated_part part)
{
    static const int calls[EMULATED_PARTS] = {[PART_FUSED] = CLUSTER_CALL,
                                              [PART_LIFT] = LONG_CALL + 2,
                                              [PART_WINDOW] = SEQUENCES_CALL,
                                              [PART_OTHERS] = WINDOW_CALL};
    return calls[part];
}

uint64_t emulated_part_kernels(emulated_part part)
{
    enum { SEQUENCES = 1 << CUDA_SEQUENCE_SCAN };
    const uint64_t all =
        (UINT64_C(1) << CUDA_STATE_PRODUCT) - 1; /* it and those behind it are of gradients */
    const uint64_t left[EMULATED_PARTS] = {
        [PART_FUSED] = SEQUENCES | 1u << CUDA_SEGMENT_SCAN | 1u << CUDA_CLUSTER_SCAN | 1u << CUDA_LIFT_ROWS |
                       1u << CUDA_PAD_ROWS | 1u << CUDA_PARALLEL_OUTPUT | 1u << CUDA_DECODE_WINDOW,
        [PART_LIFT] =
            all & ~(uint64_t)(1u << CUDA_LIFT_ROWS | 1u << CUDA_PAD_ROWS | 1u << CUDA_DECODE |
                              1u << CUDA_DECODE_RESIDENT | 1u << CUDA_DECODE_RECENT | 1u << CUDA_FUSED_CHUNK),
        [PART_WINDOW] =
            all & ~(uint64_t)(1u << CUDA_LIFT_ROWS | 1u << CUDA_PAD_ROWS | 1u << CUDA_CHUNK_STATE |
                              1u << CUDA_SEGMENT_SCAN | 1u << CUDA_CHUNK_OUTPUT | 1u << CUDA_DECODE |
                              1u << CUDA_DECODE_WINDOW),
        [PART_OTHERS] = 1u << CUDA_LIFT_ROWS | 1u << CUDA_PACK_ROWS | 1u << CUDA_DECODE_WINDOW,
    };
    return all & ~left[part];
}

uint64_t emulated_part_calls(emulated_part part)
{
    const uint64_t others = UINT64_C(1) << TOTALS_CALL | UINT64_C(1) << AHEAD_CALL |
                            ((UINT64_C(1) << WINDOW_CALL) - (UINT64_C(1) << CLUSTER_CALL));
    return ((UINT64_C(1) << calls_of(part)) - 1) & ~(part == PART_WINDOW ? others : 0);
}

/* One head alone, in all calls; NULL: those of the part. */
static const char *only_head(void)
{
    return getenv("FPA_TEST_HEAD");
}

static bool is_wanted(const fpa_head *head)
{
    return only_head() ? !strcmp(only_head(), head->name) : dear_tests() || emulated_is_fixed(head);
}

/* Calls by clusters are made by few heads, which take turns among themselves. */
static bool has_clusters(const emulated_fixture *f, int head)
{
    return strstr(emulated_source(f, head)->code, "_cluster_scan(") != NULL;
}

/* Large heads take long: their long calls only. Where not all heads run, wide ones make two short calls, and
 * each head some of the calls, the next head those behind: every function runs in a part of the calls, every call on a part of
 * the heads. */
static emulated_job job_of(const emulated_fixture *f, emulated_part part, int head, int before)
{
    const bool large = emulated_source(f, head)->facts.features > LARGE;
    const bool wide = !dear_tests() && f->list.heads[head]->d > WIDE;
    static const int steps[EMULATED_PARTS] = {
        [PART_FUSED] = 8, [PART_LIFT] = 4, [PART_WINDOW] = 2, [PART_OTHERS] = 6};
    const int each = dear_tests() || only_head() || large || wide ? 1
                     : has_clusters(f, head)                      ? CLUSTERED
                                                                  : steps[part];
    emulated_job job = {.fixture = f, .head = head, .code = emulated_source(f, head)->code, .number = head};
    job.first = large ? LONG_CALL : before % each;
    job.step = each;
    job.end = part == PART_LIFT ? calls_of(part) : SEQUENCES_CALL;
    if (large || wide)
        job.end = large ? LONG_CALL + 4 : SHORT;
    return job;
}

/* What a head alone says, so that the texts of other parts' heads are not written. */
static bool may_be_of(const fpa_head *head, emulated_part part)
{
    return (part == PART_WINDOW) == (head->window > 0) && (part != PART_LIFT || head->lift);
}

static int choose_jobs(const emulated_fixture *f, emulated_part part, emulated_job *jobs)
{
    share taken = {0};
    int count = 0, chosen = 0, before[2] = {0};
    for (int i = 0; i < f->list.count; i++)
        if (is_wanted(f->list.heads[i]) && may_be_of(f->list.heads[i], part) &&
            part_of(emulated_source(f, i)) == part && share_take(&taken, chosen++))
            jobs[count++] = job_of(f, part, i, before[has_clusters(f, i)]++);
    print_message(
        "%d heads of %d in all parts%s\n", count, f->list.count,
        dear_tests() ? "" : ", in each call with late products or with late copies; make test-all runs all");
    share_report(&taken, "heads", chosen);
    return count;
}

void emulated_expect_formula(const emulated_fixture *f, emulated_part part)
{
    static emulated_job jobs[EMULATED_MOST_HEADS];
    uint64_t launched = 0;
    unsigned called = 0, forms = 0;
    int wrong = 0;
    if (!f->ready)
        skip();
    const int count = choose_jobs(f, part, jobs);
    emulated_run(count, jobs);
    for (int i = 0; i < count; i++) {
        emulated_report(&jobs[i], "");
        wrong += jobs[i].status != FPA_OK;
        launched |= jobs[i].launched, called |= jobs[i].called, forms |= jobs[i].forms;
    }
    assert_int_equal(wrong, 0);
    if (only_head() || share_is_part())
        return;
    for (int i = 0; i < CUDA_BACKWARD_OUTPUTS; i++)
        if (emulated_part_kernels(part) & ~launched & UINT64_C(1) << i)
            fail_msg("no head launches NAME_%s", cuda_kernel_names[i]);
    assert_int_equal(emulated_part_calls(part) & ~called, 0);
    assert_int_equal(forms, (1u << FORMS) - 1);
}
