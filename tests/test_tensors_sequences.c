/* test_tensors_sequences: offsets of sequences and indices of states, as calls give them. */
#include "tensors_fixture.h"

enum { TOTAL = 12, SEQUENCES = 4, SLOTS = 6 };

typedef struct packed {
    fixture f; /* first: the fixture's functions take it */
    operand offsets, in, out;
    int32_t narrow[SEQUENCES + 1], begin[SEQUENCES], end[SEQUENCES];
    int64_t wide[SEQUENCES + 1];
} packed;

static void point(operand *x, void *data, int bits)
{
    x->tensor.data = data;
    x->tensor.dtype = (DLDataType){kDLInt, (uint8_t)bits, 1};
    x->tensor.shape = x->shape;
    x->tensor.strides = x->stride;
}

static void move(operand *x)
{
    x->tensor.shape = x->shape;
    x->tensor.strides = x->stride;
}

/* Four sequences of 5, 0, 4 and 3 tokens; pools of six states, the same one in and out. */
static int make_packed(void **state)
{
    packed *x = calloc(1, sizeof *x);
    void *plain = NULL;
    make_fixture(&plain);
    x->f = *(fixture *)plain;
    free(plain);
    SHAPE(&x->f.q, 0, 1, TOTAL, HQ, D_KEY);
    SHAPE(&x->f.k, 1, 1, TOTAL, H, D_KEY);
    SHAPE(&x->f.v, 2, 1, TOTAL, H, DV);
    SHAPE(&x->f.o, 3, 1, TOTAL, HQ, DV);
    SHAPE(&x->f.gate, 4, 1, TOTAL, H);
    SHAPE(&x->f.state_in, 5, SLOTS, H, STATE);
    SHAPE(&x->f.state_out, 5, SLOTS, H, STATE);
    SHAPE(&x->offsets, 9, SEQUENCES + 1);
    SHAPE(&x->in, 9, SEQUENCES);
    SHAPE(&x->out, 9, SEQUENCES);
    memcpy(x->narrow, (int32_t[]){0, 5, 5, 9, 12}, sizeof x->narrow);
    memcpy(x->wide, (int64_t[]){0, 5, 5, 9, 12}, sizeof x->wide);
    memcpy(x->begin, (int32_t[]){0, 2, -1, 0}, sizeof x->begin);
    memcpy(x->end, (int32_t[]){5, 2, 1, -1}, sizeof x->end);
    point(&x->offsets, x->narrow, 32);
    point(&x->in, x->begin, 32);
    point(&x->out, x->end, 32);
    x->f.weight_list[0] = &x->f.weights[0].tensor;
    x->f.weight_list[1] = &x->f.weights[1].tensor;
    operand *all[] = {&x->f.q,        &x->f.k,         &x->f.v,          &x->f.o,         &x->f.gate,
                      &x->f.state_in, &x->f.state_out, &x->f.weights[0], &x->f.weights[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        move(all[i]);
    x->f.tensors = (fpa_tensors){.q = &x->f.q.tensor,
                                 .k = &x->f.k.tensor,
                                 .v = &x->f.v.tensor,
                                 .o = &x->f.o.tensor,
                                 .log_gate = &x->f.gate.tensor,
                                 .state_in = &x->f.state_in.tensor,
                                 .state_out = &x->f.state_out.tensor,
                                 .weights = x->f.weight_list,
                                 .cu_seqlens = &x->offsets.tensor,
                                 .state_index = &x->in.tensor,
                                 .state_out_index = &x->out.tensor};
    *state = x;
    return 0;
}

static void sequences_become_a_launch_of_so_many(void **state)
{
    packed *x = *state;
    expect_fine(&x->f);
    assert_int_equal(x->f.launch.batch, SEQUENCES);
    assert_int_equal(x->f.launch.length, TOTAL);
    assert_int_equal(x->f.launch.total, TOTAL);
    assert_ptr_equal(x->f.launch.cu_seqlens, x->narrow);
    assert_int_equal(x->f.launch.cu_seqlens_bytes, 4);
    assert_ptr_equal(x->f.launch.state_in_index, x->begin);
    assert_ptr_equal(x->f.launch.state_out_index, x->end);
    assert_int_equal(x->f.launch.state_in_slots, SLOTS);
    x->f.tensors.max_length = 5;
    point(&x->offsets, x->wide, 64);
    expect_fine(&x->f);
    assert_int_equal(x->f.launch.length, 5);
    assert_int_equal(x->f.launch.cu_seqlens_bytes, 8);
}

static void every_wrong_offset_is_named(void **state)
{
    packed *x = *state;
    static const struct {
        int place;
        int32_t offset;
        const char *says;
    } wrong[] = {
        {0, -1, "[0] is -1, less than 0"},
        {2, 4, "[2] is 4, less than 5"},
        {4, 13, "[4] is 13, but there are 12 tokens"},
        {1, 10, "[2] is 5, less than 10"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int32_t right = x->narrow[wrong[i].place];
        x->narrow[wrong[i].place] = wrong[i].offset;
        expect_refused(&x->f, "cu_seqlens", wrong[i].says);
        x->narrow[wrong[i].place] = right;
    }
    x->f.tensors.max_length = 4;
    expect_refused(&x->f, "cu_seqlens", "sequence 0 has 5 tokens, but max_length is 4");
}

static void every_wrong_index_is_named(void **state)
{
    packed *x = *state;
    static const struct {
        bool leaves;
        int place;
        int32_t slot;
        const char *says;
    } wrong[] = {
        {false, 1, SLOTS, "[1] is 6, but state_in has 6 slots"},
        {false, 1, -2, "[1] is -2, but state_in has 6 slots"},
        {true, 3, SLOTS, "[3] is 6, but state_out has 6 slots"},
        {true, 3, 5, "[3] is 5, but another sequence writes its state"},
        {true, 2, 0, "has slot 0, from which sequence 0 starts"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int32_t *slot = (wrong[i].leaves ? x->end : x->begin) + wrong[i].place, right = *slot;
        *slot = wrong[i].slot;
        expect_refused(&x->f, wrong[i].leaves ? "state_out_index" : "state_index", wrong[i].says);
        *slot = right;
    }
    expect_fine(&x->f);
}

static void what_does_not_go_together_is_refused(void **state)
{
    packed *x = *state;
    fpa_tensors *t = &x->f.tensors;
    const fpa_tensors right = *t;
    t->cu_seqlens = NULL;
    t->max_length = 3;
    expect_refused(&x->f, "max_length", "there is no cu_seqlens");
    *t = right;
    t->state_in = NULL;
    expect_refused(&x->f, "state_index", "there is no state_in");
    *t = right;
    t->state_index = NULL;
    expect_refused(&x->f, "state_in", "axis 0 has 6 sequences, but cu_seqlens has 4");
    *t = right;
    x->offsets.shape[0] = 0;
    expect_refused(&x->f, "cu_seqlens", "is empty, but S + 1 numbers");
    x->offsets.shape[0] = SEQUENCES;
    expect_refused(&x->f, "state_index", "axis 0 has 4 numbers, but sequences are 3");
}

/* k and what belongs to keys are packed; q and o have a token a sequence. */
static void pack_recent(packed *x, int64_t recent)
{
    x->f.tensors.recent = recent;
    x->f.tensors.state_out = NULL;
    x->f.tensors.state_out_index = NULL;
    x->f.q.shape[1] = x->f.o.shape[1] = SEQUENCES;
}

static void recent_tokens_of_sequences_are_packed(void **state)
{
    packed *x = *state;
    pack_recent(x, 4);
    expect_fine(&x->f);
    assert_int_equal(x->f.launch.batch, SEQUENCES);
    assert_int_equal(x->f.launch.length, 1);
    assert_int_equal(x->f.launch.total, TOTAL);
    assert_int_equal(x->f.launch.recent, 4);
    assert_ptr_equal(x->f.launch.cu_seqlens, x->narrow);
}

static void every_mistake_with_recent_tokens_of_sequences_is_named(void **state)
{
    packed *x = *state;
    pack_recent(x, 3);
    expect_refused(&x->f, "cu_seqlens",
                   "sequence 0 has 5 tokens, but with recent = 3 a sequence has at most that many and the "
                   "query's own token");
    x->f.tensors.recent = 4;
    x->narrow[2] = 4;
    expect_refused(&x->f, "cu_seqlens", "[2] is 4, less than 5");
    x->narrow[2] = 5;
    x->f.tensors.max_length = 5;
    expect_refused(&x->f, "max_length", "is given with recent");
    x->f.tensors.max_length = 0;
    x->f.q.shape[1] = x->f.o.shape[1] = TOTAL;
    expect_refused(&x->f, "q", "each sequence has one query, and cu_seqlens says 4");
    x->f.q.shape[1] = SEQUENCES;
    expect_refused(&x->f, "o", "axis 1 has 12 tokens, but q has 4");
    x->f.o.shape[1] = SEQUENCES;
    x->f.v.shape[1] = TOTAL - 1;
    expect_refused(&x->f, "v", "axis 1 has 11 tokens, but k has 12");
    x->f.v.shape[1] = TOTAL;
    x->f.tensors.state_out = &x->f.state_out.tensor;
    expect_refused(&x->f, "state_out", "with recent = 4 the state is not changed");
}

static void other_types_of_numbers_are_refused(void **state)
{
    packed *x = *state;
    point(&x->in, x->wide, 64);
    expect_refused(&x->f, "state_index", "but int32 (code 0, 32 bits, 1 lane) is needed");
    x->offsets.tensor.dtype = (DLDataType){kDLFloat, 32, 1};
    expect_refused(&x->f, "cu_seqlens", "int32 or int64");
}

/* Nothing is read there, so that wrong numbers are not seen. */
static void offsets_on_a_device_are_not_looked_at(void **state)
{
    packed *x = *state;
    const operand *all[] = {&x->f.q,          &x->f.k,          &x->f.v,        &x->f.o,
                            &x->f.gate,       &x->offsets,      &x->f.state_in, &x->f.state_out,
                            &x->f.weights[0], &x->f.weights[1], &x->in,         &x->out};
    x->narrow[2] = 100;
    x->end[0] = 100;
    x->f.device = (DLDevice){kDLCUDA, 0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ((operand *)(uintptr_t)all[i])->tensor.device = x->f.device;
    expect_fine(&x->f);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_packed, drop_fixture)
    const struct CMUnitTest tests[] = {
        CLAIM(sequences_become_a_launch_of_so_many),
        CLAIM(every_wrong_offset_is_named),
        CLAIM(every_wrong_index_is_named),
        CLAIM(what_does_not_go_together_is_refused),
        CLAIM(recent_tokens_of_sequences_are_packed),
        CLAIM(every_mistake_with_recent_tokens_of_sequences_is_named),
        CLAIM(other_types_of_numbers_are_refused),
        CLAIM(offsets_on_a_device_are_not_looked_at),
    };
    return cmocka_run_group_tests_name("tensors of sequences", tests, NULL, NULL);
}
