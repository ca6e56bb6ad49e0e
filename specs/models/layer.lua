-- A layer of unlike heads: exact recall of near tokens beside a long memory.
--
-- BASED (S. Arora, S. Eyuboglu and others, 2024, arXiv:2402.18668) alternates layers of sliding-window softmax and of
-- second-order linear attention. Here both kinds stand side by side in one layer, as the heads of a hybrid do: of 16 heads of
-- width 64, 8 are powers of degree 2 with a state of 2,112 features each, 4 are gated linear attention (RetNet's and Mamba-2's
-- recurrence), which forgets, and 4 have softmax over the 64 newest keys and the power behind it.
--
-- two_memories: 8 heads that keep all, and 8 of the same power that forget, as their gates say.
--
-- One call computes all heads of a layer, which lie one after the other along the heads' axis (docs/spec.md, "layer").

local recall = head {
  name = "layer_power2", d = 64, dv = 64, scale = 1 / 8, dtype = "bf16",
  normalize = "sum", terms = tspow { d = 64, degree = 2, block = 8 },
}
local decay = head {
  name = "layer_gated", d = 64, dv = 64, scale = 1 / 8, dtype = "bf16",
  gate = true, terms = linear {},
}
local near = head {
  name = "layer_near", d = 64, dv = 64, scale = 1 / 8, dtype = "bf16",
  normalize = "sum", terms = power { degree = 2 }, window = 64,
}

local fading = head {
  name = "layer_fading", d = 64, dv = 64, scale = 1 / 8, dtype = "bf16",
  normalize = "sum", gate = true, terms = tspow { d = 64, degree = 2, block = 8 },
}

return layer {
  name = "hybrid_layer",
  heads = { { head = recall, count = 8 }, { head = decay, count = 4 }, { head = near, count = 4 } },
}, layer {
  name = "two_memories",
  heads = { { head = recall, count = 8 }, { head = fading, count = 8 } },
}
