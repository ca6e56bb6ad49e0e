#include "tensors_fixture.h"

static void a_valid_call_becomes_its_launch(void **state)
{
    fixture *f = *state;
    expect_fine(f);
    assert_int_equal(f->launch.batch, B);
    assert_int_equal(f->launch.length, L);
    assert_int_equal(f->launch.query_heads, HQ);
    assert_int_equal(f->launch.heads, H);
    assert_ptr_equal(f->launch.q, memory[0]);
    assert_ptr_equal(f->launch.k, memory[1]);
    assert_ptr_equal(f->launch.v, memory[2]);
    assert_ptr_equal(f->launch.o, memory[3]);
    assert_ptr_equal(f->launch.log_gate, memory[4]);
    assert_ptr_equal(f->launch.state_in, memory[5]);
    assert_ptr_equal(f->launch.state_out, memory[6]);
    assert_ptr_equal(f->launch.weights[0], memory[7]);
    assert_ptr_equal(f->launch.weights[1], memory[8]);
    static const int64_t q[] = {L * HQ * D_KEY, HQ * D_KEY, D_KEY}, gate[] = {L * H, H, 1},
                         s[] = {H * STATE, STATE};
    assert_memory_equal(f->launch.q_stride, q, sizeof q);
    assert_memory_equal(f->launch.gate_stride, gate, sizeof gate);
    assert_memory_equal(f->launch.state_in_stride, s, sizeof s);
    assert_memory_equal(f->launch.state_out_stride, s, sizeof s);
}

static void strides_and_byte_offset_are_passed_on(void **state)
{
    fixture *f = *state;
    /* q stored as [Hq, B, L, 8], the upper half of each row, heads backwards */
    static const int64_t q[] = {L * 8, 8, -(B * L * 8), 1};
    memcpy(f->q.stride, q, sizeof q);
    f->q.tensor.data = memory[0] + (HQ - 1) * B * L * 8;
    f->q.tensor.byte_offset = D_KEY * sizeof(float);
    f->k.tensor.strides = NULL; /* C order */
    expect_fine(f);
    assert_memory_equal(f->launch.q_stride, q, sizeof f->launch.q_stride);
    assert_ptr_equal(f->launch.q, memory[0] + (HQ - 1) * B * L * 8 + D_KEY);
    assert_int_equal(f->launch.k_stride[1], H * D_KEY);
}

static void the_stride_of_an_axis_of_one_does_not_matter(void **state)
{
    fixture *f = *state;
    operand *all[] = {&f->q, &f->k, &f->v, &f->o, &f->gate, &f->state_in, &f->state_out};
    for (int i = 0; i < 7; i++) {
        all[i]->shape[0] = 1;
        all[i]->stride[0] = INT64_MAX;
    }
    expect_fine(f);
}

