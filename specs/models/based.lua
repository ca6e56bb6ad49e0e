-- BASED: the Taylor series of softmax's exponential, to second order, on narrow keys.
--
-- S. Arora, S. Eyuboglu and others, "Simple linear attention language models balance the recall-throughput tradeoff",
-- 2024 (arXiv:2402.18668). The 360 M model has 16 heads in a width of 1024: keys of d = 16 ("feature_dim"), values of
-- dv = 64. Features [1, x, x x' / sqrt(2)] of x / d^(1/4), so that k(q, k) = 1 + s + s^2/2 with s = q.k / sqrt(d), which
-- is never negative; normalised by the sum, eps 1e-12. As published D = 1 + 16 + 16^2 = 273, each product of two
-- coordinates twice; 153 are enough, and blocks make 161 of that.
--
-- Its layers of sliding-window softmax attention and short convolutions stand beside this one, and are no part of it.
-- based_360m_window is both in one head: softmax over the 64 newest keys, the series for all older ones, one normaliser.

local function based(name, window)
  return head {
    name = name, d = 16, dv = 64,
    scale = 1 / sqrt(16),
    terms = taylor { degree = 2 },
    normalize = { "sum", eps = 1e-12 },
    dtype = "bf16",
    window = window,
  }
end

return based "based_360m", based("based_360m_window", 64)
