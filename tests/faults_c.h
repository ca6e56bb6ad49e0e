/* faults_c: mistakes in emitted C kernels, each of which verification has to refuse. */
#ifndef FPAC_TESTS_FAULTS_C_H
#define FPAC_TESTS_FAULTS_C_H

#include "fault.h"

static const struct fault c_faults[] = {
    {"one wrong weight", "but the formula gives", "piece_weight",
     "$ local a, first = prefix(piece.feature == 12 and { weight = 1, prefix = piece.prefix } or piece), "
     "piece.feature - tile.feature"},
    {"a weight on both sides", "but the formula gives", "weight_of_keys",
     "return (vf)((key & (vi)splat(weight)) | (~key & (vi)splat(weight)));"},
    {"one wrong row in one feature", "but the formula gives", "feature_row",
     "set${VL}(p + ${first + f} * T, a * get${VL}(x + ${piece.base + f + (piece.feature + f == 5 and 1 or "
     "0)} * T));"},
    {"a missing tile of the state", "but the formula gives", "slice_tile",
     "if (t != tiles + 1)\ntile(c, t, adds), adds = 1;"},
    {"a missing tile of the recurrent form", "but the formula gives", "token_slice_tile",
     "if (t != tiles + 1)\ntoken_tile(c, p, t->feature, t->features);"},
    {"features of another tile", "but the formula gives", "tile_features",
     "{${t.feature}, ${t.features}, ${row or 0}, ${row and \"NULL\" or \"features_\" .. (i == 2 and 0 or i - "
     "1)}},"},
    {"a key that its own query misses", "but the formula gives", "last_key",
     "$ whole_steps(\"            \", p, type, \"own\", \"v\", \" + m\", p.pairs and \"m / 2\" or \"m\")"},
    {"a product with a score of zero", "changed an earlier output", "own_key",
     "$ add_products(indent .. \"    \", \"c\", p.rows, p.panel, \"ak[ROW]\", \"b\", \"bk\", false)"},
    {"a mask that hides the own token", "but the formula gives", "own_token",
     "set${VL}(d, (vf)((vi)(kernel_of(${arguments}) * decay) & (age > 0)));"},
    {"a mask that shows the next token", "but the formula gives", "own_token",
     "set${VL}(d, (vf)((vi)(kernel_of(${arguments}) * decay) & (age >= -1)));"},
    {"a gate that is no exponential", "but the formula gives", "gate_exponential", "g = 1.0 + g;"},
    {"a gate applied to its own token", "cut after ... but the formula gives", "gate_suffix",
     "product *= exact[t];\ng->suffix[t] = (float)product;"},
    {"a state that does not decay", "cut after ... but the formula gives", "tile_decay",
     "const float decay = 1.0f;"},
    {"a recurrent state that does not decay", "cut after ... but the formula gives", "token_decay",
     "c.decay = 1;"},
    {"a denominator without the state", "chunked form ... cut after ... but the formula gives",
     "denominator_decay", "out[VALUES + t] *= 0;"},
    {"eps that nobody adds to a sum of weights", "sparse inputs ... but the formula gives", "output_factor",
     "const float factor = 1.0f / den;"},
    {"a chunk that forgets its first panel", "chunked form ... but the formula gives", "chunk_panels",
     "for (int j = 1; j < block; j++) {"},
    {"an initial state that is ignored", "cut after ... but the formula gives", "state_given",
     "if (!a->state_in || a->length) {"},
    {"a last token that is not written", "was not written", "stored_tokens",
     "for (int t = 0; t + (token > 0 && tokens < T) < tokens; t++)"},
    {"an output one element too long", "wrote outside the elements of o", "output_factor",
     "const float factor = 1.0f / divisor(den);\nto[DV] = 1;"},
    {"sequences that begin a token late", "sequences of different lengths", "c_sequence_offset",
     "return (a->cu_seqlens_bytes == 8 ? ((const int64_t *)a->cu_seqlens)[i] : ((const int32_t "
     "*)a->cu_seqlens)[i]) "
     "+ (i > 1);"},
    {"a boundary that takes the next one's first token", "sequences of different lengths",
     "c_sequence_length",
     "return a->cu_seqlens ? offset_of(a, b + 1) - offset_of(a, b) + (b == 1) : a->length;"},
    {"an index that nobody reads", "sequences of different lengths", "c_sequence_slot",
     "return index ? b : b;"},
    {"a state that is written where none is wanted",
     "sequences of different lengths ... that no sequence uses was written", "c_sequence_state_out",
     "own->state_out = a->state_out ? (state_stored *)a->state_out + (out < 0 ? a->state_out_slots - 1 : "
     "out) * "
     "a->state_out_stride[0] : NULL;"},
    {"a query beside another sequence's recent tokens", "sequences of different lengths", "c_recent_query",
     "query = b - (b > 1);"},
    {"packed recent tokens without one of them", "recent tokens of sequences of different lengths",
     "c_recent_count", "own->recent = own->length - 2;"},
    {"recent tokens without the query's own", "recurrent form ... recent tokens ... but the formula gives",
     "recent_keys", "for (int64_t end = a->recent; end > 0; end -= T) {"},
    {"recent tokens that do not fade", "recurrent form ... recent tokens ... but the formula gives",
     "recent_decay", "key_decay[j] = (float)(1.0f * between);"},
    {"a state that does not fade behind recent tokens",
     "recurrent form ... recent tokens ... but the formula gives", "recalled_values",
     "to[e] = to[e] + from[e];"},
    {"a denominator without recent tokens", "recurrent form ... recent tokens ... but the formula gives",
     "recalled_sum", "*den = decay * *den;"},
    {"a state that a recall changes",
     "recurrent form ... recent tokens ... a state that must not change was changed", "recall_queries",
     "token_queries(a, b, 0, h, h * group + g, queries, mine, w->o, s, 1, rank, team);"},
    {"keys without queries that are lost", "recurrent form ... recent tokens ... but the formula gives",
     "token_passes",
     "} while ((g += QUERY_LANES) < group);\nif (!group)\nmemset(s, 0, sizeof(float) * STATE);"},
    {"a key's weights on a later query head",
     "recurrent form, 1 x 2 tokens, 1 heads, 99 query heads ... but the formula gives", "later_lanes",
     "return t >= 0 ? key : (vi){0};"},
    {"the wrong key head of a group", "but the formula gives", "key_head", "u.h = u.query_head % a->heads;"},
};

