/* heads: what the emulation runs; CUDA kernels of sm_90a of each kind. */
#ifndef FPAC_TESTS_EMULATE_HEADS_H
#define FPAC_TESTS_EMULATE_HEADS_H

enum { EMULATED_MOST_HEADS = 96 };

static const char emulated_heads[] =
    "local function eighths(d, n) local v = {} for i = 1, d do v[i] = i <= n and 1 + i % 4 / 8 or 0 end "
    "return "
    "diagonal(v) end\n"
    "local function some(rows, d, seed) return dense(orthogonal { rows = rows, d = d, seed = seed }) end\n"
    "local function signs(rows, d)\n"
    "  local rows_of = {}\n"
    "  for r = 1, rows do\n"
    "    rows_of[r] = {}\n"
    "    for c = 1, d do rows_of[r][c] = (r * r + 3 * r * c + c // 2) % 5 < 3 and 1 or -1 end\n"
    "  end\n"
    "  return dense(rows_of)\n"
    "end\n"
    "local function many(rows, seed)\n"
    "  local o = { rows = rows, d = 32, seed = seed }\n"
    "  return dense { heads = { orthogonal(o), orthogonal { rows = rows, d = 32, seed = seed + 1 } } }\n"
    "end\n"
    "local function h(name, x)\n"
    "  x.name, x.d, x.dv, x.dtype = name, x.d or 32, x.dv or 16, x.dtype or 'bf16'\n"
    "  x.chunk, x.terms = x.chunk or 64, x.terms or tspow { d = 32, degree = 2, block = 8 }\n"
    "  return head(x)\n"
    "end\n"
    "return {\n"
    "  h('plain', {}),\n"
    "  h('normal', { normalize = 'sum' }),\n"
    "  h('gated', { gate = true }),\n"
    "  h('gatednorm', { gate = true, normalize = 'one_plus_sum', scale = 1 / 4 }),\n"
    "  h('half', { dtype = 'f16', state_dtype = 'f16', scale = 1 / 4, normalize = 'max' }),\n"
    "  h('open', { causal = false, normalize = 'sum' }),\n"
    "  h('openpacked', { causal = false, dv = 40, dtype = 'f16', state_dtype = 'f16', scale = 1 / 4,\n"
    "    terms = { term { some(24, 32, 1), some(24, 32, 2) } } }),\n"
    "  h('openrows', { causal = false, d = 72, dv = 136, dtype = 'f16', scale = 1 / 8,\n"
    "    terms = { term {}, term { identity(), weight = 3 } } }),\n"
    "  h('openmaps', { causal = false, d = 48, dv = 64, terms = linear { map_q = silu, map_k = softplus }, "
    "scale = 1 / 2, normalize = 'sum' }),\n"
    "  h('openlinear', { causal = false, d = 80, dv = 20, dtype = 'f16', terms = linear { weight = 3 }, "
    "scale = 1 / 8, normalize = 'sum' }),\n"
    "  h('opentrained', { causal = false, d = 24, normalize = 'sum', terms = { term {\n"
    "    trainable { name = 'a', rows = 10 }, trainable { name = 'b', rows = 9, shared = true } } } }),\n"
    "  h('paired', { terms = { term { some(24, 32, 1), some(24, 32, 2) } }, gate = true }),\n"
    "  h('learned', { terms = { term { trainable { name = 'w', rows = 13 }, some(24, 32, 3) }, "
    "term { trainable { name = 'g', diagonal = true }, trainable { name = 'w', rows = 13 }, weight = 3 } } "
    "}),\n"
    "  h('cubic', { d = 16, dv = 24, terms = tspow { d = 16, degree = 3, block = 8 } }),\n"
    "  h('wide', { d = 192, terms = { term { some(8, 192, 1), some(184, 192, 2) }, term { some(8, 192, 3), "
    "some(184, 192, 4) } } }),\n"
    "  h('blocks', { d = 48, dv = 64, terms = tspow { d = 48, degree = 2, block = 8 } }),\n"
    "  h('shared', { dv = 64, gate = true, scale = 1 / 4, state_dtype = 'bf16' }),\n"
    "  h('sharednorm', { dv = 40, normalize = 'sum' }),\n"
    "  h('few', { d = 16, dv = 64, scale = 1 / 4, normalize = 'sum', terms = taylor { degree = 2 } }),\n"
    "  h('fewgated', { dv = 40, gate = true, normalize = 'max', terms = term { some(12, 32, 1), some(16, 32, "
    "2) } }),\n"
    "  h('fewhalf', { d = 24, dv = 20, dtype = 'f16', state_dtype = 'f16', scale = 1 / 4, normalize = "
    "'one_plus_sum', gate = true,\n"
    "    terms = { term { select(range(1, 8)), some(9, 24, 1), weight = 3 }, term { some(9, 24, 1) }, term "
    "{} } }),\n"
    "  h('fewtwice', { d = 16, dv = 128, scale = 1 / 4, terms = taylor { degree = 2 } }),\n"
    "  h('fewodd', { d = 16, dv = 80, normalize = 'sum', terms = taylor { degree = 2 } }),\n"
    "  h('fewwide', { d = 64, dv = 64, terms = term { some(16, 64, 1), some(32, 64, 2) } }),\n"
    "  h('fewcubic', { d = 48, dv = 64, terms = term { some(8, 48, 1), some(8, 48, 2), some(8, 48, 3) } }),\n"
    "  h('fewtrained', { d = 24, terms = { term { trainable { name = 'a', rows = 10 }, trainable { name = "
    "'b', "
    "rows = 9, shared = true } }, term { trainable { name = 'g', diagonal = true } } } }),\n"
    "  h('linear', { terms = linear {}, gate = true, normalize = 'sum' }),\n"
    "  h('thin', { terms = linear {}, state_dtype = 'bf16', scale = 1 / 4 }),\n"
    "  h('clustered', { dv = 64, terms = linear {}, gate = true, normalize = 'sum', scale = 1 / 4 }),\n"
    "  h('weighted', { d = 48, dv = 64, terms = linear { weight = 3 }, gate = true }),\n"
    "  h('clustereddeep', { d = 112, dv = 64, terms = linear {}, gate = true, normalize = 'sum', scale = 1 / "
    "8 "
    "}),\n"
    "  h('deep', { d = 256, dv = 64, terms = linear {}, gate = true, normalize = 'sum', scale = 1 / 16 }),\n"
    "  h('deeper', { d = 176, dv = 80, dtype = 'f16', terms = linear {}, scale = 1 / 8 }),\n"
    "  h('rotated', { d = 128, dv = 128, terms = term { some(64, 128, 1) } }),\n"
    "  h('manydots', { dv = 20, gate = true, normalize = 'sum', scale = 1 / 2, terms = { term { some(8, 32, "
    "1), "
    "some(8, 32, 2), some(8, 32, 3) }, term { some(8, 32, 4), some(4, 32, 5), some(8, 32, 6), weight = 3 } } "
    "}),\n"
    "  h('manypowers', { dtype = 'f16', terms = { term { some(8, 32, 1), some(12, 32, 2), some(8, 32, 3), "
    "some(3, 32, 4), some(2, 32, 5) } } }),\n"
    "  h('fourfold', { d = 10, dv = 24, scale = 1 / 4, terms = power { degree = 4, weight = 1 } }),\n"
    "  h('halves', { d = 24, dv = 36, dtype = 'f16', gate = true, normalize = 'sum', scale = 1 / 4, terms = "
    "{\n"
    "    term { some(20, 24, 1) }, term {}, term { trainable { name = 'w', rows = 8 }, eighths(24, 9), "
    "some(7, 24, 2) },\n"
    "    term { trainable { name = 'g', diagonal = true }, some(2, 24, 3), some(3, 24, 4), weight = 3 } } "
    "}),\n"
    "  h('sparse', { d = 21, dv = 24, terms = power { degree = 3, weight = 1 } }),\n"
    "  h('fewpadded', { d = 20, dv = 28, gate = true, terms = term { some(12, 20, 1), some(16, 20, 2) } }),\n"
    "  h('rows', { d = 152, dv = 150, terms = linear {}, gate = true, scale = 1 / 16, normalize = 'sum' }),\n"
    "  h('rowshalf', { d = 72, dv = 136, dtype = 'f16', terms = { term { some(60, 72, 1) }, term { "
    "identity(), "
    "weight = 3 } }, scale = 1 / 4 }),\n"
    "  h('turned', { d = 248, dv = 72, scale = 1 / 16, terms = term { some(240, 248, 1) } }),\n"
    "  h('chosen', { d = 131, dv = 24, dtype = 'f16', scale = 1 / 4, terms = { term { select(range(3, 18)), "
    "select(range(30, 36)) },\n"
    "    term { select(range(11, 20)), select(range(40, 47)), some(4, 131, 1), weight = 3 } } }),\n"
    "  h('scaled', { d = 77, dv = 72, gate = true, scale = 1 / 8, terms = term { eighths(77, 70) } }),\n"
    "  h('shifted', { d = 29, dv = 40, dtype = 'f16', scale = 1 / 8, normalize = 'sum',\n"
    "    terms = inhomogeneous { degree = 2, constant = 1 } }),\n"
    "  h('anyrows', { d = 77, dv = 83, terms = linear {}, scale = 1 / 8 }),\n"
    "  h('anyrowsgated', { d = 139, dv = 131, dtype = 'f16', state_dtype = 'f16', gate = true, normalize = "
    "'sum', scale = 1 / 8,\n"
    "    terms = linear { weight = 3 } }),\n"
    "  h('anyrowsnarrow', { d = 24, dv = 84, terms = linear {}, scale = 1 / 4 }),\n"
    "  h('anyrowstails', { d = 63, dv = 127, gate = true, terms = linear {}, scale = 1 / 8 }),\n"
    "  h('anyrowsfirst', { d = 80, dv = 72, normalize = 'sum', terms = term { select(range(1, 75)) }, scale "
    "= 1 / 8 }),\n"
    "  h('anyrowsfull', { d = 256, dv = 256, gate = true, terms = linear {}, scale = 1 / 16 }),\n"
    "  h('odd', { d = 48, dv = 50, terms = linear {}, scale = 1 / 4 }),\n"
    "  h('double', { dv = 128 }),\n"
    "  h('float', { dtype = 'f32', gate = true, normalize = 'sum', terms = linear {} }),\n"
    "  h('clusteredwide', { d = 72, dv = 128, dtype = 'f16', state_dtype = 'f16', terms = linear {} }),\n"
    "  h('mapped', { terms = term { identity():map(elu_plus_one) }, scale = 1 / 2, normalize = 'sum' }),\n"
    "  h('clusteredmaps', { d = 48, dv = 64, terms = linear { map_q = silu, map_k = softplus }, scale = 1 / "
    "2, "
    "gate = "
    "true, normalize = 'sum' }),\n"
    "  h('waves', { positions = 1, dtype = 'f16', terms = fourier { map = softplus } }),\n"
    "  h('clusteredwaves', { d = 64, dv = 64, positions = 1, terms = fourier { map = softplus }, scale = 1 / "
    "4, "
    "normalize = 'sum' }),\n"
    "  h('clusteredfavor', { d = 64, dv = 64, normalize = 'sum', terms = favor { d = 64, size = 128, seed = "
    "1, "
    "gamma = 1 / 8 } }),\n"
    "  h('clusteredsigns', { d = 24, dv = 24, dtype = 'f16', scale = 1 / 2, gate = true, terms = term { "
    "coordinates { signs(48, 24),\n"
    "    map = relu } } }),\n"
    "  h('clusteredtrained', { d = 40, dv = 64, scale = 1 / 2, normalize = 'sum', terms = term { trainable { "
    "name = 'w', rows = 80 }:map {\n"
    "    q = silu, k = exp } } }),\n"
    "  h('farwaves', { positions = 5, terms = fourier { map = exp, form = 'one_plus' }, normalize = 'sum' "
    "}),\n"
    "  h('placed', { positions = 2, key_mask = true, dv = 20, terms = term { coordinates { some(12, 32, 1),\n"
    "    angle = 'a', phase = 'b', amplitude = 'c', map_q = softplus, map_k = elu_plus_one } } }),\n"
    "  h('favor', { gate = true, key_mask = true, normalize = 'sum', terms = term { coordinates { some(24, "
    "32, 1),\n"
    "    map = exp, square = 1 / 2, shift = 1 / 4, gain = 1 / 2 } } }),\n"
    "  h('sketch', { scale = 1 / 2, terms = term { coordinates { { some(20, 32, 1), some(20, 32, 2) },\n"
    "    { some(20, 32, 3), some(20, 32, 4) }, gain = 2 } } }),\n"
    "  h('several', { dtype = 'f16', key_mask = true, terms = { term { coordinates { some(8, 32, 1),\n"
    "    trainable { name = 'w', rows = 8 }, map_q = silu, map_k = relu },\n"
    "    trainable { name = 'g', diagonal = true }:map(exp) }, term { select(range(3, 12)):map(softplus) } } "
    "}),\n"
    "  h('lonely', { dtype = 'f32', key_mask = true, positions = 1, terms = { term { coordinates { some(8, "
    "32, 1),\n"
    "    some(8, 32, 7), map_q = exp, map_k = relu }, coordinates { some(4, 32, 3), angle = 'a' } }, term {} "
    "} }),\n"
    "  h('lifted', { d = 21, scale = 1 / 2, terms = term { trainable { name = 'w', rows = 72, bias = true "
    "}:map {\n"
    "    q = silu, k = relu } } }),\n"
    "  h('broadlift', { d = 256, dv = 20, scale = 1 / 8, terms = term { coordinates { some(8, 256, 1), "
    "trainable "
    "{ "
    "name = 'w', rows = 8 } } } }),\n"
    "  h('lonelyopen', { d = 21, dv = 13, dtype = 'f32', causal = false, key_mask = true, scale = 1 / 2,\n"
    "    terms = term { trainable { name = 'w', rows = 72, bias = true }:map { q = silu, k = relu } } }),\n"
    "  h('far', { dtype = 'f16', state_dtype = 'f16', positions = 1, scale = 1 / 2, terms = term { "
    "coordinates {\n"
    "    some(9, 32, 5), some(9, 32, 6), map_q = one,\n"
    "    angle = dense { { 1 / 8 }, { 1 / 4 }, { 1 / 2 }, { 1 }, { 2 }, { 4 }, { 8 }, { 16 }, { 32 } } } } "
    "}),\n"
    "  h('manycoordinates', { d = 24, scale = 1 / 4, terms = term { trainable { name = 'w', rows = 520 "
    "}:map(relu) } }),\n"
    "  h('manyplain', { d = 24, dtype = 'f32', scale = 1 / 4, terms = term { trainable { name = 'w', rows = "
    "270 "
    "}:map(relu) } }),\n"
    "  h('broad', { d = 1000, dtype = 'f32', terms = term { trainable { name = 'w', rows = 16 }:map(relu) } "
    "}),\n"
    "  h('near', { d = 16, dv = 24, scale = 1 / 4, window = 20, normalize = 'sum', terms = taylor { degree = "
    "2 } "
    "}),\n"
    "  h('nearodd', { d = 21, dv = 27, dtype = 'f16', state_dtype = 'f16', scale = 1 / 5, window = 85,\n"
    "    normalize = 'max', terms = { term { some(7, 21, 1) }, term {} } }),\n"
    "  h('nearlifted', { d = 20, dv = 20, key_mask = true, scale = 1 / 4, window = 33, normalize = "
    "'one_plus_sum',\n"
    "    terms = term { coordinates { some(12, 20, 1), map_q = softplus, map_k = elu_plus_one } } }),\n"
    "  h('nearplain', { d = 10, dv = 13, dtype = 'f32', scale = 1 / 3, window = 16, normalize = 'sum',\n"
    "    state_dtype = 'bf16', terms = power { degree = 2 } }),\n"
    "  h('nearwide', { d = 24, dv = 80, dtype = 'f16', scale = -1 / 4, window = 70, normalize = "
    "'one_plus_sum',\n"
    "    terms = term { trainable { name = 'w', rows = 9 }, trainable { name = 'w', rows = 9 } } }),\n"
    "  h('nearsums', { d = 10, dtype = 'f32', products = 'plain', scale = 1 / 3, window = 1, normalize = "
    "'sum',\n"
    "    terms = power { degree = 2 } }),\n"
    "  h('headed', { terms = term { coordinates { { many(12, 1), many(12, 3) }, gain_q = 2 } } }),\n"
    "}\n";

