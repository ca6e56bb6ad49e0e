-- Table 1 of the paper, "Representative sub-families of FPA": what a constraint on the Gram
-- matrices G_l = W_l' W_l makes of the kernel. Linear and power attention, its first rows, have
-- files of their own; TSPOW, its last, is tspow.lua.

-- Row r of W times factor[r], or all rows times one factor.
local function scale_rows(W, factor)
  local scaled_rows = {}
  for r, row in ipairs(W) do
    scaled_rows[r] = {}
    for c, x in ipairs(row) do
      scaled_rows[r][c] = x * (type(factor) == "table" and factor[r] or factor)
    end
  end
  return scaled_rows
end

-- R'R for orthonormal rows R: the d x d projector on the space that they span.
local function projector(R)
  local P = {}
  for i = 1, #R[1] do
    P[i] = {}
    for j = 1, #R[1] do
      P[i][j] = 0
      for _, row in ipairs(R) do P[i][j] = P[i][j] + row[i] * row[j] end
    end
  end
  return P
end

-- Scaled-shared, G_l = a_l G_0: a power of one form, up to a scalar. 8^3 features as written,
-- C(10, 3) = 120 in truth.
local shared = orthogonal { d = 24, rows = 8, seed = 1 }
local scaled_shared = term { dense(shared), dense(scale_rows(shared, 2)), dense(scale_rows(shared, 0.5)) }

-- Commuting set, [G_l, G_m] = 0: one set of directions (the rows of Q), each branch with its own
-- weights along them. In the coordinates Q x this is a head of diagonal factors.
local Q = orthogonal { d = 16, rows = 6, seed = 2 }
local commuting = term {
  dense(scale_rows(Q, { 1, 2, 1, 0.5, 1, 1.5 })),
  dense(scale_rows(Q, { 2, 1, 0.5, 1, 1.5, 1 })),
  dense(scale_rows(Q, { 1, 1, 1.5, 2, 0.5, 1 })),
}

-- Diagonal factors, G_l = diag(g_l): monomials that never mix coordinates inside a branch.
local rising, falling = {}, {}
for i = 1, 24 do
  rising[i], falling[i] = gram(ratio(i, 24)), gram(ratio(25 - i, 24))
end
local diagonal_factors = term { diagonal(rising), diagonal(falling) }

-- Rank-1 factors, G_l = a_l a_l': each branch is one direction, each term one feature.
local a, rank_one = orthogonal { d = 64, rows = 24, seed = 3 }, {}
for t = 0, 7 do
  rank_one[#rank_one + 1] = term { dense { a[3*t + 1] }, dense { a[3*t + 2] }, dense { a[3*t + 3] } }
end

-- Orthogonal blocks, tr(G_l G_m) = 0: branches that look at subspaces with nothing in common.
local basis = orthogonal { d = 48, rows = 20, seed = 4 }
local orthogonal_blocks = term { dense(rows(basis, 1, 8)), dense(rows(basis, 9, 20)) }

-- Projector factors, G_l^2 = G_l: overlap inside chosen subspaces. Written as d x d matrices of
-- rank 6 and 8, so 576 features that shrink to 48.
local projectors = term {
  dense(projector(orthogonal { d = 24, rows = 6, seed = 5 })),
  dense(projector(orthogonal { d = 24, rows = 8, seed = 6 })),
}

-- Coordinate select, G_l = diag of 0 and 1: no parameters at all; the branches may overlap.
local coordinate_select = term { select(range(1, 12)), select { range(9, 16), 1, 3 } }

return
  head { name = "scaled_shared",     d = 24, dv = 24, terms = scaled_shared },
  head { name = "commuting_set",     d = 16, dv = 48, terms = commuting },
  head { name = "diagonal_factors",  d = 24, dv = 48, terms = diagonal_factors },
  head { name = "rank1_factors",     d = 64, dv = 64, terms = rank_one },
  head { name = "orthogonal_blocks", d = 48, dv = 24, terms = orthogonal_blocks },
  head { name = "projector_factors", d = 24, dv = 16, terms = projectors },
  head { name = "coordinate_select", d = 16, dv = 16, terms = coordinate_select }
