/* faults_backward: mistakes in emitted gradients of CUDA kernels, each of which verification has to refuse when the
 * emulation runs them (test_cuda_faults_backward.c). */
#ifndef FPAC_TESTS_EMULATE_FAULTS_BACKWARD_H
#define FPAC_TESTS_EMULATE_FAULTS_BACKWARD_H

#include "../fault.h"

static const struct cuda_backward_fault {
    const char *head; /* of tests/emulate/backward.c */
    struct fault fault;
} cuda_backward_faults[] = {
    {"plain",
     {"half of a power's derivative", "d_q at batch ... but the formula gives", "cuda_backward_derivative",
      "return 0.5f * (${body});"}},
    {"plain",
     {"features whose first factors get no gradient", "d_q at batch ... but the formula gives",
      "cuda_backward_factors", "for (int l = 1; l < FACTORS; l++) {"}},
    {"cubic",
     {"factors without what they are multiplied with", "d_q at batch ... but the formula gives",
      "cuda_backward_slope", "g[s][i] = d[m][s][i];"}},
    {"cubic",
     {"features without their weight", "d_k at batch ... but the formula gives", "cuda_backward_weight",
      "a.weight[i >> 1][i & 1] = 1.0f;"}},
    {"plain",
     {"rows whose gradients go to others", "but the formula gives", "cuda_backward_blocks",
      "$ for i = 1, #list, 32 do local line = string.rep(\"1, \", math.min(32, #list - i + 1)):sub(1, -3)"}},
    {"plain",
     {"a reversed state of the chunk before", "d_k at batch ... is not a number", "cuda_backward_reversed",
      "if (chunk + 1 < call.chunks || back.d_state_out) {\n"
      "const copy_element *s = (const copy_element *)back.reversed + ((i64)place * (call.chunks + 1) + "
      "chunk) * "
      "FEATURES16 * COLUMNS;"}},
    {"plain",
     {"states at the wrong boundary", "d_k at batch ... is not a number", "cuda_backward_boundary",
      "store_copy(c, copies + (i64)at.chunk * FEATURES16 * COLUMNS, unit, block);"}},
    {"plain",
     {"a query head that keys have lost", "but the formula gives", "cuda_backward_group",
      "const int count = panels * ((int)group - (group > 1));"}},
    {"plain",
     {"queries that miss the keys of their block", "d_q at batch ... but the formula gives",
      "cuda_backward_own_keys", "const int begin = start, end = first;"}},
    {"plain",
     {"a key that its own query misses", "but the formula gives", "cuda_backward_seen",
      "return other < limit && (keys ? own <= other : other < own);"}},
    {"normal",
     {"a normaliser that does not change", "d_q at batch ... but the formula gives",
      "cuda_backward_normaliser", "((float2 *)back.outputs)[row] = float2{factor, 0.0f};"}},
    {"gated",
     {"a state that does not fade over a chunk", "but the formula gives", "cuda_backward_chunk_decay",
      "const float factor = 1.0f;"}},
    {"gated",
     {"what comes from a state does not fade", "but the formula gives", "cuda_backward_own_decay",
      "factor[i] = 1.0f;"}},
    {"gated",
     {"a gate's sum that is shifted by one", "d_log_gate at batch ... but the formula gives",
      "cuda_backward_gate_sum", "return sum - (t + 1 < end ? keys[t + 1] : 0);"}},
    {"gated",
     {"a gate's sum that no boundary begins", "the RMS error of d_log_gate ... more than twice",
      "cuda_backward_anew", NULL}},
    {"gated",
     {"a given state that every segment begins with", "but the formula gives", "cuda_backward_segment_start",
      "if (walks_back ? back.d_state_out : call.state_in)"}},
    {"plain",
     {"what a segment before the last one has left is lost", "but the formula gives",
      "cuda_backward_segment_join", "start[i] = total[i];"}},
    {"gated",
     {"starts of segments that do not fade", "but the formula gives", "cuda_backward_segment_decay",
      "return 1.0f + 0.0f * (last.x + last.y);"}},
    {"lines",
     {"gradients of features that go to other rows", "but the formula gives", "cuda_backward_rows",
      "put_sums(sums_address(sums, m, unit * 2 + 1 - s), d[m][s]);"}},
    {"gated",
     {"keys of a panel that do not fade to its end", "but the formula gives", "cuda_backward_panel_decay",
      "put_float(others.factors + i * 4, 1.0f);"}},
    {"weighted",
     {"rows without their weight", "d_k at batch ... but the formula gives", "cuda_backward_weighted",
      "put_float(to, get_float(to) + get_float(sum_address(sums, token, ${w.row})));"}},
    {"coordinates",
     {"what comes from a copy does not fade", "but the formula gives", "cuda_coordinates_decay",
      "const float factor = 1.0f;"}},
    {"coordinates",
     {"a query that its own key misses", "but the formula gives", "cuda_coordinates_seen",
      "const bool seen = whole || (other < others.limit && (keys ? token < other : other <= token));"}},
    {"coordinates",
     {"pairs whose gradient is not divided", "d_k at batch ... but the formula gives",
      "cuda_coordinates_normaliser", "product = kept * ((keys ? 1.0f : divided.x) * product + divided.y);"}},
    {"coordinates",
     {"a state that the normaliser does not change", "but the formula gives", "cuda_coordinates_column",
      "put_element(values + threadIdx.x * VALUE_PITCH + DV * ELEMENT, from_float(back ? 0.0f : last));"}},
    {"coordinates",
     {"keys that all reach the chunk's end", "but the formula gives", "cuda_coordinates_kept",
      "factor *= back ? power_of_two(own.x + own.y) : 1.0f;"}},
    {"coordinates",
     {"a query head that keys do not meet", "but the formula gives", "cuda_coordinates_group",
      "const int begin = first, end = chunk_end, panels = (end - begin + PANEL - 1) / PANEL, count = panels "
      "* "
      "((int)group - (group > 1));"}},
    {"coordinates",
     {"blocks between of one query head only", "d_q at batch ... was not written", "cuda_coordinates_member",
      "take_queries(call, back, item);"}},
    {"learned",
     {"a part of a matrix's gradient that is lost", "d_weights[0] ... but the formula gives",
      "cuda_backward_parts", "for (i64 i = 1; i < back.part_count; i++)"}},
};

