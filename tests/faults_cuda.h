/* faults_cuda: mistakes in emitted CUDA kernels that every GPU has, each of which verification has to refuse.
 */
#ifndef FPAC_TESTS_FAULTS_CUDA_H
#define FPAC_TESTS_FAULTS_CUDA_H

#include "fault.h"

static const struct fault cuda_faults[] = {
    {"one wrong weight", SAYS_WRONG, "feature_weights",
     "$ for f, w in ipairs(plan.feature_weights) do texts[f] = flt(f == 2 and 1 or w) end"},
    {"one wrong row in one feature", SAYS_WRONG, "feature_rows",
     "$ local rows = { l == 1 and 5 or plan.factor_rows[l][1], table.unpack(plan.factor_rows[l], 2) }\n$ for "
     "_, line in ipairs(number_lines(rows, 32)) do"},
    {"a missing tile of the state", SAYS_WRONG, "state_groups",
     "for (int group = 0; group < GROUPS - 1; group++) {"},
    {"a mask that hides the own token", SAYS_WRONG, "keys_behind",
     "if (key >= behind + lane_row() + (i >> 1) * 8)"},
    {"a mask that shows the next token", SAYS_WRONG, "keys_behind",
     "if (key > 1 + behind + lane_row() + (i >> 1) * 8)"},
    {"values behind the causal edge that are multiplied", "changed an earlier output", "values_seen",
     "const bool edge = behind < -PANEL;"},
    {"a panel of keys that is forgotten", SAYS_WRONG, "chunk_output_first_key",
     "const int chunk = first / (int)call.chunk, first_key = chunk * (int)call.chunk + PANEL;"},
    {"scores that do not fade", SAYS_WRONG, "score_decay", ";"},
    {"a state that does not fade", SAYS_WRONG, "state_decay", "const float factor = 1.0f;"},
    {"keys that do not fade in the state", SAYS_WRONG, "state_key_decay",
     "put_element(decay + threadIdx.x * ELEMENT, from_float(1.0f));"},
    {"what is read of a state does not fade", SAYS_WRONG, "read_decay", "const float factor = 1.0f;"},
    {"segments that do not fade", "cut after ... but the formula gives", "carried_sum",
     "base[i] = base[i] + add[i];"},
    {"segments that are forgotten", "but the formula gives", "carried_segments",
     "for (i64 s = 1; s < segment; s++)"},
    {"an initial state that is ignored", "cut after ... a call of no tokens changed the state", "walk_given",
     "const bool given = segment < 0;"},
    {"an initial sum of weights that is ignored", "cut after ... a call of no tokens changed the state",
     "loaded_sum", ";"},
    {"a last token that is not written", "was not written", "flushed_queries",
     "if (query + 1 < count && part * NUMBERS < width)"},
    {"an output one element too long", "wrote outside the elements of o", "flushed_block",
     "o += block * WIDTH;\nif (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)\no[DV] = from_float(1.0f);"},
    {"the wrong key head of a group", SAYS_WRONG, "chunk_output_head",
     "const i64 head = (u32)query_head % (u32)call.heads;"},
    {"a recurrent state that does not fade", SAYS_WRONG, "step_row_sums",
     "const float a = s.get(j) + key * v[j], b = ${decay_times}s.get(j + 1) + key * v[j + 1];"},
    {"a recurrent sum of weights that does not fade", SAYS_WRONG, "step_weight_sum",
     "const float a = step_get(z[u]) + key[f];"},
    {"a recurrent form that ignores its state",
     "recurrent form ... cut after ... a call of no tokens changed the state", "step_given",
     "if (is_given(call, task.number) && call.length > 1000000)"},
    {"recent tokens without the query's own",
     "recurrent form ... with recent tokens ... but the formula gives", "decode_recent_tokens",
     "const int slices = (int)call.slices, tokens = (int)call.recent;"},
    {"recent tokens that do not fade", "recurrent form ... with recent tokens ... but the formula gives",
     "decode_recent_weight", NULL},
    {"a state that does not fade behind recent tokens",
     "recurrent form ... with recent tokens ... but the formula gives", "decode_recent_state_decay",
     "const float decay = 1.0f;"},
    {"a sum of weights without recent tokens",
     "recurrent form ... with recent tokens ... but the formula gives", "decode_recent_sum", ";"},
};

#endif