/* Of heads that a thread walks in turn. */
static const struct fault abreast_faults[] = {
    {"heads that share a state", "but the formula gives", "state_abreast", "own.state += 0 * place;"},
    {"states that overlap", "but the formula gives", "state_abreast",
     "own.state += place * (STATE_ROOM / 2);"},
};

/* The same of a head with a window and a mask of keys: what is particular to windows. */
static const struct fault window_faults[] = {
    {"a window that is one key too long", SAYS_WRONG, "window_keys",
     "return (distance >= 0) & (distance <= WINDOW) & kept;"},
    {"a window that is one key too short", SAYS_WRONG, "window_keys",
     "return (distance >= 0) & (distance < WINDOW - 1) & kept;"},
    {"a window that shows the next token", "but the formula gives", "window_keys",
     "return (distance >= -1) & (distance < WINDOW) & kept;"},
    {"masked keys in the window", "is not a number", "window_keys",
     "return (distance >= 0) & (distance < WINDOW) & (kept | -1);"},
    {"a key between the window and the older ones", SAYS_WRONG, "window_older",
     "weight = choose(distance > WINDOW, shrink * kernel_of(${arguments}), weight);"},
    {"a largest exponent that is not subtracted", "large inputs ... o at batch", "window_largest",
     "(void)raise_largest;"},
    {"outputs that stay behind a larger exponent", SAYS_WRONG, "window_raised",
     "set${VL}(factor, splat(1.0f) + 0 * (get${VL}(largest_of(out) + t) - m));"},
    {"a sum of weights that stays behind", SAYS_WRONG, "window_raised_sum", "(void)out;"},
    {"older keys whose weights do not shrink", SAYS_WRONG, "window_shrink",
     "const vf m = get${VL}(out + VALUES + T + t), shrink = splat(1.0f);"},
    {"a state that does not shrink", "parallel form ... but the formula gives", "window_state",
     "(void)scale_row;"},
    {"a first panel of keys that never enters", "chunked form ... but the formula gives", "entering_keys",
     "for (int b = c->read, at = c->read * c->lead; c->write && at < c->entering; at += key_tokens(c, at), "
     "b++) {"},
    {"a panel behind the state that is forgotten", "chunked form ... but the formula gives", "window_panels",
     "for (int panel = 1, start = panel_start(k, 1); start <= first && panel < panel_count(k); start = "
     "panel_start(k, ++panel)) {"},
    {"a state that lacks one more key than it should", "with recent tokens ... but the formula gives",
     "window_older_keys", "return larger(place - WINDOW, 0);"},
    {"a state that has a key of the window", "with recent tokens ... but the formula gives",
     "window_older_keys", "return larger(place - WINDOW + 2, 0);"},
    {"keys that do not enter at last", "with recent tokens ... but the formula gives", "window_last_keys",
     "(void)end;"},
    {"a parallel form without the first keys", "parallel form ... but the formula gives", "window_all_keys",
     "for (int64_t at = a->recent + u->first + (u->blocks - 1) * T; at > 0; at -= T) {"},
    {"a leaving key that counts twice", "recurrent form ... but the formula gives", "window_leaving",
     "o${j - 1} += p[1] * (s${j - 1} + p[0] * v${j - 1});"},
    {"a leaving key that is lost", "recurrent form ... but the formula gives", "window_entering",
     "token_queries(a, b, place, token, h, h * group + g, queries, mine, partial, s, enters && token < 0, "
     "rank, "
     "team);"},
    {"a leaving key that enters with every part of the query heads",
     "recurrent form ... 99 query heads ... but the formula gives", "window_entering",
     "(void)last, token_queries(a, b, place, token, h, h * group + g, queries, mine, partial, s, enters, "
     "rank, "
     "team);"},
    {"a decoded token without its own key", "recurrent form ... but the formula gives", "window_recalled",
     "for (int64_t end = place; end > from; end -= T) {"},
    {"values of the state that do not shrink", "recurrent form ... but the formula gives",
     "window_recalled_values", "to[e] = to[e] + near[e];"},
    {"a normaliser without the state", "recurrent form ... but the formula gives", "window_recalled_sum",
     "const float den = out[VALUES + 1 + g];"},
    {"a normaliser without the window", "recurrent form ... but the formula gives", "window_recalled_sum",
     "const float den = shrink[1 + g] * partial[queries * DV + 1 + g];"},
};

