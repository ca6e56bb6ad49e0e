-- FAVOR+: the exponential of softmax attention estimated by positive random features (K. Choromanski and others,
-- arXiv:2009.14794),
--
--     phi_r(x) = exp(w_r . x - |x|^2 / 2 - shift) / sqrt(m),    E phi(x) . phi(y) = exp(x . y - 2 shift)
--
-- of x = q / d^(1/4) and k / d^(1/4), which gamma says: softmax's scale 1 / sqrt(d), split over both sides. The rows w are
-- at right angles to each other, d at a time. The shift is a number, not the greatest element of a sequence: the head
-- stays causal, and under the sum it cancels.

return head { name = "favor_d32", d = 32, dv = 32, normalize = "sum",
              terms = favor { d = 32, size = 64, seed = 1, gamma = 1 / sqrt(32) } },
       head { name = "favor_shift_d16", d = 16, dv = 24, causal = false,
              terms = favor { d = 16, size = 24, seed = 2, gamma = 1 / 4, shift = 1 / 2 } }