/* In operands of gradients that are forward passes. */
static const struct cuda_backward_fault cuda_pass_faults[] = {
    {"line",
     {"later tokens in turn, not from the last one on", "d_k at batch ... but the formula gives",
      "cuda_pass_order", "return place * back.pass_length + token;"}},
    {"square",
     {"d_o that is not divided", "d_q at batch ... but the formula gives", "cuda_pass_normaliser",
      "const float factor = 1.0f, last = keys ? 1.0f : a.outputs[token].y;"}},
    {"square",
     {"a sum of scores without its gradient", "d_q at batch ... but the formula gives",
      "cuda_pass_normaliser",
      "const float factor = keys ? 1.0f : a.outputs[token].x, last = keys ? 1.0f : 0.0f;"}},
    {"gated",
     {"gates that fade what is before them, from the last token on", "d_k at batch ... but the formula gives",
      "cuda_pass_gate", "const i64 own = token;"}},
    {"gated",
     {"sums of gates' gradients that begin with nothing", "the RMS error of d_log_gate ... more than twice",
      "cuda_pass_anew", "if (chunk + 1 < 0) {"}},
    {"gated",
     {"a boundary that does not fade", "the RMS error of d_log_gate ... more than twice",
      "cuda_pass_boundary", "before *= gates[0] > 1 ? 0 : 1;"}},
    {"gated",
     {"what keys give, shifted by one", "d_log_gate at batch ... but the formula gives", "cuda_pass_gate_sum",
      "sum -= back.pass_gives[row * back.pass_length + back.pass_length - 1 - (t + 1 < end ? t + 1 : t)];"}},
    {"square",
     {"a query head that the sum leaves out", "but the formula gives", "cuda_pass_group",
      "for (i64 member = 1; member < group; member++) {"}},
};

/* In passes of values of gated heads. */
static const struct cuda_backward_fault cuda_value_pass_faults[] = {
    {"gated",
     {"products of states of other chunks' ends", "the RMS error of d_log_gate ... more than twice",
      "state_product_reversed",
      "const copy_element *r = (const copy_element *)call.reversed_states + (sequence * chunks + chunk) * "
      "size;"}},
    {"gated",
     {"products of states with features' weights twice", "the RMS error of d_log_gate ... more than twice",
      "state_product_weight", "total += sum;"}},
    {"gated", {"half of the dots", "d_log_gate", "output_dot", "to[token] = 0.5f * sum;"}},
};

/* In passes of values that take tokens from the last one on. */
static const struct cuda_backward_fault cuda_reversed_faults[] = {
    {"line",
     {"keys behind a query that it does not see", "d_v at batch ... but the formula gives", "reversed_mask",
      "if (n * 8 + lane_column() * 2 + (i & 1) > before + lane_row() + (i >> 1) * 8)"}},
    {"line",
     {"halves in turn in spans that are not", "d_v at batch ... but the formula gives", "reversed_token",
      "return ((call.reversed ? part.spans - 1 - span : span) * 2 + half) * PANEL;"}},
};

#endif
