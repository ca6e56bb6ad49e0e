-- Symmetric power, SPOW: (q . k)^p with each monomial held once.
--
-- One feature for each sorted index tuple i1 <= ... <= ip, weighted by the number of its orders:
-- C(d + p - 1, p) features, the least that is exact (the paper, "Power Attention" and the
-- Appendix; TSPOW with blocks of one coordinate). 2080 for d = 64, p = 2, where TPOW has 4096.

return
  head { name = "spow2_d64", d = 64, dv = 64, terms = spow { d = 64, degree = 2 } },
  head { name = "spow3_d16", d = 16, dv = 48, terms = spow { d = 16, degree = 3 } }
