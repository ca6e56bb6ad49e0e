-- Linear attention on mapped queries and keys: elu + 1, and the exponentials of a learned projection.
--
-- elu(x) + 1. A. Katharopoulos and others, "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention",
-- ICML 2020 (arXiv:2006.16236): as many features as coordinates, all positive, normalised by the sum, eps 1e-6.
--
-- LoLCATs. M. Zhang and others, "LoLCATs: On Low-Rank Linearizing of Large Language Models", 2024 (arXiv:2410.10254), on
-- Hedgehog's map (M. Zhang and others, ICLR 2024, arXiv:2402.04347): a learned matrix W of 64 rows a head, and exp(W x)
-- joined with exp(-W x), 128 features of Llama 3 8B's keys of 128. Its published variant divides each token's features by
-- their sum, a softmax over them, which is no map of single numbers and is left out; of queries it would cancel in the
-- normaliser. Its softmax over the 64 newest keys is a window, of which specs/window.lua has a head (the scale is then of
-- both, exponents and projections). The eps of the sum is fpac's own.

local w = trainable { name = "w", rows = 64 }
local hedgehog = { term { coordinates { w, map = exp } }, term { coordinates { w, map = exp, inner = -1 } } }

return head { name = "elu_attention_d64", d = 64, dv = 64, terms = linear { map = elu_plus_one },
              normalize = { "sum", eps = 1e-6 }, dtype = "bf16" },
       head { name = "lolcats_llama3_8b", d = 128, dv = 128, terms = hedgehog, normalize = "sum", dtype = "bf16" }
