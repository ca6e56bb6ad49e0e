-- ReBased: BASED with a square instead of the Taylor series, of keys that a learned layer norm prepares.
--
-- Y. Aksenov and others, "Linear Transformers with Learnable Kernel Functions are Better In-Context Models", 2024
-- (arXiv:2402.10644). q and k become gamma * norm(x) + beta, coordinate by coordinate; that is an affine map of the
-- normalised vector, which the vocabulary does not have, so the caller applies it: q and k here are what comes of it.
-- Then k(q, k) = (q.k)^2 / d with d = 16, normalised by the sum, eps 1e-5. 136 features suffice; blocks make 144.

return head {
  name = "rebased_d16", d = 16, dv = 64,
  scale = 1 / sqrt(sqrt(16)), -- of degree 2: the square of it, 1 / sqrt(d), is the one of the authors' code
  terms = power { degree = 2 },
  normalize = { "sum", eps = 1e-5 },
  dtype = "bf16",
}