/* The part that `make test` runs: a mechanism that any of the heads has is in one of these (a test walks
 * them). The first are the smallest set with every function that is emitted; the others add what is told
 * apart by constants. */
static const char *const emulated_fixed[] = {
    "fewgated",       /* fused_chunk of packed rows, projections, gates */
    "clustered",      /* a cluster that takes turns */
    "shared",         /* tiles; folded; state and read in two kernels, bf16 states */
    "fewtrained",     /* run-time matrices; portable state and read */
    "clusteredwide",  /* a cluster, f16, dv 128 */
    "paired",         /* packed rows; portable */
    "fewwide",        /* one pass whose sums do not fit in one turn */
    "half",           /* f16, states of f16, the larger of sum and eps */
    "open",           /* no mask: tiles, */
    "openpacked",     /* of packed rows, f16, */
    "opentrained",    /* and from panels of rows */
    "few",            /* segments' totals; constants in the kernel */
    "clustereddeep",  /* a cluster in which o has no place of its own */
    "gatednorm",      /* 1 + sum, with a gate */
    "manydots",       /* products of rows, padded values */
    "rowshalf",       /* features that are rows, packed from two sources */
    "clusteredmaps",  /* a cluster that maps queries and keys */
    "clusteredwaves", /* rows that are turned, not projected; a cluster that turns them */
    "clusteredfavor", /* a cluster that projects queries and keys */
    "thin",           /* a cluster that can begin with the last token */
    "chosen",         /* dots one after the other, rows as they have them */
    "turned",         /* a matrix that a block has no room for */
    "broadlift",      /* matrices that are read for each 64 tokens */
    "openmaps",       /* one pass without a mask, which maps queries and keys */
    "anyrows",        /* rows that begin at any address, by words */
    "anyrowsgated",   /* f16, weighted, two warpgroups of keys, blocks of more than 64 columns */
    "scaled",         /* rows from coordinates as they lie, weighted */
    "shifted",        /* and not weighted, among them ones */
    "placed",         /* coordinates that are functions of a position, masks */
    "favor",          /* squares, gates */
    "several",        /* parts of all kinds, f16 */
    "lonely",         /* coordinates by plain sums */
    "near",           /* a window, */
    "nearlifted",     /* of masked keys, beside coordinates */
    "lifted",         /* more rows than a block has at a time, constants, odd widths */
};

#endif
