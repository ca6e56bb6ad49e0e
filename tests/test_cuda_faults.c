/* The emulation of CUDA kernels must be able to fail: emitted kernels with one mistake each
 * (emulate/faults.h) are found out.
 *
 * make test: the first fault of each mechanism's table, the first of each kind, the first race and the first nan; make test-all: all faults, at every place, in
 * shares (share.h). That the templates have the points of all of them is tested always (test_fault_points.c). */
#include "claims.h"
#include "dear.h"
#include "emulate/faults.h"
#include "emulate/trials.h"
#include "share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAULTS = EMULATED_FAULTS };

/* Where each place is, and the calls that go by there: a call does all of it when it is long. */
static const struct {
    const char *head;
    int first, calls;
} places[PLACES] = {
    [BY_BOXES] = {"gated", LONG_CALL, 2},
    [IN_SEGMENTS] = {"gated", SEGMENTS_CALL, 1},
    [IN_CHUNKS_OF_SEGMENTS] = {"gated", CHUNKS_CALL, 1},
    [IN_CHUNKS_OF_PASSES] = {"scaled", CHUNKS_CALL, 1},
    [IN_ROUNDS] = {"plain", ROUNDS_CALL, 1},
    [BY_THREADS] = {"gated", THREADS_CALL, 2},
    [IN_FUSED] = {"fewgated", LONG_CALL, 5},
    [IN_FUSED_BY_THREADS] = {"fewgated", THREADS_CALL, 2},
    [IN_LIFTED_ROWS] = {"fewliftedhalf", LONG_CALL, 5},
    [IN_TOTALS] = {"few", LONG_CALL, 5},
    [IN_AHEAD] = {"few", AHEAD_CALL, 1},
    [IN_HEADS_AHEAD] = {"few", HEADS_AHEAD_CALL, 1},
    [IN_COORDINATES_AHEAD] = {"thin", AHEAD_CALL, 1},
    [IN_JOINED] = {"fewtrained", LONG_CALL, 5},
    [IN_COORDINATES] = {"thin", LONG_CALL, 5},
    [IN_ROWS] = {"anyrows", HEADS_CALL, 8},
    [IN_BOXED_ROWS] = {"anyrowsfirst", HEADS_CALL, 8},
    [IN_GATED_ROWS] = {"anyrowstails", LONG_CALL, 2},
    [IN_FACTORED_ROWS] = {"scaled", LONG_CALL, 2},
    [IN_STRONG_GATES] = {"scaled", STRONG_CALL, 1},
    [IN_BLOCKS_OF_ROWS] = {"anyrowsblocks", LONG_CALL, 2},
    [IN_FEATURES] = {"featureplain", HEADS_CALL, 8},
    [IN_CLUSTER_SCAN] = {"clustered", CLUSTER_CALL, 5},
    [IN_WIDE_CLUSTER_SCAN] = {"clustereddeep", CLUSTER_CALL, 5},
    [IN_MAPPED_CLUSTER_SCAN] = {"clusteredmaps", CLUSTER_CALL, 5},
    [IN_TURNED_CLUSTER_SCAN] = {"clusteredwaves", CLUSTER_CALL, 5},
    [IN_PRODUCT_CLUSTER_SCAN] = {"clusteredfavor", CLUSTER_CALL, 5},
    [IN_TOKEN] = {"plain", TOKEN_CALL, 5},
    [IN_LEANING_TOKEN] = {"leaning", TOKEN_CALL, 5},
    [IN_RECENT_TOKENS] = {"deep", RECENT_CALL, 1},
    [WITHOUT_MASK] = {"openpacked", LONG_CALL, 2},
    [WITHOUT_MASK_IN_PANELS] = {"lonelyopen", LONG_CALL, 2},
    [IN_PACKED_PANELS] = {"packed_of_warps", LONG_CALL, 2},
    [IN_PACKED_PANELS_OF_SEQUENCES] = {"packed_of_warps", SEQUENCES_CALL, 2},
    [WITHOUT_MASK_IN_PASS] = {"openmaps", LONG_CALL, 3},
    [IN_LIFT] = {"placed", LONG_CALL, 2},
    [IN_LIFT_SUMS] = {"favor", LONG_CALL, 2},
    [IN_LIFT_WEIGHTS] = {"lifted", LONG_CALL, 2},
    [IN_BROAD_LIFT] = {"broadlift", LONG_CALL, 2},
    [IN_LIFT_GROUPS] = {"grouped", LONG_CALL, 2},
    [IN_LIFT_GROUPS_CUT] = {"grouped", ENTRIES_CALL, 1},
    [IN_LIFT_GROUP_SQUARES] = {"groupedfavor", LONG_CALL, 2},
    [IN_LIFT_GROUP_WEIGHTS] = {"groupedtrained", LONG_CALL, 2},
    [IN_LIFTING_PASS] = {"liftedpass", LONG_CALL, 5},
    [IN_ALIKE_LIFTING_PASS] = {"liftedalike", LONG_CALL, 5},
    [IN_OWN_PASS] = {"owned", LONG_CALL, 5},
    [IN_TURNING_PASS] = {"clusteredwaves", LONG_CALL, 5},
    [IN_TURNING_STATES] = {"clusteredwaves", SEQUENCES_CALL, 2},
    [IN_PLAIN_LIFT] = {"lonely", LONG_CALL, 2},
    [IN_WINDOW] = {"near", WINDOW_CALL, 5},
    [IN_MASKED_WINDOW] = {"nearlifted", WINDOW_CALL, 5},
    [IN_NEAR_PASS] = {"nearpass", WINDOW_CALL, 5},
    [IN_NEAR_ROUNDS] = {"nearpassodd", LONG_CALL + 3, 1},
    [IN_NEAR_TASKS] = {"nearpass", RINGS_CALL, 1},
    [IN_SEQUENCES] = {"plain", SEQUENCES_CALL, 2},
    [IN_PLACED_SEQUENCES] = {"placed", SEQUENCES_CALL, 2},
    [IN_PASSED_SEQUENCES] = {"few", SEQUENCES_CALL, 1},
    [IN_SCANNED_SEQUENCES] = {"clusteredblocks", SCANNED_CALL, 1},
    [IN_SHARED_SCAN] = {"clusteredwaves", SHARED_CALL, 1},
    [IN_LEANING] = {"leaning", HEADS_CALL, 5},
    [IN_WHOLE_SCAN] = {"clusteredblocks", WHOLE_CALL, 1},
    [IN_PRODUCTS] = {"fourfold", LONG_CALL, 2},
    [IN_SLABS] = {"manydots", LONG_CALL, 2},
    [IN_BOXES] = {"onesbehind", LONG_CALL, 2},
    [IN_BOXED_SEQUENCES] = {"onesbehind", SEQUENCES_CALL, 2},
    [IN_TURN] = {"turns", LONG_CALL, 2},
    [IN_APART] = {"apartbeside", LONG_CALL, 2},
    [IN_APART_BESIDE_WALK] = {"apartbeside", HEADS_CALL, 1},
    [IN_PARTS] = {"onesrow", LONG_CALL, 2},
    [IN_CUT_GROUPS] = {"cutgroups", LONG_CALL, 2},
    [IN_PACKED] = {"chosen", LONG_CALL, 2},
    [IN_PACKED_TURNS] = {"widetrained", LONG_CALL, 2},
    [IN_PACKED_NARROW] = {"wide", LONG_CALL, 2},
    [IN_GIVEN_ROWS] = {"givenrows", LONG_CALL, 2},
    [IN_GIVEN_SEQUENCES] = {"givenrows", SEQUENCES_CALL, 2},
};