/* The same of a head without a mask: its two walks over the chunks. */
static const struct fault open_faults[] = {
    {"a last key that no query sees", "chunked form ... but the formula gives", "walk_tokens",
     "c.tokens = (int)(a->length - first < CHUNK ? a->length - first : CHUNK);\n"
     "c.tokens -= c.write && first > 0 && c.tokens > 1;"},
    {"queries that see the keys of the first chunk only", "chunked form ... but the formula gives",
     "key_walk",
     "struct fpa_launch one = *a;\n"
     "one.length = a->length < CHUNK ? a->length : CHUNK;\n"
     "chunked_walk(&one, index, c, rank, team);"},
    {"queries that are walked before the keys", "chunked form ... but the formula gives", "key_walk",
     "c.write = 0;\nc.read = 1;\nif (c.queries)\nchunked_walk(a, index, c, rank, team);\n"
     "c.write = 1;\nc.read = 0;\nchunked_walk(a, index, c, rank, team);\nc.queries = 0;"},
};

/* The same of a head whose coordinates are made of q and k. */
static const struct fault lift_faults[] = {
    {"a product of which one factor is there", "but the formula gives", "lift_factor",
     "set${VL}(x + ${at_r(part.first)} * T + t, get${VL}(x + (FACTOR + r) * T + t));"},
    {"a conjugate in a product of complex rows", "but the formula gives", "lift_imaginary",
     "set${VL}(im, a * d - b * c);"},
    {"half of a norm", "but the formula gives", "lift_square",
     "y -= ${flt(part.square / 2)} * get${VL}(x + NORM * T + t);"},
    {"the keys' map of queries", "but the formula gives", "lift_map_of_queries",
     "y = ${lift_maps[part.key.map]};"},
    {"a map that is not there", "but the formula gives", "lift_map", ";"},
    {"the phase of keys", "but the formula gives", "lift_phase",
     "double sum = keys[l] ? (double)phase[r] : 0;"},
    {"an amplitude that is not there", "but the formula gives", "lift_amplitude", ";"},
    {"coordinates of masked keys", "is not a number", "lift_kept",
     "set${VL}(x + ${at_r(half == 0 and part.first or second)} * T + t, y);"},
    {"a mask that nobody reads", "is not a number", "lift_mask",
     "return a->key_mask != NULL && b >= 0 && token >= 0;"},
    {"values of masked keys", "is not a number", "lift_values", ";"},
};

