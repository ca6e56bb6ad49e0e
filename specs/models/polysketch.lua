-- PolySketchFormer: (q.k)^4 by a sketch, whose square is never negative.
--
-- P. Kacham, V. Mirrokni, P. Zhong, "PolySketchFormer: Fast Transformers via Sketching Polynomial Kernels", ICML 2024
-- (arXiv:2310.01655). A sketch of degree 2 has r coordinates s_i(x) = (a_i . x)(b_i . x) / sqrt(r), with Gaussian rows a_i
-- and b_i; s(q).s(k) estimates (q.k)^2. "Self-tensoring" squares it: k(q, k) = (s(q).s(k))^2 estimates (q.k)^4, and its
-- features are the r^2 products of two coordinates of the sketch, each of two different ones once here. The sum is divided
-- by 1 + the sum of the weights.
--
-- A model's own rows take the place of the seed: w1 = npy "A.npy", w2 = npy "B.npy". The sketch that the paper learns, a
-- small network in place of the random rows, cannot be said, nor can exact polynomial attention inside a block of tokens,
-- which the paper adds. The layer norm of q and k comes before the head.

return head { name = "polysketch_p4_r32", d = 64, dv = 64, normalize = "one_plus_sum",
              terms = polysketch { d = 64, degree = 4, rows = 32, seed = 21 } },
       head { name = "polysketch_p4_r64", d = 64, dv = 64, normalize = "one_plus_sum",
              terms = polysketch { d = 64, degree = 4, rows = 64, seed = 22 } }
