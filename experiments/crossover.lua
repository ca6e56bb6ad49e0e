-- Heads for experiments/crossover.c: kernels over widths, each from few tokens to thousands between its two forms.
-- A family is an entry: its name, the widths d, the terms of a head.
local function W(d, rows, seed) return dense(orthogonal { d = d, rows = rows, seed = seed }) end

local families = {
  { "linear", { 16, 32, 64, 128 }, function() return linear {} end },
  { "power_2", { 8, 16, 24, 32, 48, 64 }, function() return power { degree = 2 } end },
  { "power_3", { 6, 8, 12, 16 }, function() return power { degree = 3 } end },
  { "taylor_2", { 16, 32, 64 }, function() return taylor { degree = 2 } end },
  { "two_projections_of_64", { 8, 16, 24, 32 }, function(r) return term { W(64, r, 1), W(64, r, 2) } end, 64 },
}

local heads = {}
for _, family in ipairs(families) do
  local name, widths, terms, d = family[1], family[2], family[3], family[4]
  for _, width in ipairs(widths) do
    heads[#heads + 1] = head {
      name = name .. "_" .. width, d = d or width, dv = 64, scale = 1 / sqrt(d or width), terms = terms(width),
    }
  end
end
return heads