/* What no number shows: threads take turns here in which nothing comes of it (emulate/races.h). */
static bool is_race(int index)
{
    return strstr(emulated_fault_at(index)->fault.says, "a race") != NULL;
}

/* Outputs that are judged together alone, as their normalisers cancel, and of which some are no numbers. */
static bool is_nan(int index)
{
    return strstr(emulated_fault_at(index)->fault.says, "is nan") != NULL;
}

/* The first of its mechanism or of its kind, the first race, and the first nan. */
static bool is_fixed(int index)
{
    bool table = false, kind = false, race = false, nan = false; /* seen before */
    for (int i = 0; i < index; i++) {
        table = table || emulated_fault_table(i) == emulated_fault_table(index);
        kind = kind || emulated_fault_at(i)->kind == emulated_fault_at(index)->kind;
        race = race || is_race(i);
        nan = nan || is_nan(i);
    }
    return !table || !kind || (is_race(index) && !race) || (is_nan(index) && !nan);
}

/* FPA_TEST_FAULT: those alone whose name has these words in it. */
static bool is_chosen(int index)
{
    const char *words = getenv("FPA_TEST_FAULT");
    if (words)
        return strstr(emulated_fault_at(index)->fault.what, words) != NULL;
    return dear_tests() || is_fixed(index);
}

