/* What the model says of decoding steps, beside what steps took on an H100 (docs/decisions/0017-decode.md). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "head/form.h"
#include "machine/cuda_candidates.h"
#include "claims.h"
#include "planned.h"

enum { HEADS = 16, MOST = 128 };

static const char power2[] = "d = 64, dv = 64, scale = 1 / sqrt(64), terms = power { degree = 2 }";

typedef struct step_list {
    struct fpa_cuda_geometry geometry;
    fpa_gpu_room room;
    fpa_call_size size;
    fpa_candidate of[MOST];
    int count;
} step_list;

/* Candidates of a step of that head on an H100. */
static void list_steps(step_list *l, const char *body, int64_t batch)
{
    const fpa_target *target = target_find("cuda:sm_90a");
    l->geometry = planned_geometry(body, target->name);
    l->room = gpu_room_of(&l->geometry, target, gpu_find("h100"));
    l->size = (fpa_call_size){.form = FORM_RECURRENT,
                              .batch = batch,
                              .length = 1,
                              .query_heads = HEADS,
                              .heads = HEADS,
                              .state_in = true,
                              .state_out = true};
    l->count = cuda_candidates(&l->geometry, &l->room, &l->size, l->of, MOST);
    assert_in_range(l->count, 1, MOST);
}

static const fpa_candidate *step_of(const step_list *l, const char *mechanism, int64_t blocks)
{
    for (int i = 0; i < l->count; i++)
        if (!l->of[i].refused && l->of[i].segments == blocks && !strcmp(l->of[i].mechanism, mechanism))
            return &l->of[i];
    fail_msg("no %s of %d blocks a head", mechanism, (int)blocks);
    return NULL;
}

/* Microseconds of steps of power 2, by blocks a head. */
typedef struct measured_step {
    int batch;
    const char *mechanism;
    int blocks;
    double us;
} measured_step;

static const measured_step measured[] = {
    {1, "decode_resident", 8, 9.48}, {2, "decode", 8, 18.9}, {2, "decode", 4, 19.7},
    {4, "decode", 4, 32.2},          {4, "decode", 2, 38.1}, {16, "decode", 1, 103.5},
};

static void steps_take_what_was_measured_within_15_percent(void **state)
{
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        const measured_step *m = &measured[i];
        step_list l;
        list_steps(&l, power2, m->batch);
        const double us = 1e6 * step_of(&l, m->mechanism, m->blocks)->cost.seconds;
        if (fabs(us / m->us - 1) > 0.15)
            fail_msg("batch %d, %s of %d blocks: %.1f us are predicted of %.1f", m->batch, m->mechanism,
                     m->blocks, us, m->us);
    }
}

/* The faster ones of the above. */
static void the_blocks_that_were_faster_are_chosen(void **state)
{
    static const struct {
        int batch, blocks;
    } fastest[] = {{1, 8}, {2, 8}, {4, 4}, {16, 1}};
    for (size_t i = 0; i < sizeof fastest / sizeof *fastest; i++) {
        step_list l;
        fpa_candidate best;
        list_steps(&l, power2, fastest[i].batch);
        assert_true(cuda_fastest(&l.geometry, &l.room, &l.size, &best));
        assert_int_equal(best.segments, fastest[i].blocks);
    }
}

/* A block's eight warps multiply up to eight rows each at a time, whose bytes it reads: 130 rows are two round trips more than
 * 32, of every candidate. */
static void rows_of_a_learned_projection_are_waited_for(void **state)
{
    enum { FEW = 16, MANY = 128, TWO = 2, WIDTH = 64 }; /* 256 features: 1 round, then 3 */
    static const char of_rows[] = "d = 64, dv = 64, terms = { term { trainable { name = \"a\", rows = %d }, "
                                  "trainable { name = \"b\", rows = %d } } }";
    double seconds[2], bandwidth = 0;
    for (int i = 0; i < 2; i++) {
        char body[sizeof of_rows + 16];
        step_list l;
        snprintf(body, sizeof body, of_rows, i ? MANY : FEW, i ? TWO : FEW);
        list_steps(&l, body, 1);
        seconds[i] = step_of(&l, "decode", 1)->cost.seconds;
        bandwidth = l.room.gpu->memory / l.room.multiprocessors;
    }
    const double bytes = 4.0 * (MANY + TWO - 2 * FEW) * WIDTH;
    assert_true(fabs(seconds[1] - seconds[0] - 2 * GPU_TRIP - bytes / bandwidth) < 1e-9);
}

/* Rows of 106 numbers and 108 rows of matrices: 3 blocks a head took 1,209 ns, 9 took 1,005 (decision 0213). Rows of whole pieces of 16 bytes lose
 * little by being far apart: fewer blocks multiply the matrices then. */
static void blocks_of_rows_that_lean_stay_near_each_other(void **state)
{
    static const char body[] = "d = 64, dv = 106, terms = { term { trainable { name = \"a\", rows = 44 }, "
                               "trainable { name = \"b\", rows = 64 } } }";
    step_list l;
    fpa_candidate leaning, whole;
    list_steps(&l, body, 128);
    assert_true(cuda_fastest(&l.geometry, &l.room, &l.size, &leaning));
    const double blocks = (double)l.room.occupancy[CUDA_DECODE] * l.room.multiprocessors;
    const double rows =
        blocks * l.geometry.decode_resident_row * l.geometry.features / (double)leaning.segments;
    assert_true(rows < 1.2 * l.room.gpu->cache_size);
    l.geometry.decode_resident_row = 16;
    assert_true(cuda_fastest(&l.geometry, &l.room, &l.size, &whole));
    assert_true(whole.segments < leaning.segments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_take_what_was_measured_within_15_percent),
        cmocka_unit_test(the_blocks_that_were_faster_are_chosen),
        cmocka_unit_test(rows_of_a_learned_projection_are_waited_for),
        cmocka_unit_test(blocks_of_rows_that_lean_stay_near_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
