-- The heads that train.py trains, each of d = dv = 16 and without a normaliser (FPAttention has a norm then), with a
-- gate and without.
--
-- fixed and learned have matrices of equal shapes. The rows of fixed8 are 16 in all, no more than d: the projections
-- that make q and k turn them into any others, so that learned8 can do no more. Of 12 and 12 rows that is not so.

local function rows(r, seed)
  return dense(orthogonal { d = 16, rows = r, seed = seed })
end

local function learned(r)
  return term { trainable { name = "A", rows = r }, trainable { name = "B", rows = r } }
end

local kinds = {
  { "linear", linear {} },
  { "mixed", term { identity(), select(range(1, 4)) } },
  { "fixed8", term { rows(8, 1), rows(8, 2) } },
  { "learned8", learned(8) },
  { "power2", power { degree = 2 } },
  { "fixed12", term { rows(12, 3), rows(12, 4) } },
  { "learned12", learned(12) },
}

local heads = {}
for _, kind in ipairs(kinds) do
  for _, gate in ipairs { false, true } do
    heads[#heads + 1] = head { name = kind[1] .. (gate and "_gated" or ""), d = 16, dv = 16, scale = 1 / 4, gate = gate,
                               terms = kind[2] }
  end
end
return heads