/* The same in pairs of bf16: what is particular to them. */
static const struct fault pair_faults[] = {
    {"halves of pairs in the wrong order", "but the formula gives", "pair_order",
     "$ order[#order + 1], order[#order + 2] = i == 0 and 16 or i, i == 0 and 0 or 16 + i"},
    {"a last key without its pair", "but the formula gives", "key_pairs", "const int n = keys / 2;"},
    {"a last token without its pair", "but the formula gives", "token_pairs",
     "pair_update(mine->pairs, value_pairs(values), c->s + (int64_t)place->feature * DV, tokens / 2, n, "
     "decay);"},
    {"a state's copy without its last rows", "cut after ... is not a number", "state_pairs",
     "pair_rows(c->s + (int64_t)place->feature * DV, DV, n - 4, DV, mine->rows);"},
    {"a dot of one row twice", "but the formula gives", "dot_pairs_packed",
     "setp(to + ${at} * T, pair(get${VL}(x + ${dot[r]} * T), get${VL}(x + ${at == 0 and dot[r] or dot[r + "
     "1]} * T)));"},
    {"sums that do not decay", "chunked form ... but the formula gives", "sums_decay",
     "sum = dot_pairs(sum, getp(p + t / 2), 0x3f803f80 - (vi){0});"},
    {"a key that its own query misses", "but the formula gives", "half_pair",
     "c${i}_${j} = dot_pairs(c${i}_${j}, ak[${i}] - (vi){0}, b${j} & ${i > own and -1 or 0});"},
    {"a first half of features for both", "but the formula gives", "second_row",
     "setp(to + i, pair(get${VL}(from + i), r + 1 < rows ? get${VL}(from + i) : (vf){0}));"},
    {"a feature of queries twice in a pair", "but the formula gives", "query_features",
     "setp(to + ${(first + f) // 2} * T, pair(${waiting or value}, ${waiting or \"(vf){0}\"}));"},
    {"keys' features in pairs the wrong way round", "but the formula gives", "key_features",
     "setp(to${first + f > 0 and \" + \" .. first + f .. \" * T / 2\" or \"\"}, narrow(${feature(piece, f, "
     "b, "
     "\"next\")}, ${feature(piece, f, a, \"x\")}));"},
    {"a last vector of pairs that begins too early", "is not a number", "last_pairs",
     "const int i = next + VL < width ? next : width - VL - 1;"},
    {"a coordinate in its neighbour's place", "but the formula gives", "lower_half",
     "const vec${N} low${i} = scale * numbers${N}((words${N})r${i} >> 16), high${i} = low${i};"},
    {"values of two tokens in the wrong order", "but the formula gives", "stored_pairs",
     "setp(to + i, (vi)(__builtin_convertvector(high, words16) | __builtin_convertvector(low, words16) << "
     "16));"},
    {"a decay of two tokens", "but the formula gives", "scaled_pairs",
     "setp(to + i, pair(first * (vf)(halves << 16), first * (vf)(halves & -65536)));"},
    {"half of a sum of lanes", "but the formula gives", "lanes_added",
     "a += ${step > 1 and 1 or 0} * rearranged(a, ${table.concat(from, \", \")});"},
    {"scores of two keys in the wrong order", "parallel form ... but the formula gives", "whole_score",
     "${plan.pairs and string.format(\"setp(%s, pair(s%d_%d, s%d_%d));\", at, r + 1, v, r, v)}"},
};

