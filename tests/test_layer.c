/* Layers: one call of unlike heads gives, bit for bit, what calls of its heads give. */
#include "layer_fixture.h"

enum { THREADS = 6 };

/* ---- the same bits as plain calls ---- */

/* Every head's o, den and state of the layer's call, by the part's own kernel on views of the same operands. */
static void check_parts(layer_fixture *f, fpa_form form)
{
    const fpa_layer_description *about = fpa_describe_layer(f->layer);
    layer_forward(f, form);
    for (int i = 0; i < about->part_count; i++)
        layer_compare_part(f, i, form);
}

static void a_call_equals_those_of_its_heads_in_every_form(void **state)
{
    layer_fixture *f = *state;
    static const fpa_form forms[] = {FPA_FORM_AUTO, FPA_FORM_PARALLEL, FPA_FORM_CHUNKED, FPA_FORM_RECURRENT};
    for (int i = 0; i < 4; i++) {
        layer_operands(f, (layer_sizes){.batch = 2, .length = 150, .group = 2, .state_in = true});
        check_parts(f, forms[i]);
        layer_operands(f, (layer_sizes){.batch = 1, .length = 33, .group = 1});
        check_parts(f, forms[i]);
    }
}

static void threads_do_not_change_bits(void **state)
{
    layer_fixture *f = *state;
    for (int form = FPA_FORM_PARALLEL; form <= FPA_FORM_RECURRENT; form++) {
        layer_operands(f, (layer_sizes){.batch = 1, .length = 200, .group = 2, .state_in = true});
        layer_set_threads(1);
        layer_forward(f, (fpa_form)form);
        layer_results once = layer_keep(f);
        for (int threads = 2; threads <= THREADS; threads++) {
            layer_set_threads(threads);
            layer_forget(f);
            layer_forward(f, (fpa_form)form);
            layer_check(f, &once);
        }
        layer_drop(&once);
    }
    layer_set_threads(2);
}

/* A workspace for fewer threads than there are now. */
static void fewer_threads_than_were_measured_are_enough(void **state)
{
    layer_fixture *f = *state;
    layer_operands(f, (layer_sizes){.batch = 1, .length = 90, .group = 1, .state_in = true});
    layer_set_threads(2);
    layer_forward(f, FPA_FORM_CHUNKED);
    layer_results once = layer_keep(f);
    layer_set_threads(THREADS);
    layer_forget(f);
    size_t needed;
    layer_set_threads(1);
    assert_int_equal(fpa_layer_workspace_size(f->layer, FPA_FORM_CHUNKED, &f->tensors, &needed, &f->error),
                     0);
    layer_set_threads(THREADS);
    assert_int_equal(
        fpa_layer_forward(f->layer, FPA_FORM_CHUNKED, &f->tensors, f->workspace, needed, &f->error),
        FPA_INVALID);
    assert_string_equal(f->error.where, "workspace");
    layer_set_threads(2);
    layer_forward(f, FPA_FORM_CHUNKED);
    layer_check(f, &once);
    layer_drop(&once);
}

/* ---- states ---- */

/* Split anywhere, with the state handed over: o of the second piece is that of the whole, to rounding. */
static void a_sequence_goes_on_from_its_state(void **state)
{
    layer_fixture *f = *state;
    enum { FIRST = 40 };
    layer_operands(f, (layer_sizes){.batch = 2, .length = 96, .group = 1});
    layer_forward(f, FPA_FORM_RECURRENT);
    layer_results whole = layer_keep(f);
    layer_forget(f);
    layer_show_tokens(f, 0, FIRST);
    layer_forward(f, FPA_FORM_RECURRENT);
    layer_show_tokens(f, FIRST, 96);
    f->tensors.state_in = f->tensors.state_out;
    layer_forward(f, FPA_FORM_RECURRENT);
    layer_check(f, &whole);
    layer_drop(&whole);
}

