-- Gated linear attention: k(q, k) = q.k, earlier tokens forgotten at a pace of their own.
--
-- One log-gate a step and head, as here, is what RetNet and Mamba-2 have:
--
-- RetNet. Y. Sun and others, "Retentive Network: A Successor to Transformer for Large Language Models", 2023
-- (arXiv:2307.08621). The gate is a constant of each head, gamma = 1 - 2^(-5 - h): every log-gate of head h is log gamma.
-- Keys of 256, values of twice the width; q and k are rotated (xPos) before they come here, and a norm of each head's
-- output comes after.
--
-- Mamba-2. T. Dao, A. Gu, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State
-- Space Duality", 2024 (arXiv:2405.21060). The structured state space is this head: q = C, k = B, v = dt x, log-gate
-- dt A; d = 128 is its state size, dv = 64 its head's width. Convolution, D x and the output's gate are the model's.
--
-- GLA itself has a gate for each coordinate of the key: S row i is multiplied by a number of its own. S. Yang and others,
-- "Gated Linear Attention Transformers with Hardware-Efficient Training", 2023 (arXiv:2312.06635). The vocabulary has no
-- such gate; the last head has GLA's shape (a width of 1024, 4 heads, keys of half the width) and one gate a head.

local function gated(name, d, dv)
  return head { name = name, d = d, dv = dv, scale = 1 / sqrt(d), terms = linear {}, gate = true, dtype = "bf16" }
end

return gated("retnet_d256_v512", 256, 512),
       head { name = "mamba2_n128_p64", d = 128, dv = 64, terms = linear {}, gate = true, dtype = "bf16" },
       gated("gla_shape_d128_v256", 128, 256)
