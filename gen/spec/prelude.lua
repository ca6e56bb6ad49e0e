-- prelude: the families of heads, written in the spec language itself.
--
-- A head's kernel is a sum of terms, a term a product of branches:
--
--     k(q, k) = sum over terms  weight * product over branches  (W q) . (W k)
--
-- This file runs before every spec. What it defines without `local` is vocabulary; copy a
-- function from here into a spec to make a variant of it. `sum` below always means the list
-- that a function returns: a head takes it as `terms = ...`.
--
-- What it builds on:
--   head { name =, d =, dv =, terms =, block =, chunk =, causal =, scale =, normalize =, eps =,
--          gate =, dtype =, state_dtype =, products =, positions =, key_mask =, window = }
--   term { branch, branch, ..., weight = w }      no branch: the constant 1
--   identity()                                    W = I
--   select { 1, 2, range(5, 8) }, select(range)   rows of I
--   diagonal { [range or index] = value, ... }    or a list of d values; the others are zero
--   dense { {...}, {...} }, dense "file.npy"      constant rows
--   dense { heads = { matrix, matrix, ... } }     constant rows, a matrix for each key/value head
--   trainable { name =, rows =, shared =, bias = } W given at run time, one per key/value head
--   trainable { name =, diagonal = true, shared = }
--   coordinates { factor, ..., map =, map_q =, map_k =, inner =, square =, shift =, gain =,
--                 gain_q =, gain_k =, angle =, phase =, amplitude = }
--                                                 rows made of projections: their product, a
--                                                 map of it, a function of the position; a factor
--                                                 is one of the above, or { real, imaginary }
--   branch:map(relu), branch:map { q = exp, k = relu }   coordinates { branch, map = ... }
--   relu, elu_plus_one, softplus, exp, silu, one, identity   maps
--   scaled(weight, sum)                           every weight times weight
--   range(first, last), #range                    1-based, both ends included; may be empty
--   ratio(p, q), sqrt(x), gram(x)                 exact numbers; gram(x) squares to x
--   npy "file.npy", orthogonal { rows =, d =, seed = }   matrices: lists of rows
--   gaussian { rows =, d =, seed =, orthogonal = }, signs { rows =, d =, seed = }   the same
--   hashes { d =, size =, count =, seed =, independence = }   indices, signs: lists of rows
--   spectrum { size =, index =, weights =, frequencies = }    real, imaginary: s exp(-2 pi i w h / size)
--   fields(what, options, name, ...)              refuse other fields, naming the nearest
--   whole(what, options, name, low, high, missing)       read an integer field
--   assert, error, ipairs, select(n, ...), tonumber (of exact numbers, too), type, math.{abs, ceil, floor, huge, max,
--   min, pi, sqrt, tointeger, type}
--
-- The greatest sizes: d and dv 1024, 16 branches a term, 131072 terms a head.

local max_width, max_degree, max_terms, max_coordinates = 1024, 16, 131072, 16384

sqrt2 = sqrt(2)
math.sqrt = sqrt

-- Maps of coordinates {...}; identity itself is the one that changes nothing.
relu, elu_plus_one, softplus = feature_map "relu", feature_map "elu_plus_one", feature_map "softplus"
exp, silu, one = feature_map "exp", feature_map "silu", feature_map "one"

