-- PolySketchFormer: (q.k)^4 by a sketch, whose square is never negative.
--
-- P. Kacham, V. Mirrokni, P. Zhong, "PolySketchFormer: Fast Transformers via Sketching Polynomial Kernels", ICML 2024
-- (arXiv:2310.01655). A sketch of degree 2 has r coordinates s_i(x) = (a_i . x)(b_i . x) / sqrt(r), with random rows a_i and
-- b_i; s(q).s(k) estimates (q.k)^2. "Self-tensoring" squares it: k(q, k) = (s(q).s(k))^2 estimates (q.k)^4, and its
-- features are the r^2 products of two coordinates of the sketch. The sum is divided by 1 + the sum of the weights.
--
-- As far as the vocabulary goes:
-- - a coordinate of the sketch is a product of two rows, so that a product of two coordinates is a term of four branches
--   of one row each: r (r + 1) / 2 terms;
-- - the rows below are orthonormal ones of a seed, which stand for a model's own: npy("A.npy"), npy("B.npy");
-- - the sketch that the paper learns, a small network in place of the random rows, cannot be said;
-- - exact polynomial attention inside a block of tokens, which the paper adds, cannot be said either; nor can sums whose
--   rows are complex, as those of TensorSketch.
-- The layer norm of q and k comes before the head. The paper's sketches are larger; r = 12 keeps this head small.

local d, r = 64, 12
local A, B = orthogonal { d = d, rows = r, seed = 21 }, orthogonal { d = d, rows = r, seed = 22 }
local a, b = {}, {}
for i = 1, r do
  a[i], b[i] = dense { A[i] }, dense { B[i] }
end

local terms = {}
for i = 1, r do
  for j = i, r do
    terms[#terms + 1] = term { a[i], b[i], a[j], b[j], weight = ratio(i == j and 1 or 2, r * r) }
  end
end

return head { name = "polysketch_p4_r12", d = d, dv = d, terms = terms, normalize = "one_plus_sum" }
