-- Sketches: polynomial kernels estimated with few features, drawn from a seed. `fpac explain` tells how far the estimate
-- may lie off, and how many features the exact kernel has.

return
  -- (q.k)^2 and (1/2 + q.k/4)^3 by TensorSketch, of an even size, of an odd one, and one sketch for each of two heads.
  head { name = "tensorsketch_p2_d32", d = 32, dv = 32,
         terms = tensorsketch { d = 32, degree = 2, size = 64, seed = 1 } },
  head { name = "tensorsketch_p3_d16", d = 16, dv = 16,
         terms = tensorsketch { d = 16, degree = 3, size = 63, seed = 2, constant = 1 / 2, gamma = 1 / 4, heads = 2 } },

  -- Degree 1: sums of coordinates in 8 buckets.
  head { name = "countsketch_d32", d = 32, dv = 16,
         terms = countsketch { d = 32, size = 8, seed = 3, constant = 1, independence = 4 } },

  -- Products of projections on random signs (Kar and Karnick).
  head { name = "product_sketch_p3_d16", d = 16, dv = 16,
         terms = product_sketch { d = 16, degree = 3, size = 40, seed = 4, constant = 1 / 2 } },

  -- PolySketchFormer's square, never negative, divided by 1 + the sum of the weights.
  head { name = "polysketch_r16_d32", d = 32, dv = 32, normalize = "one_plus_sum",
         terms = polysketch { d = 32, rows = 16, seed = 5 } },
  head { name = "polysketch_r64", d = 64, dv = 64, normalize = "one_plus_sum", scale = 1 / 8,
         terms = polysketch { d = 64, rows = 64, seed = 6 } }
