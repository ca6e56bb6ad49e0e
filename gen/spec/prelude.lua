-- prelude: the families of heads, written in the spec language itself.
--
-- A head's kernel is a sum of terms, a term a product of branches:
--
--     k(q, k) = sum over terms  weight * product over branches  (W q) . (W k)
--
-- This file runs before every spec. What it defines without `local` is vocabulary; copy a
-- function from here into a spec to make a variant of it. `sum` below always means the list
-- that a function returns: a head takes it as `terms = ...`. A list may have note = "...", which
-- `fpac explain` prints.
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

local max_width, max_degree, max_terms = 1024, 16, 131072

sqrt2 = sqrt(2)
math.sqrt = sqrt

-- Maps of coordinates {...}; the constructor identity stands for the map that changes nothing.
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

-- p! / product of m_c!, where number c occurs m_c times in the non-decreasing tuple; and how
-- often its last number occurs.
local function arrangements(p, tuple)
  local ways, times = factorial(p), 0
  for i, c in ipairs(tuple) do
    times = c == tuple[i - 1] and times + 1 or 1
    ways = ways // times
  end
  return ways, times
end

-- The rows of which a family's q . k is the dot product: those of a branch, or q and k, mapped.
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

-- The term (q.k)^n with a weight; of other rows than q and k if these are given. n = 0 is the constant.
local function power_term(n, weight, branch)
  return scaled(weight, term(copies(branch or identity(), n)))
end

-- d may be omitted if the branches are as wide as the head; if it is given, the head checks that
-- it is its own d.
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
