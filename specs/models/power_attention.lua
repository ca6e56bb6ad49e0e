-- Power attention, k(q, k) = (q . k)^2: the heads of PowerCoder, gated and normalised.
--
-- C. Gelada, J. Buckman, S. Zhang, T. Bach, "Scaling Context Requires Rethinking Attention", 2025 (arXiv:2507.04239),
-- and the package `retention` of its authors. The package's formula is this head's: weights phi(q).phi(k) of the
-- symmetric power, divided by their sum, with one log-gate a step and key/value head. Its state has C(129, 2) = 8256
-- rows at d = 128; blocks of 8 make 8320 of that.
--
-- PowerCoder 3B is StarCoder2-3B with this attention: 30 layers, 24 query heads on 2 key/value heads, d = dv = 128,
-- degree 2; q and k are rotated by RoPE before they come here, q is scaled by 1/sqrt(d), gates are log-sigmoids. The eps of
-- the sum is fpac's own. A norm of the output, which the package's documentation has too, is the model's to apply.

local function power_head(name, d)
  return head { name = name, d = d, dv = d, scale = 1 / sqrt(d), terms = power { degree = 2 },
                normalize = "sum", gate = true, dtype = "bf16" }
end

return power_head("powercoder_3b", 128),
       -- The width of the package's own examples.
       power_head("power_retention_d64", 64)
