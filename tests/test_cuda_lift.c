/* What the model of the machine knows of coordinates that are made first, and how their rows are shared out. */

#include "head/form.h"
#include "machine/cuda_candidates.h"
#include "machine/cuda_padding.h"
#include "claims.h"
#include "planned.h"

enum { MANY = 1024 };

#define SKETCH                                                                                               \
    "d = 64, dv = 64, terms = term { coordinates { trainable { name = 'a', rows = 200 }, trainable { name "  \
    "= 'b', rows = 200 }, map = relu } }"
#define MASKED "d = 24, dv = 20, key_mask = true, terms = term { identity():map(exp) }"

static const char *const targets[] = {"cuda:sm_90a", "cuda:sm_90", "cuda:sm_80"};

enum { TARGETS = sizeof targets / sizeof *targets };

static fpa_gpu_room room_of(const struct fpa_cuda_geometry *g, const char *target)
{
    return gpu_room_of_target(g, target_find(target));
}

static fpa_call_size call_of(int form, int64_t batch, int64_t length)
{
    return (fpa_call_size){.form = form, .batch = batch, .length = length, .query_heads = 8, .heads = 4};
}

/* Candidates of two geometries of one head, one by one. */
static void expect_dearer(const struct fpa_cuda_geometry *with, const struct fpa_cuda_geometry *without,
                          const char *target, const fpa_call_size *size)
{
    static fpa_candidate more[MANY], less[MANY];
    const fpa_gpu_room room = room_of(with, target);
    const int count = cuda_candidates(with, &room, size, more, MANY);
    int suited = 0;
    assert_int_equal(cuda_candidates(without, &room, size, less, MANY), count);
    for (int i = 0; i < count && i < MANY; i++) {
        assert_true(!more[i].refused == !less[i].refused);
        if (more[i].refused)
            continue;
        suited++;
        if (more[i].cost.seconds <= less[i].cost.seconds)
            fail_msg("%s, form %d: %s takes %g s with its coordinates, %g s without", target, size->form,
                     more[i].mechanism, more[i].cost.seconds, less[i].cost.seconds);
    }
    assert_true(suited > 0);
}

static void coordinates_are_a_part_of_every_candidate(void **state)
{
    static const char *const heads[] = {SKETCH, MASKED};
    for (int h = 0; h < 2; h++)
        for (int t = 0; t < TARGETS; t++) {
            const struct fpa_cuda_geometry with = planned_geometry(heads[h], targets[t]);
            struct fpa_cuda_geometry without = with;
            without.kernel[CUDA_LIFT_ROWS].threads = 0;
            assert_true(with.kernel[CUDA_LIFT_ROWS].threads > 0);
            for (int form = 0; form < FORMS; form++) {
                const fpa_call_size size = call_of(form, 3, form == FORM_RECURRENT ? 1 : 3000);
                expect_dearer(&with, &without, targets[t], &size);
            }
        }
}

/* Each token of each head is in one piece of work, or its rows are shared out; few tokens are spread, of many the blocks that run at a
 * time take one piece after the other, of the same head where that matters. */
static void blocks_have_all_tokens(void **state)
{
    struct fpa_cuda_geometry g = planned_geometry(SKETCH, "cuda:sm_90a");
    const fpa_gpu_room room = room_of(&g, "cuda:sm_90a");
    const int64_t resident = (int64_t)room.multiprocessors * room.occupancy[CUDA_LIFT_ROWS];
    g.lift_by_heads = 0;
    for (int64_t tokens = 1; tokens < 100000; tokens = 3 * tokens + 1) {
        const fpa_call_size size = call_of(FORM_CHUNKED, 2, tokens);
        const int64_t tiles = cuda_lift_tiles(&g, &size), slices = cuda_lift_slices(&g, &room, &size),
                      blocks = cuda_lift_blocks(&g, &room, &size);
        assert_true(tiles * g.lift_tokens >= 2 * tokens * 12 &&
                    (tiles - 12) * g.lift_tokens < 2 * tokens * 12);
        assert_true(slices >= 1 && slices <= g.lift_steps);
        assert_true(blocks <= resident && blocks % slices == 0);
        assert_true(blocks == tiles * slices || (slices == 1 && blocks == resident));
        assert_true(tokens > 1 || slices == g.lift_steps);
    }
    const fpa_call_size many = call_of(FORM_CHUNKED, 8, 65536);
    assert_int_equal(cuda_lift_slices(&g, &room, &many), 1);
    g.lift_by_heads = 1;
    const int64_t blocks = cuda_lift_blocks(&g, &room, &many);
    assert_true(blocks % many.query_heads == 0 && blocks <= resident && blocks > resident - many.query_heads);
    fpa_call_size totals = many; /* a piece's: of keys alone */
    totals.query_heads = 0;
    const int64_t own = cuda_lift_blocks(&g, &room, &totals);
    assert_true(own % totals.heads == 0 && own <= resident && own > resident - totals.heads);
}

/* Values of masked keys are written again in every form, others where the copy engine needs it. */
static void masked_values_are_padded_in_every_form(void **state)
{
    const struct fpa_cuda_geometry masked = planned_geometry(MASKED, "cuda:sm_80");
    const struct fpa_cuda_geometry plain = planned_geometry(SKETCH, "cuda:sm_80");
    assert_int_equal(masked.padded_value, 24);
    for (int m = 0; m < MECHANISMS; m++) {
        assert_int_equal(cuda_padding_of(&masked, (cuda_mechanism)m).value, 24);
        assert_int_equal(cuda_padding_of(&plain, (cuda_mechanism)m).value, 0);
        assert_int_equal(cuda_padding_of(&masked, (cuda_mechanism)m).vector, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinates_are_a_part_of_every_candidate),
        cmocka_unit_test(blocks_have_all_tokens),
        cmocka_unit_test(masked_values_are_padded_in_every_form),
    };
    return cmocka_run_group_tests_name("cuda lift", tests, NULL, NULL);
}