static void steps_bring_a_state_up_to_date_in_place(void **state)
{
    layer_fixture *f = *state;
    layer_operands(f, (layer_sizes){.batch = 2, .length = 12, .group = 2, .state_in = true});
    layer_forward(f, FPA_FORM_RECURRENT);
    layer_results whole = layer_keep(f);
    layer_forget(f);
    memcpy(f->state_out.data, f->state_in.data, f->state_in.bytes);
    f->tensors.state_in = f->tensors.state_out;
    for (int t = 0; t < 12; t++) {
        layer_show_tokens(f, t, t + 1);
        layer_step(f);
    }
    layer_check(f, &whole);
    layer_drop(&whole);
    f->tensors.state_in = NULL;
    assert_int_equal(fpa_layer_step(f->layer, &f->tensors, f->workspace, f->workspace_bytes, &f->error),
                     FPA_INVALID);
    assert_string_equal(f->error.where, "state_in");
}

static void the_parallel_form_reads_a_state_before_it_overwrites_it(void **state)
{
    layer_fixture *f = *state;
    layer_operands(f, (layer_sizes){.batch = 1, .length = 300, .group = 2, .state_in = true});
    layer_forward(f, FPA_FORM_PARALLEL);
    layer_results apart = layer_keep(f);
    layer_forget(f);
    memcpy(f->state_out.data, f->state_in.data, f->state_in.bytes);
    f->tensors.state_in = f->tensors.state_out;
    layer_forward(f, FPA_FORM_PARALLEL);
    layer_check(f, &apart);
    layer_drop(&apart);
}

/* Keys alone, sequences of different lengths, and pools. */
static void keys_lengths_and_pools_are_those_of_the_heads(void **state)
{
    layer_fixture *f = *state;
    int32_t offsets[] = {0, 17, 17, 50, 90}, in[] = {5, -1, 0, 3}, out[] = {4, 1, 2, 3};
    int64_t five = 5, four = 4;
    layer_operands(f, (layer_sizes){.batch = 1, .length = 90, .group = 2, .slots = 6, .state_in = true});
    DLTensor lengths = layer_index(offsets, &five), begins = layer_index(in, &four),
             ends = layer_index(out, &four);
    f->tensors.cu_seqlens = &lengths;
    f->tensors.state_index = &begins;
    f->tensors.state_out_index = &ends;
    for (int form = FPA_FORM_PARALLEL; form <= FPA_FORM_RECURRENT; form++)
        check_parts(f, (fpa_form)form);
    layer_operands(f, (layer_sizes){.batch = 2, .length = 50, .group = 1, .state_in = true});
    f->tensors.q = NULL;
    f->tensors.o = NULL;
    f->tensors.den = NULL;
    check_parts(f, FPA_FORM_AUTO);
}

/* Without windows `recent` is of all heads: the state is only read. */
static void recent_tokens_are_those_of_all_heads(void **state)
{
    layer_fixture *f = *state;
    layer_operands(f, (layer_sizes){.batch = 2, .length = 7, .group = 2, .state_in = true});
    layer_show_queries(f, 6);
    f->tensors.recent = 6;
    f->tensors.state_out = NULL;
    check_parts(f, FPA_FORM_AUTO);
}

/* Of each sequence as many as it has, and a query. */
static void recent_tokens_of_different_numbers_are_packed_for_all_heads(void **state)
{
    layer_fixture *f = *state;
    enum { TOKENS = 90, SEQUENCES = 4 };
    int32_t offsets[] = {0, 17, 18, 50, TOKENS}, in[] = {5, -1, 0, 3};
    int64_t five = SEQUENCES + 1, four = SEQUENCES;
    layer_operands(f, (layer_sizes){.batch = 1, .length = TOKENS, .group = 2, .slots = 6, .state_in = true});
    layer_show_queries(f, TOKENS - SEQUENCES);
    DLTensor lengths = layer_index(offsets, &five), begins = layer_index(in, &four);
    f->tensors.cu_seqlens = &lengths;
    f->tensors.state_index = &begins;
    f->tensors.recent = 39;
    f->tensors.state_out = NULL;
    check_parts(f, FPA_FORM_AUTO);
}

/* ---- windows ---- */

