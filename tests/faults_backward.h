/* faults_backward: mistakes in emitted gradients of C kernels, each of which verification has to refuse. */
#ifndef FPAC_TESTS_FAULTS_BACKWARD_H
#define FPAC_TESTS_FAULTS_BACKWARD_H

#include "fault.h"

/* Of a power 3, gated and normalised. */
static const struct fault backward_faults[] = {
    {"a power's derivative without its exponent", "d_q at batch ... but the formula gives", "backward_slope",
     "return d0 * d0;"},
    {"features whose first factors get no gradient", "d_q at batch ... but the formula gives",
     "backward_factors", "for (int j = 1; j < piece->factors; j++) {"},
    {"a last factor without what it is multiplied with", "d_q at batch ... but the formula gives",
     "backward_last_factor", "set${VL}(to + f * T, get${VL}(to + f * T) + gradient);"},
    {"factors without the weight of their features", "d_k at batch ... but the formula gives",
     "backward_weight", NULL},
    {"a reversed state that has the chunk's own queries",
     "cut after ... d_k at batch ... but the formula gives", "backward_reversed",
     "chunk_keys(c, 1);\nif (chunk + 1 == c->cut->chunks)\nadd_queries(c);"},
    {"a reversed state of the chunk before", "d_v at batch ... but the formula gives", "backward_reversed",
     "add_queries(c);\nchunk_keys(c, 1);\ncontinue;"},
    {"a query head that the reversed state has lost", "cut after ... d_k at batch ... but the formula gives",
     "backward_group", "for (int64_t g = 0; g + (c->cut->queries > 1) < c->cut->queries; g++)"},
    {"a key that its own query misses", "d_q at batch ... but the formula gives", "backward_own_keys",
     "for (int j = 0; j < block; j++) {"},
    {"a normaliser that does not change", "d_q at batch ... but the formula gives", "backward_normaliser",
     "last[t] = 0;"},
    {"a gate's sum that is shifted by one", "d_log_gate at batch ... but the formula gives",
     "backward_gate_sum",
     "const float part = *gate - c->w->sum[t];\n*gate = (float)*running;\n*running += part;"},
    {"gradients of outputs of another sequence", "different lengths ... but the formula gives",
     "backward_sequence", "own->d_o = moved(a->d_o, a->d_o_stride, batch, begin > 0 ? begin - 1 : 0);"},
    {"the first sequence's gradient of its state", "different lengths ... but the formula gives",
     "backward_sequence_state", "own->d_state_out = moved_state(a->d_state_out, a->d_state_out_stride, 0);"},
    {"a gate's sum over the whole sequence", "the RMS error of d_log_gate ... more than twice",
     "backward_begin_anew", NULL},
};

/* Of run-time matrices with weights. */
static const struct fault backward_matrix_faults[] = {
    {"rows without their weight", "d_k at batch ... but the formula gives", "backward_weighted",
     "set${VL}(dx + ${w.from} * T + t, get${VL}(dx + ${w.from} * T + t) + get${VL}(dx + ${w.row} * T + t));"},
    {"a matrix whose gradient is a query's alone", "d_weights[0] ... but the formula gives",
     "backward_matrix",
     "rows_back(x, c->w->coordinates, dx, tokens, key, c->a->forward.weights, c->h, key[0] ? NULL : "
     "c->matrices);"},
    {"heads that have one part of the gradients", "d_weights[0] ... but the formula gives", "backward_parts",
     "add_matrices(a, 0, matrices + (i - first) * MATRICES);"},
};

/* Of maps and a function of the position, learned, with a mask of keys. */
static const struct fault backward_wave_faults[] = {
    {"a map that slopes everywhere alike", "d_q at batch ... but the formula gives", "backward_map",
     "const vf da = du;"},
    {"a phase that keys learn, too", "d_weights[1] ... but the formula gives", "backward_phase",
     "add_lanes(around, matrices + ${lift.matrices[part.phase].place} + r);"},
    {"masked keys that have gradients", "d_k at batch ... but the formula gives", "backward_kept",
     "const vi kept = ~(vi){0}, keys = keys_at(key, t);"},
};

/* Of random features. */
static const struct fault backward_random_faults[] = {
    {"a norm that nobody differentiates", "d_k at batch ... but the formula gives", "backward_square", NULL},
};

/* Of a sketch in the frequency domain. */
static const struct fault backward_sketch_faults[] = {
    {"a factor's gradient without the others", "d_q at batch ... but the formula gives", "backward_others",
     "set${VL}(x + ${factor_row(part, f, 0)} * T + t, ${inner});"},
    {"the product itself in the place of its conjugate", "d_q at batch ... but the formula gives",
     "backward_conjugate", "set${VL}(x + ${factor_row(part, f, 1)} * T + t, c * im + d * re);"},
};

/* Of a head without a mask. */
static const struct fault backward_everywhere_faults[] = {
    {"queries that miss later keys of their chunk", "d_q at batch ... but the formula gives",
     "backward_all_keys", "for (int j = 0; j <= block; j++) {"},
    {"queries that miss the last chunk's keys", "chunked form ... d_q at batch ... but the formula gives",
     "backward_state_of_all", "for (int64_t chunk = 0; chunk + 1 < c->cut->chunks && !pairs; chunk++) {"},
    {"keys that miss the first chunk's queries", "chunked form ... d_k at batch ... but the formula gives",
     "backward_reversed_of_all", "for (int64_t chunk = 1; chunk < c->cut->chunks && !pairs; chunk++) {"},
};

#endif