-- Rows range.first .. range.last of a matrix, as a matrix.
--   dense(rows(orthogonal { d = 64, seed = 1 }, 1, 8))
function rows(matrix, first, last)
  assert(type(matrix) == "table", "rows(matrix, first, last) takes a list of rows, as npy and orthogonal return")
  assert(math.type(first) == "integer" and math.type(last) == "integer" and 1 <= first and first <= last
         and last <= #matrix, "rows(matrix, first, last): first and last run from 1 to the number of rows")
  local chosen = {}
  for r = first, last do chosen[#chosen + 1] = matrix[r] end
  return chosen
end

-- ---- counting ----

local function factorial(n)
  local product = 1
  for i = 2, n do product = product * i end
  return product
end

-- C(n, k). Each partial product is a binomial itself, so the division is exact.
local function binomial(n, k)
  local ways = 1
  for i = 1, k do ways = ways * (n - k + i) // i end
  return ways
end

-- x^n, exact where x is.
local function exact_power(x, n)
  local product = ratio(1, 1)
  for _ = 1, n do product = product * x end
  return product
end

-- Call visit(tuple) for each non-decreasing tuple of `length` numbers of 1..m, in order. The
-- table is used again after each call.
local function each_tuple(m, length, visit, tuple)
  tuple = tuple or {}
  if #tuple == length then return visit(tuple) end
  for c = tuple[#tuple] or 1, m do
    tuple[#tuple + 1] = c
    each_tuple(m, length, visit, tuple)
    tuple[#tuple] = nil
  end
end

-- p! / product of m_c!, where number c stands m_c times in the non-decreasing tuple; and how
-- often its last number does.
local function arrangements(p, tuple)
  local ways, times = factorial(p), 0
  for i, c in ipairs(tuple) do
    times = c == tuple[i - 1] and times + 1 or 1
    ways = ways // times
  end
  return ways, times
end

-- The rows whose products a family's q . k is a sum of: those of a branch, or of q and k, mapped.
local function rows_of(what, o)
  local mapped = o.map or o.map_q or o.map_k
  assert(not (o.of and mapped), what .. " has of = branch and a map; give the branch its map: of = branch:map(relu)")
  if mapped then return coordinates { identity(), map = o.map, map_q = o.map_q, map_k = o.map_k } end
  return o.of or identity()
end

-- n copies of one branch.
local function copies(branch, n)
  local list = {}
  for i = 1, n do list[i] = branch end
  return list
end

-- The term (q.k)^n with a weight, of other rows than q and k where they are given. n = 0 is the constant.
local function power_term(n, weight, branch)
  return scaled(weight, term(copies(branch or identity(), n)))
end

-- d may be left out where the branches are as wide as their head; where it is given, the head
-- checks that it is its own.
local function optional_d(what, o)
  local d = whole(what, o, "d", 1, max_width, 0)
  if d > 0 then return d end
end

-- ---- families ----
--
-- Each takes, instead of q . k, products of other rows: `of = branch`, or of maps of q and k, `map = relu`,
-- or one for each side, `map_q =` and `map_k =`.

-- q . k: linear attention, D = d. linear { map = elu_plus_one } is that of the maps of q and k.
function linear(o)
  o = o or {}
  fields("linear", o, "d", "weight", "of", "map", "map_q", "map_k")
  return scaled(o.weight or 1, { power_term(1, 1, rows_of("linear", o)), d = optional_d("linear", o) })
end

-- (q . k)^p as the full tensor power: TPOW, D = d^p as written. The compiler finds the smaller
-- symmetric features by itself.
function power(o)
  fields("power", o, "degree", "d", "weight", "of", "map", "map_q", "map_k")
  local p = whole("power", o, "degree", 1, max_degree)
  return scaled(o.weight or 1, { power_term(p, 1, rows_of("power", o)), d = optional_d("power", o) })
end

-- 1 + s + s^2/2 + ... + s^n/n!, s = q . k: the Taylor series of exp (BASED, degree 2). Give the
-- head scale = 1/sqrt(d), as softmax has it.
function taylor(o)
  o = o or {}
  fields("taylor", o, "degree", "d", "weight", "of", "map", "map_q", "map_k")
  local sum, rows = { d = optional_d("taylor", o) }, rows_of("taylor", o)
  for n = 0, whole("taylor", o, "degree", 1, max_degree, 2) do
    sum[#sum + 1] = power_term(n, ratio(1, factorial(n)), rows)
  end
  return scaled(o.weight or 1, sum)
end

-- (c + q . k)^p = sum over n of C(p, n) c^(p - n) (q . k)^n: all monomials up to degree p.
function inhomogeneous(o)
  fields("inhomogeneous", o, "degree", "constant", "d", "weight", "of", "map", "map_q", "map_k")
  local p = whole("inhomogeneous", o, "degree", 1, max_degree)
  local c = o.constant
  assert(c, "inhomogeneous needs a constant: the c of (c + q.k)^degree")
  local sum, rows = { d = optional_d("inhomogeneous", o) }, rows_of("inhomogeneous", o)
  for n = 0, p do
    sum[#sum + 1] = power_term(n, binomial(p, n) * exact_power(c, p - n), rows)
  end
  return scaled(o.weight or 1, sum)
end

-- ---- symmetric powers ----
--
-- Cut 1..d into blocks S_1, S_2, ... S_m of length b and write s_c for the part of q . k inside
-- S_c. By the multinomial theorem
--
--     (q . k)^p = sum over c_1 <= ... <= c_p  [p! / product of m_c!]  s_(c_1) ... s_(c_p)
--
-- with m_c the number of times that block c occurs. One term per tuple holds each monomial of
-- two different blocks once instead of once per order: b = 1 leaves C(d + p - 1, p) features
-- (SPOW), b = d all d^p (TPOW). The weights are integers: no root is taken anywhere.

-- The blocks; the last one is shorter when b does not divide d.
local function blocks(d, b)
  local list = {}
  for first = 1, d, b do
    list[#list + 1] = range(first, math.min(first + b - 1, d))
  end
  return list
end

-- One term per tuple of p blocks, each branch a block, the weight on the term.
local function tspow_full(p, d, b)
  local block, sum = {}, {}
  for c, indices in ipairs(blocks(d, b)) do block[c] = select(indices) end
  each_tuple(#block, p, function(tuple)
    local branches = { weight = arrangements(p, tuple) }
    for r, c in ipairs(tuple) do branches[r] = block[c] end
    sum[#sum + 1] = term(branches)
  end)
  return sum
end

-- One term per tuple of p - 1 blocks; the last branch gathers the p-th block, which is the last
-- of the tuple or any later one. With sigma = p! / product of m_c! over the p - 1, the p-th block
-- has weight sigma when it is a new one, and sigma / (t + 1) when it is the t + 1st of its kind.
-- For p = 2 these are the weights 1 and 2 of the paper's Appendix.
local function tspow_merged(p, d, b)
  local block, sum = {}, {}
  for c, indices in ipairs(blocks(d, b)) do block[c] = select(indices) end
  each_tuple(#block, p - 1, function(tuple)
    local sigma, t = arrangements(p, tuple)
    local last = tuple[#tuple]
    local own = range((last - 1) * b + 1, math.min(last * b, d))
    local later = range(math.min(last * b, d) + 1, d)
    local branches = {}
    for r, c in ipairs(tuple) do branches[r] = block[c] end
    branches[p] = diagonal { [own] = gram(sigma // (t + 1)), [later] = gram(sigma) }
    sum[#sum + 1] = term(branches)
  end)
  return sum
end

-- (q . k)^p by blocks of b: TSPOW (the paper's Appendix, and [7]).
function tspow(o)
  fields("tspow", o, "d", "degree", "block", "construction", "weight")
  local d = whole("tspow", o, "d", 1, max_width)
  local p = whole("tspow", o, "degree", 1, max_degree)
  local b = whole("tspow", o, "block", 1, max_width)
  local construction = o.construction or "merged"
  assert(construction == "merged" or construction == "full", "construction of tspow is \"merged\" or \"full\"")
  assert(b <= d, "block of tspow is larger than d")

  local m = math.ceil(d / b)
  local tuple_length = construction == "full" and p or p - 1
  local count = 1
  for i = 1, tuple_length do
    count = count * (m + i - 1) / i
  end
  assert(count <= max_terms, "tspow of degree " .. p .. " with " .. m .. " blocks has more than " .. max_terms
         .. " terms; take a larger block, or power { degree = " .. p .. " }")

  local sum
  if p == 1 then sum = { power_term(1, 1) }
  elseif construction == "full" then sum = tspow_full(p, d, b)
  else sum = tspow_merged(p, d, b) end
  sum.d, sum.block = d, b
  return scaled(o.weight or 1, sum)
end

-- (q . k)^p by single coordinates: the smallest exact feature map, D = C(d + p - 1, p).
function spow(o)
  fields("spow", o, "d", "degree", "weight")
  return tspow { d = whole("spow", o, "d", 1, max_width), degree = whole("spow", o, "degree", 1, max_degree),
                 block = 1, weight = o.weight }
end

-- ---- positions ----

-- Weights given at run time: by the name given, by `usual` where none is, or what the spec says itself; false: none.
local function position_weights(given, usual, shared)
  if given == nil then given = usual end
  if type(given) == "string" then return trainable { name = given, shared = shared } end
  return given or nil
end

-- sum over rows r of  q_r k_r c_r cos(b_r + a_r . (p_i - p_j)), q and k mapped: attention with Fourier
-- positional encoding. The head takes positions = n. form "one_plus" has 1 + cos, or 1 + c cos where c is
-- named. a, b and c are names of weights given at run time, one set a key/value head or `shared`; b = false
-- and c = false leave them out.
function fourier(o)
  o = o or {}
  fields("fourier", o, "form", "of", "map", "map_q", "map_k", "a", "b", "c", "shared", "d", "weight")
  local form = o.form or "seed"
  assert(form == "seed" or form == "one_plus", "form of fourier is \"seed\", c cos(...), or \"one_plus\", 1 + cos(...)")
  local rows = o.of or identity()
  local moving = {
    rows, map = o.map, map_q = o.map_q, map_k = o.map_k,
    angle = position_weights(o.a, "a", o.shared),
    phase = position_weights(o.b, "b", o.shared),
    amplitude = position_weights(o.c, form == "seed" and "c", o.shared),
  }
  local sum = { term { coordinates(moving) }, d = optional_d("fourier", o) }
  if form == "one_plus" then
    sum[2] = term { coordinates { rows, map = o.map, map_q = o.map_q, map_k = o.map_k } }
  end
  return scaled(o.weight or 1, sum)
end

-- ---- sketches: fewer features, right in expectation ----
--
-- All of them estimate (c + g q . k)^p, the same for q and k, without bias. They sketch x~ = (x, sqrt(c / g)),
-- of which (c + g q . k) = g q~ . k~, and their gain has g^p. A sketch is drawn from a seed, `heads = n` of them
-- for n key/value heads.

-- d, p, size, c, g and the number of heads of a sketch's options, and the columns of x~.
local function sketch_options(what, o)
  local s = {
    d = whole(what, o, "d", 1, max_width), degree = whole(what, o, "degree", 1, max_degree, 1),
    size = whole(what, o, "size", 1, max_coordinates), heads = whole(what, o, "heads", 1, 1024, 1),
    constant = tonumber(o.constant or 0), gamma = tonumber(o.gamma or 1),
  }
  assert(s.constant and s.gamma and s.constant >= 0 and s.gamma > 0, what .. " of (constant + gamma q.k)^degree: constant >= 0 and gamma > 0")
  s.columns = s.constant > 0 and s.d + 1 or s.d
  s.last = sqrt(s.constant / ratio(s.gamma, 1))
  -- what each side's features are multiplied with, for features of which `share` is summed
  s.gain = function(share) return sqrt(exact_power(s.gamma, s.degree) * share) end
  return s
end

-- x to three digits.
local function about(x)
  local digits = 1
  while x * digits < 100 and digits < 1e12 do digits = digits * 10 end
  local rounded = math.floor(x * digits + 0.5) / digits
  return math.tointeger(rounded) or rounded
end

-- Monomials of degree p of n coordinates, whole where that fits.
local function monomials(n, p)
  local count = binomial(n + p - 1.0, p)
  return math.tointeger(count) or count
end

-- What explain tells of a sketch: the variance's bound, as a text and its value, and how many features are exact.
local function sketch_note(what, s, features, bound, value)
  local p = s.degree
  local g = s.gamma == 1 and "" or about(s.gamma) .. " "
  local c = s.constant > 0 and about(s.constant) .. " + " or ""
  local function of(x, n) return "(" .. c .. g .. x .. ")^" .. n end
  local exact = monomials(s.columns, p)
  return what .. ": an estimate of " .. of("q.k", p) .. " with variance at most " .. bound .. " = " .. about(value)
    .. " times " .. of("|q|^2", p) .. " " .. of("|k|^2", p) .. "; exact symmetric features are " .. exact .. ", "
    .. (exact <= features and "no more: they would be better" or "more than these " .. features)
end

-- A row of signs, the last one times sqrt(c / g) where there is a constant.
local function with_constant(s, signs)
  local row = {}
  for j = 1, s.columns do row[j] = j <= s.d and signs[j] or signs[j] * s.last end
  return row
end

-- One matrix for all heads, or one for each.
local function dense_of(matrices)
  if #matrices == 1 then return dense(matrices[1]) end
  return dense { heads = matrices }
end

-- Hashes as arrays: [heads][degree][columns], or [degree][columns] for one sketch.
local function check_hashes(what, s, name, given)
  local list = given
  if type(given) == "table" and type(given[1]) == "table" and type(given[1][1]) ~= "table" then list = { given } end
  assert(type(list) == "table" and #list == s.heads, name .. " of " .. what .. " is an array of heads x degree x columns, "
         .. "and heads = " .. s.heads)
  for _, head in ipairs(list) do
    assert(type(head) == "table" and #head == s.degree, name .. " of " .. what .. " has rows for another degree than "
           .. s.degree)
    for _, row in ipairs(head) do
      assert(type(row) == "table" and #row == s.columns, name .. " of " .. what .. " has another number of columns than "
             .. s.columns .. ", which is d" .. (s.columns > s.d and " + 1, the last one of the constant" or ""))
    end
  end
  return list
end

-- [head][factor][column]: indices, and signs with the constant's column.
local function sketch_hashes(what, s, o)
  local index, sign = o.index_hash, o.bit_hash
  assert((index == nil) == (sign == nil), what .. " has one of index_hash and bit_hash, but both are needed")
  assert((index == nil) ~= (o.seed == nil), what .. " needs a seed, or index_hash and bit_hash")
  if not index then
    local all_indices, all_signs = hashes { d = s.columns, size = s.size, count = s.heads * s.degree, seed = o.seed,
                                            independence = o.independence }
    index, sign = {}, {}
    for h = 1, s.heads do
      index[h] = rows(all_indices, (h - 1) * s.degree + 1, h * s.degree)
      sign[h] = rows(all_signs, (h - 1) * s.degree + 1, h * s.degree)
    end
  end
  index, sign = check_hashes(what, s, "index_hash", index), check_hashes(what, s, "bit_hash", sign)
  local weights = {}
  for h = 1, s.heads do
    weights[h] = {}
    for l = 1, s.degree do
      for j, value in ipairs(sign[h][l]) do
        local n = index[h][l][j]
        assert(value == 1 or value == -1, "bit_hash of " .. what .. " has " .. value .. " in it, but signs are 1 and -1")
        assert(math.tointeger(n) and 0 <= n and n < s.size, "index_hash of " .. what .. " has " .. n
               .. " in it, but indices are 0 to size - 1")
      end
      weights[h][l] = with_constant(s, sign[h][l])
    end
  end
  return index, weights
end

-- Factor l of the spectrum at these frequencies: dense, its real and its imaginary part.
local function spectrum_factor(s, index, weights, l, frequencies)
  local re, im = {}, {}
  for h = 1, s.heads do
    re[h], im[h] = spectrum { size = s.size, index = index[h][l], weights = weights[h][l], frequencies = frequencies }
  end
  return dense_of(re), dense_of(im)
end

-- TensorSketch of (c + g q . k)^p with D = size features (Pham and Pagh): the product of the Fourier transforms of p
-- count sketches. The transform is unitary, so that it is not taken back: half of the spectrum has all there is,
-- twice but for frequency 0 and, of even D, D/2, which are real.
function tensorsketch(o)
  local what = "tensorsketch"
  fields(what, o, "d", "degree", "size", "constant", "gamma", "seed", "independence", "heads", "index_hash",
         "bit_hash", "weight")
  local s = sketch_options(what, o)
  local index, weights = sketch_hashes(what, s, o)
  local real, pairs, ends, between = {}, {}, { 0 }, {}
  if s.size % 2 == 0 then ends[2] = s.size // 2 end
  for w = 1, (s.size - 1) // 2 do between[w] = w end
  for l = 1, s.degree do
    real[l] = spectrum_factor(s, index, weights, l, ends)
    if #between > 0 then
      local re, im = spectrum_factor(s, index, weights, l, between)
      pairs[l] = { re, im }
    end
  end
  real.gain, pairs.gain = s.gain(ratio(1, s.size)), s.gain(ratio(2, s.size))
  local sum = { term { coordinates(real) }, d = s.d }
  local p = s.degree
  sum.note = sketch_note(what, s, s.size, "(3^" .. p .. " - 1)/" .. s.size, (3^p - 1) / s.size)
  if #between > 0 then sum[2] = term { coordinates(pairs) } end
  return scaled(o.weight or 1, sum)
end

-- A count sketch of c + g q . k: row n of size sums, with their signs, the coordinates whose index is n. Rows without
-- any are left out: D is at most size, and at most d (+ 1) a head.
function countsketch(o)
  local what = "countsketch"
  fields(what, o, "d", "size", "constant", "gamma", "seed", "independence", "heads", "index_hash", "bit_hash", "weight")
  local s = sketch_options(what, o)
  local index, weights = sketch_hashes(what, s, o)
  local place, count, matrices = {}, 0, {}
  for h = 1, s.heads do
    for _, n in ipairs(index[h][1]) do
      if not place[n] then count, place[n] = count + 1, count + 1 end
    end
  end
  for h = 1, s.heads do
    local matrix = {}
    for n = 1, count do
      matrix[n] = {}
      for j = 1, s.columns do matrix[n][j] = 0 end
    end
    for j, n in ipairs(index[h][1]) do matrix[place[n]][j] = weights[h][1][j] end
    matrices[h] = matrix
  end
  local sketch = dense_of(matrices)
  if s.constant > 0 then sketch = coordinates { sketch } end
  local note = sketch_note(what, s, count, "2/" .. s.size, 2 / s.size)
  return scaled(o.weight or 1, { scaled(s.gamma, term { sketch }), d = s.d, note = note })
end

-- Products of p projections on random signs, D = size of them (Kar and Karnick), for (c + g q . k)^p.
function product_sketch(o)
  local what = "product_sketch"
  fields(what, o, "d", "degree", "size", "constant", "gamma", "seed", "heads", "weight")
  local s = sketch_options(what, o)
  whole(what, o, "seed", 0, 0x7fffffffffffffff)
  local drawn, factors = signs { rows = s.heads * s.degree * s.size, d = s.columns, seed = o.seed }, {}
  for l = 1, s.degree do
    local matrices = {}
    for h = 1, s.heads do
      local first, matrix = ((h - 1) * s.degree + l - 1) * s.size, {}
      for n = 1, s.size do matrix[n] = with_constant(s, drawn[first + n]) end
      matrices[h] = matrix
    end
    factors[l] = dense_of(matrices)
  end
  factors.gain = s.gain(ratio(1, s.size))
  local note = sketch_note(what, s, s.size, "3^" .. s.degree .. "/" .. s.size, 3^s.degree / s.size)
  return scaled(o.weight or 1, { term { coordinates(factors) }, d = s.d, note = note })
end

-- (M(q) . M(k))^2 with r = rows products M of p/2 Gaussian projections: an estimate of (q . k)^p that is never
-- negative (PolySketchFormer; p = 4: two projections). Its features are the products of two elements of M, each
-- pair once, r (r + 1) / 2. Matrices are drawn from a seed, or of degree 4 given: w1 and w2, r x d.
-- gain is 1/sqrt(r), with which (M(q) . M(k)) estimates (q . k)^(p/2).
function polysketch(o)
  local what = "polysketch"
  fields(what, o, "d", "degree", "rows", "seed", "w1", "w2", "gain", "weight")
  local p = whole(what, o, "degree", 2, max_degree, 4)
  assert(p % 2 == 0, "degree of polysketch is " .. p .. ", but a square has an even one")
  assert((o.w1 == nil) == (o.w2 == nil) and (o.w1 == nil) ~= (o.seed == nil), "polysketch needs a seed, or w1 and w2")
  assert(not o.w1 or p == 4, "w1 and w2 of polysketch are of degree 4")
  local r = whole(what, o, "rows", 1, max_coordinates, o.w1 and #o.w1 or nil)
  local d = whole(what, o, "d", 1, max_width, o.w1 and #o.w1[1] or nil)
  local drawn = o.seed and gaussian { rows = p // 2 * r, d = d, seed = o.seed }
  local product = { gain = o.gain or sqrt(ratio(1, r)) }
  for l = 1, p // 2 do
    product[l] = dense(drawn and rows(drawn, (l - 1) * r + 1, l * r) or ({ o.w1, o.w2 })[l])
  end
  local note = drawn and not o.gain and what .. ": (M(q).M(k))^2 >= 0, where M(q).M(k) estimates (q.k)^" .. p // 2
    .. " with variance at most 3^" .. p // 2 .. "/" .. r .. " = " .. about(3^(p // 2) / r) .. " times |q|^" .. p
    .. " |k|^" .. p .. ", which is what the square is too large by in the mean; exact symmetric features of (q.k)^" .. p
    .. " are " .. monomials(d, p) .. ", these " .. r * (r + 1) // 2
  return scaled(o.weight or 1, { power_term(2, 1, coordinates(product)), d = d, note = note or nil })
end

-- ---- random features ----

-- exp(g q . k - 2 shift) in expectation, by m = size positive features exp(w . x - |x|^2 / 2 - shift) / sqrt(m) of
-- x = sqrt(g) q and sqrt(g) k (FAVOR+). The w are at right angles, d at a time, drawn from a seed or given as rows.
-- The shift keeps exp in range; it is the same for all tokens, so that the head stays causal.
function favor(o)
  local what = "favor"
  fields(what, o, "d", "size", "seed", "rows", "gamma", "shift", "orthogonal", "weight")
  assert((o.rows == nil) ~= (o.seed == nil), "favor needs a seed, or rows = a matrix")
  local d = whole(what, o, "d", 1, max_width)
  local m = whole(what, o, "size", 1, max_coordinates, o.rows and #o.rows or nil)
  local w = o.rows or gaussian { rows = m, d = d, seed = o.seed, orthogonal = o.orthogonal ~= false }
  local g = tonumber(o.gamma or 1)
  assert(g and g > 0, "gamma of favor, exp(gamma q.k), is positive")
  assert(#w == m, "favor has size = " .. m .. ", but rows of another number")
  local s = g == 1 and "" or about(g) .. " "
  local note = what .. ": an estimate of exp(" .. s .. "q.k" .. (o.shift and " - 2 * " .. o.shift or "")
    .. "), relative variance (exp(" .. s .. "|q + k|^2) - 1)/" .. m .. ", less with orthogonal rows"
  return scaled(o.weight or 1, {
    term { coordinates { dense(w), map = exp, inner = sqrt(g), square = g / 2, shift = o.shift,
                         gain = sqrt(ratio(1, m)) } },
    d = d, note = note,
  })
end
