-- The Taylor series of softmax's exponential, 1 + s + s^2/2 with s = q . k / sqrt(d).
--
-- The global half of BASED (reference [9] of the paper, "just one specific instance of a degree-2
-- polynomial kernel"): d = 16 is its width, D = 1 + 16 + 136 = 153 features (161 here: a
-- few products come twice, see tspow.lua). The polynomial is positive everywhere, so the weights
-- are normalised as softmax's are.

return head {
  name = "taylor2_d16", d = 16, dv = 64,
  scale = 1 / sqrt(16),
  terms = taylor { degree = 2 },
  normalize = { "sum", eps = 1e-6 },
}
