-- Linear attention on features that the model makes itself: elu + 1, exponentials, small networks.
--
-- The vocabulary has no map that acts on single numbers: neither elu, nor exp, nor softmax over the coordinates. A model
-- that has one applies it to q and k, and what remains is linear: d below is the number of features, and q and k are they.
--
-- elu(x) + 1. A. Katharopoulos and others, "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention",
-- ICML 2020 (arXiv:2006.16236): as many features as coordinates, all positive, normalised by the sum, eps 1e-6.
--
-- LoLCATs. M. Zhang and others, "LoLCATs: On Low-Rank Linearizing of Large Language Models", 2024 (arXiv:2410.10254): a
-- learned matrix W of 64 rows a head, and the softmax of W x joined with that of -W x: 128 features of Llama 3 8B's keys
-- of 128 (Hedgehog's map). Its softmax over the 64 newest keys, which shares the normaliser, is of q and
-- k before the map: a window, in a head that maps them itself (specs/window.lua). The eps of the
-- sum is fpac's own.

return head { name = "elu_features_d64", d = 64, dv = 64, terms = linear {}, normalize = { "sum", eps = 1e-6 },
              dtype = "bf16" },
       head { name = "lolcats_llama3_8b", d = 128, dv = 128, terms = linear {}, normalize = "sum",
              dtype = "bf16" }
