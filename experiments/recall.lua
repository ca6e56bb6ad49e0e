-- Heads for experiments/recall.c: families over their widths, all of one d and dv. What a state remembers depends on
-- the kernel and on D; between linear and power attention, the widths d_l of the projections choose D freely.
--
-- A family is an entry of this table: its name, the widths to try, and the terms of a head of each. A construct that
-- the vocabulary gets later (a sketch, random features) is one more entry.
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
  { "products_of_8_by_8", { 1, 2, 4, 8, 16 }, function(count) return sum_of_products(count, 8) end },
}

local heads = {}
for _, family in ipairs(families) do
  local name, widths, terms = family[1], family[2], family[3]
  for _, width in ipairs(widths) do
    heads[#heads + 1] = head { name = name .. "_" .. width, d = d, dv = dv, scale = 1 / sqrt(d), terms = terms(width) }
  end
end
return heads
