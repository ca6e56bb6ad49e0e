-- Degree 2, normalised and gated: a head as a language model would use it.
--
-- o_t = sum over j <= t of exp(G_t - G_j) (q_t . k_j)^2 v_j, divided by the same sum without v.
-- G is the running sum of the log-gates, one number a step and head, so that a head forgets at a
-- pace of its own ("Linear Attention" and "Power Attention" in the paper; the gate is that of
-- gated linear attention). Even powers are never negative: the quotient is a weighted mean of
-- the values.

local square = tspow { d = 64, degree = 2, block = 8 }

return
  head { name = "gated_power2_d64", d = 64, dv = 64, scale = 1 / sqrt(64), terms = square,
         normalize = { "sum", eps = 1e-6 }, gate = true },

  -- The cheapest of the kind: gated linear attention, which is not normalised.
  head { name = "gated_linear_d32", d = 32, dv = 32, scale = 1 / sqrt(32), terms = linear {},
         gate = true }
