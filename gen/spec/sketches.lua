-- sketches: kernels estimated with few features, drawn from a seed: sketches of polynomials, random features of exp.
--
-- This file runs after the prelude and uses its vocabulary. A seed gives the same numbers on every machine: the numbers
-- that are drawn here are part of the head.

local max_width, max_degree, max_coordinates = 1024, 16, 16384

local function power_of(x, n)
  local product = 1
  for _ = 1, n do product = product * x end
  return product
end

-- ---- polynomials ----
--
-- All of these except polysketch are unbiased estimates of (c + g q . k)^p, with the same map for q and k. They sketch
-- x~ = (x, sqrt(c / g)), with which c + g q . k = g q~ . k~; the factor g^p is in their gain, or in the weight
-- of countsketch. A sketch is drawn from a seed; `heads = n` draws one for each of n key/value heads.

-- Reads a sketch's options: d, p, size, c, g and the number of heads; also returns the number of columns of x~.
local function sketch_options(what, o)
  local s = {
    d = whole(what, o, "d", 1, max_width), degree = whole(what, o, "degree", 1, max_degree, 1),
    size = whole(what, o, "size", 1, max_coordinates), heads = whole(what, o, "heads", 1, 1024, 1),
    constant = tonumber(o.constant or 0), gamma = tonumber(o.gamma or 1),
  }
  assert(s.constant and s.gamma and s.constant >= 0 and s.gamma > 0, what .. " of (constant + gamma q.k)^degree: constant >= 0 and gamma > 0")
  s.columns = s.constant > 0 and s.d + 1 or s.d
  s.last = sqrt(s.constant / ratio(s.gamma, 1))
  -- the factor of each side's features, if `share` of the features is summed
  s.gain = function(share) return sqrt(power_of(s.gamma, s.degree) * share) end
  return s
end

-- x with three digits, as text.
local function about(x)
  local digits = 1
  while x * digits < 100 and digits < 1e12 do digits = digits * 10 end
  local rounded = math.floor(x * digits + 0.5) / digits
  return math.tointeger(rounded) or rounded
end

-- The number of monomials of degree p in n coordinates, as an integer if that fits.
local function monomials(n, p)
  local count = 1.0
  for i = 1, p do count = count * (n + i - 1) / i end
  return math.tointeger(count) or count
end

-- The note of a sketch for explain: the bound of the variance, as text and as a number, and how many features would be
-- exact.
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

-- A row of signs; the last one is multiplied by sqrt(c / g) if there is a constant.
local function with_constant(s, signs)
  local row = {}
  for j = 1, s.columns do row[j] = j <= s.d and signs[j] or signs[j] * s.last end
  return row
end

-- One matrix for all heads, or one for each head.
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
    assert(type(head) == "table" and #head == s.degree, name .. " of " .. what .. " has another number of rows than "
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
  assert((index == nil) == (sign == nil), what .. " has only one of index_hash and bit_hash, but both are needed")
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

-- Factor l of the spectrum at these frequencies, as dense branches of its real and its imaginary part.
local function spectrum_factor(s, index, weights, l, frequencies)
  local re, im = {}, {}
  for h = 1, s.heads do
    re[h], im[h] = spectrum { size = s.size, index = index[h][l], weights = weights[h][l], frequencies = frequencies }
  end
  return dense_of(re), dense_of(im)
end

-- TensorSketch of (c + g q . k)^p with D = size features (Pham and Pagh): the product of the Fourier transforms of p
-- count sketches. The transform is unitary, so dot products need no inverse transform. Half of the spectrum suffices: each
-- frequency counts twice, except 0 and, for even D, D/2, which are real.
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

-- A count sketch of c + g q . k: row n, of `size`, is the sum of the coordinates with index n, with signs. Rows without
-- coordinates are omitted: D is at most size, and at most d (+ 1) for each head.
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
  assert(p % 2 == 0, "degree of polysketch is " .. p .. ", but it must be even")
  assert((o.w1 == nil) == (o.w2 == nil) and (o.w1 == nil) ~= (o.seed == nil), "polysketch needs a seed, or w1 and w2")
  assert(not o.w1 or p == 4, "w1 and w2 of polysketch need degree = 4")
  local r = whole(what, o, "rows", 1, max_coordinates, o.w1 and #o.w1 or nil)
  local d = whole(what, o, "d", 1, max_width, o.w1 and #o.w1[1] or nil)
  local drawn = o.seed and gaussian { rows = p // 2 * r, d = d, seed = o.seed }
  local product = { gain = o.gain or sqrt(ratio(1, r)) }
  for l = 1, p // 2 do
    product[l] = dense(drawn and rows(drawn, (l - 1) * r + 1, l * r) or ({ o.w1, o.w2 })[l])
  end
  local m = coordinates(product)
  local note = drawn and not o.gain and what .. ": (M(q).M(k))^2 >= 0, where M(q).M(k) estimates (q.k)^" .. p // 2
    .. " with variance at most 3^" .. p // 2 .. "/" .. r .. " = " .. about(3^(p // 2) / r) .. " times |q|^" .. p
    .. " |k|^" .. p .. ", which is what the square is too large by in the mean; exact symmetric features of (q.k)^" .. p
    .. " are " .. monomials(d, p) .. ", these " .. r * (r + 1) // 2
  return scaled(o.weight or 1, { term { m, m }, d = d, note = note or nil })
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
  assert(#w == m, "favor has size = " .. m .. ", but another number of rows")
  local s = g == 1 and "" or about(g) .. " "
  local note = what .. ": an estimate of exp(" .. s .. "q.k" .. (o.shift and " - 2 * " .. o.shift or "")
    .. "), relative variance (exp(" .. s .. "|q + k|^2) - 1)/" .. m .. ", less with orthogonal rows"
  return scaled(o.weight or 1, {
    term { coordinates { dense(w), map = exp, inner = sqrt(g), square = g / 2, shift = o.shift,
                         gain = sqrt(ratio(1, m)) } },
    d = d, note = note,
  })
end
