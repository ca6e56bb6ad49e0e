/* test_tensors_lift: positions, a mask of keys, and constants for so many heads, as calls give them. */
#include "tensors_fixture.h"

#include "head/lift.h"

enum { POSITIONS = 2, WIDTH = D_KEY - 1, BOOL = 6 /* DLPack's kDLBool */ };

typedef struct lifted {
    fixture f; /* first: the fixture's functions take it */
    operand positions, key_mask;
} lifted;

/* The fixture's head takes 3 numbers of q and k, 2 of a position, a mask, and constants of 3 heads. */
static int make_lifted(void **state)
{
    lifted *x = calloc(1, sizeof *x);
    void *plain = NULL;
    make_fixture(&plain);
    x->f = *(fixture *)plain;
    free(plain);
    fpa_head *head = x->f.head;
    head->lift = arena_array(&head->memory, 1, sizeof *head->lift);
    *head->lift = (fpa_lift){.width = WIDTH, .positions = POSITIONS, .key_mask = true};
    head->matrices[1].per_head = true;
    head->matrices[1].heads = H;
    SHAPE(&x->f.q, 0, B, L, HQ, WIDTH);
    SHAPE(&x->f.k, 1, B, L, H, WIDTH);
    SHAPE(&x->positions, 9, B, L, POSITIONS);
    SHAPE(&x->key_mask, 9, B, L);
    x->key_mask.tensor.data = memory[9] + 4096;
    x->key_mask.tensor.dtype = (DLDataType){BOOL, 8, 1};
    x->f.weight_list[0] = &x->f.weights[0].tensor;
    x->f.weight_list[1] = &x->f.weights[1].tensor;
    operand *all[] = {&x->f.q, &x->f.k,        &x->f.v,         &x->f.o,          &x->f.gate,
                      NULL,    &x->f.state_in, &x->f.state_out, &x->f.weights[0], &x->f.weights[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) {
            all[i]->tensor.shape = all[i]->shape;
            all[i]->tensor.strides = all[i]->stride;
        }
    x->f.tensors = (fpa_tensors){.q = &x->f.q.tensor,
                                 .k = &x->f.k.tensor,
                                 .v = &x->f.v.tensor,
                                 .o = &x->f.o.tensor,
                                 .log_gate = &x->f.gate.tensor,
                                 .state_in = &x->f.state_in.tensor,
                                 .state_out = &x->f.state_out.tensor,
                                 .weights = x->f.weight_list,
                                 .positions = &x->positions.tensor,
                                 .key_mask = &x->key_mask.tensor};
    *state = x;
    return 0;
}

static void positions_and_a_mask_are_passed_on(void **state)
{
    lifted *x = *state;
    static const int64_t positions[] = {L * POSITIONS, POSITIONS, 1}, mask[] = {L, 1};
    expect_fine(&x->f);
    assert_ptr_equal(x->f.launch.positions, memory[9]);
    assert_ptr_equal(x->f.launch.key_mask, memory[9] + 4096);
    assert_memory_equal(x->f.launch.position_stride, positions, sizeof positions);
    assert_memory_equal(x->f.launch.key_mask_stride, mask, sizeof mask);
    x->positions.stride[0] = 0; /* the same for all sequences */
    x->positions.stride[2] = L;
    x->key_mask.stride[0] = 1;
    x->key_mask.stride[1] = -B;
    x->key_mask.tensor.data = memory[9] + 4500;
    x->key_mask.tensor.dtype = (DLDataType){kDLUInt, 8, 1};
    x->key_mask.tensor.byte_offset = 1; /* bytes may begin anywhere */
    expect_fine(&x->f);
    assert_int_equal(x->f.launch.position_stride[2], L);
    assert_int_equal(x->f.launch.key_mask_stride[1], -B);
    assert_ptr_equal(x->f.launch.key_mask, (char *)(memory[9] + 4500) + 1);
}

static void a_position_of_one_number_needs_no_axis(void **state)
{
    lifted *x = *state;
    static const int64_t without[] = {L, 1, 0}, with[] = {L, 1, 0};
    SHAPE(&x->positions, 9, B, L);
    expect_refused(&x->f, "positions", "has 2 axes, but 3 are needed");
    x->f.head->lift->positions = 1;
    expect_fine(&x->f);
    assert_memory_equal(x->f.launch.position_stride, without, sizeof without);
    SHAPE(&x->positions, 9, B, L, 1);
    expect_fine(&x->f);
    assert_memory_equal(x->f.launch.position_stride, with, sizeof with);
}

static void every_wrong_axis_and_type_is_named(void **state)
{
    static const struct {
        size_t operand; /* offset in lifted */
        int axis;       /* -1: the number of axes; -2: DLPack's type of 8 bits; -3: of 32 */
        int64_t length;
        const char *where, *message;
    } cases[] = {
        {offsetof(lifted, positions), -1, 4, "positions", "has 4 axes, but 3 are needed"},
        {offsetof(lifted, positions), 0, 1, "positions", "axis 0 has 1 sequences, but q has 2"},
        {offsetof(lifted, positions), 1, L + 1, "positions", "axis 1 has 6 tokens, but q has 5"},
        {offsetof(lifted, positions), 2, 3, "positions", "axis 2 has 3 numbers, but positions of toy have 2"},
        {offsetof(lifted, positions), -3, kDLInt, "positions", "but f32 (code 2, 32 bits, 1 lane) is needed"},
        {offsetof(lifted, key_mask), -1, 1, "key_mask", "has 1 axes, but 2 are needed"},
        {offsetof(lifted, key_mask), 0, 3, "key_mask", "axis 0 has 3 sequences, but q has 2"},
        {offsetof(lifted, key_mask), 1, 4, "key_mask", "axis 1 has 4 tokens, but q has 5"},
        {offsetof(lifted, key_mask), -2, kDLInt, "key_mask", "but bool (code 6, 8 bits, 1 lane) or uint8"},
        {offsetof(lifted, key_mask), -3, kDLFloat, "key_mask", "the DLPack type (code 2, 32 bits, 1 lanes)"},
        {offsetof(lifted, f.q), 3, D_KEY, "q", "axis 3 has 4 elements, but the width of toy is 3"},
        {offsetof(lifted, f.k), 3, D_KEY, "k", "axis 3 has 4 elements, but the width of toy is 3"},
        {offsetof(lifted, f.k), 2, 2, "k", "axis 2 has 2 heads, but the constants of toy are for 3"},
    };
    lifted *x = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        operand *spoilt = (operand *)((char *)x + cases[i].operand), before = *spoilt;
        if (cases[i].axis < -1)
            spoilt->tensor.dtype = (DLDataType){(uint8_t)cases[i].length, cases[i].axis == -2 ? 8 : 32, 1};
        else if (cases[i].axis < 0)
            spoilt->tensor.ndim = (int)cases[i].length;
        else
            spoilt->shape[cases[i].axis] = cases[i].length;
        expect_refused(&x->f, cases[i].where, cases[i].message);
        *spoilt = before;
    }
    expect_fine(&x->f);
}