/* Pieces of a prompt with what is before them: each head takes as many of the tokens before as its own window has. */
static void a_layer_with_windows_goes_on_from_its_newest_tokens(void **state)
{
    layer_fixture *f = *state;
    enum { LENGTH = 60, FIRST = 25, OLDER = 9 }; /* the longest window is 10 */
    layer_open(f, WINDOW_SPEC, NULL);
    layer_operands(f, (layer_sizes){.batch = 2, .length = LENGTH, .group = 1});
    f->tensors.den = NULL; /* of windows not stored yet */
    layer_forward(f, FPA_FORM_RECURRENT);
    layer_results whole = layer_keep(f);
    layer_forget(f);
    layer_show_tokens(f, 0, FIRST);
    layer_forward(f, FPA_FORM_RECURRENT);
    layer_show_tokens(f, FIRST - OLDER, LENGTH);
    layer_show_queries(f, OLDER);
    f->tensors.recent = OLDER;
    f->tensors.state_in = f->tensors.state_out;
    layer_forward(f, FPA_FORM_RECURRENT);
    layer_check_near(f, &whole, 2e-5);
    layer_drop(&whole);
}

/* ---- gradients ---- */

static void gradients_are_those_of_the_heads(void **state)
{
    layer_fixture *f = *state;
    f->options.backward = 1;
    layer_open(f, GRADIENT_SPEC, NULL);
    assert_true(fpa_describe_layer(f->layer)->backward);
    layer_operands(f, (layer_sizes){.batch = 2, .length = 40, .group = 2, .state_in = true});
    layer_forward(f, FPA_FORM_CHUNKED);
    layer_compare_gradients(f, FPA_FORM_CHUNKED);
}

static void a_layer_without_gradients_says_so(void **state)
{
    layer_fixture *f = *state;
    fpa_gradient_tensors none = {0};
    size_t bytes;
    assert_int_equal(fpa_layer_backward_workspace(f->layer, FPA_FORM_AUTO, &none, &bytes, &f->error),
                     FPA_UNSUPPORTED);
    assert_non_null(strstr(f->error.message, "backward = 1"));
}

/* ---- what it is ---- */

static void a_layer_is_described(void **state)
{
    const layer_fixture *f = *state;
    const fpa_layer_description *about = fpa_describe_layer(f->layer);
    assert_string_equal(about->name, "mixed");
    assert_int_equal(about->part_count, 3);
    assert_int_equal(about->heads, 6);
    assert_int_equal(about->d, 32);
    assert_int_equal(about->dv, 5);
    assert_int_equal(about->gate, 1);
    assert_int_equal(about->normalized, 1);
    assert_int_equal(about->key_mask, 0);
    assert_int_equal(about->backward, 0);
    assert_int_equal(about->window, 0);
    assert_int_equal(about->weight_count, 1);
    int64_t elements = 0;
    int first = 0;
    for (int i = 0; i < 3; i++) {
        const fpa_layer_part *part = &about->parts[i];
        assert_int_equal(part->first, first);
        assert_int_equal(part->state_offset, elements);
        assert_int_equal(part->first_weight, 0); /* only the last part has one */
        first += part->heads;
        elements += part->heads * part->head->state_elements;
    }
    assert_int_equal(about->state_elements, elements);
    assert_ptr_equal(about->parts[0].head, fpa_describe(f->kernels[0]));
    assert_null(fpa_describe_layer(NULL));
    fpa_close_layer(NULL);
}

/* ---- mistakes ---- */

static void expect_call(layer_fixture *f, const char *where, const char *words)
{
    size_t bytes;
    assert_int_equal(fpa_layer_workspace_size(f->layer, FPA_FORM_AUTO, &f->tensors, &bytes, &f->error),
                     FPA_INVALID);
    assert_string_equal(f->error.where, where);
    if (!strstr(f->error.message, words))
        fail_msg("%s: %s, but '%s' is meant", f->error.where, f->error.message, words);
    layer_operands(f, (layer_sizes){.batch = 1, .length = 9, .group = 2, .state_in = true});
}

static void tensors_of_other_heads_are_refused(void **state)
{
    layer_fixture *f = *state;
    layer_operands(f, (layer_sizes){.batch = 1, .length = 9, .group = 2, .state_in = true});
    f->q.shape[2] = 11;
    expect_call(f, "q", "axis 2 has 11 heads, but the layer has 6 key/value heads");
    f->k.shape[2] = 5;
    expect_call(f, "k", "those of the layer are 6");
    f->v.shape[3] = 4;
    expect_call(f, "v", "value width");
    f->gate.shape[2] = 1;
    expect_call(f, "log_gate", "6");
    f->state_in.shape[1]--;
    expect_call(f, "state_in", "the states of the layer's heads have");
    f->state_in.stride[1] = 2;
    expect_call(f, "state_in", "");
    f->den.shape[2] = 6;
    expect_call(f, "den", "q has 12");
    f->tensors.recent = 10;
    expect_call(f, "recent", "is 10");
}

