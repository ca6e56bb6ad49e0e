-- Branches of different widths: the memory knob of the paper's section "Tunability of the State
-- Space". The widths multiply, D = d_1 d_2 ... d_n, so any size between a few features and d^n is
-- at hand, and the kernel stays exact.

-- 3 x 7 x 5 = 105 features of degree 3, from three random orthonormal projections.
local mixed = term {
  dense(orthogonal { d = 48, rows = 3, seed = 11 }),
  dense(orthogonal { d = 48, rows = 7, seed = 12 }),
  dense(orthogonal { d = 48, rows = 5, seed = 13 }),
}

-- Two dense projections of unequal shapes, 16 x 64 and 32 x 64: 512 features of degree 2, a
-- quarter of the symmetric power's 2080.
local narrow = term {
  dense(orthogonal { d = 64, rows = 16, seed = 14 }),
  dense(orthogonal { d = 64, rows = 32, seed = 15 }),
}

-- Terms of different shapes and degrees add up: a linear part on all coordinates, and a dense
-- projection times a selection.
local sum = {
  linear { weight = ratio(1, 2) },
  term { dense { { 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
                 { 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1 } },
         select(range(1, 8)), weight = 3 },
}

return
  head { name = "mixed_3x7x5",     d = 48, dv = 48, terms = mixed },
  head { name = "dense_16x32_d64", d = 64, dv = 64, terms = narrow },
  head { name = "mixed_sum_d16",   d = 16, dv = 24, terms = sum }
