-- The inhomogeneous polynomial kernel (c + q . k)^p: all monomials up to degree p, so that a head
-- of degree 2 keeps what linear attention knows.
--
-- A sum of terms of degree 0, 1, ... p (the paper's kernel with several heads summed, as in its
-- Appendix), with weights C(p, n) c^(p - n). For p = 2 it is never negative, which lets the sum
-- be normalised.

return
  head { name = "inhomogeneous2_d48", d = 48, dv = 48, scale = 1 / sqrt(48), normalize = "max",
         terms = inhomogeneous { degree = 2, constant = ratio(1, 2) } },

  head { name = "inhomogeneous3_d16", d = 16, dv = 16,
         terms = inhomogeneous { degree = 3, constant = 1 } }
