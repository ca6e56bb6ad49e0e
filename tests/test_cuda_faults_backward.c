/* Emitted gradients for CUDA with one mistake each (emulate/faults_backward.h, faults_passes.h) are refused, in the emulation.
 *
 * make test: the first of each part of the table; make test-all: all, in shares (share.h). */
#include "claims.h"
#include "dear.h"
#include "emulate/backward.h"
#include "emulate/backward_edge.h"
#include "emulate/faults_backward.h"
#include "emulate/faults_passes.h"
#include "share.h"

#include <stdlib.h>
#include <string.h>

enum {
    OWN = sizeof cuda_backward_faults / sizeof *cuda_backward_faults,
    OF_PASSES = OWN + sizeof cuda_pass_faults / sizeof *cuda_pass_faults,
    OF_VALUES = OF_PASSES + sizeof cuda_reversed_faults / sizeof *cuda_reversed_faults,
    OF_ROWS = OF_VALUES + sizeof cuda_value_pass_faults / sizeof *cuda_value_pass_faults,
    FAULTS = OF_ROWS + sizeof cuda_row_pass_faults / sizeof *cuda_row_pass_faults
};

static const struct cuda_backward_fault *fault_at(int i)
{
    return i < OWN         ? &cuda_backward_faults[i]
           : i < OF_PASSES ? &cuda_pass_faults[i - OWN]
           : i < OF_VALUES ? &cuda_reversed_faults[i - OF_PASSES]
           : i < OF_ROWS   ? &cuda_value_pass_faults[i - OF_VALUES]
                           : &cuda_row_pass_faults[i - OF_ROWS];
}

/* Faults of segments need a GPU that one sequence does not fill, and a long one for three of them. */
static bool is_of_segments(int i)
{
    return strstr(fault_at(i)->fault.point, "_segment_") != NULL;
}

/* Products that are not waited for show where they are late, copies where these are; 0: either. */
static int late_of(int i)
{
    const char *point = fault_at(i)->fault.point;
    const bool of_groups = strncmp(point, "cuda_groups_", 12) == 0 ||
                           strncmp(point, "cuda_between_", 13) == 0 ||
                           strncmp(point, "contraction_", 12) == 0 || strncmp(point, "pairs_", 6) == 0;
    return strstr(point, "_awaited") ? LATE_COPIES : of_groups ? LATE_PRODUCTS : 0;
}

/* Faults that show where something is not finite. */
static bool is_of_edge(int i)
{
    return strstr(fault_at(i)->fault.point, "_edge") != NULL;
}

/* The first two words of its point: the file of templates. */
static bool is_of_one_file(int i, int j)
{
    const char *a = fault_at(i)->fault.point, *b = fault_at(j)->fault.point;
    size_t size = strcspn(a, "_") + 1;
    size += strcspn(a + size, "_");
    return strncmp(a, b, size) == 0 && (b[size] == '_' || !b[size]);
}

/* FPA_TEST_HEAD: those of one head; FPA_TEST_FAULT: those with these words in their names; make test: the first of each part of the table; of gradients' own kernels the first of each file of templates. */
static bool is_fixed(int i)
{
    bool seen = i > OWN;
    if (getenv("FPA_TEST_FAULT"))
        return strstr(fault_at(i)->fault.what, getenv("FPA_TEST_FAULT")) != NULL;
    if (getenv("FPA_TEST_HEAD"))
        return strcmp(getenv("FPA_TEST_HEAD"), fault_at(i)->head) == 0;
    for (int j = 0; j < i; j++)
        seen = seen || is_of_one_file(j, i);
    return !seen || i == OWN || i == OF_PASSES || i == OF_VALUES || i == OF_ROWS;
}

/* The text of a pass, with the fault. */
static char *fault_pass(const struct fault *fault, const fpa_head *head, fpa_pass pass)
{
    fpa_passes passes = {0};
    fpa_error error;
    if (source_passes(head, "cuda:sm_90a", &passes, &error) || !(passes.head[pass] || passes.own[pass]))
        fail_msg("%s has no such pass", head->name);
    char *code = passes.own[pass]    ? fault_make(fault, head, "cuda:sm_90a")
                 : pass == PASS_ROWS ? fault_make_rows(fault, passes.head[pass], "cuda:sm_90a")
                                     : fault_make_values(fault, passes.head[pass], "cuda:sm_90a");
    head_free(passes.head[PASS_ROWS]);
    head_free(passes.head[PASS_VALUES]);
    return code;
}

static void every_fault_is_refused_in_its_words(void **state)
{
    enum { MANY = 132, LONGER = 1400, SEVERAL = 1600, SOME = 400 };
    static backward_job jobs[FAULTS];
    const backward_fixture *f = *state;
    share taken = {0};
    int wrong = 0, count = 0, chosen = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < FAULTS; i++) {
        if ((!dear_tests() && !is_fixed(i)) || !share_take(&taken, chosen++))
            continue;
        const int head = backward_head_named(f, fault_at(i)->head);
        const bool forward = i >= OF_PASSES;
        const fpa_pass pass = i >= OF_ROWS ? PASS_ROWS : PASS_VALUES;
        const struct fault *fault = &fault_at(i)->fault;
        char *code =
            forward ? fault_pass(fault, f->list.heads[head], pass)
                    : fault_make_backward(fault, f->list.heads[head], backward_target(f->list.heads[head]));
        jobs[count++] = (backward_job){.fixture = f,
                                       .head = head,
                                       .number = i,
                                       .passes = i >= OWN,
                                       .late = late_of(i),
                                       .check = is_of_edge(i) ? backward_edge_check : NULL,
                                       .multiprocessors = is_of_segments(i) ? MANY : 0,
                                       .longest = is_of_segments(i)                              ? LONGER
                                                  : strcmp(fault_at(i)->head, "widenorm") == 0   ? SOME
                                                  : strstr(fault_at(i)->head, "pairs")           ? SOME
                                                  : strstr(fault_at(i)->head, "parts")           ? SOME
                                                  : strncmp(fault_at(i)->head, "broad", 5) == 0  ? SOME
                                                  : strncmp(fault_at(i)->head, "fading", 6) == 0 ? SEVERAL
                                                                                                 : 0,
                                       .code = forward ? backward_source(f, head)->code : code,
                                       .base = forward ? NULL : backward_source(f, head)->code};
        if (forward)
            jobs[count - 1].pass[pass] = code;
    }
    dear_report("faults", count, FAULTS);
    share_report(&taken, "faults", chosen);
    backward_run(count, jobs);
    for (int i = 0; i < count; i++) {
        const struct cuda_backward_fault *fault = fault_at(jobs[i].number);
        wrong += !fault_refused(&fault->fault, fault->head, jobs[i].status, jobs[i].error.message);
        const char *const *pass = jobs[i].pass;
        free((char *)(uintptr_t)(pass[PASS_ROWS]     ? pass[PASS_ROWS]
                                 : pass[PASS_VALUES] ? pass[PASS_VALUES]
                                                     : jobs[i].code));
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_fault_is_refused_in_its_words)};
    return cmocka_run_group_tests_name("cuda faults backward", tests, backward_setup, backward_teardown);
}