static void outputs_share_no_memory_with_other_parts(void **state)
{
    layer_fixture *f = *state;
    layer_operands(f, (layer_sizes){.batch = 1, .length = 9, .group = 2, .state_in = true});
    layer_forward(f, FPA_FORM_AUTO);
    const size_t width =
        32 * sizeof(float); /* behind the last query head's beginning, which is another part's */
    f->o.tensor.data = (char *)f->q.data + f->q.bytes - width;
    assert_int_equal(
        fpa_layer_forward(f->layer, FPA_FORM_AUTO, &f->tensors, f->workspace, f->workspace_bytes, &f->error),
        FPA_INVALID);
    assert_string_equal(f->error.where, "o");
    f->o.tensor.data = f->o.data;
    assert_int_equal(fpa_layer_forward(f->layer, FPA_FORM_AUTO, &f->tensors, f->state_in.data,
                                       f->workspace_bytes, &f->error),
                     FPA_INVALID);
    assert_string_equal(f->error.where, "workspace");
    assert_int_equal(fpa_layer_forward(f->layer, FPA_FORM_AUTO, &f->tensors, f->workspace, 100, &f->error),
                     FPA_INVALID);
    assert_non_null(strstr(f->error.message, "fpa_layer_workspace_size"));
    assert_int_equal(fpa_layer_forward(NULL, FPA_FORM_AUTO, &f->tensors, NULL, 0, &f->error), FPA_INVALID);
    assert_int_equal(fpa_layer_forward(f->layer, FPA_FORM_AUTO, NULL, NULL, 0, &f->error), FPA_INVALID);
}

static void kernels_that_are_no_layer_are_refused(void **state)
{
    layer_fixture *f = *state;
    fpa_layer *joined;
    const fpa_kernel *pair[2] = {f->kernels[0], f->kernels[1]};
    int heads[2] = {1, 0};
    assert_int_equal(fpa_join_layer("pair", pair, heads, 2, &joined, &f->error), FPA_INVALID);
    assert_non_null(strstr(f->error.message, "part 2 of the layer has 0 heads"));
    assert_null(joined);
    heads[1] = 1;
    assert_int_equal(fpa_join_layer("pair", pair, heads, 65, &joined, &f->error), FPA_INVALID);
    assert_int_equal(fpa_join_layer("pair", pair, heads, 0, &joined, &f->error), FPA_INVALID);
    pair[1] = NULL;
    assert_int_equal(fpa_join_layer("pair", pair, heads, 2, &joined, &f->error), FPA_INVALID);
    assert_int_equal(fpa_join_layer("pair", NULL, heads, 2, &joined, &f->error), FPA_INVALID);
    pair[1] = f->kernels[1];
    assert_int_equal(fpa_join_layer("pair", pair, heads, 2, &joined, &f->error), FPA_OK);
    assert_int_equal(fpa_describe_layer(joined)->heads, 2);
    fpa_close_layer(joined);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, layer_make, layer_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(a_call_equals_those_of_its_heads_in_every_form),
        CLAIM(threads_do_not_change_bits),
        CLAIM(fewer_threads_than_were_measured_are_enough),
        CLAIM(a_sequence_goes_on_from_its_state),
        CLAIM(steps_bring_a_state_up_to_date_in_place),
        CLAIM(the_parallel_form_reads_a_state_before_it_overwrites_it),
        CLAIM(keys_lengths_and_pools_are_those_of_the_heads),
        CLAIM(recent_tokens_are_those_of_all_heads),
        CLAIM(recent_tokens_of_different_numbers_are_packed_for_all_heads),
        CLAIM(a_layer_with_windows_goes_on_from_its_newest_tokens),
        CLAIM(gradients_are_those_of_the_heads),
        CLAIM(a_layer_without_gradients_says_so),
        CLAIM(a_layer_is_described),
        CLAIM(tensors_of_other_heads_are_refused),
        CLAIM(outputs_share_no_memory_with_other_parts),
        CLAIM(kernels_that_are_no_layer_are_refused),
    };
    toy_hurry();
    return cmocka_run_group_tests(tests, layer_group, layer_ungroup);
}