/* Phases and amplitudes are [heads, rows, 1], which [heads, rows] is too. */
static void a_matrix_of_one_column_may_be_a_vector(void **state)
{
    lifted *x = *state;
    fpa_matrix *matrix = &x->f.head->matrices[2];
    *matrix = (fpa_matrix){
        .kind = FPA_MATRIX_TRAINABLE, .name = "phase", .rows = D_KEY, .cols = 1, .per_head = true};
    expect_fine(&x->f); /* [H, D_KEY] so far */
    SHAPE(&x->f.weights[1], 8, H, D_KEY, 1);
    expect_fine(&x->f);
    SHAPE(&x->f.weights[1], 8, H, D_KEY + 1);
    expect_refused(&x->f, "weights[1] (phase)", "axis 1 has 5 rows, but the spec says 4");
    SHAPE(&x->f.weights[1], 8, H);
    expect_refused(&x->f, "weights[1] (phase)", "has 1 axes, but 3 are needed");
    SHAPE(&x->f.weights[1], 8, H, D_KEY, 2);
    expect_refused(&x->f, "weights[1] (phase)", "axis 2 has 2 columns, but the spec says 1");
}

static void they_go_with_heads_that_take_them_only(void **state)
{
    lifted *x = *state;
    x->f.tensors.positions = NULL;
    expect_refused(&x->f, "positions", "is NULL, but toy needs positions of 2 numbers");
    x->f.head->lift->positions = 0;
    expect_fine(&x->f);
    assert_null(x->f.launch.positions);
    x->f.tensors.positions = &x->positions.tensor;
    expect_refused(&x->f, "positions", "is given, but toy has no positions");
    x->f.head->lift->positions = POSITIONS;
    x->f.tensors.key_mask = NULL;
    expect_refused(&x->f, "key_mask", "is NULL, but toy needs a mask of keys");
    x->f.head->lift->key_mask = false;
    expect_fine(&x->f);
    assert_null(x->f.launch.key_mask);
    x->f.tensors.key_mask = &x->key_mask.tensor;
    expect_refused(&x->f, "key_mask", "is given, but toy has no mask of keys");
}

