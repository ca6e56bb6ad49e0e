-- Heads for experiments/recall.c: families over their widths, all of one d and dv. What a state remembers depends on
-- the kernel and on D; between linear and power attention, the widths d_l of the projections choose D freely.
--
-- A family is an entry of this table: its name, the widths to try, the terms of a head of each and, where it is not
-- 1 / sqrt(d), the scale.
local d, dv = 32, 64

local function W(rows, seed) return dense(orthogonal { d = d, rows = rows, seed = seed }) end

-- count products of two projections to r rows each
local function sum_of_products(count, r)
  local terms = {}
  for i = 1, count do terms[i] = term { W(r, 2 * i), W(r, 2 * i + 1) } end
  return terms
end

local families = {
  { "power_1", { 4, 8, 16, 32 }, function(r) return term { W(r, 1) } end },
  { "power_2", { 4, 6, 8, 12, 16, 24, 32 }, function(r) return term { W(r, 1), W(r, 1) } end },
  { "power_3", { 4, 6, 8, 12, 16, 24 }, function(r) return term { W(r, 1), W(r, 1), W(r, 1) } end },
  { "two_projections", { 3, 4, 6, 8, 12, 16, 24 }, function(r) return term { W(r, 1), W(r, 2) } end },
  { "three_projections", { 3, 4, 6, 8, 10, 12, 16 }, function(r) return term { W(r, 1), W(r, 2), W(r, 3) } end },
  { "mixed_32_by", { 1, 2, 4, 8, 16, 24 }, function(r) return term { identity(), select(range(1, r)) } end },
  { "elu_plus_one", { 8, 16, 32 }, function(r) return term { coordinates { W(r, 1), map = elu_plus_one } } end },
  { "tensorsketch_2", { 32, 64, 128, 256, 512, 1024 },
    function(size) return tensorsketch { d = d, degree = 2, size = size, seed = 1 } end },
  { "polysketch_4", { 8, 16, 32 }, function(rows) return polysketch { d = d, rows = rows, seed = 1 } end },
  -- exp(q.k / sqrt(d)), the scale split over both sides
  { "favor", { 32, 128, 512 },
    function(size) return favor { d = d, size = size, seed = 1, gamma = 1 / sqrt(d) } end, 1 },
  { "products_of_8_by_8", { 1, 2, 4, 8, 16 }, function(count) return sum_of_products(count, 8) end },
}

local heads = {}
for _, family in ipairs(families) do
  local name, widths, terms, scale = family[1], family[2], family[3], family[4] or 1 / sqrt(d)
  for _, width in ipairs(widths) do
    heads[#heads + 1] = head { name = name .. "_" .. width, d = d, dv = dv, scale = scale, terms = terms(width) }
  end
end
return heads
