-- Weights given at run time: "W is either a fixed or trainable weight matrix" (the paper, "The
-- FPA Kernel"). The compiled kernel takes them as tensors, under the names written here.
--
-- One matrix per key/value head is the paper's case ("the projection matrices are unique to each
-- attention head"); shared = true takes one for all heads. The same name twice is the same matrix.

-- Each head learns what its two branches look at; 8 x 12 = 96 features.
local per_head = term { trainable { name = "W1", rows = 8 }, trainable { name = "W2", rows = 12 } }

-- A learned subspace common to all heads, squared: as TSPOW, but of 16 learned coordinates.
local W = trainable { name = "W", rows = 16, shared = true }

-- A learned weight per coordinate beside a fixed block: the diagonal factors of Table 1, trained.
local weighted = term { trainable { name = "g", diagonal = true }, select(range(1, 8)) }

return
  head { name = "trainable_dense",    d = 48, dv = 48, terms = per_head },
  head { name = "trainable_shared",   d = 64, dv = 64, terms = term { W, W } },
  head { name = "trainable_diagonal", d = 24, dv = 24, terms = weighted }