/* The same of a linear head, whose rows are pairs as words are. */
static const struct fault word_faults[] = {
    {"a word's halves in the wrong order", "but the formula gives", "word_pairs",
     "if (pairs)\nsetp(pairs + ${i} * T, pair(high${i}, low${i}));"},
    {"tokens behind the squares without pairs", "is not a number", "rest_pairs", ";"},
    {"a last coordinate twice", "parallel form ... but the formula gives", "last_word",
     "setp(pairs + ${W // 2} * T, pair(get${VL}(x + ${W - 1} * T), get${VL}(x + ${W - 1} * T)));"},
    {"a chunk that adds its own keys twice", "chunked form ... but the formula gives", "own_once", "{"},
    {"a state's part that does not decay beside the chunk's own", "chunked form ... but the formula gives",
     "decayed_sums", "(void)decay;"},
    {"outputs of a register tile's first row in all of its rows", "chunked form ... but the formula gives",
     "output_sum", "write${part.width}(row${i} + ${part.at}, ${name}0_${j - 1});"},
    {"outputs of another panel", "chunked form ... but the formula gives", "whole_outputs",
     "c.o = c.at_once && c.tokens == T ? (stored *)token_at(a->o, a->o_stride, b, first - T, h * c.queries) "
     ": NULL;"},
    {"features of the neighbours", "but the formula gives", "word_features",
     "return pairs_of(x) + (place->row / 2 + 1) * T;"},
};

/* The same where words are all that there is. */
static const struct fault even_word_faults[] = {
    {"keys in a word's wrong half", "but the formula gives", "upper_feature",
     "setp(to + T / 2 + t / 2, lower_halves(a, b));"},
    {"the next word's features of queries", "is not a number", "words_of_queries",
     "return pairs_of(x) + (place->row / 2 + 1) * T;"},
    {"keys' words that are other words", "but the formula gives", "given_words",
     "setp(pairs + ${i} * T, (vi)r${i ~ 1});"},
};

/* The same of numbers in vectors of 16, of which a panel's dots with itself take halves. */
static const struct fault half_faults[] = {
    {"a half of a vector that begins too late", "is not a number", "own_half",
     "dots(qx, kx + j, p + j * T, ${R}, (j + 1) / 8 * 8 + 8, tokens);"},
    {"dots without the first half of a vector", "is not a number", "half_vector", ";"},
};

/* The same of a gated head with fewer features than values, which are read where they lie. */
static const struct fault value_faults[] = {
    {"values of the next column", "but the formula gives", "values_in_place",
     "c.v = beside || c.tokens % T ? c.w->v : token_at(a->v, a->v_stride, b, first, h) + 1;"},
    {"values of the token before, of the second chunk on", "but the formula gives", "values_in_place",
     "c.v = beside || c.tokens % T ? c.w->v : token_at(a->v, a->v_stride, b, first ? first - 1 : 0, h);"},
    {"features that do not decay to the chunk's end", "but the formula gives", "decayed_features",
     "(void)factor, set${VL}(to + f * T + t, get${VL}(p + f * T + t));"},
};

/* The same of all keys, in pairs, without a mask. */
static const struct fault open_pair_faults[] = {
    {"a score of no key", "parallel form ... but the formula gives", "whole_last", ";"},
};

#endif
