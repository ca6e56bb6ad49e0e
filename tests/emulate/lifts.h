/* lifts: heads whose coordinates NAME_lift_rows makes, for the tests that compile and emulate it. */
#ifndef FPAC_TESTS_EMULATE_LIFTS_H
#define FPAC_TESTS_EMULATE_LIFTS_H

static const char lifted_heads[] =
    "local function some(rows, d, seed) return dense(orthogonal { rows = rows, d = d, seed = seed }) end\n"
    "local function h(name, x)\n"
    "  x.name, x.d, x.dv, x.dtype = name, x.d or 32, x.dv or 16, x.dtype or 'bf16'\n"
    "  x.chunk = x.chunk or 64\n"
    "  return head(x)\n"
    "end\n"
    "return {\n"
    "  h('mapped', { terms = term { identity():map(elu_plus_one) }, scale = 1/2, normalize = 'sum' }),\n"
    "  h('placed', { positions = 2, key_mask = true, dv = 20, terms = term { coordinates { identity(), angle = 'a', phase = 'b', amplitude = 'c', map = softplus } } }),\n"
    "  h('favor', { gate = true, key_mask = true, normalize = 'sum', terms = term { coordinates { some(24, 32, 1), map = exp, square = 1 / 2, shift = 1 / 4, gain = 1 / 2 } } }),\n"
    "  h('sketch', { terms = term { coordinates { { some(20, 32, 1), some(20, 32, 2) }, { some(20, 32, 3), some(20, 32, 4) }, gain = 2 } } }),\n"
    "  h('several', { dtype = 'f16', terms = { term { coordinates { some(8, 32, 1), trainable { name = 'w', rows = 8 }, map_q = silu, map_k = relu } , trainable{name='g', diagonal = true}:map(exp) }, term { select(range(3, 12)):map(softplus) } }, key_mask = true }),\n"
    "  h('plainly', { dtype = 'f32', key_mask = true, positions = 1, terms = { term { coordinates { some(8, 32, 1), some(8, 32, 7), map_q = exp, map_k = relu } , coordinates { some(4, 32, 3), angle = 'a' } }, term {} } }),\n"
    "}\n"
;

#endif