static void a_workspace_asks_for_neither(void **state)
{
    lifted *x = *state;
    x->f.tensors.positions = x->f.tensors.key_mask = NULL;
    assert_int_equal(check(&x->f, TENSORS_SHAPES), FPA_OK);
    x->f.tensors.key_mask = &x->key_mask.tensor;
    x->key_mask.shape[1]++;
    assert_int_equal(check(&x->f, TENSORS_SHAPES), FPA_INVALID);
}

/* Of the query and the recent tokens, as k has. */
static void recent_tokens_have_theirs(void **state)
{
    lifted *x = *state;
    x->f.tensors.state_out = NULL;
    x->f.tensors.recent = L - 1;
    x->f.q.shape[1] = x->f.o.shape[1] = 1;
    x->f.head->causal = true;
    expect_fine(&x->f);
    x->positions.shape[1] = 1;
    expect_refused(&x->f, "positions", "axis 1 has 1 tokens, but q's token and the recent ones are 5");
    x->positions.shape[1] = L;
    x->key_mask.shape[1] = L - 1;
    expect_refused(&x->f, "key_mask", "axis 1 has 4 tokens, but q's token and the recent ones are 5");
}

static void keys_without_queries_have_theirs(void **state)
{
    lifted *x = *state;
    x->f.tensors.q = NULL;
    x->f.tensors.o = NULL;
    expect_fine(&x->f);
    x->positions.shape[1] = 1;
    expect_refused(&x->f, "positions", "axis 1 has 1 tokens, but k has 5");
}

static void outputs_and_the_workspace_keep_apart_from_them(void **state)
{
    lifted *x = *state;
    void *const before = x->f.o.tensor.data;
    x->f.o.tensor.data = memory[9] + 1;
    expect_refused(&x->f, "o", "its memory overlaps that of positions");
    x->f.o.tensor.data = memory[9] + 4096;
    expect_refused(&x->f, "o", "its memory overlaps that of key_mask");
    x->f.o.tensor.data = before;
    expect_fine(&x->f);
    char *mask = (char *)(memory[9] + 4096);
    assert_int_equal(tensors_workspace(x->f.head, &x->f.tensors, mask + B * L, 64, &x->f.error), FPA_OK);
    assert_int_equal(tensors_workspace(x->f.head, &x->f.tensors, mask + B * L - 1, 64, &x->f.error),
                     FPA_INVALID);
    assert_non_null(strstr(x->f.error.message, "key_mask"));
    assert_int_equal(tensors_workspace(x->f.head, &x->f.tensors, memory[9], 64, &x->f.error), FPA_INVALID);
    assert_non_null(strstr(x->f.error.message, "positions"));
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_lifted, drop_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(positions_and_a_mask_are_passed_on),
        CLAIM(a_position_of_one_number_needs_no_axis),
        CLAIM(every_wrong_axis_and_type_is_named),
        CLAIM(a_matrix_of_one_column_may_be_a_vector),
        CLAIM(they_go_with_heads_that_take_them_only),
        CLAIM(a_workspace_asks_for_neither),
        CLAIM(recent_tokens_have_theirs),
        CLAIM(keys_without_queries_have_theirs),
        CLAIM(outputs_and_the_workspace_keep_apart_from_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
