-- Softmax over the newest keys, a polynomial kernel over all older ones, one normaliser.
--
-- A window of w keys gives the newest w of them, the token's own among them, the weight exp(scale q.k), exactly, and older
-- ones the head's kernel; what leaves the window enters the state. Near tokens are told apart as sharply as by softmax,
-- far ones cost no more than the state.
--
-- based_d16_w64: the second-order Taylor series, which is near the exponential where q.k is small, behind a window of 64:
-- the two parts of BASED (S. Arora, S. Eyuboglu and others, 2024, arXiv:2402.18668) in one sum.
--
-- hybrid_w64: as LoLCATs (M. Zhang and others, 2024, arXiv:2410.10254) has it, exponentials of learned rows and of
-- their opposites, 64 features in all, behind the softmax of the head that was there before. (Its features are divided
-- by their sum; the kernel's own scale is in the weights here.)

local learned = trainable { name = "w", rows = 32 }

return head {
  name = "based_d16_w64", d = 16, dv = 64,
  scale = 1 / sqrt(16),
  terms = taylor { degree = 2 },
  normalize = { "sum", eps = 1e-6 },
  window = 64,
}, head {
  name = "hybrid_w64", d = 64, dv = 64,
  scale = 1 / sqrt(64),
  terms = {
    term { coordinates { learned, map = exp } },
    term { coordinates { learned, map = exp, inner = -1 } },
  },
  normalize = "sum",
  window = 64,
}
