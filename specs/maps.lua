-- Maps of q and k, element by element, before their product: the features of linear attention.
--
-- elu + 1 and the sum as normaliser are linear attention as A. Katharopoulos and others published it
-- (arXiv:2006.16236). All features are positive, so the sum of the weights is, too.

-- Both sides alike, D = d.
local elu = linear { map = elu_plus_one }

-- Each side its own map: a query's features sum to anything, a key's stay positive.
local unlike = linear { map_q = silu, map_k = softplus }

-- A power of mapped rows has the symmetric features of a power of rows: D = d (d + 1) / 2.
local power2 = power { degree = 2, map = relu }

-- Rows of a projection given at run time, mapped, and their negatives mapped: a learned feature map with as many
-- negative as positive rows (Hedgehog's, without the division by its features' sum).
local w = trainable { name = "w", rows = 16 }
local learned = { term { coordinates { w, map = exp } }, term { coordinates { w, map = exp, inner = -1 } } }

-- Mapped rows beside unmapped ones, and a mask of keys: a masked key counts neither here nor in the normaliser.
local mixed = { term {}, term { identity() }, term { identity():map(softplus), select(range(1, 4)):map(relu) } }

return head { name = "elu_linear_d64", d = 64, dv = 64, terms = elu, normalize = "sum" },
       head { name = "silu_softplus_d32", d = 32, dv = 24, terms = unlike },
       head { name = "relu_power2_d16", d = 16, dv = 16, terms = power2, normalize = "sum", gate = true },
       head { name = "learned_map_d32", d = 32, dv = 32, terms = learned, normalize = "sum" },
       head { name = "masked_mixed_d16", d = 16, dv = 16, terms = mixed, key_mask = true },
       head { name = "elu_encoder_d32", d = 32, dv = 32, terms = linear { map = elu_plus_one }, normalize = "sum",
              causal = false, key_mask = true }