/* One number of the valid call changed; axis -1 changes the number of axes. */
static void every_wrong_axis_is_named_with_both_lengths(void **state)
{
    static const struct {
        size_t operand; /* offset in fixture */
        int axis;
        int64_t length;
        const char *where, *message;
    } cases[] = {
        {offsetof(fixture, q), -1, 3, "q", "has 3 axes, but 4 are needed"},
        {offsetof(fixture, q), 3, 5, "q", "axis 3 has 5 elements, but the width of toy is 4"},
        {offsetof(fixture, q), 2, 4, "q", "axis 2 has 4 heads, but k has 3"},
        {offsetof(fixture, q), 2, 0, "q", "axis 2 has 0 heads, but k has 3"},
        {offsetof(fixture, q), 1, -1, "q", "axis 1 has the negative length -1"},
        {offsetof(fixture, k), 0, 3, "k", "axis 0 has 3 sequences, but q has 2"},
        {offsetof(fixture, k), 1, 6, "k", "axis 1 has 6 tokens, but q has 5"},
        {offsetof(fixture, k), 3, 3, "k", "axis 3 has 3 elements"},
        {offsetof(fixture, v), 1, 4, "v", "axis 1 has 4 tokens, but q has 5"},
        {offsetof(fixture, v), 2, 2, "v", "axis 2 has 2 heads, but k has 3"},
        {offsetof(fixture, v), 3, 7, "v", "axis 3 has 7 elements, but the value width of toy is 8"},
        {offsetof(fixture, o), -1, 5, "o", "has 5 axes"},
        {offsetof(fixture, o), 0, 1, "o", "axis 0 has 1 sequences"},
        {offsetof(fixture, o), 2, 3, "o", "axis 2 has 3 heads, but q has 6"},
        {offsetof(fixture, o), 3, 4, "o", "axis 3 has 4 elements"},
        {offsetof(fixture, gate), -1, 2, "log_gate", "has 2 axes, but 3 are needed"},
        {offsetof(fixture, gate), 1, 4, "log_gate", "axis 1 has 4 tokens"},
        {offsetof(fixture, gate), 2, 6, "log_gate", "axis 2 has 6 heads, but k has 3"},
        {offsetof(fixture, state_in), -1, 2, "state_in", "has 2 axes"},
        {offsetof(fixture, state_in), 0, 1, "state_in", "axis 0 has 1 sequences"},
        {offsetof(fixture, state_in), 1, 6, "state_in", "axis 1 has 6 heads"},
        {offsetof(fixture, state_in), 2, 79, "state_in",
         "axis 2 has 79 elements, but one head's state has 80"},
        {offsetof(fixture, state_out), 2, 8, "state_out",
         "axis 2 has 8 rows, but the head's features number 10"},
        {offsetof(fixture, state_out), 3, 4, "state_out", "axis 3 has 4 columns"},
        {offsetof(fixture, weights[0]), -1, 1, "weights[0] (W1)", "has 1 axes, but 2 are needed"},
        {offsetof(fixture, weights[0]), 0, 4, "weights[0] (W1)", "axis 0 has 4 rows, but the spec says 3"},
        {offsetof(fixture, weights[0]), 1, 3, "weights[0] (W1)", "axis 1 has 3 columns"},
        {offsetof(fixture, weights[1]), 0, 1, "weights[1] (W2)", "axis 0 has 1 heads, but k has 3"},
        {offsetof(fixture, weights[1]), -1, 1, "weights[1] (W2)",
         "shared = true in the spec makes it one for all"},
        {offsetof(fixture, weights[1]), 1, 3, "weights[1] (W2)", "axis 1 has 3 columns"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        operand *x = (operand *)((char *)f + cases[i].operand), before = *x;
        if (cases[i].axis < 0)
            x->tensor.ndim = (int)cases[i].length;
        else
            x->shape[cases[i].axis] = cases[i].length;
        expect_refused(f, cases[i].where, cases[i].message);
        *x = before;
    }
    expect_fine(f);
}

static void every_missing_tensor_is_named(void **state)
{
    fixture *f = *state;
    static const struct {
        size_t pointer; /* offset in fpa_tensors */
        const char *where;
    } cases[] = {
        {offsetof(fpa_tensors, q), "q"},
        {offsetof(fpa_tensors, k), "k"},
        {offsetof(fpa_tensors, v), "v"},
        {offsetof(fpa_tensors, o), "o"},
        {offsetof(fpa_tensors, log_gate), "log_gate"},
        {offsetof(fpa_tensors, weights), "weights"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fpa_tensors before = f->tensors;
        *(void **)((char *)&f->tensors + cases[i].pointer) = NULL;
        expect_refused(f, cases[i].where, "is NULL");
        f->tensors = before;
    }
    f->weight_list[1] = NULL;
    expect_refused(f, "weights[1] (W2)", "is NULL");
    assert_int_equal(tensors_check(f->head, &f->facts, f->device, TENSORS_DATA, NULL, f->weight_data,
                                   &f->launch, &f->error),
                     FPA_INVALID);
}

static void states_are_optional(void **state)
{
    fixture *f = *state;
    f->tensors.state_in = NULL;
    f->tensors.state_out = NULL;
    expect_fine(f);
    assert_null(f->launch.state_in);
    assert_null(f->launch.state_out);
}

static void a_gate_goes_with_a_gated_head_only(void **state)
{
    fixture *f = *state;
    f->head->gate = false;
    expect_refused(f, "log_gate", "has no gate");
    f->tensors.log_gate = NULL;
    expect_fine(f);
    assert_null(f->launch.log_gate);
}

static void a_normalised_head_takes_its_state_as_one_vector_only(void **state)
{
    fixture *f = *state;
    f->head->normalize = FPA_NORMALIZE_SUM;
    f->facts.state_elements = STATE + FEATURES;
    SHAPE(&f->state_in, 5, B, H, STATE + FEATURES);
    expect_refused(f, "state_out", "has 4 axes, but 3 are needed");
    SHAPE(&f->state_out, 6, B, H, STATE + FEATURES);
    expect_fine(f);
}

static void types_follow_the_head(void **state)
{
    fixture *f = *state;
    const DLDataType bf16 = {kDLBfloat, 16, 1}, f16 = {kDLFloat, 16, 1}, f32x2 = {kDLFloat, 32, 2};
    f->q.tensor.dtype = f32x2;
    expect_refused(f, "q", "2 lanes");
    f->q.tensor.dtype = bf16;
    expect_refused(f, "q", "f32");
    f->head->dtype = FPA_BF16;
    f->k.tensor.dtype = f->v.tensor.dtype = f->o.tensor.dtype = bf16;
    expect_fine(f);
    f->v.tensor.dtype = f16;
    expect_refused(f, "v", "bf16");
    f->v.tensor.dtype = bf16;
    f->head->state_dtype = FPA_F16;
    expect_refused(f, "state_in", "f16");
    f->state_in.tensor.dtype = f->state_out.tensor.dtype = f16;
    expect_fine(f);
    f->gate.tensor.dtype = bf16;
    expect_refused(f, "log_gate", "f32");
}

static void memory_has_to_be_there_and_aligned_unless_empty(void **state)
{
    fixture *f = *state;
    f->k.tensor.data = NULL;
    expect_refused(f, "k", "no memory");
    f->k.tensor.data = memory[1];
    f->k.tensor.byte_offset = 2;
    expect_refused(f, "k", "multiple of 4 bytes");
    f->k.tensor.byte_offset = 0;
    operand *all[] = {&f->q, &f->k, &f->v, &f->o, &f->gate};
    for (int i = 0; i < 5; i++) {
        all[i]->shape[1] = 0;
        all[i]->tensor.data = NULL;
    }
    expect_fine(f);
    assert_int_equal(f->launch.length, 0);
}

static void no_heads_at_all_is_a_valid_nothing(void **state)
{
    fixture *f = *state;
    operand *all[] = {&f->q, &f->k, &f->v, &f->o, &f->gate};
    for (int i = 0; i < 5; i++)
        all[i]->shape[2] = 0;
    f->state_in.shape[1] = f->state_out.shape[1] = f->weights[1].shape[0] = 0;
    expect_fine(f);
    assert_int_equal(f->launch.heads, 0);
}

static void inner_axes_have_to_be_contiguous(void **state)
{
    fixture *f = *state;
    operand *all[] = {&f->q, &f->k, &f->v, &f->o};
    static const char *const names[] = {"q", "k", "v", "o"};
    for (int i = 0; i < 4; i++) {
        all[i]->stride[3] = 2;
        expect_refused(f, names[i], "axis 3 has the stride 2");
        all[i]->stride[3] = 1;
    }
    f->state_out.stride[2] = DV + 1;
    expect_refused(f, "state_out", "axis 2 has the stride 9");
    f->state_out.stride[2] = DV;
    f->weights[1].stride[0] = D_KEY + 1;
    expect_refused(f, "weights[1] (W2)", "axis 0 has the stride 5");
}

static void sizes_that_do_not_fit_64_bits_are_refused(void **state)
{
    fixture *f = *state;
    operand *all[] = {&f->q, &f->k, &f->v, &f->o, &f->gate};
    f->k.stride[0] = INT64_MAX / 2;
    expect_refused(f, "k", "2^63 bytes");
    f->k.stride[0] = INT64_MIN;
    expect_refused(f, "k", "2^63 bytes");
    for (int i = 0; i < 5; i++)
        all[i]->shape[0] = all[i]->shape[1] = (int64_t)1 << 32;
    expect_refused(f, "q", "2^63 elements");
}

static void an_output_may_not_overlap_an_input(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {
        "q", "k", "v", "log_gate", "state_in", "weights[0] (W1)", "weights[1] (W2)"};
    const DLTensor *others[] = {&f->q.tensor,         &f->k.tensor,        &f->v.tensor,
                                &f->gate.tensor,      &f->state_in.tensor, &f->weights[0].tensor,
                                &f->weights[1].tensor};
    operand *outputs[] = {&f->o, &f->state_out};
    static const char *const output_names[] = {"o", "state_out"};
    for (int out = 0; out < 2; out++)
        for (int i = 0; i < 7; i++) {
            void *before = outputs[out]->tensor.data;
            outputs[out]->tensor.data = (float *)others[i]->data + 1; /* the first element stays apart */
            expect_refused(f, output_names[out], names[i]);
            outputs[out]->tensor.data = before;
        }
    f->state_out.tensor.data = memory[3];
    expect_refused(f, "state_out", "that of o");
}

static void a_workspace_may_not_overlap_any_tensor(void **state)
{
    fixture *f = *state;
    operand *const all[] = {&f->q,        &f->k,         &f->v,          &f->o,         &f->gate,
                            &f->state_in, &f->state_out, &f->weights[0], &f->weights[1]};
    static const char *const names[] = {"q",        "k",         "v",       "o",      "log_gate",
                                        "state_in", "state_out", "weights", "weights"};
    expect_fine(f);
    for (int i = 0; i < 9; i++) {
        char *first = all[i]->tensor.data;
        assert_int_equal(tensors_workspace(f->head, &f->tensors, first - 60, 64, &f->error), FPA_INVALID);
        assert_string_equal(f->error.where, "workspace");
        assert_non_null(strstr(f->error.message, names[i]));
        assert_int_equal(tensors_workspace(f->head, &f->tensors, first - 64, 64, &f->error), FPA_OK);
    }
}

static void neighbours_without_a_gap_do_not_overlap(void **state)
{
    fixture *f = *state;
    f->o.tensor.data = memory[0] + B * L * HQ * D_KEY; /* right behind q */
    expect_fine(f);
    f->o.tensor.data = memory[0] + B * L * HQ * D_KEY - 1;
    expect_refused(f, "o", "q");
}

/* [B, L, HQ d + HQ dv]: the queries and the outputs of a token, one behind the other; then [B, L, HQ, d + dv]. */
static void arrays_side_by_side_in_a_larger_one_do_not_overlap(void **state)
{
    fixture *f = *state;
    for (int inner = 0; inner < 2; inner++) {
        const int64_t token = HQ * (D_KEY + DV), head = inner ? D_KEY + DV : D_KEY,
                      behind = inner ? D_KEY : HQ * D_KEY;
        const int64_t q[] = {L * token, token, head, 1}, o[] = {L * token, token, inner ? head : DV, 1};
        memcpy(f->q.stride, q, sizeof q);
        memcpy(f->o.stride, o, sizeof o);
        f->o.tensor.data = memory[0] + behind;
        expect_fine(f);
        f->o.tensor.data = memory[0] + behind - 1;
        expect_refused(f, "o", "overlaps that of q");
        f->o.tensor.data = memory[0] + behind + 1; /* the end of a row is on the next one */
        expect_refused(f, "o", "overlaps that of q");
    }
}

static void a_state_may_be_updated_in_place_but_not_shifted(void **state)
{
    fixture *f = *state;
    f->state_out.tensor.data = f->state_in.tensor.data;
    expect_fine(f); /* [B, H, D, dv] over [B, H, N]: the same elements */
    assert_ptr_equal(f->launch.state_in, f->launch.state_out);
    f->state_out.tensor.data = memory[5] + 4;
    expect_refused(f, "state_out", "state_in");
    f->state_out.tensor.data = memory[5];
    f->state_out.stride[0] *= 2;
    expect_refused(f, "state_out", "state_in");
}

static void an_output_may_not_overlap_itself(void **state)
{
    fixture *f = *state;
    f->o.stride[1] = 0;
    expect_refused(f, "o", "axis 1 has the stride 0");
    f->o.stride[1] = DV - 1;
    expect_refused(f, "o", "elements overlap");
    f->o.stride[1] = DV; /* [B, Hq, L, dv] in memory */
    f->o.stride[2] = L * DV;
    expect_fine(f);
    f->o.stride[2] = -(L * DV);
    f->o.tensor.data = memory[3] + (HQ - 1) * L * DV;
    expect_fine(f);
    f->state_out.stride[1] = STATE - 1;
    expect_refused(f, "state_out", "elements overlap");
}

static void inputs_may_be_broadcast(void **state)
{
    fixture *f = *state;
    f->k.stride[0] = f->k.stride[2] = 0;
    f->gate.stride[2] = 0;
    expect_fine(f);
    assert_int_equal(f->launch.k_stride[2], 0);
}

static void a_workspace_is_measured_from_shapes_alone(void **state)
{
    fixture *f = *state;
    operand *all[] = {&f->q, &f->k, &f->v, &f->state_in, &f->state_out};
    for (int i = 0; i < 5; i++)
        all[i]->tensor.data = NULL;
    f->tensors.o = NULL;
    f->tensors.log_gate = NULL;
    f->tensors.weights = NULL;
    assert_int_equal(check(f, TENSORS_SHAPES), FPA_OK);
    assert_non_null(f->launch.state_in); /* given is not the same as absent */
    assert_null(f->launch.o);
    f->k.shape[1] = 4;
    assert_int_equal(check(f, TENSORS_SHAPES), FPA_INVALID);
    f->k.shape[1] = L;
    f->tensors.state_in = NULL;
    assert_int_equal(check(f, TENSORS_SHAPES), FPA_OK);
    assert_null(f->launch.state_in);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(a_valid_call_becomes_its_launch),
        CLAIM(strides_and_byte_offset_are_passed_on),
        CLAIM(the_stride_of_an_axis_of_one_does_not_matter),
        CLAIM(every_wrong_axis_is_named_with_both_lengths),
        CLAIM(every_missing_tensor_is_named),
        CLAIM(states_are_optional),
        CLAIM(a_gate_goes_with_a_gated_head_only),
        CLAIM(a_normalised_head_takes_its_state_as_one_vector_only),
        CLAIM(types_follow_the_head),
        CLAIM(memory_has_to_be_there_and_aligned_unless_empty),
        CLAIM(no_heads_at_all_is_a_valid_nothing),
        CLAIM(inner_axes_have_to_be_contiguous),
        CLAIM(sizes_that_do_not_fit_64_bits_are_refused),
        CLAIM(an_output_may_not_overlap_an_input),
        CLAIM(a_workspace_may_not_overlap_any_tensor),
        CLAIM(neighbours_without_a_gap_do_not_overlap),
        CLAIM(arrays_side_by_side_in_a_larger_one_do_not_overlap),
        CLAIM(a_state_may_be_updated_in_place_but_not_shifted),
        CLAIM(an_output_may_not_overlap_itself),
        CLAIM(inputs_may_be_broadcast),
        CLAIM(a_workspace_is_measured_from_shapes_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