/* Of what is chosen this process's share. */
static bool wanted[FAULTS];

static void choose_faults(void)
{
    share taken = {0};
    int chosen = 0;
    for (int i = 0; i < FAULTS; i++)
        wanted[i] = is_chosen(i) && share_take(&taken, chosen++);
    share_report(&taken, "faults", chosen);
}

/* ---- what the fixed part has ---- */

static void the_fixed_part_has_every_mechanism_and_every_kind(void **state)
{
    int of_table[EMULATED_TABLES] = {0}, of_kind[KINDS] = {0}, at[PLACES] = {0};
    for (int i = 0; i < FAULTS; i++) {
        at[emulated_fault_at(i)->place]++;
        if (is_fixed(i))
            of_table[emulated_fault_table(i)]++, of_kind[emulated_fault_at(i)->kind]++;
    }
    for (int i = 0; i < PLACES; i++)
        if (!places[i].head || at[i] == 0)
            fail_msg("place %d of enum fault_place has no head, or no fault", i);
    for (int i = 0; i < EMULATED_TABLES; i++)
        if (of_table[i] == 0)
            fail_msg("no fault of the fixed part is of table %d of emulated_tables", i);
    for (int i = 0; i < KINDS; i++)
        if (of_kind[i] == 0)
            fail_msg("no fault of the fixed part is of kind %d of enum fault_kind", i);
}

/* ---- the faults ---- */

static char *make(const emulated_fixture *f, int fault)
{
    const int head = emulated_head_named(f, places[emulated_fault_at(fault)->place].head);
    return fault_make_in(&emulated_fault_at(fault)->fault, f->list.heads[head],
                         emulated_target(f->list.heads[head]), emulated_source(f, head)->code);
}

/* make test: those that are run. */
static void every_fault_can_be_made_in_the_emitted_code(void **state)
{
    const emulated_fixture *f = *state;
    for (int i = 0; i < FAULTS; i++)
        if (wanted[i])
            free(make(f, i));
}

/* What the compiler refuses was no fault. */
static void run_faults(const emulated_fixture *f, bool races)
{
    static emulated_job jobs[FAULTS];
    int count = 0, wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < FAULTS; i++) {
        const int head = emulated_head_named(f, places[emulated_fault_at(i)->place].head),
                  first = places[emulated_fault_at(i)->place].first;
        if (!wanted[i] || is_race(i) != races)
            continue;
        jobs[count++] = (emulated_job){.fixture = f,
                                       .head = head,
                                       .code = make(f, i),
                                       .base = emulated_source(f, head)->code,
                                       .number = i,
                                       .first = first,
                                       .end = first + places[emulated_fault_at(i)->place].calls};
    }
    dear_report("faults", count, FAULTS);
    assert_true(count > 0 || share_is_part() || getenv("FPA_TEST_FAULT"));
    emulated_run(count, jobs);
    for (int i = 0; i < count; i++) {
        wrong += !fault_refused(&emulated_fault_at(jobs[i].number)->fault, f->list.heads[jobs[i].head]->name,
                                jobs[i].status, jobs[i].error.message);
        free((char *)(uintptr_t)jobs[i].code);
    }
    assert_int_equal(wrong, 0);
}

static void faults_in_emitted_kernels_are_found(void **state)
{
    run_faults(*state, false);
}

static void races_in_emitted_kernels_are_found(void **state)
{
    setenv("FPA_TEST_RACES", "1", 1);
    run_faults(*state, true);
    unsetenv("FPA_TEST_RACES");
}

static int setup(void **state)
{
    const int status = emulated_setup(state);
    choose_faults();
    return status;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_part_has_every_mechanism_and_every_kind),
        cmocka_unit_test(every_fault_can_be_made_in_the_emitted_code),
        cmocka_unit_test(faults_in_emitted_kernels_are_found),
        cmocka_unit_test(races_in_emitted_kernels_are_found),
    };
    return cmocka_run_group_tests_name("cuda faults", tests, setup, emulated_teardown);
}
