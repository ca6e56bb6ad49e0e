-- Linear attention: k(q, k) = q . k.
--
-- The first row of Table 1 of the paper ("Long Context Transformers with Finely Crafted State
-- Spaces", Special Cases and Sub-Families of FPA): one branch, n = 1, W = I. The state is the
-- original fast-weight matrix, d x dv.

return
  head { name = "linear_d64", d = 64, dv = 64, terms = linear {} },

  -- Wider values than keys, and the scale that softmax attention has.
  head { name = "linear_d24_v48", d = 24, dv = 48, scale = 1 / sqrt(24), terms = linear {} }
